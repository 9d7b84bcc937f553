//! The next epoch is processed while the last one is on its way: whatever happens meanwhile, the outputs are those of a
//! run that waits for each commit.

use super::World;
use super::nodes::{copy, counting};
use crate::TaskId;
use crate::config::ProcessingGuarantee;
use crate::runtime::{CallFailure, Effect, FailureClass, GroupIdentity, Outcome};
use crate::topology::Topology;

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn world(topology: &Topology) -> World {
    let mut world = World::new(topology.clone(), 1);
    world.feed((0..150).map(|at| (KEYS[at * 7 % 5], 100 + at as i64)));
    world.start();
    world
}

fn is_of_a_commit(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Flush { .. }
            | Effect::SendOffsets { .. }
            | Effect::CommitTransaction { .. }
            | Effect::CommitOffsets { .. }
    )
}

/// Like [`World::run`], but the calls of a commit return only after `rounds` more rounds of fetching and processing.
/// `stop` may end the run while call number `n` is on its way; it answers true then. Also answers how many records were
/// processed while calls were on their way.
fn run_late(world: &mut World, rounds: usize, stop: impl Fn(usize) -> bool) -> (bool, usize) {
    let (mut calls, mut ahead) = (0, 0);
    let mut away: Option<(Effect, usize)> = None;
    for _ in 0..100_000 {
        let process = world.process.as_mut().unwrap();
        if let Some((effect, left)) = away.take() {
            if left > 0 && !process.core.waits_for_commit() {
                away = Some((effect, left - 1));
            } else {
                process
                    .shell
                    .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                    .unwrap();
            }
        }
        while away.is_none() {
            let Some(effect) = process.core.next_effect(world.now_ms).unwrap() else {
                break;
            };
            if is_of_a_commit(&effect) {
                if stop(calls) {
                    return (true, ahead);
                }
                calls += 1;
                away = Some((effect, rounds));
            } else {
                process
                    .shell
                    .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                    .unwrap();
            }
        }
        let mut fetched = process.shell.fetch(&world.broker, 3);
        let got = !fetched.is_empty();
        process.core.accept(&mut fetched).unwrap();
        let done = process.core.process(world.now_ms, 2).unwrap();
        if away.is_some() {
            ahead += done;
        }
        world.now_ms += 7;
        let idle = away.is_none() && process.core.buffered() == 0;
        if idle && !got && done == 0 && process.core.status().settled && !process.core.has_uncommitted() {
            return (false, ahead);
        }
    }
    panic!("still busy");
}

fn assert_exact(world: &World, counts: bool, what: &str) {
    assert_eq!(world.all("out").len(), 150, "{what}");
    if counts {
        let latest = world.latest("out");
        assert!(
            latest.values().all(|value| value.as_deref() == Some(b"30")),
            "{what}: {latest:?}"
        );
        assert_eq!(world.latest("app-counts-changelog").len(), KEYS.len(), "{what}");
    }
}

#[test]
fn records_are_processed_while_a_commit_is_on_its_way() {
    for (topology, counts) in [(copy(), false), (counting(), true)] {
        let mut world = world(&topology);
        let (_, ahead) = run_late(&mut world, 3, |_| false);
        assert!(ahead > 10, "only {ahead} records were processed meanwhile");
        assert_exact(&world, counts, "undisturbed");
    }
}

#[test]
fn a_kill_while_any_call_is_on_its_way_neither_loses_nor_repeats() {
    for (topology, counts) in [(copy(), false), (counting(), true)] {
        for cut in 0.. {
            let mut world = world(&topology);
            if !run_late(&mut world, 3, |calls| calls == cut).0 {
                assert!(cut > 10, "the run is too short to prove anything: {cut} calls");
                break;
            }
            world.kill();
            world.start();
            run_late(&mut world, 2, |_| false);
            assert_exact(&world, counts, &format!("killed at call {cut}"));
        }
    }
}

#[test]
fn a_failure_of_any_call_drops_both_epochs_and_loses_nothing() {
    for class in [
        FailureClass::Abortable,
        FailureClass::StaleMember,
        FailureClass::Fatal,
        FailureClass::Fenced,
        FailureClass::Retriable,
    ] {
        for cut in [3, 4, 5, 9, 10, 11] {
            let mut world = world(&counting());
            assert!(run_late(&mut world, 3, |calls| calls == cut).0);
            // Some of the next epoch is processed before the answer comes.
            work_on(&mut world);
            answer(&mut world, class);
            run_late(&mut world, 3, |_| false);
            assert_exact(&world, true, &format!("{class:?} at call {cut}"));
        }
    }
}

