//! The schedules of the design rules, sections 2 and 5: state and its changelog after a crash, beside open transactions,
//! and where the two disagree.

use streams_state::{MemoryDisk, StoreSpec, TaskState};

use super::World;
use super::nodes::{copy, counting, ordering};
use crate::error::Error;
use crate::fetch::FetchErrorKind;
use crate::runtime::{
    CallFailure, Effect, FailureClass, GroupIdentity, Outcome, ResetTo, RestoreFailure, RestoreJob, Restored,
};
use crate::test_driver::{LogRecord, ProducerSession};
use crate::{Headers, TaskId, TopicPartition};

const CHANGELOG: &str = "app-counts-changelog";

/// Counts on a disk, 10 for each of `a`, `b`, `c`.
fn counted() -> World {
    let mut world = World::new(counting(), 1 << 20);
    world.disk = Some(MemoryDisk::default());
    world.feed((0..30).map(|at| (["a", "b", "c"][at as usize % 3], i64::from(at))));
    world.start();
    world.run_to_end();
    world
}

fn restart(world: &mut World) {
    world.kill();
    world.start();
}

fn count(world: &World, key: &str) -> String {
    let value = world.latest("out")[key.as_bytes()].clone().unwrap();
    String::from_utf8(value).unwrap()
}

/// Runs to the end; answers what was restored, as (task, from zero).
fn restores(world: &mut World) -> Vec<(TaskId, bool)> {
    let mut found = Vec::new();
    world
        .run(|_, effect| {
            if let Effect::Restore(job) = effect {
                found.push((job.task, job.changelogs[0].from_zero));
            }
            false
        })
        .unwrap();
    found
}

/// A row of somebody else's open transaction at the end of a changelog.
fn open_row(world: &mut World, key: &str, count: i64) -> ProducerSession {
    let session = world.broker.init_producer("another");
    let record = LogRecord {
        offset: 0,
        timestamp_ms: 0,
        key: Some(key.as_bytes().to_vec()),
        value: Some(count.to_be_bytes().to_vec()),
        headers: Headers::default(),
    };
    let partition = i32::from(key.as_bytes()[0]) % 2;
    let at = TopicPartition::new(CHANGELOG, partition);
    world.broker.send(&session, &at, record, world.now_ms).unwrap();
    session
}

/// Takes the next restore out of the core, without carrying it out.
fn next_restore(world: &mut World) -> RestoreJob {
    for _ in 0..1_000 {
        let process = world.process.as_mut().unwrap();
        while let Some(effect) = process.core.next_effect(world.now_ms).unwrap() {
            if let Effect::Restore(job) = effect {
                return job;
            }
            process
                .shell
                .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                .unwrap();
        }
        world.now_ms += 7;
    }
    panic!("nothing is restored");
}

fn result(job: RestoreJob, failure: Option<RestoreFailure>, rows: u64) -> Restored {
    Restored {
        task: job.task,
        incarnation: job.incarnation,
        state: job.state,
        records: [("counts".to_owned(), rows)].into(),
        failure,
    }
}

fn retriable(code: &str) -> RestoreFailure {
    RestoreFailure::Call(CallFailure {
        class: FailureClass::Retriable,
        code: code.to_owned(),
        message: "told to fail".to_owned(),
    })
}

#[test]
fn rule_2_1_a_store_whose_last_commit_was_applied_is_current_after_a_crash() {
    let mut world = counted();
    restart(&mut world);
    assert_eq!(restores(&mut world), []);
    assert_eq!(world.core().status().totals.restored_records, 0);
    world.feed([("a", 100)]);
    world.run_to_end();
    assert_eq!(count(&world, "a"), "11");
}

#[test]
fn rule_2_1_a_crash_before_the_apply_costs_that_epochs_rows() {
    let mut world = counted();
    world.feed([("a", 100), ("c", 101)]);
    world.run_to(|effect| matches!(effect, Effect::Apply { .. }));
    restart(&mut world);
    assert_eq!(restores(&mut world), [(TaskId::new(0, 1), false)]);
    assert_eq!(world.core().status().totals.restored_records, 2);
    world.feed([("a", 102)]);
    world.run_to_end();
    assert_eq!(
        (count(&world, "a"), count(&world, "c")),
        ("12".to_owned(), "11".to_owned())
    );
}

