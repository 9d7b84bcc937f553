//! The schedules of the design rules, section 1 and 10: a commit and what may happen beside it.

use streams_state::MemoryDisk;

use super::nodes::{bursting, copy, copy_through, counting};
use super::{World, failure};
use crate::error::Error;
use crate::runtime::{Effect, FailureClass, GroupIdentity, Outcome};
use crate::test_driver::LogRecord;
use crate::{Headers, TaskId, TopicPartition};

fn world(counts: bool) -> World {
    let mut world = World::new(if counts { counting() } else { copy() }, 1 << 20);
    world.feed((0..30).map(|at| (["a", "b", "c"][at as usize % 3], i64::from(at))));
    world.start();
    world
}

fn group(member_epoch: i32) -> GroupIdentity {
    GroupIdentity {
        member_id: "m".to_owned(),
        member_epoch,
    }
}

fn tasks() -> [TaskId; 2] {
    [TaskId::new(0, 0), TaskId::new(0, 1)]
}

fn assert_counts(world: &World, each: &str, what: &str) {
    let counts = world.latest("out");
    assert_eq!(counts.len(), 3, "{what}");
    assert!(
        counts.values().all(|count| count.as_deref() == Some(each.as_bytes())),
        "{what}: {counts:?}"
    );
}

fn is_commit(effect: &Effect) -> bool {
    matches!(effect, Effect::CommitTransaction { .. })
}

/// A commits nothing of what it did before it was fenced, although it has rejoined with the same member id and has the
/// newest epoch, under which the broker checks nothing.
#[test]
fn rule_1_1_work_begun_before_a_loss_is_not_committed_with_the_epoch_of_the_rejoin() {
    for is in [
        |effect: &Effect| matches!(effect, Effect::BeginTransaction),
        |effect: &Effect| matches!(effect, Effect::Send { .. }),
        |effect: &Effect| matches!(effect, Effect::Flush { .. }),
        |effect: &Effect| matches!(effect, Effect::SendOffsets { .. }),
    ] {
        let mut world = world(false);
        world.run_to(is);
        // Meanwhile B had the tasks, committed all of the input, and left.
        let (mut offsets, mut ends) = (Vec::new(), Vec::new());
        for partition in [0, 1] {
            let input = TopicPartition::new("in", partition);
            let end = world.broker.log(&input).unwrap().high_watermark();
            offsets.push((input, end, String::new()));
            ends.push(end);
        }
        let other = world.broker.init_producer("b");
        world.broker.send_offsets(&other, offsets, world.now_ms).unwrap();
        world.broker.end_transaction(&other, true).unwrap();
        // A wakes: loss and rejoin are in its channel, and the answer of its call comes.
        let now_ms = world.now_ms;
        let core = world.core();
        core.on_lost().unwrap();
        core.on_assigned(group(8), tasks());
        core.on_outcome(failure(FailureClass::Retriable), now_ms).unwrap();
        world.run_to_end();
        assert!(world.all("out").is_empty(), "A's old work was committed");
        for (partition, end) in (0..).zip(ends) {
            let committed = world.broker.committed(&TopicPartition::new("in", partition)).unwrap();
            assert_eq!(committed.0, end, "the committed offset went back");
        }
    }
}

#[test]
fn rule_1_6_nothing_is_read_before_the_producer_is_settled_and_no_log_before_the_offsets() {
    let order = |world: &mut World| {
        let mut order = Vec::new();
        world
            .run(|_, effect| {
                order.push(effect.name());
                matches!(effect, Effect::Assign { .. })
            })
            .unwrap();
        order.retain(|name| !matches!(*name, "unassign" | "resolve-reset" | "acknowledge"));
        order
    };
    let mut world = world(true);
    let first = ["init-transactions", "fetch-committed", "list-changelogs", "assign"];
    assert_eq!(order(&mut world), first);
    let now_ms = world.now_ms;
    // The assignment that was stopped at.
    world
        .core()
        .on_outcome(failure(FailureClass::Retriable), now_ms)
        .unwrap();
    world.answer_at(is_commit, failure(FailureClass::Fatal)).unwrap();
    let again = [
        "recreate-producer",
        "init-transactions",
        "fetch-committed",
        "list-changelogs",
    ];
    assert_eq!(order(&mut world)[..4], again);
}

