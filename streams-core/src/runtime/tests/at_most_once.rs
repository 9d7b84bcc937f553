//! At most once: no record is processed twice, whatever happens; lost is at most what was claimed last (design rule 7).

use std::sync::Arc;

use super::World;
use super::at_least_once::is_of_a_transaction;
use super::nodes::{copy, counting};
use crate::config::ProcessingGuarantee;
use crate::error::{Error, ProcessResult};
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::runtime::{
    CallFailure, CommittedOffset, CoreTotals, Effect, FailureClass, GroupIdentity, Outcome, Reports, Undelivered,
};
use crate::topology::Topology;
use crate::{TaskId, TopicPartition};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const RECORDS: usize = 40;
/// Records of a partition that one claim names at most, and of both.
const CLAIM: usize = 4;
const BOTH: usize = 2 * CLAIM;

fn world(topology: &Topology, cache_bytes: usize) -> World {
    let mut world = World::new(topology.clone(), cache_bytes);
    world.settings.guarantee = ProcessingGuarantee::AtMostOnce;
    world.settings.buffered_records_per_partition = CLAIM;
    world.feed((0..RECORDS).map(|at| (KEYS[at * 7 % 5], 100 + at as i64)));
    world
}

fn started(counts: bool) -> World {
    let mut world = world(&if counts { counting() } else { copy() }, 1 << 20);
    world.start();
    world
}

/// Runs to the end; no partition is ever read from below its committed offset.
fn run_to_end(world: &mut World) {
    assert!(!run(world, |_, _| false).unwrap());
}

fn run(world: &mut World, mut stop: impl FnMut(usize, &Effect) -> bool) -> ProcessResult<bool> {
    let mut assigned = Vec::new();
    let stopped = world.run(|effects, effect| {
        assert!(!is_of_a_transaction(effect), "{effect:?}");
        if let Effect::Assign { partitions } = effect {
            assigned.extend(partitions.iter().map(|a| (a.topic_partition.clone(), a.start_offset)));
        }
        stop(effects, effect)
    })?;
    for (topic_partition, start_offset) in assigned {
        // Offsets only grow here, so what was committed then was not more.
        assert!(
            start_offset
                <= world
                    .broker
                    .committed(&topic_partition)
                    .map_or(0, |(offset, _)| *offset)
        );
    }
    Ok(stopped)
}

fn failure(class: FailureClass) -> Outcome {
    Outcome::Failed(CallFailure {
        class,
        code: "TEST".to_owned(),
        message: "told to fail".to_owned(),
    })
}

fn answer(world: &mut World, outcome: Outcome) -> ProcessResult {
    let now_ms = world.now_ms;
    world.process.as_mut().unwrap().core.on_outcome(outcome, now_ms)
}

/// Runs to claim number `nth`, from 0, and answers what it names.
fn run_to_claim(world: &mut World, nth: usize) -> Vec<CommittedOffset> {
    let (mut seen, mut claim) = (0, None);
    let stopped = run(world, |_, effect| {
        if let Effect::CommitOffsets { offsets, .. } = effect {
            seen += 1;
            claim = Some(offsets.clone());
        }
        seen == nth + 1
    });
    assert!(stopped.unwrap(), "there are only {seen} claims");
    claim.unwrap()
}

