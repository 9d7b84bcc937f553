//! The shell over librdkafka: what the runtime relies on, asked of a real broker.

#[path = "edge/admin.rs"]
mod admin;
#[path = "edge/consume.rs"]
mod consume;
#[path = "edge/produce.rs"]
mod produce;

use streams_core::TopicPartition;
use streams_core::fetch::{Fetched, PartitionId};
use streams_core::kafka::consumer::{AssignedPartition, BatchConsumer};
use streams_core::kafka::producer::{GroupIdentity, OffsetCommit, TransactionalProducer};
use streams_core::outbox::Outbox;

use streams_testkit::Kafka;
use streams_tests::{broker, unique};

/// A bound for every call: far more than it needs on a busy machine.
const LIMIT_MS: u64 = 60_000;

fn config(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut config = vec![("bootstrap.servers".to_owned(), kafka().bootstrap().to_owned())];
    config.extend(
        settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    config
}

fn kafka() -> &'static Kafka {
    broker()
}

fn topic(name: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
    streams_tests::topic_with(name, partitions, configs)
}

fn consumer(group: &str) -> BatchConsumer {
    BatchConsumer::new(&config(&[("group.id", group), ("isolation.level", "read_committed")])).unwrap()
}

fn transactional(id: &str) -> TransactionalProducer {
    let producer = TransactionalProducer::new(&config(&[("transactional.id", id)])).unwrap();
    producer.init_transactions(LIMIT_MS).unwrap();
    producer
}

/// `count` records `0, 1, …` as text for one partition, each with its slot.
fn numbers(topic: &str, partition: i32, range: std::ops::Range<u32>, slot: u32) -> Outbox {
    let mut outbox = Outbox::default();
    let index = outbox.topic(topic);
    for number in range {
        let value = number.to_string();
        outbox
            .push(index, partition, 1_000, Some(b"key"), Some(value.as_bytes()), [], slot)
            .unwrap();
    }
    outbox
}

/// Sends and commits one transaction without offsets.
fn commit_numbers(producer: &mut TransactionalProducer, topic: &str, partition: i32, range: std::ops::Range<u32>) {
    producer.begin().unwrap();
    producer.send_all(&numbers(topic, partition, range, 0)).unwrap();
    producer.commit(LIMIT_MS).unwrap();
}

fn assigned(topic: &str, partition: i32, start_offset: i64, id: u32, incarnation: u64) -> AssignedPartition {
    AssignedPartition {
        topic: topic.to_owned(),
        partition,
        start_offset,
        id: PartitionId(id),
        incarnation,
    }
}

fn partition(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition::new(topic, partition)
}

/// Fetches until `done` says so; panics when nothing more comes within the limit.
fn fetch_until(consumer: &mut BatchConsumer, mut done: impl FnMut(&[Fetched]) -> bool) -> Vec<Fetched> {
    let mut all = Vec::new();
    while !done(&all) {
        let before = all.len();
        consumer.fetch(1_000, LIMIT_MS, &mut all).unwrap();
        assert!(
            all.len() > before,
            "nothing came within the limit; so far {}",
            describe(&all)
        );
    }
    all
}

fn describe(all: &[Fetched]) -> String {
    let one = |fetched: &Fetched| match fetched {
        Fetched::Records(batch) => {
            format!(
                "{:?} i{} {}+{}",
                batch.partition,
                batch.incarnation,
                batch.offset(0),
                batch.len()
            )
        }
        other => format!("{other:?}"),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn offsets(all: &[Fetched], id: u32) -> Vec<i64> {
    let of_batch = |fetched: &Fetched| match fetched {
        Fetched::Records(batch) if batch.partition == PartitionId(id) => {
            (0..batch.len()).map(|index| batch.offset(index)).collect()
        }
        _ => Vec::new(),
    };
    all.iter().flat_map(of_batch).collect()
}

fn eof_offset(all: &[Fetched], id: u32) -> Option<i64> {
    all.iter().rev().find_map(|fetched| match fetched {
        Fetched::Eof { partition, offset, .. } if *partition == PartitionId(id) => Some(*offset),
        _ => None,
    })
}

/// Commits without fencing, as a plain group: fine where the test is not about membership.
fn nobody(group: &str) -> GroupIdentity {
    GroupIdentity {
        group_id: group.to_owned(),
        member_id: String::new(),
        member_epoch: -1,
        instance_id: None,
    }
}

fn offset_commit(topic: &str, partition: i32, offset: i64, metadata: &str) -> OffsetCommit {
    OffsetCommit {
        topic: topic.to_owned(),
        partition,
        offset,
        leader_epoch: 0,
        metadata: metadata.to_owned(),
    }
}
