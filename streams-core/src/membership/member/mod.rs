//! A member of a streams group as a state machine: told the time, answers and commands, it says what to send next.
//!
//! It keeps three promises:
//!
//! * Identity reaches the stream thread only through its events, in order; every change of the epoch is one.
//! * A task counts as released only when the stream thread has answered the newest assignment. Until then repeated lists
//!   name everything the thread may hold.
//! * A lost answer loses no assignment. The coordinator sends tasks only in the answer to the heartbeat that changed them,
//!   so after a lost answer the group is described and our own entry compared ([`Step::Describe`]).
//!
//! Source: KIP-1071, `StreamsMembershipManager`, `StreamsGroupHeartbeatRequestManager`, `GroupMetadataManager.streamsGroupHeartbeat`.

mod answers;
mod cadence;
mod tasks;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use self::cadence::Cadence;
use self::tasks::TaskSet;
use super::codec::describe::DescribeRequest;
use super::codec::heartbeat::{HeartbeatRequest, JOIN_EPOCH, LEAVE_EPOCH};
use super::codec::structs::{Endpoint, KeyValue, WireTopology};
use super::topology_wire::TopologyError;
use super::{GroupTopology, LostReason, MemberEpoch, MembershipCommand, MembershipError, MembershipEvent, Status};
use crate::record::TaskId;

pub use self::answers::{Answer, Coordination};

/// What a member says about itself when it joins, and how long it waits.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// The group (application id).
    pub group_id: String,
    /// Member id, constant for the stream thread's life.
    pub member_id: String,
    /// Process id, shared by the stream threads of a process.
    pub process_id: String,
    /// `client.rack`.
    pub rack_id: Option<String>,
    /// `client.tag.*`.
    pub client_tags: Vec<(String, String)>,
    /// `application.server`: host and port.
    pub endpoint: Option<(String, u16)>,
    /// How long the coordinator waits for revoked tasks, milliseconds (Java: `max.poll.interval.ms`).
    pub rebalance_timeout_ms: i32,
    /// `max.poll.interval.ms`: a stream thread silent for longer loses its tasks.
    pub max_poll_interval_ms: i64,
    /// `streams.heartbeat.max.ms`: upper bound of the time between heartbeats; `None` is the coordinator's interval.
    pub heartbeat_max_ms: Option<i64>,
    /// The topology.
    pub topology: GroupTopology,
    /// Where the brokers are, for messages.
    pub bootstrap: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this heartbeat and report the answer by [`Member::on_answer`] or [`Member::on_failure`].
    Heartbeat(Box<HeartbeatRequest>),
    /// Describe the group and report by [`Member::on_described`] or [`Member::on_failure`].
    Describe(DescribeRequest),
    /// Nothing before this time, unless a command comes.
    Wait {
        /// Milliseconds of the clock that `now_ms` is read from.
        until_ms: i64,
    },
    /// Membership is over.
    End,
}

/// How often the stream thread's stamp is looked at while it has overslept, milliseconds.
const OVERSLEPT_CHECK_MS: i64 = 100;
/// How often a leave is tried.
const LEAVE_ATTEMPTS: u32 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Not a member: the next heartbeat joins.
    Joining,
    /// A member with an epoch.
    Joined,
    /// The stream thread stood still for too long; its leave is to be sent, or sent.
    Overslept { leave_due: bool },
    /// A leave is to be sent.
    Leaving {
        attempts_left: u32,
        shutdown_application: bool,
    },
    /// The broker refused our topology; the group is described to say why.
    Explaining { broker_message: String },
    /// Over.
    Ended,
}

/// The state machine.
#[derive(Debug)]
pub struct Member {
    config: MemberConfig,
    topology: WireTopology,
    phase: Phase,
    epoch: i32,
    endpoint_epoch: i32,
    /// Number of the newest `Assigned` or `Lost`.
    assignment: u64,
    /// The newest assignment.
    assigned: TaskSet,
    /// Whatever the stream thread may hold: what it has acknowledged, and what was assigned since.
    held: TaskSet,
    /// The next heartbeat carries the task lists.
    say_tasks: bool,
    statuses: Vec<Status>,
    /// An answer was lost, so the coordinator may have assigned something that we do not know.
    in_doubt: bool,
    /// The doubt is ripe: a heartbeat succeeded since.
    describe_due: bool,
    cadence: Cadence,
    alive_at_ms: i64,
    /// Under which id the next join is, where it is not the same.
    next_member_id: Option<String>,
    events: VecDeque<MembershipEvent>,
}