fn carry_out(world: &mut World, claim: &[CommittedOffset]) {
    let offsets = claim.iter().cloned();
    world
        .broker
        .commit_offsets(offsets.map(|o| (o.topic_partition, o.offset, o.metadata)).collect());
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

fn lost(world: &World) -> usize {
    let copies = copies(world);
    assert!(copies.iter().all(|times| *times <= 1), "repeated: {copies:?}");
    copies.iter().filter(|times| **times == 0).count()
}

fn counted(world: &World) -> i64 {
    let number = |value: Option<Vec<u8>>| String::from_utf8(value.unwrap()).unwrap().parse::<i64>().unwrap();
    let counts: Vec<i64> = world.latest("out").into_values().map(number).collect();
    assert!(counts.iter().all(|count| *count <= 8), "repeated: {counts:?}");
    counts.iter().sum()
}

#[test]
fn a_run_without_a_crash_is_exact_and_has_no_transactions() {
    let mut world = started(false);
    run_to_end(&mut world);
    assert_eq!(copies(&world), [1; RECORDS]);
    let mut world = started(true);
    run_to_end(&mut world);
    assert_eq!(counted(&world), RECORDS as i64);
    for partition in 0..2 {
        let input = TopicPartition::new("in", partition);
        let end = world.broker.log(&input).unwrap().high_watermark();
        assert_eq!(world.broker.committed(&input).unwrap().0, end, "the lag reaches 0");
    }
}

#[test]
fn rule_7_a_claim_names_the_records_about_to_be_processed_and_the_next_waits_until_they_are_applied() {
    let mut world = started(true);
    let mut order = Vec::new();
    let mut claimed = std::collections::BTreeMap::new();
    run(&mut world, |_, effect| {
        match effect {
            Effect::CommitOffsets { offsets, .. } => {
                for offset in offsets {
                    let before = claimed
                        .insert(offset.topic_partition.clone(), offset.offset)
                        .unwrap_or(0);
                    assert!(
                        (1..=CLAIM as i64).contains(&(offset.offset - before)),
                        "{offset:?} after {before}"
                    );
                }
                order.push("claim");
            }
            Effect::Flush { .. } => order.push("flush"),
            Effect::Apply { .. } => order.push("apply"),
            _ => {}
        }
        false
    })
    .unwrap();
    assert!(order.len() > 9);
    for cycle in order.chunks(3) {
        assert_eq!(cycle, ["claim", "flush", "apply"], "{order:?}");
    }
}

#[test]
fn rule_7_killed_after_any_effect_nothing_is_repeated_and_one_claim_is_lost_at_most() {
    for counts in [false, true] {
        let mut whole = started(counts);
        run_to_end(&mut whole);
        assert!(whole.effects > 40, "the run is too short to prove anything");
        let mut most = 0;
        for cut in 0..whole.effects {
            let mut world = started(counts);
            assert!(run(&mut world, |effects, _| effects == cut).unwrap());
            world.kill();
            world.start();
            run_to_end(&mut world);
            let lost = match counts {
                false => lost(&world),
                true => RECORDS - usize::try_from(counted(&world)).unwrap(),
            };
            assert!(lost <= BOTH, "killed before effect {cut}: {lost} lost");
            most = most.max(lost);
        }
        assert!(most > 0, "no cut hit a claim");
    }
}

/// The state loses what the outputs lose: the counts go on from where they were, and the changelog agrees with them.
#[test]
fn rule_7_state_and_outputs_lose_the_same_claim() {
    let mut world = started(true);
    let claim = run_to_claim(&mut world, 2);
    carry_out(&mut world, &claim);
    world.kill();
    world.start();
    run_to_end(&mut world);
    let changelog = world.latest("app-counts-changelog").into_values();
    let number = |value: Option<Vec<u8>>| i64::from_be_bytes(value.unwrap().try_into().unwrap());
    assert_eq!(changelog.map(number).sum::<i64>(), counted(&world));
    assert!(counted(&world) < RECORDS as i64);
}

#[test]
fn rule_7_a_claim_of_unknown_outcome_that_the_group_holds_is_processed() {
    for nth in 0..3 {
        let mut world = started(false);
        let claim = run_to_claim(&mut world, nth);
        carry_out(&mut world, &claim);
        answer(&mut world, failure(FailureClass::Unknown)).unwrap();
        let next = world.process.as_mut().unwrap().core.next_effect(world.now_ms).unwrap();
        let Some(Effect::FetchCommitted { partitions }) = &next else {
            panic!("{next:?}")
        };
        let claimed: Vec<_> = claim.iter().map(|offset| offset.topic_partition.clone()).collect();
        assert_eq!(*partitions, claimed);
        let found = partitions
            .iter()
            .map(|at| (at.clone(), world.broker.committed(at).cloned()));
        let found = Outcome::Committed(found.collect());
        answer(&mut world, found).unwrap();
        run_to_end(&mut world);
        assert_eq!(copies(&world), [1; RECORDS], "claim {nth}");
    }
}

/// A claim that nobody sees may still be on its way. Only another member may go on, and with what is committed then.
#[test]
fn rule_7_a_claim_of_unknown_outcome_that_the_group_does_not_hold_makes_a_new_member() {
    for nth in 0..3 {
        let mut world = started(false);
        run_to_claim(&mut world, nth);
        answer(&mut world, failure(FailureClass::Unknown)).unwrap();
        let mut rejoined = 0;
        let stopped = run(&mut world, |_, effect| {
            rejoined += usize::from(matches!(effect, Effect::Rejoin));
            false
        });
        assert!(!stopped.unwrap() && rejoined == 1, "claim {nth}: {rejoined}");
        // It never was carried out, so nothing is lost; and nothing was processed in doubt, or it would be there twice.
        assert_eq!(copies(&world), [1; RECORDS], "claim {nth}");
    }
}

/// Another member's claim of the very same offsets proves nothing for ours: the number in the metadata tells them apart.
#[test]
fn rule_7_the_same_offsets_by_another_member_are_not_our_claim() {
    let mut world = started(false);
    let claim = run_to_claim(&mut world, 1);
    let before = world.all("out").len();
    let other = claim.iter().cloned().map(|offset| CommittedOffset {
        metadata: String::new(),
        ..offset
    });
    carry_out(&mut world, &other.collect::<Vec<_>>());
    answer(&mut world, failure(FailureClass::Unknown)).unwrap();
    let mut rejoined = false;
    run(&mut world, |_, effect| {
        rejoined |= matches!(effect, Effect::Rejoin);
        false
    })
    .unwrap();
    assert!(rejoined);
    // The other one has them; here they are not processed.
    assert_eq!(lost(&world), claimed(&claim) - before);
}

/// How many records of the inputs, which begin at 0, lie below a claim of both.
fn claimed(claim: &[CommittedOffset]) -> usize {
    assert_eq!(claim.len(), 2);
    claim.iter().map(|offset| usize::try_from(offset.offset).unwrap()).sum()
}

#[test]
fn no_two_claims_have_the_same_metadata() {
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let mut world = started(false);
        world.kill();
        world.start();
        run(&mut world, |_, effect| {
            if let Effect::CommitOffsets { offsets, .. } = effect {
                seen.extend(offsets.iter().map(|offset| offset.metadata.clone()).take(1));
            }
            false
        })
        .unwrap();
    }
    assert!(seen.len() >= RECORDS / BOTH);
}

