//! How a table's rows are stored.

use std::sync::Arc;
use std::time::Duration;

use streams_core::serde::{DefaultSerde, Serde, SharedSerde};

use super::common::{StoreSettings, store_settings};
use crate::serdes::Chosen;

/// How a table's rows are stored: the store's name, serdes, cache, changelog, place. A bare name is the normal case, so
/// that state survives edits of the topology:
///
/// ```
/// use streams_dsl::{Materialized, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// let bytes = builder.stream::<String, i64>("bytes").group_by_key();
/// bytes.count("samples");
/// bytes.reduce(|_key, bytes, sum| sum + bytes, Materialized::named("sum").caching(false));
/// assert!(builder.build()?.describe().contains("(stores: [sum])"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
///
/// Java counterpart: `Materialized`.
pub struct Materialized<K, V> {
    pub(crate) name: Option<String>,
    pub(crate) key: Option<SharedSerde<K>>,
    pub(crate) value: Chosen<V>,
    /// Java's `Materialized.with(..)`: it draws numbers where no `Materialized` at all draws none.
    pub(crate) explicit: bool,
    pub(crate) store: StoreSettings,
    pub(crate) retention: Option<Duration>,
    /// Rows with their versions of this history.
    pub(crate) history: Option<Duration>,
}

impl<K: 'static, V: 'static> Materialized<K, V> {
    fn of(name: Option<String>, key: Option<SharedSerde<K>>, value: Chosen<V>, explicit: bool) -> Self {
        Materialized {
            name,
            key,
            value,
            explicit,
            store: StoreSettings::with_caching(true),
            retention: None,
            history: None,
        }
    }

    /// No store is asked for.
    pub(crate) fn none(key: SharedSerde<K>, value: SharedSerde<V>) -> Self {
        Self::of(None, Some(key), Chosen::Given(value), false)
    }

    /// A store of this name.
    pub fn named(name: impl Into<String>) -> Self
    where
        V: DefaultSerde,
    {
        Self::of(Some(name.into()), None, Chosen::default(), true)
    }

    /// A store with a generated name, as when Java's method is called without a `Materialized`. The name changes when
    /// the topology is edited, and the state with it: give a name wherever the rows matter.
    #[must_use]
    pub fn unnamed() -> Self
    where
        V: DefaultSerde,
    {
        Self::of(None, None, Chosen::default(), false)
    }

    /// A store with these serdes and, until [`with_name`](Self::with_name), a generated name.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
        Self::of(None, Some(Arc::new(key)), Chosen::given(value), true)
    }

    /// The stream's value serde, unless another was given.
    pub(crate) fn or_value_serde(mut self, upstream: &SharedSerde<V>) -> Self {
        self.value = Chosen::Given(self.value.resolve(Some(upstream)));
        self
    }

    /// Names the store.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Keeps the versions of each row: updates find their place by event time, whatever the order in which they come.
    /// A version can be asked for, and an update may come late, for `history` of event time; what is older is refused
    /// and counted as dropped. The newest version stays for ever.
    ///
    /// Joins and groups of such a table leave out updates that are older than the newest version, and a stream that joins
    /// it finds the version of its record's time. Not cached. For tables without windows; not for global tables. The
    /// changelog keeps all versions of `history` and a day more (`min.compaction.lag.ms`).
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let rates = b.table_with::<String, i64>("rates", Consumed::default(), Materialized::named("rates").versioned(HOUR));
    ///     b.stream::<String, i64>("orders").join_table(&rates, |_currency, amount, rate| amount * rate).to("worth")
    /// })
    /// .pipe("rates", [("eur", 2, at(10)), ("eur", 3, at(20))])
    /// .pipe("orders", [("eur", 100, at(15)), ("eur", 100, at(20)), ("eur", 100, at(5))])
    /// .gives("worth", [("eur", 200, at(15)), ("eur", 300, at(20))]);
    /// ```
    ///
    /// Java: `Materialized.as(Stores.persistentVersionedKeyValueStore(name, historyRetention))` (KIP-889, KIP-914).
    #[must_use]
    pub fn versioned(mut self, history: Duration) -> Self {
        self.history = Some(history);
        self
    }

    /// How long rows of windows are kept, event time since the window's start; at least size + grace, the default.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }
}

store_settings!(
    Materialized,
    "Whether updates are gathered in the cache and emitted once per key and commit. Default: yes."
);

impl<K: 'static, V: DefaultSerde> From<&str> for Materialized<K, V> {
    fn from(name: &str) -> Self {
        Materialized::named(name)
    }
}

impl<K: 'static, V: DefaultSerde> From<String> for Materialized<K, V> {
    fn from(name: String) -> Self {
        Materialized::named(name)
    }
}
