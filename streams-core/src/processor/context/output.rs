//! What a task writes: outputs, dead letters and changelog rows, each compared with what its topic takes (design rule 4.4).

use std::sync::Arc;

use super::super::DeadLetter;
use super::super::too_large::{Bound, TooLarge};
use super::{OutputTopic, TaskContext};
use crate::TopicPartition;
use crate::codec::record_size;
use crate::error::ProcessResult;
use crate::murmur2::partition_for_key;
use crate::outbox::{ANY_PARTITION, OutboxMark};

impl TaskContext {
    /// Writes a record for a topic, partitioned as Java does: by murmur2 of the key, for a null key by the client.
    ///
    /// # Errors
    /// When the record is larger than the topic takes and the production handler answers `Fail`.
    pub fn emit<'h>(
        &mut self,
        topic: &str,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
    ) -> ProcessResult {
        let partition = self.partition_of(topic, key);
        self.emit_to(topic, partition, timestamp_ms, key, value, headers)
    }

    fn partition_of(&self, topic: &str, key: Option<&[u8]>) -> i32 {
        match (key, self.topics.partitions(topic)) {
            (Some(key), Some(count)) => partition_for_key(key, count),
            _ => ANY_PARTITION,
        }
    }

    /// Writes a dead letter. One that is too large for its own topic is not let pass by a handler: it is the last copy.
    pub(in crate::processor) fn emit_dead_letter(&mut self, letter: &DeadLetter) -> ProcessResult {
        let partition = self.partition_of(&letter.topic, letter.key.as_deref());
        let output = self.output_topic(&letter.topic);
        let headers = letter.headers.iter();
        let headers = headers.map(|header| (&*header.key, header.value.as_deref()));
        let (key, value) = (letter.key.as_deref(), letter.value.as_deref());
        let pushed = self.push(output.0, partition, letter.timestamp_ms, key, value, headers, 0);
        pushed.map_err(|refused| Box::new(refused.as_dead_letter()))
    }

    /// Writes a record for one partition of a topic.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub fn emit_to<'h>(
        &mut self,
        topic: &str,
        partition: i32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
    ) -> ProcessResult {
        let output = self.output_topic(topic);
        self.emit_on(output, partition, timestamp_ms, key, value, headers)
    }

    /// The number of a topic that is written to, to be looked up once and used for every record.
    pub fn output_topic(&mut self, topic: &str) -> OutputTopic {
        let number = self.outbox.topic(topic);
        if self.max_message_bytes.len() <= number as usize {
            self.max_message_bytes.resize(number as usize + 1, usize::MAX);
            if let Some(slot) = self.max_message_bytes.last_mut() {
                *slot = self.topics.max_message_bytes(topic).unwrap_or(usize::MAX);
            }
        }
        OutputTopic(number)
    }

    /// As [`emit_to`](Self::emit_to), for a topic that was looked up before.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    #[inline]
    pub fn emit_on<'h>(
        &mut self,
        topic: OutputTopic,
        partition: i32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
    ) -> ProcessResult {
        match self.push(topic.0, partition, timestamp_ms, key, value, headers, 0) {
            Ok(()) => {
                self.counters.produced_records += 1;
                Ok(())
            }
            Err(refused) => self.output_refused(&refused),
        }
    }

    /// Writes a changelog record. One that is too large stops the thread, whatever user code makes of it: the store has the
    /// row, and must not be ahead of its changelog (design rule 4.4).
    pub(crate) fn log_row<'h>(
        &mut self,
        (topic, partition, slot): (OutputTopic, i32, u32),
        timestamp_ms: i64,
        key: &[u8],
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
    ) -> ProcessResult {
        let pushed = self.push(topic.0, partition, timestamp_ms, Some(key), value, headers, slot);
        pushed.map_err(|refused| {
            self.unlogged.get_or_insert_with(|| Box::new(refused.as_row()));
            Box::new(refused.as_row())
        })
    }

    /// The row that could not be logged, if there is one.
    pub(crate) fn unlogged(&mut self) -> ProcessResult {
        self.unlogged.take().map_or(Ok(()), Err)
    }

    #[allow(clippy::too_many_arguments, reason = "a record has this many parts")]
    #[inline]
    fn push<'h>(
        &mut self,
        topic: u32,
        partition: i32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
        slot: u32,
    ) -> Result<(), Box<TooLarge>> {
        let mark = self.outbox.mark();
        let pushed = self
            .outbox
            .push(topic, partition, timestamp_ms, key, value, headers, slot);
        let max_bytes = self.max_message_bytes.get(topic as usize);
        let max_bytes = max_bytes.copied().unwrap_or(usize::MAX);
        if pushed.is_ok() && record_size::at_most(self.outbox.bytes_since(mark)) <= max_bytes {
            return Ok(());
        }
        self.look_at_size(pushed.is_ok(), mark, max_bytes, (topic, partition, key))
    }

    /// Looks closer at a record that may be too large, and takes it back if it is.
    #[cold]
    fn look_at_size(
        &mut self,
        pushed: bool,
        mark: OutboxMark,
        max_bytes: usize,
        (topic, partition, key): (u32, i32, Option<&[u8]>),
    ) -> Result<(), Box<TooLarge>> {
        let bytes = match self.outbox.last().filter(|_| pushed) {
            Some(record) => record_size::batch_bytes(&record),
            // A field is longer than Kafka's own limit.
            None => usize::MAX,
        };
        if bytes <= max_bytes && pushed {
            return Ok(());
        }
        self.outbox.truncate(mark);
        let topic = self.outbox.topic_names().get(topic as usize).cloned();
        Err(Box::new(TooLarge {
            topic_partition: TopicPartition {
                topic: topic.unwrap_or_else(|| Arc::from("")),
                partition,
            },
            bytes: pushed.then_some(bytes),
            max_bytes,
            bound: Bound::Topic,
            key: TooLarge::digest(key),
        }))
    }
}
