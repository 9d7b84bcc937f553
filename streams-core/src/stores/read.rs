//! Reading a typed store: by key through the cache, by range over the task's bytes.

use std::ops::Bound;

use streams_state::{Direction, RangeIter};

use super::cache::Held;
use super::decode::Decoder;
use super::layout::{KeyValueLayout, Layout};
use super::managed::ValueAndTimestamp;
use super::typed::TypedStore;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::{OpenIterator, StoreOp};
use crate::processor::TaskContext;
use crate::serde::SharedSerde;

impl<L: Layout, V: 'static> TypedStore<L, V> {
    /// Lends a row to `read`: the value and its event time (ms since the Unix epoch), or `None`. A null key has no row.
    /// `read` must not use this store.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn read<R>(
        &self,
        cx: &mut TaskContext,
        key: &L::Key,
        read: impl FnOnce(Option<(&V, i64)>) -> R,
    ) -> ProcessResult<R> {
        let Some(key) = self.encode(cx, key)? else {
            return Ok(read(None));
        };
        let meter = &self.base.meter;
        let started = meter.start();
        let result = match self.options.caching {
            true => self.load(cx, &key).map(|at| {
                let cache = self.cache.borrow();
                match cache.slot(at).map(|slot| &slot.held) {
                    Some(Held::Value(value, time)) => read(Some((value, *time))),
                    _ => read(None),
                }
            }),
            false => self
                .read_stored(cx, &key, |this, cx, bytes| this.decode_value(cx, bytes))
                .map(|row| read(row.as_ref().map(|row| (&row.value, row.timestamp_ms)))),
        };
        meter.done(meter.read_op(), started);
        *self.key_buffer.borrow_mut() = key;
        result
    }

    /// A copy of a row; `None` if there is none.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn get(&self, cx: &mut TaskContext, key: &L::Key) -> ProcessResult<Option<ValueAndTimestamp<V>>>
    where
        V: Clone,
    {
        self.read(cx, key, |row| {
            row.map(|(value, timestamp_ms)| ValueAndTimestamp {
                value: value.clone(),
                timestamp_ms,
            })
        })
    }

    /// The slot of a key in the cache, read from the task's bytes if it was not there. At most one RocksDB read.
    pub(super) fn load(&self, cx: &TaskContext, key: &[u8]) -> ProcessResult<u32> {
        let found = self.cache.borrow_mut().find(key);
        let meter = &self.base.meter;
        meter.lookups.set(meter.lookups.get() + 1);
        if let Some(at) = found {
            let out = self
                .cache
                .borrow()
                .slot(at)
                .is_some_and(|slot| matches!(slot.held, Held::Out));
            if !out {
                meter.hits.set(meter.hits.get() + 1);
                return Ok(at);
            }
        }
        let mut len = 0;
        let row = self.read_stored(cx, key, |this, cx, bytes| {
            len = bytes.len();
            this.decode_value(cx, bytes)
        })?;
        let held = row.map_or(Held::Absent, |row| Held::Value(row.value, row.timestamp_ms));
        let mut cache = self.cache.borrow_mut();
        let before = cache.charged();
        let at = match found {
            Some(at) => {
                if let Some(slot) = cache.slot_mut(at) {
                    slot.held = held;
                }
                at
            }
            None => cache.insert(key, held, len),
        };
        self.base.budget.charge(before, cache.charged());
        Ok(at)
    }

    /// Decodes the stored bytes of a key, past the cache.
    pub(super) fn read_stored<R>(
        &self,
        cx: &TaskContext,
        key: &[u8],
        mut decode: impl FnMut(&Self, &TaskContext, &[u8]) -> ProcessResult<R>,
    ) -> ProcessResult<Option<R>> {
        let mut result = None;
        let mut read = |bytes: Option<&[u8]>| result = bytes.map(|bytes| decode(self, cx, bytes));
        self.layout
            .read(&cx.state, self.base.id, key, &mut read)
            .map_err(|source| Error::state(cx.task(), source))?;
        result.transpose()
    }
}

impl<K: 'static, V: 'static> TypedStore<KeyValueLayout<K>, V> {
    /// The rows between two keys, both included, `None` = open, ordered by key bytes, as they are now: later writes do
    /// not disturb the list. Java: `range` and `reverseRange`.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn range(
        &self,
        cx: &mut TaskContext,
        from: Option<&K>,
        to: Option<&K>,
        direction: Direction,
    ) -> ProcessResult<Rows<K, V>> {
        let meter = &self.base.meter;
        let op = match (from, to) {
            (None, None) => StoreOp::All,
            _ => StoreOp::Range,
        };
        let started = meter.start();
        self.serialize_dirty(cx)?;
        let from = self.bound(cx, from)?;
        let to = self.bound(cx, to)?;
        let lower = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let upper = to.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let task = cx.task();
        let rows = cx
            .state
            .range(self.base.id, lower, upper, direction)
            .map_err(|source| Error::state(task, source))?;
        meter.done(op, started);
        Ok(Rows {
            _open: OpenIterator::new(meter),
            rows,
            decoder: self.decoder(cx),
            key: std::sync::Arc::clone(self.layout.key_serde()),
        })
    }

    /// The rows whose serialized key begins with `prefix`, ordered by key bytes, as they are now: later writes do not
    /// disturb the list. Java: `prefixScan`.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn prefix_scan(&self, cx: &mut TaskContext, prefix: &[u8]) -> ProcessResult<Rows<K, V>> {
        let meter = &self.base.meter;
        let started = meter.start();
        self.serialize_dirty(cx)?;
        let task = cx.task();
        let rows = cx
            .state
            .prefix(self.base.id, prefix, Direction::Forward)
            .map_err(|source| Error::state(task, source))?;
        meter.done(StoreOp::PrefixScan, started);
        Ok(Rows {
            _open: OpenIterator::new(meter),
            rows,
            decoder: self.decoder(cx),
            key: std::sync::Arc::clone(self.layout.key_serde()),
        })
    }

    fn bound(&self, cx: &TaskContext, key: Option<&K>) -> ProcessResult<Option<Vec<u8>>> {
        let Some(key) = key else { return Ok(None) };
        let mut bytes = Vec::new();
        self.layout
            .encode(&self.base.topic, key, &mut bytes)
            .map_err(|source| self.base.unwritable(cx, "key", source))?;
        Ok(Some(bytes))
    }
}

/// Rows of a key-value store, read one by one; they are those of the moment in which the list was asked for.
pub struct Rows<K, V> {
    rows: RangeIter,
    _open: OpenIterator,
    decoder: Decoder<V>,
    key: SharedSerde<K>,
}

impl<K: 'static, V: 'static> Iterator for Rows<K, V> {
    type Item = ProcessResult<(K, ValueAndTimestamp<V>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(
            row.map_err(|source| Error::state(self.decoder.task, source))
                .and_then(|(key, value)| {
                    let key = self.key.deserialize(&self.decoder.topic, Some(&key));
                    let key = key.map_err(|source| self.decoder.unreadable(&source))?;
                    Ok((key, self.decoder.decode(&value)?))
                }),
        )
    }
}
