//! Sending: transactions, fencing, delivery reports, refusals.

use std::time::Instant;

use streams_core::kafka::errors::{Reaction, TxnErrorClass};
use streams_core::kafka::producer::Reports;
use streams_testkit::Isolation;

use super::*;

/// Numbers of the broker's and the client's refusals.
const MSG_SIZE_TOO_LARGE: i32 = 10;
const UNKNOWN_PARTITION: i32 = -190;

#[test]
fn an_abort_gives_up_queued_records_and_their_reports() {
    let topic = topic("edge-abort", 1, &[]);
    // Nothing is sent by itself for a quarter of an hour, so the records are certainly still queued at the abort.
    let config = config(&[
        ("transactional.id", &topic),
        ("linger.ms", "890000"),
        ("message.timeout.ms", "900000"),
        ("transaction.timeout.ms", "900000"),
    ]);
    let mut producer = TransactionalProducer::new(&config).unwrap();
    producer.init_transactions(LIMIT_MS).unwrap();
    let aborted = producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..9_000, 1)).unwrap();
    assert!(producer.outstanding() >= 9_000);
    producer.abort(LIMIT_MS).unwrap();
    assert_eq!(producer.outstanding(), 0);
    assert_eq!(producer.reports(aborted), Reports::default());

    let next = producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..7, 1)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    producer.commit(LIMIT_MS).unwrap();
    assert!(next > aborted);
    assert_eq!(
        (producer.reports(next).acked, producer.reports(next).failed_total),
        (7, 0)
    );
    assert_eq!(kafka().collect(&topic).unwrap().len(), 7);
}

#[test]
fn acknowledged_offsets_are_reported_per_slot_and_epoch() {
    let topic = topic("edge-slots", 2, &[]);
    let mut producer = transactional(&topic);
    let first = producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..10, 1)).unwrap();
    producer.send_all(&numbers(&topic, 1, 0..3, 2)).unwrap();
    producer.send_all(&numbers(&topic, 1, 0..2, 0)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    producer.commit(LIMIT_MS).unwrap();
    let reports = producer.reports(first);
    assert_eq!((reports.acked, reports.failed_total), (15, 0));
    assert_eq!(reports.slots().collect::<Vec<_>>(), [(1, 9), (2, 2)]);

    let second = producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..1, 1)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    producer.commit(LIMIT_MS).unwrap();
    assert_eq!(
        producer.reports(second).highest(1),
        Some(11),
        "offset 10 is the commit marker"
    );
    assert_eq!(producer.reports(second).highest(2), None);
}

#[test]
fn a_second_producer_with_the_same_id_fences_the_first() {
    let topic = topic("edge-fenced", 1, &[]);
    let mut first = transactional(&topic);
    first.begin().unwrap();
    first.send_all(&numbers(&topic, 0, 0..3, 0)).unwrap();
    first.flush(LIMIT_MS).unwrap();
    let mut second = transactional(&topic);
    let error = first.commit(LIMIT_MS).unwrap_err();
    assert_eq!(error.class, TxnErrorClass::Fatal, "{error}");
    assert!(error.is_fenced(), "{error}");
    assert_eq!(error.reaction(), Reaction::ReplaceProducer);
    assert!(first.fatal_error().is_some_and(|error| error.is_fenced()));
    drop(first);
    commit_numbers(&mut second, &topic, 0, 10..12);
    let values: Vec<_> = kafka()
        .collect(&topic)
        .unwrap()
        .iter()
        .map(|record| record.value_text())
        .collect();
    assert_eq!(values, ["10", "11"], "the first one's records were aborted");
}

#[test]
fn a_commit_in_the_name_of_an_unknown_member_must_be_aborted() {
    let topic = topic("edge-member", 1, &[]);
    let mut producer = transactional(&topic);
    producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..3, 0)).unwrap();
    let member = GroupIdentity {
        member_id: "nobody-knows-me".to_owned(),
        member_epoch: 3,
        ..nobody(&topic)
    };
    let error = producer
        .send_offsets(&[offset_commit(&topic, 0, 3, "")], &member, LIMIT_MS)
        .unwrap_err();
    assert_eq!(error.class, TxnErrorClass::Abortable, "{error}");
    assert_eq!(error.reaction(), Reaction::AbortAndRejoin, "{error}");
    producer.abort(LIMIT_MS).unwrap();
    commit_numbers(&mut producer, &topic, 0, 0..1);
    assert_eq!(
        kafka().collect(&topic).unwrap().len(),
        1,
        "the producer goes on after the abort"
    );
}

