//! How a stream is repartitioned.

use std::sync::Arc;

use streams_core::processor::{Partitions, SinkPartitioner};
use streams_core::serde::{DefaultSerde, Serde};

use super::common::{named_serdes, partitioned};
use crate::serdes::Chosen;

/// How a stream is sent through a repartition topic: serdes, partition count, partitioner, a name.
///
/// ```
/// use streams_dsl::{Repartitioned, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// let usage = builder.stream::<String, i64>("usage");
/// usage.repartition_with(Repartitioned::named("spread").partitions(8)).to("out");
/// assert!(builder.build()?.describe().contains("spread-repartition"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
///
/// Java counterpart: `Repartitioned`.
pub struct Repartitioned<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
    pub(crate) partitions: Option<i32>,
    pub(crate) partitioner: Option<SinkPartitioner<K, V>>,
}

named_serdes!(
    Repartitioned {
        partitions,
        partitioner
    },
    "By the stream's serdes, else the types' default ones; the topic is `<application.id>-NAME-repartition`.",
    "Names the topic."
);
partitioned!(Repartitioned);

impl<K: 'static, V: 'static> Repartitioned<K, V> {
    /// Gives the topic this many partitions. Default: as many as the topics that feed it, at most.
    #[must_use]
    pub fn partitions(mut self, count: i32) -> Self {
        self.partitions = Some(count);
        self
    }
}
