//! Stores of a bounded number of rows, and stores of the application's own making.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::stores::{LruStore, ManagedStore, StoreBuilder, StoreFactory, StoreFormats};

use super::{Shape, StateStore, Stores};

/// Makes a store that is none of the usual ones.
pub(super) type Special<K, V> =
    Arc<dyn Fn(StoreBuilder, SharedSerde<K>, SharedSerde<V>) -> Rc<dyn ManagedStore> + Send + Sync>;

impl Stores {
    /// The rows used last, up to `max_rows`: one too many takes the place of the row that was neither read nor written for
    /// the longest time, which is deleted, in the changelog too. After a restart the order is that of the rows' event times.
    /// Processors get it by `cx.store::<LruStore<K, V>>(name)`.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// /// Forwards what the two users seen last do.
    /// struct Seen;
    /// impl Processor<String, i64, String, i64> for Seen {
    ///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
    ///         let seen = cx.store::<LruStore<String, i64>>("seen")?;
    ///         let known = seen.get(cx, record.key)?.is_some();
    ///         seen.put(cx, record.key, Some(*record.value), record)?;
    ///         if known { cx.forward(record)?; }
    ///         Ok(())
    ///     }
    /// }
    /// run(|b| {
    ///     b.add_state_store(Stores::lru::<String, i64>("seen", 2));
    ///     b.stream::<String, i64>("in").process_with(|| Seen, Connect::stores(["seen"])).to("out")
    /// })
    /// .pipe("in", [("a", 1, at(0)), ("b", 1, at(1)), ("a", 2, at(2)), ("c", 1, at(3)), ("b", 2, at(4)), ("c", 2, at(5))])
    /// .gives("out", [("a", 2, at(2)), ("c", 2, at(5))]);
    /// ```
    ///
    /// Java counterpart: `Stores.lruMap`.
    #[must_use]
    pub fn lru<K: DefaultSerde, V: DefaultSerde>(name: &str, max_rows: usize) -> StateStore<K, V> {
        let make: Special<K, V> = Arc::new(move |builder, key, value| -> Rc<dyn ManagedStore> {
            Rc::new(LruStore::new(builder, key, value, max_rows))
        });
        StateStore {
            special: Some(make),
            ..StateStore::new(name, K::shared(), V::shared(), Shape::KeyValue)
        }
    }

    /// A store of one's own: `make` gets the store's place among the task's rows and answers what processors find by
    /// `cx.store::<S>(name)`. What it writes there ([`TaskContext::state`](crate::TaskContext::state) with
    /// [`StoreBuilder::id`]) is committed with the task's offsets, and what it [logs](StoreBuilder::log) is what a restore
    /// puts there again: key and value as they are.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// use std::{any::Any, rc::Rc};
    /// use streams_dsl::{ManagedStore, StoreBuilder, TaskContext};
    /// /// Remembers keys.
    /// struct Set(StoreBuilder);
    /// impl Set {
    ///     /// Whether the key is new.
    ///     fn insert(&self, cx: &mut TaskContext, key: &str, timestamp_ms: i64) -> Result<bool, BoxError> {
    ///         if cx.state_ref().get_vec(self.0.id, key.as_bytes())?.is_some() {
    ///             return Ok(false);
    ///         }
    ///         cx.state().put(self.0.id, key.as_bytes(), Some(b"x"))?;
    ///         self.0.log(cx, key.as_bytes(), Some(b"x"), timestamp_ms, Headers::empty())?;
    ///         Ok(true)
    ///     }
    /// }
    /// impl ManagedStore for Set {
    ///     fn as_any(self: Rc<Self>) -> Rc<dyn Any> { self }
    /// }
    /// /// Forwards the first record of each key.
    /// struct First;
    /// impl Processor<String, i64, String, i64> for First {
    ///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
    ///         let seen = cx.store::<Set>("seen")?;
    ///         if seen.insert(cx, record.key, record.timestamp_ms)? { cx.forward(record)?; }
    ///         Ok(())
    ///     }
    /// }
    /// run(|b| {
    ///     b.add_state_store(Stores::custom("seen", |builder| Rc::new(Set(builder))));
    ///     b.stream::<String, i64>("in").process_with(|| First, Connect::stores(["seen"])).to("out")
    /// })
    /// .pipe("in", [("a", 1, at(0)), ("a", 2, at(1)), ("b", 3, at(2))])
    /// .gives("out", [("a", 1, at(0)), ("b", 3, at(2))]);
    /// ```
    ///
    /// Java counterpart: a `StoreBuilder` of one's own. There a custom store keeps its rows wherever it likes, and may be ahead
    /// of the log after a crash; here its rows are the task's.
    #[must_use]
    pub fn custom(
        name: &str,
        make: impl Fn(StoreBuilder) -> Rc<dyn ManagedStore> + Send + Sync + 'static,
    ) -> StateStore<(), ()> {
        let make: Special<(), ()> = Arc::new(move |builder, _, _| make(builder));
        let store = StateStore {
            special: Some(make),
            ..StateStore::new(name, <()>::shared(), <()>::shared(), Shape::KeyValue)
        };
        store.without_times()
    }
}

/// Makes special stores.
pub(super) struct SpecialFactory<K, V> {
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) make: Special<K, V>,
    pub(super) timestamped: bool,
}

impl<K: 'static, V: 'static> StoreFactory for SpecialFactory<K, V> {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        (self.make)(builder, Arc::clone(&self.key), Arc::clone(&self.value))
    }

    fn is_timestamped(&self) -> bool {
        self.timestamped
    }

    /// What a store of one's own keeps is its own affair.
    fn formats(&self) -> Option<StoreFormats> {
        self.timestamped.then(|| StoreFormats::of(&*self.key, &*self.value))
    }
}
