//! Effects of the core, carried out with librdkafka.

use streams_state::StateDirectory;

use super::clock::Watch;
use super::cluster::{Cluster, failure_of};
use super::committer::{CALL_BOUND_MS, CallError, CommitCall, Committer, Finished, SLICE_MS};
use super::hooks;
use super::offsets;
use super::restorer::Restorer;
use super::sizes::Sizes;
use crate::TopicPartition;
use crate::error::{Error, ProcessResult, grant_text};
use crate::kafka::admin::{Isolation, OffsetSpec, TopicOperation};
use crate::kafka::consumer::{AssignedPartition, BatchConsumer};
use crate::kafka::errors::{ClientError, Reaction, TxnError, TxnErrorClass};
use crate::kafka::group::CommandSender;
use crate::kafka::producer::{
    DeliveryFailure, GroupIdentity, OffsetCommit, Reports as DeliveryReports, TransactionalProducer,
};
use crate::membership::MembershipCommand;
use crate::runtime::{CallFailure, CommittedOffset, Effect, FailureClass, Outcome, ResetTo, StreamThreadCore};

/// `init_transactions` waits for the coordinator, which may have to abort a transaction first.
const INIT_MS: u64 = 30_000;
/// Committed offsets wait for pending transactions; between slices commits of other tasks go on.
const COMMITTED_MS: u64 = 500;

/// How librdkafka refuses a record in a transaction that has to be aborted.
const WRONG_STATE: &str = "_STATE";
/// Refusals that are the record's own fault: the production handler is asked.
const TOO_LARGE: [&str; 2] = ["MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"];

/// The clients of one stream thread.
pub(super) struct Clients {
    pub(super) group_id: String,
    pub(super) consumer: BatchConsumer,
    /// Away while the committer makes a call with it.
    pub(super) producer: Option<TransactionalProducer>,
    pub(super) committer: Committer,
    /// `commit.pipelined`: whether the stream thread goes on while the committer works.
    pub(super) pipelined: bool,
    /// Whether there are transactions (exactly once).
    pub(super) transactional: bool,
    pub(super) producer_config: Vec<(String, String)>,
    pub(super) sizes: Sizes,
    pub(super) cluster: Cluster,
    pub(super) restorer: Restorer,
    pub(super) membership: CommandSender,
    /// The assignment that is being applied.
    pub(super) assignment: u64,
    /// Calls of commits that the committer has made, with the time they took, ns, until somebody takes them.
    pub(super) took_ns: Vec<(&'static str, u64)>,
    /// The producer's number of the open epoch.
    pub(super) producer_epoch: u32,
    /// Without transactions nothing is begun: the core's epoch that the producer's number belongs to.
    pub(super) sent_epoch: Option<u32>,
    /// The core's epoch that is being flushed.
    pub(super) flushing_epoch: u32,
}

impl Clients {
    /// Carries out one effect and tells the core how it ended.
    pub(super) fn perform(&mut self, effect: Effect, core: &mut StreamThreadCore, now_ms: i64) -> ProcessResult {
        if let Effect::Restore(job) = effect {
            tracing::trace!(effect = "restore", task_id = %job.task, "handed over");
            self.restorer.submit(job);
            return Ok(());
        }
        // What a slow commit is made of, for those who look.
        let traced = tracing::enabled!(tracing::Level::TRACE).then(|| (effect.name(), Watch::start()));
        let outcome = self.outcome_of(effect, core, now_ms)?;
        if let Some((effect, watch)) = traced {
            tracing::trace!(effect, took_us = watch.elapsed_us(), "carried out");
        }
        if let Some(outcome) = outcome {
            return core.on_outcome(outcome, now_ms);
        }
        if !self.pipelined && self.committer.is_busy() {
            self.look_at_commit(core, CALL_BOUND_MS, || now_ms)?;
        }
        Ok(())
    }

