//! A task's part of a commit: close the epoch, name the offsets, then apply or forget; and of a claim.

use streams_state::{EpochMetadata, StoreMetadata, TaskState};

use super::Task;
use super::queue::PartitionQueue;
use crate::TopicPartition;
use crate::codec::CommitMetadata;
use crate::error::{Error, ProcessResult};
use crate::fetch::PartitionId;
use crate::processor::Schedules;

/// An offset as it stands in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The input partition.
    pub topic_partition: TopicPartition,
    /// The next offset to process.
    pub offset: i64,
    /// The leader epoch of the last processed record; -1 when unknown.
    pub leader_epoch: i32,
    /// Base64 text: partition time and operator clocks (`TopicPartitionMetadata`).
    pub metadata: String,
}

/// What is known of the input offsets when an epoch is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// They are committed, in one transaction with the changelog (exactly once).
    Committed,
    /// They are not: the changelog is visible before them, so the state may be ahead (at least once, design rule 2.7).
    Ahead,
    /// They were committed before anything was processed (at most once).
    Claimed,
}

/// The entry of a claim's metadata that no other claim has. Java keeps entries that it does not know.
const CLAIM: &str = "claim";

/// What a task contributes to a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskEpoch {
    pub(crate) offsets: Vec<CommittedOffset>,
    operator_times: Vec<(String, i64)>,
    pub(crate) schedules: Schedules,
    /// Whether an input's offset moved: then what the group has tells whether the epoch was committed.
    pub(crate) moved: bool,
}

impl Task {
    /// Flushes the caches (which may process downstream), freezes the overlay and names the offsets: every input whose
    /// position or metadata moved, and at least one input of a task that did anything, since a transaction without
    /// offsets has no group fencing (design rule 1.2).
    pub(crate) fn close_epoch(&mut self) -> ProcessResult<TaskEpoch> {
        let span = self.span.clone();
        let _task = span.enter();
        self.stores.flush(&mut self.cx)?;
        while self.cx.has_bad_records() {
            self.cx.forward_bad_records()?;
            self.cx.without_bad_records(|cx| self.stores.flush(cx))?;
        }
        self.cx.unlogged()?;
        self.cx.state.freeze().map_err(|source| Error::state(self.id, source))?;
        let operator_times: Vec<(String, i64)> = self
            .cx
            .operator_times()
            .map(|(key, time)| (key.to_owned(), time))
            .collect();
        let (mut offsets, mut moved) = (Vec::new(), false);
        for queue in &self.queues {
            let offset = self.offset_of(queue, queue.position(), None)?;
            moved |= queue.committed != Some(offset.offset);
            if self.is_touched() || queue.committed != Some(offset.offset) {
                offsets.push(offset);
            }
        }
        // What is processed from now on belongs to the next epoch, also while this one is being committed.
        self.touched = false;
        self.cx.commit_requested = false;
        Ok(TaskEpoch {
            offsets,
            operator_times,
            schedules: self.cx.punctuations.next_times(),
            moved,
        })
    }

    /// An offset to commit, with the clocks as they are now.
    fn offset_of(&self, queue: &PartitionQueue, offset: i64, claim: Option<i64>) -> ProcessResult<CommittedOffset> {
        let clocks = self.cx.operator_times().chain(claim.map(|number| (CLAIM, number)));
        let metadata = CommitMetadata {
            partition_time_ms: (queue.partition_time_ms >= 0).then_some(queue.partition_time_ms),
            entries: clocks.map(|(key, time)| (key.into(), time)).collect(),
        };
        Ok(CommittedOffset {
            topic_partition: queue.topic_partition.clone(),
            offset,
            leader_epoch: queue.leader_epoch(),
            metadata: metadata
                .encode()
                .map_err(|error| Error::bug(format!("offset-commit metadata of task {}: {error}", self.id)))?,
        })
    }

    /// What a claim of up to `most` waiting records of each input commits (design rule 7). `number` is no other claim's.
    pub(crate) fn claimable(&self, most: usize, number: i64) -> ProcessResult<Vec<(PartitionId, CommittedOffset)>> {
        let mut offsets = Vec::new();
        for queue in &self.queues {
            if let Some(offset) = queue.claimable(most) {
                offsets.push((queue.id, self.offset_of(queue, offset, Some(number))?));
            }
        }
        Ok(offsets)
    }

    /// A claim succeeded: its records may be processed.
    pub(crate) fn claim(&mut self, partition: PartitionId, offset: i64) -> ProcessResult {
        self.queue_mut(partition)?.claim(offset);
        Ok(())
    }

    /// The offsets of an epoch that is applied are committed too.
    pub(crate) fn offsets_committed(&mut self, epoch: &TaskEpoch) {
        self.ahead = false;
        for offset in &epoch.offsets {
            if let Some(queue) = self.queue_of(&offset.topic_partition) {
                queue.committed = Some(offset.offset);
            }
        }
    }

