//! Carries out a core's effects on a broker in memory: what `kafka/` does with librdkafka, without threads and time.

use std::collections::BTreeMap;

use streams_state::{ChangelogFacts, Cleanup};

use super::broker::{Fenced, MemoryBroker, ProducerSession};
use super::log::LogRecord;
use crate::error::{Error, ProcessResult};
use crate::fetch::{Fetched, PartitionBatch, PartitionId};
use crate::murmur2::partition_for_key;
use crate::outbox::{ANY_PARTITION, OutRecord};
use crate::runtime::{
    Assignment, CallFailure, Effect, FailureClass, Outcome, Reports, ResetTo, RestoreFailure, RestoreJob, Restored,
    StreamThreadCore,
};
use crate::{Headers, TopicPartition};

struct Position {
    assignment: Assignment,
    next: i64,
    eof_told: Option<i64>,
    paused: bool,
}

/// The shell of one stream thread over a [`MemoryBroker`].
pub struct MemoryShell {
    transactional_id: String,
    session: Option<ProducerSession>,
    positions: BTreeMap<PartitionId, Position>,
    reports: BTreeMap<u32, Reports>,
    sent: Vec<String>,
}

impl MemoryShell {
    /// A shell whose producer has this transactional id.
    #[must_use]
    pub fn new(transactional_id: &str) -> Self {
        MemoryShell {
            transactional_id: transactional_id.to_owned(),
            session: None,
            positions: BTreeMap::new(),
            reports: BTreeMap::new(),
            sent: Vec::new(),
        }
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
            Effect::RecreateProducer => {
                self.session = None;
                Outcome::Done
            }
            Effect::FetchCommitted { partitions } if broker.has_open_transaction() => {
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
            Effect::Assign { partitions } => {
                for assignment in partitions {
                    let known = |position: &Position| position.assignment.topic_partition == assignment.topic_partition;
                    if self.positions.values().any(known) {
                        // As the real client: a partition is assigned once.
                        let message = format!("{} is assigned already", assignment.topic_partition);
                        return Ok(failed(FailureClass::Stop, "_INVALID_ARG", &message));
                    }
                    let next = assignment.start_offset;
                    self.positions.insert(
                        assignment.id,
                        Position {
                            assignment,
                            next,
                            eof_told: None,
                            paused: false,
                        },
                    );
                }
                Outcome::Done
            }
            Effect::Unassign { partitions } => {
                self.positions.retain(|id, _| !partitions.contains(id));
                Outcome::Done
            }
            Effect::Pause { partitions } => self.set_paused(&partitions, true),
            Effect::Resume { partitions } => self.set_paused(&partitions, false),
            Effect::BeginTransaction => self.with_session(|session| broker.begin(session)),
            Effect::Send { epoch } => self.send(epoch, core, broker),
            Effect::Flush { epoch } => Outcome::Flushed(self.reports.remove(&epoch).unwrap_or_default()),
            Effect::SendOffsets { offsets, .. } => {
                let offsets = offsets
                    .into_iter()
                    .map(|o| (o.topic_partition, o.offset, o.metadata))
                    .collect();
                self.with_session(|session| broker.send_offsets(session, offsets))
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

    fn set_paused(&mut self, partitions: &[PartitionId], paused: bool) -> Outcome {
        for id in partitions {
            if let Some(position) = self.positions.get_mut(id) {
                position.paused = paused;
            }
        }
        Outcome::Done
    }

    fn with_session(&self, call: impl FnOnce(&ProducerSession) -> Result<(), Fenced>) -> Outcome {
        let result = self.session.as_ref().ok_or(Fenced).and_then(call);
        result.map_or_else(
            |error| failed(FailureClass::Fenced, "_FENCED", &error.to_string()),
            |()| Outcome::Done,
        )
    }

    fn send(&mut self, epoch: u32, core: &mut StreamThreadCore, broker: &mut MemoryBroker) -> Outcome {
        let Some(session) = self.session.clone() else {
            return failed(FailureClass::Fenced, "_FENCED", "no producer");
        };
        let reports = self.reports.entry(epoch).or_default();
        for outbox in core.outboxes() {
            for record in outbox.iter() {
                let topic = outbox.topic_names().get(record.topic as usize).map_or("", |name| name);
                let partition = match record.partition {
                    ANY_PARTITION => any_partition(record.key, broker.partitions(topic)),
                    partition => partition,
                };
                match broker.send(&session, &TopicPartition::new(topic, partition), log_record(&record)) {
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
        let mut fetched = Vec::new();
        for (id, position) in &mut self.positions {
            if position.paused {
                continue;
            }
            let Some(log) = broker.log(&position.assignment.topic_partition) else {
                continue;
            };
            let (records, next) = log.read_committed(position.next, max);
            let drained = records.len() < max;
            if !records.is_empty() {
                fetched.push(Fetched::Records(batch_of(
                    *id,
                    position.assignment.incarnation,
                    &records,
                )));
            }
            position.next = next;
            if drained && position.eof_told != Some(next) {
                position.eof_told = Some(next);
                fetched.push(Fetched::Eof {
                    partition: *id,
                    incarnation: position.assignment.incarnation,
                    offset: next,
                });
            }
        }
        fetched
    }
}

fn any_partition(key: Option<&[u8]>, count: Option<i32>) -> i32 {
    key.zip(count).map_or(0, |(key, count)| partition_for_key(key, count))
}

fn log_record(record: &OutRecord<'_>) -> LogRecord {
    LogRecord {
        offset: -1,
        timestamp_ms: record.timestamp_ms,
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record.headers.clone().collect::<Headers>(),
    }
}

fn batch_of(id: PartitionId, incarnation: u64, records: &[LogRecord]) -> PartitionBatch {
    let mut batch = PartitionBatch::new(id, incarnation);
    for record in records {
        let headers = record
            .headers
            .iter()
            .map(|header| (&*header.key, header.value.as_deref()));
        // A batch refuses only at a size that a test never reaches.
        let _ = batch.push(
            record.offset,
            record.timestamp_ms,
            -1,
            record.key.as_deref(),
            record.value.as_deref(),
            headers,
        );
    }
    batch
}

fn start_of(broker: &MemoryBroker, topic_partition: TopicPartition, reset: ResetTo) -> (TopicPartition, i64) {
    let log = broker.log(&topic_partition);
    let offset = match reset {
        ResetTo::Earliest => log.map_or(0, super::log::Log::log_start),
        ResetTo::Latest => log.map_or(0, super::log::Log::high_watermark),
    };
    (topic_partition, offset)
}

fn facts(broker: &MemoryBroker, topic_partition: &TopicPartition) -> ChangelogFacts {
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
            Ok(records) => {
                counts.insert(changelog.name.clone(), records);
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
