//! How a topic is read.

use std::sync::Arc;

use streams_core::processor::{RecordTimes, Timestamps, TypedSource};
use streams_core::serde::{DefaultSerde, Serde, SharedSerde};
use streams_core::topology::AutoOffsetReset;

/// How a topic is read: serdes, event times, where to start, the node's name.
///
/// ```
/// use streams_dsl::{Consumed, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// // Event time is the value itself, in milliseconds since the Unix epoch.
/// builder.stream_with("times", Consumed::<String, i64>::named("times-source").timestamps_by(|_key, value, _times| *value));
/// assert!(builder.build()?.describe().contains("times-source"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
///
/// Java counterpart: `Consumed`.
pub struct Consumed<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: SharedSerde<K>,
    pub(crate) value: SharedSerde<V>,
    pub(crate) timestamps: Timestamps<K, V>,
    pub(crate) reset: AutoOffsetReset,
}

impl<K: DefaultSerde, V: DefaultSerde> Default for Consumed<K, V> {
    fn default() -> Self {
        Consumed {
            name: None,
            key: K::shared(),
            value: V::shared(),
            timestamps: Timestamps::FailOnInvalid,
            reset: AutoOffsetReset::Configured,
        }
    }
}

impl<K: 'static, V: 'static> Consumed<K, V> {
    /// By these serdes.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
        let (key, value): (SharedSerde<K>, SharedSerde<V>) = (Arc::new(key), Arc::new(value));
        Consumed {
            name: None,
            key,
            value,
            timestamps: Timestamps::FailOnInvalid,
            reset: AutoOffsetReset::Configured,
        }
    }

    /// By the types' default serdes, with a name for the node (a table's nodes are `NAME-source` and `NAME`).
    pub fn named(name: &str) -> Self
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        Self::default().with_name(name)
    }

    /// Names the node.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Where event times come from. Default: the record's timestamp; a negative one stops the thread.
    #[must_use]
    pub fn timestamps(mut self, timestamps: Timestamps<K, V>) -> Self {
        self.timestamps = timestamps;
        self
    }

    /// Finds the event time (milliseconds since the Unix epoch) in key or value. A negative result drops the record and
    /// counts it. A table's deletes have no value: they keep the record's own time. Java: a custom `TimestampExtractor`.
    #[must_use]
    pub fn timestamps_by(self, extractor: impl Fn(&K, &V, RecordTimes) -> i64 + Send + Sync + 'static) -> Self {
        self.timestamps(Timestamps::Extracted(Arc::new(extractor)))
    }

    /// Where to start when the group has no offset. Default: as configured.
    #[must_use]
    pub fn reset(mut self, reset: AutoOffsetReset) -> Self {
        self.reset = reset;
        self
    }

    pub(crate) fn source(&self) -> Arc<TypedSource<K, V>> {
        let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
        Arc::new(TypedSource {
            key,
            value,
            timestamps: self.timestamps.clone(),
        })
    }
}
