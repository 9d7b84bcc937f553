//! What the group says to a stream thread, applied in order.

use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

use super::{StreamThread, ThreadEvent};
use crate::error::{Error, ProcessResult, grant_text};
use crate::kafka::admin::TopicOperation;
use crate::kafka::shell::clock::Clock;
use crate::kafka::shell::cluster;
use crate::kafka::shell::effects::Clients;
use crate::kafka::shell::state::State;
use crate::membership::{MemberEpoch, MembershipError, MembershipEvent, Status, StatusCode};
use crate::metrics::publish::Phase;
use crate::runtime::{FailureClass, GroupIdentity};

/// How long an event waits for an answer of the cluster before it is tried again, milliseconds.
const RETRY_MS: i64 = 200;

impl StreamThread {
    /// Applies what the group says, in order, each event whole before the next.
    pub(super) fn membership(&mut self) -> ProcessResult {
        loop {
            let event = match self.waiting.take() {
                Some((event, next_ms)) if self.clock.now_ms() < next_ms => {
                    self.waiting = Some((event, next_ms));
                    return Ok(());
                }
                Some((event, _)) => event,
                None => match self.events.try_recv() {
                    Ok(event) => event,
                    Err(TryRecvError::Empty) => return self.missing_topics(),
                    Err(TryRecvError::Disconnected) if self.closing => return Ok(()),
                    Err(TryRecvError::Disconnected) => {
                        return Err(Box::new(Error::Membership {
                            message: "the membership thread has ended: restart the instance".to_owned(),
                        }));
                    }
                },
            };
            self.apply(event)?;
        }
    }

    fn apply(&mut self, event: MembershipEvent) -> ProcessResult {
        match event {
            MembershipEvent::Assigned {
                assignment,
                member,
                active,
                ready,
                status,
                standby,
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
                if ready && !active.is_empty() && !self.closing && !self.refresh_topics()? {
                    // The cluster does not answer now. The events behind this one wait too: they are applied in order.
                    let event = MembershipEvent::Assigned {
                        assignment,
                        member,
                        active,
                        standby,
                        ready,
                        status,
                    };
                    self.waiting = Some((event, self.clock.now_ms() + RETRY_MS));
                    return Ok(());
                }
                let active = self.gate.assigned(active, ready, &status, self.clock.now_ms());
                if !active.is_empty() {
                    self.metrics.start_up(Phase::Join, Clock::now_ns());
                }
                let active = if self.closing { Vec::new() } else { active };
                let group = GroupIdentity {
                    member_id: member.member_id,
                    member_epoch: member.epoch,
                };
                self.core.on_assigned(group, active);
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
                self.gate.lost();
                self.core.on_lost()?;
                self.tell(State::Rebalancing);
            }
            MembershipEvent::Status { ready, status } => {
                for status in &status {
                    self.look_at(status)?;
                }
                if let Some(active) = self.gate.changed(ready, &status, self.clock.now_ms()) {
                    let group = self.core.group().clone();
                    return self.apply(MembershipEvent::Assigned {
                        assignment: self.clients.assignment,
                        member: MemberEpoch {
                            member_id: group.member_id,
                            epoch: group.member_epoch,
                        },
                        active,
                        standby: Vec::new(),
                        ready,
                        status: Vec::new(),
                    });
                }
            }
            MembershipEvent::Refused { error } => {
                tracing::warn!(%error, "the group refused something; it is tried again")
            }
            MembershipEvent::Fatal { error } => {
                return Err(Box::new(Error::Membership {
                    message: self.with_topics(&error),
                }));
            }
            _ => {}
        }
        Ok(())
    }

    /// A refusal with the topics that it is about, which the group does not name.
    fn with_topics(&self, error: &MembershipError) -> String {
        let topics = match error {
            MembershipError::TopicAuthorization { .. } => {
                let subs = self.plan.subtopologies.iter();
                let topics: Vec<&str> = subs
                    .flat_map(|sub| sub.external_sources())
                    .map(|topic| &**topic)
                    .collect();
                self.clients.cluster.lacking(TopicOperation::Describe, &topics)
            }
            _ => String::new(),
        };
        format!("{error}{topics}")
    }

    /// Source topics that nobody makes are an error; under `ReplaceThread` it is tried again.
    fn missing_topics(&self) -> ProcessResult {
        match self.gate.missing_source_topics(self.clock.now_ms()) {
            Some(detail) if !self.closing => Err(Box::new(Error::Topics {
                message: format!(
                    "{detail} Make them, or correct their names in the topology, or allow DESCRIBE on them to this client"
                ),
            })),
            _ => Ok(()),
        }
    }

    fn look_at(&self, status: &Status) -> ProcessResult {
        match status.code {
            StatusCode::ShutdownApplication => {
                let _ = self.report.send(ThreadEvent::ShutdownApplication {
                    detail: status.detail.clone(),
                });
                Ok(())
            }
            StatusCode::IncorrectlyPartitionedTopics => Err(Box::new(Error::Topics {
                message: format!(
                    "topics of the application have unfit partition counts: {} Give topics that are joined equal counts; an \
                     internal topic ({}-…) with another count than its inputs have is from before they grew: stop all \
                     instances and reset the application, or go on under a new application.id",
                    status.detail, self.clients.group_id
                ),
            })),
            // The group would say so for ever (`KafkaApis`: "Unauthorized to CREATE on topics").
            StatusCode::MissingInternalTopics if status.detail.contains("Unauthorized to CREATE") => {
                let prefix = format!("{}-", self.clients.group_id);
                let resource = format!("--resource-pattern-type prefixed --topic {prefix}");
                Err(Box::new(Error::Topics {
                    message: format!(
                        "internal topics of the application may not be made: {}{}",
                        status.detail,
                        grant_text("Create on topics with the prefix", &["Create"], &resource)
                    ),
                }))
            }
            StatusCode::MissingSourceTopics => {
                let detail = &status.detail;
                tracing::warn!(
                    %detail,
                    "nothing can be read yet: create the topics within 10 s and it goes on by itself, or it stops with an error"
                );
                Ok(())
            }
            _ => {
                tracing::info!(status = ?status.code, detail = status.detail, "group status");
                Ok(())
            }
        }
    }

    /// Learns the partition counts; false = the cluster does not answer now.
    fn refresh_topics(&mut self) -> ProcessResult<bool> {
        let error = match self.clients.cluster.topics(&self.plan) {
            Ok(mut topics) => {
                self.unanswered_since_ms = None;
                let Clients { sizes, cluster, .. } = &mut self.clients;
                sizes.learn(cluster, &mut topics);
                if sizes.are_batches_too_large(cluster) {
                    self.core.renew_producer();
                }
                self.core.set_topics(Arc::new(topics));
                return Ok(true);
            }
            Err(error) => error,
        };
        let now_ms = self.clock.now_ms();
        let waited_ms = now_ms - *self.unanswered_since_ms.get_or_insert(now_ms);
        let failure = cluster::failure_of(&error);
        if failure.class == FailureClass::Retriable && waited_ms < self.task_timeout_ms {
            tracing::warn!(%error, "topics can't be described now; the assignment waits");
            return Ok(false);
        }
        Err(Box::new(Error::Kafka {
            what: "describing topics".to_owned(),
            code: failure.code,
            message: failure.message,
        }))
    }
}
