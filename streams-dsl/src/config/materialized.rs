//! How a table's rows are stored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use streams_core::serde::{DefaultSerde, Serde, SharedSerde};

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
    pub(crate) caching: bool,
    pub(crate) logging: Option<BTreeMap<String, String>>,
    pub(crate) retention: Option<Duration>,
    pub(crate) in_memory: bool,
}

impl<K: 'static, V: 'static> Materialized<K, V> {
    fn of(name: Option<String>, key: Option<SharedSerde<K>>, value: Chosen<V>, explicit: bool) -> Self {
        Materialized {
            name,
            key,
            value,
            explicit,
            caching: true,
            logging: Some(BTreeMap::new()),
            retention: None,
            in_memory: false,
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

    /// Whether updates are gathered in the cache and emitted once per key and commit. Default: yes.
    #[must_use]
    pub fn caching(mut self, on: bool) -> Self {
        self.caching = on;
        self
    }

    /// No changelog: the rows are gone when their disk is.
    #[must_use]
    pub fn without_logging(mut self) -> Self {
        self.logging = None;
        self
    }

    /// Topic configs of the changelog; they win over the usual ones.
    #[must_use]
    pub fn logging<'a>(mut self, configs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.logging = Some(
            configs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        );
        self
    }

    /// How long rows of windows are kept, event time since the window's start; at least size + grace, the default.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Keeps the rows in memory; they are restored from the changelog at each start.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }
}

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
