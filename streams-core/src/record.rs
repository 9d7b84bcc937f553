//! A record on its way through a topology, and what else is known about it.

use std::fmt;
use std::sync::Arc;

use crate::Headers;

/// A record as operators see it: everything by reference, so a hop copies nothing.
///
/// Time is event time in milliseconds since the Unix epoch. Null keys and values are `Option`s in `K` and `V`.
/// Java counterpart: `org.apache.kafka.streams.processor.api.Record`.
#[derive(Debug)]
pub struct Record<'a, K: ?Sized, V: ?Sized> {
    /// The key.
    pub key: &'a K,
    /// The value.
    pub value: &'a V,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The headers.
    pub headers: &'a Headers,
}

impl<K: ?Sized, V: ?Sized> Clone for Record<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized, V: ?Sized> Copy for Record<'_, K, V> {}

impl<'a, K: ?Sized, V: ?Sized> Record<'a, K, V> {
    /// A record without headers.
    pub fn new(key: &'a K, value: &'a V, timestamp_ms: i64) -> Self {
        Record {
            key,
            value,
            timestamp_ms,
            headers: Headers::empty(),
        }
    }

    /// The same record with another key.
    #[must_use]
    pub fn with_key<'b, K2: ?Sized>(self, key: &'b K2) -> Record<'b, K2, V>
    where
        'a: 'b,
    {
        Record {
            key,
            value: self.value,
            timestamp_ms: self.timestamp_ms,
            headers: self.headers,
        }
    }

    /// The same record with another value.
    #[must_use]
    pub fn with_value<'b, V2: ?Sized>(self, value: &'b V2) -> Record<'b, K, V2>
    where
        'a: 'b,
    {
        Record {
            key: self.key,
            value,
            timestamp_ms: self.timestamp_ms,
            headers: self.headers,
        }
    }

    /// The same record with another event time (ms since the Unix epoch).
    #[must_use]
    pub fn with_timestamp(self, timestamp_ms: i64) -> Self {
        Record { timestamp_ms, ..self }
    }

    /// The same record with other headers.
    #[must_use]
    pub fn with_headers<'b>(self, headers: &'b Headers) -> Record<'b, K, V>
    where
        'a: 'b,
    {
        Record {
            key: self.key,
            value: self.value,
            timestamp_ms: self.timestamp_ms,
            headers,
        }
    }
}

/// An update of a table: the new value and, where something downstream asked for it, the old one.
/// `None` is absence (a tombstone when new). Java counterpart: `kstream.internals.Change`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<V> {
    /// The value after the update; `None` = deleted.
    pub new: Option<V>,
    /// The value before the update; `None` = absent, or not asked for.
    pub old: Option<V>,
    /// False only for an update of a versioned table that is older than the newest version.
    pub is_latest: bool,
}

impl<V> Change<V> {
    /// A change to the newest version.
    pub fn new(new: Option<V>, old: Option<V>) -> Self {
        Change {
            new,
            old,
            is_latest: true,
        }
    }
}

/// A topic and a partition number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    /// The topic's full name.
    pub topic: Arc<str>,
    /// The partition number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// A topic and a partition number.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        TopicPartition {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A unit of work: one partition of one sub-topology. Written `<subtopology>_<partition>`, ordered like that.
/// Java counterpart: `org.apache.kafka.streams.processor.TaskId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// The sub-topology's number.
    pub subtopology: u32,
    /// The partition number.
    pub partition: i32,
}

impl TaskId {
    /// The task that fills the global stores. Written `global`; no sub-topology has its number.
    pub const GLOBAL: TaskId = TaskId {
        subtopology: u32::MAX,
        partition: 0,
    };

    /// The task of a partition of a sub-topology.
    #[must_use]
    pub fn new(subtopology: u32, partition: i32) -> Self {
        TaskId { subtopology, partition }
    }

    /// Reads `<subtopology>_<partition>`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (subtopology, partition) = text.split_once('_')?;
        Some(TaskId {
            subtopology: subtopology.parse().ok()?,
            partition: partition.parse().ok()?,
        })
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == TaskId::GLOBAL {
            return f.write_str("global");
        }
        write!(f, "{}_{}", self.subtopology, self.partition)
    }
}
