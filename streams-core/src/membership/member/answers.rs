//! What answers and failures do to a member.

use super::tasks::TaskSet;
use super::{Member, Phase};
use crate::membership::codec::describe::DescribedGroup;
use crate::membership::codec::heartbeat::HeartbeatResponse;
use crate::membership::topology_diff::differences;
use crate::membership::{GroupTopology, LostReason, MembershipError, MembershipEvent, Status, StatusCode};

/// What the caller does about its connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordination {
    /// Keep it.
    Keep,
    /// The broker does not lead the group (any more): find the coordinator again.
    FindAgain,
}

/// A heartbeat's error codes, by what they make the member do. Source: `StreamsGroupHeartbeatRequestManager.onErrorResponse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 0.
    Accepted,
    /// 15, 16: another broker leads the group.
    OtherCoordinator,
    /// 7, 13, 14, 89: a passing condition (time-out, network, loading, throttling).
    Retry,
    /// 25, 110: the member was removed.
    Fenced,
    /// 69: no such group, or a group of another type.
    NotFound,
    /// 29: the member stays and something must be allowed.
    TopicAuthorization,
    /// All others.
    Refused(i16),
}

impl From<i16> for Answer {
    fn from(code: i16) -> Self {
        match code {
            0 => Self::Accepted,
            15 | 16 => Self::OtherCoordinator,
            7 | 13 | 14 | 89 => Self::Retry,
            25 | 110 => Self::Fenced,
            69 => Self::NotFound,
            29 => Self::TopicAuthorization,
            code => Self::Refused(code),
        }
    }
}

/// Text by which a coordinator tells a changed topology from other invalid requests (both are error 42).
const TOPOLOGY_CHANGED: &str = "Topology updates are not supported";

impl Member {
    /// Takes the answer to the last heartbeat.
    pub fn on_answer(&mut self, response: HeartbeatResponse, now_ms: i64) -> Coordination {
        let answer = Answer::from(response.error_code);
        let leaving = match &mut self.phase {
            Phase::Leaving { attempts_left, .. } => {
                *attempts_left = attempts_left.saturating_sub(1);
                Some(*attempts_left)
            }
            Phase::Joining | Phase::Joined => None,
            // The answer to the leave of a thread that overslept; whatever it is, there is nothing more to send.
            Phase::Overslept { .. } | Phase::Explaining { .. } | Phase::Ended => return Coordination::Keep,
        };
        if let Some(attempts_left) = leaving {
            return self.on_leave_answer(answer, attempts_left);
        }
        let throttle_ms = i64::from(response.throttle_time_ms.max(0));
        let coordination = match answer {
            Answer::Accepted => {
                self.accepted(response, now_ms);
                Coordination::Keep
            }
            Answer::OtherCoordinator | Answer::Retry => {
                // The request was not carried out, but the coordinator may have forgotten what was said before.
                self.say_again();
                self.cadence.failed(now_ms);
                self.report_failing(&message(&response), now_ms);
                if answer == Answer::Retry {
                    Coordination::Keep
                } else {
                    Coordination::FindAgain
                }
            }
            _ => {
                self.refused(answer, &response, now_ms);
                Coordination::Keep
            }
        };
        if throttle_ms > 0 {
            self.cadence.throttle(now_ms, throttle_ms);
        }
        coordination
    }

    /// The last request failed without an answer: no connection, a time-out, or bytes that are no answer. The coordinator
    /// may have carried it out.
    pub fn on_failure(&mut self, cause: &str, now_ms: i64) {
        if let Phase::Leaving { attempts_left, .. } = &mut self.phase {
            *attempts_left = attempts_left.saturating_sub(1);
            if *attempts_left == 0 {
                self.end(MembershipEvent::Left);
            }
            return;
        }
        if let Phase::Explaining { broker_message } = &self.phase {
            let broker_message = broker_message.clone();
            return self.explain_without_group(broker_message);
        }
        self.in_doubt |= self.phase == Phase::Joined;
        self.say_again();
        self.cadence.failed(now_ms);
        self.report_failing(cause, now_ms);
    }

    /// The caller found something that no retry mends (unsupported brokers, a refused setting).
    pub fn on_fatal(&mut self, error: MembershipError) {
        if self.phase != Phase::Ended {
            self.end(MembershipEvent::Fatal { error });
        }
    }

