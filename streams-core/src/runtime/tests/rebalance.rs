//! Tasks come and go: those that stay are not disturbed.

use super::nodes::counting;
use super::{Process, World};
use crate::runtime::{Effect, GroupIdentity, TaskPhase, TaskStatus};
use crate::{TaskId, TopicPartition};

const STAYS: TaskId = TaskId {
    subtopology: 0,
    partition: 0,
};
const OTHER: TaskId = TaskId {
    subtopology: 0,
    partition: 1,
};
/// Of partition 0: its first byte is even.
const KEY: &str = "b";

fn process(world: &mut World) -> &mut Process {
    world.process.as_mut().unwrap()
}

fn assign(world: &mut World, epoch: i32, tasks: &[TaskId]) {
    let group = GroupIdentity {
        member_id: "m".to_owned(),
        member_epoch: epoch,
    };
    process(world).core.on_assigned(group, tasks.iter().copied());
}

fn status(world: &mut World, task: TaskId) -> TaskStatus {
    let tasks = process(world).core.status().tasks;
    tasks.into_iter().find(|status| status.id == task).unwrap()
}

fn committed(world: &World) -> Option<i64> {
    world
        .broker
        .committed(&TopicPartition::new("in", 0))
        .map(|committed| committed.0)
}

#[test]
fn rule_1_15_a_task_that_stays_works_and_commits_while_a_new_one_restores() {
    let mut world = World::new(counting(), 1 << 20);
    world.feed([("a", 1), (KEY, 2), ("a", 3)]);
    world.start();
    world.run_to_end();
    world.kill();
    // The next process has one of the tasks; its state in memory is restored.
    world.start();
    assign(&mut world, 2, &[STAYS]);
    world.run_to_end();
    assign(&mut world, 3, &[STAYS, OTHER]);
    // The restore of the new task takes long: nobody answers it.
    let restores = |effect: &Effect| matches!(effect, Effect::Restore(job) if job.task == OTHER);
    assert!(world.run(|_, effect| restores(effect)).unwrap());
    let (before, offset) = (
        status(&mut world, STAYS).counters.processed_records,
        committed(&world).unwrap(),
    );
    world.feed([(KEY, 5), (KEY, 6)]);
    let mut commits = 0;
    let stopped = world.run(|_, effect| {
        commits += u32::from(matches!(effect, Effect::Apply { .. }));
        commits == 1
    });
    assert!(stopped.unwrap());
    assert_eq!(status(&mut world, OTHER).phase, TaskPhase::Restoring);
    assert_eq!(status(&mut world, STAYS).counters.processed_records, before + 2);
    assert!(committed(&world).unwrap() >= offset + 2);
}

#[test]
fn rule_1_5_a_task_that_stays_is_neither_made_anew_nor_rewound_when_another_is_given_away() {
    let mut world = World::new(counting(), 0);
    let feed = |world: &mut World| world.feed([(KEY, 1), ("a", 2), (KEY, 3), (KEY, 4)]);
    feed(&mut world);
    world.start();
    assert!(world.run(|_, effect| matches!(effect, Effect::Send { .. })).unwrap());
    let now_ms = world.now_ms;
    // In the middle of a transaction with records of both tasks.
    process(&mut world)
        .core
        .on_outcome(crate::runtime::Outcome::Done, now_ms)
        .unwrap();
    assign(&mut world, 2, &[STAYS]);
    world.run_to_end();
    feed(&mut world);
    world.run_to_end();
    let totals = process(&mut world).core.status().totals;
    assert_eq!((totals.tasks_created, totals.tasks_closed, totals.aborts), (2, 1, 0));
    let counts: Vec<_> = world
        .all("out")
        .into_iter()
        .filter(|(partition, ..)| *partition == 0)
        .filter_map(|(.., value)| value)
        .collect();
    let expected: Vec<Vec<u8>> = (1..=6).map(|count: i64| count.to_string().into_bytes()).collect();
    assert_eq!(counts, expected);
}

#[test]
fn a_thread_with_less_memory_evicts_at_once_and_loses_nothing() {
    const KEYS: [&str; 8] = ["b", "d", "f", "h", "a", "c", "e", "g"];
    let mut world = World::new(counting(), 1 << 20);
    world.settings.commit_interval_ms = 1_000_000;
    world.settings.commit_adaptive = false;
    world.feed(KEYS.map(|key| (key, 1)));
    world.start();
    let full = |world: &mut World| process(world).core.status().cache_bytes;
    for _ in 0..40 {
        // Everything is processed and nothing committed.
        let now_ms = world.now_ms;
        let World {
            process: Some(process),
            broker,
            ..
        } = &mut world
        else {
            panic!()
        };
        while let Some(effect) = process.core.next_effect(now_ms).unwrap() {
            process
                .shell
                .perform(effect, &mut process.core, broker, now_ms)
                .unwrap();
        }
        let mut fetched = process.shell.fetch(broker, 3);
        process.core.accept(&mut fetched).unwrap();
        process.core.process(now_ms, 2).unwrap();
    }
    let before = full(&mut world);
    assert!(before > 500, "{before}");
    process(&mut world).core.set_memory(before / 2, 1 << 20);
    let now_ms = world.now_ms;
    process(&mut world).core.process(now_ms, 0).unwrap();
    assert!(full(&mut world) <= before / 2);
    process(&mut world).core.request_commit();
    world.run_to_end();
    assert_eq!(world.latest("out").len(), KEYS.len());
}
