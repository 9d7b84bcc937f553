//! Carries out a core's effects on a broker in memory: what `kafka/` does with librdkafka, without threads and time.

use std::collections::BTreeMap;

use streams_state::{ChangelogFacts, Cleanup};

use super::broker::{MemoryBroker, ProducerSession, TransactionError};
use super::consumer::{MemoryConsumer, batch_of};
use super::log::LogRecord;
use crate::error::{Error, ProcessResult};
use crate::fetch::{Fetched, PartitionId};
use crate::murmur2::partition_for_key;
use crate::outbox::{ANY_PARTITION, OutRecord};
use crate::runtime::{
    CallFailure, Effect, FailureClass, Outcome, Reports, ResetTo, RestoreFailure, RestoreJob, Restored,
    StreamThreadCore,
};
use crate::{Headers, TopicPartition};

/// The shell of one stream thread over a [`MemoryBroker`].
pub struct MemoryShell {
    transactional_id: String,
    session: Option<ProducerSession>,
    consumer: MemoryConsumer,
    reports: BTreeMap<u32, Reports>,
    sent: Vec<String>,
    /// Without transactions nothing has to be begun: records are sent as they are.
    plain: bool,
    rejoins: bool,
}

impl MemoryShell {
    /// A shell whose producer has this transactional id.
    #[must_use]
    pub fn new(transactional_id: &str) -> Self {
        MemoryShell {
            transactional_id: transactional_id.to_owned(),
            session: None,
            consumer: MemoryConsumer::default(),
            reports: BTreeMap::new(),
            sent: Vec::new(),
            plain: false,
            rejoins: false,
        }
    }

    /// Whether the core asked since the last call to join the group as a new member.
    pub fn take_rejoin(&mut self) -> bool {
        std::mem::take(&mut self.rejoins)
    }

    /// Ends the transaction at the broker without anybody being told, as when an answer is lost.
    pub fn end_transaction(&mut self, broker: &mut MemoryBroker, committed: bool) {
        let _ = self.with_session(|session| broker.end_transaction(session, committed));
    }

    /// Topics written to since the last call.
    pub fn take_written_topics(&mut self) -> Vec<String> {
        std::mem::take(&mut self.sent)
    }

    /// Carries out one effect and tells the core how it ended.
    ///
    /// # Errors
    /// As the core's.
    pub fn perform(
        &mut self,
        effect: Effect,
        core: &mut StreamThreadCore,
        broker: &mut MemoryBroker,
        now_ms: i64,
    ) -> ProcessResult {
        if let Effect::Restore(job) = effect {
            let restored = restore(job, broker);
            return core.on_restored(restored, now_ms);
        }
        let outcome = self.outcome_of(effect, core, broker, now_ms)?;
        core.on_outcome(outcome, now_ms)
    }

