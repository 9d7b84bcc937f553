//! A stream thread: one OS thread with its own core, clients and membership. Fetch, process, carry out effects, again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock::Clock;
use super::effects::Clients;
use super::state::State;
use crate::TaskId;
use crate::error::{Error, ProcessResult};
use crate::fetch::Fetched;
use crate::kafka::admin::AdminClient;
use crate::membership::{MembershipEvent, StatusCode};
use crate::metrics::publish::ThreadMetrics;
use crate::runtime::{CoreStatus, GroupIdentity, RestoreProgress, StreamThreadCore};
use crate::topology::TopologyPlan;

/// Records taken from the client and processed in one round, so that commits and the group are looked at in between.
const ROUND_RECORDS: usize = 4_000;
/// How often the group is told that this thread is alive, milliseconds.
const ALIVE_MS: i64 = 100;
/// How often the thread's status is published, milliseconds.
const PUBLISH_MS: i64 = 100;
/// How long a leave may take.
const LEAVE_WAIT: Duration = Duration::from_secs(2);
/// How long the last commit of a stopping thread may take if nothing else was said, milliseconds.
const STOP_MS: i64 = 30_000;

/// What a stream thread tells the instance.
#[derive(Debug)]
pub(super) enum ThreadEvent {
    /// Its state as seen from outside.
    State { thread: usize, state: State },
    /// It ended, well or with an error.
    Ended { thread: usize, error: Option<Box<Error>> },
    /// The group wants every instance to stop.
    ShutdownApplication { detail: String },
}

/// What a thread and the instance share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    status: Mutex<Option<CoreStatus>>,
    restores: Mutex<BTreeMap<TaskId, RestoreProgress>>,
}

impl Shared {
    pub(super) fn restores(&self) -> BTreeMap<TaskId, RestoreProgress> {
        self.restores.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, status: CoreStatus, restores: BTreeMap<TaskId, RestoreProgress>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        *self.restores.lock().unwrap_or_else(PoisonError::into_inner) = restores;
    }

