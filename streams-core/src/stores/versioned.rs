//! A typed versioned store: for each key the values it had, and from when to when (KIP-889). Never cached, as in Java.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use streams_state::{Direction, Version, VersionPut, VersionRow};

use super::decode::unreadable;
use super::managed::{ManagedStore, StoreBuilder, ValueAndTimestamp};
use super::typed::Update;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::StoreOp;
use crate::processor::TaskContext;
use crate::serde::{SerdeError, SharedSerde};
use crate::{Change, Headers, Record};

/// A version of a key's value. Times are event time, milliseconds since the Unix epoch. Java: `VersionedRecord`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedValue<V> {
    /// The value.
    pub value: V,
    /// From when it is valid, included.
    pub from_ms: i64,
    /// To when it is valid, excluded; `None` = it is the newest version.
    pub to_ms: Option<i64>,
}

/// A store of versions in one task. Java: `VersionedKeyValueStore`.
pub struct VersionedStore<K, V> {
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    base: StoreBuilder,
    send_old: Cell<bool>,
    value_buffer: RefCell<Vec<u8>>,
}

impl<K: 'static, V: 'static> VersionedStore<K, V> {
    /// A store of the task; `base` must name a versioned store of the task's state.
    pub fn new(base: StoreBuilder, key: SharedSerde<K>, value: SharedSerde<V>) -> Self {
        VersionedStore {
            key,
            value,
            base,
            send_old: Cell::new(false),
            value_buffer: RefCell::default(),
        }
    }

