//! Stores: those a user adds for processors, and those that operations bring along.

mod timed;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use streams_core::serde::{DefaultSerde, Serde, SharedSerde};
use streams_core::stores::{
    KeyValueLayout, ManagedStore, StoreBuilder, StoreFactory, StoreOptions, TypedStore, WindowLayout,
};
use streams_core::topology::{ChangelogDefinition, StoreDefinition};
use streams_state::StoreSpec;

use crate::config::{Materialized, StoreSettings, store_settings};
use crate::windows::millis;
use timed::{Life, TtlFactory, VersionedFactory};

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
    store: StoreSettings,
    logs_headers: bool,
    life: Life,
    timestamped: bool,
}

impl<K: 'static, V: 'static> StateStore<K, V> {
    fn new(name: &str, key: SharedSerde<K>, value: SharedSerde<V>, windows: Option<WindowSizes>) -> Self {
        StateStore {
            name: name.to_owned(),
            key,
            value,
            windows,
            store: StoreSettings::with_caching(false),
            logs_headers: false,
            life: Life::Last,
            timestamped: true,
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
            store: materialized.store.clone(),
            logs_headers: false,
            life: materialized.history.map_or(Life::Last, |history| Life::Versions {
                history_ms: millis(history),
            }),
            timestamped: true,
        }
    }

    /// The same store, whose rows carry no event time.
    pub(crate) fn without_times(mut self) -> Self {
        self.timestamped = false;
        self
    }

    /// The same store; its changelog records carry the headers of the update.
    pub(crate) fn logging_headers(mut self) -> Self {
        self.logs_headers = true;
        self
    }

    pub(crate) fn definition(self) -> StoreDefinition {
        let mut spec = match (self.windows, self.life) {
            (None, Life::Last) => StoreSpec::key_value(&*self.name),
            (None, Life::Versions { history_ms }) => StoreSpec::versioned(&*self.name, history_ms),
            (None, Life::Ttl { ttl_ms }) => StoreSpec::expiring(&*self.name, ttl_ms),
            (Some(windows), _) => StoreSpec::window(&*self.name, windows.retention_ms, false),
        };
        if self.store.in_memory {
            spec = spec.in_memory();
        }
        let changelog = self
            .store
            .logging
            .map(|configs| ChangelogDefinition::of(&spec).with_configs(configs));
        let options = StoreOptions {
            caching: self.store.caching,
            timestamped: self.timestamped,
        };
        let (key, value) = (self.key, self.value);
        let factory: Arc<dyn StoreFactory> = match (self.windows, self.life) {
            (None, Life::Versions { .. }) => Arc::new(VersionedFactory { key, value }),
            (None, Life::Ttl { ttl_ms }) => Arc::new(TtlFactory { key, value, ttl_ms }),
            (None, Life::Last) => Arc::new(KeyValueFactory {
                key,
                value,
                options,
                logs_headers: self.logs_headers,
            }),
            (Some(windows), _) => Arc::new(WindowFactory {
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

store_settings!(
    StateStore,
    "Whether updates are written once per key and commit. Default: no."
);

struct KeyValueFactory<K, V> {
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    options: StoreOptions,
    logs_headers: bool,
}

impl<K: 'static, V: 'static> StoreFactory for KeyValueFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let layout = KeyValueLayout::new(Arc::clone(&self.key));
        let store = TypedStore::new(builder, layout, Arc::clone(&self.value), self.options);
        Rc::new(if self.logs_headers {
            store.logging_headers()
        } else {
            store
        })
    }

    fn is_timestamped(&self) -> bool {
        self.options.timestamped
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
