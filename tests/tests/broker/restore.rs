//! Restores from zero of large stores, and what an instance says of itself while it starts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use streams_core::kafka::producer::{GroupIdentity, OffsetCommit, TransactionalProducer};
use streams_core::outbox::Outbox;
use streams_dsl::{KafkaStreams, State, StreamsBuilder, StreamsConfig};
use streams_testkit::{NewRecord, wait_until};
use streams_tests::{broker, topic, topic_with, unique};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(300);

fn counting(id: &str, input: &str, output: &str, state: &TempDir) -> KafkaStreams {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, String>(input)
        .group_by_key()
        .count("counts")
        .to_stream()
        .to(output);
    let config = StreamsConfig::from_properties([
        ("application.id", id),
        ("bootstrap.servers", broker().bootstrap()),
        ("state.dir", state.path().to_str().unwrap()),
        ("processing.guarantee", "exactly_once_v2"),
    ]);
    KafkaStreams::new(builder.build().unwrap(), config.unwrap()).unwrap()
}

fn restored(streams: &KafkaStreams) -> u64 {
    let status = streams.threads().into_iter().filter_map(|thread| thread.status);
    status.map(|status| status.totals.restored_records).sum()
}

/// Commits the start of the input for the group.
fn commit_nothing_read(group: &str, input: &str) {
    let transactional_id = unique("commits-the-start");
    let config = [
        ("bootstrap.servers", broker().bootstrap()),
        ("transactional.id", transactional_id.as_str()),
    ];
    let config = config.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let producer = TransactionalProducer::new(&config).unwrap();
    producer.init_transactions(30_000).unwrap();
    producer.begin().unwrap();
    let offset = OffsetCommit {
        topic: input.to_owned(),
        partition: 0,
        offset: 0,
        leader_epoch: -1,
        metadata: String::new(),
    };
    let nobody = GroupIdentity {
        group_id: group.to_owned(),
        member_id: String::new(),
        member_epoch: -1,
        instance_id: None,
    };
    producer.send_offsets(&[offset], &nobody, 30_000).unwrap();
    producer.commit(30_000).unwrap();
}

fn key(number: i64) -> String {
    format!("key-{number:07}")
}

/// `STREAMS_RESTORE_KEYS` (default a million) keys, some of them overwritten and some deleted.
#[test]
fn rule_2_9_a_million_keys_restored_from_zero_have_their_last_counts() {
    let keys: i64 = std::env::var("STREAMS_RESTORE_KEYS").map_or(1_000_000, |text| text.parse().unwrap());
    let (id, input, output) = (
        unique("restore-bulk"),
        topic("restore-bulk-in", 1),
        topic("restore-bulk-out", 1),
    );
    let changelog = format!("{id}-counts-changelog");
    broker()
        .create_topic(&changelog, 1, &[("cleanup.policy", "compact")])
        .unwrap();
    let count = |number: i64, count: i64| NewRecord::new(key(number), count.to_be_bytes().to_vec());
    broker()
        .produce(&changelog, (0..keys).map(|number| count(number, number)))
        .unwrap();
    // Every tenth was counted on, every hundredth deleted in the end.
    broker()
        .produce(
            &changelog,
            (0..keys).step_by(10).map(|number| count(number, number + 5)),
        )
        .unwrap();
    broker()
        .produce(
            &changelog,
            (0..keys).step_by(100).map(|number| NewRecord::tombstone(key(number))),
        )
        .unwrap();
    // An application that has these rows has read some input.
    commit_nothing_read(&id, &input);
    let written = keys + (keys + 9) / 10 + (keys + 99) / 100;

    let state = TempDir::new().unwrap();
    let streams = counting(&id, &input, &output, &state);
    streams.start().unwrap();
    assert!(
        streams.wait_for(LIMIT, |state| state == State::Running),
        "{:?}",
        streams.error()
    );
    assert_eq!(restored(&streams), u64::try_from(written).unwrap());

    let asked: Vec<i64> = (0..keys)
        .step_by(usize::try_from(keys / 500).unwrap())
        .chain([keys - 1])
        .collect();
    broker()
        .produce(&input, asked.iter().map(|number| NewRecord::new(key(*number), "v")))
        .unwrap();
    let records = broker()
        .collector()
        .wait_for_count(&output, asked.len(), LIMIT)
        .unwrap();
    let found: BTreeMap<String, i64> = records
        .iter()
        .map(|record| {
            let value = record.value.as_deref().unwrap().try_into().unwrap();
            (
                String::from_utf8(record.key.clone().unwrap()).unwrap(),
                i64::from_be_bytes(value),
            )
        })
        .collect();
    for number in asked {
        let before = match number {
            number if number % 100 == 0 => 0,
            number if number % 10 == 0 => number + 5,
            number => number,
        };
        assert_eq!(found[&key(number)], before + 1, "{number}");
    }
    assert!(streams.close(LIMIT));
}