    fn queue_of(&mut self, topic_partition: &TopicPartition) -> Option<&mut PartitionQueue> {
        self.queues
            .iter_mut()
            .find(|queue| queue.topic_partition == *topic_partition)
    }

    /// Every changelog record of the epoch is acknowledged, under exactly-once the transaction is committed: the frozen
    /// overlay and the metadata go into the store in one batch. `acked` gives the highest acknowledged changelog offset of a
    /// slot in this epoch. The state never claims to contain inputs that the group does not know to be processed.
    pub(crate) fn apply(
        &mut self,
        epoch: &TaskEpoch,
        now_ms: i64,
        acked: &dyn Fn(u32) -> Option<i64>,
        applied: Applied,
    ) -> ProcessResult {
        let span = self.span.clone();
        let _task = span.enter();
        let inputs = self.contained_inputs(epoch, applied);
        let state = &mut self.cx.state;
        let stores = self.changelogs.iter().filter_map(|(store, slot)| {
            let changelog_topic_id = state
                .store_metadata(*store)
                .and_then(|before| before.changelog_topic_id);
            let position = acked(*slot)? + 1;
            Some((
                *store,
                StoreMetadata {
                    changelog_topic_id,
                    position,
                    // Only a transaction leaves a marker of its own behind the last record (design rule 2.1).
                    own_commit: applied == Applied::Committed,
                    applied_at_ms: now_ms,
                },
            ))
        });
        let from_inputs = self.source_changelogs.iter().filter_map(|(store, topic)| {
            let changelog_topic_id = state
                .store_metadata(*store)
                .and_then(|before| before.changelog_topic_id);
            let (_, offset) = inputs.iter().find(|(input, _)| input.topic == *topic)?;
            let metadata = StoreMetadata {
                changelog_topic_id,
                position: *offset,
                own_commit: false,
                applied_at_ms: now_ms,
            };
            Some((*store, metadata))
        });
        let metadata = EpochMetadata {
            stores: stores.chain(from_inputs).collect(),
            input_offsets: inputs
                .iter()
                .map(|(input, offset)| ((input.topic.to_string(), input.partition), *offset))
                .collect(),
            // A copy that belongs to the offsets.
            operator_times: match applied {
                Applied::Ahead => Vec::new(),
                Applied::Committed | Applied::Claimed => epoch.operator_times.clone(),
            },
            now_ms,
        };
        state.apply(&metadata).map_err(|source| Error::state(self.id, source))?;
        match applied {
            Applied::Committed => self.offsets_committed(epoch),
            Applied::Ahead => self.ahead = true,
            Applied::Claimed => {}
        }
        self.committed_schedules.clone_from(&epoch.schedules);
        Ok(())
    }

    /// Up to where the state contains the inputs, as far as the group knows: what lies beyond the committed offsets is read
    /// again by whoever goes on (design rules 2.5 and 2.7).
    fn contained_inputs(&self, epoch: &TaskEpoch, applied: Applied) -> Vec<(TopicPartition, i64)> {
        let contained = |offset: &CommittedOffset| {
            let queue = self
                .queues
                .iter()
                .find(|queue| queue.topic_partition == offset.topic_partition);
            let known = queue.and_then(|queue| queue.committed);
            let up_to = match applied {
                Applied::Committed => Some(offset.offset),
                Applied::Ahead | Applied::Claimed => known.map(|known| known.min(offset.offset)),
            };
            up_to.map(|up_to| (offset.topic_partition.clone(), up_to))
        };
        epoch.offsets.iter().filter_map(contained).collect()
    }

    /// Gives up everything that is not committed and hands the store back: the nodes, caches, clocks and queues are
    /// gone, and whoever goes on makes new ones from their factories (design rule 1.3).
    pub(crate) fn into_committed(mut self) -> (TaskState, Schedules) {
        self.close_nodes();
        let Task {
            mut cx,
            committed_schedules,
            ..
        } = self;
        cx.state.drop_all();
        (cx.state, committed_schedules)
    }

    /// Closes a task that has nothing uncommitted and hands its store back.
    pub(crate) fn close(self) -> ProcessResult<TaskState> {
        if self.cx.state.is_dirty() || self.cx.state.has_frozen() {
            return Err(Error::bug(format!("task {} is closed with uncommitted work", self.id)));
        }
        Ok(self.into_committed().0)
    }

    fn close_nodes(&mut self) {
        for hook in std::mem::take(&mut self.close_hooks) {
            // A panic in a user's close must not keep the others from closing.
            if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hook(&mut self.cx))) {
                let message = crate::processor::panic_message(&*panic);
                tracing::warn!(task_id = %self.id, message, "a processor's close failed");
            }
        }
    }
}
