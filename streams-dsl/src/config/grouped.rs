//! How a stream is grouped.

use streams_core::serde::{DefaultSerde, Serde};

use super::common::named_serdes;
use crate::serdes::Chosen;

/// How a stream is grouped: serdes, and a name for the repartition (and for the key-selecting node of `group_by`).
///
/// ```
/// use streams_dsl::{Grouped, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// let usage = builder.stream::<String, i64>("usage");
/// usage.group_by_with(|tenant, _bytes| tenant.to_lowercase(), Grouped::named("by-tenant")).count("requests");
/// assert!(builder.build()?.describe().contains("by-tenant-repartition"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
///
/// Java counterpart: `Grouped`.
pub struct Grouped<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
}

named_serdes!(
    Grouped {},
    "By the stream's serdes, else the types' default ones; the repartition topic is `<application.id>-NAME-repartition`.",
    "Names the repartition topic."
);