    pub(super) fn status(&self) -> Option<CoreStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

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
    pub(super) fetched: Vec<Fetched>,
    pub(super) metrics: ThreadMetrics,
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
        if let Some(error) = &error {
            tracing::error!(%error, "the stream thread stops; what it had not committed is aborted");
            self.abort();
        }
        if !self.clients.membership.leave(false, LEAVE_WAIT) {
            tracing::warn!("the group did not answer the leave in time; it finds out by the session timeout");
        }
        let (number, report) = (self.number, self.report.clone());
        // Stores close, and the producer and consumer go, before the instance hears of the end.
        drop(self);
        let _ = report.send(ThreadEvent::Ended { thread: number, error });
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
        let wait_ms = self.wait_ms();
        let polling_ms = self.clock.now_ms();
        let mut fetched = std::mem::take(&mut self.fetched);
        let fetching = self.clients.consumer.fetch(ROUND_RECORDS, wait_ms, &mut fetched);
        fetching.map_err(|error| Error::Kafka {
            what: "fetching".to_owned(),
            code: error.name.clone(),
            message: error.to_string(),
        })?;
        let polled_ms = self.clock.now_ms();
        self.metrics.polled(polled_ms - polling_ms, records_in(&fetched));
        self.core.accept(&mut fetched)?;
        self.fetched = fetched;
        let records = self.core.process(polled_ms, ROUND_RECORDS)?;
        self.metrics.processed(self.clock.now_ms() - polled_ms, records);
        self.effects()?;
        self.publish();
        Ok(())
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
        let started_ms = self.clock.now_ms();
        loop {
            // What the group says comes first: a thread that was stopped for long must hear that it lost its tasks
            // before it sends anything of them (design rules 1.1 and 6.3).
            self.membership()?;
            let now_ms = self.clock.now_ms();
            let Some(effect) = self.core.next_effect(now_ms)? else {
                self.metrics.effects(now_ms - started_ms);
                return Ok(());
            };
            self.clients.perform(effect, &mut self.core, self.clock.now_ms())?;
            self.now_and_alive();
        }
    }

    /// How long to wait for records: not at all while there is work, never past the next commit or punctuation.
    fn wait_ms(&self) -> u64 {
        if self.core.buffered() > 0 {
            return 0;
        }
        let now_ms = self.clock.now_ms();
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

    /// Applies what the group says, in order, each event whole before the next.
    fn membership(&mut self) -> ProcessResult {
        while let Ok(event) = self.events.try_recv() {
            self.apply(event)?;
        }
        Ok(())
    }

    fn apply(&mut self, event: MembershipEvent) -> ProcessResult {
        match event {
            MembershipEvent::Assigned {
                assignment,
                member,
                active,
                ready,
                status,
                ..
            } => {
                for status in &status {
                    self.look_at(status)?;
                }
                self.clients.assignment = assignment;
                tracing::info!(
                    epoch = member.epoch,
                    tasks = active.len(),
                    ready,
                    "the group assigned tasks"
                );
                if ready && !active.is_empty() {
                    self.refresh_topics()?;
                }
                let group = GroupIdentity {
                    member_id: member.member_id,
                    member_epoch: member.epoch,
                };
                self.core.on_assigned(group, if ready { active } else { Vec::new() });
                self.tell(State::Rebalancing);
            }
            MembershipEvent::Epoch { member } => {
                self.core.on_epoch(GroupIdentity {
                    member_id: member.member_id,
                    member_epoch: member.epoch,
                });
            }
            MembershipEvent::Lost { assignment, reason } => {
                tracing::warn!(%reason, "every task is lost; uncommitted work is dropped");
                self.clients.assignment = assignment;
                self.core.on_lost()?;
                self.tell(State::Rebalancing);
            }
            MembershipEvent::Status { status, .. } => {
                for status in &status {
                    self.look_at(status)?;
                }
            }
            MembershipEvent::Refused { error } => {
                tracing::warn!(%error, "the group refused something; it is tried again")
            }
            MembershipEvent::Fatal { error } => {
                return Err(Box::new(Error::Membership {
                    message: error.to_string(),
                }));
            }
            _ => {}
        }
        Ok(())
    }

    fn look_at(&self, status: &crate::membership::Status) -> ProcessResult {
        match status.code {
            StatusCode::ShutdownApplication => {
                let _ = self.report.send(ThreadEvent::ShutdownApplication {
                    detail: status.detail.clone(),
                });
                Ok(())
            }
            StatusCode::IncorrectlyPartitionedTopics => Err(Box::new(Error::Topics {
                message: status.detail.clone(),
            })),
            _ => {
                tracing::info!(status = ?status.code, detail = status.detail, "group status");
                Ok(())
            }
        }
    }

    fn refresh_topics(&mut self) -> ProcessResult {
        let topics = self.clients.cluster.topics(&self.plan);
        let topics = topics.map_err(|error| Error::Kafka {
            what: "describing topics".to_owned(),
            code: error.name.clone(),
            message: error.to_string(),
        })?;
        self.core.set_topics(Arc::new(topics));
        Ok(())
    }

    fn tell(&mut self, state: State) {
        if self.state != state {
            self.state = state;
            self.metrics.state(state.number());
            let _ = self.report.send(ThreadEvent::State {
                thread: self.number,
                state,
            });
        }
    }

    fn publish(&mut self) {
        let now_ms = self.clock.now_ms();
        let settled = self.core.status_settled();
        if now_ms - self.published_ms < PUBLISH_MS && (settled == (self.state == State::Running)) {
            return;
        }
        self.publish_at(now_ms);
        let running = settled && self.clients.assignment > 0;
        self.tell(if running { State::Running } else { State::Rebalancing });
    }

    fn publish_at(&mut self, now_ms: i64) {
        let (status, restores) = (self.core.status(), self.clients.restorer.progress());
        let elapsed_ms = now_ms - self.published_ms;
        self.metrics
            .publish(&status, self.core.take_commits(), &restores, elapsed_ms);
        self.published_ms = now_ms;
        self.shared.set(status, restores);
    }

    /// Commits what is processed, gives every task back and says so to the group.
    fn finish(&mut self) -> ProcessResult {
        let deadline_ms = self.clock.now_ms() + STOP_MS;
        let group = self.core.group().clone();
        self.core.on_assigned(group, []);
        while self.core.has_uncommitted() || !self.core.status_settled() || !self.core.is_idle() {
            self.effects()?;
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
        if let Some(producer) = &self.clients.producer {
            if let Err(error) = producer.abort(ABORT_MS) {
                tracing::debug!(%error, "the last abort failed; the broker ends the transaction at its timeout");
            }
        }
    }
}

fn records_in(fetched: &[Fetched]) -> usize {
    let records = |item: &Fetched| match item {
        Fetched::Records(batch) => batch.len(),
        _ => 0,
    };
    fetched.iter().map(records).sum()
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
