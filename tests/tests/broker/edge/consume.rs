//! Reading: order, marks, incarnations, pauses, errors, committed offsets.

use streams_core::fetch::{FetchErrorKind, Fetched, PartitionId};
use streams_core::kafka::consumer::CommittedOffset;
use streams_core::kafka::errors::ClientErrorKind;
use streams_testkit::NewRecord;

use super::*;

#[test]
fn the_end_mark_comes_behind_the_records_and_past_the_transaction_marker() {
    let topic = topic("edge-eof", 1, &[]);
    let mut producer = transactional(&topic);
    commit_numbers(&mut producer, &topic, 0, 0..10);
    let mut consumer = consumer(&topic);
    consumer.assign(&[assigned(&topic, 0, 0, 5, 1)]).unwrap();
    let all = fetch_until(&mut consumer, |all| eof_offset(all, 5).is_some());
    assert_eq!(offsets(&all, 5), (0..10).collect::<Vec<_>>());
    assert!(
        matches!(all.last(), Some(Fetched::Eof { .. })),
        "the mark is last: {}",
        describe(&all)
    );
    assert_eq!(eof_offset(&all, 5), Some(11), "10 records and the commit marker");

    // An aborted transaction: no records, and the mark moves past it and its marker.
    producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 10..13, 0)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    producer.abort(LIMIT_MS).unwrap();
    let all = fetch_until(&mut consumer, |all| eof_offset(all, 5) == Some(15));
    assert_eq!(offsets(&all, 5), Vec::<i64>::new());
}

#[test]
fn what_was_fetched_for_an_older_assignment_is_never_handed_out() {
    let topic = topic("edge-incarnation", 2, &[]);
    for partition in 0..2 {
        let records = (0..20_000).map(|n| NewRecord::new("k", n.to_string()).partition(partition));
        kafka().produce(&topic, records).unwrap();
    }
    let mut consumer = consumer(&topic);
    for round in 1..=20_u64 {
        let start = i64::try_from(round * 7).unwrap();
        if round % 2 == 0 {
            consumer.incremental_unassign(&[PartitionId(0)]).unwrap();
            consumer
                .incremental_assign(&[assigned(&topic, 0, start, 0, round)])
                .unwrap();
        } else {
            consumer
                .assign(&[
                    assigned(&topic, 0, start, 0, round),
                    assigned(&topic, 1, start, 1, round),
                ])
                .unwrap();
        }
        let all = fetch_until(&mut consumer, |all| offsets(all, 0).len() >= 500);
        let seen = offsets(&all, 0);
        assert_eq!(seen, (start..).take(seen.len()).collect::<Vec<_>>(), "round {round}");
        let old = all.iter().any(|fetched| match fetched {
            Fetched::Records(batch) => batch.partition == PartitionId(0) && batch.incarnation != round,
            _ => false,
        });
        assert!(!old, "round {round}: {}", describe(&all));
    }
}

#[test]
fn a_paused_partition_is_silent_and_goes_on_where_it_stopped() {
    let topic = topic("edge-pause", 2, &[]);
    for partition in 0..2 {
        let records = (0..2_000).map(|n| NewRecord::new("k", n.to_string()).partition(partition));
        kafka().produce(&topic, records).unwrap();
    }
    let mut consumer = consumer(&topic);
    consumer
        .assign(&[assigned(&topic, 0, 0, 0, 1), assigned(&topic, 1, 0, 1, 1)])
        .unwrap();
    let first = fetch_until(&mut consumer, |all| !offsets(all, 0).is_empty());
    consumer.pause(&[PartitionId(0)]);
    let already = eof_offset(&first, 1).is_some();
    let second = fetch_until(&mut consumer, |all| already || eof_offset(all, 1).is_some());
    assert_eq!(offsets(&second, 0), Vec::<i64>::new());
    let of_other: Vec<_> = offsets(&first, 1).into_iter().chain(offsets(&second, 1)).collect();
    assert_eq!(of_other, (0..2_000).collect::<Vec<_>>());
    consumer.resume(&[PartitionId(0)]);
    let already = eof_offset(&first, 0).is_some();
    let third = fetch_until(&mut consumer, |all| already || eof_offset(all, 0).is_some());
    let of_paused: Vec<_> = offsets(&first, 0).into_iter().chain(offsets(&third, 0)).collect();
    assert_eq!(of_paused, (0..2_000).collect::<Vec<_>>());
}

