//! Stores: those a user adds for processors, and those that operations bring along.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use streams_core::serde::{DefaultSerde, Serde, SharedSerde};
use streams_core::stores::{
    KeyValueLayout, ManagedStore, StoreBuilder, StoreFactory, StoreOptions, TypedStore, WindowLayout,
};
use streams_core::topology::{ChangelogDefinition, StoreDefinition};
use streams_state::StoreSpec;

use crate::config::Materialized;
use crate::windows::millis;

/// Stores to be added to a builder by name, for processors. Java counterpart: `Stores`.
///
/// ```
/// # use streams_dsl::doctest::*;
/// /// Forwards a value only if it differs from the last one of its key.
/// struct Changes;
/// impl Processor<String, i64, String, i64> for Changes {
///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
///         let last = cx.key_value_store::<String, i64>("last")?;
///         if last.get(cx, record.key)?.is_some_and(|row| row.value == *record.value) {
///             return Ok(());
///         }
///         last.put(cx, record.key, Some(*record.value), record)?;
///         Ok(cx.forward(record)?)
///     }
/// }
/// run(|b| {
///     b.add_state_store(Stores::key_value::<String, i64>("last"));
///     b.stream::<String, i64>("in").process_with(|| Changes, Connect::stores(["last"])).to("out")
/// })
/// .pipe("in", [("a", 1, at(0)), ("a", 1, at(1)), ("a", 2, at(2))])
/// .gives("out", [("a", 1, at(0)), ("a", 2, at(2))]);
/// ```
pub struct Stores;

impl Stores {
    /// Rows of one value per key, with the event time of their last update. Java: `timestampedKeyValueStoreBuilder`.
    #[must_use]
    pub fn key_value<K: DefaultSerde, V: DefaultSerde>(name: &str) -> StateStore<K, V> {
        StateStore::new(name, K::shared(), V::shared(), None)
    }

    /// As [`key_value`](Self::key_value), with these serdes.
    pub fn key_value_with<K: 'static, V: 'static>(
        name: &str,
        key: impl Serde<K>,
        value: impl Serde<V>,
    ) -> StateStore<K, V> {
        StateStore::new(name, Arc::new(key), Arc::new(value), None)
    }

    /// Rows by key and window start, for windows of `size`; rows are kept for `retention` after their window's start.
    /// Java: `timestampedWindowStoreBuilder`.
    #[must_use]
    pub fn window<K: DefaultSerde, V: DefaultSerde>(
        name: &str,
        retention: Duration,
        size: Duration,
    ) -> StateStore<K, V> {
        let windows = WindowSizes {
            size_ms: millis(size),
            retention_ms: millis(retention),
        };
        StateStore::new(name, K::shared(), V::shared(), Some(windows))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowSizes {
    pub(crate) size_ms: i64,
    pub(crate) retention_ms: i64,
}

/// A store before it is made: name, serdes, cache, changelog, place. Java counterpart: `StoreBuilder`.
pub struct StateStore<K, V> {
    name: String,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    windows: Option<WindowSizes>,
    caching: bool,
    logging: Option<BTreeMap<String, String>>,
    in_memory: bool,
}

impl<K: 'static, V: 'static> StateStore<K, V> {
    fn new(name: &str, key: SharedSerde<K>, value: SharedSerde<V>, windows: Option<WindowSizes>) -> Self {
        let (name, logging) = (name.to_owned(), Some(BTreeMap::new()));
        StateStore {
            name,
            key,
            value,
            windows,
            caching: false,
            logging,
            in_memory: false,
        }
    }

    /// The store of an operation.
    pub(crate) fn of(
        name: &str,
        key: SharedSerde<K>,
        value: SharedSerde<V>,
        windows: Option<WindowSizes>,
        materialized: &Materialized<K, V>,
    ) -> Self {
        StateStore {
            name: name.to_owned(),
            key,
            value,
            windows,
            caching: materialized.caching,
            logging: materialized.logging.clone(),
            in_memory: materialized.in_memory,
        }
    }

    /// Whether updates are written once per key and commit. Default: no.
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

    /// Keeps the rows in memory; they are restored from the changelog at each start.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    pub(crate) fn definition(self) -> StoreDefinition {
        let mut spec = match self.windows {
            None => StoreSpec::key_value(&*self.name),
            Some(windows) => StoreSpec::window(&*self.name, windows.retention_ms, false),
        };
        if self.in_memory {
            spec = spec.in_memory();
        }
        let changelog = self
            .logging
            .map(|configs| ChangelogDefinition::of(&spec).with_configs(configs));
        let options = StoreOptions {
            caching: self.caching,
            timestamped: true,
        };
        let (key, value) = (self.key, self.value);
        let factory: Arc<dyn StoreFactory> = match self.windows {
            None => Arc::new(KeyValueFactory { key, value, options }),
            Some(windows) => Arc::new(WindowFactory {
                key,
                value,
                options,
                size_ms: windows.size_ms,
            }),
        };
        StoreDefinition {
            spec,
            changelog,
            factory,
            global: false,
        }
    }
}

struct KeyValueFactory<K, V> {
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    options: StoreOptions,
}

impl<K: 'static, V: 'static> StoreFactory for KeyValueFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let layout = KeyValueLayout::new(Arc::clone(&self.key));
        Rc::new(TypedStore::new(builder, layout, Arc::clone(&self.value), self.options))
    }
}

struct WindowFactory<K, V> {
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    options: StoreOptions,
    size_ms: i64,
}

impl<K: 'static, V: 'static> StoreFactory for WindowFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let layout = WindowLayout::new(Arc::clone(&self.key), self.size_ms);
        Rc::new(TypedStore::new(builder, layout, Arc::clone(&self.value), self.options))
    }
}
