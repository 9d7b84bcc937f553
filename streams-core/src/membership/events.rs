//! What passes between a stream thread and the membership of its group, whatever the protocol.

use std::fmt;

use super::MembershipError;
use super::codec::structs::{EndpointPartitions, WireStatus};
use crate::record::TaskId;

/// The identity that a commit carries. A commit uses the pair of the last event that the stream thread has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEpoch {
    /// Member id.
    pub member_id: String,
    /// Member epoch (generation under the classic protocol).
    pub epoch: i32,
}

/// What the group tells a stream thread. Events are in order and each is applied whole before the next.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MembershipEvent {
    /// The whole assignment, not a difference. Tasks that are owned and not listed are to be stopped, committed and
    /// released; then the thread answers with [`MembershipCommand::Owned`] and this `assignment` number. Of several
    /// waiting ones only the newest needs to be applied.
    Assigned {
        /// Number of the assignment; rises with every `Assigned` and `Lost`.
        assignment: u64,
        /// Identity for commits from now on. While tasks are being given up the epoch is still the old one.
        member: MemberEpoch,
        /// Active tasks, sorted.
        active: Vec<TaskId>,
        /// Standby and warm-up tasks, sorted.
        standby: Vec<TaskId>,
        /// Whether the tasks may run; false while source topics are missing or the topology is not valid yet. An
        /// assignment that is not ready is acknowledged all the same.
        ready: bool,
        /// Statuses of the group.
        status: Vec<Status>,
    },
    /// The epoch moved and the tasks did not.
    Epoch {
        /// Identity for commits from now on.
        member: MemberEpoch,
    },
    /// Statuses changed and the tasks did not.
    Status {
        /// As in `Assigned`.
        ready: bool,
        /// All statuses that hold now.
        status: Vec<Status>,
    },
    /// Which partitions the group's query endpoints have (`application.server`); replaces the last such map.
    Endpoints {
        /// Rows; several members of a process repeat an endpoint, their rows belong together.
        endpoints: Vec<EndpointPartitions>,
    },
    /// Every task is lost: close without commit. The member rejoins by itself, unless the reason says otherwise. A commit
    /// begun before this event must not be sent any more.
    Lost {
        /// Number; see `Assigned`.
        assignment: u64,
        /// Why.
        reason: LostReason,
    },
    /// The coordinator refuses something, or is out of reach; the member keeps its tasks and tries again.
    Refused {
        /// What, and what to do.
        error: MembershipError,
    },
    /// Membership is over and every task is lost; nothing follows.
    Fatal {
        /// Why, and what to do.
        error: MembershipError,
    },
    /// The member has left, as commanded; nothing follows.
    Left,
}

/// Why tasks are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The coordinator does not know the member or its epoch any more (it was silent for the session timeout, or did not
    /// give up revoked tasks in time).
    Fenced,
    /// The group was deleted.
    GroupDeleted,
    /// The stream thread did not loop for `max.poll.interval.ms`. The member rejoins when the thread loops again.
    PollIntervalExceeded,
    /// The coordinator's state could not be learned after an answer was lost.
    OutOfStep,
    /// The stream thread asked for a new member: a claim of this one may still be on its way.
    ClaimInDoubt,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fenced => "the coordinator has removed this member",
            Self::GroupDeleted => "the group was deleted",
            Self::PollIntervalExceeded => "the stream thread did not loop for max.poll.interval.ms",
            Self::OutOfStep => "an answer of the coordinator was lost and its state could not be read",
            Self::ClaimInDoubt => "it is not known whether a claim of this member will be carried out",
        })
    }
}

/// A condition of the group. Java counterpart: `StreamsGroupHeartbeatResponse.Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Which.
    pub code: StatusCode,
    /// The coordinator's text, with topic names.
    pub detail: String,
}

/// Kinds of [`Status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusCode {
    /// 0: the member's topology is older than the group's.
    StaleTopology,
    /// 1: source topics do not exist.
    MissingSourceTopics,
    /// 2: co-partitioned topics have different counts, or an internal topic has a wrong one.
    IncorrectlyPartitionedTopics,
    /// 3: internal topics do not exist yet; normal for one or two heartbeats after the first start.
    MissingInternalTopics,
    /// 4: a member asked all members to stop.
    ShutdownApplication,
    /// 5: no new assignment yet (initial delay or assignment interval).
    AssignmentDelayed,
    /// A code of a newer broker.
    Unknown(i8),
}

impl Status {
    /// Whether tasks may run in spite of it. A delayed assignment stops nothing that is already assigned.
    pub fn lets_tasks_run(&self) -> bool {
        !matches!(
            self.code,
            StatusCode::MissingSourceTopics
                | StatusCode::IncorrectlyPartitionedTopics
                | StatusCode::MissingInternalTopics
        )
    }
}

impl From<&WireStatus> for Status {
    fn from(status: &WireStatus) -> Self {
        let code = match status.code {
            0 => StatusCode::StaleTopology,
            1 => StatusCode::MissingSourceTopics,
            2 => StatusCode::IncorrectlyPartitionedTopics,
            3 => StatusCode::MissingInternalTopics,
            4 => StatusCode::ShutdownApplication,
            5 => StatusCode::AssignmentDelayed,
            code => StatusCode::Unknown(code),
        };
        Self {
            code,
            detail: status.detail.clone(),
        }
    }
}

/// What a stream thread tells its group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MembershipCommand {
    /// Assignment number `assignment` is applied: these tasks are owned, all others are committed and released.
    /// An answer to anything but the newest assignment says nothing and is ignored.
    Owned {
        /// Number of the assignment this answers.
        assignment: u64,
        /// Active tasks.
        active: Vec<TaskId>,
        /// Standby tasks.
        standby: Vec<TaskId>,
    },
    /// Ask the coordinator at once, for example because it has refused a commit.
    HeartbeatNow,
    /// The stream thread has looped at this time (milliseconds of the clock that the membership runs by).
    Alive {
        /// When.
        at_ms: i64,
    },
    /// Leave the group and join it again under this id, which nobody had before: what this member sent, and what may still
    /// be on its way, must not count any more. [`Lost`](MembershipEvent::Lost) follows.
    Rejoin {
        /// The new member id.
        member_id: String,
    },
    /// Leave the group; tasks are closed already.
    Leave {
        /// Ask all members of the group to stop too.
        shutdown_application: bool,
    },
}
