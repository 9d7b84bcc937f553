#![allow(clippy::unwrap_used)]
use super::*;
use crate::Headers;

fn record() -> LogRecord {
    LogRecord {
        offset: 0,
        timestamp_ms: 0,
        key: None,
        value: None,
        headers: Headers::default(),
    }
}

fn broker() -> (MemoryBroker, TopicPartition) {
    let mut broker = MemoryBroker::default();
    broker.create_topic("out", 1);
    (broker, TopicPartition::new("out", 0))
}

fn offset(out: &TopicPartition, offset: i64) -> Vec<(TopicPartition, i64, String)> {
    vec![(out.clone(), offset, String::new())]
}

#[test]
fn a_new_session_aborts_and_fences_the_old_one() {
    let (mut broker, out) = broker();
    let old = broker.init_producer("tx");
    broker.send(&old, &out, record(), 0).unwrap();
    broker.send_offsets(&old, offset(&out, 7), 0).unwrap();
    let new = broker.init_producer("tx");
    assert_eq!(broker.end_transaction(&old, true), Err(TransactionError::Fenced));
    assert!(broker.read_committed("out").is_empty());
    assert_eq!(broker.committed(&out), None);
    broker.send(&new, &out, record(), 0).unwrap();
    broker.end_transaction(&new, true).unwrap();
    assert_eq!(broker.read_committed("out").len(), 1);
}

#[test]
fn a_decided_transaction_is_seen_marker_by_marker_and_the_next_one_waits() {
    let (mut broker, out) = broker();
    broker.delay_markers(true);
    let session = broker.init_producer("tx");
    broker.send(&session, &out, record(), 0).unwrap();
    broker.send_offsets(&session, offset(&out, 7), 0).unwrap();
    broker.end_transaction(&session, true).unwrap();
    broker.end_transaction(&session, true).unwrap();
    assert_eq!(broker.send(&session, &out, record(), 0), Err(TransactionError::Busy));
    assert!(broker.read_committed("out").is_empty() && !broker.is_stable(&out));
    assert!(broker.write_marker(1));
    assert_eq!(broker.committed(&out).unwrap().0, 7);
    assert!(broker.is_stable(&out) && broker.read_committed("out").is_empty());
    assert!(broker.write_marker(1));
    assert_eq!(broker.read_committed("out").len(), 1);
    assert!(!broker.write_marker(0));
    broker.send(&session, &out, record(), 0).unwrap();
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() {
    let (mut broker, out) = broker();
    let session = broker.init_producer("tx");
    broker.send(&session, &out, record(), 100).unwrap();
    assert!(broker.end_overdue(199, 100).is_empty());
    assert_eq!(broker.end_overdue(200, 100), ["tx"]);
    assert_eq!(broker.end_transaction(&session, true), Err(TransactionError::Fenced));
    assert_eq!(broker.log(&out).unwrap().last_stable_offset(), 2);
}

#[test]
fn a_late_record_never_opens_a_transaction() {
    let (mut broker, out) = broker();
    let session = broker.init_producer("tx");
    broker.send(&session, &out, record(), 0).unwrap();
    broker.send_late(&session, &out, record()).unwrap();
    broker.end_transaction(&session, true).unwrap();
    assert_eq!(
        broker.send_late(&session, &out, record()),
        Err(TransactionError::NotOpen)
    );
    assert_eq!(broker.read_committed("out").len(), 2);
}

#[test]
fn of_two_transactions_the_later_request_names_the_offset() {
    let (mut broker, out) = broker();
    let (first, second) = (broker.init_producer("a"), broker.init_producer("b"));
    broker.send_offsets(&first, offset(&out, 3), 0).unwrap();
    broker.send_offsets(&second, offset(&out, 5), 0).unwrap();
    broker.end_transaction(&second, true).unwrap();
    broker.end_transaction(&first, true).unwrap();
    assert_eq!(broker.committed(&out).unwrap().0, 5);
}
