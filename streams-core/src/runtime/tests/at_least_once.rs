//! At least once: no record is lost, whatever happens; repeated are at most those since the last commit. No effect of a
//! transaction is ever asked for.

use std::sync::Arc;

use streams_state::MemoryDisk;

use super::World;
use super::nodes::{copy, counting};
use crate::config::ProcessingGuarantee;
use crate::error::Error;
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::runtime::{CallFailure, CoreTotals, Effect, FailureClass, GroupIdentity, Outcome, Reports, Undelivered};
use crate::topology::Topology;
use crate::{TaskId, TopicPartition};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const RECORDS: usize = 40;

fn world(topology: &Topology, cache_bytes: usize) -> World {
    let mut world = World::new(topology.clone(), cache_bytes);
    world.settings.guarantee = ProcessingGuarantee::AtLeastOnce;
    world.feed((0..RECORDS).map(|at| (KEYS[at * 7 % 5], 100 + at as i64)));
    world
}

fn started(counts: bool) -> World {
    let mut world = world(&if counts { counting() } else { copy() }, 1 << 20);
    world.start();
    world
}

pub(super) fn is_of_a_transaction(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::InitTransactions
            | Effect::BeginTransaction
            | Effect::SendOffsets { .. }
            | Effect::CommitTransaction { .. }
            | Effect::AbortTransaction
    )
}

fn run_to_end(world: &mut World) {
    let stopped = world.run(|_, effect| {
        assert!(!is_of_a_transaction(effect), "{effect:?}");
        false
    });
    assert!(!stopped.unwrap());
}

fn failure(class: FailureClass) -> Outcome {
    Outcome::Failed(CallFailure {
        class,
        code: "TEST".to_owned(),
        message: "told to fail".to_owned(),
    })
}

fn answer(world: &mut World, outcome: Outcome) -> crate::error::ProcessResult {
    let now_ms = world.now_ms;
    world.process.as_mut().unwrap().core.on_outcome(outcome, now_ms)
}

/// Runs to the first effect that `is` wants, and answers it instead of carrying it out.
fn answer_at(world: &mut World, outcome: Outcome, is: impl Fn(&Effect) -> bool) {
    assert!(world.run(|_, effect| is(effect)).unwrap());
    answer(world, outcome).unwrap();
}

fn is_offsets(effect: &Effect) -> bool {
    matches!(effect, Effect::CommitOffsets { .. })
}

fn totals(world: &World) -> CoreTotals {
    world.process.as_ref().unwrap().core.status().totals
}

/// How often each input was copied.
fn copies(world: &World) -> Vec<usize> {
    let mut copies = vec![0; RECORDS];
    for (_, _, _, value) in world.all("out") {
        let place: usize = String::from_utf8(value.unwrap()).unwrap().parse().unwrap();
        copies[place] += 1;
    }
    copies
}

fn counted(world: &World) -> Vec<i64> {
    let number = |value: Option<Vec<u8>>| String::from_utf8(value.unwrap()).unwrap().parse().unwrap();
    let counts: Vec<i64> = world.latest("out").into_values().map(number).collect();
    assert_eq!(counts.len(), KEYS.len());
    counts
}

#[test]
fn a_run_without_a_crash_is_exact_and_has_no_transactions() {
    let mut world = world(&copy(), 0);
    world.start();
    run_to_end(&mut world);
    assert_eq!(copies(&world), [1; RECORDS]);
    let mut world = started(true);
    run_to_end(&mut world);
    assert_eq!(counted(&world), [8; 5]);
    assert!(totals(&world).commits > 1);
}

/// All delivery reports are in before the stores take the epoch, and its offsets come last.
#[test]
fn rule_2_7_the_offsets_follow_the_state_which_follows_the_changelog() {
    let mut world = started(true);
    let mut order = Vec::new();
    world
        .run(|_, effect| {
            if let "send" | "flush" | "apply" | "commit-offsets" = effect.name() {
                order.push(effect.name());
            }
            false
        })
        .unwrap();
    let mut rest = &order[..];
    while !rest.is_empty() {
        let sends = rest.iter().take_while(|name| **name == "send").count();
        assert_eq!(rest[sends..][..3], ["flush", "apply", "commit-offsets"], "{order:?}");
        rest = &rest[sends + 3..];
    }
}

