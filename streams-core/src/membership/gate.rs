//! Tasks that the group has given before they may run, and what may be told of it.

use super::{Status, StatusCode};
use crate::TaskId;

/// Holds tasks back while the group is not ready (topics are missing), and says whether a member may call itself running.
///
/// ```
/// use streams_core::{TaskId, membership::TaskGate};
/// let mut gate = TaskGate::default();
/// assert_eq!(gate.assigned(vec![TaskId::new(0, 0)], false, &[]), []);
/// assert!(!gate.is_open());
/// assert_eq!(gate.changed(true, &[]), Some(vec![TaskId::new(0, 0)]));
/// assert!(gate.is_open());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskGate {
    withheld: Option<Vec<TaskId>>,
    has_tasks: bool,
    open: bool,
}

impl TaskGate {
    /// The group assigned tasks; answers those that may run now.
    pub fn assigned(&mut self, active: Vec<TaskId>, ready: bool, status: &[Status]) -> Vec<TaskId> {
        self.has_tasks = !active.is_empty();
        self.open = ready && (self.has_tasks || !is_delayed(status));
        if ready {
            self.withheld = None;
            return active;
        }
        self.withheld = Some(active);
        Vec::new()
    }

    /// The group's statuses changed and the tasks did not; `Some` = these tasks may run from now on.
    pub fn changed(&mut self, ready: bool, status: &[Status]) -> Option<Vec<TaskId>> {
        if !ready {
            // Tasks that run go on; what is missing concerns them only when they reach for it.
            return None;
        }
        self.open = self.has_tasks || !is_delayed(status);
        self.withheld.take()
    }

    /// Every task is lost.
    pub fn lost(&mut self) {
        *self = TaskGate::default();
    }

    /// Whether what the group has given is final for now: a member that has all its tasks, or shall have none.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
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
        assert!(!gate.is_open());
        gate.assigned(Vec::new(), false, &[]);
        assert!(!gate.is_open());
        gate.assigned(Vec::new(), true, &delayed());
        assert!(!gate.is_open());
        assert_eq!(gate.assigned(tasks(), true, &[]), tasks());
        assert!(gate.is_open());
    }

    #[test]
    fn a_member_that_shall_have_no_task_runs() {
        let mut gate = TaskGate::default();
        gate.assigned(Vec::new(), true, &delayed());
        assert_eq!(gate.changed(true, &[]), None);
        assert!(gate.is_open());
    }

    #[test]
    fn tasks_given_before_their_topics_exist_are_taken_up_once_these_do() {
        let mut gate = TaskGate::default();
        assert_eq!(gate.assigned(tasks(), false, &[]), []);
        assert_eq!(gate.changed(false, &[]), None);
        assert_eq!(gate.changed(true, &[]), Some(tasks()));
        assert_eq!(gate.changed(true, &[]), None);
    }

    #[test]
    fn lost_tasks_are_not_taken_up_later() {
        let mut gate = TaskGate::default();
        gate.assigned(tasks(), false, &[]);
        gate.lost();
        assert_eq!(gate.changed(true, &delayed()), None);
        assert!(!gate.is_open());
    }
}