/// Without transactions too the next epoch is processed meanwhile (at least once), or nothing is (at most once).
#[test]
fn without_transactions_a_kill_while_any_call_is_on_its_way_keeps_the_guarantee() {
    for guarantee in [ProcessingGuarantee::AtLeastOnce, ProcessingGuarantee::AtMostOnce] {
        let at_least_once = guarantee == ProcessingGuarantee::AtLeastOnce;
        let fresh = || {
            let mut world = World::new(copy(), 1);
            world.settings.guarantee = guarantee;
            world.settings.buffered_records_per_partition = 10;
            world.feed((0..150).map(|at| (KEYS[at * 7 % 5], 100 + at as i64)));
            world.start();
            world
        };
        for cut in 0.. {
            let mut world = fresh();
            let (killed, ahead) = run_late(&mut world, 3, |calls| calls == cut);
            if !killed {
                assert!(cut > 10, "the run is too short to prove anything: {cut} calls");
                assert_eq!(ahead > 10, at_least_once, "{ahead} records were processed meanwhile");
                assert_eq!(world.all("out").len(), 150);
                break;
            }
            world.kill();
            world.start();
            run_late(&mut world, 2, |_| false);
            let mut places = vec![0; 150];
            for (_, _, _, value) in world.all("out") {
                places[String::from_utf8(value.unwrap()).unwrap().parse::<usize>().unwrap()] += 1;
            }
            let kept = places
                .iter()
                .all(|times| if at_least_once { *times >= 1 } else { *times <= 1 });
            assert!(kept, "{guarantee:?}, killed at call {cut}: {places:?}");
        }
    }
}

fn work_on(world: &mut World) {
    for _ in 0..3 {
        let process = world.process.as_mut().unwrap();
        let mut fetched = process.shell.fetch(&world.broker, 3);
        process.core.accept(&mut fetched).unwrap();
        process.core.process(world.now_ms, 2).unwrap();
        world.now_ms += 1;
    }
}

fn answer(world: &mut World, class: FailureClass) {
    let failure = CallFailure {
        class,
        code: "TEST".to_owned(),
        message: "told to fail".to_owned(),
    };
    let now_ms = world.now_ms;
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_outcome(Outcome::Failed(failure), now_ms).unwrap();
}

fn group() -> GroupIdentity {
    GroupIdentity {
        member_id: "m".to_owned(),
        member_epoch: 2,
    }
}

/// Design rule 1.4: what was on its way is not applied into a store that may have another owner.
#[test]
fn rule_1_4_tasks_lost_while_a_call_is_on_its_way_are_not_applied_to_and_nothing_is_lost() {
    for (carried_out, class) in [
        (true, None),
        (false, Some(FailureClass::Abortable)),
        (false, Some(FailureClass::StaleMember)),
        (false, Some(FailureClass::Fatal)),
        (false, Some(FailureClass::Fenced)),
        (false, Some(FailureClass::Retriable)),
        // The broker did it, and only the answer was lost.
        (true, Some(FailureClass::Retriable)),
    ] {
        for cut in [3, 4, 5, 6, 7, 8] {
            let what = format!("{class:?} at call {cut}, carried out: {carried_out}");
            let mut world = world(&counting());
            let mut held = None;
            run_to_call(&mut world, cut, &mut held);
            work_on(&mut world);
            let now_ms = world.now_ms;
            let process = world.process.as_mut().unwrap();
            process.core.on_lost().unwrap();
            assert!(
                process.core.next_effect(now_ms).unwrap().is_none(),
                "{what}: an answer is missing"
            );
            let effect = held.take().unwrap();
            match class {
                None => process
                    .shell
                    .perform(effect, &mut process.core, &mut world.broker, now_ms)
                    .unwrap(),
                Some(class) => {
                    if carried_out && matches!(effect, Effect::CommitTransaction { .. }) {
                        process.shell.end_transaction(&mut world.broker, true);
                    }
                    answer(&mut world, class);
                }
            }
            let process = world.process.as_mut().unwrap();
            let mut acknowledged = false;
            while let Some(effect) = process.core.next_effect(now_ms).unwrap() {
                assert!(!matches!(effect, Effect::Apply { .. }), "{what}");
                acknowledged |= matches!(&effect, Effect::Acknowledge { tasks } if tasks.is_empty());
                process
                    .shell
                    .perform(effect, &mut process.core, &mut world.broker, now_ms)
                    .unwrap();
            }
            assert!(acknowledged, "{what}: the group waits for the acknowledgement");
            process
                .core
                .on_assigned(group(), [TaskId::new(0, 0), TaskId::new(0, 1)]);
            run_late(&mut world, 1, |_| false);
            assert_exact(&world, true, &what);
        }
    }
}

