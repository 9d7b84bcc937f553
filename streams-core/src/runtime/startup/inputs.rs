//! Where a task's inputs start: committed offsets, or the reset policy.

use std::collections::BTreeMap;

use super::UNRESOLVED;
use crate::error::{Error, ProcessResult};
use crate::fetch::PartitionId;
use crate::runtime::core::StreamThreadCore;
use crate::runtime::effect::{Effect, ResetTo};
use crate::runtime::slot::Slot;
use crate::task::TaskInput;
use crate::topology::{AutoOffsetReset, NodeKind};
use crate::{TaskId, TopicPartition};

impl StreamThreadCore {
    /// The input partitions of a task: its partition of every source topic that has so many.
    pub(super) fn input_partitions(&self, task: TaskId) -> ProcessResult<Vec<TopicPartition>> {
        let mut partitions = Vec::new();
        for topic in self.subtopology(task)?.source_topics.keys() {
            let count = self.topics.partitions(topic).ok_or_else(|| {
                Box::new(Error::Topics {
                    message: format!("source topic {topic} of task {task} does not exist: create it"),
                })
            })?;
            if task.partition < count {
                partitions.push(TopicPartition::new(&**topic, task.partition));
            }
        }
        Ok(partitions)
    }

    pub(super) fn committed_known(&mut self, offsets: Vec<(TopicPartition, Option<(i64, String)>)>) -> ProcessResult {
        let offsets: BTreeMap<_, _> = offsets.into_iter().collect();
        let waiting: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Waiting { .. }))
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            let mut inputs = Vec::new();
            for topic_partition in self.input_partitions(id)? {
                let committed = offsets
                    .get(&topic_partition)
                    .ok_or_else(|| Error::bug(format!("no answer for {topic_partition}")))?
                    .clone();
                let reset = self.reset_next.remove(&topic_partition);
                let start_offset = committed
                    .as_ref()
                    .filter(|_| !reset)
                    .map_or(UNRESOLVED, |(offset, _)| *offset);
                inputs.push(TaskInput {
                    topic_partition,
                    id: self.new_partition_id(),
                    start_offset,
                    committed,
                });
            }
            if let Some(slot) = self.tasks.get_mut(&id) {
                if let Slot::Waiting { state, schedules } = slot {
                    *slot = Slot::Starting {
                        state: state.take(),
                        schedules: std::mem::take(schedules),
                        inputs,
                    };
                }
            }
        }
        Ok(())
    }

    fn new_partition_id(&mut self) -> PartitionId {
        self.next_partition = self.next_partition.wrapping_add(1);
        PartitionId(self.next_partition)
    }

    pub(super) fn resolve_effect(&self) -> ProcessResult<Effect> {
        let mut partitions = Vec::new();
        for slot in self.tasks.values() {
            let Slot::Starting { inputs, .. } = slot else { continue };
            for input in inputs.iter().filter(|input| input.start_offset == UNRESOLVED) {
                let topic = &input.topic_partition.topic;
                let reset = match self.reset_of(topic) {
                    AutoOffsetReset::Configured => self.settings.reset,
                    AutoOffsetReset::Earliest => Some(ResetTo::Earliest),
                    AutoOffsetReset::Latest => Some(ResetTo::Latest),
                    AutoOffsetReset::None => None,
                };
                // Repartition topics always start at their beginning: what lies there was written by this application.
                let reset = if self.plan.reads_repartition(topic) {
                    Some(ResetTo::Earliest)
                } else {
                    reset
                };
                let reset = reset.ok_or_else(|| Box::new(Error::Topics {
                    message: format!("{} has no committed offset and auto.offset.reset is none: set it to earliest or latest, or set the group's offset", input.topic_partition),
                }))?;
                partitions.push((input.topic_partition.clone(), reset));
            }
        }
        Ok(Effect::ResolveReset { partitions })
    }

    fn reset_of(&self, topic: &str) -> AutoOffsetReset {
        let node = self
            .plan
            .subtopologies
            .iter()
            .find_map(|subtopology| subtopology.source_topics.get(topic));
        match node
            .and_then(|node| self.topology.nodes().get(*node))
            .map(|node| &node.kind)
        {
            Some(NodeKind::Source { reset, .. }) => *reset,
            _ => AutoOffsetReset::Configured,
        }
    }

    pub(super) fn starts_known(&mut self, offsets: &[(TopicPartition, i64)]) {
        for slot in self.tasks.values_mut() {
            let Slot::Starting { inputs, .. } = slot else { continue };
            for input in inputs.iter_mut().filter(|input| input.start_offset == UNRESOLVED) {
                if let Some((_, offset)) = offsets.iter().find(|(tp, _)| *tp == input.topic_partition) {
                    input.start_offset = *offset;
                }
            }
        }
    }
}
