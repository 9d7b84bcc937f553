//! The plan of what comes next, as data: a queue of steps, each of which becomes one effect.

use crate::TaskId;
use crate::fetch::PartitionId;

/// One step. What an effect needs beyond this is taken from the core when the step's turn comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    InitTransactions,
    FetchCommitted,
    ResolveReset,
    ListChangelogs,
    Restore(TaskId),
    Assign(TaskId),
    Unassign,
    Pause(Vec<PartitionId>),
    Resume(Vec<PartitionId>),
    Begin,
    Send,
    Flush,
    SendOffsets,
    Commit,
    Abort,
    RecreateProducer,
    Apply,
    /// Give away the tasks that are no longer wanted. No effect of its own.
    Release,
    Acknowledge,
    HeartbeatNow,
    Purge,
    ListEnds,
}

impl Step {
    /// Whether the step belongs to a commit.
    pub(super) fn is_of_commit(&self) -> bool {
        matches!(
            self,
            Step::Begin | Step::Send | Step::Flush | Step::SendOffsets | Step::Commit | Step::Apply
        )
    }

    /// Whether the step belongs to the start-up of tasks, which is tried again later instead of stopping commits.
    pub(super) fn is_start_up(&self) -> bool {
        matches!(self, Step::FetchCommitted | Step::ResolveReset | Step::ListChangelogs)
    }

    /// Whether the step may be on its way while the next epoch is processed.
    pub(super) fn is_in_background(&self) -> bool {
        matches!(self, Step::Flush | Step::SendOffsets | Step::Commit)
    }
}
