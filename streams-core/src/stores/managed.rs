//! What every typed store of a task has in common: how it is made, flushed, logged and bounded.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use streams_state::StoreId;

use crate::error::{Error, ProcessResult};
use crate::metrics::meters::StoreMeter;
use crate::processor::{OutputTopic, TaskContext};
use crate::serde::{Format, Serde, SerdeError, SharedSerde};
use crate::{Change, Headers, Record};

/// A value with the event time (ms since the Unix epoch) of its last update. Java: `ValueAndTimestamp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueAndTimestamp<V> {
    /// The value.
    pub value: V,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
}

/// A typed store as the task manages it. What is here already is that of a store without a cache.
pub trait ManagedStore {
    /// Writes every dirty entry to the task's bytes and the changelog, and forwards what is not yet forwarded, in the
    /// order in which the entries became dirty. May write to stores further down.
    ///
    /// # Errors
    /// As processing.
    fn flush(&self, _cx: &mut TaskContext) -> ProcessResult {
        Ok(())
    }

    /// Whether `flush` has something to do.
    fn is_dirty(&self) -> bool {
        false
    }

    /// Makes room: flushes, then drops clean entries, the ones longest unused first, until the budget holds.
    ///
    /// # Errors
    /// As processing.
    fn evict(&self, _cx: &mut TaskContext) -> ProcessResult {
        Ok(())
    }

    /// Bytes charged for cached entries.
    fn cached_bytes(&self) -> usize {
        0
    }

    /// The store itself, to be used as its type.
    fn as_any(self: Rc<Self>) -> Rc<dyn Any>;
}

/// Takes the changes of a cached store when they are flushed.
pub trait FlushListener<K, V> {
    /// Takes one change; the record carries the time and headers of the entry's last update.
    ///
    /// # Errors
    /// As processing.
    fn flushed(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult;
}

/// The bytes that the caches of one stream thread may hold together. 0 turns caching off.
#[derive(Debug, Default)]
pub struct CacheBudget {
    max_bytes: Cell<usize>,
    used_bytes: Cell<usize>,
}

impl CacheBudget {
    /// A budget of `max_bytes`.
    #[must_use]
    pub fn new(max_bytes: usize) -> Rc<Self> {
        Rc::new(CacheBudget {
            max_bytes: Cell::new(max_bytes),
            used_bytes: Cell::new(0),
        })
    }

    /// The bound.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.max_bytes.get()
    }

    /// Sets another bound; what is over it goes when the next record is processed.
    pub fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.set(max_bytes);
    }

    /// What is charged now.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.get()
    }

    /// Whether more is charged than allowed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.used_bytes.get() > self.max_bytes.get()
    }

    pub(crate) fn charge(&self, before: usize, after: usize) {
        self.used_bytes
            .set((self.used_bytes.get() + after).saturating_sub(before));
    }
}

/// Where a store's changes are logged.
#[derive(Clone, Debug)]
pub struct Changelog {
    /// The changelog topic's number in the task.
    pub(crate) topic: OutputTopic,
    /// The task's partition.
    pub(crate) partition: i32,
    /// Under which number acknowledged offsets come back.
    pub(crate) slot: u32,
}

impl Changelog {
    /// Logs a put (or with `None` a delete) of a store key. Every record is a full put or delete of its key, so
    /// replaying too much is harmless.
    pub(crate) fn log(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<&[u8]>,
        timestamp_ms: i64,
        headers: &Headers,
    ) -> ProcessResult {
        cx.counters.changelog_records += 1;
        let headers = headers.iter().map(|header| (&*header.key, header.value.as_deref()));
        let to = (self.topic, self.partition, self.slot);
        cx.log_row(to, timestamp_ms, key, value, headers)
    }
}

/// What a store factory gets.
#[derive(Clone)]
pub struct StoreBuilder {
    /// The store's name.
    pub name: Arc<str>,
    /// Its place in the task's state.
    pub id: StoreId,
    /// Where changes are logged; `None` = logging is off.
    pub changelog: Option<Changelog>,
    /// The changelog topic's name as serdes see it; the store's name without logging.
    pub topic: Arc<str>,
    /// The thread's cache budget.
    pub budget: Rc<CacheBudget>,
    /// What the store measures.
    pub meter: Rc<StoreMeter>,
}

impl StoreBuilder {
    /// Writes a row, or with `None` its deletion, to the changelog, if there is one: what a restore puts into the store again.
    /// `timestamp_ms` is event time.
    ///
    /// # Errors
    /// When the record is larger than Kafka can carry.
    pub fn log(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<&[u8]>,
        timestamp_ms: i64,
        headers: &Headers,
    ) -> ProcessResult {
        match &self.changelog {
            Some(changelog) => changelog.log(cx, key, value, timestamp_ms, headers),
            None => Ok(()),
        }
    }