#[test]
fn a_copy_killed_after_any_effect_loses_nothing_and_repeats_what_was_not_committed_at_most() {
    let mut whole = world(&copy(), 0);
    whole.start();
    run_to_end(&mut whole);
    assert!(whole.effects > 40, "the run is too short to prove anything");
    let mut repeated = 0;
    for cut in 0..whole.effects {
        let mut world = world(&copy(), 0);
        world.start();
        assert!(world.run(|effects, _| effects == cut).unwrap());
        let sent = world.all("out").len();
        let committed: i64 = (0..2)
            .filter_map(|partition| world.broker.committed(&TopicPartition::new("in", partition)))
            .map(|(offset, _)| *offset)
            .sum();
        world.kill();
        world.start();
        run_to_end(&mut world);
        let copies = copies(&world);
        assert!(
            copies.iter().all(|times| (1..=2).contains(times)),
            "killed before effect {cut}: {copies:?}"
        );
        let twice = copies.iter().filter(|times| **times == 2).count();
        assert_eq!(
            twice,
            sent - usize::try_from(committed).unwrap(),
            "killed before effect {cut}"
        );
        repeated += twice;
    }
    assert!(repeated > 0, "no cut hit the gap between outputs and offsets");
}

#[test]
fn counts_killed_after_any_effect_are_never_too_low_with_any_cache() {
    for cache_bytes in [0, 1, 1 << 20] {
        let mut whole = world(&counting(), cache_bytes);
        whole.start();
        run_to_end(&mut whole);
        for cut in 0..whole.effects {
            let mut world = world(&counting(), cache_bytes);
            world.disk = (cut % 2 == 0).then(MemoryDisk::default);
            world.start();
            assert!(world.run(|effects, _| effects == cut).unwrap());
            world.kill();
            world.start();
            run_to_end(&mut world);
            let counts = counted(&world);
            let what = format!("cache {cache_bytes}, killed before effect {cut}: {counts:?}");
            assert!(counts.iter().all(|count| (8..=16).contains(count)), "{what}");
            assert_eq!(changelog_counts(&world), counts, "{what}");
        }
    }
}

/// The counts that the changelog holds: what a store restored from it would say.
fn changelog_counts(world: &World) -> Vec<i64> {
    // The timestamp travels in the record, the row is the number.
    let number = |value: Option<Vec<u8>>| i64::from_be_bytes(value.unwrap().try_into().unwrap());
    world.latest("app-counts-changelog").into_values().map(number).collect()
}

/// Memory is short and no commit is due: the stores take what the changelog holds, again and again, without any offset.
/// After a kill they are ahead of the offsets, and never say that they contain inputs which nobody has committed (that would
/// stop the next start, design rule 2.5).
#[test]
fn rule_2_7_state_is_applied_by_size_while_the_offsets_wait_for_their_time() {
    let short_of_memory = |disk: &MemoryDisk| {
        let mut world = world(&counting(), 1);
        world.settings.max_uncommitted_bytes = 1;
        world.settings.commit_interval_ms = 1_000_000;
        world.settings.commit_adaptive = false;
        world.disk = Some(disk.clone());
        world.start();
        world
    };
    let disk = MemoryDisk::default();
    let mut world = short_of_memory(&disk);
    let mut applies = 0;
    let stopped = world.run(|_, effect| {
        assert!(!is_offsets(effect), "no commit is due");
        applies += usize::from(matches!(effect, Effect::Apply { .. }));
        applies == 6
    });
    assert!(stopped.unwrap());
    assert!(disk.writes() >= 5);
    assert_eq!(world.broker.committed(&TopicPartition::new("in", 0)), None);
    world.kill();
    world.settings.commit_adaptive = true;
    world.start();
    run_to_end(&mut world);
    let counts = counted(&world);
    assert!(counts.iter().all(|count| *count >= 8), "{counts:?}");
    assert!(
        counts.iter().any(|count| *count > 8),
        "the state was not ahead: {counts:?}"
    );
}

#[test]
fn a_commit_that_may_pass_is_made_again_with_the_same_offsets_and_repeats_nothing() {
    for class in [FailureClass::Retriable, FailureClass::Unknown] {
        for carried_out in [false, true] {
            let mut world = started(false);
            let mut first = None;
            world
                .run(|_, effect| match effect {
                    Effect::CommitOffsets { offsets, .. } => {
                        first = Some(offsets.clone());
                        true
                    }
                    _ => false,
                })
                .unwrap();
            let first = first.unwrap();
            if carried_out {
                let offsets = first.iter().cloned();
                world
                    .broker
                    .commit_offsets(offsets.map(|o| (o.topic_partition, o.offset, o.metadata)).collect());
            }
            answer(&mut world, failure(class)).unwrap();
            let mut second = None;
            world
                .run(|_, effect| match effect {
                    Effect::CommitOffsets { offsets, .. } => {
                        second = Some(offsets.clone());
                        true
                    }
                    _ => false,
                })
                .unwrap();
            assert_eq!(second, Some(first), "{class:?}");
            answer(&mut world, Outcome::Done).unwrap();
            run_to_end(&mut world);
            assert_eq!(copies(&world), [1; RECORDS], "{class:?}, carried out: {carried_out}");
        }
    }
}

