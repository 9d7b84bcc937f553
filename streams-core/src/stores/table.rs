//! The store of a table: plain or versioned, whichever it was materialized as. Java: `KeyValueStoreWrapper`.

use std::rc::Rc;

use super::KeyValueStore;
use super::managed::{FlushListener, TaskStores, ValueAndTimestamp};
use super::typed::Update;
use super::versioned::VersionedStore;
use crate::Record;
use crate::error::ProcessResult;
use crate::processor::TaskContext;

/// The rows of a table without windows, plain or with their versions.
pub enum TableStore<K: 'static, V> {
    /// The last value that came, whatever its time.
    Plain(Rc<KeyValueStore<K, V>>),
    /// The values of all times; the last one by time counts.
    Versioned(Rc<VersionedStore<K, V>>),
}

impl<K: 'static, V> Clone for TableStore<K, V> {
    fn clone(&self) -> Self {
        match self {
            TableStore::Plain(store) => TableStore::Plain(Rc::clone(store)),
            TableStore::Versioned(store) => TableStore::Versioned(Rc::clone(store)),
        }
    }
}

impl<K: 'static, V: 'static> TableStore<K, V> {
    /// The store of this name and these types; `None` if there is none.
    pub(crate) fn find(stores: &TaskStores, name: &str) -> Option<Self> {
        let plain = stores.get::<KeyValueStore<K, V>>(name).map(TableStore::Plain);
        plain.or_else(|| stores.get::<VersionedStore<K, V>>(name).map(TableStore::Versioned))
    }

    /// Sets who takes the changes of a cached store when it is flushed, and whether changes carry old values.
    pub fn set_listener(&self, listener: Rc<dyn FlushListener<K, V>>, send_old: bool) {
        match self {
            TableStore::Plain(store) => store.set_listener(listener, send_old),
            TableStore::Versioned(store) => store.set_send_old(send_old),
        }
    }

    /// Sets a row at the record's event time; `None` deletes it.
    ///
    /// # Errors
    /// When the row can't be read or written.
    pub fn put<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        value: Option<V>,
        record: Record<'_, KR, VR>,
    ) -> ProcessResult<Update<V>> {
        match self {
            TableStore::Plain(store) => store.put(cx, key, value, record),
            TableStore::Versioned(store) => store.put(cx, key, value, record),
        }
    }

    /// Replaces the last row by what `change` makes of it, see [`TypedStore::update`](super::TypedStore::update).
    ///
    /// # Errors
    /// When the row can't be read or written, or `change` failed for good.
    pub fn update<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        record: Record<'_, KR, VR>,
        change: impl FnOnce(
            &mut TaskContext,
            Option<ValueAndTimestamp<V>>,
        ) -> ProcessResult<Option<Option<ValueAndTimestamp<V>>>>,
    ) -> ProcessResult<Update<V>> {
        match self {
            TableStore::Plain(store) => store.update(cx, key, record, change),
            TableStore::Versioned(store) => store.update(cx, key, record, change),
        }
    }

    /// Lends the last row to `read`: the value and its event time (ms since the Unix epoch), or `None`.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn read<R>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        read: impl FnOnce(Option<(&V, i64)>) -> R,
    ) -> ProcessResult<R> {
        match self {
            TableStore::Plain(store) => store.read(cx, key, read),
            TableStore::Versioned(store) => store.read(cx, key, read),
        }
    }

    /// Lends the row that was valid at a time; of a plain store this is the last one.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn read_as_of<R>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        as_of_ms: i64,
        read: impl FnOnce(Option<(&V, i64)>) -> R,
    ) -> ProcessResult<R> {
        match self {
            TableStore::Plain(store) => store.read(cx, key, read),
            TableStore::Versioned(store) => {
                let row = store.get_as_of(cx, key, as_of_ms)?;
                Ok(read(row.as_ref().map(|row| (&row.value, row.from_ms))))
            }
        }
    }
}
