//! How a stream is joined with a table.

use std::time::Duration;

use streams_core::serde::{DefaultSerde, Serde};

use super::common::named_serdes;
use crate::serdes::Chosen;

/// How a stream is joined with a table: the stream's serdes (for its repartition, and to know nulls), a name for the node
/// and the repartition, a grace period.
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
    pub(crate) grace: Option<Duration>,
}

named_serdes!(
    Joined { grace },
    "By the stream's serdes, else the types' default ones; the repartition topic is `<application.id>-NAME-repartition`.",
    "Names the node and the repartition topic."
);

impl<K, V> Joined<K, V> {
    /// Keeps the stream's records back for `grace` of event time, so that updates of the table which come late are
    /// found; then they join the version of their own time, ordered by event time. A record that is itself later than that
    /// joins at once. Records go on only when newer ones come.
    ///
    /// The table must be [versioned](crate::Materialized::versioned), with a history of at least `grace`. The records are
    /// kept in a store `<node>-Buffer` with a changelog of its own.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let rates = b.table_with::<String, i64>("rates", Consumed::default(), Materialized::named("rates").versioned(HOUR));
    ///     let grace = Joined::named("at-rate").grace(10 * MILLISECOND);
    ///     b.stream::<String, i64>("orders").join_table_with(&rates, |_currency, amount, rate| amount * rate, grace).to("worth")
    /// })
    /// .pipe("orders", [("eur", 100, at(5))])
    /// .pipe("rates", [("eur", 2, at(3))])
    /// .pipe("orders", [("eur", 100, at(15))])
    /// .gives("worth", [("eur", 200, at(5))]);
    /// ```
    ///
    /// Java: `Joined.withGracePeriod` (KIP-923).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }
}