#[test]
fn metadata_above_the_brokers_limit_stops_the_commit() {
    let topic = topic("edge-metadata", 1, &[]);
    let producer = transactional(&topic);
    producer.begin().unwrap();
    let commit = offset_commit(&topic, 0, 0, &"x".repeat(4097));
    let error = producer.send_offsets(&[commit], &nobody(&topic), LIMIT_MS).unwrap_err();
    assert_eq!(error.reaction(), Reaction::AbortAndStop, "{error}");
    producer.abort(LIMIT_MS).unwrap();
}

#[test]
fn a_record_above_the_clients_limit_is_refused_at_once_and_nothing_else_is_lost() {
    let topic = topic("edge-large", 1, &[]);
    let mut producer = TransactionalProducer::new(&config(&[("message.max.bytes", "2000")])).unwrap();
    let epoch = producer.begin().unwrap();
    let mut outbox = numbers(&topic, 0, 0..2, 0);
    let index = outbox.topic(&topic);
    outbox.push(index, 0, 1, None, Some(&[7; 3_000]), [], 0).unwrap();
    outbox.push(index, 0, 1, None, Some(b"behind"), [], 0).unwrap();
    let error = producer.send_all(&outbox).unwrap_err();
    assert_eq!(
        (error.index, error.code, error.class),
        (2, MSG_SIZE_TOO_LARGE, TxnErrorClass::Other),
        "{error}"
    );
    assert_eq!(producer.send_from(&outbox, error.index + 1).unwrap(), 1);
    producer.flush(LIMIT_MS).unwrap();
    assert_eq!(producer.reports(epoch).acked, 3);
}

#[test]
fn a_record_above_the_brokers_limit_makes_the_transaction_abortable() {
    let topic = topic("edge-refused", 1, &[("max.message.bytes", "500")]);
    let mut producer = transactional(&topic);
    let epoch = producer.begin().unwrap();
    let mut outbox = Outbox::default();
    let index = outbox.topic(&topic);
    outbox.push(index, 0, 1, None, Some(&[7; 3_000]), [], 4).unwrap();
    producer.send_all(&outbox).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    let reports = producer.reports(epoch);
    assert_eq!((reports.acked, reports.failed_total), (0, 1));
    let failure = &reports.failed[0];
    assert_eq!(
        (failure.topic.as_str(), failure.partition, failure.code, failure.slot),
        (&*topic, 0, 10, 4)
    );
    assert_eq!(failure.reaction(), Reaction::AbortAndStop);
    let error = producer.commit(LIMIT_MS).unwrap_err();
    assert_eq!(
        (error.class, error.reaction()),
        (TxnErrorClass::Abortable, Reaction::AbortAndStop),
        "{error}"
    );
    producer.abort(LIMIT_MS).unwrap();
}

#[test]
fn a_partition_that_does_not_exist_is_refused() {
    let topic = topic("edge-partition", 1, &[]);
    let mut producer = TransactionalProducer::new(&config(&[])).unwrap();
    let epoch = producer.begin().unwrap();
    // Before the client knows the topic the refusal is a delivery report, afterwards an error of the send.
    producer.send_all(&numbers(&topic, 7, 0..1, 0)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    assert_eq!(producer.reports(epoch).failed[0].code, UNKNOWN_PARTITION);
    let error = producer.send_all(&numbers(&topic, 7, 0..1, 0)).unwrap_err();
    assert_eq!(
        (error.index, error.code, error.partition),
        (0, UNKNOWN_PARTITION, 7),
        "{error}"
    );
}

#[test]
fn a_full_queue_is_waited_for() {
    let topic = topic("edge-full", 1, &[]);
    let mut producer = TransactionalProducer::new(&config(&[("queue.buffering.max.messages", "1000")])).unwrap();
    let epoch = producer.begin().unwrap();
    assert_eq!(producer.send_all(&numbers(&topic, 0, 0..20_000, 0)).unwrap(), 20_000);
    producer.flush(LIMIT_MS).unwrap();
    assert_eq!(producer.reports(epoch).acked, 20_000);
    let values: Vec<_> = kafka()
        .collect(&topic)
        .unwrap()
        .iter()
        .map(|record| record.value_text())
        .collect();
    assert_eq!(
        values,
        (0..20_000).map(|n: u32| n.to_string()).collect::<Vec<_>>(),
        "in order"
    );
}

#[test]
fn without_a_broker_waits_end_and_closing_does_not_hang() {
    let nowhere = [("bootstrap.servers".to_owned(), "127.0.0.1:1".to_owned())];
    let mut config = nowhere.to_vec();
    config.push(("queue.buffering.max.messages".to_owned(), "10".to_owned()));
    let mut producer = TransactionalProducer::new(&config).unwrap().with_send_wait_ms(50);
    let error = producer.send_all(&numbers("t", 0, 0..100, 0)).unwrap_err();
    assert_eq!((error.index, error.class), (10, TxnErrorClass::Retriable), "{error}");
    let error = producer.flush(50).unwrap_err();
    assert_eq!(
        (error.class, error.reaction()),
        (TxnErrorClass::Retriable, Reaction::Again),
        "{error}"
    );
    drop(producer);

    let mut config = nowhere.to_vec();
    config.push(("transactional.id".to_owned(), "t".to_owned()));
    let producer = TransactionalProducer::new(&config).unwrap();
    let error = producer.init_transactions(200).unwrap_err();
    assert_eq!(error.reaction(), Reaction::Again, "{error}");
    drop(producer);
}

#[test]
fn an_open_transaction_is_seen_uncommitted_only() {
    let topic = topic("edge-open", 1, &[]);
    let mut producer = transactional(&topic);
    producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..4, 0)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    assert_eq!(
        kafka()
            .collector()
            .isolation(Isolation::ReadUncommitted)
            .collect(&topic)
            .unwrap()
            .len(),
        4
    );
    assert_eq!(kafka().collect(&topic).unwrap().len(), 0);
    producer.abort(LIMIT_MS).unwrap();
}