#[test]
fn running_is_told_once_and_not_before_the_tasks_run() {
    let (id, input, output) = (
        unique("first-start"),
        topic("first-start-in", 2),
        topic_with("first-start-out", 2, &[]),
    );
    let state = TempDir::new().unwrap();
    let streams = Arc::new(counting(&id, &input, &output, &state));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (seen, weak) = (Arc::clone(&told), Arc::downgrade(&streams));
    streams.set_state_listener(move |new, _| {
        let threads = weak.upgrade().map(|streams| streams.threads()).unwrap_or_default();
        let tasks: usize = threads
            .iter()
            .filter_map(|thread| thread.status.as_ref())
            .map(|status| status.tasks.len())
            .sum();
        seen.lock().unwrap().push((new, tasks));
    });
    streams.start().unwrap();
    broker().produce(&input, [NewRecord::new("k", "v")]).unwrap();
    broker().collector().wait_for_count(&output, 1, LIMIT).unwrap();
    assert!(streams.wait_for(LIMIT, |state| state == State::Running));
    assert!(streams.is_ready());
    assert!(streams.close(LIMIT));
    let told = told.lock().unwrap().clone();
    assert_eq!(told[..2], [(State::Rebalancing, 0), (State::Running, 2)], "{told:?}");
}

/// A restore that waits for somebody's open transaction, whose task goes to another instance meanwhile, ends: the state
/// directory of the task is free for whoever needs it, and nobody reads what nobody wants.
#[test]
fn a_restore_of_a_task_that_was_given_away_ends_before_its_target() {
    let (id, input, output) = (
        unique("restore-away"),
        topic("restore-away-in", 2),
        topic("restore-away-out", 2),
    );
    let changelog = format!("{id}-counts-changelog");
    broker()
        .create_topic(&changelog, 2, &[("cleanup.policy", "compact")])
        .unwrap();
    let transactional_id = unique("holds-the-changelog");
    let config = [
        ("bootstrap.servers", broker().bootstrap()),
        ("transactional.id", transactional_id.as_str()),
    ];
    let config = config.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut producer = TransactionalProducer::new(&config).unwrap();
    producer.init_transactions(30_000).unwrap();
    producer.begin().unwrap();
    let mut outbox = Outbox::default();
    let to = outbox.topic(&changelog);
    for partition in 0..2 {
        let count = 7_i64.to_be_bytes();
        outbox.push(to, partition, 1, Some(b"k"), Some(&count), [], 1).unwrap();
    }
    producer.send_all(&outbox).unwrap();
    producer.flush(30_000).unwrap();

    let (first_state, second_state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let first = counting(&id, &input, &output, &first_state);
    let restoring = |streams: &KafkaStreams| {
        streams
            .threads()
            .iter()
            .map(|thread| thread.restores.len())
            .sum::<usize>()
    };
    first.start().unwrap();
    wait_until("both tasks restore", LIMIT, || Ok(restoring(&first) == 2)).unwrap();
    let second = counting(&id, &input, &output, &second_state);
    second.start().unwrap();
    wait_until("each instance restores one", LIMIT, || {
        Ok((restoring(&first), restoring(&second)) == (1, 1))
    })
    .unwrap();

    producer.abort(30_000).unwrap();
    for streams in [&first, &second] {
        assert!(
            streams.wait_for(LIMIT, |state| state == State::Running),
            "{:?}",
            streams.error()
        );
    }
    assert_eq!(
        restored(&first) + restored(&second),
        0,
        "nothing of an aborted transaction is restored"
    );
    assert!(first.close(LIMIT) && second.close(LIMIT));
}