impl Member {
    /// A member that has not joined yet. `now_ms` counts as the stream thread's first sign of life.
    ///
    /// # Errors
    /// [`MembershipError::TopologyNotDescribable`]; [`MembershipError::Setting`] for an empty id, which coordinators refuse.
    pub fn new(config: MemberConfig, now_ms: i64) -> Result<Self, MembershipError> {
        for (key, value) in [
            ("application.id", &config.group_id),
            ("member id", &config.member_id),
            ("process.id", &config.process_id),
        ] {
            if value.is_empty() {
                return Err(MembershipError::Setting {
                    key,
                    value: String::new(),
                    reason: "it must not be empty".into(),
                });
            }
        }
        let topology =
            config
                .topology
                .to_wire()
                .map_err(|error: TopologyError| MembershipError::TopologyNotDescribable {
                    reason: error.to_string(),
                })?;
        Ok(Self {
            cadence: Cadence::new(config.heartbeat_max_ms, &config.member_id, now_ms),
            config,
            topology,
            phase: Phase::Joining,
            epoch: JOIN_EPOCH,
            endpoint_epoch: -1,
            assignment: 0,
            assigned: TaskSet::default(),
            held: TaskSet::default(),
            say_tasks: false,
            statuses: Vec::new(),
            in_doubt: false,
            describe_due: false,
            alive_at_ms: now_ms,
            next_member_id: None,
            events: VecDeque::new(),
        })
    }

    /// The next event for the stream thread.
    pub fn pop_event(&mut self) -> Option<MembershipEvent> {
        self.events.pop_front()
    }

    /// The next step; `now_ms` never goes back. One request is under way at a time.
    pub fn next(&mut self, now_ms: i64) -> Step {
        self.check_poll_interval(now_ms);
        match &self.phase {
            Phase::Ended => Step::End,
            Phase::Overslept { leave_due: true } => {
                self.phase = Phase::Overslept { leave_due: false };
                Step::Heartbeat(Box::new(self.leave(false)))
            }
            Phase::Overslept { leave_due: false } => Step::Wait {
                until_ms: now_ms + OVERSLEPT_CHECK_MS,
            },
            &Phase::Leaving {
                shutdown_application, ..
            } => Step::Heartbeat(Box::new(self.leave(shutdown_application))),
            Phase::Explaining { .. } => self.describe(),
            Phase::Joined if self.describe_due && self.cadence.calm() => self.describe(),
            Phase::Joining | Phase::Joined if now_ms < self.cadence.next_at_ms() => Step::Wait {
                until_ms: self.cadence.next_at_ms().min(self.poll_deadline_ms()),
            },
            Phase::Joined if self.describe_due => self.describe(),
            Phase::Joining => Step::Heartbeat(Box::new(self.join())),
            Phase::Joined => Step::Heartbeat(Box::new(self.heartbeat())),
        }
    }

    /// Takes a command of the stream thread.
    pub fn on_command(&mut self, command: MembershipCommand, now_ms: i64) {
        match command {
            MembershipCommand::Owned {
                assignment,
                active,
                standby,
            } => self.on_owned(assignment, active, standby, now_ms),
            MembershipCommand::HeartbeatNow => self.cadence.hurry(now_ms),
            MembershipCommand::Alive { at_ms } => self.on_alive(at_ms, now_ms),
            MembershipCommand::Rejoin { member_id } => self.on_rejoin(member_id),
            MembershipCommand::Leave { shutdown_application } => self.on_leave(shutdown_application),
        }
    }

    fn on_owned(&mut self, assignment: u64, active: Vec<TaskId>, standby: Vec<TaskId>, now_ms: i64) {
        // An older assignment's answer could release, in the coordinator's eyes, what a newer one takes away and the
        // stream thread still runs.
        if assignment != self.assignment || self.phase != Phase::Joined {
            return;
        }
        self.held = TaskSet {
            active: active.into_iter().collect(),
            standby: standby.into_iter().collect(),
            ..self.assigned.clone()
        };
        // Said even when equal to the lists said last: only lists, never nulls, release revoked tasks.
        self.say_tasks = true;
        self.cadence.at_once(now_ms);
    }

