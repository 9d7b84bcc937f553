//! The plan of what comes next, as data: a queue of steps, each of which becomes one effect.

use crate::TaskId;
use crate::fetch::PartitionId;

/// One step. What an effect needs beyond this is taken from the core when the step's turn comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    InitTransactions,
    /// Without transactions: there is nothing to settle, only a producer to be made.
    OpenProducer,
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
    /// Without transactions: the offsets of records that are processed.
    CommitOffsets,
    /// At most once: the offsets of records that are about to be processed.
    Claim,
    /// Whether a claim without an answer was carried out.
    ReadBack,
    /// Join the group as a new member, so that nothing counts any more that this one may have sent.
    Rejoin,
    /// Without transactions: let what was sent arrive, or be given up, before the log is read again.
    Settle,
    /// Go on at this time, or as soon as the group has given another epoch than this.
    Wait {
        until_ms: i64,
        member_epoch: Option<i32>,
    },
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
            Step::Begin
                | Step::Send
                | Step::Flush
                | Step::SendOffsets
                | Step::Commit
                | Step::Apply
                | Step::CommitOffsets
        )
    }

    /// Whether the step belongs to the start-up of tasks, which is tried again later instead of stopping commits.
    pub(super) fn is_start_up(&self) -> bool {
        matches!(self, Step::FetchCommitted | Step::ResolveReset | Step::ListChangelogs)
    }

    /// Whether the step may be on its way while the next epoch is processed.
    pub(super) fn is_in_background(&self) -> bool {
        matches!(
            self,
            Step::Flush | Step::SendOffsets | Step::Commit | Step::CommitOffsets | Step::Claim | Step::Settle
        )
    }
}
