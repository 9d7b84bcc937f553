//! What a task knows about its state: how far each store has applied its changelog, and which inputs it contains.

use std::collections::BTreeMap;

use crate::spec::StoreId;

/// How far a store has applied its changelog.
///
/// Source of the rules: rule 2.1 of the project's design; Java keeps the offset alone (KIP-1035).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreMetadata {
    /// Topic id of the changelog, when the broker told it: a topic that was deleted and made again is seen by it.
    pub changelog_topic_id: Option<[u8; 16]>,
    /// The next offset to apply: everything below it is in the store. After a restore the consumer's position (at most
    /// the listed end of the log), after a commit 1 + the highest acknowledged offset of the epoch's changelog records.
    pub position: i64,
    /// The last apply followed our own exactly-once commit: the entry at `position` is our own transaction marker.
    pub own_commit: bool,
    /// Wall-clock time of the last apply, milliseconds since the Unix epoch. An apply of the task counts for all its
    /// stores, because the task was the only writer of their changelogs then.
    pub applied_at_ms: i64,
}

/// What is written together with the frozen epoch's rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochMetadata {
    /// New metadata of the stores that have some; the others keep theirs.
    pub stores: Vec<(StoreId, StoreMetadata)>,
    /// New next offsets of the task's inputs, (topic, partition); the others keep theirs.
    pub input_offsets: Vec<((String, i32), i64)>,
    /// Operator times by name, milliseconds of event time. A copy: the truth rides in the committed offsets' metadata.
    pub operator_times: Vec<(String, i64)>,
    /// Wall-clock time of the apply, milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// The metadata of a whole task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TaskMetadata {
    pub(crate) stores: Vec<Option<StoreMetadata>>,
    pub(crate) input_offsets: BTreeMap<(String, i32), i64>,
    pub(crate) operator_times: BTreeMap<String, i64>,
}

impl TaskMetadata {
    pub(crate) fn empty(stores: usize) -> Self {
        Self {
            stores: vec![None; stores],
            ..Self::default()
        }
    }

    /// Takes over what an epoch brought.
    pub(crate) fn merge(&mut self, epoch: &EpochMetadata) {
        for (id, metadata) in &epoch.stores {
            self.set_store(*id, Some(*metadata));
        }
        for metadata in self.stores.iter_mut().flatten() {
            metadata.applied_at_ms = metadata.applied_at_ms.max(epoch.now_ms);
        }
        for (partition, offset) in &epoch.input_offsets {
            match self.input_offsets.get_mut(partition) {
                Some(known) => *known = *offset,
                None => drop(self.input_offsets.insert(partition.clone(), *offset)),
            }
        }
        for (name, time_ms) in &epoch.operator_times {
            match self.operator_times.get_mut(name) {
                Some(known) => *known = *time_ms,
                None => drop(self.operator_times.insert(name.clone(), *time_ms)),
            }
        }
    }

    pub(crate) fn set_store(&mut self, id: StoreId, metadata: Option<StoreMetadata>) {
        if let Some(slot) = self.stores.get_mut(id.index()) {
            *slot = metadata;
        }
    }
}