/// Not a claim but a number: how long a commit of 100 records takes (flush, offsets, EndTxn). Back to back, so half of
/// them wait 20 ms in librdkafka until the markers of the last one are written (CONCURRENT_TRANSACTIONS).
#[test]
fn commits_of_100_records_are_timed() {
    let topic = topic("edge-commit-time", 4, &[]);
    let mut producer = transactional(&topic);
    let mut times_us = Vec::new();
    for round in 0..100_u32 {
        producer.begin().unwrap();
        for partition in 0..4 {
            producer.send_all(&numbers(&topic, partition, 0..25, 0)).unwrap();
        }
        let start = Instant::now();
        producer.flush(LIMIT_MS).unwrap();
        let commit = offset_commit(&topic, 0, i64::from(round), "");
        producer.send_offsets(&[commit], &nobody(&topic), LIMIT_MS).unwrap();
        producer.commit(LIMIT_MS).unwrap();
        times_us.push(start.elapsed().as_micros());
    }
    times_us.sort_unstable();
    println!(
        "commit of 100 records: p50 {} us, p90 {} us, max {} us",
        times_us[50], times_us[90], times_us[99]
    );
    assert_eq!(kafka().collect(&topic).unwrap().len(), 10_000);
}

/// A call that ran into its timeout leaves its request behind. When that is answered beside the next call, librdkafka takes
/// the one for the other and says `_STATE`: no reason to stop, but for a new producer, which settles the transaction.
#[test]
fn a_commit_asked_for_in_tiny_slices_ends_committed_or_asks_for_a_new_producer() {
    let topic = topic("edge-slices", 1, &[]);
    let mut producer = transactional(&topic);
    let (mut committed, mut unknown) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let begun = producer.begin();
        let sent = begun.map_err(|error| error.reaction()).and_then(|_| {
            producer.send_all(&numbers(&topic, 0, number..number + 1, 0)).unwrap();
            loop {
                match producer.commit(0) {
                    Ok(()) => return Ok(()),
                    Err(error) if error.reaction() == Reaction::Again => {}
                    Err(error) => return Err(error.reaction()),
                }
            }
        });
        match sent {
            Ok(()) => committed.push(number.to_string()),
            Err(reaction) => {
                assert_eq!(reaction, Reaction::ReplaceProducer, "record {number}");
                unknown.push(number.to_string());
                drop(producer);
                producer = transactional(&topic);
            }
        }
    }
    println!(
        "{} committed, {} settled by a new producer",
        committed.len(),
        unknown.len()
    );
    let records = kafka().collect(&topic).unwrap();
    let values: Vec<_> = records.iter().map(|record| record.value_text()).collect();
    let known: Vec<_> = values
        .iter()
        .filter(|value| !unknown.contains(value))
        .cloned()
        .collect();
    assert_eq!(known, committed, "what was said to be committed is there, once");
}