#[test]
fn rule_1_6_offsets_that_another_transaction_still_holds_are_waited_for() {
    let mut world = World::new(copy(), 0);
    world.feed([("a", 1), ("a", 2), ("a", 3)]);
    let other = world.broker.init_producer("another");
    let input = TopicPartition::new("in", 1);
    let offsets = vec![(input.clone(), 2, String::new())];
    world.broker.send_offsets(&other, offsets, world.now_ms).unwrap();
    world.start();
    let mut questions = 0;
    world
        .run(|_, effect| {
            questions += usize::from(matches!(effect, Effect::FetchCommitted { .. }));
            questions == 5
        })
        .unwrap();
    assert!(world.all("out").is_empty());
    let now_ms = world.now_ms;
    world.broker.end_transaction(&other, true).unwrap();
    world
        .core()
        .on_outcome(failure(FailureClass::Retriable), now_ms)
        .unwrap();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 1, "the first two were the other's");
}

#[test]
fn rule_1_7_a_producer_of_no_use_is_made_anew_although_the_tasks_are_lost_meanwhile() {
    for (class, given_back) in [
        (FailureClass::Fatal, false),
        (FailureClass::Fatal, true),
        (FailureClass::Fenced, true),
    ] {
        let mut world = world(true);
        world.answer_at(is_commit, failure(class)).unwrap();
        // The loss is in the channel before the next effect is asked for.
        world.core().on_lost().unwrap();
        if given_back {
            world.core().on_assigned(group(3), tasks());
        }
        let (mut names, mut told) = (Vec::new(), Vec::new());
        world
            .run(|_, effect| {
                names.push(effect.name());
                if let Effect::Acknowledge { tasks } = effect {
                    told.push(tasks.len());
                }
                false
            })
            .unwrap();
        assert_eq!(names[0], "recreate-producer", "{class:?}");
        assert!(!names.contains(&"abort"), "{class:?}: the old producer can't abort");
        assert!(!told.is_empty(), "{class:?}: the group waits for an answer");
        if given_back {
            assert_counts(&world, "10", "given back");
        }
    }
}

#[test]
fn rule_1_5_the_group_is_answered_although_the_recovery_begins_anew() {
    let mut world = world(true);
    world.run_to(|effect| matches!(effect, Effect::SendOffsets { .. }));
    let now_ms = world.now_ms;
    world.core().on_lost().unwrap();
    world
        .core()
        .on_outcome(failure(FailureClass::Abortable), now_ms)
        .unwrap();
    // The abort of what was lost fails too.
    let abort = |effect: &Effect| matches!(effect, Effect::AbortTransaction);
    world.answer_at(abort, failure(FailureClass::Fatal)).unwrap();
    let mut answers = 0;
    world
        .run(|_, effect| {
            answers += usize::from(matches!(effect, Effect::Acknowledge { .. }));
            false
        })
        .unwrap();
    assert_eq!(answers, 1);
}

#[test]
fn rule_1_9_records_fetched_before_a_rewind_are_not_processed_after_it() {
    let mut world = world(false);
    world.run_to(|effect| matches!(effect, Effect::Flush { .. }));
    let process = world.process.as_mut().unwrap();
    // On their way to the core when the transaction fails.
    let mut late = process.shell.fetch(&world.broker, 3);
    assert!(!late.is_empty());
    let now_ms = world.now_ms;
    let core = world.core();
    core.on_outcome(failure(FailureClass::Abortable), now_ms).unwrap();
    world.run_to(|effect| matches!(effect, Effect::Assign { .. }));
    let core = world.core();
    core.accept(&mut late).unwrap();
    assert!(core.status().totals.outdated_records > 0);
    assert_eq!(core.buffered(), 0);
    core.on_outcome(failure(FailureClass::Retriable), now_ms).unwrap();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 30);
}

#[test]
fn rule_1_10_a_full_disk_at_any_apply_costs_a_tail_and_nothing_else() {
    for full_at in 0.. {
        let mut world = world(true);
        world.disk = Some(MemoryDisk::default());
        world.kill();
        world.start();
        let mut applies = 0;
        let reached = world
            .run(|_, effect| {
                applies += usize::from(matches!(effect, Effect::Apply { .. }));
                matches!(effect, Effect::Apply { .. }) && applies > full_at
            })
            .unwrap();
        if !reached {
            assert!(full_at > 3, "the run is too short to prove anything: {full_at} applies");
            break;
        }
        let disk = world.disk.clone().unwrap();
        disk.set_full(true);
        let now_ms = world.now_ms;
        world.core().apply(now_ms).unwrap();
        world.core().on_outcome(Outcome::Done, now_ms).unwrap();
        disk.set_full(false);
        world.run_to_end();
        assert_counts(&world, "10", &format!("full at apply {full_at}"));
        let status = world.core().status();
        assert_eq!(status.totals.aborts, 0);
        // Killed and started again, the store is what the changelog says.
        world.kill();
        world.start();
        world.feed([("a", 100), ("b", 101), ("c", 102)]);
        world.run_to_end();
        assert_counts(&world, "11", &format!("after a restart, full at apply {full_at}"));
    }
}

