//! How a stream is repartitioned.

use std::sync::Arc;

use streams_core::processor::{Partitions, SinkPartitioner};
use streams_core::serde::{DefaultSerde, Serde};

use crate::serdes::Chosen;

/// How a stream is sent through a repartition topic: serdes, partition count, partitioner, a name.
/// Java counterpart: `Repartitioned`.
pub struct Repartitioned<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
    pub(crate) partitions: Option<i32>,
    pub(crate) partitioner: Option<SinkPartitioner<K, V>>,
}

impl<K: DefaultSerde, V: DefaultSerde> Default for Repartitioned<K, V> {
    fn default() -> Self {
        Repartitioned {
            name: None,
            key: Chosen::default(),
            value: Chosen::default(),
            partitions: None,
            partitioner: None,
        }
    }
}

impl<K: 'static, V: 'static> Repartitioned<K, V> {
    /// By these serdes.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
        Repartitioned {
            name: None,
            key: Chosen::given(key),
            value: Chosen::given(value),
            partitions: None,
            partitioner: None,
        }
    }

    /// By the stream's serdes, else the types' default ones; the topic is `<application.id>-NAME-repartition`.
    pub fn named(name: &str) -> Self
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        Self::default().with_name(name)
    }

    /// Names the topic.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Gives the topic this many partitions. Default: as many as the topics that feed it, at most.
    #[must_use]
    pub fn partitions(mut self, count: i32) -> Self {
        self.partitions = Some(count);
        self
    }

    /// Chooses partitions by `(topic, key, value, partition count)`. Default: murmur2 of the key's bytes.
    #[must_use]
    pub fn partitioned_by(
        mut self,
        partitioner: impl Fn(&str, &K, &V, i32) -> Partitions + Send + Sync + 'static,
    ) -> Self {
        self.partitioner = Some(Arc::new(partitioner));
        self
    }
}
