//! What an application must not survive in silence: offsets that expired or were reset, changelogs that were truncated or
//! made again, inputs that were deleted before they were read. It stops and says why, touches nothing, and goes on as if
//! nothing had been once that is put right (design rules 2.4 and 2.5).
//!
//! All instances die, the harm is done, the first one starts again. It has to stop with the right explanation, and nothing
//! that is concerned may be committed meanwhile. Then the harm is undone and the run goes on to its exact result.

use std::collections::{BTreeMap, BTreeSet};

use streams_core::runtime::{ResetTo, TaskPhase};
use streams_core::test_driver::Log;
use streams_core::{Error, TaskId, TopicPartition};

use super::harm::other_record;
use super::world::{Event, START_MS, Undo, World};
use crate::Seeded;

/// So many stops must come before the harm is undone.
const STOPS: u32 = 2;
/// So long the application may take to find it, ms.
const FOUND_WITHIN_MS: i64 = 240_000;
/// So long a transaction hangs in an input when that is the calamity: past the time after which it must be told, ms.
const HANGS_MS: i64 = 1_100_000;

/// Something that must be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calamity {
    OffsetsExpired,
    OffsetsLower,
    ChangelogRemade,
    ChangelogTruncated,
    InputTrimmed,
    GlobalTruncated,
    /// The second machine runs with the identity of the first (rules 1.13 and 6.1).
    IdentityCopied,
    /// A transaction in an input that nobody ends for longer than any broker would keep it open (rule 5.2).
    Hangs,
}

impl Calamity {
    const ALL: [Calamity; 8] = [
        Calamity::OffsetsExpired,
        Calamity::OffsetsLower,
        Calamity::ChangelogRemade,
        Calamity::ChangelogTruncated,
        Calamity::InputTrimmed,
        Calamity::GlobalTruncated,
        Calamity::IdentityCopied,
        Calamity::Hangs,
    ];

    /// One run in four has one.
    pub(super) fn draw(rng: &mut Seeded) -> Option<Calamity> {
        let chosen = usize::try_from(rng.below(4 * Calamity::ALL.len() as u64)).unwrap_or(0);
        Calamity::ALL.get(chosen).copied()
    }

    fn name(self) -> &'static str {
        match self {
            Calamity::OffsetsExpired => "explained: offsets expired",
            Calamity::OffsetsLower => "explained: offsets reset to lower ones",
            Calamity::ChangelogRemade => "explained: changelog deleted and made again",
            Calamity::ChangelogTruncated => "explained: changelog truncated",
            Calamity::InputTrimmed => "explained: input deleted before it was read",
            Calamity::GlobalTruncated => "explained: global topic truncated",
            Calamity::IdentityCopied => "explained: identity copied",
            Calamity::Hangs => "explained: hanging transaction",
        }
    }
}

/// The harm that was done and how to undo it.
#[derive(Debug)]
pub(super) struct Harm {
    pub(super) calamity: Calamity,
    since_ms: i64,
    until_ms: i64,
    stops: u32,
    /// Which must not run.
    pub(super) tasks: BTreeSet<TaskId>,
    /// As they were.
    pub(super) offsets: BTreeMap<TopicPartition, (i64, String)>,
    /// As they were.
    pub(super) logs: BTreeMap<TopicPartition, Log>,
    /// Committed offsets that must not move.
    pub(super) fixed: BTreeMap<TopicPartition, Option<i64>>,
}

