//! A source topic that serves as a table's changelog, read again by a restore: what processing let pass is no row then.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::source::{invalid, named, unreadable};
use super::user::panic_message;
use super::{Decision, ErrorContext, ErrorHandlers, RecordTimes, Timestamps};
use crate::error::{Error, FailurePlace, ProcessResult};
use crate::fetch::FetchedRecord;
use crate::serde::{SerdeError, SharedSerde};
use crate::{TaskId, TopicPartition};

/// A record of a source topic that a restore reads.
#[derive(Clone, Copy)]
pub struct SourceRow<'a> {
    /// The task that is restored.
    pub task: TaskId,
    /// Where the record lies.
    pub topic_partition: &'a TopicPartition,
    /// The record.
    pub record: &'a FetchedRecord<'a>,
    /// The highest event time before it in the partition, milliseconds since the Unix epoch; -1 when there is none, `None`
    /// when the restore began behind the start of the topic and does not know.
    pub partition_time_ms: Option<i64>,
}

/// Decides about records of a source topic as the source node did when they were processed (design rule 2.3). Shared by
/// threads: restores run on their own.
pub trait RowReader: Send + Sync {
    /// The event time of the row, milliseconds since the Unix epoch; `None` = processing let the record pass. No dead
    /// letter is sent and nothing is counted: that happened when the record was processed.
    ///
    /// # Errors
    /// When processing would stop there: the handler answers `Fail`, or the timestamp is negative and may not be.
    fn event_time(&self, row: &SourceRow<'_>, handlers: &ErrorHandlers) -> ProcessResult<Option<i64>>;
}

/// The rows of a [`TypedSource`](super::TypedSource).
pub(super) struct TypedRows<K, V> {
    pub(super) node: Arc<str>,
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) timestamps: Timestamps<K, V>,
}

impl<K: 'static, V: 'static> RowReader for TypedRows<K, V> {
    fn event_time(&self, row: &SourceRow<'_>, handlers: &ErrorHandlers) -> ProcessResult<Option<i64>> {
        let record_ms = row.record.timestamp_ms;
        let time = match &self.timestamps {
            Timestamps::FailOnInvalid if record_ms < 0 => {
                return Err(invalid(&self.node, row.topic_partition, row.record));
            }
            Timestamps::SkipInvalid if record_ms < 0 => return Ok(None),
            Timestamps::PartitionTimeOnInvalid if record_ms < 0 => match row.partition_time_ms {
                Some(time) if time < 0 => return Ok(None),
                // It had one when it was processed; the row counts, not its time.
                time => time.unwrap_or(-1),
            },
            // The wall clock of the processing is gone; the record's own time is what Java restores too.
            Timestamps::FailOnInvalid
            | Timestamps::SkipInvalid
            | Timestamps::PartitionTimeOnInvalid
            | Timestamps::WallClock
            | Timestamps::Extracted(_) => record_ms,
        };
        // Serdes and extractors are user code, and a restore thread must outlive their panics.
        let read = catch_unwind(AssertUnwindSafe(|| self.read(row, time)));
        match read {
            Ok(Ok(time)) => Ok(time),
            Ok(Err((what, error))) => self.unreadable(row, handlers, what, error),
            Err(panic) => self.panicked(row, handlers, &panic_message(&*panic)),
        }
    }
}

impl<K: 'static, V: 'static> TypedRows<K, V> {
    fn read(&self, row: &SourceRow<'_>, time_ms: i64) -> Result<Option<i64>, (&'static str, SerdeError)> {
        let topic = &*row.topic_partition.topic;
        let key = self
            .key
            .deserialize(topic, row.record.key)
            .map_err(|error| ("key", error))?;
        let value = self
            .value
            .deserialize(topic, row.record.value)
            .map_err(|error| ("value", error))?;
        let Timestamps::Extracted(extractor) = &self.timestamps else {
            return Ok(Some(time_ms));
        };
        let times = RecordTimes {
            record_ms: row.record.timestamp_ms,
            partition_ms: row.partition_time_ms.unwrap_or(-1),
            now_ms: row.record.timestamp_ms,
        };
        Ok(Some(extractor(&key, &value, times)).filter(|time| *time >= 0))
    }

    #[cold]
    fn unreadable(
        &self,
        row: &SourceRow<'_>,
        handlers: &ErrorHandlers,
        what: &'static str,
        error: SerdeError,
    ) -> ProcessResult<Option<i64>> {
        let source = named(what, error);
        match handlers
            .deserialization
            .handle(&self.context(row), what, &source)
            .decision
        {
            Decision::Resume => Ok(None),
            Decision::Fail => Err(unreadable(row.topic_partition, row.record.offset, what, source)),
        }
    }

    #[cold]
    fn panicked(&self, row: &SourceRow<'_>, handlers: &ErrorHandlers, message: &str) -> ProcessResult<Option<i64>> {
        let error: crate::BoxError = message.into();
        match handlers.processing.handle(&self.context(row), &*error).decision {
            Decision::Resume => Ok(None),
            Decision::Fail => Err(Box::new(Error::Processing {
                node: self.node.to_string(),
                task: row.task,
                place: FailurePlace::Record {
                    topic_partition: row.topic_partition.clone(),
                    offset: row.record.offset,
                },
                message: message.to_owned(),
            })),
        }
    }

    fn context(&self, row: &SourceRow<'_>) -> ErrorContext {
        ErrorContext {
            topic: Arc::clone(&row.topic_partition.topic),
            partition: row.topic_partition.partition,
            offset: row.record.offset,
            headers: row.record.headers.clone().collect(),
            node: Some(self.node.to_string()),
            task: row.task,
            timestamp_ms: row.record.timestamp_ms,
            source_key: row.record.key.map(<[u8]>::to_vec),
            source_value: row.record.value.map(<[u8]>::to_vec),
        }
    }
}
