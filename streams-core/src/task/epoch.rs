//! A task's part of a commit: close the epoch, name the offsets, then apply or forget.

use streams_state::{EpochMetadata, StoreMetadata, TaskState};

use super::Task;
use crate::TopicPartition;
use crate::codec::CommitMetadata;
use crate::error::{Error, ProcessResult};
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
        self.cx.state.freeze().map_err(|source| Error::state(self.id, source))?;
        let operator_times: Vec<(String, i64)> = self
            .cx
            .operator_times()
            .map(|(key, time)| (key.to_owned(), time))
            .collect();
        let (mut offsets, mut moved) = (Vec::new(), false);
        for queue in &self.queues {
            let metadata = CommitMetadata {
                partition_time_ms: (queue.partition_time_ms >= 0).then_some(queue.partition_time_ms),
                entries: operator_times
                    .iter()
                    .map(|(key, time)| (key.as_str().into(), *time))
                    .collect(),
            };
            let offset = CommittedOffset {
                topic_partition: queue.topic_partition.clone(),
                offset: queue.position(),
                leader_epoch: queue.leader_epoch(),
                metadata: metadata
                    .encode()
                    .map_err(|error| Error::bug(format!("offset-commit metadata of task {}: {error}", self.id)))?,
            };
            moved |= queue.committed != Some(offset.offset);
            if self.touched || queue.committed != Some(offset.offset) {
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

    /// The transaction succeeded: the frozen overlay and the metadata go into the store in one batch. `acked` gives the
    /// highest acknowledged changelog offset of a slot in this epoch.
    pub(crate) fn apply(
        &mut self,
        epoch: &TaskEpoch,
        now_ms: i64,
        acked: &dyn Fn(u32) -> Option<i64>,
    ) -> ProcessResult {
        let span = self.span.clone();
        let _task = span.enter();
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
                    own_commit: true,
                    applied_at_ms: now_ms,
                },
            ))
        });
        let from_inputs = self.source_changelogs.iter().filter_map(|(store, topic)| {
            let changelog_topic_id = state
                .store_metadata(*store)
                .and_then(|before| before.changelog_topic_id);
            let input = epoch.offsets.iter().find(|o| o.topic_partition.topic == *topic)?;
            let metadata = StoreMetadata {
                changelog_topic_id,
                position: input.offset,
                own_commit: false,
                applied_at_ms: now_ms,
            };
            Some((*store, metadata))
        });
        let metadata = EpochMetadata {
            stores: stores.chain(from_inputs).collect(),
            input_offsets: epoch
                .offsets
                .iter()
                .map(|o| {
                    (
                        (o.topic_partition.topic.to_string(), o.topic_partition.partition),
                        o.offset,
                    )
                })
                .collect(),
            operator_times: epoch.operator_times.clone(),
            now_ms,
        };
        state.apply(&metadata).map_err(|source| Error::state(self.id, source))?;
        for offset in &epoch.offsets {
            if let Some(queue) = self
                .queues
                .iter_mut()
                .find(|queue| queue.topic_partition == offset.topic_partition)
            {
                queue.committed = Some(offset.offset);
            }
        }
        self.committed_schedules.clone_from(&epoch.schedules);
        Ok(())
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
