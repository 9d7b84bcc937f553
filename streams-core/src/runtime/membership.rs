//! Tasks given and taken by the group. Events come through one ordered channel together with the member epoch, and a
//! commit uses the pair of the last event applied here (design rule 1.1).

use std::collections::BTreeSet;

use super::core::StreamThreadCore;
use super::effect::GroupIdentity;
use super::meter::AbortReason;
use super::plain::Offsets;
use super::slot::{Failing, Slot};
use super::step::Step;
use crate::TaskId;
use crate::error::ProcessResult;

impl StreamThreadCore {
    /// The group says which tasks this member shall own, all of them. Tasks that are not among them are committed,
    /// applied and released before the set is acknowledged.
    pub fn on_assigned(&mut self, group: GroupIdentity, tasks: impl IntoIterator<Item = TaskId>) {
        self.group = group;
        self.wanted = Some(tasks.into_iter().collect());
    }

    /// The member's epoch moved on without a change of tasks.
    pub fn on_epoch(&mut self, group: GroupIdentity) {
        self.group = group;
    }

    /// The member lost everything: uncommitted work is dropped, nothing of it is ever sent (a new incarnation).
    ///
    /// # Errors
    /// Never at present; kept for stores that can't be closed.
    pub fn on_lost(&mut self) -> ProcessResult {
        self.incarnation += 1;
        self.wanted = None;
        let kept = self.clear_steps();
        self.closed = None;
        self.undecided.clear();
        self.epoch = self.epoch.wrapping_add(1).max(1);
        self.plain_lost();
        self.epoch_size.dropped();
        self.transaction_overran = false;
        self.to_unassign.extend(self.partitions.keys().copied());
        self.partitions.clear();
        self.reset_next.clear();
        self.failing_since_ms.clear();
        self.totals.tasks_closed += self.tasks.len() as u64;
        for (id, slot) in std::mem::take(&mut self.tasks) {
            tracing::info!(task_id = %id, "the task is lost");
            if let Slot::Running(task) = slot {
                self.retire(id, task.counters());
                drop(task.into_committed());
            }
        }
        // An effect in flight ends first; its outcome then meets an empty core.
        self.abort_reason = AbortReason::TasksLost;
        self.plan_settling(kept.and_acknowledge());
        Ok(())
    }

    /// Plans a change of tasks: commit what is uncommitted while every task is still here, then release and acknowledge.
    pub(super) fn plan_reassignment(&mut self, now_ms: i64) -> ProcessResult {
        let Some(wanted) = &self.wanted else { return Ok(()) };
        let leaves = self.tasks.keys().any(|task| !wanted.contains(task));
        if leaves && self.has_uncommitted() {
            self.plan_commit(now_ms, Offsets::Named)?;
        }
        self.steps.push_back(Step::Release);
        Ok(())
    }

    /// Gives away the tasks that are no longer wanted and takes up the new ones.
    pub(super) fn release_and_take_up(&mut self) -> ProcessResult {
        let Some(wanted) = self.wanted.take() else {
            return Ok(());
        };
        let leaving: Vec<TaskId> = self
            .tasks
            .keys()
            .filter(|task| !wanted.contains(task))
            .copied()
            .collect();
        for id in leaving {
            if let Some(Slot::Running(task)) = self.tasks.remove(&id) {
                self.retire(id, task.counters());
                drop(task.close()?);
            }
            tracing::info!(task_id = %id, "the task is given away");
            self.totals.tasks_closed += 1;
            self.forget_partitions(id);
            self.forget_resets(id);
            self.undecided.remove(&id);
            self.failing_since_ms.remove(&Failing::Restore(id));
        }
        self.take_up(&wanted);
        self.steps.push_back(Step::Unassign);
        self.steps.push_back(Step::Acknowledge);
        Ok(())
    }

    fn take_up(&mut self, wanted: &BTreeSet<TaskId>) {
        for id in wanted {
            self.tasks.entry(*id).or_insert(Slot::Waiting {
                state: None,
                schedules: Vec::new(),
            });
        }
    }

    /// A reset that was due belongs to this ownership: whoever comes next goes by what is committed then.
    fn forget_resets(&mut self, task: TaskId) {
        let Some(plan) = self.plan.subtopology(task.subtopology) else {
            return;
        };
        self.reset_next
            .retain(|tp, _| tp.partition != task.partition || !plan.source_topics.contains_key(&tp.topic));
    }

    pub(super) fn forget_partitions(&mut self, task: TaskId) {
        let forgotten = &mut self.to_unassign;
        self.partitions.retain(|id, owned| {
            let keep = owned.task != task;
            if !keep {
                forgotten.push(*id);
            }
            keep
        });
    }
}
