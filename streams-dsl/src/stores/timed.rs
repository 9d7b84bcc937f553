//! Stores whose rows have a time: versions, and rows that die.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::stores::{ManagedStore, StoreBuilder, StoreFactory, StoreFormats, TtlStore, VersionedStore};

use super::{Shape, StateStore, Stores};
use crate::windows::millis;

/// What becomes of a key's value when another one comes, or none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life {
    /// The last value stays for ever.
    Last,
    /// All versions of the last `history_ms`.
    Versions { history_ms: i64 },
    /// The last value, for `ttl_ms` unless it says another time.
    Ttl { ttl_ms: i64 },
}

impl Stores {
    /// The values that each key had, and from when to when; a version can be asked for, and may come late, for `history`
    /// of event time. Processors get it by `versioned_store`. Java: `versionedKeyValueStoreBuilder` (KIP-889).
    #[must_use]
    pub fn versioned<K: DefaultSerde, V: DefaultSerde>(name: &str, history: Duration) -> StateStore<K, V> {
        StateStore {
            life: Life::Versions {
                history_ms: millis(history),
            },
            ..StateStore::new(name, K::shared(), V::shared(), Shape::KeyValue)
        }
    }

    /// Rows that die `ttl` of event time after they were written, unless they say another time
    /// ([`put_until`](crate::TtlStore::put_until)). A dead row can't be seen; the next commit removes it, and writes a
    /// tombstone to the changelog, so that the topic and every copy of the store shrink too. Time is the task's stream
    /// time: without new records nothing dies. Processors get it by `ttl_store`. Not in Java.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// /// Forwards the first record of each key in a minute.
    /// struct First;
    /// impl Processor<String, i64, String, i64> for First {
    ///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
    ///         let seen = cx.ttl_store::<String, bool>("seen")?;
    ///         if seen.get(cx, record.key)?.is_none() {
    ///             seen.put(cx, record.key, Some(&true), record)?;
    ///             cx.forward(record)?;
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// run(|b| {
    ///     b.add_state_store(Stores::ttl::<String, bool>("seen", MINUTE));
    ///     b.stream::<String, i64>("in").process_with(|| First, Connect::stores(["seen"])).to("out")
    /// })
    /// .pipe("in", [("a", 1, at(0)), ("a", 2, at(59_999)), ("a", 3, at(60_000))])
    /// .gives("out", [("a", 1, at(0)), ("a", 3, at(60_000))]);
    /// ```
    #[must_use]
    pub fn ttl<K: DefaultSerde, V: DefaultSerde>(name: &str, ttl: Duration) -> StateStore<K, V> {
        StateStore {
            life: Life::Ttl { ttl_ms: millis(ttl) },
            ..StateStore::new(name, K::shared(), V::shared(), Shape::KeyValue)
        }
    }
}

pub(super) struct VersionedFactory<K, V> {
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
}

impl<K: 'static, V: 'static> StoreFactory for VersionedFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
        Rc::new(VersionedStore::new(builder, key, value))
    }

    fn formats(&self) -> Option<StoreFormats> {
        Some(StoreFormats::of(&*self.key, &*self.value))
    }

    fn is_timestamped(&self) -> bool {
        false
    }
}

pub(super) struct TtlFactory<K, V> {
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) ttl_ms: i64,
}

impl<K: 'static, V: 'static> StoreFactory for TtlFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
        Rc::new(TtlStore::new(builder, key, value, self.ttl_ms))
    }

    fn formats(&self) -> Option<StoreFormats> {
        Some(StoreFormats::of(&*self.key, &*self.value))
    }
}