#[test]
fn a_commit_that_fails_for_longer_than_the_task_timeout_stops_the_thread_and_says_which_setting() {
    let mut world = started(false);
    world.settings.task_timeout_ms = 5_000;
    world.kill();
    world.start();
    let error = loop {
        assert!(world.run(|_, effect| is_offsets(effect)).unwrap());
        world.now_ms += 1_000;
        if let Err(error) = answer(&mut world, failure(FailureClass::Retriable)) {
            break error;
        }
    };
    assert!(matches!(*error, Error::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("task.timeout.ms"), "{error}");
}

fn epoch(member_epoch: i32) -> GroupIdentity {
    GroupIdentity {
        member_id: "m1".to_owned(),
        member_epoch,
    }
}

#[test]
fn a_stale_epoch_is_asked_for_and_the_commit_made_once_more_with_the_newer_one() {
    let mut world = started(false);
    answer_at(&mut world, failure(FailureClass::StaleMember), is_offsets);
    let now_ms = world.now_ms;
    let core = &mut world.process.as_mut().unwrap().core;
    assert!(matches!(core.next_effect(now_ms).unwrap(), Some(Effect::HeartbeatNow)));
    core.on_outcome(Outcome::Done, now_ms).unwrap();
    assert!(
        core.next_effect(now_ms).unwrap().is_none(),
        "the newer epoch is waited for"
    );
    assert_eq!(core.waits_until_ms(now_ms), Some(now_ms + 1_000));
    core.on_epoch(epoch(7));
    let effect = core.next_effect(now_ms).unwrap();
    let Some(Effect::CommitOffsets { group, .. }) = &effect else {
        panic!("{effect:?}")
    };
    assert_eq!(group.member_epoch, 7);
    core.on_outcome(Outcome::Done, now_ms).unwrap();
    run_to_end(&mut world);
    // Carried out by nobody here, so the next commit names the same inputs; nothing is processed twice for it.
    assert_eq!(copies(&world), [1; RECORDS]);
}

#[test]
fn a_member_that_stays_unknown_rewinds_asks_the_group_and_loses_nothing() {
    for counts in [false, true] {
        let mut world = started(counts);
        answer_at(&mut world, failure(FailureClass::StaleMember), is_offsets);
        answer_at(&mut world, failure(FailureClass::StaleMember), is_offsets);
        let mut heartbeats = 0;
        world
            .run(|_, effect| {
                heartbeats += usize::from(matches!(effect, Effect::HeartbeatNow));
                false
            })
            .unwrap();
        assert_eq!(heartbeats, 1);
        match counts {
            false => assert!(copies(&world).iter().all(|times| (1..=2).contains(times))),
            true => assert!(counted(&world).iter().all(|count| *count >= 8)),
        }
    }
}

#[test]
fn a_refusal_that_nothing_mends_stops_the_thread() {
    let mut world = started(false);
    assert!(world.run(|_, effect| is_offsets(effect)).unwrap());
    let error = answer(&mut world, failure(FailureClass::Stop)).unwrap_err();
    assert!(matches!(*error, Error::Kafka { .. }), "{error}");
}

#[test]
fn failures_of_the_producer_rewind_and_lose_nothing() {
    let steps: [fn(&Effect) -> bool; 2] = [
        |effect| matches!(effect, Effect::Send { .. }),
        |effect| matches!(effect, Effect::Flush { .. }),
    ];
    for class in [FailureClass::Abortable, FailureClass::Fatal, FailureClass::Fenced] {
        for is in steps {
            for counts in [false, true] {
                let mut world = started(counts);
                answer_at(&mut world, failure(class), is);
                run_to_end(&mut world);
                match counts {
                    false => assert!(copies(&world).iter().all(|times| *times >= 1), "{class:?}"),
                    true => assert!(counted(&world).iter().all(|count| *count >= 8), "{class:?}"),
                }
                assert_eq!(totals(&world).producers, u64::from(class != FailureClass::Abortable));
            }
        }
    }
}

/// What was sent can't be taken back. It arrives, or is given up, before the log's end is asked for: otherwise a late
/// changelog record would be in no store.
#[test]
fn what_was_sent_has_settled_before_the_changelogs_are_read_again() {
    let mut world = started(true);
    answer_at(&mut world, failure(FailureClass::Abortable), |effect| {
        matches!(effect, Effect::Flush { .. })
    });
    let mut order = Vec::new();
    world
        .run(|_, effect| {
            order.push(effect.name());
            effect.name() == "list-changelogs"
        })
        .unwrap();
    assert_eq!(
        order,
        [
            "unassign",
            "flush",
            "fetch-committed",
            "resolve-reset",
            "list-changelogs"
        ]
    );
}

#[test]
fn tasks_lost_while_the_offsets_are_on_their_way_come_back_without_a_loss() {
    for outcome in [
        None,
        Some(FailureClass::StaleMember),
        Some(FailureClass::Unknown),
        Some(FailureClass::Retriable),
    ] {
        let mut world = started(true);
        assert!(world.run(|_, effect| is_offsets(effect)).unwrap());
        world.process.as_mut().unwrap().core.on_lost().unwrap();
        answer(&mut world, outcome.map_or(Outcome::Done, failure)).unwrap();
        let core = &mut world.process.as_mut().unwrap().core;
        core.on_assigned(epoch(2), [TaskId::new(0, 0), TaskId::new(0, 1)]);
        run_to_end(&mut world);
        assert!(counted(&world).iter().all(|count| *count >= 8), "{outcome:?}");
    }
}

#[test]
fn a_revoked_task_is_committed_before_the_rest_is_acknowledged() {
    let mut world = started(true);
    assert!(world.run(|_, effect| matches!(effect, Effect::Send { .. })).unwrap());
    answer(&mut world, Outcome::Done).unwrap();
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_assigned(epoch(2), [TaskId::new(0, 0)]);
    let mut order = Vec::new();
    world
        .run(|_, effect| {
            if let "apply" | "commit-offsets" | "unassign" | "acknowledge" = effect.name() {
                order.push(effect.name());
            }
            false
        })
        .unwrap();
    assert_eq!(order[..4], ["apply", "commit-offsets", "unassign", "acknowledge"]);
}

fn undelivered(changelog: bool, retriable: bool) -> Outcome {
    let topic = if changelog { "app-counts-changelog" } else { "out" };
    Outcome::PartlyFlushed {
        reports: Reports {
            acknowledged: 2,
            ..Reports::default()
        },
        undelivered: vec![Undelivered {
            topic_partition: TopicPartition::new(topic, 0),
            code: "TEST".to_owned(),
            message: "told to fail".to_owned(),
            retriable,
            changelog,
        }],
        total: 1,
    }
}

#[test]
fn an_undelivered_output_is_left_out_repeated_or_fatal_as_the_production_handler_says() {
    let lenient = || {
        Arc::new(ErrorHandlers {
            production: Arc::new(LogAndContinue),
            ..ErrorHandlers::default()
        })
    };
    let is_flush = |effect: &Effect| matches!(effect, Effect::Flush { .. });
    // Resume: left out and counted, which no transaction could do.
    let mut world = started(true);
    world.handlers = lenient();
    world.kill();
    world.start();
    answer_at(&mut world, undelivered(false, false), is_flush);
    run_to_end(&mut world);
    assert_eq!((totals(&world).dropped_at_send, totals(&world).tasks_created), (1, 2));
    assert_eq!(counted(&world), [8; 5]);
    // Retry: processed again from the last commit.
    let mut world = started(true);
    answer_at(&mut world, undelivered(false, true), is_flush);
    run_to_end(&mut world);
    assert_eq!(totals(&world).tasks_created, 4);
    assert!(counted(&world).iter().all(|count| *count >= 8));
    // Fail, and a changelog record that is to be left out.
    for (handlers, outcome) in [
        (Arc::default(), undelivered(false, false)),
        (lenient(), undelivered(true, false)),
    ] {
        let mut world = started(true);
        world.handlers = handlers;
        world.kill();
        world.start();
        assert!(world.run(|_, effect| is_flush(effect)).unwrap());
        let error = answer(&mut world, outcome).unwrap_err();
        assert!(matches!(*error, Error::Produce { .. }), "{error}");
    }
}
