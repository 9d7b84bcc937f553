//! Failed calls: retried, aborted and rewound, or a new producer, never a lost or doubled record.

use std::sync::Arc;

use super::World;
use super::nodes::{copy, counting};
use crate::error::Error;
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::runtime::{AbortReason, CallFailure, Effect, FailureClass, GroupIdentity, Outcome};

fn world(counts: bool) -> World {
    let mut world = World::new(if counts { counting() } else { copy() }, 1 << 20);
    world.feed((0..30).map(|at| (["a", "b", "c"][at as usize % 3], i64::from(at))));
    world.start();
    world
}

fn failure(class: FailureClass) -> Outcome {
    Outcome::Failed(CallFailure {
        class,
        code: "TEST".to_owned(),
        message: "told to fail".to_owned(),
    })
}

/// Runs to the first effect that `is` wants and answers it with a failure instead of carrying it out.
fn fail_at(world: &mut World, class: FailureClass, is: impl Fn(&Effect) -> bool) {
    assert!(world.run(|_, effect| is(effect)).unwrap());
    let now_ms = world.now_ms;
    world
        .process
        .as_mut()
        .unwrap()
        .core
        .on_outcome(failure(class), now_ms)
        .unwrap();
}

fn totals(world: &World) -> crate::runtime::CoreTotals {
    world.process.as_ref().unwrap().core.status().totals
}

#[test]
fn an_abortable_failure_of_any_step_rewinds_and_loses_nothing() {
    let steps: [fn(&Effect) -> bool; 4] = [
        |effect| matches!(effect, Effect::Send { .. }),
        |effect| matches!(effect, Effect::Flush { .. }),
        |effect| matches!(effect, Effect::SendOffsets { .. }),
        |effect| matches!(effect, Effect::CommitTransaction { .. }),
    ];
    for (at, is) in steps.into_iter().enumerate() {
        for counts in [false, true] {
            let mut world = world(counts);
            fail_at(&mut world, FailureClass::Abortable, is);
            world.run_to_end();
            match counts {
                false => assert_eq!(world.all("out").len(), 30, "step {at}"),
                true => assert!(
                    world.latest("out").values().all(|v| v.as_deref() == Some(b"10")),
                    "step {at}"
                ),
            }
            assert_eq!(totals(&world).aborts, 1, "step {at}");
            assert_eq!(totals(&world).aborts_by(AbortReason::Refused), 1, "step {at}");
        }
    }
}

#[test]
fn rule_1_7_an_unknown_commit_outcome_needs_no_decision() {
    for committed in [false, true] {
        let mut world = world(true);
        assert!(
            world
                .run(|_, effect| matches!(effect, Effect::CommitTransaction { .. }))
                .unwrap()
        );
        let now_ms = world.now_ms;
        let process = world.process.as_mut().unwrap();
        if committed {
            // The broker did commit; only the answer was lost.
            process.shell.end_transaction(&mut world.broker, true);
        }
        process.core.on_outcome(failure(FailureClass::Fatal), now_ms).unwrap();
        world.run_to_end();
        assert!(
            world
                .latest("out")
                .values()
                .all(|value| value.as_deref() == Some(b"10")),
            "committed: {committed}"
        );
        assert_eq!(totals(&world).producers, 1);
    }
}

#[test]
fn a_retriable_failure_is_the_same_call_again() {
    let mut world = world(false);
    fail_at(&mut world, FailureClass::Retriable, |effect| {
        matches!(effect, Effect::CommitTransaction { .. })
    });
    let next = world.process.as_mut().unwrap().core.next_effect(world.now_ms).unwrap();
    assert!(matches!(next, Some(Effect::CommitTransaction { .. })), "{next:?}");
}

#[test]
fn a_retriable_failure_past_the_transaction_timeout_makes_a_new_producer() {
    let mut world = world(false);
    assert!(
        world
            .run(|_, effect| matches!(effect, Effect::CommitTransaction { .. }))
            .unwrap()
    );
    world.now_ms += 20_000;
    let now_ms = world.now_ms;
    world
        .process
        .as_mut()
        .unwrap()
        .core
        .on_outcome(failure(FailureClass::Retriable), now_ms)
        .unwrap();
    world.run_to_end();
    assert_eq!(world.all("out").len(), 30);
    assert_eq!(totals(&world).producers, 1);
}

#[test]
fn rule_1_13_fenced_twice_in_time_means_another_process_has_our_identity() {
    let mut world = world(false);
    fail_at(&mut world, FailureClass::Fenced, |effect| {
        matches!(effect, Effect::CommitTransaction { .. })
    });
    assert!(
        world
            .run(|_, effect| matches!(effect, Effect::CommitTransaction { .. }))
            .unwrap()
    );
    let now_ms = world.now_ms;
    let error = world
        .process
        .as_mut()
        .unwrap()
        .core
        .on_outcome(failure(FailureClass::Fenced), now_ms)
        .unwrap_err();
    assert!(matches!(*error, Error::TaskMigrated { .. }), "{error}");
    assert!(error.to_string().contains("process.id"), "{error}");
}