    /// Takes the description of the group that [`Step::Describe`](super::Step::Describe) asked for.
    pub fn on_described(&mut self, group: &DescribedGroup, now_ms: i64) -> Coordination {
        let answer = Answer::from(group.error_code);
        if let Phase::Explaining { broker_message } = &self.phase {
            let broker_message = broker_message.clone();
            self.explain(group, broker_message);
            return Coordination::Keep;
        }
        match answer {
            Answer::OtherCoordinator | Answer::Retry => {
                self.cadence.failed(now_ms);
                if answer == Answer::Retry {
                    Coordination::Keep
                } else {
                    Coordination::FindAgain
                }
            }
            _ => {
                self.settle_doubt(group, now_ms);
                Coordination::Keep
            }
        }
    }

    fn on_leave_answer(&mut self, answer: Answer, attempts_left: u32) -> Coordination {
        match answer {
            Answer::OtherCoordinator | Answer::Retry if attempts_left > 0 => Coordination::FindAgain,
            // Left, or not a member: both are what was wanted. Any other refusal ends in the session time-out.
            _ => {
                self.end(MembershipEvent::Left);
                Coordination::Keep
            }
        }
    }

    fn say_again(&mut self) {
        self.say_tasks = self.phase == Phase::Joined;
    }

    fn accepted(&mut self, response: HeartbeatResponse, now_ms: i64) {
        let joined_now = self.phase == Phase::Joining;
        let epoch_changed = joined_now || response.member_epoch != self.epoch;
        self.phase = Phase::Joined;
        self.epoch = response.member_epoch;
        self.endpoint_epoch = response.endpoint_epoch;
        self.say_tasks = false;
        let status_changed = self.take_statuses(&response);
        match response.tasks.as_ref().map(TaskSet::from_wire) {
            Some(Some(tasks)) => self.assign(tasks),
            Some(None) => return self.protocol_error("it assigned a task of a sub-topology that was never sent"),
            None => {
                if epoch_changed {
                    self.events.push_back(MembershipEvent::Epoch {
                        member: self.identity(),
                    });
                }
                if status_changed {
                    let (ready, status) = (self.ready(), self.statuses.clone());
                    self.events.push_back(MembershipEvent::Status { ready, status });
                }
                self.describe_due = self.in_doubt;
            }
        }
        if let Some(endpoints) = response.endpoints {
            self.events.push_back(MembershipEvent::Endpoints { endpoints });
        }
        let waiting = self.waits();
        self.cadence.succeeded(
            now_ms,
            i64::from(response.heartbeat_interval_ms),
            waiting,
            epoch_changed,
        );
    }

    fn assign(&mut self, tasks: TaskSet) {
        self.in_doubt = false;
        self.describe_due = false;
        self.assignment += 1;
        self.held.add(&tasks);
        self.assigned = tasks;
        self.events.push_back(MembershipEvent::Assigned {
            assignment: self.assignment,
            member: self.identity(),
            active: self.assigned.active.iter().copied().collect(),
            standby: self.assigned.standby.iter().copied().collect(),
            ready: self.ready(),
            status: self.statuses.clone(),
        });
    }

    /// Takes over the statuses; a null list leaves them. Says whether anything changed.
    fn take_statuses(&mut self, response: &HeartbeatResponse) -> bool {
        let Some(statuses) = &response.status else { return false };
        let statuses: Vec<Status> = statuses.iter().map(Status::from).collect();
        let changed = statuses != self.statuses;
        self.statuses = statuses;
        changed
    }

    fn ready(&self) -> bool {
        self.statuses.iter().all(Status::lets_tasks_run)
    }

    /// Whether tasks are awaited: none since the join, or a status that will change soon.
    fn waits(&self) -> bool {
        let delayed = self
            .statuses
            .iter()
            .any(|status| status.code == StatusCode::AssignmentDelayed);
        self.held.is_empty() || delayed || !self.ready()
    }

