//! Inputs that stand still below the end of their log: somebody's transaction was never ended (design rule 5.2).
//!
//! Reading committed, a consumer gets no further than the oldest open transaction of the partition. The broker ends every
//! transaction within its `transaction.max.timeout.ms` (15 minutes); one that is open for longer hangs.

use std::collections::{BTreeMap, BTreeSet};

use super::core::StreamThreadCore;
use super::effect::Effect;
use super::slot::Slot;
use crate::TopicPartition;
use crate::fetch::PartitionId;

/// A position that did not move for this long is looked at: the longest time a broker lets a transaction be open.
pub(crate) const HANGING_MS: i64 = 900_000;
/// How often positions are looked at.
const LOOK_MS: i64 = 60_000;

/// A partition that stands still below its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HangingTransaction {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// The offset that its reader can't pass.
    pub offset: i64,
    /// The end of the log.
    pub end: i64,
    /// Since when the reader stands there, milliseconds since the Unix epoch.
    pub since_ms: i64,
}

struct Standing {
    topic_partition: TopicPartition,
    position: i64,
    since_ms: i64,
}

/// Where inputs stand and since when.
#[derive(Default)]
pub(super) struct HangingWatch {
    standing: BTreeMap<PartitionId, Standing>,
    found: BTreeMap<PartitionId, HangingTransaction>,
    /// Partitions that were told of, so that each is told of once.
    told: BTreeSet<TopicPartition>,
    next_ms: i64,
}

impl HangingWatch {
    pub(super) fn found(&self) -> Vec<HangingTransaction> {
        self.found.values().cloned().collect()
    }
}

impl StreamThreadCore {
    /// Notes where the inputs stand; answers whether some stand so long that the cluster is to be asked for their ends.
    pub(super) fn is_look_due(&mut self, now_ms: i64) -> bool {
        if now_ms < self.hanging.next_ms {
            return false;
        }
        self.hanging.next_ms = now_ms + LOOK_MS;
        let before = std::mem::take(&mut self.hanging.standing);
        let running = self.tasks.values().filter_map(|slot| match slot {
            Slot::Running(task) => Some(task),
            _ => None,
        });
        // Records that wait in a queue are this thread's own to process: nobody's transaction holds them.
        let idle = running.flat_map(|task| task.waiting_positions());
        let stand = |(id, topic_partition, position): (PartitionId, &TopicPartition, i64)| {
            let known = before.get(&id).filter(|standing| standing.position == position);
            let standing = Standing {
                topic_partition: topic_partition.clone(),
                position,
                since_ms: known.map_or(now_ms, |standing| standing.since_ms),
            };
            (id, standing)
        };
        let standing: BTreeMap<_, _> = idle.map(stand).collect();
        self.hanging.found.retain(|id, found| {
            standing
                .get(id)
                .is_some_and(|standing| standing.position == found.offset)
        });
        self.hanging.standing = standing;
        self.stuck(now_ms).next().is_some()
    }

    fn stuck(&self, now_ms: i64) -> impl Iterator<Item = &TopicPartition> {
        let long = move |standing: &&Standing| now_ms - standing.since_ms >= HANGING_MS;
        self.hanging
            .standing
            .values()
            .filter(long)
            .map(|standing| &standing.topic_partition)
    }

    pub(super) fn ends_effect(&self, now_ms: i64) -> Option<Effect> {
        let partitions: Vec<_> = self.stuck(now_ms).cloned().collect();
        (!partitions.is_empty()).then_some(Effect::ListEnds { partitions })
    }

    pub(super) fn ends_known(&mut self, ends: &BTreeMap<TopicPartition, i64>, now_ms: i64) {
        let HangingWatch {
            standing, found, told, ..
        } = &mut self.hanging;
        for (id, standing) in standing {
            let Some(end) = ends.get(&standing.topic_partition).copied() else {
                continue;
            };
            if standing.position >= end {
                // A quiet topic; asked again after as long.
                standing.since_ms = now_ms;
                found.remove(id);
                continue;
            }
            let (at, offset) = (&standing.topic_partition, standing.position);
            if told.insert(at.clone()) {
                tracing::error!(
                    topic = &*at.topic,
                    partition = at.partition,
                    offset,
                    end,
                    waited_ms = now_ms - standing.since_ms,
                    "an open transaction of another producer holds the input, and no broker keeps one open for so long: find it with kafka-transactions.sh find-hanging and abort it"
                );
            }
            found.insert(
                *id,
                HangingTransaction {
                    topic_partition: at.clone(),
                    offset,
                    end,
                    since_ms: standing.since_ms,
                },
            );
        }
    }
}
