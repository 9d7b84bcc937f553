//! What runs behind a handle: the state directory, the global thread, the stream threads, and who follows them.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use streams_state::{MemoryBudget, StateDirectory, StateDirectoryConfig, StoreSpec, TaskState};
use tokio::sync::watch;

use super::clock::Clock;
use super::cluster::Cluster;
use super::global::{self, GlobalThread};
use super::launch::Launcher;
use super::shares::Shares;
use super::state::State;
use super::streams::StateListener;
use super::supervise::Supervisor;
use super::surplus;
use super::thread::{Shared, ThreadEvent, admin};
use super::uncaught::Uncaught;
use crate::TaskId;
use crate::config::{ClientIds, OffsetReset, OnError, StreamsConfig};
use crate::error::{Error, ProcessResult};
use crate::metrics::describe;
use crate::metrics::meters::Recording;
use crate::metrics::publish::ClientMetrics;
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::runtime::{CoreParts, GlobalState, ResetTo, RuntimeSettings};
use crate::stores::GlobalStores;
use crate::topics::Topics;
use crate::topology::{Topology, TopologyPlan};

pub(super) struct Inner {
    pub(super) topology: Arc<Topology>,
    pub(super) plan: Arc<TopologyPlan>,
    pub(super) config: StreamsConfig,
    pub(super) handlers: Mutex<Arc<ErrorHandlers>>,
    pub(super) listener: Mutex<Option<StateListener>>,
    pub(super) state: watch::Sender<State>,
    pub(super) running: Mutex<Running>,
    pub(super) error: Mutex<Option<Arc<Error>>>,
    pub(super) uncaught: Arc<Uncaught>,
    /// Among how many stream threads the memory is divided.
    pub(super) shares: Arc<Shares>,
}

#[derive(Default)]
pub(super) struct Running {
    /// The stream threads by number, from 1.
    pub(super) threads: BTreeMap<usize, ThreadHandle>,
    /// To the supervisor.
    pub(super) orders: Option<Sender<ThreadEvent>>,
    pub(super) global: Option<GlobalThread>,
    pub(super) directory: Option<Arc<StateDirectory>>,
    pub(super) supervisor: Option<JoinHandle<()>>,
}

pub(super) struct ThreadHandle {
    pub(super) name: String,
    pub(super) shared: Arc<Shared>,
    pub(super) thread: Option<JoinHandle<()>>,
    pub(super) state: State,
    pub(super) ended: bool,
    /// It ended, and another will take its place.
    pub(super) replacing: bool,
    /// It was told to end, and nobody will take its place.
    pub(super) leaving: bool,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn handlers_of(config: &StreamsConfig) -> ErrorHandlers {
    let mut handlers = ErrorHandlers::default();
    if config.deserialization_exception_handler == OnError::Continue {
        handlers.deserialization = Arc::new(LogAndContinue);
    }
    if config.processing_exception_handler == OnError::Continue {
        handlers.processing = Arc::new(LogAndContinue);
    }
    if config.production_exception_handler == OnError::Continue {
        handlers.production = Arc::new(LogAndContinue);
    }
    handlers.dead_letter_topic = config.errors_dead_letter_queue_topic_name.as_deref().map(Arc::from);
    handlers
}

impl Inner {
    /// Changes the state if that is allowed, and tells the listener.
    pub(super) fn become_state(&self, next: State) -> bool {
        let mut old = None;
        self.state.send_if_modified(|state| {
            let allowed = state.can_become(next);
            if allowed {
                old = Some(*state);
                *state = next;
            }
            allowed
        });
        if let Some(old) = old {
            tracing::info!(from = %old, to = %next, "state changed");
            if let Some(listener) = &*lock(&self.listener) {
                listener(next, old);
            }
        }
        old.is_some()
    }

    pub(super) fn start(self: &Arc<Self>) -> ProcessResult {
        let directory = self.open_directory()?;
        let ids = ClientIds::new(&self.config, &directory.identity().process_id);
        let admin_client = admin(&self.config.admin_properties(&ids))?;
        let mut cluster = Cluster::new(admin_client);
        describe();
        let (report, reports) = channel();
        let globals = self.start_global(&directory, &mut cluster, &ids, &report)?;
        let threads = usize::try_from(self.config.num_stream_threads).unwrap_or(1);
        surplus::let_go(&self.config, &ids, &directory, threads);
        let level = self.config.metrics_recording_level;
        let metrics = ClientMetrics::new(level, ids.client_id(), &self.config.application_id);
        let supervisor = std::thread::Builder::new().name(format!("{}-supervisor", ids.client_id()));
        let launcher = Launcher {
            inner: Arc::clone(self),
            directory,
            ids,
            globals,
            report,
        };
        lock(&self.running).orders = Some(launcher.report.clone());
        for number in 1..=threads {
            let handle = launcher.start(number)?;
            lock(&self.running).threads.insert(number, handle);
        }
        let supervisor = supervisor.spawn(move || Supervisor::new(launcher, metrics).run(&reports));
        lock(&self.running).supervisor = supervisor.ok();
        if *self.state.borrow() == State::PendingShutdown {
            // Closed while it started: the threads did not exist yet when they were told to stop.
            self.stop_threads();
        }
        Ok(())
    }