impl World<'_> {
    /// Whether harm was done that is not undone.
    pub(super) fn is_struck(&self) -> bool {
        self.harm.is_some()
    }

    /// Whether inputs wait until the harm is undone. Two processes of one identity meet only where there is work.
    pub(super) fn holds_inputs_back(&self) -> bool {
        let harm = self.harm.as_ref();
        harm.is_some_and(|harm| harm.calamity != Calamity::IdentityCopied)
    }

    pub(super) fn reset(&self) -> Option<ResetTo> {
        let trimmed = self.harm.as_ref().map(|harm| harm.calamity) == Some(Calamity::InputTrimmed);
        (!trimmed).then_some(ResetTo::Earliest)
    }

    /// Whether the changelog partition is another one now.
    pub(super) fn is_remade(&self, topic_partition: &TopicPartition) -> bool {
        self.harm
            .as_ref()
            .is_some_and(|harm| harm.calamity == Calamity::ChangelogRemade && harm.logs.contains_key(topic_partition))
    }

    /// Whether this error is the explanation that is waited for.
    pub(super) fn expects(&self, error: &Error) -> bool {
        let Some(harm) = &self.harm else { return false };
        match (harm.calamity, error) {
            (Calamity::OffsetsExpired | Calamity::OffsetsLower, Error::TaskCorrupted { task, store, .. }) => {
                harm.tasks.contains(task) && store == "(inputs)"
            }
            (
                Calamity::ChangelogRemade | Calamity::ChangelogTruncated | Calamity::GlobalTruncated,
                Error::TaskCorrupted { task, .. },
            ) => harm.tasks.contains(task),
            (Calamity::IdentityCopied, Error::TaskMigrated { .. }) => true,
            (Calamity::InputTrimmed, Error::Topics { message }) => message.contains("outside the log"),
            _ => false,
        }
    }

    /// Whether a process may stop with this error now, although it is not the explanation that is waited for: of two
    /// processes of one identity one may find what the other has done since it asked for the committed offsets.
    pub(super) fn tolerates(&self, error: &Error) -> bool {
        let calamity = self.harm.as_ref().map(|harm| harm.calamity);
        calamity == Some(Calamity::IdentityCopied) && matches!(error, Error::TaskCorrupted { .. })
    }

    /// An error was told; it may be the explanation.
    pub(super) fn heed(&mut self, error: &Error) {
        if self.expects(error)
            && let Some(harm) = &mut self.harm
        {
            harm.stops += 1;
        }
    }

    pub(super) fn plan_calamity(&mut self) {
        if self.weather.calamity.is_some() {
            let span_ms = self.weather.until_ms - START_MS;
            let ms = span_ms / 4 + self.random_ms(u64::try_from(span_ms / 2).unwrap_or(0) + 1);
            self.after(ms, Event::Strike);
        }
    }

    /// The calamity comes.
    pub(super) fn strike(&mut self) {
        let Some(calamity) = self.weather.calamity.take().filter(|_| !self.healed) else {
            return;
        };
        if calamity == Calamity::Hangs {
            return self.strike_hanging();
        }
        self.note(|| format!("calamity: {calamity:?}"));
        for instance in 0..self.instances.len() {
            self.crash(instance);
            self.hold_start(instance, i64::MAX / 4);
        }
        // Nothing is on its way any more: what is committed now is what counts.
        self.calls.clear();
        self.end_foreign();
        self.broker.end_overdue(self.now_ms, 0);
        while self.broker.write_marker(0) {}
        self.check_offsets();
        self.undo(Undo::CoordinatorBack);
        self.undo(Undo::DiskFreed(0));
        self.group.forget_members();
        let mut harm = Harm {
            calamity,
            since_ms: self.now_ms,
            until_ms: self.weather.until_ms,
            stops: 0,
            tasks: BTreeSet::new(),
            offsets: BTreeMap::new(),
            logs: BTreeMap::new(),
            fixed: BTreeMap::new(),
        };
        self.do_harm(&mut harm);
        let copied = self.instances.iter().any(|machine| machine.borrowed.is_some());
        let done = copied || !harm.offsets.is_empty() || !harm.logs.is_empty();
        self.harm = Some(harm);
        if !done {
            self.note(|| "there is nothing to harm".to_owned());
            return self.undo_harm();
        }
        self.weather.until_ms = self.now_ms;
        for instance in 0..=usize::from(copied) {
            self.hold_start(instance, 0);
            let after_ms = 100 + self.random_ms(2_000);
            self.plan_start(instance, after_ms);
        }
    }

    /// Looks whether the harm was found, and that nothing was done in spite of it.
    pub(super) fn watch_harm(&mut self) {
        let Some(harm) = &self.harm else {
            return self.watch_hanging();
        };
        let moved = harm.fixed.iter().find(|(topic_partition, offset)| {
            let committed = self.broker.committed(topic_partition).map(|(offset, _)| *offset);
            committed != **offset
        });
        if let Some((topic_partition, _)) = moved {
            let what = format!(
                "{:?}: the offset of {topic_partition} was committed all the same",
                harm.calamity
            );
            return self.fail(what);
        }
        let runs = |task: &TaskId| {
            let threads = self
                .instances
                .iter()
                .flat_map(|machine| machine.threads.iter().flatten());
            threads.into_iter().any(|thread| {
                let status = thread.core.status();
                status
                    .tasks
                    .iter()
                    .any(|found| found.id == *task && found.phase == TaskPhase::Running)
            })
        };
        if let Some(task) = harm.tasks.iter().find(|task| runs(task)) {
            let what = format!("{:?}: task {task} runs all the same", harm.calamity);
            return self.fail(what);
        }
        if harm.stops >= STOPS {
            let name = harm.calamity.name();
            self.weather.count(name);
            return self.undo_harm();
        }
        if self.now_ms - harm.since_ms > FOUND_WITHIN_MS {
            if harm.calamity == Calamity::IdentityCopied && self.is_consumed() {
                // Both had nothing to do.
                return self.undo_harm();
            }
            let what = format!("{:?} was not explained. {}", harm.calamity, self.show());
            self.fail(what);
        }
    }

    /// What was wrong is put right, and everybody starts again.
    fn undo_harm(&mut self) {
        let Some(harm) = self.harm.take() else { return };
        self.note(|| "the harm is undone".to_owned());
        for instance in 0..self.instances.len() {
            self.crash(instance);
        }
        self.calls.clear();
        self.end_foreign();
        self.broker.end_overdue(self.now_ms, 0);
        while self.broker.write_marker(0) {}
        self.group.forget_members();
        for (topic_partition, committed) in harm.offsets {
            self.broker.set_committed(&topic_partition, Some(committed));
        }
        for (topic_partition, log) in harm.logs {
            if let Some(found) = self.broker.log_mut(&topic_partition) {
                *found = log;
            }
        }
        self.weather.until_ms = (harm.until_ms + self.now_ms - harm.since_ms).max(self.now_ms + 1);
        for instance in 0..self.instances.len() {
            if let Some(machine) = self.instances.get_mut(instance) {
                machine.borrowed = None;
            }
            self.hold_start(instance, 0);
            let after_ms = self.random_ms(3_000);
            self.plan_start(instance, after_ms);
        }
        for (phase, number) in std::mem::take(&mut self.held_back) {
            self.feed(phase, number);
        }
        self.plan_disruption();
    }

    fn strike_hanging(&mut self) {
        let topics: Vec<_> = self.scenario.trimmable.iter().cloned().collect();
        let chosen = usize::try_from(self.rng.below(topics.len() as u64)).unwrap_or(0);
        let Some(topic) = topics.get(chosen) else { return };
        let count = u64::try_from(self.broker.partitions(topic).unwrap_or(1)).unwrap_or(1);
        let partition = i32::try_from(self.rng.below(count)).unwrap_or(0);
        let topic_partition = TopicPartition::new(&**topic, partition);
        self.hung_input = Some(topic_partition.clone());
        self.hang(&topic_partition, other_record());
    }

    /// The thread that reads the input must tell of it, then somebody aborts it.
    fn watch_hanging(&mut self) {
        if !self.healed || self.now_ms - self.weather.until_ms < HANGS_MS {
            return;
        }
        let Some(topic_partition) = self.hung_input.take() else {
            return;
        };
        let mut threads = self
            .instances
            .iter()
            .flat_map(|machine| machine.threads.iter().flatten());
        let told = threads.any(|thread| {
            let hanging = thread.core.status().hanging;
            hanging.iter().any(|found| found.topic_partition == topic_partition)
        });
        if !told {
            let what = format!(
                "nobody tells of the hanging transaction in {topic_partition}. {}",
                self.show()
            );
            return self.fail(what);
        }
        self.weather.count(Calamity::Hangs.name());
        self.note(|| "the hanging transaction is aborted".to_owned());
        self.end_foreign();
        self.weather.until_ms = self.now_ms;
    }
}
