//! The simulator tests itself: equal seeds give equal runs, a run says what it did, and broken adapters are found.
#![allow(clippy::expect_used, clippy::panic)]

#[path = "../../examples/simulate/topologies.rs"]
mod topologies;

use streams_core::fetch::Fetched;
use streams_core::runtime::{Assignment, CommittedOffset, GroupIdentity, Reports};
use streams_core::test_driver::TransactionError;
use streams_core::{Error, TopicPartition};
use streams_state::ChangelogFacts;

use super::disruption::Disruption;
use super::process::{Queued, Thread};
use super::weather::Weather;
use super::world::World;
use super::{Run, Simulation};
use crate::Seeded;

/// A shell or broker that breaks one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutation {
    /// Rule 1.1: commits use the member epoch as it is now, not that of the last event applied.
    NewestEpoch,
    /// Rule 1.2: transactions that move no offset commit without any, so that the group does not fence them.
    NoOffsets,
    /// Rule 1.6: committed offsets are read while a transaction that names them is open.
    UnstableOffsets,
    /// Rule 1.6: changelog ends are listed read-committed.
    StableEnds,
    /// Rule 1.9: a partition goes on where it was fetched to, not where it is assigned.
    KeepsPosition,
    /// Rule 2.1: acknowledged changelog offsets are two too high, past the marker and the next record.
    PositionOff,
    /// Records are sent twice.
    Duplicates,
    /// Records get lost on their way, and nobody hears of it.
    Losses,
}

impl World<'_> {
    pub(super) fn mutate_fetched(&mut self, fetched: &mut [Fetched], _: &Thread) {
        if self.mutation == Some(Mutation::KeepsPosition) {
            for item in fetched {
                if let Fetched::Records(batch) = item {
                    let end = batch.offset(batch.len().saturating_sub(1)) + 1;
                    self.fetched_to.insert(batch.partition.0, end);
                }
            }
        }
    }

    pub(super) fn mutate_assignments(&mut self, partitions: &mut [Assignment]) {
        if self.mutation != Some(Mutation::KeepsPosition) {
            return;
        }
        for assignment in partitions {
            // The number that the partition had before in this thread.
            if let Some((_, end)) = self
                .fetched_to
                .iter()
                .next_back()
                .filter(|(id, _)| **id < assignment.id.0)
            {
                assignment.start_offset = assignment.start_offset.max(*end).min(
                    self.broker
                        .log(&assignment.topic_partition)
                        .map_or(0, streams_core::test_driver::Log::high_watermark),
                );
            }
        }
    }

    /// `None`: the call is left out.
    pub(super) fn mutate_offsets(&mut self, offsets: Vec<CommittedOffset>) -> Option<Vec<CommittedOffset>> {
        let known = |offset: &CommittedOffset| {
            let committed = self.broker.committed(&offset.topic_partition);
            committed.is_some_and(|(known, _)| *known == offset.offset)
        };
        let nothing_moved = offsets.iter().all(known);
        (self.mutation != Some(Mutation::NoOffsets) || !nothing_moved).then_some(offsets)
    }

    /// A client ends a transaction in which it sent nothing without asking.
    pub(super) fn mutate_ended(&self, result: Result<(), TransactionError>) -> Result<(), TransactionError> {
        match (self.mutation, result) {
            (Some(Mutation::NoOffsets), Err(TransactionError::NotOpen)) => Ok(()),
            (_, result) => result,
        }
    }

    /// The epoch as it is when the request is made.
    pub(super) fn mutate_group(&self, group: &GroupIdentity) -> GroupIdentity {
        let newest = self.group.epoch_of(&group.member_id);
        match self.mutation {
            Some(Mutation::NewestEpoch) => GroupIdentity {
                member_epoch: newest.unwrap_or(group.member_epoch),
                ..group.clone()
            },
            _ => group.clone(),
        }
    }

    pub(super) fn mutate_queue(&mut self, queue: &mut std::collections::VecDeque<Queued>) {
        if self.mutation == Some(Mutation::Duplicates) {
            let again = queue.back().cloned();
            queue.extend(again);
        }
        if self.mutation == Some(Mutation::Losses) {
            queue.pop_back();
        }
    }

    pub(super) fn mutate_reports(&mut self, reports: &mut Reports) {
        if self.mutation == Some(Mutation::PositionOff) {
            reports.highest.values_mut().for_each(|offset| *offset += 2);
        }
    }

    pub(super) fn mutate_facts(&self, facts: &mut ChangelogFacts, topic_partition: &TopicPartition) {
        if self.mutation == Some(Mutation::StableEnds) {
            let log = self.broker.log(topic_partition);
            facts.high_watermark = log.map_or(0, streams_core::test_driver::Log::last_stable_offset);
        }
    }
}

fn entry(name: &str, seed: u64) -> Simulation {
    let mut all = topologies::all();
    let found = all.find(|entry| entry.name == name).expect("a topology of this name");
    (found.make)(&mut Seeded::new(seed))
}

