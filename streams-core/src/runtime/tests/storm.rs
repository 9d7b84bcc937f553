//! Kills and failures at random moments, by seed: at-least-once loses nothing, at-most-once repeats nothing.

use streams_state::MemoryDisk;

use super::World;
use super::at_least_once::is_of_a_transaction;
use super::nodes::counting;
use crate::config::ProcessingGuarantee;
use crate::runtime::{CallFailure, Effect, FailureClass, Outcome};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];
const RECORDS: usize = 60;
const STORMS: u64 = 150;
const KILLS: usize = 3;

/// A small generator (SplitMix64), so that a seed is a run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

fn may_fail(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Send { .. } | Effect::Flush { .. } | Effect::CommitOffsets { .. } | Effect::FetchCommitted { .. }
    )
}

/// Carries `effect` out or not, and answers with a failure.
fn fail(world: &mut World, effect: &Effect, random: &mut Random) {
    let class = match effect {
        Effect::CommitOffsets { offsets, .. } => {
            let class = [
                FailureClass::Retriable,
                FailureClass::Unknown,
                FailureClass::StaleMember,
            ][random.below(3) as usize];
            if class == FailureClass::Unknown && random.below(2) == 0 {
                let offsets = offsets.iter().cloned();
                world
                    .broker
                    .commit_offsets(offsets.map(|o| (o.topic_partition, o.offset, o.metadata)).collect());
            }
            class
        }
        Effect::FetchCommitted { .. } => FailureClass::Retriable,
        _ => [FailureClass::Abortable, FailureClass::Fatal, FailureClass::Retriable][random.below(3) as usize],
    };
    let failure = CallFailure {
        class,
        code: "TEST".to_owned(),
        message: "told to fail".to_owned(),
    };
    let now_ms = world.now_ms;
    let core = &mut world.process.as_mut().unwrap().core;
    core.on_outcome(Outcome::Failed(failure), now_ms).unwrap();
}

/// One run with failures and kills; the sum of all counts.
fn storm(guarantee: ProcessingGuarantee, seed: u64) -> (i64, Vec<i64>) {
    let mut random = Random(seed);
    let mut world = World::new(counting(), [0, 1, 1 << 20][random.below(3) as usize]);
    world.settings.guarantee = guarantee;
    world.settings.buffered_records_per_partition = 1 + random.below(8) as usize;
    world.settings.max_uncommitted_bytes = [1, 100, 1 << 20][random.below(3) as usize];
    world.disk = (random.below(2) == 0).then(MemoryDisk::default);
    world.feed((0..RECORDS).map(|at| (KEYS[at * 7 % 5], 100 + at as i64)));
    world.start();
    let mut kills = 0;
    loop {
        let mut hit = None;
        // A run that only fails never ends.
        let calm = kills == KILLS;
        let stopped = world.run(|_, effect| {
            assert!(!is_of_a_transaction(effect), "{effect:?}");
            let hits = !calm && random.below(25) == 0;
            if hits {
                // A restore is moved out, and nothing else is looked at.
                hit = Some(match effect {
                    Effect::CommitOffsets { offsets, group } => Effect::CommitOffsets {
                        offsets: offsets.clone(),
                        group: group.clone(),
                    },
                    Effect::Send { epoch } => Effect::Send { epoch: *epoch },
                    Effect::Flush { epoch } => Effect::Flush { epoch: *epoch },
                    Effect::FetchCommitted { partitions } => Effect::FetchCommitted {
                        partitions: partitions.clone(),
                    },
                    _ => Effect::HeartbeatNow,
                });
            }
            hits
        });
        if !stopped.unwrap_or_else(|error| panic!("seed {seed}: {error}")) {
            break;
        }
        let hit = hit.unwrap();
        if may_fail(&hit) && random.below(3) > 0 {
            fail(&mut world, &hit, &mut random);
        } else {
            kills += 1;
            world.kill();
            world.start();
        }
    }
    let number = |value: Option<Vec<u8>>| String::from_utf8(value.unwrap()).unwrap().parse::<i64>().unwrap();
    let counts: Vec<i64> = world.latest("out").into_values().map(number).collect();
    let changelog = |value: Option<Vec<u8>>| i64::from_be_bytes(value.unwrap().try_into().unwrap());
    let stored = world.latest("app-counts-changelog").into_values().map(changelog).sum();
    (stored, counts)
}

#[test]
fn at_least_once_loses_nothing_in_any_storm() {
    let mut repeated = 0;
    for seed in 0..STORMS {
        let (stored, counts) = storm(ProcessingGuarantee::AtLeastOnce, seed);
        assert!(
            counts.len() == KEYS.len() && counts.iter().all(|count| *count >= 12),
            "seed {seed}: {counts:?}"
        );
        assert_eq!(stored, counts.iter().sum::<i64>(), "seed {seed}: changelog and outputs");
        repeated += i64::from(stored > RECORDS as i64);
    }
    assert!(
        repeated > 5,
        "only {repeated} storms repeated anything: they prove little"
    );
}

#[test]
fn at_most_once_repeats_nothing_in_any_storm() {
    let mut losing = 0;
    for seed in 0..STORMS {
        let (stored, counts) = storm(ProcessingGuarantee::AtMostOnce, seed);
        assert!(counts.iter().all(|count| *count <= 12), "seed {seed}: {counts:?}");
        assert!(stored <= RECORDS as i64, "seed {seed}: {stored}");
        losing += i64::from(stored < RECORDS as i64);
    }
    assert!(losing > 5, "only {losing} storms lost anything: they prove little");
}
