//! Restored state comes back, and the task is made of it.

use super::orphaned_rows::check_rows;
use crate::TaskId;
use crate::config::ProcessingGuarantee;
use crate::error::{Error, ProcessResult};
use crate::processor::TaskCounters;
use crate::runtime::core::StreamThreadCore;
use crate::runtime::effect::{Assignment, Effect, RestoreFailure, Restored};
use crate::runtime::slot::{Failing, Owned, Slot};
use crate::task::{Task, TaskLimits, TaskSeed};

impl StreamThreadCore {
    pub(super) fn start_restore(&mut self, task: TaskId) -> Option<Effect> {
        let slot = self.tasks.get_mut(&task)?;
        let Slot::Restorable { job, schedules, inputs } = slot else {
            return None;
        };
        let (job, schedules, inputs) = (job.take()?, std::mem::take(schedules), std::mem::take(inputs));
        *slot = Slot::Restoring {
            lease: job.incarnation,
            schedules,
            inputs,
        };
        Some(Effect::Restore(job))
    }

    /// Whether the result of this restore is still waited for. One that is not may end early: its task was given away or
    /// lost, and whoever comes next needs the directory.
    #[must_use]
    pub fn waits_for_restore(&self, task: TaskId, incarnation: u64) -> bool {
        matches!(self.tasks.get(&task), Some(Slot::Restoring { lease, .. }) if *lease == incarnation)
    }

    /// Takes back a restored state. A result under an older lease is thrown away: the task is somebody else's by now.
    ///
    /// # Errors
    /// When the restore failed for good.
    pub fn on_restored(&mut self, restored: Restored, now_ms: i64) -> ProcessResult {
        let Some(slot) = self.tasks.get_mut(&restored.task) else {
            return Ok(());
        };
        let Slot::Restoring {
            lease,
            schedules,
            inputs,
        } = slot
        else {
            return Ok(());
        };
        if *lease != restored.incarnation {
            return Ok(());
        }
        let (schedules, inputs) = (std::mem::take(schedules), std::mem::take(inputs));
        match restored.failure {
            None => {
                self.failing_since_ms.remove(&Failing::Restore(restored.task));
                let records: u64 = restored.records.values().sum();
                self.totals.restored_records += records;
                let restored_records = TaskCounters {
                    restored_records: records,
                    ..TaskCounters::default()
                };
                *slot = Slot::Restored {
                    state: Some(restored.state),
                    schedules,
                    inputs,
                };
                self.retire(restored.task, restored_records);
                Ok(())
            }
            Some(failure) => {
                if restored.records.values().any(|records| *records > 0) {
                    // It gets on: only a standstill is bounded.
                    self.failing_since_ms.remove(&Failing::Restore(restored.task));
                }
                // What was applied so far is kept: the next attempt goes on from the stored position.
                *slot = Slot::Waiting {
                    state: Some(restored.state),
                    schedules,
                };
                match failure {
                    RestoreFailure::Call(failure) => {
                        self.start_up_failed(Failing::Restore(restored.task), failure, now_ms)
                    }
                    RestoreFailure::Fatal(error) => Err(error),
                }
            }
        }
    }

    /// The task's partitions could not be assigned: it is made anew with the next attempt. It has processed nothing.
    pub(in crate::runtime) fn not_assigned(&mut self, id: TaskId) {
        self.forget_partitions(id);
        if let Some(Slot::Running(task)) = self.tasks.remove(&id) {
            self.retire(id, task.counters());
            let (state, schedules) = task.into_committed();
            let state = Some(state);
            self.tasks.insert(id, Slot::Waiting { state, schedules });
        }
    }

    pub(super) fn start_task(&mut self, id: TaskId, now_ms: i64) -> ProcessResult<Option<Effect>> {
        let Some(Slot::Restored {
            state,
            schedules,
            inputs,
        }) = self.tasks.get_mut(&id)
        else {
            return Ok(None);
        };
        let (Some(mut state), schedules, inputs) = (state.take(), std::mem::take(schedules), std::mem::take(inputs))
        else {
            return Ok(None);
        };
        // Without transactions a changelog may be ahead of the first offsets.
        let atomic = self.settings.guarantee == ProcessingGuarantee::ExactlyOnceV2;
        if let Some(plan) = self.plan.subtopology(id.subtopology).filter(|_| atomic) {
            check_rows(id, plan, &mut state, &inputs)?;
        }
        let (incarnation, meters) = (self.incarnation, self.meters_of(id));
        let mut partitions = Vec::new();
        for input in &inputs {
            let (topic_partition, start_offset) = (input.topic_partition.clone(), input.start_offset);
            self.partitions.insert(
                input.id,
                Owned {
                    task: id,
                    topic_partition: topic_partition.clone(),
                    incarnation,
                    paused: false,
                },
            );
            partitions.push(Assignment {
                topic_partition,
                start_offset,
                id: input.id,
                incarnation,
            });
        }
        let plan = self
            .plan
            .subtopology(id.subtopology)
            .ok_or_else(|| Error::bug(format!("task {id} is of no sub-topology")))?;
        // A task keeps its numbers over rebuilds: they stay small, and reports of aborted epochs never count anyway.
        let (next, stores) = (self.next_slot, u32::try_from(plan.stores.len()).unwrap_or(0));
        let first_slot = *self.first_slots.entry(id).or_insert(next);
        if first_slot == next {
            self.next_slot = next.saturating_add(stores);
        }
        let limits = TaskLimits {
            max_idle_ms: self.settings.max_task_idle_ms,
            buffered_per_partition: self.settings.buffered_records_per_partition,
        };
        let task = Task::new(TaskSeed {
            id,
            topology: &self.topology,
            plan,
            state,
            inputs,
            first_slot,
            budget: std::rc::Rc::clone(&self.budget),
            handlers: std::sync::Arc::clone(&self.handlers),
            topics: std::sync::Arc::clone(&self.topics),
            globals: std::sync::Arc::clone(&self.globals),
            limits,
            now_ms,
            schedules,
            meters,
            claims: self.claims(),
        })?;
        self.tasks.insert(id, Slot::Running(Box::new(task)));
        self.totals.tasks_created += 1;
        tracing::info!(task_id = %id, "the task runs");
        Ok(Some(Effect::Assign { partitions }))
    }
}