    fn open_directory(&self) -> ProcessResult<Arc<StateDirectory>> {
        let memory = self
            .config
            .memory_max_bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
            .map_or_else(MemoryBudget::detect, MemoryBudget::of);
        let memory = match self
            .config
            .statestore_cache_max_bytes
            .and_then(|bytes| u64::try_from(bytes).ok())
        {
            Some(caches) => memory.with_caches(caches),
            None => memory,
        };
        let mut config = StateDirectoryConfig::new(&self.config.state_dir, &self.config.application_id);
        config.process_id.clone_from(&self.config.process_id);
        config.memory = memory;
        let directory = StateDirectory::open(config).map_err(|source| Error::State {
            task: "this process".to_owned(),
            source,
        })?;
        lock(&self.running).directory = Some(Arc::clone(&directory));
        Ok(directory)
    }

    fn settings(&self, directory: &StateDirectory) -> RuntimeSettings {
        let share = self.shares.of(directory.memory());
        RuntimeSettings {
            guarantee: self.config.processing_guarantee,
            commit_interval_ms: self.config.effective_commit_interval_ms(),
            commit_adaptive: self.config.commit_adaptive,
            max_task_idle_ms: self.config.max_task_idle_ms,
            buffered_records_per_partition: usize::try_from(self.config.buffered_records_per_partition)
                .unwrap_or(1_000),
            transaction_timeout_ms: self.config.transaction_timeout_ms(),
            task_timeout_ms: self.config.task_timeout_ms,
            purge_interval_ms: self.config.repartition_purge_interval_ms,
            cache_bytes: share.cache_bytes,
            max_uncommitted_bytes: share.uncommitted_bytes,
            recording: Recording {
                level: self.config.metrics_recording_level,
                clock_ns: Some(Clock::now_ns),
            },
            reset: match self.config.offset_reset() {
                OffsetReset::Earliest => Some(ResetTo::Earliest),
                OffsetReset::Latest => Some(ResetTo::Latest),
                OffsetReset::None => None,
            },
            ..RuntimeSettings::default()
        }
    }

    pub(super) fn parts(&self, directory: &Arc<StateDirectory>, globals: &Arc<GlobalStores>) -> CoreParts {
        let settings = self.settings(directory);
        let directory = Arc::clone(directory);
        let opener = move |task: TaskId, specs: Vec<StoreSpec>| match specs.is_empty() {
            true => TaskState::in_memory(&task.to_string(), specs),
            false => TaskState::open(&directory, &task.to_string(), specs),
        };
        CoreParts {
            settings,
            topology: Arc::clone(&self.topology),
            plan: Arc::clone(&self.plan),
            topics: Arc::new(Topics::new(&self.config.application_id)),
            handlers: Arc::clone(&lock(&self.handlers)),
            globals: Arc::clone(globals),
            opener: Box::new(opener),
        }
    }

    fn start_global(
        self: &Arc<Self>,
        directory: &Arc<StateDirectory>,
        cluster: &mut Cluster,
        ids: &ClientIds,
        report: &Sender<ThreadEvent>,
    ) -> ProcessResult<Arc<GlobalStores>> {
        let parts = self.parts(directory, &Arc::default());
        let Some(state) = GlobalState::open(&parts)? else {
            return Ok(Arc::default());
        };
        let globals = Arc::new(state.readers(&self.plan));
        let consumer = self.config.global_consumer_properties(ids);
        let (report, uncaught) = (report.clone(), Arc::clone(&self.uncaught));
        let failed = move |error| {
            let reaction = Some(uncaught.react(0, error, Clock::new().now_ms()));
            let _ = report.send(ThreadEvent::Ended { thread: 0, reaction });
        };
        let thread = global::start(
            parts,
            state,
            cluster,
            &consumer,
            ids.global_thread(),
            self.config.task_timeout_ms,
            failed,
        )?;
        lock(&self.running).global = Some(thread);
        Ok(globals)
    }
}