    /// `None`: the core was told already, or will be when the committer is done.
    fn outcome_of(
        &mut self,
        effect: Effect,
        core: &mut StreamThreadCore,
        now_ms: i64,
    ) -> ProcessResult<Option<Outcome>> {
        let outcome = match effect {
            Effect::InitTransactions => self.init(),
            Effect::OpenProducer => self.open(),
            Effect::RecreateProducer => {
                self.producer = None;
                self.sent_epoch = None;
                Outcome::Done
            }
            Effect::FetchCommitted { partitions } => self.committed(&partitions),
            Effect::ResolveReset { partitions } => self.resolve(&partitions),
            Effect::ListChangelogs { partitions } => self
                .cluster
                .changelogs(&partitions)
                .map_or_else(|e| failed(&e), Outcome::Changelogs),
            Effect::ListEnds { partitions } => self
                .cluster
                .offsets(&partitions, OffsetSpec::Latest, Isolation::ReadUncommitted)
                .map_or_else(|e| failed(&e), |ends| Outcome::Ends(ends.into_iter().collect())),
            Effect::Assign { partitions } => {
                let assigned = partitions.into_iter().map(|a| AssignedPartition {
                    topic: a.topic_partition.topic.to_string(),
                    partition: a.topic_partition.partition,
                    start_offset: a.start_offset,
                    id: a.id,
                    incarnation: a.incarnation,
                });
                done(self.consumer.incremental_assign(&assigned.collect::<Vec<_>>()))
            }
            Effect::Unassign { partitions } => {
                hooks::reach("during-revoke");
                done(self.consumer.incremental_unassign(&partitions))
            }
            Effect::Pause { partitions } => {
                self.consumer.pause(&partitions);
                Outcome::Done
            }
            Effect::Resume { partitions } => {
                self.consumer.resume(&partitions);
                Outcome::Done
            }
            Effect::BeginTransaction => match self.producer()?.begin() {
                Ok(epoch) => {
                    self.producer_epoch = epoch;
                    Outcome::Done
                }
                Err(error) => refused(&error),
            },
            Effect::Send { epoch } => {
                if !self.transactional && self.sent_epoch != Some(epoch) {
                    match self.producer()?.begin() {
                        Ok(number) => (self.producer_epoch, self.sent_epoch) = (number, Some(epoch)),
                        Err(error) => return Ok(Some(refused(&error))),
                    }
                }
                return self.send(core);
            }
            Effect::Flush { epoch } => {
                self.flushing_epoch = epoch;
                return self.hand_over(CommitCall::Flush);
            }
            Effect::SendOffsets { offsets, group, .. } => {
                let identity = GroupIdentity {
                    group_id: self.group_id.clone(),
                    member_id: group.member_id,
                    member_epoch: group.member_epoch,
                    instance_id: None,
                };
                let offsets: Vec<OffsetCommit> = offsets.into_iter().map(commit_of).collect();
                return self.hand_over(CommitCall::SendOffsets(offsets, identity));
            }
            Effect::CommitTransaction { .. } => return self.hand_over(CommitCall::Commit),
            Effect::CommitOffsets { offsets, group } => {
                hooks::reach("before-offsets");
                let request = offsets::request_of(&self.group_id, offsets, group);
                return self.hand_over(CommitCall::Offsets(self.membership.offsets(), request));
            }
            Effect::Rejoin => {
                let member_id = StateDirectory::fresh_member_id();
                self.membership.send(MembershipCommand::Rejoin { member_id });
                Outcome::Done
            }
            Effect::AbortTransaction => ended(self.producer()?.abort(SLICE_MS)),
            Effect::Apply { .. } => {
                core.apply(now_ms)?;
                hooked("after-apply", Outcome::Done)
            }
            Effect::Acknowledge { tasks } => {
                hooks::reach("before-acknowledge");
                self.membership.owned(self.assignment, tasks, Vec::new());
                Outcome::Done
            }
            Effect::HeartbeatNow => {
                self.membership.send(MembershipCommand::HeartbeatNow);
                Outcome::Done
            }
            Effect::Purge { before } => self.purge(&before),
            Effect::Restore(_) => return Err(Error::bug("a restore is no effect with an outcome")),
        };
        Ok(Some(outcome))
    }

    /// Lets the committer make a call; its end comes by [`look_at_commit`](Self::look_at_commit).
    fn hand_over(&mut self, call: CommitCall) -> ProcessResult<Option<Outcome>> {
        let producer = self.producer.take();
        let producer = producer.ok_or_else(|| Error::bug("there is no producer"))?;
        self.committer.submit(producer, call).map(|()| None)
    }

