//! A stream thread: one OS thread with its own core, clients and membership. Fetch, process, carry out effects, again.

mod events;
mod group;
mod publish;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use streams_state::MemoryBudget;

use super::clock::Clock;
use super::effects::Clients;
use super::shares::{Share, Shares};
use super::state::State;
use super::uncaught::Uncaught;
pub(super) use events::{Removal, Shared, ThreadEvent};

use crate::error::{Error, ProcessResult};
use crate::fetch::Fetched;
use crate::kafka::admin::AdminClient;
use crate::membership::{MembershipEvent, TaskGate};
use crate::metrics::publish::{Phase, ThreadMetrics};
use crate::runtime::{Reaction, StreamThreadCore};
use crate::topology::TopologyPlan;

/// Records taken from the client and processed in one round, so that commits and the group are looked at in between.
const ROUND_RECORDS: usize = 4_000;
/// How long a round of processing may take before effects and the group have their turn, milliseconds.
const ROUND_MS: i64 = 50;
/// A chunk that took no longer than this may grow.
const FAST_MS: i64 = 5;
/// A chunk that took longer than this shrinks.
const SLOW_MS: i64 = 20;
/// How long a thread that can only wait for its commit does so before it looks at the group again, milliseconds.
const COMMIT_WAIT_MS: u64 = 20;
/// How often the group is told that this thread is alive, milliseconds.
const ALIVE_MS: i64 = 100;
/// Effects that the committer carries out and measures.
const HANDED_OVER: [&str; 4] = ["flush", "send-offsets", "commit", "commit-offsets"];
/// How long a leave may take.
const LEAVE_WAIT: Duration = Duration::from_secs(2);
/// How long the last commit of a stopping thread may take if nothing else was said, milliseconds.
const STOP_MS: i64 = 30_000;

/// Everything a stream thread is made of.
pub(super) struct StreamThread {
    pub(super) number: usize,
    pub(super) core: StreamThreadCore,
    pub(super) clients: Clients,
    pub(super) events: Receiver<MembershipEvent>,
    pub(super) plan: Arc<TopologyPlan>,
    pub(super) shared: Arc<Shared>,
    pub(super) report: Sender<ThreadEvent>,
    pub(super) clock: Clock,
    pub(super) poll_ms: i64,
    pub(super) state: State,
    pub(super) alive_ms: i64,
    pub(super) published_ms: i64,
    pub(super) published_ns: u64,
    /// When the storage was last asked about itself.
    pub(super) deep_ms: i64,
    pub(super) fetched: Vec<Fetched>,
    /// Records processed between two looks at the clock.
    pub(super) chunk: usize,
    /// What the group gave before it may run.
    pub(super) gate: TaskGate,
    /// The instance stops: nothing new is taken up.
    pub(super) closing: bool,
    /// An event that can't be applied yet, and when it is tried again.
    pub(super) waiting: Option<(MembershipEvent, i64)>,
    /// Since when the cluster does not answer.
    pub(super) unanswered_since_ms: Option<i64>,
    pub(super) task_timeout_ms: i64,
    pub(super) metrics: ThreadMetrics,
    pub(super) uncaught: Arc<Uncaught>,
    /// This thread's part of the memory, as the core knows it.
    pub(super) share: Share,
    pub(super) shares: Arc<Shares>,
    pub(super) memory: MemoryBudget,
}

