//! What a core holds of a task and of its partitions.

use streams_state::TaskState;

use crate::processor::Schedules;
use crate::task::{Task, TaskEpoch, TaskInput};
use crate::{TaskId, TopicPartition};

/// Where a task is in its life.
pub(super) enum Slot {
    /// Wanted; its start-up has not begun. Holds the state after a rebuild, and the punctuation schedules to go on with.
    Waiting {
        state: Option<TaskState>,
        schedules: Schedules,
    },
    /// Committed offsets are known; the changelogs are not.
    Starting {
        state: Option<TaskState>,
        schedules: Schedules,
        inputs: Vec<TaskInput>,
    },
    /// The state is ready to be handed to the restorer.
    Restorable {
        job: Option<super::RestoreJob>,
        schedules: Schedules,
        inputs: Vec<TaskInput>,
    },
    /// The restorer has the state.
    Restoring {
        lease: u64,
        schedules: Schedules,
        inputs: Vec<TaskInput>,
    },
    /// Restored; its partitions are not fetched yet.
    Restored {
        state: Option<TaskState>,
        schedules: Schedules,
        inputs: Vec<TaskInput>,
    },
    /// At work.
    Running(Box<Task>),
}

/// A partition of a running or starting task.
pub(super) struct Owned {
    pub(super) task: TaskId,
    pub(super) topic_partition: TopicPartition,
    pub(super) incarnation: u64,
    pub(super) paused: bool,
}

/// What of a start-up can fail for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failing {
    /// A question to the cluster, by its effect's name.
    Call(&'static str),
    /// The restore of a task.
    Restore(TaskId),
}

/// What a commit in progress has gathered.
#[derive(Default)]
pub(super) struct ClosedEpoch {
    pub(super) tasks: Vec<(TaskId, TaskEpoch)>,
    pub(super) reports: super::Reports,
    pub(super) started_ms: i64,
    /// Its offsets are committed after it is applied (at least once).
    pub(super) offsets_follow: bool,
    /// How long its transaction was open, once it is committed.
    pub(super) open_ms: i64,
    /// `commit{epoch}`, for what is logged from the close of the epoch until it is applied or given up.
    pub(super) span: Option<tracing::Span>,
}
