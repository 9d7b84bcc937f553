//! The handle of an instance: start, look, close. Java: `KafkaStreams`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use streams_state::{MemoryBudget, StateDirectory, StateDirectoryConfig, StoreSpec, TaskState};
use tokio::sync::watch;

use super::clock::Clock;
use super::cluster::Cluster;
use super::effects::Clients;
use super::global::{self, GlobalThread};
use super::restorer::Restorer;
use super::state::State;
use super::thread::{Shared, StreamThread, ThreadEvent, admin};
use crate::TaskId;
use crate::config::{ClientIds, OffsetReset, OnError, StreamsConfig};
use crate::error::{Error, ProcessResult};
use crate::kafka::consumer::BatchConsumer;
use crate::kafka::group::{GroupTarget, MembershipConfig, StreamsMembership, leave_surplus};
use crate::metrics::publish::{ClientMetrics, ThreadMetrics, describe};
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::runtime::{CoreParts, CoreStatus, GlobalState, ResetTo, RestoreProgress, RuntimeSettings, StreamThreadCore};
use crate::stores::GlobalStores;
use crate::topics::Topics;
use crate::topology::{InternalTopicDefaults, Topology, TopologyPlan};

/// Is told each change of state: the new one, then the old one.
pub type StateListener = Box<dyn Fn(State, State) + Send + Sync>;

/// How often the metrics of the instance are published at least.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// What one stream thread is doing.
#[derive(Clone, Debug)]
pub struct ThreadMetadata {
    /// Its name.
    pub name: String,
    /// Its tasks, totals and memory; `None` before its first round.
    pub status: Option<CoreStatus>,
    /// How far the restores are that run or wait, by task.
    pub restores: BTreeMap<TaskId, RestoreProgress>,
}

/// An application's instance: a topology, its threads, its state.
///
/// ```no_run
/// # use streams_core::topology::Topology;
/// # use streams_core::config::StreamsConfig;
/// # use streams_core::kafka::KafkaStreams;
/// # fn run(topology: Topology) -> Result<(), Box<streams_core::Error>> {
/// let config = StreamsConfig::new("billing", "localhost:9092").state_dir("/var/lib/billing");
/// let streams = KafkaStreams::new(topology, config)?;
/// streams.start()?;
/// // …
/// streams.close(std::time::Duration::from_secs(30));
/// # Ok(()) }
/// ```
///
/// Java counterpart: `org.apache.kafka.streams.KafkaStreams`.
pub struct KafkaStreams {
    inner: Arc<Inner>,
}

struct Inner {
    topology: Arc<Topology>,
    plan: Arc<TopologyPlan>,
    config: StreamsConfig,
    handlers: Mutex<Arc<ErrorHandlers>>,
    listener: Mutex<Option<StateListener>>,
    state: watch::Sender<State>,
    running: Mutex<Running>,
    error: Mutex<Option<Arc<Error>>>,
}

#[derive(Default)]
struct Running {
    threads: Vec<ThreadHandle>,
    global: Option<GlobalThread>,
    directory: Option<Arc<StateDirectory>>,
    supervisor: Option<JoinHandle<()>>,
}