/// `in-order` has seen time 100; what is older must not be sent again, whoever goes on and from what.
fn ordered() -> World {
    let mut world = World::new(ordering(), 1 << 20);
    world.disk = Some(MemoryDisk::default());
    world.feed([("a", 90), ("a", 100)]);
    world.start();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 2);
    world
}

#[test]
fn rule_2_2_operator_times_come_with_the_commit_to_who_has_no_state() {
    let mut world = ordered();
    world.disk = Some(MemoryDisk::default());
    restart(&mut world);
    world.feed([("a", 50), ("a", 101)]);
    world.run_to_end();
    assert_eq!(world.all("out").len(), 3);
}

#[test]
fn rule_2_2_operator_times_are_those_of_the_commit_when_the_crash_came_before_the_apply() {
    let mut world = ordered();
    world.feed([("a", 200)]);
    world.run_to(|effect| matches!(effect, Effect::Apply { .. }));
    restart(&mut world);
    world.feed([("a", 150), ("a", 201)]);
    world.run_to_end();
    assert_eq!(world.all("out").len(), 4);
}

#[test]
fn rule_2_2_offsets_set_by_hand_have_no_times_and_the_states_copy_stands_in() {
    let mut world = ordered();
    world.kill();
    // The reset tool writes the same offset again, without our metadata.
    let input = TopicPartition::new("in", 1);
    let offset = world.broker.committed(&input).unwrap().0;
    let tool = world.broker.init_producer("tool");
    let offsets = vec![(input, offset, String::new())];
    world.broker.send_offsets(&tool, offsets, world.now_ms).unwrap();
    world.broker.end_transaction(&tool, true).unwrap();
    world.start();
    world.feed([("a", 50), ("a", 101)]);
    world.run_to_end();
    assert_eq!(world.all("out").len(), 3, "what was late is sent");
}

#[test]
fn rule_2_4_a_changelog_compacted_above_the_position_is_restored_from_zero() {
    let mut world = counted();
    world.feed([("a", 100)]);
    world.run_to(|effect| matches!(effect, Effect::Apply { .. }));
    world.kill();
    let at = TopicPartition::new(CHANGELOG, 1);
    let log = world.broker.log_mut(&at).unwrap();
    let end = log.high_watermark();
    log.delete_before(end - 1);
    world.start();
    assert_eq!(restores(&mut world), [(TaskId::new(0, 1), true)]);
}

#[test]
fn rule_2_4_a_changelog_trimmed_while_it_is_replayed_is_judged_again() {
    let mut world = counted();
    world.feed([("a", 100)]);
    world.run_to(|effect| matches!(effect, Effect::Apply { .. }));
    restart(&mut world);
    let job = next_restore(&mut world);
    assert!(!job.changelogs[0].from_zero);
    let at = TopicPartition::new(CHANGELOG, 1);
    let log = world.broker.log_mut(&at).unwrap();
    let end = log.high_watermark();
    log.delete_before(end - 1);
    let now_ms = world.now_ms;
    let failed = result(job, Some(retriable("OFFSET_OUT_OF_RANGE")), 0);
    world.core().on_restored(failed, now_ms).unwrap();
    assert_eq!(restores(&mut world), [(TaskId::new(0, 1), true)]);
}

