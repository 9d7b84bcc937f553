//! A consumer over a broker in memory: assigned partitions, read-committed fetches, end marks.

use std::collections::BTreeMap;

use super::broker::MemoryBroker;
use super::log::LogRecord;
use crate::TopicPartition;
use crate::fetch::{FetchError, FetchErrorKind, Fetched, PartitionBatch, PartitionId};
use crate::runtime::{Assignment, CallFailure, FailureClass, Outcome};

#[derive(Debug)]
struct Position {
    assignment: Assignment,
    next: i64,
    eof_told: Option<i64>,
    paused: bool,
}

/// The consumer of one stream thread over a [`MemoryBroker`].
#[derive(Debug, Default)]
pub struct MemoryConsumer {
    positions: BTreeMap<PartitionId, Position>,
}

impl MemoryConsumer {
    /// Fetches these partitions too. As with the real client a partition is assigned once.
    pub fn assign(&mut self, partitions: Vec<Assignment>) -> Outcome {
        for assignment in partitions {
            let known = |position: &Position| position.assignment.topic_partition == assignment.topic_partition;
            if self.positions.values().any(known) {
                return Outcome::Failed(CallFailure {
                    class: FailureClass::Stop,
                    code: "_INVALID_ARG".to_owned(),
                    message: format!("{} is assigned already", assignment.topic_partition),
                });
            }
            let position = Position {
                next: assignment.start_offset,
                eof_told: None,
                paused: false,
                assignment,
            };
            self.positions.insert(position.assignment.id, position);
        }
        Outcome::Done
    }

    /// Fetches these partitions no more.
    pub fn unassign(&mut self, partitions: &[PartitionId]) {
        self.positions.retain(|id, _| !partitions.contains(id));
    }

    /// Stops fetching partitions, or goes on.
    pub fn set_paused(&mut self, partitions: &[PartitionId], paused: bool) {
        for id in partitions {
            if let Some(position) = self.positions.get_mut(id) {
                position.paused = paused;
            }
        }
    }

    /// The next offset to be fetched of each partition.
    pub fn positions(&self) -> impl Iterator<Item = (&TopicPartition, i64)> {
        self.positions
            .values()
            .map(|position| (&position.assignment.topic_partition, position.next))
    }

    /// Fetches what there is, at most `max` records of each partition: committed records, then an end mark for each
    /// partition whose end moved. A position outside the log is an error of the partition, told at each fetch.
    pub fn fetch(&mut self, broker: &MemoryBroker, max: usize) -> Vec<Fetched> {
        let mut fetched = Vec::new();
        for (id, position) in self.positions.iter_mut().filter(|(_, position)| !position.paused) {
            let (topic_partition, incarnation) =
                (&position.assignment.topic_partition, position.assignment.incarnation);
            let Some(log) = broker.log(topic_partition) else {
                continue;
            };
            if position.next < log.log_start() || position.next > log.high_watermark() {
                fetched.push(Fetched::Error(FetchError {
                    partition: Some((*id, incarnation)),
                    kind: FetchErrorKind::OutOfRange { offset: position.next },
                    message: format!("offset {} is outside {topic_partition}", position.next),
                }));
                continue;
            }
            let (records, next) = log.read_committed(position.next, max);
            let drained = records.len() < max;
            if !records.is_empty() {
                fetched.push(Fetched::Records(batch_of(*id, incarnation, &records)));
            }
            position.next = next;
            if drained && position.eof_told != Some(next) {
                position.eof_told = Some(next);
                fetched.push(Fetched::Eof {
                    partition: *id,
                    incarnation,
                    offset: next,
                });
            }
        }
        fetched
    }
}

/// A run of records as a consumer hands it over.
#[must_use]
pub fn batch_of(id: PartitionId, incarnation: u64, records: &[LogRecord]) -> PartitionBatch {
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