    /// Tells the core how a call of a commit ended, if one has; answers whether one has. Waits up to `timeout_ms` for it.
    pub(super) fn look_at_commit(
        &mut self,
        core: &mut StreamThreadCore,
        timeout_ms: u64,
        now_ms: impl Fn() -> i64,
    ) -> ProcessResult<bool> {
        let finished = match timeout_ms {
            0 => self.committer.try_finished()?,
            _ => self.committer.wait_finished(timeout_ms)?,
        };
        let Some(finished) = finished else {
            return Ok(false);
        };
        let Finished {
            producer,
            call,
            result,
            took_ns,
        } = finished;
        self.took_ns.push((call.name(), took_ns));
        self.producer = Some(producer);
        let outcome = match (call, result) {
            (CommitCall::Flush, Ok(())) => self.flushed(core)?,
            (CommitCall::SendOffsets(..), Ok(())) => Some(hooked("after-offsets-sent-before-commit", Outcome::Done)),
            (CommitCall::Commit, Ok(())) => Some(hooked("after-commit-before-apply", Outcome::Done)),
            (CommitCall::Offsets(..), Ok(())) => Some(hooked("after-offsets", Outcome::Done)),
            (_, Err(CallError::Producer(error))) => Some(self.refused(&error)),
            (_, Err(CallError::Group(failure))) => Some(Outcome::Failed(failure)),
        };
        if let Some(outcome) = outcome {
            core.on_outcome(outcome, now_ms())?;
        }
        Ok(true)
    }

    fn producer(&self) -> ProcessResult<&TransactionalProducer> {
        self.producer.as_ref().ok_or_else(|| Error::bug("there is no producer"))
    }

    fn new_producer(&mut self) -> Result<TransactionalProducer, TxnError> {
        let config = self.sizes.producer(&mut self.cluster, &self.producer_config);
        TransactionalProducer::new(&config)
    }

    fn init(&mut self) -> Outcome {
        let made = match self.producer.take() {
            Some(producer) => Ok(producer),
            None => self.new_producer(),
        };
        match made {
            Ok(producer) => {
                let ready = producer.init_transactions(INIT_MS);
                self.producer = Some(producer);
                ready.map_or_else(|error| self.refused(&error), |()| Outcome::Done)
            }
            Err(error) => refused(&error),
        }
    }

    /// A producer without transactions is ready when it is made.
    fn open(&mut self) -> Outcome {
        if self.producer.is_some() {
            return Outcome::Done;
        }
        match self.new_producer() {
            Ok(producer) => {
                self.producer = Some(producer);
                Outcome::Done
            }
            Err(error) => refused(&error),
        }
    }

    fn committed(&self, partitions: &[TopicPartition]) -> Outcome {
        match self.consumer.committed(partitions, COMMITTED_MS) {
            Ok(offsets) => Outcome::Committed(
                offsets
                    .into_iter()
                    .map(|(tp, committed)| (tp, committed.map(|c| (c.offset, c.metadata))))
                    .collect(),
            ),
            Err(error) => failed(&error),
        }
    }

    fn resolve(&self, partitions: &[(TopicPartition, ResetTo)]) -> Outcome {
        let mut starts = Vec::new();
        for (reset, which) in [
            (ResetTo::Earliest, OffsetSpec::Earliest),
            (ResetTo::Latest, OffsetSpec::Latest),
        ] {
            let wanted: Vec<TopicPartition> = partitions
                .iter()
                .filter(|(_, to)| *to == reset)
                .map(|(tp, _)| tp.clone())
                .collect();
            if wanted.is_empty() {
                continue;
            }
            match self.cluster.offsets(&wanted, which, Isolation::ReadCommitted) {
                Ok(offsets) => starts.extend(offsets),
                Err(error) => return failed(&error),
            }
        }
        Outcome::Started(starts)
    }