#[test]
fn a_stale_member_asks_for_a_heartbeat_at_once_and_its_work_is_not_committed() {
    let mut world = world(false);
    fail_at(&mut world, FailureClass::StaleMember, |effect| {
        matches!(effect, Effect::SendOffsets { .. })
    });
    assert!(world.run(|_, effect| matches!(effect, Effect::HeartbeatNow)).unwrap());
    assert!(world.all("out").is_empty());
    assert_eq!(totals(&world).aborts_by(AbortReason::StaleMember), 1);
}

#[test]
fn rule_1_1_a_commit_uses_the_identity_of_the_last_event_applied() {
    let mut world = world(false);
    world.process.as_mut().unwrap().core.on_epoch(GroupIdentity {
        member_id: "m".to_owned(),
        member_epoch: 9,
    });
    let mut seen = None;
    world
        .run(|_, effect| {
            if let Effect::SendOffsets { group, .. } = effect {
                seen = Some(group.member_epoch);
            }
            false
        })
        .unwrap();
    assert_eq!(seen, Some(9));
}

#[test]
fn rule_1_4_nothing_of_a_lost_incarnation_is_ever_sent() {
    let mut world = world(true);
    assert!(
        world
            .run(|_, effect| matches!(effect, Effect::SendOffsets { .. }))
            .unwrap()
    );
    let now_ms = world.now_ms;
    let process = world.process.as_mut().unwrap();
    process.core.on_outcome(Outcome::Done, now_ms).unwrap();
    process.core.on_lost().unwrap();
    world.run_to_end();
    assert!(world.all("out").is_empty());
    assert!(world.process.as_ref().unwrap().core.status().tasks.is_empty());
    assert_eq!(totals(&world).aborts_by(AbortReason::TasksLost), 1);
}

#[test]
fn rule_1_5_a_revoked_task_is_committed_and_applied_before_the_rest_is_acknowledged() {
    let mut world = world(true);
    assert!(world.run(|_, effect| matches!(effect, Effect::Send { .. })).unwrap());
    let now_ms = world.now_ms;
    let group = GroupIdentity {
        member_id: "m".to_owned(),
        member_epoch: 2,
    };
    let process = world.process.as_mut().unwrap();
    let core = &mut process.core;
    core.on_outcome(Outcome::Done, now_ms).unwrap();
    core.on_assigned(group, [crate::TaskId::new(0, 0)]);
    let mut order = Vec::new();
    world
        .run(|_, effect| {
            order.push(match effect {
                Effect::CommitTransaction { .. } => "commit",
                Effect::Apply { .. } => "apply",
                Effect::Unassign { .. } => "unassign",
                Effect::Acknowledge { tasks } => {
                    assert_eq!(tasks.len(), 1);
                    "acknowledge"
                }
                _ => return false,
            });
            false
        })
        .unwrap();
    assert_eq!(order[..4], ["commit", "apply", "unassign", "acknowledge"]);
}

#[test]
fn rule_4_1_a_failing_record_stops_the_thread_and_commits_nothing_of_its_epoch() {
    let mut world = World::new(counting(), 1 << 20);
    world.feed([("a", 1), ("a", 2)]);
    let log = world.broker.log_mut(&crate::TopicPartition::new("in", 1)).unwrap();
    let mut bad = log.read_committed(0, 1).0.remove(0);
    bad.value = Some(b"boom".to_vec());
    log.append(bad, None);
    world.start();
    let error = world.run(|_, _| false).unwrap_err();
    assert!(matches!(*error, Error::Processing { .. }), "{error}");
    assert!(error.to_string().contains("in-1 at offset 2"), "{error}");
}

#[test]
fn a_panic_outside_of_any_guard_is_a_failure_of_the_record_in_hand() {
    let mut world = World::new(copy(), 0);
    world.feed([("a", 1)]);
    let log = world.broker.log_mut(&crate::TopicPartition::new("in", 1)).unwrap();
    let mut bad = log.read_committed(0, 1).0.remove(0);
    // The hand-made source unwraps it.
    bad.key = None;
    log.append(bad, None);
    world.start();
    let error = world.run(|_, _| false).unwrap_err();
    assert!(matches!(*error, Error::Processing { .. }), "{error}");
    assert_eq!(error.record(), Some((&crate::TopicPartition::new("in", 1), 1)));
}

