//! The handle of an instance: start, look, close. Java: `KafkaStreams`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::clock::Clock;
use super::instance::{Inner, handlers_of, lock};
use super::shares::Shares;
use super::state::State;
use crate::TaskId;
use crate::config::StreamsConfig;
use crate::error::{Error, ProcessResult};
use crate::processor::ErrorHandlers;
use crate::runtime::{CoreStatus, RestoreProgress, StreamThreadExceptionResponse};
use crate::topology::{InternalTopicDefaults, Topology};

/// Is told each change of state: the new one, then the old one.
pub type StateListener = Box<dyn Fn(State, State) + Send + Sync>;

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

impl ThreadMetadata {
    /// Whether it can do its work: it has looped, runs all its tasks, and no input is held by a transaction of another
    /// producer that was never ended (see [`CoreStatus::hanging`]).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.settled && status.hanging.is_empty())
    }
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

impl KafkaStreams {
    /// An instance, not started yet. Checks the configuration and the topology, and reports all findings.
    ///
    /// # Errors
    /// [`Error::Config`] or [`Error::Topology`].
    pub fn new(topology: Topology, config: StreamsConfig) -> ProcessResult<Self> {
        let warnings = config.validate().map_err(|error| Error::Config {
            message: error.to_string(),
        })?;
        // The state directory warns of its place itself when it is opened, by the real path.
        for warning in warnings.iter().filter(|warning| warning.key != "state.dir") {
            tracing::warn!("{warning}");
        }
        let defaults = InternalTopicDefaults {
            replication_factor: i16::try_from(config.replication_factor).unwrap_or(-1),
            topic_configs: config.topic_configs().clone(),
            window_store_additional_retention_ms: config.windowstore_changelog_additional_retention_ms,
        };
        topology.check_for_streams_group().map_err(Error::from)?;
        let plan = topology.plan(&config.application_id, &defaults).map_err(Error::from)?;
        let handlers = handlers_of(&config);
        let threads = usize::try_from(config.num_stream_threads).unwrap_or(1);
        let inner = Inner {
            topology: Arc::new(topology),
            plan: Arc::new(plan),
            config,
            handlers: Mutex::new(Arc::new(handlers)),
            listener: Mutex::new(None),
            state: watch::Sender::new(State::Created),
            running: Mutex::default(),
            error: Mutex::new(None),
            uncaught: Arc::default(),
            shares: Arc::new(Shares::new(threads)),
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

    /// Sets who answers errors that end a stream thread; before [`start`](Self::start). Without one the client stops, as in
    /// Java. Called on the dying thread, after its transaction was aborted; a panic of a user's closure comes as
    /// [`Error::Processing`]. Java: `setUncaughtExceptionHandler` (KIP-671).
    ///
    /// ```no_run
    /// # use streams_core::{Error, kafka::{KafkaStreams, StreamThreadExceptionResponse}};
    /// # fn set(streams: &KafkaStreams) -> Result<(), Box<Error>> {
    /// streams.set_uncaught_exception_handler(|error| match error {
    ///     Error::Timeout { .. } | Error::Kafka { .. } => StreamThreadExceptionResponse::ReplaceThread,
    ///     _ => StreamThreadExceptionResponse::ShutdownClient,
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] when the instance was started already.
    pub fn set_uncaught_exception_handler(
        &self,
        handler: impl Fn(&Error) -> StreamThreadExceptionResponse + Send + Sync + 'static,
    ) -> ProcessResult {
        if self.state() != State::Created {
            return Err(Box::new(Error::Config {
                message: format!("the handler is set before the start; this instance is {}", self.state()),
            }));
        }
        self.inner.uncaught.set(Box::new(handler));
        Ok(())
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
            // Threads that run already would be nobody's.
            self.inner.stop_threads();
            self.inner.become_state(State::PendingError);
            self.inner.become_state(State::Error);
        })
    }

    /// What the instance is doing.
    #[must_use]
    pub fn state(&self) -> State {
        *self.inner.state.borrow()
    }

    /// Whether it can do its work, for a readiness probe: it is running and every thread is
    /// [ready](ThreadMetadata::is_ready).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state() == State::Running && self.threads().iter().all(ThreadMetadata::is_ready)
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
            .values()
            .map(|thread| ThreadMetadata {
                name: thread.name.clone(),
                status: thread.shared.status(),
                restores: thread.shared.restores(),
            })
            .collect()
    }

    /// Starts one more stream thread and answers its name; `None` while the instance neither runs nor rebalances. It gets
    /// the smallest number that no thread has, and an equal part of the caches; its tasks come with the group's next
    /// assignment. May be called from any thread. The count is not remembered: the next start has `num.stream.threads`.
    ///
    /// ```no_run
    /// # fn run(streams: &streams_core::kafka::KafkaStreams) -> Result<(), Box<streams_core::Error>> {
    /// if let Some(name) = streams.add_stream_thread()? {
    ///     println!("{name} takes its share");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// Java: `addStreamThread` (KIP-663).
    ///
    /// # Errors
    /// When its clients can't be made or its identity can't be stored; the other threads go on.
    pub fn add_stream_thread(&self) -> ProcessResult<Option<String>> {
        self.inner.add_thread()
    }

    /// Ends one stream thread: it commits, gives its tasks back and leaves the group. Answers its name when it has ended;
    /// `None` when there is none, or the instance neither runs nor rebalances. The others take its part of the caches.
    ///
    /// Called on a stream thread it ends another one; if there is no other, its own, without waiting. Without any thread
    /// the instance stays as it is, for threads to be added.
    ///
    /// Java: `removeStreamThread` (KIP-663).
    ///
    /// # Errors
    /// [`Error::Timeout`] when it has not ended within `timeout`; it goes on ending.
    pub fn remove_stream_thread(&self, timeout: Duration) -> ProcessResult<Option<String>> {
        self.inner.remove_thread(timeout)
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
