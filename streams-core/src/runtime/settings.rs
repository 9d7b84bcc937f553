//! What a stream thread's core is made with.

use std::sync::Arc;

use streams_state::{StateError, StoreSpec, TaskState};

use super::ResetTo;
use crate::TaskId;
use crate::config::ProcessingGuarantee;
use crate::metrics::meters::Recording;
use crate::processor::ErrorHandlers;
use crate::stores::GlobalStores;
use crate::topics::Topics;
use crate::topology::{Topology, TopologyPlan};

/// The settings of a stream thread's core. Times are milliseconds.
#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// `processing.guarantee`.
    pub guarantee: ProcessingGuarantee,
    /// `commit.interval.ms`.
    pub commit_interval_ms: i64,
    /// `commit.adaptive`: also commit when the input is drained.
    pub commit_adaptive: bool,
    /// `max.task.idle.ms`.
    pub max_task_idle_ms: i64,
    /// `buffered.records.per.partition`.
    pub buffered_records_per_partition: usize,
    /// `transaction.timeout.ms`.
    pub transaction_timeout_ms: i64,
    /// `task.timeout.ms`: how long start-up calls are retried.
    pub task_timeout_ms: i64,
    /// `repartition.purge.interval.ms`.
    pub purge_interval_ms: i64,
    /// `statestore.cache.max.bytes`, this thread's share; 0 turns caching off.
    pub cache_bytes: usize,
    /// Uncommitted bytes (overlays and outbox) that close an epoch early.
    pub max_uncommitted_bytes: usize,
    /// Outbox bytes that are sent while the epoch is still open.
    pub send_bytes: usize,
    /// `auto.offset.reset`; `None` = fail.
    pub reset: Option<ResetTo>,
    /// `metrics.recording.level`, and the clock of latencies.
    pub recording: Recording,
}

impl Default for RuntimeSettings {
    fn default() -> Self {
        RuntimeSettings {
            guarantee: ProcessingGuarantee::ExactlyOnceV2,
            commit_interval_ms: 100,
            commit_adaptive: true,
            max_task_idle_ms: 0,
            buffered_records_per_partition: 1_000,
            transaction_timeout_ms: 10_000,
            task_timeout_ms: 300_000,
            purge_interval_ms: 30_000,
            cache_bytes: 10 << 20,
            max_uncommitted_bytes: 64 << 20,
            send_bytes: 128 << 10,
            reset: Some(ResetTo::Earliest),
            recording: Recording::default(),
        }
    }
}

/// Opens the state of a task.
pub trait StateOpener: Send {
    /// Opens it; the stores are in the order of `specs`.
    ///
    /// # Errors
    /// As [`TaskState::open`].
    fn open(&self, task: TaskId, specs: Vec<StoreSpec>) -> Result<TaskState, StateError>;
}

impl<F: Fn(TaskId, Vec<StoreSpec>) -> Result<TaskState, StateError> + Send> StateOpener for F {
    fn open(&self, task: TaskId, specs: Vec<StoreSpec>) -> Result<TaskState, StateError> {
        self(task, specs)
    }
}

/// What a stream thread's core is made of.
pub struct CoreParts {
    /// The settings.
    pub settings: RuntimeSettings,
    /// The topology.
    pub topology: Arc<Topology>,
    /// Its sub-topologies and internal topics.
    pub plan: Arc<TopologyPlan>,
    /// The topics' partition counts.
    pub topics: Arc<Topics>,
    /// The application's handlers.
    pub handlers: Arc<ErrorHandlers>,
    /// The global stores, to be read.
    pub globals: Arc<GlobalStores>,
    /// Opens tasks' state.
    pub opener: Box<dyn StateOpener>,
}
