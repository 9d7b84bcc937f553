//! How a recovery is carried out: what is planned and what is not committed goes, and every task is made anew from its
//! factories with the state that is committed (design rule 1.3).

use super::core::StreamThreadCore;
use super::slot::Slot;
use super::step::Step;

impl StreamThreadCore {
    /// Drops what is planned, but for what stays due whatever happens: a producer of no use stays one, and the group waits
    /// for its answer.
    pub(super) fn clear_steps(&mut self) -> KeptSteps {
        let kept = KeptSteps {
            recreate: self.steps.contains(&Step::RecreateProducer),
            acknowledge: self.steps.contains(&Step::Acknowledge),
        };
        self.steps.clear();
        kept
    }

    /// Plans what settles the open transaction: a new producer where the old one is of no use, else an abort.
    pub(super) fn plan_settling(&mut self, kept: KeptSteps) {
        if kept.recreate {
            self.producer_ready = false;
            self.steps.push_back(Step::RecreateProducer);
        } else if self.transaction_began_ms.is_some() {
            self.steps.push_back(Step::Abort);
        }
        self.steps.push_back(Step::Unassign);
        if kept.acknowledge {
            self.steps.push_back(Step::Acknowledge);
        }
        if !self.is_transactional() && self.producer_ready {
            // Nothing that was sent can be taken back: it arrives, or is given up, before the log is read again.
            self.steps.push_back(Step::Settle);
        }
    }

    pub(super) fn drop_uncommitted(&mut self) {
        let closed = self.closed.take();
        self.undecided
            .extend(closed.into_iter().flat_map(|closed| closed.tasks));
        self.plain_dropped();
        self.commit_now = false;
        self.epoch_size.dropped();
        self.transaction_overran = false;
        self.incarnation += 1;
        self.epoch = self.epoch.wrapping_add(1).max(1);
        let running: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Running(_)))
            .map(|(id, _)| *id)
            .collect();
        for id in running {
            self.forget_partitions(id);
            if let Some(Slot::Running(task)) = self.tasks.remove(&id) {
                self.retire(id, task.counters());
                let (state, schedules) = task.into_committed();
                self.tasks.insert(
                    id,
                    Slot::Waiting {
                        state: Some(state),
                        schedules,
                    },
                );
            }
        }
    }
}

/// Steps that a recovery keeps.
#[derive(Clone, Copy)]
pub(super) struct KeptSteps {
    recreate: bool,
    acknowledge: bool,
}

impl KeptSteps {
    /// The same, and the producer is made anew.
    pub(super) fn and_recreate(self) -> Self {
        KeptSteps { recreate: true, ..self }
    }

    /// The same, and the group gets an answer.
    pub(super) fn and_acknowledge(self) -> Self {
        KeptSteps {
            acknowledge: true,
            ..self
        }
    }
}