#[test]
fn a_claim_that_was_refused_for_now_is_made_again() {
    for nth in 0..3 {
        let mut world = started(false);
        run_to_claim(&mut world, nth);
        answer(&mut world, failure(FailureClass::Retriable)).unwrap();
        let now_ms = world.now_ms;
        let core = &mut world.process.as_mut().unwrap().core;
        assert!(core.next_effect(now_ms).unwrap().is_none(), "not at once");
        run_to_end(&mut world);
        assert_eq!(copies(&world), [1; RECORDS], "claim {nth}");
    }
}

#[test]
fn a_stale_member_asks_the_group_and_processes_nothing_meanwhile() {
    let mut world = started(false);
    run_to_claim(&mut world, 1);
    let before = copies(&world);
    answer(&mut world, failure(FailureClass::StaleMember)).unwrap();
    let now_ms = world.now_ms;
    let core = &mut world.process.as_mut().unwrap().core;
    assert!(matches!(core.next_effect(now_ms).unwrap(), Some(Effect::HeartbeatNow)));
    core.on_outcome(Outcome::Done, now_ms).unwrap();
    assert!(core.next_effect(now_ms).unwrap().is_none());
    assert_eq!(core.process(now_ms, 100).unwrap(), 0);
    core.on_epoch(GroupIdentity {
        member_id: "m1".to_owned(),
        member_epoch: 2,
    });
    let effect = core.next_effect(now_ms).unwrap();
    assert!(
        matches!(&effect, Some(Effect::CommitOffsets { group, .. }) if group.member_epoch == 2),
        "{effect:?}"
    );
    assert_eq!(copies(&world), before);
}

#[test]
fn a_claim_that_nothing_mends_stops_the_thread() {
    let mut world = started(false);
    run_to_claim(&mut world, 0);
    assert!(answer(&mut world, failure(FailureClass::Stop)).is_err());
    let mut world = started(false);
    world.settings.task_timeout_ms = 3_000;
    world.kill();
    world.start();
    let error = loop {
        run_to_claim(&mut world, 0);
        world.now_ms += 1_000;
        if let Err(error) = answer(&mut world, failure(FailureClass::Retriable)) {
            break error;
        }
    };
    assert!(matches!(*error, Error::Timeout { .. }), "{error}");
}

