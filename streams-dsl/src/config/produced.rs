//! How a topic is written.

use std::sync::Arc;

use streams_core::processor::{Partitions, SinkPartitioner};
use streams_core::serde::{DefaultSerde, Serde};

use crate::serdes::Chosen;

/// How a topic is written: serdes, partitions, the node's name. Java counterpart: `Produced`.
///
/// ```
/// use streams_dsl::{Partitions, Produced, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// let first = Produced::named("sink").partitioned_by(|_topic, _key, _value, _count| Partitions::One(0));
/// builder.stream::<String, i64>("in").to_with("out", first);
/// assert!(builder.build()?.describe().contains("Sink: sink (topic: out)"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
pub struct Produced<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
    pub(crate) partitioner: Option<SinkPartitioner<K, V>>,
}

impl<K: DefaultSerde, V: DefaultSerde> Default for Produced<K, V> {
    fn default() -> Self {
        Produced {
            name: None,
            key: Chosen::default(),
            value: Chosen::default(),
            partitioner: None,
        }
    }
}

impl<K: 'static, V: 'static> Produced<K, V> {
    /// By these serdes.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
        Produced {
            name: None,
            key: Chosen::given(key),
            value: Chosen::given(value),
            partitioner: None,
        }
    }

    /// By the stream's serdes, else the types' default ones, with a name for the node.
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

    /// Chooses partitions by `(topic, key, value, partition count)`. Default: murmur2 of the key's bytes, as Java; a
    /// null key is placed by the client. Java: `StreamPartitioner`.
    #[must_use]
    pub fn partitioned_by(
        mut self,
        partitioner: impl Fn(&str, &K, &V, i32) -> Partitions + Send + Sync + 'static,
    ) -> Self {
        self.partitioner = Some(Arc::new(partitioner));
        self
    }
}