    fn refused(&mut self, answer: Answer, response: &HeartbeatResponse, now_ms: i64) {
        let broker_message = message(response);
        let group = self.config.group_id.clone();
        match answer {
            Answer::Fenced => self.rejoin(LostReason::Fenced, now_ms),
            Answer::NotFound if self.phase == Phase::Joined => self.rejoin(LostReason::GroupDeleted, now_ms),
            Answer::TopicAuthorization if self.phase == Phase::Joining => {
                // It has nothing yet, and would wait for ever.
                let error = MembershipError::TopicAuthorization { group, broker_message };
                self.end(MembershipEvent::Fatal { error });
            }
            Answer::TopicAuthorization => {
                self.say_again();
                self.cadence.failed(now_ms);
                let error = MembershipError::TopicAuthorization { group, broker_message };
                self.events.push_back(MembershipEvent::Refused { error });
            }
            Answer::Refused(42) if broker_message.contains(TOPOLOGY_CHANGED) => {
                self.phase = Phase::Explaining { broker_message };
            }
            _ => {
                let error = fatal(group, response.error_code, broker_message);
                self.end(MembershipEvent::Fatal { error });
            }
        }
    }

    /// The first rejoin comes at once, further ones after a pause: the member may be removed again each time.
    fn rejoin(&mut self, reason: LostReason, now_ms: i64) {
        let joined = self.phase == Phase::Joined;
        self.lose(reason);
        self.phase = Phase::Joining;
        if joined {
            self.cadence.restart(now_ms);
        } else {
            self.cadence.failed(now_ms);
        }
    }

    /// Compares our entry with what we know. Only our own heartbeats change it, so it is what the lost answer said.
    fn settle_doubt(&mut self, group: &DescribedGroup, now_ms: i64) {
        let entry = group
            .members
            .iter()
            .find(|member| member.member_id == self.config.member_id);
        let entry = entry.filter(|member| member.member_epoch == self.epoch);
        let Some(tasks) = entry.and_then(|member| TaskSet::from_wire(&member.assignment)) else {
            // Not there, or moved since: a join gives the whole assignment.
            return self.rejoin(LostReason::OutOfStep, now_ms);
        };
        self.in_doubt = false;
        self.describe_due = false;
        if tasks != self.assigned {
            self.assign(tasks);
        }
    }

    fn explain(&mut self, group: &DescribedGroup, broker_message: String) {
        let stored = group.topology.as_ref().and_then(GroupTopology::from_described);
        match stored {
            Some(stored) => {
                let found = differences(&self.config.topology, &stored);
                self.end_changed(found, broker_message);
            }
            None => self.explain_without_group(broker_message),
        }
    }

    fn explain_without_group(&mut self, broker_message: String) {
        let unknown =
            "the broker does not show the group's topology now (a source topic is missing, or it cannot be described)";
        self.end_changed(vec![unknown.to_owned()], broker_message);
    }

    fn end_changed(&mut self, differences: Vec<String>, broker_message: String) {
        let group = self.config.group_id.clone();
        self.end(MembershipEvent::Fatal {
            error: MembershipError::TopologyChanged {
                group,
                differences,
                broker_message,
            },
        });
    }

    fn protocol_error(&mut self, reason: &str) {
        let error = MembershipError::Protocol {
            group: self.config.group_id.clone(),
            reason: reason.to_owned(),
        };
        self.end(MembershipEvent::Fatal { error });
    }

    fn report_failing(&mut self, cause: &str, now_ms: i64) {
        if let Some(failing_ms) = self.cadence.failing_to_report(now_ms) {
            let (group, bootstrap) = (self.config.group_id.clone(), self.config.bootstrap.clone());
            let error = MembershipError::Unreachable {
                group,
                bootstrap,
                failing_ms,
                cause: cause.to_owned(),
            };
            self.events.push_back(MembershipEvent::Refused { error });
        }
    }
}

fn message(response: &HeartbeatResponse) -> String {
    response
        .error_message
        .clone()
        .unwrap_or_else(|| format!("error {}", response.error_code))
}

/// The error that ends membership.
fn fatal(group: String, code: i16, broker_message: String) -> MembershipError {
    match code {
        30 => MembershipError::GroupAuthorization { group, broker_message },
        35 => MembershipError::StreamsGroupsUnsupported {
            group,
            reason: broker_message,
        },
        42 => MembershipError::Protocol {
            group,
            reason: broker_message,
        },
        69 => MembershipError::NotAStreamsGroup { group, broker_message },
        81 => MembershipError::GroupFull { group, broker_message },
        130..=132 => MembershipError::InvalidTopology {
            group,
            code,
            broker_message,
        },
        code => MembershipError::Unexpected {
            group,
            code,
            broker_message,
        },
    }
}