    /// The key's bytes; `None` for a null key.
    pub(super) fn encode_key<K: 'static>(
        &self,
        cx: &TaskContext,
        serde: &SharedSerde<K>,
        key: &K,
    ) -> ProcessResult<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let present = serde
            .serialize(&self.topic, key, &mut bytes)
            .map_err(|source| self.unwritable(cx, "key", source))?;
        Ok(present.then_some(bytes))
    }

    pub(super) fn unwritable(&self, cx: &TaskContext, what: &'static str, source: SerdeError) -> Box<Error> {
        Box::new(Error::Serialize {
            what,
            node: self.name.to_string(),
            task: cx.task(),
            topic: self.topic.to_string(),
            source,
        })
    }
}

/// Makes one typed store for one task.
pub trait StoreFactory: Send + Sync {
    /// Makes the store.
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore>;

    /// Whether stored values carry their event time in front, which a restore takes from the changelog record.
    fn is_timestamped(&self) -> bool {
        true
    }

    /// Whether the rows are entries of a suppress buffer, whose changelog records may be of an older version.
    fn is_suppress_buffer(&self) -> bool {
        false
    }

    /// What a lockfile tells of the store's rows; `None` = nothing is known.
    fn formats(&self) -> Option<StoreFormats> {
        None
    }
}

/// What a store's rows are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFormats {
    /// The keys, without their windows.
    pub key: Format,
    /// The values, without their event time.
    pub value: Format,
    /// How long windows are, in milliseconds; rows carry their starts alone.
    pub window_size_ms: Option<i64>,
}

impl StoreFormats {
    /// Of keys and values of these serdes.
    #[must_use]
    pub fn of<K, V>(key: &(impl Serde<K> + ?Sized), value: &(impl Serde<V> + ?Sized)) -> Self {
        StoreFormats {
            key: Format::of(key),
            value: Format::of(value),
            window_size_ms: None,
        }
    }
}

#[derive(Clone)]
struct Entry {
    managed: Rc<dyn ManagedStore>,
    any: Rc<dyn Any>,
}

/// The typed stores of one task, by name and in topological order. Cloning shares them.
#[derive(Clone, Default)]
pub struct TaskStores {
    by_name: Rc<BTreeMap<Arc<str>, Entry>>,
    order: Rc<Vec<Rc<dyn ManagedStore>>>,
}

impl TaskStores {
    /// The stores, in the order in which they are flushed.
    pub(crate) fn new(stores: Vec<(Arc<str>, Rc<dyn ManagedStore>)>) -> Self {
        let order = stores.iter().map(|(_, store)| Rc::clone(store)).collect();
        let entry = |managed: Rc<dyn ManagedStore>| Entry {
            any: Rc::clone(&managed).as_any(),
            managed,
        };
        let by_name = stores.into_iter().map(|(name, store)| (name, entry(store))).collect();
        TaskStores {
            by_name: Rc::new(by_name),
            order: Rc::new(order),
        }
    }

    /// A store as its type; `None` if there is none of that name and type.
    #[must_use]
    pub fn get<S: 'static>(&self, name: &str) -> Option<Rc<S>> {
        Rc::clone(&self.by_name.get(name)?.any).downcast::<S>().ok()
    }

    /// Flushes every store in topological order, again and again until nothing is dirty: a flush may dirty a store
    /// further down, and through a processor even one further up.
    pub(crate) fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        const ROUNDS: usize = 100;
        for _ in 0..ROUNDS {
            for store in self.order.iter() {
                store.flush(cx)?;
            }
            if !self.order.iter().any(|store| store.is_dirty()) {
                return Ok(());
            }
        }
        Err(crate::Error::bug(format!(
            "the stores of task {} are still dirty after {ROUNDS} flushes",
            cx.task()
        )))
    }

    /// Whether a flush has something to do.
    pub(crate) fn is_dirty(&self) -> bool {
        self.order.iter().any(|store| store.is_dirty())
    }

    /// Bytes charged for cached entries of all stores.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn cached_bytes(&self) -> usize {
        self.order.iter().map(|store| store.cached_bytes()).sum()
    }

    /// Brings the caches back under the budget; called between records.
    pub(crate) fn evict(&self, cx: &mut TaskContext, budget: &CacheBudget) -> ProcessResult {
        let mut largest: Vec<_> = self.by_name.values().map(|entry| &entry.managed).collect();
        largest.sort_by_key(|store| std::cmp::Reverse(store.cached_bytes()));
        for store in largest {
            if budget.is_over() {
                store.evict(cx)?;
            }
        }
        Ok(())
    }
}