fn run_mutated(simulation: &Simulation, seed: u64, mutation: Mutation) -> Result<Run, Box<Error>> {
    let scenario = simulation.scenario()?;
    let expected = simulation.expected(&scenario).expect("a run without faults");
    let weather = Weather::draw(&mut Seeded::new(seed), simulation.may_cache());
    let phases = simulation.mixed_phases(seed);
    let mut world = World::new(&scenario, &phases, seed, weather, false);
    world.mutation = Some(mutation);
    Ok(simulation.finish(world, &expected))
}

/// Runs topologies with a broken adapter until a seed finds it.
fn found_within(mutation: Mutation, names: &[&str], seeds: u64) -> Option<(u64, String)> {
    for seed in 0..seeds {
        let name = names.get((seed % names.len() as u64) as usize).expect("a name");
        let run = run_mutated(&entry(name, seed), seed, mutation).expect("a topology that can be planned");
        if let Err(what) = run.result {
            return Some((seed, format!("{name}: {what}")));
        }
    }
    None
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for (seed, topology) in topologies::all().enumerate() {
        let seed = 40 + seed as u64;
        let traces = [(); 2].map(|()| entry(topology.name, seed).trace(seed).expect("a trace"));
        let [first, second] = traces;
        assert!(first.len() > 100, "{}: {} lines", topology.name, first.len());
        assert_eq!(first, second, "{} with seed {seed}", topology.name);
    }
}

#[test]
fn other_seeds_give_other_runs() {
    let simulation = entry("count", 1);
    assert_ne!(simulation.trace(1), simulation.trace(2));
}

#[test]
fn every_topology_survives_a_few_seeds() {
    for topology in topologies::all() {
        for seed in 0..4 {
            let report = entry(topology.name, seed).run(seed..seed + 1);
            let report = report.unwrap_or_else(|failure| panic!("{}: {failure}", topology.name));
            assert!(report.records > 0, "{}", topology.name);
        }
    }
}

#[test]
fn a_failure_tells_its_seed_and_what_happened() {
    let (seed, _) = found_within(Mutation::Duplicates, &["copy"], 50).expect("a seed finds it");
    let failure = super::SimulationFailure {
        seed,
        what: "a record is there twice".to_owned(),
        trace: entry("copy", seed).trace(seed).expect("a trace"),
    };
    let text = failure.to_string();
    assert!(
        text.starts_with(&format!("seed {seed} fails: a record is there twice")),
        "{text}"
    );
    assert!(text.contains("CommitTransaction"), "{text}");
}

const COUNTS: &[&str] = &["count", "copy", "outbox"];
const STORES: &[&str] = &["count", "outbox"];

// Three tests, so that they run side by side.

#[test]
fn adapters_that_repeat_or_lose_are_found() {
    assert_found(&[
        (Mutation::Duplicates, COUNTS, 20),
        (Mutation::Duplicates, &["at-most-once"], 20),
        (Mutation::Losses, &["at-least-once"], 20),
        (Mutation::NoOffsets, &["outbox"], 1_500),
    ]);
}

#[test]
fn adapters_with_wrong_positions_are_found() {
    assert_found(&[
        (Mutation::KeepsPosition, COUNTS, 50),
        (Mutation::PositionOff, STORES, 600),
        (Mutation::UnstableOffsets, COUNTS, 600),
        (Mutation::StableEnds, STORES, 600),
    ]);
}

#[test]
fn an_adapter_that_commits_as_the_newest_member_is_found() {
    assert_found(&[(Mutation::NewestEpoch, &["copy"], 3_000)]);
}

fn assert_found(mutations: &[(Mutation, &[&str], u64)]) {
    let mut missed = Vec::new();
    for (mutation, names, seeds) in mutations {
        match found_within(*mutation, names, *seeds) {
            Some((seed, what)) => println!(
                "{mutation:?} is found by seed {seed}: {}",
                what.lines().next().unwrap_or_default()
            ),
            None => missed.push(mutation),
        }
    }
    assert!(missed.is_empty(), "no seed finds {missed:?}");
}

/// What may go wrong in a run, by the names under which it is counted.
fn faults_of(seeds: std::ops::Range<u64>) -> super::FaultCounts {
    let mut report = super::SimulationReport::default();
    for seed in seeds {
        let name = topologies::of_seed(seed).name;
        let one = entry(name, seed).run(seed..seed + 1);
        report.add(&one.unwrap_or_else(|failure| panic!("{name}: {failure}")));
    }
    report.faults
}

#[test]
fn every_kind_of_fault_strikes_somewhere() {
    let faults = faults_of(0..200);
    let disruptions = Disruption::ALL.iter().map(|disruption| disruption.name());
    let others = [
        "explained: hanging transaction",
        "explained: offsets expired",
        "input in a transaction",
        "input of an aborted transaction",
        "hanging transaction in an input",
        "request outlives its process",
        "restore consumer failed",
        "slow user code",
        "thread replaced",
        "user code failed",
    ];
    let missing: Vec<&str> = disruptions
        .chain(others)
        .filter(|name| !faults.contains_key(name))
        .collect();
    assert!(missing.is_empty(), "no run met {missing:?}");
}
