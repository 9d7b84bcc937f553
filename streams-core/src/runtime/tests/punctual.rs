//! Wall-clock punctuations: what they did is done once, whatever happens to the commit (design rules 1.2 and 1.3).

use streams_state::MemoryDisk;

use super::nodes::{BILL_MS, billing};
use super::{World, failure};
use crate::fetch::FetchErrorKind;
use crate::runtime::{Effect, FailureClass, Outcome, ResetTo};

/// Two tasks that have processed their input and wait for the hour.
fn world() -> World {
    let mut world = World::new(billing(), 1 << 20);
    world.settings.reset = Some(ResetTo::Latest);
    world.disk = Some(MemoryDisk::default());
    world.broker.create_topic("app-counts-changelog", 2);
    world.start();
    world.run_to_end();
    world.feed([("a", 1), ("b", 2)]);
    world.run_to_end();
    world
}

fn bills(world: &World) -> usize {
    let records = world.all("out").into_iter();
    records.filter(|(_, _, key, _)| key.as_deref() == Some(b"bill")).count()
}

fn is_commit(effect: &Effect) -> bool {
    matches!(effect, Effect::CommitTransaction { .. })
}

#[test]
fn rule_1_2_a_transaction_of_punctuations_alone_names_an_input_of_each_task() {
    let mut world = world();
    world.now_ms += BILL_MS;
    let mut named = Vec::new();
    world
        .run(|_, effect| {
            if let Effect::SendOffsets { offsets, .. } = effect {
                named.extend(offsets.iter().map(|offset| offset.topic_partition.partition));
            }
            false
        })
        .unwrap();
    assert_eq!(bills(&world), 2);
    assert_eq!(named, [0, 1]);
}

#[test]
fn rule_1_3_a_bill_whose_transaction_was_aborted_comes_again_and_only_then() {
    for class in [FailureClass::Abortable, FailureClass::StaleMember, FailureClass::Fatal] {
        let mut world = world();
        world.now_ms += BILL_MS;
        world.answer_at(is_commit, failure(class)).unwrap();
        world.run_to_end();
        assert_eq!(bills(&world), 2, "{class:?}");
        world.now_ms += BILL_MS;
        world.run_to_end();
        assert_eq!(bills(&world), 4, "{class:?}");
    }
}

#[test]
fn rule_1_3_a_bill_that_is_committed_while_its_tasks_are_made_anew_does_not_come_again() {
    let mut world = world();
    world.now_ms += BILL_MS;
    world.run_to(is_commit);
    // The commit is on its way, and the tasks are made anew for another reason.
    world.fetch_fails(0, FetchErrorKind::OutOfRange { offset: 0 }).unwrap();
    let now_ms = world.now_ms;
    let process = world.process.as_mut().unwrap();
    process.shell.end_transaction(&mut world.broker, true);
    process.core.on_outcome(Outcome::Done, now_ms).unwrap();
    world.run_to_end();
    assert_eq!(bills(&world), 2);
    world.now_ms += BILL_MS;
    world.run_to_end();
    assert_eq!(bills(&world), 4);
}

#[test]
fn rule_1_3_after_an_unknown_outcome_the_groups_offsets_tell_whether_the_bill_has_come() {
    for committed in [false, true] {
        let mut world = world();
        world.now_ms += BILL_MS;
        world.feed([("a", 3), ("b", 4)]);
        world.settings.commit_adaptive = false;
        world.run_to(is_commit);
        let now_ms = world.now_ms;
        let process = world.process.as_mut().unwrap();
        if committed {
            process.shell.end_transaction(&mut world.broker, true);
        }
        process.core.on_outcome(failure(FailureClass::Fatal), now_ms).unwrap();
        world.run_to_end();
        assert_eq!(bills(&world), 2, "committed: {committed}");
        let counts = world.latest("out");
        assert_eq!(counts[&b"a"[..]].as_deref(), Some(&b"2"[..]), "committed: {committed}");
    }
}

#[test]
fn rule_1_10_a_disk_that_is_full_at_the_apply_moves_no_bill() {
    let mut world = world();
    let due_ms = world.core().next_wall_clock_ms().unwrap();
    world.now_ms = due_ms;
    world.run_to(|effect| matches!(effect, Effect::Apply { .. }));
    let disk = world.disk.clone().unwrap();
    disk.set_full(true);
    let now_ms = world.now_ms;
    world.core().apply(now_ms).unwrap();
    world.core().on_outcome(Outcome::Done, now_ms).unwrap();
    disk.set_full(false);
    world.run_to_end();
    assert_eq!(bills(&world), 2);
    assert_eq!(world.core().next_wall_clock_ms(), Some(due_ms + BILL_MS));
}