#[test]
fn keys_values_timestamps_and_headers_come_as_they_were_written() {
    let topic = topic("edge-bytes", 1, &[]);
    let mut producer = TransactionalProducer::new(&config(&[])).unwrap();
    let mut outbox = Outbox::default();
    let index = outbox.topic(&topic);
    let headers = [
        ("twice", Some(&b"1"[..])),
        ("null", None),
        ("empty", Some(&b""[..])),
        ("twice", Some(&b"2"[..])),
    ];
    outbox.push(index, 0, 1_234_567, None, Some(b""), headers, 0).unwrap();
    outbox.push(index, 0, 0, Some(b""), None, [], 0).unwrap(); // 1970 itself is sent as its second millisecond
    producer.send_all(&outbox).unwrap();
    producer.flush(LIMIT_MS).unwrap();

    let mut consumer = consumer(&topic);
    consumer.assign(&[assigned(&topic, 0, 0, 0, 1)]).unwrap();
    let all = fetch_until(&mut consumer, |all| offsets(all, 0).len() == 2);
    let records: Vec<_> = all
        .iter()
        .filter_map(|fetched| match fetched {
            Fetched::Records(batch) => Some(batch.iter()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(
        (records[0].key, records[0].value, records[0].timestamp_ms),
        (None, Some(&b""[..]), 1_234_567)
    );
    assert_eq!(records[0].headers.clone().collect::<Vec<_>>(), headers);
    assert_eq!(
        (records[1].key, records[1].value, records[1].timestamp_ms),
        (Some(&b""[..]), None, 1)
    );
    assert_eq!(records[1].headers.clone().count(), 0);
    assert_eq!(records[0].leader_epoch, 0);
}

#[test]
fn an_offset_outside_the_log_and_an_unknown_topic_are_errors_of_the_partition() {
    let topic = topic("edge-range", 1, &[]);
    let missing = unique("edge-missing");
    let settings = [("group.id", &*topic), ("topic.metadata.propagation.max.ms", "100")];
    let mut consumer = BatchConsumer::new(&config(&settings)).unwrap();
    consumer
        .assign(&[assigned(&topic, 0, 1_000, 3, 9), assigned(&missing, 0, 0, 4, 9)])
        .unwrap();
    let mut kinds = Vec::new();
    while !kinds.iter().any(|(id, _, _)| *id == PartitionId(3)) || !kinds.iter().any(|(id, _, _)| *id == PartitionId(4))
    {
        for fetched in fetch_until(&mut consumer, |all| !all.is_empty()) {
            match fetched {
                Fetched::Error(error) => match error.partition {
                    Some((id, incarnation)) => kinds.push((id, incarnation, error.kind)),
                    None => panic!("an error of the client: {error}"),
                },
                other => panic!("{other:?}"),
            }
        }
    }
    kinds.sort_by_key(|(id, _, _)| *id);
    kinds.dedup();
    let (id, incarnation, kind) = kinds[0];
    assert_eq!((id, incarnation), (PartitionId(3), 9));
    assert!(matches!(kind, FetchErrorKind::OutOfRange { .. }), "{kind:?}");
    assert_eq!(kinds[1], (PartitionId(4), 9, FetchErrorKind::UnknownTopic));
}

#[test]
fn a_negative_start_offset_and_a_missing_group_id_are_refused() {
    let topic = topic("edge-refused", 1, &[]);
    let mut consumer = consumer(&topic);
    let error = consumer.assign(&[assigned(&topic, 0, -1, 0, 1)]).unwrap_err();
    assert_eq!(error.kind, ClientErrorKind::Invalid, "{error}");
    let error = BatchConsumer::new(&config(&[])).unwrap_err();
    assert!(error.message.contains("group.id"), "{error}");
    let error = BatchConsumer::new(&config(&[("group.id", "g"), ("no.such.property", "1")])).unwrap_err();
    assert!(error.message.contains("no.such.property"), "{error}");
}

#[test]
fn committed_offsets_come_back_with_epoch_and_metadata_and_absence_is_not_an_error() {
    let topic = topic("edge-committed", 2, &[]);
    let mut producer = transactional(&topic);
    producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..5, 0)).unwrap();
    producer
        .send_offsets(&[offset_commit(&topic, 0, 5, "bWV0YQ==")], &nobody(&topic), LIMIT_MS)
        .unwrap();
    producer.commit(LIMIT_MS).unwrap();
    let committed = consumer(&topic)
        .committed(&[partition(&topic, 0), partition(&topic, 1)], LIMIT_MS)
        .unwrap();
    let first = CommittedOffset {
        offset: 5,
        leader_epoch: 0,
        metadata: "bWV0YQ==".to_owned(),
    };
    assert_eq!(
        committed,
        [(partition(&topic, 0), Some(first)), (partition(&topic, 1), None)]
    );
}

#[test]
fn offsets_pending_in_a_transaction_are_not_known_until_it_ends() {
    let topic = topic("edge-pending", 1, &[]);
    let mut producer = transactional(&topic);
    producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..3, 0)).unwrap();
    producer
        .send_offsets(&[offset_commit(&topic, 0, 3, "")], &nobody(&topic), LIMIT_MS)
        .unwrap();
    let consumer = consumer(&topic);
    let error = consumer.committed(&[partition(&topic, 0)], 500).unwrap_err();
    assert_eq!(error.kind, ClientErrorKind::TimedOut, "{error}");
    producer.commit(LIMIT_MS).unwrap();
    let committed = consumer.committed(&[partition(&topic, 0)], LIMIT_MS).unwrap();
    assert_eq!(committed[0].1.as_ref().map(|committed| committed.offset), Some(3));
}

#[test]
fn a_waiting_fetch_can_be_woken() {
    let topic = topic("edge-wake", 1, &[]);
    let mut consumer = consumer(&topic);
    let wake = consumer.wake_handle();
    wake.wake();
    let mut out = Vec::new();
    assert_eq!(
        consumer.fetch(10, LIMIT_MS * 60, &mut out).unwrap(),
        0,
        "woken before it waited"
    );
    let waker = std::thread::spawn(move || wake.wake());
    consumer.fetch(10, LIMIT_MS * 60, &mut out).unwrap();
    waker.join().unwrap();
}
