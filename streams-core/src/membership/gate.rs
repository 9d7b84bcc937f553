//! Tasks that the group has given before they may run, and what may be told of it.

use super::{Status, StatusCode};
use crate::TaskId;

/// A member without tasks calls itself running after so long without news, milliseconds: nothing tells it that its tasks are
/// still being made or still held by others.
const WITHOUT_TASKS_MS: i64 = 5_000;
/// Source topics may be missing for so long before that is an error, milliseconds: two of the brokers' default heartbeat
/// intervals, as in Java (`StreamThread.handleMissingSourceTopicsWithTimeout`).
const MISSING_MS: i64 = 10_000;

/// Holds tasks back while the group is not ready (topics are missing), and says whether a member may call itself running.
/// Times are milliseconds of one clock.
///
/// ```
/// use streams_core::{TaskId, membership::TaskGate};
/// let mut gate = TaskGate::default();
/// assert_eq!(gate.assigned(vec![TaskId::new(0, 0)], false, &[], 100), []);
/// assert!(!gate.is_open(100));
/// assert_eq!(gate.changed(true, &[], 200), Some(vec![TaskId::new(0, 0)]));
/// assert!(gate.is_open(200));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGate {
    withheld: Option<Vec<TaskId>>,
    has_tasks: bool,
    /// Since when what was given may run.
    final_since_ms: Option<i64>,
    /// Since when source topics are missing, and what the coordinator says about them.
    missing: Option<(i64, String)>,
}

impl TaskGate {
    /// The group assigned tasks; answers those that may run now.
    pub fn assigned(&mut self, active: Vec<TaskId>, ready: bool, status: &[Status], now_ms: i64) -> Vec<TaskId> {
        self.has_tasks = !active.is_empty();
        self.note(ready, status, now_ms);
        self.note_missing(status, now_ms);
        if ready {
            self.withheld = None;
            return active;
        }
        self.withheld = Some(active);
        Vec::new()
    }

    /// The group's statuses changed and the tasks did not; `Some` = these tasks may run from now on.
    pub fn changed(&mut self, ready: bool, status: &[Status], now_ms: i64) -> Option<Vec<TaskId>> {
        self.note_missing(status, now_ms);
        if !ready {
            // Tasks that run go on; what is missing concerns them only when they reach for it.
            return None;
        }
        self.note(ready, status, now_ms);
        self.withheld.take().filter(|tasks| !tasks.is_empty())
    }

    fn note(&mut self, ready: bool, status: &[Status], now_ms: i64) {
        let is_final = ready && (self.has_tasks || !is_delayed(status));
        self.final_since_ms = is_final.then_some(now_ms);
    }

    fn note_missing(&mut self, status: &[Status], now_ms: i64) {
        let missing = |status: &&Status| status.code == StatusCode::MissingSourceTopics;
        self.missing = status.iter().find(missing).map(|status| {
            let since_ms = self.missing.as_ref().map_or(now_ms, |(since_ms, _)| *since_ms);
            (since_ms, status.detail.clone())
        });
    }

    /// What the coordinator says about missing source topics, once they have been missing for two heartbeat intervals
    /// (10 s): then nobody is just about to make them.
    ///
    /// ```
    /// use streams_core::membership::{Status, StatusCode, TaskGate};
    /// let mut gate = TaskGate::default();
    /// let status = [Status { code: StatusCode::MissingSourceTopics, detail: "Source topics a are missing.".to_owned() }];
    /// gate.changed(false, &status, 1_000);
    /// assert_eq!(gate.missing_source_topics(10_999), None);
    /// assert_eq!(gate.missing_source_topics(11_000), Some("Source topics a are missing."));
    /// ```
    ///
    /// Java: `MissingSourceTopicException`.
    #[must_use]
    pub fn missing_source_topics(&self, now_ms: i64) -> Option<&str> {
        let (since_ms, detail) = self.missing.as_ref()?;
        (now_ms - since_ms >= MISSING_MS).then_some(detail)
    }

    /// Every task is lost.
    pub fn lost(&mut self) {
        *self = TaskGate::default();
    }

    /// Whether what the group has given is all for now: a member that has its tasks, or has waited for some long enough.
    #[must_use]
    pub fn is_open(&self, now_ms: i64) -> bool {
        let since_ms = self.final_since_ms;
        since_ms.is_some_and(|since_ms| self.has_tasks || now_ms - since_ms >= WITHOUT_TASKS_MS)
    }
}

fn is_delayed(status: &[Status]) -> bool {
    status.iter().any(|status| status.code == StatusCode::AssignmentDelayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Vec<TaskId> {
        vec![TaskId::new(0, 0), TaskId::new(0, 1)]
    }

    fn delayed() -> Vec<Status> {
        vec![Status {
            code: StatusCode::AssignmentDelayed,
            detail: String::new(),
        }]
    }

    #[test]
    fn a_first_answer_without_tasks_is_not_the_end_of_a_rebalance() {
        let mut gate = TaskGate::default();
        assert!(!gate.is_open(0));
        gate.assigned(Vec::new(), false, &[], 0);
        assert!(!gate.is_open(60_000));
        // The topics are made, the tasks come with the next answer.
        assert_eq!(gate.changed(true, &[], 100), None);
        assert!(!gate.is_open(600));
        gate.assigned(Vec::new(), true, &delayed(), 700);
        assert!(!gate.is_open(60_000));
        assert_eq!(gate.assigned(tasks(), true, &[], 800), tasks());
        assert!(gate.is_open(800));
    }

    #[test]
    fn a_member_that_shall_have_no_task_runs_after_a_while() {
        let mut gate = TaskGate::default();
        gate.assigned(Vec::new(), true, &delayed(), 0);
        assert_eq!(gate.changed(true, &[], 1_000), None);
        assert!(!gate.is_open(5_999));
        assert!(gate.is_open(6_000));
    }

    #[test]
    fn tasks_given_before_their_topics_exist_are_taken_up_once_these_do() {
        let mut gate = TaskGate::default();
        assert_eq!(gate.assigned(tasks(), false, &[], 0), []);
        assert_eq!(gate.changed(false, &[], 0), None);
        assert_eq!(gate.changed(true, &[], 0), Some(tasks()));
        assert_eq!(gate.changed(true, &[], 0), None);
    }

    #[test]
    fn topics_that_come_in_time_were_never_missing() {
        let missing = [Status {
            code: StatusCode::MissingSourceTopics,
            detail: "Source topics in are missing.".to_owned(),
        }];
        let mut gate = TaskGate::default();
        gate.assigned(Vec::new(), false, &missing, 0);
        // The same again is no new beginning.
        gate.changed(false, &missing, 9_000);
        assert_eq!(gate.missing_source_topics(9_999), None);
        assert!(gate.missing_source_topics(10_000).is_some());
        gate.changed(true, &[], 10_000);
        assert_eq!(gate.missing_source_topics(60_000), None);
        gate.changed(false, &missing, 70_000);
        assert_eq!(gate.missing_source_topics(79_999), None);
    }

    #[test]
    fn lost_tasks_are_not_taken_up_later() {
        let mut gate = TaskGate::default();
        gate.assigned(tasks(), false, &[], 0);
        gate.lost();
        assert_eq!(gate.changed(true, &delayed(), 0), None);
        assert!(!gate.is_open(60_000));
    }
}
