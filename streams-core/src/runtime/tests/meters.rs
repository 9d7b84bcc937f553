//! What tasks measure while they run, are aborted and made anew.

use std::cell::Cell;

use super::World;
use super::nodes::{copy, counting};
use crate::TaskId;
use crate::metrics::RecordingLevel;
use crate::metrics::meters::{Direction, Recording, StoreOp, TaskMeters};
use crate::runtime::{CallFailure, Effect, FailureClass, Outcome};

/// A clock that goes on by one with each look.
fn ticking() -> u64 {
    thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });
    NOW.set(NOW.get() + 1);
    NOW.get()
}

fn world(level: RecordingLevel) -> World {
    let mut world = World::new(counting(), 1 << 20);
    world.settings.recording = Recording {
        level,
        clock_ns: Some(ticking),
    };
    // Keys of both partitions; the last record of each is older than those before it.
    world.feed((0..30).map(|at| {
        (
            ["a", "b", "c"][at as usize % 3],
            i64::from(if at < 27 { at } else { 5 }),
        )
    }));
    world.start();
    world
}

fn with_meters(world: &World, mut look: impl FnMut(TaskId, &TaskMeters)) {
    let core = &world.process.as_ref().unwrap().core;
    for (id, meters, sight) in core.meters() {
        assert!(
            sight.is_some_and(|sight| sight.cache_bytes > 0),
            "a running task shows its state"
        );
        look(id, meters);
    }
}

#[test]
fn sources_count_records_and_bytes_by_topic_and_latencies_by_the_wall_clock() {
    let mut world = world(RecordingLevel::Info);
    world.run_to_end();
    let (mut records, mut e2e) = (0, Vec::new());
    with_meters(&world, |id, meters| {
        let topics = meters.topics();
        assert!(
            topics
                .iter()
                .all(|topic| topic.direction == Direction::Consumed && &*topic.topic == "in")
        );
        for topic in topics {
            records += topic.records.get();
            let status = world.process.as_ref().unwrap().core.status();
            let task = status.tasks.iter().find(|task| task.id == id).unwrap();
            assert_eq!(topic.records.get(), task.counters.processed_records);
            // A key of 1 byte, a value of 1 or 2, the topic's name of 2, and 20.
            assert!(topic.bytes.get() > topic.records.get() * 24 - 1 && topic.bytes.get() <= topic.records.get() * 25);
        }
        meters.nodes()[0].e2e_ms.take(|latency_ms| e2e.push(latency_ms));
        assert!(meters.busy_ns.get() > 0);
        assert_eq!(
            (meters.records_ns.count(), meters.lateness_ms.count()),
            (0, 0),
            "DEBUG alone"
        );
        assert!(meters.stores()[0].lookups.get() > 0);
        assert_eq!(meters.stores()[0].op_ns(StoreOp::Put).unwrap().count(), 0);
    });
    assert_eq!((records, e2e.len()), (30, 30));
    // The clock of the world starts at 1,000; event times are 0 to 26.
    assert!(
        e2e.iter().all(|latency_ms| (970..10_000).contains(latency_ms)),
        "{e2e:?}"
    );
}

#[test]
fn from_debug_on_records_and_stores_are_timed_and_lateness_is_measured() {
    let mut world = world(RecordingLevel::Debug);
    world.run_to_end();
    let (mut timed, mut late) = (0, Vec::new());
    with_meters(&world, |_, meters| {
        timed += meters.records_ns.count();
        meters.lateness_ms.take(|late_ms| late.push(late_ms));
        let store = &meters.stores()[0];
        let count = |op| store.op_ns(op).unwrap().count();
        assert_eq!(count(StoreOp::Put), meters.records_ns.count());
        assert_eq!(count(StoreOp::Get), meters.records_ns.count());
        assert!(count(StoreOp::Flush) > 0 && count(StoreOp::Fetch) == 0);
        store
            .op_ns(StoreOp::Put)
            .unwrap()
            .take(|took_ns| assert_eq!(took_ns, 1));
    });
    assert_eq!((timed, late.len()), (30, 30));
    late.sort_unstable();
    assert_eq!((late[0], late[26] < 5, late[29]), (0, true, 26 - 5), "{late:?}");
}

#[test]
fn what_was_measured_before_an_abort_stays_and_counts_go_on() {
    let mut world = world(RecordingLevel::Info);
    let stopped = world.run(|_, effect| matches!(effect, Effect::CommitTransaction { .. }));
    assert!(stopped.unwrap());
    let failure = CallFailure {
        class: FailureClass::Abortable,
        code: "TEST".to_owned(),
        message: String::new(),
    };
    let core = &mut world.process.as_mut().unwrap().core;
    let before: u64 = core
        .meters()
        .map(|(_, meters, _)| meters.nodes()[0].records.get())
        .sum();
    assert!(before > 0);
    core.on_outcome(Outcome::Failed(failure), world.now_ms).unwrap();
    let gone: u64 = core
        .meters()
        .map(|(id, ..)| core.counters_of_gone(id).processed_records)
        .sum();
    assert_eq!(gone, before, "tasks made anew keep what they counted");
    world.run_to_end();
    let mut all = 0;
    with_meters(&world, |_, meters| {
        assert_eq!(meters.nodes().len(), 1, "no second meter for the same node");
        all += meters.nodes()[0].records.get();
    });
    assert_eq!(all, 30 + before, "what was aborted was processed twice");
}

#[test]
fn a_commit_tells_how_long_its_transaction_was_open() {
    let mut world = World::new(copy(), 0);
    world.feed((0..30).map(|at| ("a", at)));
    world.start();
    world.run_to_end();
    let commits: Vec<_> = world.process.as_mut().unwrap().core.take_commits().collect();
    assert!(!commits.is_empty());
    // Records are sent before the commit is due, so the transaction begins in an earlier round (7 ms each).
    assert!(commits.iter().any(|commit| commit.open_ms >= 7), "{commits:?}");
    assert!(commits.iter().all(|commit| commit.records > 0), "{commits:?}");
    assert_eq!(world.process.as_ref().unwrap().core.status().overlay_bytes, 0);
}
