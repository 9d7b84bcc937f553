//! What brokers do to logs by themselves: compaction, and retention that only takes what nobody may miss.

use std::collections::{BTreeMap, VecDeque};

use streams_core::TopicPartition;
use streams_core::test_driver::Log;
use streams_state::Cleanup;

use super::world::World;

/// `delete.retention.ms` of the changelogs: so long a deletion stays at least.
pub(super) const DELETE_RETENTION_MS: i64 = 120_000;
/// How often it is noted where the logs end.
const NOTE_MS: i64 = 5_000;

/// Where changelogs ended at some times, to know how old their records are.
#[derive(Debug, Default)]
pub(super) struct Ages {
    ends: BTreeMap<TopicPartition, VecDeque<(i64, i64)>>,
    noted_ms: i64,
}

impl Ages {
    /// The first offset that is younger than `ms`.
    fn end_at(&self, topic_partition: &TopicPartition, ms: i64) -> i64 {
        let ends = self.ends.get(topic_partition);
        let known = ends.and_then(|ends| ends.iter().rev().find(|(at_ms, _)| *at_ms <= ms));
        known.map_or(0, |(_, end)| *end)
    }
}

impl World<'_> {
    pub(super) fn changelog_partitions(&self) -> Vec<(usize, TopicPartition)> {
        let changelogs = self.scenario.changelogs.iter().enumerate();
        let partitions = changelogs.flat_map(|(number, changelog)| {
            let count = self.broker.partitions(&changelog.topic).unwrap_or(0);
            (0..count).map(move |partition| (number, TopicPartition::new(changelog.topic.as_str(), partition)))
        });
        partitions.collect()
    }

    pub(super) fn note_ages(&mut self) {
        if self.now_ms - self.ages.noted_ms < NOTE_MS {
            return;
        }
        self.ages.noted_ms = self.now_ms;
        for (_, topic_partition) in self.changelog_partitions() {
            let end = self.broker.log(&topic_partition).map_or(0, Log::high_watermark);
            let ends = self.ages.ends.entry(topic_partition).or_default();
            ends.push_back((self.now_ms, end));
        }
    }

    /// Changelogs are compacted up to somewhere. Deletions go when they are old enough.
    pub(super) fn compact(&mut self) {
        for (number, topic_partition) in self.changelog_partitions() {
            let compacts = self.scenario.changelogs.get(number);
            if compacts.is_none_or(|changelog| changelog.cleanup == Cleanup::Delete || changelog.keeps_versions) {
                continue;
            }
            let below = i64::try_from(self.rng.below(200)).unwrap_or(0);
            let old = self.ages.end_at(&topic_partition, self.now_ms - DELETE_RETENTION_MS);
            if let Some(log) = self.broker.log_mut(&topic_partition) {
                log.compact(below, true);
                if log.compact(old, false) > 0 {
                    self.weather.count("old deletions compacted away");
                }
            }
        }
    }

    /// The start of changelogs moves up to where nothing is lost that somebody still needs: behind records of windows that
    /// are over (retention), or before the first record that is still its key's last (somebody deleted records).
    pub(super) fn trim_changelogs(&mut self) -> bool {
        let mut trimmed = false;
        for (number, topic_partition) in self.changelog_partitions() {
            let Some(changelog) = self.scenario.changelogs.get(number) else {
                continue;
            };
            if changelog.keeps_versions {
                continue;
            }
            let (cleanup, keep_ms) = (changelog.cleanup, changelog.keep_ms);
            let Some(log) = self.broker.log_mut(&topic_partition) else {
                continue;
            };
            let most = match cleanup {
                Cleanup::Compact => first_needed(log),
                Cleanup::Delete | Cleanup::CompactDelete => first_kept(log, keep_ms),
            };
            let before = log.log_start();
            if most > before {
                let to = most - i64::try_from(self.rng.below(3)).unwrap_or(0).min(most - before - 1);
                log.delete_before(to);
                self.note(|| format!("{topic_partition} begins at {to} now"));
                trimmed = true;
            }
        }
        trimmed
    }

    /// Inputs lose what is processed and committed.
    pub(super) fn trim_inputs(&mut self) -> bool {
        let mut trimmed = false;
        for topic in &self.scenario.trimmable {
            for partition in 0..self.scenario.topics.partitions(topic).unwrap_or(0) {
                let topic_partition = TopicPartition::new(&**topic, partition);
                let committed = self.broker.committed(&topic_partition).map_or(0, |(offset, _)| *offset);
                let to = committed - i64::try_from(self.rng.below(3)).unwrap_or(0);
                if let Some(log) = self.broker.log_mut(&topic_partition)
                    && to > log.log_start()
                {
                    log.delete_before(to);
                    trimmed = true;
                }
            }
        }
        trimmed
    }
}

/// The first record that is its key's last and no deletion.
fn first_needed(log: &Log) -> i64 {
    let mut last = BTreeMap::new();
    for record in log.read_committed(log.log_start(), usize::MAX).0 {
        last.insert(record.key, (record.offset, record.value.is_some()));
    }
    let needed = last.into_values().filter(|(_, is_row)| *is_row);
    let first = needed.map(|(offset, _)| offset).min();
    first.unwrap_or_else(|| log.last_stable_offset())
}

/// The first record that is not older than the last one by more than the retention.
fn first_kept(log: &Log, keep_ms: i64) -> i64 {
    let (records, end) = log.read_committed(log.log_start(), usize::MAX);
    let newest_ms = records.iter().map(|record| record.timestamp_ms).max().unwrap_or(0);
    let kept = records.iter().find(|record| record.timestamp_ms + keep_ms >= newest_ms);
    kept.map_or(end, |record| record.offset)
}