#[test]
fn rule_1_11_slow_code_runs_before_its_transaction_begins() {
    let mut world = world(false);
    world.settings.send_bytes = 1 << 20;
    world.kill();
    world.start();
    world.run_to(|effect| matches!(effect, Effect::BeginTransaction));
    // Everything of the epoch was processed, and nothing is open at the broker.
    assert!(world.core().outboxes().count() > 0);
    assert!(!world.broker.has_open_transaction());
}

#[test]
fn rule_1_12_one_record_that_gives_more_than_any_bound_passes_whole() {
    let mut world = World::new(bursting(), 0);
    world.settings.send_bytes = 10;
    world.settings.max_uncommitted_bytes = 10;
    world.feed([("a", 1), ("b", 2), ("a", 3)]);
    world.start();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 300);
}

/// A copy through a repartition topic whose purge is due at once.
fn through() -> World {
    let mut world = World::new(copy_through(), 0);
    world.broker.create_topic("app-through", 2);
    world.tasks = vec![
        TaskId::new(0, 0),
        TaskId::new(0, 1),
        TaskId::new(1, 0),
        TaskId::new(1, 1),
    ];
    world.settings.purge_interval_ms = 0;
    world.feed((0..30).map(|at| (["a", "b"][at as usize % 2], i64::from(at))));
    world
}

#[test]
fn rule_1_14_only_what_is_known_to_be_committed_is_purged() {
    for committed in [false, true] {
        for failed_at in 1..6 {
            let mut world = through();
            world.start();
            let mut commits = 0;
            world
                .run(|_, effect| {
                    commits += usize::from(is_commit(effect));
                    commits == failed_at
                })
                .unwrap();
            let now_ms = world.now_ms;
            let process = world.process.as_mut().unwrap();
            if committed {
                process.shell.end_transaction(&mut world.broker, true);
            }
            process.core.on_outcome(failure(FailureClass::Fatal), now_ms).unwrap();
            for _ in 0..200 {
                let process = world.process.as_mut().unwrap();
                while let Some(effect) = process.core.next_effect(world.now_ms).unwrap() {
                    if let Effect::Purge { before } = &effect {
                        for (at, offset) in before {
                            let there = world.broker.committed(at).map_or(0, |(offset, _)| *offset);
                            assert!(*offset <= there, "{at}: purged to {offset}, committed {there}");
                        }
                    }
                    process
                        .shell
                        .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                        .unwrap();
                }
                let mut fetched = process.shell.fetch(&world.broker, 3);
                process.core.accept(&mut fetched).unwrap();
                process.core.process(world.now_ms, 2).unwrap();
                world.now_ms += 7;
            }
            assert_eq!(world.all("out").len(), 30, "commit {failed_at}, committed: {committed}");
            let start = world
                .broker
                .log(&TopicPartition::new("app-through", 0))
                .unwrap()
                .log_start();
            assert!(start > 0, "nothing was purged");
        }
    }
}

#[test]
fn rule_1_13_a_duel_under_replaced_threads_ends_too() {
    use crate::runtime::{FailureLog, Reaction, StreamThreadExceptionResponse::ReplaceThread};
    let mut log = FailureLog::default();
    let duel = || {
        Box::new(Error::TaskMigrated {
            reason: "another process uses the transactional id of this one".to_owned(),
        })
    };
    for at in 0..4 {
        let reaction = log.react(1, duel(), ReplaceThread, at * 1_000);
        assert!(matches!(reaction, Reaction::Replace { .. }), "{reaction:?}");
    }
    let reaction = log.react(1, duel(), ReplaceThread, 5_000);
    assert!(matches!(reaction, Reaction::ShutdownClient(_)), "{reaction:?}");
}

/// An open transaction of another producer at the end of a changelog, and one record in it.
fn leave_open(world: &mut World, topic: &str) -> crate::test_driver::ProducerSession {
    let session = world.broker.init_producer("another");
    let record = LogRecord {
        offset: 0,
        timestamp_ms: 0,
        key: Some(b"zombie".to_vec()),
        value: Some(9_i64.to_be_bytes().to_vec()),
        headers: Headers::default(),
    };
    let at = TopicPartition::new(topic, 1);
    world.broker.send(&session, &at, record, world.now_ms).unwrap();
    session
}

