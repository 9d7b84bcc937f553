//! How a stream is joined with a table.

use streams_core::serde::{DefaultSerde, Serde};

use super::common::named_serdes;
use crate::serdes::Chosen;

/// How a stream is joined with a table: the stream's serdes (for its repartition, and to know nulls), and a name for
/// the node and the repartition.
///
/// ```
/// use streams_dsl::{Joined, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// let (orders, prices) = (builder.stream::<String, i64>("orders"), builder.table::<String, i64>("prices"));
/// orders.join_table_with(&prices, |_item, count, cents| count * cents, Joined::named("price")).to("sums");
/// assert!(builder.build()?.describe().contains("Processor: price"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
///
/// Java counterpart: `Joined`.
pub struct Joined<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
}

named_serdes!(
    Joined {},
    "By the stream's serdes, else the types' default ones; the repartition topic is `<application.id>-NAME-repartition`.",
    "Names the node and the repartition topic."
);
