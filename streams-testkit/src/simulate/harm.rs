//! How harm is done: only to what the first machine's disk has, so that it can tell.

use streams_core::test_driver::{Log, LogRecord};
use streams_core::{Headers, TaskId, TopicPartition};
use streams_state::{MemoryDisk, TaskState};

use super::calamity::{Calamity, Harm};
use super::process::Instance;
use super::world::World;

impl World<'_> {
    pub(super) fn do_harm(&mut self, harm: &mut Harm) {
        let Some(disk) = self.instances.first().map(|machine| machine.disk.clone()) else {
            return;
        };
        match harm.calamity {
            Calamity::OffsetsExpired | Calamity::OffsetsLower => self.harm_offsets(harm, &disk),
            Calamity::ChangelogRemade | Calamity::ChangelogTruncated => self.harm_changelogs(harm, &disk),
            Calamity::InputTrimmed => self.harm_inputs(harm),
            Calamity::GlobalTruncated => self.harm_global(harm, &disk),
            Calamity::IdentityCopied => {
                let first = self.instances.first().map(Instance::process_id);
                if let Some(second) = self.instances.get_mut(1) {
                    second.borrowed = first;
                }
            }
            Calamity::Hangs => {}
        }
    }

    /// The state of a task as it lies on a disk; nobody has it open now.
    fn state_on(&self, disk: &MemoryDisk, task: TaskId) -> Option<TaskState> {
        let topology = &self.scenario.topology;
        let names: Vec<_> = if task == TaskId::GLOBAL {
            self.scenario.plan.global.iter().map(|global| &global.store).collect()
        } else {
            self.scenario
                .plan
                .subtopology(task.subtopology)?
                .stores
                .iter()
                .collect()
        };
        let stores = names.into_iter().filter_map(|name| topology.store(name));
        let specs: Vec<_> = stores.map(|store| store.spec.clone()).collect();
        if specs.is_empty() {
            return None;
        }
        TaskState::on_memory_disk(disk, &task.to_string(), specs).ok()
    }

    fn harm_offsets(&mut self, harm: &mut Harm, disk: &MemoryDisk) {
        for task in self.scenario.tasks.clone() {
            let Some(state) = self.state_on(disk, task) else {
                continue;
            };
            for ((topic, partition), in_state) in state.input_offsets() {
                let topic_partition = TopicPartition::new(topic.as_str(), *partition);
                let Some(committed) = self.broker.committed(&topic_partition).cloned() else {
                    continue;
                };
                if *in_state <= 0 {
                    continue;
                }
                let lower = match harm.calamity {
                    Calamity::OffsetsLower => {
                        let below = u64::try_from(*in_state).unwrap_or(1);
                        Some((i64::try_from(self.rng.below(below)).unwrap_or(0), String::new()))
                    }
                    _ => None,
                };
                harm.fixed
                    .insert(topic_partition.clone(), lower.as_ref().map(|(offset, _)| *offset));
                self.broker.set_committed(&topic_partition, lower);
                harm.offsets.insert(topic_partition, committed);
                harm.tasks.insert(task);
            }
        }
        self.committed_seen.clear();
    }

    fn harm_changelogs(&mut self, harm: &mut Harm, disk: &MemoryDisk) {
        for (number, topic_partition) in self.changelog_partitions() {
            let Some(changelog) = self.scenario.changelogs.get(number) else {
                continue;
            };
            let task = TaskId::new(changelog.subtopology, topic_partition.partition);
            let Some(state) = self.state_on(disk, task) else {
                continue;
            };
            let id = state.store_id(&changelog.store);
            let position = id.and_then(|id| {
                let restoring = state.is_restoring_from_zero(id).unwrap_or(true);
                state
                    .store_metadata(id)
                    .filter(|_| !restoring)
                    .map(|metadata| metadata.position)
            });
            let Some(position) = position.filter(|position| *position > 0) else {
                continue;
            };
            let ends = u64::try_from(position).unwrap_or(1);
            let (below, more) = (self.rng.below(ends), self.rng.below(2) == 0);
            let Some(log) = self.broker.log_mut(&topic_partition) else {
                continue;
            };
            let mut other = Log::default();
            if harm.calamity == Calamity::ChangelogTruncated {
                other = log.clone();
                other.truncate(i64::try_from(below).unwrap_or(0));
            } else if more {
                // The position lies inside the new one.
                for _ in 0..position + 3 {
                    other.append(other_record(), None);
                }
            }
            harm.logs.insert(topic_partition.clone(), std::mem::replace(log, other));
            harm.tasks.insert(task);
        }
        self.fix_inputs(harm);
    }

    fn harm_inputs(&mut self, harm: &mut Harm) {
        let topics: Vec<_> = self.scenario.trimmable.iter().cloned().collect();
        let mut found = Vec::new();
        for topic in topics {
            for partition in 0..self.scenario.topics.partitions(&topic).unwrap_or(0) {
                let topic_partition = TopicPartition::new(&*topic, partition);
                let Some((committed, _)) = self.broker.committed(&topic_partition) else {
                    // Without a committed offset it could not start at all now.
                    return;
                };
                let end = self.broker.log(&topic_partition).map_or(0, Log::high_watermark);
                if *committed < end {
                    found.push((topic_partition, *committed));
                }
            }
        }
        for (topic_partition, committed) in found {
            if let Some(log) = self.broker.log_mut(&topic_partition) {
                harm.logs.insert(topic_partition.clone(), log.clone());
                log.delete_before(committed + 1);
                harm.fixed.insert(topic_partition, Some(committed));
            }
        }
    }

    fn harm_global(&mut self, harm: &mut Harm, disk: &MemoryDisk) {
        let Some(state) = self.state_on(disk, TaskId::GLOBAL) else {
            return;
        };
        for ((topic, partition), applied) in state.input_offsets() {
            let topic_partition = TopicPartition::new(topic.as_str(), *partition);
            if *applied == 0 {
                continue;
            }
            if let Some(log) = self.broker.log_mut(&topic_partition) {
                harm.logs.insert(topic_partition, log.clone());
                log.truncate(applied - 1);
                harm.tasks.insert(TaskId::GLOBAL);
            }
        }
    }

    /// The inputs of the tasks that are concerned must stay where they are.
    fn fix_inputs(&self, harm: &mut Harm) {
        for task in &harm.tasks {
            let Some(plan) = self.scenario.plan.subtopology(task.subtopology) else {
                continue;
            };
            for topic in plan.source_topics.keys() {
                let topic_partition = TopicPartition::new(&**topic, task.partition);
                let committed = self.broker.committed(&topic_partition).map(|(offset, _)| *offset);
                harm.fixed.insert(topic_partition, committed);
            }
        }
    }
}

/// A record of somebody else.
pub(super) fn other_record() -> LogRecord {
    LogRecord {
        offset: 0,
        timestamp_ms: 0,
        key: Some(b"of another".to_vec()),
        value: Some(b"of another".to_vec()),
        headers: Headers::default(),
    }
}
