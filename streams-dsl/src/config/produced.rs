//! How a topic is written.

use std::sync::Arc;

use streams_core::processor::{Partitions, SinkPartitioner};
use streams_core::serde::{DefaultSerde, Serde};

use super::common::{named_serdes, partitioned};
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

named_serdes!(
    Produced { partitioner },
    "By the stream's serdes, else the types' default ones, with a name for the node.",
    "Names the node."
);
partitioned!(Produced);