#[test]
fn rule_3_1_a_resumed_failure_leaves_a_dirty_aggregate_as_it_was() {
    for cache_bytes in [0, 1 << 20] {
        let mut world = World::new(counting(), cache_bytes);
        world.handlers = Arc::new(ErrorHandlers {
            processing: Arc::new(LogAndContinue),
            ..ErrorHandlers::default()
        });
        world.feed([("a", 1), ("a", 2)]);
        let log = world.broker.log_mut(&crate::TopicPartition::new("in", 1)).unwrap();
        let good = log.read_committed(0, 1).0.remove(0);
        let mut bad = good.clone();
        bad.value = Some(b"boom".to_vec());
        log.append(bad, None);
        log.append(good, None);
        world.start();
        world.run_to_end();
        assert_eq!(
            world.latest("out")[&b"a"[..]].as_deref(),
            Some(&b"3"[..]),
            "cache {cache_bytes}"
        );
    }
}

#[test]
fn a_second_recovery_before_the_first_has_ended_still_gives_up_what_is_fetched() {
    for second in [FailureClass::Fatal, FailureClass::Fenced] {
        let mut world = world(true);
        fail_at(&mut world, FailureClass::Abortable, |effect| {
            matches!(effect, Effect::Flush { .. })
        });
        fail_at(&mut world, second, |effect| matches!(effect, Effect::AbortTransaction));
        world.run_to_end();
        assert!(
            world
                .latest("out")
                .values()
                .all(|value| value.as_deref() == Some(b"10")),
            "{second:?}"
        );
    }
}

#[test]
fn tasks_lost_in_the_middle_of_a_recovery_can_be_given_back() {
    let mut world = world(true);
    fail_at(&mut world, FailureClass::StaleMember, |effect| {
        matches!(effect, Effect::SendOffsets { .. })
    });
    assert!(
        world
            .run(|_, effect| matches!(effect, Effect::Unassign { .. } | Effect::HeartbeatNow))
            .unwrap()
    );
    let now_ms = world.now_ms;
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_outcome(failure(FailureClass::Retriable), now_ms).ok();
    core.on_lost().unwrap();
    let group = GroupIdentity {
        member_id: "m".to_owned(),
        member_epoch: 3,
    };
    core.on_assigned(group, [crate::TaskId::new(0, 0), crate::TaskId::new(0, 1)]);
    world.run_to_end();
    assert!(
        world
            .latest("out")
            .values()
            .all(|value| value.as_deref() == Some(b"10"))
    );
}

#[test]
fn a_fencing_duel_ends_whatever_was_committed_in_between() {
    let mut world = world(false);
    fail_at(&mut world, FailureClass::Fenced, |effect| {
        matches!(effect, Effect::CommitTransaction { .. })
    });
    let mut commits = 0;
    let stopped = world.run(|_, effect| {
        commits += usize::from(matches!(effect, Effect::CommitTransaction { .. }));
        commits == 3
    });
    assert!(stopped.unwrap(), "only {commits} commits");
    let now_ms = world.now_ms;
    let error = world
        .process
        .as_mut()
        .unwrap()
        .core
        .on_outcome(failure(FailureClass::Fenced), now_ms)
        .unwrap_err();
    assert!(matches!(*error, Error::TaskMigrated { .. }), "{error}");
}

/// A world whose state is on a disk, after a run; its process is dead.
fn world_with_state() -> World {
    let mut world = World::new(counting(), 0);
    world.disk = Some(streams_state::MemoryDisk::default());
    world.feed([("a", 1), ("b", 2), ("a", 3)]);
    world.start();
    world.run_to_end();
    world.kill();
    world
}

#[test]
fn rule_2_4_state_that_seems_newer_than_its_changelog_is_compared_with_the_log_as_it_is_now() {
    let mut world = world_with_state();
    world.feed([("a", 4)]);
    world.start();
    let listing = |_, effect: &Effect| matches!(effect, Effect::ListChangelogs { .. });
    assert!(world.run(listing).unwrap());
    // Another thread of the process had the state, and applied more after the ends were listed.
    let listed = (0..2).map(|partition| {
        let at = crate::TopicPartition::new("app-counts-changelog", partition);
        let facts = streams_state::ChangelogFacts {
            high_watermark: 0,
            ..crate::test_driver::facts(&world.broker, &at)
        };
        (at, facts)
    });
    let listed = Outcome::Changelogs(listed.collect());
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_outcome(listed, world.now_ms).unwrap();
    world.run_to_end();
    assert_eq!(world.latest("out")[&b"a".to_vec()].as_deref(), Some(&b"3"[..]));
}

#[test]
fn rule_2_4_state_that_is_newer_than_its_changelog_stops_the_thread() {
    let mut world = world_with_state();
    let log = world
        .broker
        .log_mut(&crate::TopicPartition::new("app-counts-changelog", 1));
    log.unwrap().truncate(0);
    world.start();
    let error = world.run(|_, _| false).unwrap_err().to_string();
    assert!(error.contains("the log ends at 0"), "{error}");
}