/// Lost while a claim was on its way: whatever became of it, its records are nobody's here. In doubt the old member must not
/// be heard any more.
#[test]
fn rule_7_tasks_lost_while_a_claim_is_on_its_way_repeat_nothing() {
    for (carried_out, class) in [
        (true, None),
        (true, Some(FailureClass::Unknown)),
        (false, Some(FailureClass::Unknown)),
        (false, Some(FailureClass::StaleMember)),
    ] {
        let mut world = started(false);
        let claim = run_to_claim(&mut world, 2);
        world.process.as_mut().unwrap().core.on_lost().unwrap();
        if carried_out {
            carry_out(&mut world, &claim);
        }
        answer(&mut world, class.map_or(Outcome::Done, failure)).unwrap();
        let group = world.new_member();
        let core = &mut world.process.as_mut().unwrap().core;
        core.on_assigned(group, [TaskId::new(0, 0), TaskId::new(0, 1)]);
        let mut rejoined = false;
        run(&mut world, |_, effect| {
            rejoined |= matches!(effect, Effect::Rejoin);
            false
        })
        .unwrap();
        assert_eq!(rejoined, class == Some(FailureClass::Unknown), "{class:?}");
        assert_eq!(lost(&world), if carried_out { BOTH } else { 0 }, "{class:?}");
    }
}

#[test]
fn rule_7_what_is_claimed_is_processed_before_a_task_is_given_away() {
    let mut world = started(false);
    let claim = run_to_claim(&mut world, 1);
    carry_out(&mut world, &claim);
    answer(&mut world, Outcome::Done).unwrap();
    let group = world.new_member();
    let core = &mut world.process.as_mut().unwrap().core;
    assert!(core.has_claimed());
    core.on_assigned(group, []);
    let acknowledged = run(&mut world, |_, effect| matches!(effect, Effect::Acknowledge { .. }));
    assert!(acknowledged.unwrap());
    assert_eq!(copies(&world).iter().sum::<usize>(), claimed(&claim));
    world.kill();
    world.start();
    run_to_end(&mut world);
    assert_eq!(copies(&world), [1; RECORDS]);
}

fn undelivered(changelog: bool) -> Outcome {
    Outcome::PartlyFlushed {
        reports: Reports::default(),
        undelivered: vec![Undelivered {
            topic_partition: TopicPartition::new(if changelog { "app-counts-changelog" } else { "out" }, 0),
            code: "TEST".to_owned(),
            message: "told to fail".to_owned(),
            retriable: true,
            changelog,
        }],
        total: 1,
    }
}

/// Nothing is sent twice; where the changelog lacks something the store goes back to it.
#[test]
fn rule_7_delivery_errors_are_counted_and_nothing_is_repeated() {
    for changelog in [false, true] {
        let mut world = started(true);
        world.handlers = Arc::new(ErrorHandlers {
            production: Arc::new(LogAndContinue),
            ..ErrorHandlers::default()
        });
        world.kill();
        world.start();
        assert!(run(&mut world, |_, effect| matches!(effect, Effect::Flush { .. })).unwrap());
        answer(&mut world, undelivered(changelog)).unwrap();
        run_to_end(&mut world);
        assert_eq!(totals(&world).dropped_at_send, 1);
        assert_eq!(totals(&world).tasks_created, if changelog { 4 } else { 2 });
        assert!(counted(&world) <= RECORDS as i64);
    }
}

#[test]
fn failures_of_the_producer_repeat_nothing() {
    let steps: [fn(&Effect) -> bool; 2] = [
        |effect| matches!(effect, Effect::Send { .. }),
        |effect| matches!(effect, Effect::Flush { .. }),
    ];
    for class in [FailureClass::Abortable, FailureClass::Fatal] {
        for is in steps {
            let mut world = started(true);
            assert!(run(&mut world, |_, effect| is(effect)).unwrap());
            answer(&mut world, failure(class)).unwrap();
            run_to_end(&mut world);
            assert!(counted(&world) >= (RECORDS - BOTH) as i64, "{class:?}");
        }
    }
}