/// Runs to call number `cut` of commits and leaves it on its way.
fn run_to_call(world: &mut World, cut: usize, held: &mut Option<Effect>) {
    let mut calls = 0;
    for _ in 0..10_000 {
        let process = world.process.as_mut().unwrap();
        while let Some(effect) = process.core.next_effect(world.now_ms).unwrap() {
            if is_of_a_commit(&effect) {
                if calls == cut {
                    *held = Some(effect);
                    return;
                }
                calls += 1;
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
    panic!("call {cut} was not reached");
}

/// Design rule 1.5: what was processed meanwhile is committed before a task is given away.
#[test]
fn rule_1_5_a_revocation_waits_for_the_commit_on_its_way_and_commits_what_came_after() {
    let mut world = world(&counting());
    let mut held = None;
    run_to_call(&mut world, 4, &mut held);
    work_on(&mut world);
    let now_ms = world.now_ms;
    let process = world.process.as_mut().unwrap();
    process.core.on_assigned(group(), [TaskId::new(0, 0)]);
    assert!(process.core.waits_for_commit());
    assert_eq!(process.core.process(now_ms, 10).unwrap(), 0);
    let effect = held.take().unwrap();
    process
        .shell
        .perform(effect, &mut process.core, &mut world.broker, now_ms)
        .unwrap();
    let (mut commits, mut released) = (0, None);
    while let Some(effect) = process.core.next_effect(now_ms).unwrap() {
        commits += usize::from(matches!(effect, Effect::CommitTransaction { .. }));
        if let Effect::Acknowledge { tasks } = &effect {
            released = Some((commits, tasks.clone()));
        }
        process
            .shell
            .perform(effect, &mut process.core, &mut world.broker, now_ms)
            .unwrap();
    }
    assert_eq!(released, Some((2, vec![TaskId::new(0, 0)])));
    process
        .core
        .on_assigned(group(), [TaskId::new(0, 0), TaskId::new(0, 1)]);
    run_late(&mut world, 2, |_| false);
    assert_exact(&world, true, "after the task came back");
}

#[test]
fn an_epoch_that_fills_the_memory_waits_for_the_one_before() {
    let mut world = world(&counting());
    world.settings.max_uncommitted_bytes = 60;
    world.kill();
    world.start();
    let mut held = None;
    run_to_call(&mut world, 1, &mut held);
    for _ in 0..20 {
        work_on(&mut world);
    }
    let core = &mut world.process.as_mut().unwrap().core;
    assert!(core.waits_for_commit());
    assert!(core.buffered() > 0, "there is nothing left that could wait");
}

/// Runs until everything is out; `took_ms` says how long the record of a number takes. The thread hears how a call ended only
/// when the record in hand is done, and the broker ends a transaction that takes too long. Answers how many ran out of
/// their time.
fn run_slow(records: usize, took_ms: impl Fn(usize, i64) -> i64) -> u64 {
    let mut world = World::new(copy(), 1);
    let timeout_ms = world.settings.transaction_timeout_ms;
    // Little is written, so no transaction begins before its epoch is closed.
    world.settings.send_bytes = 128 << 10;
    world.feed((0..records).map(|at| ("a", at as i64)));
    world.start();
    let (mut away, mut processed): (Option<Effect>, usize) = (None, 0);
    for _ in 0..records * 400 {
        world.broker.end_overdue(world.now_ms, timeout_ms);
        let process = world.process.as_mut().unwrap();
        let mut effect = away.take();
        loop {
            effect = match effect {
                Some(effect) => Some(effect),
                None => match process.core.next_effect(world.now_ms).unwrap() {
                    Some(effect) if is_of_a_commit(&effect) => {
                        away = Some(effect);
                        break;
                    }
                    effect => effect,
                },
            };
            let Some(effect) = effect.take() else { break };
            process
                .shell
                .perform(effect, &mut process.core, &mut world.broker, world.now_ms)
                .unwrap();
        }
        let mut fetched = process.shell.fetch(&world.broker, 3);
        process.core.accept(&mut fetched).unwrap();
        let done = process.core.process(world.now_ms, 1).unwrap();
        world.now_ms += 1;
        for _ in 0..done {
            world.now_ms += took_ms(processed, timeout_ms);
            processed += 1;
        }
        if world.all("out").len() == records {
            return world.core().status().totals.transaction_timeouts;
        }
    }
    panic!("{} of {records} records got through", world.all("out").len());
}

#[test]
fn rule_1_11_records_slower_than_the_transaction_timeout_get_through_beside_commits_without_a_time_out() {
    assert_eq!(run_slow(6, |_, timeout_ms| 2 * timeout_ms), 0);
    assert_eq!(run_slow(100, |_, timeout_ms| 2 * timeout_ms), 0);
}

#[test]
fn rule_1_11_after_one_time_out_slow_records_meet_no_other() {
    let slow_from_the_tenth = |number, timeout_ms| if number < 10 { 1 } else { 2 * timeout_ms };
    let timeouts = run_slow(100, slow_from_the_tenth);
    assert!(timeouts <= 1, "{timeouts} transactions ran out of their time");
}

/// One of ten: each wrong guess doubles the caution.
#[test]
fn rule_1_11_a_slow_record_now_and_then_costs_few_time_outs() {
    let one_of_ten = |number, timeout_ms| if number % 10 == 9 { 2 * timeout_ms } else { 1 };
    let timeouts = run_slow(400, one_of_ten);
    assert!(timeouts <= 4, "{timeouts} transactions ran out of their time");
}
