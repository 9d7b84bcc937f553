//! The source node: reads keys and values, finds the event time, starts the chain.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::node::{Children, NodeBuilder, RawRecord, SourceFactory, SourceNode};
use super::rows::{RowReader, TypedRows};
use super::{Decision, TaskContext};
use crate::error::{Error, ProcessResult};
use crate::fetch::FetchedRecord;
use crate::serde::{SerdeError, SharedSerde};
use crate::topology::TopologyError;
use crate::{Record, TopicPartition};

/// What is known about a record's time before it is chosen, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTimes {
    /// The timestamp that the record carries; negative when it has none.
    pub record_ms: i64,
    /// The highest event time seen in its partition; -1 before the first.
    pub partition_ms: i64,
    /// The wall clock.
    pub now_ms: i64,
}

type Extractor<K, V> = dyn Fn(&K, &V, RecordTimes) -> i64 + Send + Sync;

/// Where a source's event times come from. Java: `TimestampExtractor` and its built-in classes.
pub enum Timestamps<K, V> {
    /// The record's own; a negative one stops the thread (`FailOnInvalidTimestamp`, the default).
    FailOnInvalid,
    /// The record's own; a record with a negative one is dropped and counted (`LogAndSkipOnInvalidTimestamp`).
    SkipInvalid,
    /// The record's own, else the partition's highest so far (`UsePartitionTimeOnInvalidTimestamp`).
    PartitionTimeOnInvalid,
    /// The wall clock (`WallclockTimestampExtractor`).
    WallClock,
    /// Found in the key or value. A negative result drops the record, counted.
    Extracted(Arc<Extractor<K, V>>),
}

impl<K, V> Clone for Timestamps<K, V> {
    fn clone(&self) -> Self {
        match self {
            Timestamps::FailOnInvalid => Timestamps::FailOnInvalid,
            Timestamps::SkipInvalid => Timestamps::SkipInvalid,
            Timestamps::PartitionTimeOnInvalid => Timestamps::PartitionTimeOnInvalid,
            Timestamps::WallClock => Timestamps::WallClock,
            Timestamps::Extracted(extractor) => Timestamps::Extracted(Arc::clone(extractor)),
        }
    }
}

/// Makes source nodes of keys `K` and values `V`.
pub struct TypedSource<K, V> {
    /// Reads the keys.
    pub key: SharedSerde<K>,
    /// Reads the values.
    pub value: SharedSerde<V>,
    /// Where event times come from.
    pub timestamps: Timestamps<K, V>,
}

impl<K: 'static, V: 'static> SourceFactory for TypedSource<K, V> {
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<Rc<dyn SourceNode>, TopologyError> {
        Ok(Rc::new(Source {
            name: builder.name(),
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            timestamps: self.timestamps.clone(),
            read_ahead: RefCell::default(),
            spare: RefCell::default(),
            children: builder.children()?,
        }))
    }

    fn rows(&self, node: &Arc<str>) -> Option<Arc<dyn RowReader>> {
        Some(Arc::new(TypedRows {
            node: Arc::clone(node),
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            timestamps: self.timestamps.clone(),
        }))
    }
}

/// A head that had to be read to find its event time, kept until it is its turn.
struct ReadAhead<K, V> {
    topic_partition: TopicPartition,
    offset: i64,
    key: K,
    value: V,
}

struct Source<K, V> {
    name: Arc<str>,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    timestamps: Timestamps<K, V>,
    /// One entry for each input of the node at most.
    read_ahead: RefCell<Vec<ReadAhead<K, V>>>,
    /// The last record's key and value, whose memory the next one takes over.
    spare: RefCell<Option<(K, V)>>,
    children: Children<K, V>,
}

impl<K: 'static, V: 'static> SourceNode for Source<K, V> {
    fn own_timestamp(&self, record_ms: i64) -> Option<i64> {
        match &self.timestamps {
            Timestamps::FailOnInvalid | Timestamps::SkipInvalid | Timestamps::PartitionTimeOnInvalid => {
                (record_ms >= 0).then_some(record_ms)
            }
            Timestamps::WallClock | Timestamps::Extracted(_) => None,
        }
    }