struct ThreadHandle {
    name: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    state: State,
    ended: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KafkaStreams {
    /// An instance, not started yet. Checks the configuration and the topology, and reports all findings.
    ///
    /// # Errors
    /// [`Error::Config`] or [`Error::Topology`].
    pub fn new(topology: Topology, config: StreamsConfig) -> ProcessResult<Self> {
        let warnings = config.validate().map_err(|error| Error::Config {
            message: error.to_string(),
        })?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let defaults = InternalTopicDefaults {
            replication_factor: i16::try_from(config.replication_factor).unwrap_or(-1),
            topic_configs: config.topic_configs().clone(),
            window_store_additional_retention_ms: config.windowstore_changelog_additional_retention_ms,
        };
        let plan = topology.plan(&config.application_id, &defaults).map_err(Error::from)?;
        let handlers = handlers_of(&config);
        let inner = Inner {
            topology: Arc::new(topology),
            plan: Arc::new(plan),
            config,
            handlers: Mutex::new(Arc::new(handlers)),
            listener: Mutex::new(None),
            state: watch::Sender::new(State::Created),
            running: Mutex::default(),
            error: Mutex::new(None),
        };
        Ok(KafkaStreams { inner: Arc::new(inner) })
    }

    /// Sets the listener of state changes; before [`start`](Self::start).
    pub fn set_state_listener(&self, listener: impl Fn(State, State) + Send + Sync + 'static) {
        *lock(&self.inner.listener) = Some(Box::new(listener));
    }

    /// Sets handlers of one's own instead of those that the configuration names; before [`start`](Self::start).
    pub fn set_error_handlers(&self, handlers: ErrorHandlers) {
        *lock(&self.inner.handlers) = Arc::new(handlers);
    }

    /// Starts the instance: state directory, global stores (waits until they are filled), stream threads. Returns when the
    /// threads run; their tasks come with the group's first assignment.
    ///
    /// # Errors
    /// When something can't be opened or reached; the instance is then in error.
    pub fn start(&self) -> ProcessResult {
        if !self.inner.become_state(State::Rebalancing) {
            return Err(Box::new(Error::Config {
                message: format!("an instance starts once; this one is {}", self.state()),
            }));
        }
        self.inner.start().inspect_err(|_| {
            self.inner.become_state(State::PendingError);
            self.inner.become_state(State::Error);
        })
    }

    /// What the instance is doing.
    #[must_use]
    pub fn state(&self) -> State {
        *self.inner.state.borrow()
    }

    /// The state, to be watched from async code.
    #[must_use]
    pub fn state_changes(&self) -> watch::Receiver<State> {
        self.inner.state.subscribe()
    }

    /// Waits until the state is one that `wanted` wants, at most `timeout`; answers whether it came.
    pub fn wait_for(&self, timeout: Duration, wanted: impl Fn(State) -> bool) -> bool {
        let clock = Clock::new();
        let end_ms = clock
            .now_ms()
            .saturating_add(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
        loop {
            if wanted(self.state()) {
                return true;
            }
            if clock.now_ms() >= end_ms {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Why the instance is in error.
    #[must_use]
    pub fn error(&self) -> Option<Arc<Error>> {
        lock(&self.inner.error).clone()
    }

    /// What the stream threads are doing. Java: `metadataForLocalThreads`.
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadMetadata> {
        let running = lock(&self.inner.running);
        running
            .threads
            .iter()
            .map(|thread| ThreadMetadata {
                name: thread.name.clone(),
                status: thread.shared.status(),
                restores: thread.shared.restores(),
            })
            .collect()
    }

    /// The process id of this instance; `None` before the start.
    #[must_use]
    pub fn process_id(&self) -> Option<String> {
        lock(&self.inner.running)
            .directory
            .as_ref()
            .map(|directory| directory.identity().process_id.clone())
    }

    /// Finishes the records in hand, commits, leaves the group and stops. Answers whether all that was done within
    /// `timeout`; if not it goes on in the background.
    pub fn close(&self, timeout: Duration) -> bool {
        let state = self.state();
        if state.is_final() {
            return true;
        }
        self.inner.become_state(State::PendingShutdown);
        self.inner.stop_threads();
        if state == State::Created {
            self.inner.become_state(State::NotRunning);
            return true;
        }
        self.wait_for(timeout, State::is_final)
    }

    /// As [`close`](Self::close), from async code: no worker is blocked.
    pub async fn close_async(&self, timeout: Duration) -> bool {
        let mut changes = self.state_changes();
        let created = self.state() == State::Created;
        self.inner.become_state(State::PendingShutdown);
        self.inner.stop_threads();
        if created {
            self.inner.become_state(State::NotRunning);
        }
        let ended = changes.wait_for(|state| state.is_final());
        tokio::time::timeout(timeout, ended).await.is_ok()
    }
}

impl Drop for KafkaStreams {
    /// An instance that nobody closed is told to stop, as by [`close`](KafkaStreams::close) without waiting.
    fn drop(&mut self) {
        self.inner.stop_threads();
    }
}

fn handlers_of(config: &StreamsConfig) -> ErrorHandlers {
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
    fn become_state(&self, next: State) -> bool {
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

    fn stop_threads(&self) {
        for thread in &lock(&self.running).threads {
            thread.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    fn start(self: &Arc<Self>) -> ProcessResult {
        let directory = self.open_directory()?;
        let ids = ClientIds::new(&self.config, &directory.identity().process_id);
        let admin_client = admin(&self.config.admin_properties(&ids))?;
        let cluster = Cluster::new(admin_client);
        describe();
        let (report, reports) = channel();
        let globals = self.start_global(&directory, &cluster, &ids, &report)?;
        self.leave_surplus(&directory);
        let threads = usize::try_from(self.config.num_stream_threads).unwrap_or(1);
        for number in 1..=threads {
            let handle = self.start_thread(number, &directory, &ids, &globals, report.clone())?;
            lock(&self.running).threads.push(handle);
        }
        let inner = Arc::clone(self);
        let metrics = ClientMetrics::new(&ids.client_id(), &self.config.application_id);
        let supervisor = std::thread::Builder::new().name(format!("{}-supervisor", ids.client_id()));
        let supervisor = supervisor.spawn(move || inner.supervise(&reports, metrics));
        lock(&self.running).supervisor = supervisor.ok();
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
        let threads = usize::try_from(self.config.num_stream_threads).unwrap_or(1).max(1);
        let share = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX) / threads;
        RuntimeSettings {
            commit_interval_ms: self.config.effective_commit_interval_ms(),
            commit_adaptive: self.config.commit_adaptive,
            max_task_idle_ms: self.config.max_task_idle_ms,
            buffered_records_per_partition: usize::try_from(self.config.buffered_records_per_partition)
                .unwrap_or(1_000),
            transaction_timeout_ms: self.config.transaction_timeout_ms(),
            task_timeout_ms: self.config.task_timeout_ms,
            purge_interval_ms: self.config.repartition_purge_interval_ms,
            cache_bytes: share(directory.memory().caches()),
            max_uncommitted_bytes: share(directory.memory().overlay_limit()).max(1 << 20),
            reset: match self.config.offset_reset() {
                OffsetReset::Earliest => Some(ResetTo::Earliest),
                OffsetReset::Latest => Some(ResetTo::Latest),
                OffsetReset::None => None,
            },
            ..RuntimeSettings::default()
        }
    }

    fn parts(&self, directory: &Arc<StateDirectory>, globals: &Arc<GlobalStores>) -> CoreParts {
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
        cluster: &Cluster,
        ids: &ClientIds,
        report: &Sender<ThreadEvent>,
    ) -> ProcessResult<Arc<GlobalStores>> {
        let parts = self.parts(directory, &Arc::default());
        let Some(state) = GlobalState::open(&parts)? else {
            return Ok(Arc::default());
        };
        let globals = Arc::new(state.readers(&self.plan));
        let consumer = self.config.global_consumer_properties(ids);
        let report = report.clone();
        let failed = move |error| {
            let _ = report.send(ThreadEvent::Ended {
                thread: 0,
                error: Some(error),
            });
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

    /// Stored members of threads that are no more are let go, or they would keep their tasks for a session timeout.
    fn leave_surplus(&self, directory: &StateDirectory) {
        let threads = usize::try_from(self.config.num_stream_threads).unwrap_or(1);
        for (thread, member) in directory.surplus_members(threads) {
            let target = GroupTarget::new(&self.config.bootstrap_servers, &self.config.application_id);
            match leave_surplus(&target, &member) {
                Ok(()) => {
                    if let Err(error) = directory.forget_member(thread) {
                        tracing::warn!(thread, %error, "the member of a thread that is no more could not be forgotten");
                    }
                }
                Err(error) => {
                    tracing::warn!(thread, %error, "the member of a thread that is no more could not leave; its tasks wait for the session timeout")
                }
            }
        }
    }

    fn start_thread(
        self: &Arc<Self>,
        number: usize,
        directory: &Arc<StateDirectory>,
        ids: &ClientIds,
        globals: &Arc<GlobalStores>,
        report: Sender<ThreadEvent>,
    ) -> ProcessResult<ThreadHandle> {
        let kafka = |what: &str, error: crate::kafka::errors::ClientError| Error::Kafka {
            what: what.to_owned(),
            code: error.name.clone(),
            message: error.to_string(),
        };
        let member_id = directory.member_id(number).map_err(|source| Error::State {
            task: "this process".to_owned(),
            source,
        })?;
        let consumer = BatchConsumer::new(&self.config.main_consumer_properties(ids, number))
            .map_err(|error| kafka("making a consumer", error))?;
        let mut target = GroupTarget::new(&self.config.bootstrap_servers, &self.config.application_id);
        target.client_id = ids.main_consumer(number);
        let mut membership = MembershipConfig::new(
            target,
            member_id,
            &directory.identity().process_id,
            self.plan.group_topology(),
        );
        membership.max_poll_interval_ms = self.config.max_poll_interval_ms();
        membership.rebalance_timeout_ms = i32::try_from(self.config.max_poll_interval_ms()).unwrap_or(i32::MAX);
        membership.heartbeat_max_ms = self.config.streams_heartbeat_max_ms;
        membership.client_tags = self
            .config
            .client_tags()
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let (events, commands) = StreamsMembership::start(membership).map_err(|error| Error::Membership {
            message: error.to_string(),
        })?;
        let clients = Clients {
            group_id: self.config.application_id.clone(),
            consumer,
            producer: None,
            producer_config: self.config.producer_properties(ids, number),
            cluster: Cluster::new(admin(&self.config.admin_properties(ids))?),
            restorer: Restorer::new(
                self.config.restore_consumer_properties(ids, number),
                ids.state_updater(number),
            ),
            membership: commands,
            assignment: 0,
            producer_epoch: 0,
        };
        let shared = Arc::new(Shared::default());
        let (inner, shared_in, directory, globals) = (
            Arc::clone(self),
            Arc::clone(&shared),
            Arc::clone(directory),
            Arc::clone(globals),
        );
        let poll_ms = self.config.poll_ms.max(1);
        let name = ids.stream_thread(number);
        let thread_id = name.clone();
        let body = move || {
            // The core and its tasks are made here and never leave this thread.
            let clock = Clock::new();
            let core = StreamThreadCore::new(inner.parts(&directory, &globals), clock.now_ms());
            let plan = Arc::clone(&inner.plan);
            drop(inner);
            let metrics = ThreadMetrics::new(&thread_id);
            let thread = StreamThread {
                number,
                core,
                clients,
                events,
                plan,
                shared: shared_in,
                report,
                clock,
                poll_ms,
                state: State::Created,
                alive_ms: 0,
                published_ms: 0,
                fetched: Vec::new(),
                metrics,
            };
            thread.run();
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(body);
        let thread = thread.map_err(|error| Error::Bug {
            what: format!("no stream thread: {error}"),
        })?;
        Ok(ThreadHandle {
            name,
            shared,
            thread: Some(thread),
            state: State::Rebalancing,
            ended: false,
        })
    }

    /// Follows the threads: the instance runs when all of them do, and ends when they have ended.
    fn supervise(self: &Arc<Self>, reports: &Receiver<ThreadEvent>, mut metrics: ClientMetrics) {
        let mut failed = 0;
        loop {
            self.publish(&mut metrics, failed);
            let event = match reports.recv_timeout(PUBLISH_EVERY) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match event {
                ThreadEvent::State { thread, state } => self.thread_state(thread, state),
                ThreadEvent::ShutdownApplication { detail } => self.fail(Error::Membership {
                    message: format!("a member asked the whole application to stop: {detail}"),
                }),
                ThreadEvent::Ended { thread, error } => {
                    if let Some(error) = error {
                        failed += u64::from(thread > 0);
                        self.fail(*error);
                    }
                    if self.thread_ended(thread) {
                        break;
                    }
                }
            }
        }
        let mut running = lock(&self.running);
        let (global, directory) = (running.global.take(), running.directory.take());
        drop(running);
        drop(global);
        drop(directory);
        if !self.become_state(State::NotRunning) {
            self.become_state(State::Error);
        }
        self.publish(&mut metrics, failed);
    }

    fn publish(&self, metrics: &mut ClientMetrics, failed: u64) {
        let running = lock(&self.running);
        let alive = running.threads.iter().filter(|thread| !thread.ended).count();
        let directory = running.directory.clone();
        drop(running);
        if let Some(directory) = &directory {
            metrics.memory(&directory.memory_in_use(), &directory.memory().parts());
        }
        let set_aside = directory.map_or(0, |directory| directory.set_aside_total());
        metrics.publish(self.state.borrow().number(), alive, failed, set_aside);
    }

    fn thread_state(&self, number: usize, state: State) {
        let all_run = {
            let mut running = lock(&self.running);
            if let Some(thread) = number.checked_sub(1).and_then(|at| running.threads.get_mut(at)) {
                thread.state = state;
            }
            running
                .threads
                .iter()
                .all(|thread| thread.ended || thread.state == State::Running)
        };
        self.become_state(if all_run { State::Running } else { State::Rebalancing });
    }

    fn fail(&self, error: Error) {
        lock(&self.error).get_or_insert(Arc::new(error));
        self.become_state(State::PendingError);
        self.stop_threads();
    }

    /// Notes the end of a thread; answers whether it was the last.
    fn thread_ended(&self, number: usize) -> bool {
        let mut running = lock(&self.running);
        let mut handle = None;
        if let Some(thread) = number.checked_sub(1).and_then(|at| running.threads.get_mut(at)) {
            thread.ended = true;
            handle = thread.thread.take();
        }
        let last = running.threads.iter().all(|thread| thread.ended);
        drop(running);
        if let Some(handle) = handle {
            let _ = handle.join();
        }
        last
    }
}