    fn on_alive(&mut self, at_ms: i64, now_ms: i64) {
        self.alive_at_ms = self.alive_at_ms.max(at_ms);
        if matches!(self.phase, Phase::Overslept { leave_due: false }) && now_ms < self.poll_deadline_ms() {
            self.phase = Phase::Joining;
            if let Some(member_id) = self.next_member_id.take() {
                self.config.member_id = member_id;
            }
            self.cadence.restart(now_ms);
        }
    }

    /// The old member leaves as one that overslept does: its leave is sent once. Where that is lost, the coordinator keeps it,
    /// and its tasks with it, for the session time-out; the new member has them only after that.
    fn on_rejoin(&mut self, member_id: String) {
        match self.phase {
            Phase::Joining | Phase::Joined => {
                self.lose(LostReason::ClaimInDoubt);
                self.next_member_id = Some(member_id);
                self.phase = Phase::Overslept { leave_due: true };
            }
            // The next join is to be under the new id.
            Phase::Overslept { .. } => self.next_member_id = Some(member_id),
            Phase::Leaving { .. } | Phase::Explaining { .. } | Phase::Ended => {}
        }
    }

    fn on_leave(&mut self, shutdown_application: bool) {
        match self.phase {
            Phase::Ended | Phase::Leaving { .. } => {}
            // The coordinator has our leave already, or never took us in.
            Phase::Overslept { leave_due: false } | Phase::Explaining { .. } => self.end(MembershipEvent::Left),
            _ => {
                self.phase = Phase::Leaving {
                    attempts_left: LEAVE_ATTEMPTS,
                    shutdown_application,
                }
            }
        }
    }

    fn poll_deadline_ms(&self) -> i64 {
        self.alive_at_ms.saturating_add(self.config.max_poll_interval_ms)
    }

    fn check_poll_interval(&mut self, now_ms: i64) {
        if matches!(self.phase, Phase::Joining | Phase::Joined) && now_ms >= self.poll_deadline_ms() {
            self.lose(LostReason::PollIntervalExceeded);
            self.phase = Phase::Overslept { leave_due: true };
        }
    }

    /// Forgets all tasks and the epoch, and tells the stream thread.
    fn lose(&mut self, reason: LostReason) {
        self.assignment += 1;
        self.epoch = JOIN_EPOCH;
        self.assigned = TaskSet::default();
        self.held = TaskSet::default();
        self.statuses.clear();
        self.in_doubt = false;
        self.describe_due = false;
        self.events.push_back(MembershipEvent::Lost {
            assignment: self.assignment,
            reason,
        });
    }

    fn end(&mut self, last: MembershipEvent) {
        self.phase = Phase::Ended;
        self.events.push_back(last);
    }

    fn identity(&self) -> MemberEpoch {
        MemberEpoch {
            member_id: self.config.member_id.clone(),
            epoch: self.epoch,
        }
    }

    fn describe(&self) -> Step {
        Step::Describe(DescribeRequest {
            group_id: self.config.group_id.clone(),
        })
    }

    fn request(&self, member_epoch: i32) -> HeartbeatRequest {
        HeartbeatRequest {
            group_id: self.config.group_id.clone(),
            member_id: self.config.member_id.clone(),
            member_epoch,
            endpoint_epoch: self.endpoint_epoch,
            rebalance_timeout_ms: -1,
            ..HeartbeatRequest::default()
        }
    }

    fn leave(&self, shutdown_application: bool) -> HeartbeatRequest {
        HeartbeatRequest {
            shutdown_application,
            ..self.request(LEAVE_EPOCH)
        }
    }

    /// A heartbeat of a member; null lists say "as last said".
    fn heartbeat(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            tasks: self.say_tasks.then(|| self.held.to_wire()),
            ..self.request(self.epoch)
        }
    }

    fn join(&self) -> HeartbeatRequest {
        let config = &self.config;
        let tags = config.client_tags.iter();
        HeartbeatRequest {
            rack_id: config.rack_id.clone(),
            rebalance_timeout_ms: config.rebalance_timeout_ms,
            topology: Some(self.topology.clone()),
            tasks: Some(TaskSet::default().to_wire()),
            process_id: Some(config.process_id.clone()),
            endpoint: config.endpoint.clone().map(|(host, port)| Endpoint { host, port }),
            client_tags: Some(
                tags.map(|(key, value)| KeyValue {
                    key: key.clone(),
                    value: value.clone(),
                })
                .collect(),
            ),
            ..self.request(JOIN_EPOCH)
        }
    }
}
