//! What to do when a store meets its changelog at a start: one pure function per question, a test per rule.

use std::collections::BTreeMap;

use crate::metadata::StoreMetadata;

/// Clean-up policy of a changelog topic (`cleanup.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// The last record of each key is kept; deletions go after `delete.retention.ms`.
    Compact,
    /// Old segments are deleted.
    Delete,
    /// Both: what Kafka Streams sets for window changelogs.
    CompactDelete,
}

/// What the broker says about a changelog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangelogFacts {
    /// The topic's id, if known.
    pub topic_id: Option<[u8; 16]>,
    /// First offset of the log.
    pub log_start: i64,
    /// End of the log, listed read-uncommitted, after the committed offsets were read (rule 1.6).
    pub high_watermark: i64,
    /// The topic's clean-up policy.
    pub cleanup: Cleanup,
    /// The topic's `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// When the changelog is a source topic of the task: the group's committed offset (the log start if there is none).
    /// `None` for a changelog of our own.
    pub source_topic_committed: Option<i64>,
}

/// What a store has to do before it may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The store is current: nothing is fetched.
    Current,
    /// Replay the records from the store's position up to `to`; offsets, `to` excluded.
    Tail {
        /// First offset to read.
        from: i64,
        /// The consumer's position that ends the restore.
        to: i64,
    },
    /// Empty the store and replay the whole log.
    FullRestore {
        /// Why.
        reason: RestoreReason,
        /// First offset to read.
        from: i64,
        /// The consumer's position that ends the restore.
        to: i64,
    },
    /// The log's retention deleted records that the store has not seen: keep the rows and go on from the log's start.
    KeepRowsFrom {
        /// First offset to read.
        from: i64,
        /// The consumer's position that ends the restore; may equal `from`.
        to: i64,
    },
    /// Stop and explain; nothing is deleted without being asked.
    Stop {
        /// Why.
        reason: StopReason,
    },
}

/// Why a store is restored from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreReason {
    /// The store is new, in memory, or was left in the middle of a restore.
    NoPosition,
    /// Compaction removed what lies behind the store's position.
    CompactedAway,
    /// The store is not current and so old that deletions it has not seen may be gone from the log.
    DeletionsMayBeGone,
}

impl std::fmt::Display for RestoreReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoPosition => "there is no earlier state",
            Self::CompactedAway => "the changelog was compacted beyond the position of the local state",
            Self::DeletionsMayBeGone => "the local state is older than half of the changelog's delete.retention.ms",
        })
    }
}

/// Why a task must not start by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The changelog is another topic than the one the store was written with.
    TopicRecreated,
    /// The store has seen offsets that the changelog does not have (truncated, or recreated).
    PositionBeyondEnd {
        /// The store's position.
        position: i64,
        /// The log's end.
        end: i64,
    },
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TopicRecreated => {
                f.write_str("the changelog topic was deleted and made again since this state was written")
            }
            Self::PositionBeyondEnd { position, end } => {
                write!(
                    f,
                    "the state has applied the changelog up to offset {position}, but the log ends at {end}"
                )
            }
        }
    }
}

/// Compares a store with its changelog (rules 2.1, 2.3, 2.4).
///
/// `metadata` is what the store knows (`None`: nothing), `now_ms` the wall clock in milliseconds since the Unix epoch.
///
/// A compacted-and-deleted changelog that was trimmed keeps its rows even when the store is old: a full restore would
/// lose the rows whose records retention removed, while a deletion that was missed ends with the row's window.
#[must_use]
pub fn assess(metadata: Option<&StoreMetadata>, log: &ChangelogFacts, now_ms: i64) -> Verdict {
    // A source topic is its own changelog only up to what was processed (rule 2.3).
    let to = log
        .source_topic_committed
        .map_or(log.high_watermark, |committed| committed.min(log.high_watermark));
    let Some(metadata) = metadata else {
        let from = log.log_start;
        return Verdict::FullRestore {
            reason: RestoreReason::NoPosition,
            from,
            to: to.max(from),
        };
    };
    if let (Some(known), Some(found)) = (metadata.changelog_topic_id, log.topic_id)
        && known != found
    {
        return Verdict::Stop {
            reason: StopReason::TopicRecreated,
        };
    }
    let position = metadata.position;
    if position > log.high_watermark {
        let reason = StopReason::PositionBeyondEnd {
            position,
            end: log.high_watermark,
        };
        return Verdict::Stop { reason };
    }
    // The one entry at the position is our own transaction's marker (rule 2.1).
    let marker = i64::from(metadata.own_commit && log.source_topic_committed.is_none());
    if to <= position + marker {
        return Verdict::Current;
    }
    if position < log.log_start && log.cleanup != Cleanup::Compact {
        return Verdict::KeepRowsFrom {
            from: log.log_start,
            to: to.max(log.log_start),
        };
    }
    let full = |reason| Verdict::FullRestore {
        reason,
        from: log.log_start,
        to: to.max(log.log_start),
    };
    if position < log.log_start {
        return full(RestoreReason::CompactedAway);
    }
    let trimmed = log.cleanup == Cleanup::CompactDelete && log.log_start > 0;
    let age_ms = now_ms.saturating_sub(metadata.applied_at_ms);
    if log.cleanup != Cleanup::Delete && !trimmed && age_ms > log.delete_retention_ms / 2 {
        return full(RestoreReason::DeletionsMayBeGone);
    }
    Verdict::Tail { from: position, to }
}

/// An input whose committed offset lies below what the state contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDisagreement {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Next offset that the state expects.
    pub in_state: i64,
    /// The group's committed offset; `None`: there is none (expired or reset).
    pub committed: Option<i64>,
}

impl std::fmt::Display for InputDisagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            topic,
            partition,
            in_state,
            ..
        } = self;
        match self.committed {
            Some(committed) => write!(
                f,
                "{topic}-{partition}: the state contains the input up to {in_state}, committed is {committed}"
            ),
            None => write!(
                f,
                "{topic}-{partition}: the state contains the input up to {in_state}, nothing is committed"
            ),
        }
    }
}

/// The inputs that would be read again over state which contains them already (rule 2.5): the group's offsets expired or
/// were reset. Any entry means: stop and explain (options: go on from the state's offsets, rebuild, accept).
///
/// `in_state` is [`crate::TaskState::input_offsets`]; `committed` has an entry for each input the task has now, `None`
/// where nothing is committed. Inputs that the task has no more are ignored; a higher committed offset is normal (a crash
/// before the apply, or work of another instance).
#[must_use]
pub fn disagreeing_inputs(
    in_state: &BTreeMap<(String, i32), i64>,
    committed: &BTreeMap<(String, i32), Option<i64>>,
) -> Vec<InputDisagreement> {
    let mut found = Vec::new();
    for ((topic, partition), in_state) in in_state {
        let Some(committed) = committed.get(&(topic.clone(), *partition)) else {
            continue;
        };
        if committed.is_none_or(|committed| committed < *in_state) {
            let (topic, committed) = (topic.clone(), *committed);
            found.push(InputDisagreement {
                topic,
                partition: *partition,
                in_state: *in_state,
                committed,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests;