    fn outcome_of(
        &mut self,
        effect: Effect,
        core: &mut StreamThreadCore,
        broker: &mut MemoryBroker,
        now_ms: i64,
    ) -> ProcessResult<Outcome> {
        Ok(match effect {
            Effect::InitTransactions => {
                self.session = Some(broker.init_producer(&self.transactional_id));
                Outcome::Done
            }
            Effect::OpenProducer => {
                self.plain = true;
                Outcome::Done
            }
            Effect::RecreateProducer => {
                self.session = None;
                self.plain = false;
                Outcome::Done
            }
            Effect::FetchCommitted { partitions } if !partitions.iter().all(|tp| broker.is_stable(tp)) => {
                let message = format!("offsets of {} partitions are not stable", partitions.len());
                failed(FailureClass::Retriable, "UNSTABLE_OFFSET_COMMIT", &message)
            }
            Effect::FetchCommitted { partitions } => Outcome::Committed(
                partitions
                    .into_iter()
                    .map(|tp| (tp.clone(), broker.committed(&tp).cloned()))
                    .collect(),
            ),
            Effect::ResolveReset { partitions } => Outcome::Started(
                partitions
                    .into_iter()
                    .map(|(tp, reset)| start_of(broker, tp, reset))
                    .collect(),
            ),
            Effect::ListChangelogs { partitions } => Outcome::Changelogs(
                partitions
                    .into_iter()
                    .map(|tp| (tp.clone(), facts(broker, &tp)))
                    .collect(),
            ),
            Effect::ListEnds { partitions } => {
                let end = |tp: TopicPartition| {
                    let end = broker.log(&tp).map_or(0, super::log::Log::high_watermark);
                    (tp, end)
                };
                Outcome::Ends(partitions.into_iter().map(end).collect())
            }
            Effect::Assign { partitions } => self.consumer.assign(partitions),
            Effect::Unassign { partitions } => {
                self.consumer.unassign(&partitions);
                Outcome::Done
            }
            Effect::Pause { partitions } => {
                self.consumer.set_paused(&partitions, true);
                Outcome::Done
            }
            Effect::Resume { partitions } => {
                self.consumer.set_paused(&partitions, false);
                Outcome::Done
            }
            // A broker hears of a transaction only with what is first sent in it.
            Effect::BeginTransaction => self.with_session(|_| Ok(())),
            Effect::Send { epoch } => self.send(epoch, core, broker, now_ms),
            Effect::Flush { epoch } => Outcome::Flushed(self.reports.remove(&epoch).unwrap_or_default()),
            Effect::SendOffsets { offsets, .. } => {
                let offsets = offsets
                    .into_iter()
                    .map(|o| (o.topic_partition, o.offset, o.metadata))
                    .collect();
                self.with_session(|session| broker.send_offsets(session, offsets, now_ms))
            }
            Effect::CommitOffsets { offsets, .. } => {
                broker.commit_offsets(
                    offsets
                        .into_iter()
                        .map(|o| (o.topic_partition, o.offset, o.metadata))
                        .collect(),
                );
                Outcome::Done
            }
            Effect::Rejoin => {
                self.rejoins = true;
                Outcome::Done
            }
            Effect::CommitTransaction { .. } => self.with_session(|session| broker.end_transaction(session, true)),
            Effect::AbortTransaction => {
                self.reports.clear();
                self.with_session(|session| broker.end_transaction(session, false))
            }
            Effect::Apply { .. } => {
                core.apply(now_ms)?;
                Outcome::Done
            }
            Effect::Purge { before } => {
                for (topic_partition, offset) in before {
                    if let Some(log) = broker.log_mut(&topic_partition) {
                        log.delete_before(offset);
                    }
                }
                Outcome::Done
            }
            Effect::Acknowledge { .. } | Effect::HeartbeatNow => Outcome::Done,
            Effect::Restore(_) => return Err(Error::bug("a restore is no effect with an outcome")),
        })
    }

    fn with_session(&self, call: impl FnOnce(&ProducerSession) -> Result<(), TransactionError>) -> Outcome {
        let result = self.session.as_ref().ok_or(TransactionError::Fenced).and_then(call);
        result.map_or_else(
            |error| failed(FailureClass::Fenced, "_FENCED", &error.to_string()),
            |()| Outcome::Done,
        )
    }

    fn send(&mut self, epoch: u32, core: &mut StreamThreadCore, broker: &mut MemoryBroker, now_ms: i64) -> Outcome {
        let session = self.session.clone();
        if session.is_none() && !self.plain {
            return failed(FailureClass::Fenced, "_FENCED", "no producer");
        }
        let reports = self.reports.entry(epoch).or_default();
        for outbox in core.outboxes() {
            for record in outbox.iter() {
                let topic = outbox.topic_names().get(record.topic as usize).map_or("", |name| name);
                let partition = match record.partition {
                    ANY_PARTITION => any_partition(record.key, broker.partitions(topic)),
                    partition => partition,
                };
                let (at, record_sent) = (TopicPartition::new(topic, partition), log_record(&record));
                let taken = match &session {
                    Some(session) => broker.send(session, &at, record_sent, now_ms),
                    None => Ok(broker.log_mut(&at).map(|log| log.append(record_sent, None))),
                };
                match taken {
                    Err(error) => return failed(FailureClass::Fenced, "_FENCED", &error.to_string()),
                    Ok(None) => {
                        return failed(
                            FailureClass::Stop,
                            "UNKNOWN_TOPIC_OR_PART",
                            &format!("topic {topic} does not exist: create it"),
                        );
                    }
                    Ok(Some(offset)) => {
                        reports.acknowledged += 1;
                        if record.slot > 0 {
                            reports.highest.insert(record.slot, offset);
                        }
                    }
                }
                if !self.sent.iter().any(|known| known == topic) {
                    self.sent.push(topic.to_owned());
                }
            }
        }
        core.outboxes_sent();
        Outcome::Done
    }

