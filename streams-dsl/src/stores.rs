//! Stores: those a user adds for processors, and those that operations bring along.

mod special;
mod timed;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use streams_core::serde::{DefaultSerde, Format, Serde, SharedSerde};
use streams_core::stores::{
    JoinWindowOptions, JoinWindowStore, KeyValueLayout, ManagedStore, SessionLayout, StoreBuilder, StoreFactory,
    StoreFormats, StoreOptions, SuppressBuffer, TypedStore, UnmatchedStore, WindowEnds, WindowLayout,
};
use streams_core::topology::{ChangelogDefinition, StoreDefinition};
use streams_state::StoreSpec;

use crate::config::{Materialized, StoreSettings, store_settings};
use crate::windows::millis;
use special::{Special, SpecialFactory};
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
        StateStore::new(name, K::shared(), V::shared(), Shape::KeyValue)
    }

    /// As [`key_value`](Self::key_value), with these serdes.
    pub fn key_value_with<K: 'static, V: 'static>(
        name: &str,
        key: impl Serde<K>,
        value: impl Serde<V>,
    ) -> StateStore<K, V> {
        StateStore::new(name, Arc::new(key), Arc::new(value), Shape::KeyValue)
    }

    /// Rows by key and window start, for windows of `size`; rows are kept for `retention` after their window's start.
    /// Java: `timestampedWindowStoreBuilder`.
    #[must_use]
    pub fn window<K: DefaultSerde, V: DefaultSerde>(
        name: &str,
        retention: Duration,
        size: Duration,
    ) -> StateStore<K, V> {
        let shape = Shape::Window {
            ends: WindowEnds::Size(millis(size)),
            retention_ms: millis(retention),
            bucket_ms: None,
        };
        StateStore::new(name, K::shared(), V::shared(), shape)
    }

    /// Rows by key and session; rows are kept for `retention` after their session's end. Java: `sessionStoreBuilder`.
    #[must_use]
    pub fn session<K: DefaultSerde, V: DefaultSerde>(name: &str, retention: Duration) -> StateStore<K, V> {
        let shape = Shape::Session {
            retention_ms: millis(retention),
        };
        StateStore::new(name, K::shared(), V::shared(), shape)
    }
}

/// What a store's rows are found by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Keys.
    KeyValue,
    /// Keys and window starts.
    Window {
        /// The windows' ends, which follow from their starts.
        ends: WindowEnds,
        /// How long rows are kept after their window's start.
        retention_ms: i64,
        /// The width of time buckets, where the usual one does not do.
        bucket_ms: Option<i64>,
    },
    /// Keys and sessions.
    Session {
        /// How long rows are kept after their session's end.
        retention_ms: i64,
    },
}

impl Shape {
    fn spec(self, name: &str) -> StoreSpec {
        match self {
            Shape::KeyValue => StoreSpec::key_value(name),
            Shape::Window {
                retention_ms,
                bucket_ms,
                ..
            } => {
                let spec = StoreSpec::window(name, retention_ms, false);
                match bucket_ms {
                    Some(width_ms) => spec.with_buckets_of(width_ms.max(1)),
                    None => spec,
                }
            }
            Shape::Session { retention_ms } => StoreSpec::session(name, retention_ms),
        }
    }
}

/// A store before it is made: name, serdes, cache, changelog, place. Java counterpart: `StoreBuilder`.
pub struct StateStore<K, V> {
    name: String,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    shape: Shape,
    store: StoreSettings,
    logs_headers: bool,
    life: Life,
    timestamped: bool,
    special: Option<Special<K, V>>,
}

impl<K: 'static, V: 'static> StateStore<K, V> {
    fn new(name: &str, key: SharedSerde<K>, value: SharedSerde<V>, shape: Shape) -> Self {
        StateStore {
            name: name.to_owned(),
            key,
            value,
            shape,
            store: StoreSettings::with_caching(false),
            logs_headers: false,
            life: Life::Last,
            timestamped: true,
            special: None,
        }
    }

