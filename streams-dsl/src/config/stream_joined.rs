//! How two streams are joined.

use std::collections::BTreeMap;

use streams_core::serde::{DefaultSerde, Serde};

use crate::serdes::Chosen;

/// How two streams are joined: serdes (for the stores, and for the repartitions where keys may have changed), names, and
/// where the rows are kept. Java counterpart: `StreamJoined`.
///
/// ```
/// use streams_dsl::{JoinWindows, MINUTE, StreamJoined, StreamsBuilder};
/// let builder = StreamsBuilder::new();
/// let (orders, payments) = (builder.stream::<String, i64>("orders"), builder.stream::<String, i64>("payments"));
/// let how = StreamJoined::named("paid").store_named("paid");
/// orders.join_with(&payments, |_order, price, paid| price - paid, JoinWindows::of(5 * MINUTE), how).to("open");
/// assert!(builder.build()?.describe().contains("Processor: paid-this-windowed (stores: [paid-this-join-store])"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
pub struct StreamJoined<K, V, VO> {
    pub(crate) name: Option<String>,
    pub(crate) store: Option<String>,
    pub(crate) key: Chosen<K>,
    pub(crate) value: Chosen<V>,
    pub(crate) other: Chosen<VO>,
    /// `None` = no changelogs.
    pub(crate) logging: Option<BTreeMap<String, String>>,
    pub(crate) in_memory: bool,
}

impl<K: DefaultSerde, V: DefaultSerde, VO: DefaultSerde> Default for StreamJoined<K, V, VO> {
    fn default() -> Self {
        Self::of(Chosen::default(), Chosen::default(), Chosen::default())
    }
}

impl<K: 'static, V: 'static, VO: 'static> StreamJoined<K, V, VO> {
    fn of(key: Chosen<K>, value: Chosen<V>, other: Chosen<VO>) -> Self {
        StreamJoined {
            name: None,
            store: None,
            key,
            value,
            other,
            logging: Some(BTreeMap::new()),
            in_memory: false,
        }
    }

    /// By these serdes: of the keys, of this stream's values, of the other's.
    pub fn with(key: impl Serde<K>, value: impl Serde<V>, other: impl Serde<VO>) -> Self {
        Self::of(Chosen::given(key), Chosen::given(value), Chosen::given(other))
    }

    /// By the streams' serdes, else the types' default ones, with a name for nodes and repartition topics.
    pub fn named(name: &str) -> Self
    where
        K: DefaultSerde,
        V: DefaultSerde,
        VO: DefaultSerde,
    {
        Self::default().with_name(name)
    }

    /// Names the nodes (`NAME-this-windowed`, …, `NAME-merge`) and the repartition topics (`NAME-left`, `NAME-right`).
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Names the stores (`NAME-this-join-store`, …), and with them their changelogs. Without it their names have generated
    /// numbers, which change when the topology is edited.
    #[must_use]
    pub fn store_named(mut self, name: &str) -> Self {
        self.store = Some(name.to_owned());
        self
    }

    /// No changelogs: the rows are gone when their disk is.
    #[must_use]
    pub fn without_logging(mut self) -> Self {
        self.logging = None;
        self
    }

    /// Topic configs of the changelogs; they win over the usual ones, except `cleanup.policy`, which is `delete`.
    #[must_use]
    pub fn logging<'a>(mut self, configs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = configs.into_iter();
        self.logging = Some(owned.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
        self
    }

    /// Keeps the rows in memory; they are restored from the changelogs at each start.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }
}
