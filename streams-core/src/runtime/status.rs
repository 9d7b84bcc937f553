//! What a core shows of itself.

use super::core::StreamThreadCore;
use super::hanging::HangingTransaction;
use super::meter::AbortReason;
use super::slot::Slot;
use crate::TaskId;
use crate::processor::TaskCounters;
use crate::task::Task;

/// Totals of a core since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTotals {
    /// Commits that succeeded: of transactions, or of offsets where there are none.
    pub commits: u64,
    /// Transactions aborted.
    pub aborts: u64,
    /// The same by [`AbortReason`], see [`aborts_by`](Self::aborts_by).
    pub(crate) aborts_by: [u64; AbortReason::ALL.len()],
    /// Producers made anew.
    pub producers: u64,
    /// Those of them that were fenced.
    pub producers_fenced: u64,
    /// Tasks made.
    pub tasks_created: u64,
    /// Tasks given away or closed.
    pub tasks_closed: u64,
    /// Records that the client refused and the production handler let pass.
    pub dropped_at_send: u64,
    /// Changelog records applied by restores.
    pub restored_records: u64,
    /// Records of an older incarnation thrown away.
    pub outdated_records: u64,
    /// Transactions that ran out of `transaction.timeout.ms`.
    pub transaction_timeouts: u64,
    /// Tasks whose stream time lagged behind the wall clock by more than a changelog of theirs is kept.
    pub lagging_tasks: u64,
}

/// Where a task is in its life, to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// Waits for its start-up, or for the group's committed offsets.
    Starting,
    /// Replays its changelogs.
    Restoring,
    /// Processes.
    Running,
}

/// A task, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// The task.
    pub id: TaskId,
    /// Where it is in its life.
    pub phase: TaskPhase,
    /// What it counted on this thread, also before it was made anew or was away.
    pub counters: TaskCounters,
    /// Records waiting in its queues.
    pub buffered: usize,
    /// Its stream time, milliseconds since the Unix epoch; -1 before the first record.
    pub stream_time_ms: i64,
}

/// A core, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreStatus {
    /// Its tasks.
    pub tasks: Vec<TaskStatus>,
    /// Its totals.
    pub totals: CoreTotals,
    /// What all its tasks counted, also those that are gone.
    pub counters: TaskCounters,
    /// How long the last commit took, milliseconds.
    pub last_commit_took_ms: i64,
    /// Bytes charged for cached entries.
    pub cache_bytes: usize,
    /// Bytes of rows that are not committed yet.
    pub overlay_bytes: usize,
    /// Bytes of records that wait to be sent.
    pub outbox_bytes: usize,
    /// Bytes of records that were fetched and are not processed yet.
    pub queue_bytes: usize,
    /// Whether every wanted task runs.
    pub settled: bool,
    /// Inputs that stand still because of somebody's transaction that was never ended (design rule 5.2).
    pub hanging: Vec<HangingTransaction>,
    /// The bound on the records of a transaction, after one ran out of `transaction.timeout.ms`; `None` = no bound.
    pub most_records: Option<usize>,
}

impl StreamThreadCore {
    /// What there is to show.
    #[must_use]
    pub fn status(&self) -> CoreStatus {
        let task = |(id, slot): (&TaskId, &Slot)| {
            let (phase, counters, buffered, stream_time_ms) = match slot {
                Slot::Running(task) => (
                    TaskPhase::Running,
                    task.counters(),
                    task.buffered(),
                    task.stream_time_ms(),
                ),
                Slot::Waiting { .. } | Slot::Starting { .. } => (TaskPhase::Starting, TaskCounters::default(), 0, -1),
                Slot::Restorable { .. } | Slot::Restoring { .. } | Slot::Restored { .. } => {
                    (TaskPhase::Restoring, TaskCounters::default(), 0, -1)
                }
            };
            let counters = self.counters_of(*id, counters);
            TaskStatus {
                id: *id,
                phase,
                counters,
                buffered,
                stream_time_ms,
            }
        };
        let tasks: Vec<_> = self.tasks.iter().map(task).collect();
        let settled = self.wanted.is_none() && tasks.iter().all(|task| task.phase == TaskPhase::Running);
        let counters = self.all_counters();
        CoreStatus {
            tasks,
            totals: self.totals,
            counters,
            last_commit_took_ms: self.last_commit_took_ms,
            cache_bytes: self.budget.used_bytes(),
            overlay_bytes: self.running().map(Task::overlay_bytes).sum(),
            outbox_bytes: self.outbox_bytes(),
            queue_bytes: self.running().map(Task::queue_bytes).sum(),
            settled,
            hanging: self.hanging.found(),
            most_records: self.epoch_size.limit(),
        }
    }
}