    /// Fetches what there is: committed records, then an end mark for each partition whose end moved.
    pub fn fetch(&mut self, broker: &MemoryBroker, max: usize) -> Vec<Fetched> {
        self.consumer.fetch(broker, max)
    }
}

/// The partition that the client's partitioner chooses; records without a key go to the first.
#[must_use]
pub fn any_partition(key: Option<&[u8]>, count: Option<i32>) -> i32 {
    key.zip(count).map_or(0, |(key, count)| partition_for_key(key, count))
}

/// A record of an outbox as it lies in a log, its offset not known yet.
#[must_use]
pub fn log_record(record: &OutRecord<'_>) -> LogRecord {
    LogRecord {
        offset: -1,
        timestamp_ms: record.timestamp_ms,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record.headers.clone().collect::<Headers>(),
    }
}

/// Where a partition without a committed offset starts.
#[must_use]
pub fn start_of(broker: &MemoryBroker, topic_partition: TopicPartition, reset: ResetTo) -> (TopicPartition, i64) {
    let log = broker.log(&topic_partition);
    let offset = match reset {
        ResetTo::Earliest => log.map_or(0, super::log::Log::log_start),
        ResetTo::Latest => log.map_or(0, super::log::Log::high_watermark),
    };
    (topic_partition, offset)
}

/// What the broker says about a changelog whose clean-up removes nothing.
#[must_use]
pub fn facts(broker: &MemoryBroker, topic_partition: &TopicPartition) -> ChangelogFacts {
    let log = broker.log(topic_partition);
    ChangelogFacts {
        topic_id: None,
        log_start: log.map_or(0, super::log::Log::log_start),
        high_watermark: log.map_or(0, super::log::Log::high_watermark),
        cleanup: Cleanup::Compact,
        delete_retention_ms: i64::MAX,
        source_topic_committed: None,
    }
}

fn failed(class: FailureClass, code: &str, message: &str) -> Outcome {
    Outcome::Failed(CallFailure {
        class,
        code: code.to_owned(),
        message: message.to_owned(),
    })
}

/// Replays changelogs into a task's state, up to the target position.
fn restore(mut job: RestoreJob, broker: &MemoryBroker) -> Restored {
    let mut counts = BTreeMap::new();
    let mut failure = None;
    for (number, changelog) in (0..).zip(&job.changelogs) {
        let replayed = crate::restore::replay_all(&mut job.state, changelog, |from| {
            let log = broker.log(&changelog.topic_partition);
            let (records, next) = log.map(|log| log.read_committed(from, 1_000)).unwrap_or_default();
            (batch_of(PartitionId(number), job.incarnation, &records), next)
        });
        match replayed {
            Ok(replayed) => {
                counts.insert(changelog.name.clone(), replayed.rows);
                if !replayed.ended {
                    failure = Some(RestoreFailure::Call(CallFailure {
                        class: FailureClass::Retriable,
                        code: "OPEN_TRANSACTION".to_owned(),
                        message: format!("{} waits for an open transaction", changelog.topic_partition),
                    }));
                }
            }
            Err(error) => failure = Some(RestoreFailure::Fatal(error)),
        }
    }
    Restored {
        task: job.task,
        incarnation: job.incarnation,
        state: job.state,
        records: counts,
        failure,
    }
}
