//! The start-up of tasks, in the only safe order: producer settled, committed offsets (stable), changelog ends, restore,
//! process (design rule 1.6). Every part may be tried again later, and commits go on meanwhile (rule 1.15).

mod changelogs;
mod inputs;
mod orphaned_rows;
mod take_up;

use std::collections::BTreeMap;

use super::core::StreamThreadCore;
use super::effect::{CallFailure, Effect, FailureClass, Outcome};
use super::slot::{Failing, Slot};
use super::step::Step;
use crate::TaskId;
use crate::error::{Error, ProcessResult};
use crate::topology::SubtopologyPlan;

/// A start offset that is not known yet.
const UNRESOLVED: i64 = i64::MIN;
/// How long a start-up that failed waits before it is tried again.
const RETRY_MS: i64 = 100;

impl StreamThreadCore {
    /// The topics' partition counts, or how large their records may be, changed or became known. Tasks that run already go on
    /// with what they know.
    pub fn set_topics(&mut self, topics: std::sync::Arc<crate::topics::Topics>) {
        self.topics = topics;
    }

    /// The topics as they were told last.
    #[must_use]
    pub fn topics(&self) -> &std::sync::Arc<crate::topics::Topics> {
        &self.topics
    }

    /// The next step of a start-up. What is ready goes first and waits for nobody: another task's question may have no answer
    /// for long, and another task's state may still be in other hands (design rule 1.15).
    pub(super) fn next_start_up_step(&self, now_ms: i64) -> Option<Step> {
        let any = |wanted: fn(&Slot) -> bool| self.tasks.iter().find(|(_, slot)| wanted(slot)).map(|(id, _)| *id);
        if let Some(task) = any(|slot| matches!(slot, Slot::Restored { .. })) {
            return Some(Step::Assign(task));
        }
        if let Some(task) = any(|slot| matches!(slot, Slot::Restorable { .. })) {
            return Some(Step::Restore(task));
        }
        if now_ms < self.start_up_after_ms {
            return None;
        }
        if any(|slot| matches!(slot, Slot::Waiting { .. })).is_some() {
            return Some(Step::FetchCommitted);
        }
        let unresolved = |slot: &Slot| matches!(slot, Slot::Starting { inputs, .. } if inputs.iter().any(|i| i.start_offset == UNRESOLVED));
        if any(unresolved).is_some() {
            return Some(Step::ResolveReset);
        }
        any(|slot| matches!(slot, Slot::Starting { .. })).map(|_| Step::ListChangelogs)
    }

    pub(super) fn start_up_effect(&mut self, step: &Step, now_ms: i64) -> ProcessResult<Option<Effect>> {
        match step {
            Step::FetchCommitted => {
                let waiting = self
                    .tasks
                    .iter()
                    .filter(|(_, slot)| matches!(slot, Slot::Waiting { .. }));
                let mut partitions = Vec::new();
                for (id, _) in waiting {
                    partitions.extend(self.input_partitions(*id)?);
                }
                Ok(Some(Effect::FetchCommitted { partitions }))
            }
            Step::ResolveReset => self.resolve_effect().map(Some),
            Step::ListChangelogs => {
                let partitions = self.changelogs_of_starting()?;
                if partitions.is_empty() {
                    self.changelogs_known(&BTreeMap::new(), now_ms)?;
                    return Ok(None);
                }
                Ok(Some(Effect::ListChangelogs { partitions }))
            }
            Step::Restore(task) => Ok(self.start_restore(*task)),
            Step::Assign(task) => self.start_task(*task, now_ms),
            _ => Err(Error::bug(format!("{step:?} is no step of a start-up"))),
        }
    }

    pub(super) fn start_up_step_done(&mut self, step: &Step, outcome: Outcome, now_ms: i64) -> ProcessResult {
        self.failing_since_ms.remove(&failing(step));
        match (step, outcome) {
            (Step::FetchCommitted, Outcome::Committed(offsets)) => self.committed_known(offsets),
            (Step::ResolveReset, Outcome::Started(offsets)) => self.starts_known(&offsets),
            (Step::ListChangelogs, Outcome::Changelogs(facts)) => {
                self.changelogs_known(&facts.into_iter().collect(), now_ms)
            }
            (Step::Assign(_), Outcome::Done) => Ok(()),
            (step, outcome) => Err(Error::bug(format!("{outcome:?} does not answer {step:?}"))),
        }
    }

    /// Part of a start-up failed and is tried again, until it has failed for `task.timeout.ms` without getting on.
    pub(super) fn start_up_failed(&mut self, what: Failing, failure: CallFailure, now_ms: i64) -> ProcessResult {
        let since_ms = *self.failing_since_ms.entry(what).or_insert(now_ms);
        if failure.class != FailureClass::Retriable {
            return Err(Box::new(Error::Kafka {
                what: "the start-up of tasks".to_owned(),
                code: failure.code,
                message: failure.message,
            }));
        }
        if now_ms - since_ms > self.settings.task_timeout_ms {
            let what = format!("the start-up of tasks ({}: {})", failure.code, failure.message);
            return Err(Box::new(Error::Timeout {
                what,
                waited_ms: now_ms - since_ms,
                setting: "task.timeout.ms",
            }));
        }
        tracing::info!(
            code = failure.code,
            message = failure.message,
            "the start-up of tasks is tried again"
        );
        self.start_up_after_ms = now_ms + RETRY_MS;
        Ok(())
    }

    fn subtopology(&self, task: TaskId) -> ProcessResult<&SubtopologyPlan> {
        self.plan
            .subtopology(task.subtopology)
            .ok_or_else(|| Error::bug(format!("task {task} is of no sub-topology")))
    }
}

/// The question that a step asks, by its effect's name.
pub(super) fn failing(step: &Step) -> Failing {
    Failing::Call(match step {
        Step::FetchCommitted => "fetch-committed",
        Step::ResolveReset => "resolve-reset",
        Step::ListChangelogs => "list-changelogs",
        _ => "assign",
    })
}