    /// Sends every outbox. A record that the client itself refuses (too large) never reached the broker, so the production
    /// handler may let it pass.
    fn send(&mut self, core: &mut StreamThreadCore) -> ProcessResult<Option<Outcome>> {
        let Some(producer) = &mut self.producer else {
            return Err(Error::bug("there is no producer"));
        };
        let (mut dropped, mut failed_before) = (0, false);
        'all: for outbox in core.outboxes() {
            let mut first = 0;
            while let Err(error) = producer.send_from(outbox, first) {
                let topic_partition = TopicPartition::new(error.topic.clone(), error.partition);
                if !matches!(error.class, TxnErrorClass::Other) {
                    return Ok(Some(class_failed(error.class, &error.name, &error.message)));
                }
                if error.name == WRONG_STATE {
                    failed_before = true;
                    break 'all;
                }
                let record = outbox.iter_from(error.index).next();
                let too_large = TOO_LARGE.contains(&&*error.name);
                let message = match too_large {
                    true => self.sizes.above_the_clients(topic_partition.clone(), record.as_ref()),
                    false => error.message,
                };
                if record.is_some_and(|record| record.slot > 0) || !too_large {
                    // A store must never be ahead of its changelog, whatever the handler says.
                    return Err(Box::new(Error::Produce {
                        topic_partition,
                        code: error.name,
                        message,
                    }));
                }
                core.may_drop(&topic_partition, &error.name, &message)?;
                dropped += 1;
                first = error.index + 1;
            }
        }
        if failed_before {
            return self.failed_before(core);
        }
        core.outboxes_sent();
        core.count_dropped(dropped);
        Ok(Some(hooked("after-send", Outcome::Done)))
    }

    /// Something that was sent before has failed, and the transaction takes no more. What it was decides: it would be met
    /// again and again if the transaction were only aborted.
    fn failed_before(&mut self, core: &mut StreamThreadCore) -> ProcessResult<Option<Outcome>> {
        let producer = self.producer()?;
        // librdkafka gives up what is on its way, so this is short.
        if let Err(error) = producer.flush(SLICE_MS) {
            tracing::debug!(%error, "records of a failed transaction are still on their way");
        }
        let reports = producer.reports(self.producer_epoch);
        if let Some(failure) = reports.failed.into_iter().next() {
            return self.undelivered(core, &failure);
        }
        // Not a record: a partition that may not be written to, for example. Nothing can be committed now, and the answer
        // says why.
        match self.producer()?.commit(SLICE_MS) {
            Ok(()) => Err(Error::bug("a transaction that takes no records was committed")),
            Err(error) => Ok(Some(self.refused(&error))),
        }
    }

    /// What a failed call of the producer means. librdkafka does not say which topic may not be written to.
    fn refused(&self, error: &TxnError) -> Outcome {
        let mut outcome = refused(error);
        if let Outcome::Failed(failure) = &mut outcome {
            let remedy = match failure.code.as_str() {
                "TOPIC_AUTHORIZATION_FAILED" => self.cluster.lacking(TopicOperation::Write, &self.sizes.written()),
                "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" => {
                    let mut settings = self.producer_config.iter();
                    let id = settings.find(|(name, _)| name == "transactional.id");
                    let id = id.map_or("", |(_, id)| id);
                    let permission = format!("Write and Describe on transactional id {id}");
                    let resource = format!("--resource-pattern-type prefixed --transactional-id {}-", self.group_id);
                    grant_text(&permission, &["Write", "Describe"], &resource)
                }
                "GROUP_AUTHORIZATION_FAILED" => {
                    let permission = format!("Read on consumer group {}", self.group_id);
                    grant_text(&permission, &["Read"], &format!("--group {}", self.group_id))
                }
                _ => String::new(),
            };
            failure.message += &remedy;
        }
        outcome
    }

    /// Looks at the delivery reports of the epoch, which are all in. `None`: the core was told.
    fn flushed(&mut self, core: &mut StreamThreadCore) -> ProcessResult<Option<Outcome>> {
        // Without transactions an epoch in which nothing was sent has no number of its own.
        let reports = match self.transactional || self.sent_epoch == Some(self.flushing_epoch) {
            true => self.producer()?.reports(self.producer_epoch),
            false => DeliveryReports::default(),
        };
        if !self.transactional {
            let replacing = offsets::replacing(&reports).or_else(|| {
                let too_large = reports.failed.iter().find(|failure| failure.name == TOO_LARGE[0])?;
                let lowered = self.sizes.refused(&mut self.cluster, core, &too_large.topic);
                lowered.then_some(too_large)
            });
            return Ok(Some(match replacing {
                Some(failure) => class_failed(TxnErrorClass::Fatal, &failure.name, &failure.message),
                None => hooked("after-flush-before-offsets", offsets::flushed(&reports)),
            }));
        }
        if let Some(failure) = reports.failed.first() {
            return self.undelivered(core, failure);
        }
        let flushed = Outcome::Flushed(offsets::reports_of(&reports));
        Ok(Some(hooked("after-flush-before-offsets", flushed)))
    }