#[test]
fn rule_2_5_committed_offsets_that_were_set_back_stop_the_task_and_say_what_to_do() {
    let mut world = counted();
    world.kill();
    let input = TopicPartition::new("in", 1);
    let tool = world.broker.init_producer("tool");
    let offsets = vec![(input, 3, String::new())];
    world.broker.send_offsets(&tool, offsets, world.now_ms).unwrap();
    world.broker.end_transaction(&tool, true).unwrap();
    world.start();
    let error = world.run(|_, _| false).unwrap_err();
    assert!(matches!(*error, Error::TaskCorrupted { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("in-1") && text.contains("committed is 3"), "{text}");
    assert!(text.contains("counted twice"), "{text}");
}

/// The group was deleted, and the instance that goes on has no disk to remember by.
#[test]
fn rule_2_5_rows_of_a_changelog_without_any_committed_offset_stop_the_task() {
    let world = counted();
    let log = world.broker.log(&TopicPartition::new(CHANGELOG, 1)).unwrap();
    let (rows, _) = log.read_committed(0, usize::MAX);
    let stopped = |world: &mut World| {
        let text = world.run(|_, _| false).unwrap_err().to_string();
        assert!(text.contains(CHANGELOG) && text.contains("in-1"), "{text}");
        assert!(text.contains("counted twice"), "{text}");
    };
    let mut world = World::new(counting(), 1 << 20);
    world.disk = Some(MemoryDisk::default());
    for row in rows {
        world
            .broker
            .log_mut(&TopicPartition::new(CHANGELOG, 1))
            .unwrap()
            .append(row, None);
    }
    world.feed([("a", 1), ("b", 2)]);
    world.start();
    stopped(&mut world);
    // What was restored is on the disk now, and does not make it right.
    restart(&mut world);
    stopped(&mut world);
    // Offsets set by hand say what is wanted.
    world.kill();
    let tool = world.broker.init_producer("tool");
    let offsets = [0, 1].map(|partition| (TopicPartition::new("in", partition), 0, String::new()));
    world.broker.send_offsets(&tool, offsets.to_vec(), 0).unwrap();
    world.broker.end_transaction(&tool, true).unwrap();
    world.start();
    world.run_to_end();
    assert_eq!(count(&world, "a"), "11");
}

#[test]
fn rule_2_5_what_an_aborted_first_transaction_left_in_a_changelog_stops_nothing() {
    let mut world = World::new(counting(), 1 << 20);
    world.disk = Some(MemoryDisk::default());
    world.feed([("a", 1), ("b", 2)]);
    world.start();
    world.run_to(|effect| matches!(effect, Effect::CommitTransaction { .. }));
    restart(&mut world);
    world.run_to_end();
    assert_eq!(
        (count(&world, "a"), count(&world, "b")),
        ("1".to_owned(), "1".to_owned())
    );
}

#[test]
fn rule_2_5_an_input_that_ends_below_its_committed_offset_is_not_counted_twice() {
    let mut world = counted();
    // The client says that the position is outside the log, and the log begins below it: it was truncated.
    world.fetch_fails(1, FetchErrorKind::OutOfRange { offset: 20 }).unwrap();
    let error = world.run(|_, _| false).unwrap_err();
    let text = error.to_string();
    assert!(matches!(*error, Error::TaskCorrupted { .. }), "{text}");
    assert!(
        text.contains("in-1") && text.contains("auto.offset.reset=latest"),
        "{text}"
    );
    assert_eq!(count(&world, "a"), "10");
}

#[test]
fn rule_2_5_an_input_that_was_truncated_goes_on_at_its_end_under_latest() {
    let mut world = counted();
    world.kill();
    world.settings.reset = Some(ResetTo::Latest);
    world.start();
    world.run_to_end();
    world.fetch_fails(1, FetchErrorKind::OutOfRange { offset: 20 }).unwrap();
    world.run_to_end();
    world.feed([("a", 100)]);
    world.run_to_end();
    assert_eq!(count(&world, "a"), "11");
}

#[test]
fn without_state_a_truncated_input_is_read_again_as_the_policy_says() {
    let mut world = World::new(copy(), 0);
    world.feed([("a", 1), ("a", 2)]);
    world.start();
    world.run_to_end();
    world.fetch_fails(1, FetchErrorKind::OutOfRange { offset: 2 }).unwrap();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 4);
}

#[test]
fn rule_5_3_a_restore_ends_at_its_target_and_not_where_an_open_transaction_holds_the_log() {
    for committed in [true, false] {
        let mut world = counted();
        world.kill();
        let other = open_row(&mut world, "a", 41);
        world.start();
        let mut attempts = 0;
        let waits = world
            .run(|_, effect| {
                attempts += usize::from(matches!(effect, Effect::Restore(_)));
                attempts == 10
            })
            .unwrap();
        assert!(waits, "it ended although the transaction is open");
        world.broker.end_transaction(&other, committed).unwrap();
        restart(&mut world);
        world.feed([("a", 100)]);
        world.run_to_end();
        let expected = if committed { "42" } else { "11" };
        assert_eq!(count(&world, "a"), expected, "committed: {committed}");
    }
}

#[test]
fn rule_5_4_the_result_of_a_restore_is_not_used_by_who_was_given_the_task_again() {
    let mut world = counted();
    world.disk = Some(MemoryDisk::default());
    restart(&mut world);
    let job = next_restore(&mut world);
    let task = job.task;
    let now_ms = world.now_ms;
    let core = world.core();
    core.on_lost().unwrap();
    let member_id = "m".to_owned();
    core.on_assigned(
        GroupIdentity {
            member_id,
            member_epoch: 3,
        },
        [task],
    );
    // The restorer still has the state: the task waits for it.
    let waiting = world.run(|_, effect| matches!(effect, Effect::Acknowledge { .. }));
    assert!(waiting.unwrap());
    world.core().on_outcome(Outcome::Done, now_ms).unwrap();
    for _ in 0..20 {
        let process = world.process.as_mut().unwrap();
        while let Some(effect) = process.core.next_effect(world.now_ms).unwrap() {
            assert!(!matches!(effect, Effect::Restore(_)), "two hands have one state");
            process
                .shell
                .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                .unwrap();
        }
        world.now_ms += 50;
    }
    // What it applied is not all there was; it calls itself done.
    world.core().on_restored(result(job, None, 1), now_ms).unwrap();
    world.run_to_end();
    world.feed([("a", 100), ("b", 101)]);
    world.run_to_end();
    let key = if task.partition == 1 { "a" } else { "b" };
    assert_eq!(count(&world, key), "11");
}

/// A task whose state another thread of the process has not let go of keeps nobody else from starting.
#[test]
fn rule_1_15_a_task_whose_state_is_in_other_hands_holds_up_no_other() {
    let mut world = counted();
    world.kill();
    let disk = world.disk.clone().unwrap();
    let held = TaskState::on_memory_disk(&disk, "0_0", vec![StoreSpec::key_value("counts")]).unwrap();
    world.feed([("a", 100), ("b", 101)]);
    world.start();
    for _ in 0..200 {
        let process = world.process.as_mut().unwrap();
        while let Some(effect) = process.core.next_effect(world.now_ms).unwrap() {
            process
                .shell
                .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                .unwrap();
        }
        let mut fetched = process.shell.fetch(&world.broker, 3);
        process.core.accept(&mut fetched).unwrap();
        process.core.process(world.now_ms, 2).unwrap();
        world.now_ms += 20;
    }
    assert_eq!(
        (count(&world, "a"), count(&world, "b")),
        ("11".to_owned(), "10".to_owned())
    );
    drop(held);
    world.run_to_end();
    assert_eq!(count(&world, "b"), "11");
}

#[test]
fn a_restore_that_gets_on_is_not_bounded_by_the_task_timeout() {
    let mut world = counted();
    world.disk = Some(MemoryDisk::default());
    restart(&mut world);
    for _ in 0..20 {
        let job = next_restore(&mut world);
        world.now_ms += 200_000;
        let now_ms = world.now_ms;
        let failed = result(job, Some(retriable("_TRANSPORT")), 1);
        world.core().on_restored(failed, now_ms).unwrap();
    }
    world.run_to_end();
}

#[test]
fn a_restore_that_stands_still_ends_with_the_task_timeout() {
    let mut world = counted();
    world.disk = Some(MemoryDisk::default());
    restart(&mut world);
    let mut ended = None;
    for _ in 0..5 {
        let job = next_restore(&mut world);
        world.now_ms += 200_000;
        let now_ms = world.now_ms;
        let failed = result(job, Some(retriable("UNKNOWN_TOPIC_OR_PART")), 0);
        ended = world.core().on_restored(failed, now_ms).err();
        if ended.is_some() {
            break;
        }
    }
    let text = ended.expect("it is tried for ever").to_string();
    assert!(
        text.contains("UNKNOWN_TOPIC_OR_PART") && text.contains("task.timeout.ms"),
        "{text}"
    );
}

/// A process that was paused while its task moved reads where the log begins later by now. The log did not end there.
#[test]
fn rule_2_5_a_position_below_the_log_goes_on_at_what_was_committed_beyond_it() {
    let mut world = counted();
    world.fetch_fails(0, FetchErrorKind::OutOfRange { offset: 0 }).unwrap();
    world.feed([("a", 100), ("b", 101)]);
    world.run_to_end();
    assert_eq!(
        (count(&world, "a"), count(&world, "b")),
        ("11".to_owned(), "11".to_owned())
    );
}
