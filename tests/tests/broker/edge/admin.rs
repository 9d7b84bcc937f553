//! Topics, settings, ids, listed offsets, deleted records.

use streams_core::kafka::admin::{AdminClient, Isolation, ListedOffset, OffsetSpec, TopicSpec};
use streams_core::kafka::errors::ClientErrorKind;
use streams_testkit::NewRecord;

use super::*;

fn admin() -> AdminClient {
    AdminClient::new(&config(&[])).unwrap()
}

fn spec(name: &str, partitions: i32) -> TopicSpec {
    let configs = vec![("cleanup.policy".to_owned(), "compact,delete".to_owned())];
    TopicSpec {
        name: name.to_owned(),
        partitions,
        replication_factor: -1,
        configs,
    }
}

#[test]
fn topics_are_made_described_and_deleted() {
    let (name, missing) = (unique("edge-admin"), unique("edge-admin-missing"));
    let admin = admin();
    let created = admin.create_topics(&[spec(&name, 3)], LIMIT_MS).unwrap();
    assert_eq!(created, [(name.clone(), Ok(()))]);
    let again = admin.create_topics(&[spec(&name, 3)], LIMIT_MS).unwrap();
    assert_eq!(again[0].1.as_ref().unwrap_err().kind, ClientErrorKind::TopicExists);

    let described = admin.describe_topics(&[&name, &missing], LIMIT_MS).unwrap();
    let of = |topic: &str| described.iter().find(|(name, _)| name == topic).unwrap().1.clone();
    let first = of(&name).unwrap();
    assert_eq!((first.partitions, first.internal), (3, false));
    assert_ne!(first.topic_id, [0; 16]);
    assert_eq!(of(&missing).unwrap_err().kind, ClientErrorKind::UnknownTopic);
    let settings = admin.describe_configs(&name, LIMIT_MS).unwrap();
    let policy = &settings["cleanup.policy"];
    assert_eq!(
        (policy.value.as_deref(), policy.is_default),
        (Some("compact,delete"), false)
    );
    assert!(settings["max.message.bytes"].is_default);
    assert!(admin.list_topics(LIMIT_MS).unwrap().contains(&(name.clone(), 3)));

    assert_eq!(
        admin.delete_topics(&[&name], LIMIT_MS).unwrap(),
        [(name.clone(), Ok(()))]
    );
    streams_testkit::wait_until("the topic is gone", std::time::Duration::from_secs(60), || {
        Ok(admin.describe_topics(&[&name], LIMIT_MS).unwrap()[0].1.is_err())
    })
    .unwrap();
    assert_eq!(admin.create_topics(&[spec(&name, 1)], LIMIT_MS).unwrap()[0].1, Ok(()));
    let consumer = consumer(&name);
    let mut second = None;
    streams_testkit::wait_until(
        "the broker knows the new topic",
        std::time::Duration::from_secs(60),
        || {
            second = consumer.metadata(&[&name], LIMIT_MS).unwrap()[0].1.clone().ok();
            Ok(second.is_some())
        },
    )
    .unwrap();
    let second = second.unwrap();
    assert_ne!(second.topic_id, first.topic_id, "a topic made anew has another id");
}

#[test]
fn the_two_ends_of_a_log_differ_while_a_transaction_is_open() {
    let topic = topic("edge-ends", 2, &[]);
    let mut producer = transactional(&topic);
    commit_numbers(&mut producer, &topic, 0, 0..5);
    producer.begin().unwrap();
    producer.send_all(&numbers(&topic, 0, 0..4, 0)).unwrap();
    producer.flush(LIMIT_MS).unwrap();
    let admin = admin();
    let both = [partition(&topic, 1), partition(&topic, 0)];
    let ends = |isolation| -> Vec<i64> {
        let listed = admin
            .list_offsets(&both, OffsetSpec::Latest, isolation, LIMIT_MS)
            .unwrap();
        assert_eq!(
            [listed[0].0.clone(), listed[1].0.clone()],
            both,
            "in the order asked for"
        );
        listed.iter().map(|(_, offset)| offset.offset).collect()
    };
    assert_eq!(ends(Isolation::ReadUncommitted), [0, 10]);
    assert_eq!(ends(Isolation::ReadCommitted), [0, 6]);
    producer.abort(LIMIT_MS).unwrap();
    let by_time = |timestamp_ms| {
        let spec = OffsetSpec::Timestamp(timestamp_ms);
        admin
            .list_offsets(&both[1..], spec, Isolation::ReadUncommitted, LIMIT_MS)
            .unwrap()[0]
            .1
    };
    assert_eq!(by_time(500).offset, 0);
    assert_eq!(by_time(5_000).offset, 5, "markers have a time as well: the broker's");
    assert_eq!(
        by_time(9_000_000_000_000),
        ListedOffset {
            offset: -1,
            leader_epoch: -1
        }
    );
    let missing = admin.list_offsets(
        &[partition(&topic, 9)],
        OffsetSpec::Latest,
        Isolation::ReadCommitted,
        2_000,
    );
    let error = missing.unwrap_err();
    assert_eq!(error.kind, ClientErrorKind::UnknownTopic, "{error}");
}

#[test]
fn deleted_records_move_the_start_of_the_log() {
    let topic = topic("edge-delete", 1, &[]);
    kafka()
        .produce(&topic, (0..10).map(|n: u32| NewRecord::new("k", n.to_string())))
        .unwrap();
    let admin = admin();
    let deleted = admin.delete_records(&[(partition(&topic, 0), 7)], LIMIT_MS).unwrap();
    assert_eq!(deleted, [(partition(&topic, 0), Ok(7))]);
    let start = admin.list_offsets(
        &[partition(&topic, 0)],
        OffsetSpec::Earliest,
        Isolation::ReadUncommitted,
        LIMIT_MS,
    );
    assert_eq!(start.unwrap()[0].1.offset, 7);
    let beyond = admin.delete_records(&[(partition(&topic, 0), 70)], LIMIT_MS).unwrap();
    assert_eq!(beyond[0].1.as_ref().unwrap_err().kind, ClientErrorKind::OutOfRange);
}