    /// The store of an operation.
    pub(crate) fn of(
        name: &str,
        key: SharedSerde<K>,
        value: SharedSerde<V>,
        shape: Shape,
        materialized: &Materialized<K, V>,
    ) -> Self {
        StateStore {
            name: name.to_owned(),
            key,
            value,
            shape,
            store: materialized.store.clone(),
            logs_headers: false,
            life: materialized.history.map_or(Life::Last, |history| Life::Versions {
                history_ms: millis(history),
            }),
            timestamped: true,
            special: None,
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
        let mut spec = match (self.shape, self.life) {
            (Shape::KeyValue, Life::Versions { history_ms }) => StoreSpec::versioned(&*self.name, history_ms),
            (Shape::KeyValue, Life::Ttl { ttl_ms }) => StoreSpec::expiring(&*self.name, ttl_ms),
            (shape, _) => shape.spec(&self.name),
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
            // Sessions carry no time besides their end (Java: plain session stores).
            timestamped: self.timestamped && !matches!(self.shape, Shape::Session { .. }),
        };
        let (key, value) = (self.key, self.value);
        let timestamped = options.timestamped;
        let factory: Arc<dyn StoreFactory> = match (self.shape, self.life, self.special) {
            (_, _, Some(make)) => Arc::new(SpecialFactory {
                key,
                value,
                make,
                timestamped,
            }),
            (Shape::KeyValue, Life::Versions { .. }, None) => Arc::new(VersionedFactory { key, value }),
            (Shape::KeyValue, Life::Ttl { ttl_ms }, None) => Arc::new(TtlFactory { key, value, ttl_ms }),
            (shape, _, None) => Arc::new(TypedFactory {
                key,
                value,
                options,
                logs_headers: self.logs_headers,
                shape,
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

struct TypedFactory<K, V> {
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    options: StoreOptions,
    logs_headers: bool,
    shape: Shape,
}

impl<K: 'static, V: 'static> StoreFactory for TypedFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let (key, value, options) = (Arc::clone(&self.key), Arc::clone(&self.value), self.options);
        match self.shape {
            Shape::KeyValue => {
                let store = TypedStore::new(builder, KeyValueLayout::new(key), value, options);
                Rc::new(if self.logs_headers {
                    store.logging_headers()
                } else {
                    store
                })
            }
            Shape::Window { ends, .. } => Rc::new(TypedStore::new(
                builder,
                WindowLayout::with_ends(key, ends),
                value,
                options,
            )),
            Shape::Session { .. } => Rc::new(TypedStore::new(builder, SessionLayout::new(key), value, options)),
        }
    }

    fn is_timestamped(&self) -> bool {
        self.options.timestamped
    }

    fn formats(&self) -> Option<StoreFormats> {
        let mut formats = StoreFormats::of(&*self.key, &*self.value);
        if let Shape::Window { ends, .. } = self.shape {
            match ends {
                WindowEnds::Size(size_ms) => formats.window_size_ms = Some(size_ms),
                // Windows of another zone are other windows, whatever their keys look like.
                WindowEnds::Rule(rule) => formats.key.format = format!("{} by {rule:?}", formats.key.format),
            }
        }
        Some(formats)
    }
}

/// The topic configs of a changelog (`None`: no changelog), and whether the rows are in memory.
pub(crate) type Kept = (Option<BTreeMap<String, String>>, bool);

/// Makes plain stores, whose values have no event time in front.
struct PlainFactory<F> {
    make: F,
    formats: StoreFormats,
    suppresses: bool,
}

impl<F: Fn(StoreBuilder) -> Rc<dyn ManagedStore> + Send + Sync> StoreFactory for PlainFactory<F> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        (self.make)(builder)
    }

    fn is_timestamped(&self) -> bool {
        false
    }

    fn formats(&self) -> Option<StoreFormats> {
        Some(self.formats.clone())
    }

    fn is_suppress_buffer(&self) -> bool {
        self.suppresses
    }
}

fn plain_store(
    spec: StoreSpec,
    (logging, in_memory): &Kept,
    formats: StoreFormats,
    make: impl Fn(StoreBuilder) -> Rc<dyn ManagedStore> + Send + Sync + 'static,
) -> StoreDefinition {
    let spec = if *in_memory { spec.in_memory() } else { spec };
    let changelog = logging
        .clone()
        .map(|configs| ChangelogDefinition::of(&spec).with_configs(configs));
    StoreDefinition {
        spec,
        changelog,
        factory: Arc::new(PlainFactory {
            make,
            formats,
            suppresses: false,
        }),
        global: false,
    }
}

/// The store of one side of a stream–stream join.
pub(crate) fn join_window_store<K: 'static, V: 'static>(
    name: &str,
    key: &SharedSerde<K>,
    value: &SharedSerde<V>,
    retention_ms: i64,
    kept: &Kept,
) -> StoreDefinition {
    let (key, value) = (Arc::clone(key), Arc::clone(value));
    let options = JoinWindowOptions {
        retention_ms,
        exact: kept.1,
    };
    let formats = StoreFormats::of(&*key, &*value);
    plain_store(
        StoreSpec::window(name, retention_ms, true),
        kept,
        formats,
        move |builder| {
            let (key, value) = (Arc::clone(&key), Arc::clone(&value));
            Rc::new(JoinWindowStore::new(builder, key, value, options))
        },
    )
}

/// The store of records without a partner, of both sides of a stream–stream join.
pub(crate) fn unmatched_store<K: 'static>(name: &str, key: &SharedSerde<K>, kept: &Kept) -> StoreDefinition {
    let key = Arc::clone(key);
    // Values of both sides, each as its own side writes them.
    let either: Format = Format {
        format: "either side's".to_owned(),
        type_name: "either side's".to_owned(),
    };
    let formats = StoreFormats {
        key: Format::of(&*key),
        value: either,
        window_size_ms: None,
    };
    plain_store(StoreSpec::key_value(name), kept, formats, move |builder| {
        Rc::new(UnmatchedStore::new(builder, Arc::clone(&key)))
    })
}

/// The buffer of a suppressed table.
pub(crate) fn suppress_buffer<K: 'static, V: 'static>(
    name: &str,
    key: &SharedSerde<K>,
    value: &SharedSerde<V>,
    logging: Option<BTreeMap<String, String>>,
) -> StoreDefinition {
    let (key, value) = (Arc::clone(key), Arc::clone(value));
    let formats = StoreFormats::of(&*key, &*value);
    let make = move |builder| -> Rc<dyn ManagedStore> {
        Rc::new(SuppressBuffer::new(builder, Arc::clone(&key), Arc::clone(&value)))
    };
    let definition = plain_store(
        StoreSpec::key_value(name),
        &(logging, false),
        formats.clone(),
        make.clone(),
    );
    StoreDefinition {
        factory: Arc::new(PlainFactory {
            make,
            formats,
            suppresses: true,
        }),
        ..definition
    }
}