    /// A record of the transaction was not delivered. `None`: the core was told.
    fn undelivered(
        &mut self,
        core: &mut StreamThreadCore,
        failure: &DeliveryFailure,
    ) -> ProcessResult<Option<Outcome>> {
        let DeliveryFailure {
            topic, name, message, ..
        } = failure;
        let lowered = TOO_LARGE.contains(&&**name) && self.sizes.refused(&mut self.cluster, core, topic);
        match failure.reaction() {
            Reaction::ReplaceProducer => Ok(Some(class_failed(TxnErrorClass::Fatal, name, message))),
            // A producer with smaller batches, and tasks that know the limit.
            _ if lowered => Ok(Some(class_failed(TxnErrorClass::Fatal, name, message))),
            reaction => {
                let retriable = offsets::is_retriable(reaction);
                let message = format!("{message}{}", self.sizes.explain(&self.cluster, topic, name));
                let topic_partition = TopicPartition::new(topic.clone(), failure.partition);
                core.on_undelivered(&topic_partition, name, &message, retriable)
                    .map(|()| None)
            }
        }
    }

    fn purge(&self, before: &[(TopicPartition, i64)]) -> Outcome {
        match self.cluster.admin().delete_records(before, super::cluster::QUESTION_MS) {
            Ok(results) => {
                for (topic_partition, result) in results {
                    if let Err(error) = result {
                        tracing::warn!(%topic_partition, %error, "processed repartition records could not be deleted; tried again later");
                    }
                }
                Outcome::Done
            }
            Err(error) => failed(&error),
        }
    }
}

fn commit_of(offset: CommittedOffset) -> OffsetCommit {
    OffsetCommit {
        topic: offset.topic_partition.topic.to_string(),
        partition: offset.topic_partition.partition,
        offset: offset.offset,
        leader_epoch: offset.leader_epoch,
        metadata: offset.metadata,
    }
}

fn hooked(point: &str, outcome: Outcome) -> Outcome {
    if !hooks::reach(point) {
        return outcome;
    }
    Outcome::Failed(CallFailure {
        class: FailureClass::Fatal,
        code: "TEST_HOOK".to_owned(),
        message: format!("told to fail at {point}"),
    })
}

fn done(result: Result<(), ClientError>) -> Outcome {
    result.map_or_else(|error| failed(&error), |()| Outcome::Done)
}

fn failed(error: &ClientError) -> Outcome {
    Outcome::Failed(failure_of(error))
}

fn ended(result: Result<(), TxnError>) -> Outcome {
    result.map_or_else(|error| refused(&error), |()| Outcome::Done)
}

fn refused(error: &TxnError) -> Outcome {
    let class = match error.reaction() {
        Reaction::Again => FailureClass::Retriable,
        Reaction::AbortAndRewind => FailureClass::Abortable,
        Reaction::AbortAndRejoin => FailureClass::StaleMember,
        Reaction::ReplaceProducer if error.is_fenced() => FailureClass::Fenced,
        Reaction::ReplaceProducer => FailureClass::Fatal,
        Reaction::AbortAndStop | Reaction::Stop => FailureClass::Stop,
        Reaction::Ignore => return Outcome::Done,
    };
    Outcome::Failed(CallFailure {
        class,
        code: error.name.clone(),
        message: error.to_string(),
    })
}

fn class_failed(class: TxnErrorClass, code: &str, message: &str) -> Outcome {
    let class = match class {
        TxnErrorClass::Fatal if code.contains("FENCED") => FailureClass::Fenced,
        TxnErrorClass::Fatal => FailureClass::Fatal,
        TxnErrorClass::Abortable => FailureClass::Abortable,
        // A send is not repeated as a whole: part of the outbox is taken already.
        TxnErrorClass::Retriable => FailureClass::Abortable,
        TxnErrorClass::Other => FailureClass::Stop,
    };
    Outcome::Failed(CallFailure {
        class,
        code: code.to_owned(),
        message: message.to_owned(),
    })
}
