//! What runs behind a handle: the state directory, the global thread, the stream threads, and who follows them.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use streams_state::{MemoryBudget, StateDirectory, StateDirectoryConfig, StoreSpec, TaskState};
use tokio::sync::watch;

use super::cleaner::Cleaner;
use super::clock::Clock;
use super::cluster::Cluster;
use super::effects::Clients;
use super::global::{self, GlobalThread};
use super::restorer::Restorer;
use super::state::State;
use super::streams::StateListener;
use super::thread::{Shared, StreamThread, ThreadEvent, admin};
use crate::TaskId;
use crate::config::{ClientIds, OffsetReset, OnError, StreamsConfig};
use crate::error::{Error, ProcessResult};
use crate::kafka::consumer::BatchConsumer;
use crate::kafka::group::{GroupTarget, MembershipConfig, StreamsMembership, leave_surplus};
use crate::metrics::describe;
use crate::metrics::publish::{ClientMetrics, ThreadMetrics};
use crate::processor::{ErrorHandlers, LogAndContinue};
use crate::runtime::{CoreParts, GlobalState, ResetTo, RuntimeSettings, StreamThreadCore};
use crate::stores::GlobalStores;
use crate::topics::Topics;
use crate::topology::{Topology, TopologyPlan};

/// How often the metrics of the instance are published at least.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Inner {
    pub(super) topology: Arc<Topology>,
    pub(super) plan: Arc<TopologyPlan>,
    pub(super) config: StreamsConfig,
    pub(super) handlers: Mutex<Arc<ErrorHandlers>>,
    pub(super) listener: Mutex<Option<StateListener>>,
    pub(super) state: watch::Sender<State>,
    pub(super) running: Mutex<Running>,
    pub(super) error: Mutex<Option<Arc<Error>>>,
}

#[derive(Default)]
pub(super) struct Running {
    pub(super) threads: Vec<ThreadHandle>,
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

    pub(super) fn stop_threads(&self) {
        for thread in &lock(&self.running).threads {
            thread.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn start(self: &Arc<Self>) -> ProcessResult {
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
        let metrics = ClientMetrics::new(ids.client_id(), &self.config.application_id);
        let supervisor = std::thread::Builder::new().name(format!("{}-supervisor", ids.client_id()));
        let supervisor = supervisor.spawn(move || inner.supervise(&reports, metrics));
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
        let inner_timeout_ms = self.config.task_timeout_ms;
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
                chunk: 100,
                closing: false,
                waiting: None,
                unanswered_since_ms: None,
                task_timeout_ms: inner_timeout_ms,
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
        let mut cleaner = Cleaner::new(self.config.state_cleanup_delay_ms);
        let mut failed = 0;
        loop {
            self.publish(&mut metrics, failed);
            let event = match reports.recv_timeout(PUBLISH_EVERY) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => {
                    cleaner.clean(self);
                    continue;
                }
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