impl StreamThread {
    /// Runs until told to stop, or until it can't go on; closes what it can either way.
    pub(super) fn run(mut self) {
        let span = tracing::info_span!(
            "stream_thread",
            application_id = self.clients.group_id,
            thread = self.number
        );
        let _entered = span.enter();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.work()));
        let error = match result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(panic) => Some(Error::bug(crate::processor::panic_message(&*panic))),
        };
        let reaction = error.map(|error| {
            // What it had not committed is aborted.
            self.abort();
            self.uncaught.react(self.number, error, self.clock.now_ms())
        });
        let for_all = matches!(reaction, Some(Reaction::ShutdownApplication(_)));
        if !self.clients.membership.leave(for_all, LEAVE_WAIT) {
            tracing::warn!(
                shutdown_application = for_all,
                "the group did not answer the leave in time; it finds out by the session timeout"
            );
        }
        let (number, report) = (self.number, self.report.clone());
        // Stores close, and the producer and consumer go, before the instance hears of the end.
        drop(self);
        let _ = report.send(ThreadEvent::Ended {
            thread: number,
            reaction,
        });
    }

    fn work(&mut self) -> ProcessResult {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.round()?;
        }
        self.finish()
    }

    fn round(&mut self) -> ProcessResult {
        let now_ms = self.now_and_alive();
        self.membership()?;
        while let Some(restored) = self.clients.restorer.try_result() {
            self.core.on_restored(restored, now_ms)?;
        }
        self.effects()?;
        let core = &self.core;
        self.clients
            .restorer
            .keep(|task, lease| core.waits_for_restore(task, lease));
        if self.core.waits_for_commit() {
            let waiting_ns = Clock::now_ns();
            self.look_at_commit(COMMIT_WAIT_MS)?;
            self.metrics.effects(Clock::now_ns() - waiting_ns);
            self.publish();
            return Ok(());
        }
        let wait_ms = self.wait_ms();
        let polling_ns = Clock::now_ns();
        let mut fetched = std::mem::take(&mut self.fetched);
        let fetching = self.clients.consumer.fetch(ROUND_RECORDS, wait_ms, &mut fetched);
        fetching.map_err(|error| Error::Kafka {
            what: "fetching".to_owned(),
            code: error.name.clone(),
            message: error.to_string(),
        })?;
        let (polled_ms, polled_ns) = (self.clock.now_ms(), Clock::now_ns());
        self.metrics
            .polled(polled_ns - polling_ns, fetched.iter().map(Fetched::records).sum());
        self.core.accept(&mut fetched)?;
        self.fetched = fetched;
        let records = self.process(polled_ms)?;
        self.metrics.processed(Clock::now_ns() - polled_ns, records);
        self.effects()?;
        self.publish();
        Ok(())
    }

    /// Processes for a bounded time, in chunks that shrink while user code is slow, so that the group, the commit interval
    /// and the transaction's timer are looked at in between (design rules 1.11 and 1.12).
    fn process(&mut self, started_ms: i64) -> ProcessResult<usize> {
        let mut records = 0;
        loop {
            let before_ms = self.now_and_alive();
            let before_ns = Clock::now_ns();
            let done = self.core.process(before_ms, self.chunk)?;
            records += done;
            self.measure_chunk(before_ns, done);
            let after_ms = self.clock.now_ms();
            let drained = done < self.chunk;
            match after_ms - before_ms {
                0..=FAST_MS if !drained => self.chunk = (self.chunk * 2).min(ROUND_RECORDS),
                took_ms if took_ms > SLOW_MS => self.chunk = (self.chunk / 2).max(1),
                _ => {}
            }
            // A commit whose next call is due must not wait for the rest of the round.
            if drained || after_ms - started_ms >= ROUND_MS || self.look_at_commit(0)? {
                return Ok(records);
            }
        }
    }

    fn measure_chunk(&mut self, before_ns: u64, records: usize) {
        if records > 0 {
            let now_ns = Clock::now_ns();
            self.metrics.chunk(now_ns - before_ns, records);
            self.metrics.start_up(Phase::FirstRecord, now_ns);
        }
    }

    fn now_and_alive(&mut self) -> i64 {
        let now_ms = self.clock.now_ms();
        if now_ms - self.alive_ms >= ALIVE_MS {
            self.alive_ms = now_ms;
            self.clients.membership.alive();
        }
        now_ms
    }

    fn effects(&mut self) -> ProcessResult {
        let started_ns = Clock::now_ns();
        loop {
            // What the group says comes first: a thread that was stopped for long must hear that it lost its tasks
            // before it sends anything of them (design rules 1.1 and 6.3).
            self.membership()?;
            self.look_at_commit(0)?;
            let now_ms = self.clock.now_ms();
            let Some(effect) = self.core.next_effect(now_ms)? else {
                self.metrics.effects(Clock::now_ns() - started_ns);
                return Ok(());
            };
            let (step, step_ns) = (effect.name(), Clock::now_ns());
            self.clients.perform(effect, &mut self.core, self.clock.now_ms())?;
            if !HANDED_OVER.contains(&step) {
                self.metrics.step(step, Clock::now_ns() - step_ns);
            }
            self.now_and_alive();
        }
    }

    fn look_at_commit(&mut self, timeout_ms: u64) -> ProcessResult<bool> {
        let clock = self.clock;
        let looked = self
            .clients
            .look_at_commit(&mut self.core, timeout_ms, || clock.now_ms());
        for (step, took_ns) in self.clients.took_ns.drain(..) {
            self.metrics.step(step, took_ns);
        }
        looked
    }

    /// How long to wait for records: not at all while there is work, never past the next commit or punctuation.
    fn wait_ms(&self) -> u64 {
        let now_ms = self.clock.now_ms();
        if self.core.buffered() > 0 && self.core.waits_until_ms(now_ms).is_none() {
            return 0;
        }
        let due_ms = self.core.next_deadline_ms(now_ms).unwrap_or(i64::MAX);
        let wait_ms = (due_ms - now_ms).clamp(0, self.poll_ms);
        // Something restores, or waits for the group: look again soon.
        let soonest = if self.core.status_settled() {
            wait_ms
        } else {
            wait_ms.min(5)
        };
        u64::try_from(soonest).unwrap_or(0)
    }

    /// Commits what is processed, gives every task back and says so to the group.
    fn finish(&mut self) -> ProcessResult {
        let deadline_ms = self.clock.now_ms() + STOP_MS;
        self.closing = true;
        self.waiting = None;
        let group = self.core.group().clone();
        self.core.on_assigned(group, []);
        while self.core.has_uncommitted() || !self.core.status_settled() || !self.core.is_idle() {
            self.effects()?;
            if self.core.has_claimed() {
                // Its offsets are committed already: what is left out now is lost.
                self.core.process(self.clock.now_ms(), self.chunk)?;
            }
            if !self.look_at_commit(1)? {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            if self.clock.now_ms() > deadline_ms {
                return Err(Box::new(Error::Timeout {
                    what: "the last commit".to_owned(),
                    waited_ms: STOP_MS,
                    setting: "transaction.timeout.ms",
                }));
            }
        }
        self.publish_at(self.clock.now_ms());
        Ok(())
    }

    /// Ends an open transaction so that nobody has to wait for its timeout; best effort and bounded.
    fn abort(&mut self) {
        const ABORT_MS: u64 = 5_000;
        if self.clients.committer.is_busy() {
            self.clients.producer = self.clients.committer.take_back();
        }
        if let Some(producer) = &self.clients.producer {
            if let Err(error) = producer.abort(ABORT_MS) {
                tracing::debug!(%error, "the last abort failed; the broker ends the transaction at its timeout");
            }
        }
    }
}

/// Makes an admin client, with an error that names what it was for.
pub(super) fn admin(config: &[(String, String)]) -> ProcessResult<AdminClient> {
    AdminClient::new(config).map_err(|error| {
        Box::new(Error::Kafka {
            what: "making an admin client".to_owned(),
            code: error.name.clone(),
            message: error.to_string(),
        })
    })
}
