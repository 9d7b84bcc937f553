//! A store of the rows used last.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use streams_state::Direction;

use super::layout::{KeyValueLayout, Layout};
use super::managed::{ManagedStore, StoreBuilder, ValueAndTimestamp};
use super::read::Rows;
use super::typed::{StoreOptions, TypedStore, Update};
use crate::Record;
use crate::error::ProcessResult;
use crate::processor::TaskContext;
use crate::serde::SharedSerde;

type Bytes = Box<[u8]>;

/// The keys by their last use.
#[derive(Default)]
struct Order {
    by_key: HashMap<Bytes, u64>,
    by_use: BTreeMap<u64, Bytes>,
    next: u64,
}

impl Order {
    fn used(&mut self, key: &[u8]) {
        let key: Bytes = key.into();
        if let Some(before) = self.by_key.insert(key.clone(), self.next) {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.next, key);
        self.next += 1;
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(before) = self.by_key.remove(key) {
            self.by_use.remove(&before);
        }
    }
}

/// A key-value store that holds the rows used last, up to a number of them: a row too many takes the place of the one that
/// was neither read nor written for the longest time, which is deleted, in the changelog too.
///
/// Which one that is is not stored: after a restart the order is that of the rows' event times. Never cached.
/// Java counterpart: `MemoryLRUCache` (`Stores.lruMap`), whose order after a restart is that of the changelog.
pub struct LruStore<K: 'static, V> {
    rows: TypedStore<KeyValueLayout<K>, V>,
    max_rows: usize,
    /// `None` until the first use.
    order: RefCell<Option<Order>>,
}

impl<K: 'static, V: 'static> LruStore<K, V> {
    /// A store of the task that holds `max_rows` rows, at least one.
    pub fn new(base: StoreBuilder, key: SharedSerde<K>, value: SharedSerde<V>, max_rows: usize) -> Self {
        let options = StoreOptions {
            caching: false,
            timestamped: true,
        };
        LruStore {
            rows: TypedStore::new(base, KeyValueLayout::new(key), value, options),
            max_rows: max_rows.max(1),
            order: RefCell::new(None),
        }
    }

    /// The store's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.rows.name()
    }

    /// A row, which counts as used; `None` if there is none, or the key is null.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn get(&self, cx: &mut TaskContext, key: &K) -> ProcessResult<Option<ValueAndTimestamp<V>>>
    where
        V: Clone,
    {
        self.learn(cx)?;
        let row = self.rows.get(cx, key)?;
        if let (Some(_), Some(bytes)) = (&row, self.identity(cx, key)?) {
            self.with_order(|order| order.used(&bytes));
        }
        Ok(row)
    }

    /// Sets a row, and deletes those that are too many; `None` deletes it. `record` gives event time and headers.
    ///
    /// # Errors
    /// When a row can't be read or written.
    pub fn put<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        value: Option<V>,
        record: Record<'_, KR, VR>,
    ) -> ProcessResult<Update<V>> {
        self.learn(cx)?;
        let Some(bytes) = self.identity(cx, key)? else {
            return Ok(Update::NullKey);
        };
        let deletes = value.is_none();
        let update = self.rows.put(cx, key, value, record)?;
        self.with_order(|order| match deletes {
            true => order.remove(&bytes),
            false => order.used(&bytes),
        });
        while let Some(eldest) = self.take_surplus() {
            let eldest = self.rows.layout.decode(&self.rows.base.topic, &eldest);
            let eldest = eldest.map_err(|source| self.rows.unreadable(cx, &source))?;
            self.rows.put(cx, &eldest, None, record)?;
        }
        Ok(update)
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn len(&self, cx: &mut TaskContext) -> ProcessResult<usize> {
        self.learn(cx)?;
        Ok(self.with_order(|order| order.by_key.len()).unwrap_or(0))
    }

    /// Whether there is no row.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn is_empty(&self, cx: &mut TaskContext) -> ProcessResult<bool> {
        Ok(self.len(cx)? == 0)
    }

    /// All rows, by the bytes of their keys; none of them counts as used.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn all(&self, cx: &mut TaskContext) -> ProcessResult<Rows<K, V>> {
        self.rows.range(cx, None, None, Direction::Forward)
    }

    /// Learns the rows of the task's state, before the first use.
    fn learn(&self, cx: &mut TaskContext) -> ProcessResult {
        if self.order.borrow().is_some() {
            return Ok(());
        }
        let mut stored = Vec::new();
        for row in self.rows.range(cx, None, None, Direction::Forward)? {
            let (key, value) = row?;
            stored.push((value.timestamp_ms, self.identity(cx, &key)?.unwrap_or_default()));
        }
        stored.sort();
        let mut order = Order::default();
        stored.iter().for_each(|(_, key)| order.used(key));
        *self.order.borrow_mut() = Some(order);
        Ok(())
    }

    fn identity(&self, cx: &TaskContext, key: &K) -> ProcessResult<Option<Vec<u8>>> {
        self.rows.base.encode_key(cx, self.rows.layout.key_serde(), key)
    }

    fn with_order<R>(&self, work: impl FnOnce(&mut Order) -> R) -> Option<R> {
        self.order.borrow_mut().as_mut().map(work)
    }

    /// The key used least, if there are too many.
    fn take_surplus(&self) -> Option<Bytes> {
        let mut order = self.order.borrow_mut();
        let order = order.as_mut().filter(|order| order.by_key.len() > self.max_rows)?;
        let (_, key) = order.by_use.pop_first()?;
        order.by_key.remove(&key);
        Some(key)
    }
}

impl<K: 'static, V: 'static> ManagedStore for LruStore<K, V> {
    fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        self.rows.flush(cx)
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
