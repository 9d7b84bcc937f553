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
            self.look_at_undecided(id, &offsets);
            let mut inputs = Vec::new();
            for topic_partition in self.input_partitions(id)? {
                let committed = offsets
                    .get(&topic_partition)
                    .ok_or_else(|| Error::bug(format!("no answer for {topic_partition}")))?
                    .clone();
                // Where somebody has committed beyond the refused offset meanwhile, that is where to go on.
                let refused = self.reset_next.remove(&topic_partition);
                let reset = refused.is_some_and(|refused| {
                    let beyond = |(offset, _): &(i64, String)| refused >= 0 && *offset > refused;
                    !committed.as_ref().is_some_and(beyond)
                });
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

    /// An epoch of the task was given up without knowing whether it was committed. If the group has its offsets, it was: its
    /// punctuations are done, and their schedules stand. An epoch that moved no offset does not tell; then its punctuations
    /// run again.
    fn look_at_undecided(&mut self, id: TaskId, committed: &BTreeMap<TopicPartition, Option<(i64, String)>>) {
        let Some(epoch) = self.undecided.remove(&id).filter(|epoch| epoch.moved) else {
            return;
        };
        let is_there = epoch.offsets.iter().all(|sent| {
            let found = committed.get(&sent.topic_partition).and_then(Option::as_ref);
            found.is_some_and(|(offset, metadata)| *offset == sent.offset && *metadata == sent.metadata)
        });
        if let (true, Some(Slot::Waiting { schedules, .. })) = (is_there, self.tasks.get_mut(&id)) {
            *schedules = epoch.schedules;
        }
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
                let reset = self.reset_to(&input.topic_partition.topic);
                let reset = reset.ok_or_else(|| Box::new(Error::Topics {
                    message: format!("{} has no committed offset and auto.offset.reset is none: set it to earliest or latest, or set the group's offset", input.topic_partition),
                }))?;
                partitions.push((input.topic_partition.clone(), reset));
            }
        }
        Ok(Effect::ResolveReset { partitions })
    }

    /// Where a partition of the topic starts that has no usable offset; `None` = nowhere, the thread stops.
    pub(in crate::runtime) fn reset_to(&self, topic: &str) -> Option<ResetTo> {
        // Repartition topics always start at their beginning: what lies there was written by this application.
        if self.plan.reads_repartition(topic) {
            return Some(ResetTo::Earliest);
        }
        match self.reset_of(topic) {
            AutoOffsetReset::Configured => self.settings.reset,
            AutoOffsetReset::Earliest => Some(ResetTo::Earliest),
            AutoOffsetReset::Latest => Some(ResetTo::Latest),
            AutoOffsetReset::None => None,
        }
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

    /// The places of resets are known.
    ///
    /// # Errors
    /// An input of a task with state would be read again from before what the state contains: its log ends below the
    /// committed offset, so it was truncated or made anew (design rule 2.5).
    pub(super) fn starts_known(&mut self, offsets: &[(TopicPartition, i64)]) -> ProcessResult {
        let earliest: Vec<bool> = offsets
            .iter()
            .map(|(at, _)| self.reset_to(&at.topic) == Some(ResetTo::Earliest))
            .collect();
        for (id, slot) in &mut self.tasks {
            let Slot::Starting { inputs, .. } = slot else { continue };
            let stateful = self
                .plan
                .subtopology(id.subtopology)
                .is_some_and(|plan| !plan.stores.is_empty());
            for input in inputs.iter_mut().filter(|input| input.start_offset == UNRESOLVED) {
                let mut known = offsets.iter().zip(&earliest);
                let Some(((at, offset), earliest)) = known.find(|((tp, _), _)| *tp == input.topic_partition) else {
                    continue;
                };
                input.start_offset = *offset;
                let Some((committed, _)) = input.committed.as_ref().filter(|(committed, _)| offset < committed) else {
                    continue;
                };
                if *earliest && stateful {
                    return Err(read_again(*id, at, *committed));
                }
                tracing::warn!(task_id = %id, topic_partition = %at, committed, offset, "the input was truncated or made anew: it is read from here, below what was committed");
            }
        }
        Ok(())
    }
}

fn read_again(task: TaskId, at: &TopicPartition, committed: i64) -> Box<Error> {
    let reason = format!(
        "{at} ends below the committed offset {committed}: it was truncated or made anew, and auto.offset.reset=earliest would count its records twice; if it was truncated, go on at its end with auto.offset.reset=latest; if it was made anew, reset the application (delete the task's state and changelogs and the group's offsets)"
    );
    Box::new(Error::TaskCorrupted {
        task,
        store: "(inputs)".to_owned(),
        reason,
    })
}
