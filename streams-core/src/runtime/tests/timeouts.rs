//! Transactions that are open for too long: our own, and another producer's.

use super::World;
use super::nodes::{copy, counting};
use crate::runtime::{CallFailure, CoreStatus, Effect, FailureClass, Outcome};
use crate::test_driver::LogRecord;
use crate::topology::Topology;
use crate::{Headers, TopicPartition};

const RECORDS: i64 = 400;

fn slow_world(topology: Topology) -> World {
    let mut world = World::new(topology, 1 << 20);
    // One epoch for everything, as long as nothing bounds it.
    world.settings.commit_interval_ms = 5_000;
    world.settings.commit_adaptive = false;
    world.settings.transaction_timeout_ms = 60_000;
    world.feed((0..RECORDS).map(|at| (["a", "b", "c", "d"][at as usize % 4], at)));
    world.start();
    world
}

fn status(world: &World) -> CoreStatus {
    world.process.as_ref().unwrap().core.status()
}

/// Runs to the next commit, lets the transaction's time run out there, and fails it.
fn overrun(world: &mut World, class: FailureClass) {
    let stopped = world.run(|_, effect| matches!(effect, Effect::CommitTransaction { .. }));
    assert!(stopped.unwrap(), "no commit any more");
    world.now_ms += 61_000;
    let (code, message) = ("_FENCED".to_owned(), "the broker ended the transaction".to_owned());
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_outcome(Outcome::Failed(CallFailure { class, code, message }), world.now_ms)
        .unwrap();
}

/// Runs to the end; answers how many input records each transaction took.
fn transactions(world: &mut World) -> Vec<i64> {
    let (mut sizes, mut before) = (Vec::new(), 0);
    let mut offsets = std::collections::BTreeMap::new();
    world
        .run(|_, effect| {
            if let Effect::SendOffsets { offsets: sent, .. } = effect {
                offsets.extend(sent.iter().map(|o| (o.topic_partition.clone(), o.offset)));
                let stands: i64 = offsets.values().sum();
                sizes.push(stands - before);
                before = stands;
            }
            false
        })
        .unwrap();
    sizes
}

#[test]
fn rule_1_11_after_a_transaction_timeout_transactions_are_half_as_large_and_grow_back() {
    for class in [FailureClass::Fenced, FailureClass::Retriable, FailureClass::Abortable] {
        let mut world = slow_world(counting());
        assert_eq!(status(&world).most_records, None);
        overrun(&mut world, class);
        let first = status(&world).most_records.unwrap() as i64;
        assert!(first > 10, "{class:?}: {first}");
        let sizes = transactions(&mut world);
        assert_eq!(sizes.iter().sum::<i64>(), RECORDS, "{class:?}: {sizes:?}");
        assert_eq!(sizes.iter().max(), Some(&first), "{class:?}: {sizes:?}");
        assert_eq!(status(&world).totals.transaction_timeouts, 1);
        let counts = world.latest("out");
        assert!(
            counts.values().all(|count| count.as_deref() == Some(b"100")),
            "{class:?}"
        );
    }
}

#[test]
fn rule_1_11_one_slow_record_alone_in_its_transaction_gets_through() {
    let mut world = slow_world(copy());
    for at in 1..=10 {
        overrun(&mut world, FailureClass::Fenced);
        assert_eq!(status(&world).totals.transaction_timeouts, at);
    }
    assert_eq!(status(&world).most_records, Some(1));
    let sizes = transactions(&mut world);
    assert_eq!(sizes[..4], [1, 2, 3, 4]);
    assert_eq!(world.all("out").len(), RECORDS as usize);
}

#[test]
fn a_failure_in_time_leaves_the_size_of_transactions_alone() {
    let mut world = slow_world(copy());
    assert!(
        world
            .run(|_, effect| matches!(effect, Effect::CommitTransaction { .. }))
            .unwrap()
    );
    let (code, message) = ("TEST".to_owned(), "told to fail".to_owned());
    let class = FailureClass::Abortable;
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_outcome(Outcome::Failed(CallFailure { class, code, message }), world.now_ms)
        .unwrap();
    assert_eq!(status(&world).most_records, None);
    assert_eq!(status(&world).totals.transaction_timeouts, 0);
}

/// A transaction of another producer on `in-0` that nobody ends.
fn leave_open(world: &mut World) {
    let session = world.broker.init_producer("another");
    let record = LogRecord {
        offset: 0,
        timestamp_ms: 0,
        key: Some(b"b".to_vec()),
        value: Some(b"v".to_vec()),
        headers: Headers::default(),
    };
    world
        .broker
        .send(&session, &TopicPartition::new("in", 0), record, world.now_ms)
        .unwrap();
}

fn wait(world: &mut World, ms: i64) {
    for _ in 0..ms / 30_000 {
        world.now_ms += 30_000;
        world.run_to_end();
    }
}

#[test]
fn rule_5_2_an_input_held_for_15_minutes_below_its_end_is_told_of_with_its_offset() {
    let mut world = World::new(copy(), 0);
    world.feed([("b", 1), ("b", 2), ("a", 3)]);
    world.start();
    world.run_to_end();
    leave_open(&mut world);
    wait(&mut world, 840_000);
    assert_eq!(status(&world).hanging, []);
    wait(&mut world, 120_000);
    let found = status(&world).hanging;
    // `in-1` is as quiet, but it has reached its end.
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].topic_partition, TopicPartition::new("in", 0));
    assert_eq!((found[0].offset, found[0].end), (2, 3));
}

#[test]
fn rule_5_2_an_input_that_moves_on_is_not_held_any_more() {
    let mut world = World::new(copy(), 0);
    world.feed([("b", 1)]);
    world.start();
    world.run_to_end();
    leave_open(&mut world);
    wait(&mut world, 1_080_000);
    assert_eq!(status(&world).hanging.len(), 1);
    // A new session of the same producer aborts it.
    world.broker.init_producer("another");
    wait(&mut world, 120_000);
    assert_eq!(status(&world).hanging, []);
    wait(&mut world, 1_800_000);
    assert_eq!(status(&world).hanging, []);
}

#[test]
fn rule_5_2_a_quiet_input_costs_a_question_a_quarter_of_an_hour() {
    let mut world = World::new(copy(), 0);
    world.feed([("b", 1)]);
    world.start();
    wait(&mut world, 7_200_000);
    // Two partitions, each asked about once in 15 minutes after the first.
    let questions = world
        .trace
        .iter()
        .filter(|effect| effect.starts_with("ListEnds"))
        .count();
    assert!((7..=14).contains(&questions), "{questions} questions in two hours");
    assert_eq!(status(&world).hanging, []);
}