#[test]
fn rule_1_15_commits_go_on_while_a_task_restores() {
    let mut world = world(true);
    world.run_to_end();
    world.kill();
    // Task 0_1 waits for somebody's transaction; task 0_0 has work.
    let other = leave_open(&mut world, "app-counts-changelog");
    world.feed([("b", 100), ("b", 101), ("a", 102)]);
    world.start();
    let mut restores = 0;
    world
        .run(|_, effect| {
            restores += usize::from(matches!(effect, Effect::Restore(_)));
            restores == 20
        })
        .unwrap();
    assert_eq!(world.latest("out")[&b"b"[..]].as_deref(), Some(&b"12"[..]));
    assert_eq!(world.latest("out")[&b"a"[..]].as_deref(), Some(&b"10"[..]));
    world.broker.end_transaction(&other, false).unwrap();
    world.kill();
    world.start();
    world.run_to_end();
    assert_eq!(world.latest("out")[&b"a"[..]].as_deref(), Some(&b"11"[..]));
}

#[test]
fn rule_10_transaction_markers_alone_begin_no_transaction() {
    let mut world = World::new(copy(), 0);
    world.feed([("b", 1)]);
    world.start();
    world.run_to_end();
    let commits = world.core().status().totals.commits;
    // Aborted work of another producer: markers move the position, and no record comes.
    for _ in 0..50 {
        let other = leave_open(&mut world, "in");
        world.broker.end_transaction(&other, false).unwrap();
        world.run_to_end();
        world.now_ms += 10;
    }
    let status = world.core().status();
    assert!(
        status.totals.commits - commits <= 1,
        "{}",
        status.totals.commits - commits
    );
}

#[test]
fn rule_10_commits_of_a_trickle_keep_a_distance() {
    // The second round of each record finds the input drained.
    let commits = commits_of_a_trickle(2);
    assert!((5..=30).contains(&commits), "{commits} commits of 100 records in 0.5 s");
}

#[test]
fn rule_10_a_stream_that_never_pauses_is_committed_before_the_interval_too() {
    let commits = commits_of_a_trickle(1);
    assert!((5..=30).contains(&commits), "{commits} commits of 100 records in 0.5 s");
}

#[test]
fn rule_10_after_a_burst_the_thread_wakes_before_the_interval_to_see_whether_there_is_more() {
    let mut world = World::new(copy(), 0);
    world.settings.commit_interval_ms = 60_000;
    world.start();
    world.run_to_end();
    world.feed((0..3_000).map(|at| ("b", at)));
    let now_ms = world.now_ms;
    let process = world.process.as_mut().unwrap();
    let mut fetched = process.shell.fetch(&world.broker, 3_000);
    assert!(fetched.iter().map(crate::fetch::Fetched::records).sum::<usize>() > 1_000);
    process.core.accept(&mut fetched).unwrap();
    while process.core.buffered() > 0 {
        process.core.process(now_ms, 4_000).unwrap();
    }
    let due_ms = process.core.next_deadline_ms(now_ms).unwrap();
    assert!(due_ms - now_ms < 1_000, "{} ms", due_ms - now_ms);
}

/// A record every 5 ms, with so many rounds for each.
fn commits_of_a_trickle(rounds: usize) -> u64 {
    let mut world = World::new(copy(), 0);
    world.settings.commit_interval_ms = 1_000;
    world.start();
    world.run_to_end();
    let before = world.core().status().totals.commits;
    // A commit takes as long as a round of the world, 7 ms: they come 28 ms apart at least.
    for at in 0..100 {
        world.feed([("b", at)]);
        for _ in 0..rounds {
            let process = world.process.as_mut().unwrap();
            let mut fetched = process.shell.fetch(&world.broker, 3);
            // The end mark comes with a fetch of its own.
            fetched.retain(|item| rounds > 1 || item.records() > 0);
            process.core.accept(&mut fetched).unwrap();
            process.core.process(world.now_ms, 2).unwrap();
            while let Some(effect) = process.core.next_effect(world.now_ms).unwrap() {
                if is_commit(&effect) {
                    world.now_ms += 7;
                }
                process
                    .shell
                    .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                    .unwrap();
            }
        }
        world.now_ms += 5;
    }
    world.core().status().totals.commits - before
}