    fn timestamp(
        &self,
        cx: &mut TaskContext,
        raw: RawRecord<'_>,
        partition_time_ms: i64,
    ) -> ProcessResult<Option<i64>> {
        let times = RecordTimes {
            record_ms: raw.record.timestamp_ms,
            partition_ms: partition_time_ms,
            now_ms: cx.now_ms(),
        };
        let valid = (times.record_ms >= 0).then_some(times.record_ms);
        match &self.timestamps {
            Timestamps::FailOnInvalid => match valid {
                Some(time) => Ok(Some(time)),
                None => Err(invalid(&self.name, raw.topic_partition, raw.record)),
            },
            Timestamps::SkipInvalid => Ok(valid),
            Timestamps::PartitionTimeOnInvalid => {
                Ok(valid.or_else(|| (partition_time_ms >= 0).then_some(partition_time_ms)))
            }
            Timestamps::WallClock => Ok(Some(times.now_ms)),
            Timestamps::Extracted(extractor) => {
                let Some((key, value)) = self.read(cx, raw)? else {
                    return Ok(None);
                };
                let time = cx.call_user(&self.name, || extractor(&key, &value, times))?;
                let Some(time) = time.filter(|time| *time >= 0) else {
                    return Ok(None);
                };
                let (topic_partition, offset) = (raw.topic_partition.clone(), raw.record.offset);
                let mut read_ahead = self.read_ahead.borrow_mut();
                read_ahead.retain(|entry| entry.topic_partition != topic_partition);
                read_ahead.push(ReadAhead {
                    topic_partition,
                    offset,
                    key,
                    value,
                });
                Ok(Some(time))
            }
        }
    }

    fn process(&self, cx: &mut TaskContext, raw: RawRecord<'_>) -> ProcessResult {
        let read = match self.take_read_ahead(raw) {
            Some(read) => Some(read),
            None => self.read(cx, raw)?,
        };
        let Some((key, value)) = read else {
            cx.counters.dropped_records += 1;
            return Ok(());
        };
        let (timestamp_ms, headers) = (cx.record_context().timestamp_ms, cx.record_context().headers.clone());
        self.children.forward(
            cx,
            Record {
                key: &key,
                value: &value,
                timestamp_ms,
                headers: &headers,
            },
        )?;
        *self.spare.borrow_mut() = Some((key, value));
        Ok(())
    }
}

impl<K: 'static, V: 'static> Source<K, V> {
    fn take_read_ahead(&self, raw: RawRecord<'_>) -> Option<(K, V)> {
        if !matches!(self.timestamps, Timestamps::Extracted(_)) {
            return None;
        }
        let mut entries = self.read_ahead.borrow_mut();
        let is_it = |entry: &ReadAhead<K, V>| {
            entry.offset == raw.record.offset && entry.topic_partition == *raw.topic_partition
        };
        let entry = entries.iter().position(is_it).map(|at| entries.swap_remove(at))?;
        Some((entry.key, entry.value))
    }

    /// Key and value; `None` if one can't be read and the handler let that pass.
    fn read(&self, cx: &mut TaskContext, raw: RawRecord<'_>) -> ProcessResult<Option<(K, V)>> {
        let topic = &*raw.topic_partition.topic;
        let (key, value) = (raw.record.key, raw.record.value);
        let (read_key, read_value) = match self.spare.take() {
            Some((mut spare_key, mut spare_value)) => (
                self.key
                    .deserialize_into(topic, key, &mut spare_key)
                    .map(|()| spare_key),
                self.value
                    .deserialize_into(topic, value, &mut spare_value)
                    .map(|()| spare_value),
            ),
            None => (self.key.deserialize(topic, key), self.value.deserialize(topic, value)),
        };
        match (read_key, read_value) {
            (Ok(key), Ok(value)) => Ok(Some((key, value))),
            (Err(error), _) => self.unreadable(cx, raw, "key", error).map(|()| None),
            (Ok(_), Err(error)) => self.unreadable(cx, raw, "value", error).map(|()| None),
        }
    }

    #[cold]
    fn unreadable(
        &self,
        cx: &mut TaskContext,
        raw: RawRecord<'_>,
        what: &'static str,
        error: SerdeError,
    ) -> ProcessResult {
        let source = named(what, error);
        if cx.note_bad_record("DeserializationException", &source.to_string()) {
            return Ok(());
        }
        let handlers = Arc::clone(cx.handlers());
        let response = handlers
            .deserialization
            .handle(&cx.error_context(Some(&self.name)), what, &source);
        cx.send_dead_letters(&response, "DeserializationException", &source.to_string())?;
        match response.decision {
            Decision::Resume => Ok(()),
            Decision::Fail => Err(unreadable(raw.topic_partition, raw.record.offset, what, source)),
        }
    }
}

/// The error with the part of the record that it is about.
pub(super) fn named(what: &'static str, error: SerdeError) -> SerdeError {
    match error {
        SerdeError::Null { type_name, .. } => SerdeError::Null { what, type_name },
        other => other,
    }
}

#[cold]
pub(super) fn unreadable(at: &TopicPartition, offset: i64, what: &'static str, source: SerdeError) -> Box<Error> {
    Box::new(Error::Deserialize {
        what,
        topic_partition: at.clone(),
        offset,
        source,
    })
}

#[cold]
pub(super) fn invalid(node: &str, at: &TopicPartition, record: &FetchedRecord<'_>) -> Box<Error> {
    let message = format!(
        "source {node} got the timestamp {}: use another timestamp policy (skip, partition time, or an own extractor) to go on",
        record.timestamp_ms
    );
    Box::new(Error::Timestamp {
        topic_partition: at.clone(),
        offset: record.offset,
        message,
    })
}
