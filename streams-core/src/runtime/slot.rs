//! What a core holds of a task and of its partitions.

use streams_state::TaskState;

use crate::task::{Task, TaskEpoch, TaskInput};
use crate::{TaskId, TopicPartition};

/// Where a task is in its life.
pub(super) enum Slot {
    /// Wanted; its start-up has not begun. Holds the state after a rebuild, and the wall-clock schedules to go on with.
    Waiting {
        state: Option<TaskState>,
        schedules: Vec<i64>,
    },
    /// Committed offsets are known; the changelogs are not.
    Starting {
        state: Option<TaskState>,
        schedules: Vec<i64>,
        inputs: Vec<TaskInput>,
    },
    /// The state is ready to be handed to the restorer.
    Restorable {
        job: Option<super::RestoreJob>,
        schedules: Vec<i64>,
        inputs: Vec<TaskInput>,
    },
    /// The restorer has the state.
    Restoring {
        lease: u64,
        schedules: Vec<i64>,
        inputs: Vec<TaskInput>,
    },
    /// Restored; its partitions are not fetched yet.
    Restored {
        state: Option<TaskState>,
        schedules: Vec<i64>,
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

/// What a commit in progress has gathered.
#[derive(Default)]
pub(super) struct ClosedEpoch {
    pub(super) tasks: Vec<(TaskId, TaskEpoch)>,
    pub(super) reports: super::Reports,
    pub(super) started_ms: i64,
    /// How long its transaction was open, once it is committed.
    pub(super) open_ms: i64,
    /// `commit{epoch}`, for what is logged from the close of the epoch until it is applied or given up.
    pub(super) span: Option<tracing::Span>,
}