    /// The store's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.base.name
    }

    /// Whether changes carry the newest value before them.
    pub fn set_send_old(&self, send_old: bool) {
        self.send_old.set(send_old);
    }

    /// Adds a version that is valid from `from_ms` to the begin of the next one; `None` is a tombstone. What is older than
    /// the history of the store is refused and counted as dropped. A null key does nothing.
    ///
    /// # Errors
    /// When the version can't be written.
    pub fn put_at(&self, cx: &mut TaskContext, key: &K, value: Option<&V>, from_ms: i64) -> ProcessResult<VersionPut> {
        match self.base.encode_key(cx, &self.key, key)? {
            Some(key) => self.put_encoded(cx, &key, value, from_ms),
            None => Ok(VersionPut::Expired),
        }
    }

    /// Adds the version of a record, valid from its event time, and tells what changed: [`Update::Skipped`] if it is
    /// older than the history.
    ///
    /// # Errors
    /// When rows can't be read or written.
    pub fn put<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        value: Option<V>,
        record: Record<'_, KR, VR>,
    ) -> ProcessResult<Update<V>> {
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(Update::NullKey);
        };
        let old = match self.send_old.get() {
            true => self.latest(cx, &key)?.map(|old| old.value),
            false => None,
        };
        self.put_change(cx, &key, value, old, record.timestamp_ms)
    }

    /// Replaces the newest version by what `change` makes of it, as [`TypedStore::update`](super::TypedStore::update)
    /// does. A delete is as late as the version it deletes.
    ///
    /// # Errors
    /// When rows can't be read or written, or `change` failed for good.
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
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(Update::NullKey);
        };
        let mut old = None;
        let before = self.latest_and(cx, &key, self.send_old.get().then_some(&mut old))?;
        let before_ms = before.as_ref().map_or(record.timestamp_ms, |before| {
            before.timestamp_ms.max(record.timestamp_ms)
        });
        let Some(after) = change(cx, before)? else {
            return Ok(Update::Skipped);
        };
        let (value, from_ms) = match after {
            Some(after) => (Some(after.value), after.timestamp_ms),
            None => (None, before_ms),
        };
        self.put_change(cx, &key, value, old, from_ms)
    }

    fn put_change(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<V>,
        old: Option<V>,
        from_ms: i64,
    ) -> ProcessResult<Update<V>> {
        let put = self.put_encoded(cx, key, value.as_ref(), from_ms)?;
        let is_latest = match put {
            VersionPut::Expired => return Ok(Update::Skipped),
            VersionPut::Latest => true,
            VersionPut::Before(_) => false,
        };
        let change = Change {
            new: value,
            old,
            is_latest,
        };
        Ok(Update::Changed(change, from_ms))
    }

    fn put_encoded(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<&V>,
        from_ms: i64,
    ) -> ProcessResult<VersionPut> {
        let meter = &self.base.meter;
        let started = meter.start();
        let mut buffer = self.value_buffer.take();
        buffer.clear();
        let present = match value {
            Some(value) => self
                .value
                .serialize(&self.base.topic, value, &mut buffer)
                .map_err(|source| self.base.unwritable(cx, "value", source))?,
            None => false,
        };
        let bytes = present.then_some(buffer.as_slice());
        let (task, id) = (cx.task(), self.base.id);
        let put = cx
            .state()
            .version_put(id, key, from_ms, bytes)
            .map_err(|source| Error::state(task, source))?;
        if put == VersionPut::Expired {
            cx.counters.dropped_records += 1;
        } else if let Some(changelog) = &self.base.changelog {
            changelog.log(cx, key, bytes, from_ms, Headers::empty())?;
        }
        *self.value_buffer.borrow_mut() = buffer;
        meter.done(StoreOp::Put, started);
        Ok(put)
    }

    /// Lends the newest version to `read`: the value and when it began (ms since the Unix epoch), or `None` if there is
    /// none or the key is deleted.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn read<R>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        read: impl FnOnce(Option<(&V, i64)>) -> R,
    ) -> ProcessResult<R> {
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(read(None));
        };
        let meter = &self.base.meter;
        let started = meter.start();
        let row = self.latest(cx, &key)?;
        meter.done(StoreOp::Get, started);
        Ok(read(row.as_ref().map(|row| (&row.value, row.timestamp_ms))))
    }

    /// The newest version; `None` if there is none or the key is deleted. Java: `get(key)`.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn get(&self, cx: &mut TaskContext, key: &K) -> ProcessResult<Option<VersionedValue<V>>> {
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(None);
        };
        let row = self.latest(cx, &key)?;
        Ok(row.map(|row| VersionedValue {
            value: row.value,
            from_ms: row.timestamp_ms,
            to_ms: None,
        }))
    }

    /// The version that was valid at a time (ms since the Unix epoch); `None` if there was none, the key was deleted then,
    /// or the time is before the history of the store (the newest version is found all the same, if it had begun).
    /// Java: `get(key, asOfTimestamp)`.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn get_as_of(&self, cx: &mut TaskContext, key: &K, as_of_ms: i64) -> ProcessResult<Option<VersionedValue<V>>> {
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(None);
        };
        let meter = &self.base.meter;
        let started = meter.start();
        let (task, id) = (cx.task(), self.base.id);
        let row = cx
            .state()
            .version_as_of(id, &key, as_of_ms)
            .map_err(|source| Error::state(task, source))?;
        meter.done(StoreOp::Get, started);
        row.map(|row| self.decode(cx, &row)).transpose()
    }

    /// The versions that were valid at some moment between two times (ms since the Unix epoch), both included, by time;
    /// tombstones are left out. Java: `MultiVersionedKeyQuery`.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn versions(
        &self,
        cx: &mut TaskContext,
        key: &K,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> ProcessResult<Vec<VersionedValue<V>>> {
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(Vec::new());
        };
        let (task, id) = (cx.task(), self.base.id);
        let rows = cx
            .state()
            .versions(id, &key, from_ms, to_ms, direction)
            .map_err(|source| Error::state(task, source))?;
        rows.iter().map(|row| self.decode(cx, row)).collect()
    }

    fn latest(&self, cx: &mut TaskContext, key: &[u8]) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        self.latest_and(cx, key, None)
    }

    /// The newest version, and its value a second time in `twin` where one is wanted: values need not be clonable.
    fn latest_and(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        twin: Option<&mut Option<V>>,
    ) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        let (task, id, topic) = (cx.task(), self.base.id, &self.base.topic);
        let (mut row, mut second) = (None, None);
        cx.state()
            .version_get(id, key, &mut |version| {
                let read = |version: &Version<'_>| self.value.deserialize(topic, version.value);
                second = twin.is_some().then(|| version.as_ref().map(read)).flatten();
                row = version.map(|version| {
                    read(&version).map(|value| ValueAndTimestamp {
                        value,
                        timestamp_ms: version.from_ms,
                    })
                });
            })
            .map_err(|source| Error::state(task, source))?;
        let unread = |source: SerdeError| unreadable(task, &self.base.name, &source);
        if let Some(twin) = twin {
            *twin = second.transpose().map_err(unread)?;
        }
        row.transpose().map_err(unread)
    }

    fn decode(&self, cx: &TaskContext, row: &VersionRow) -> ProcessResult<VersionedValue<V>> {
        let value = self.value.deserialize(&self.base.topic, Some(&row.value));
        Ok(VersionedValue {
            value: value.map_err(|source| unreadable(cx.task(), &self.base.name, &source))?,
            from_ms: row.from_ms,
            to_ms: row.to_ms,
        })
    }
}

impl<K: 'static, V: 'static> ManagedStore for VersionedStore<K, V> {
    fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        let (task, id) = (cx.task(), self.base.id);
        cx.state()
            .expire_versions(id)
            .map_err(|source| Error::state(task, source))
    }

    fn is_dirty(&self) -> bool {
        false
    }

    fn evict(&self, _: &mut TaskContext) -> ProcessResult {
        Ok(())
    }

    fn cached_bytes(&self) -> usize {
        0
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
