//! A typed store whose rows die: each after a time of its own, and a tombstone in the changelog says so. Not in Java.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use streams_state::{Direction, ExpiringRows};

use super::decode::{read_stored_value, unreadable};
use super::managed::{ManagedStore, StoreBuilder, ValueAndTimestamp};
use crate::error::{Error, ProcessResult};
use crate::fetch::FetchedRecord;
use crate::metrics::meters::{OpenIterator, StoreOp};
use crate::processor::TaskContext;
use crate::serde::SharedSerde;
use crate::{Headers, Record};

/// The header of a changelog record whose row does not die at the store's usual time: eight bytes, big-endian,
/// milliseconds since the Unix epoch.
pub const DIES_AT_HEADER: &str = "dies-at";

/// Rows that one commit removes at most; more wait for the next one, unseen.
const DEATHS_PER_COMMIT: usize = 10_000;

/// When a changelog record's row dies, if that is said.
pub(crate) fn dies_at(record: &FetchedRecord<'_>) -> Option<i64> {
    let mut headers = record.headers.clone();
    let (_, value) = headers.find(|(name, _)| *name == DIES_AT_HEADER)?;
    Some(i64::from_be_bytes(value?.try_into().ok()?))
}

/// A key-value store of rows that die. A dead row can't be seen, and the next commit removes it with a tombstone in the
/// changelog. Time is the task's stream time: without new records nothing dies.
pub struct TtlStore<K, V> {
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    base: StoreBuilder,
    ttl_ms: i64,
    buffer: RefCell<Vec<u8>>,
}

impl<K: 'static, V: 'static> TtlStore<K, V> {
    /// A store of the task whose rows live for `ttl_ms` of event time unless they say another; `base` must name a store
    /// of rows that die.
    pub fn new(base: StoreBuilder, key: SharedSerde<K>, value: SharedSerde<V>, ttl_ms: i64) -> Self {
        TtlStore {
            key,
            value,
            base,
            ttl_ms,
            buffer: RefCell::default(),
        }
    }

    /// The store's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.base.name
    }

    /// Sets a row that lives for the store's usual time after the record's event time; `None` deletes it. False = the key
    /// is null, and nothing was done.
    ///
    /// # Errors
    /// When the row can't be read or written.
    pub fn put<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        value: Option<&V>,
        record: Record<'_, KR, VR>,
    ) -> ProcessResult<bool> {
        let dies_at_ms = record.timestamp_ms.saturating_add(self.ttl_ms);
        self.put_until(cx, key, value, dies_at_ms, record)
    }

    /// As [`put`](Self::put), for a row that dies at `dies_at_ms` (ms since the Unix epoch; `i64::MAX` = never).
    ///
    /// # Errors
    /// When the row can't be read or written.
    pub fn put_until<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        value: Option<&V>,
        dies_at_ms: i64,
        record: Record<'_, KR, VR>,
    ) -> ProcessResult<bool> {
        let meter = &self.base.meter;
        let started = meter.start();
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(false);
        };
        let mut row = self.buffer.take();
        row.clear();
        row.extend_from_slice(&record.timestamp_ms.to_be_bytes());
        let present = match value {
            Some(value) => self
                .value
                .serialize(&self.base.topic, value, &mut row)
                .map_err(|source| self.base.unwritable(cx, "value", source))?,
            None => false,
        };
        self.write(cx, &key, present.then_some(row.as_slice()), dies_at_ms)?;
        let plain = present.then(|| row.get(8..).unwrap_or_default());
        self.log(cx, &key, plain, (record.timestamp_ms, dies_at_ms))?;
        *self.buffer.borrow_mut() = row;
        meter.done(StoreOp::Put, started);
        Ok(true)
    }

    fn write(&self, cx: &mut TaskContext, key: &[u8], row: Option<&[u8]>, dies_at_ms: i64) -> ProcessResult {
        let (task, id) = (cx.task(), self.base.id);
        let mut rows = cx.state().expiring(id).map_err(|source| Error::state(task, source))?;
        rows.put(key, row, dies_at_ms)
            .map_err(|source| Error::state(task, source))
    }

    /// The changelog has the plain value; when the row dies is said only where it does not follow from its time.
    fn log(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<&[u8]>,
        (timestamp_ms, dies_at_ms): (i64, i64),
    ) -> ProcessResult {
        let Some(changelog) = &self.base.changelog else {
            return Ok(());
        };
        let mut headers = Headers::default();
        if value.is_some() && dies_at_ms != timestamp_ms.saturating_add(self.ttl_ms) {
            headers.add(DIES_AT_HEADER, Some(&dies_at_ms.to_be_bytes()));
        }
        changelog.log(cx, key, value, timestamp_ms, &headers)
    }

    /// A living row with its event time; `None` if there is none, it is dead, or the key is null.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn get(&self, cx: &mut TaskContext, key: &K) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        let meter = &self.base.meter;
        let started = meter.start();
        let Some(key) = self.base.encode_key(cx, &self.key, key)? else {
            return Ok(None);
        };
        let (task, id, now_ms) = (cx.task(), self.base.id, cx.stream_time_ms());
        let mut row = None;
        let rows = cx.state().expiring(id).map_err(|source| Error::state(task, source))?;
        rows.get(&key, &mut |found| {
            let living = found.filter(|(_, dies_at_ms)| *dies_at_ms > now_ms);
            row = living.map(|(row, _)| decode(&self.value, &self.base.topic, row));
        })
        .map_err(|source| Error::state(task, source))?;
        meter.done(StoreOp::Get, started);
        row.transpose()
            .map_err(|source| unreadable(task, &self.base.name, &source))
    }

    /// The living rows between two keys, both included, `None` = open, ordered by key bytes, as they are now.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn range(
        &self,
        cx: &mut TaskContext,
        from: Option<&K>,
        to: Option<&K>,
        direction: Direction,
    ) -> ProcessResult<LivingRows<K, V>> {
        let (from, to) = (self.bound(cx, from)?, self.bound(cx, to)?);
        let (task, id) = (cx.task(), self.base.id);
        let mut rows = cx.state().expiring(id).map_err(|source| Error::state(task, source))?;
        let rows = rows
            .range(from.as_deref(), to.as_deref(), direction)
            .map_err(|source| Error::state(task, source))?;
        Ok(LivingRows {
            rows,
            now_ms: cx.stream_time_ms(),
            key: self.key.clone(),
            value: self.value.clone(),
            topic: self.base.topic.clone(),
            store: self.base.name.clone(),
            task,
            _open: OpenIterator::new(&self.base.meter),
        })
    }

    fn bound(&self, cx: &TaskContext, key: Option<&K>) -> ProcessResult<Option<Vec<u8>>> {
        key.map_or(Ok(None), |key| self.base.encode_key(cx, &self.key, key))
    }
}

impl<K: 'static, V: 'static> ManagedStore for TtlStore<K, V> {
    /// Removes what has died, with tombstones.
    fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        let (task, id, now_ms) = (cx.task(), self.base.id, cx.stream_time_ms());
        let mut rows = cx.state().expiring(id).map_err(|source| Error::state(task, source))?;
        let dead = rows.dead(now_ms).map_err(|source| Error::state(task, source))?;
        for key in dead.take(DEATHS_PER_COMMIT) {
            let key = key.map_err(|source| Error::state(task, source))?;
            self.write(cx, &key, None, 0)?;
            self.log(cx, &key, None, (now_ms, 0))?;
        }
        Ok(())
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

/// Living rows of a [`TtlStore`], read one by one; they are those of the moment in which the list was asked for.
pub struct LivingRows<K, V> {
    rows: ExpiringRows,
    now_ms: i64,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    topic: std::sync::Arc<str>,
    store: std::sync::Arc<str>,
    task: crate::TaskId,
    _open: OpenIterator,
}

impl<K: 'static, V: 'static> Iterator for LivingRows<K, V> {
    type Item = ProcessResult<(K, ValueAndTimestamp<V>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (key, row, dies_at_ms) = match self.rows.next()? {
                Ok(row) => row,
                Err(source) => return Some(Err(Error::state(self.task, source))),
            };
            if dies_at_ms <= self.now_ms {
                continue;
            }
            let key = self.key.deserialize(&self.topic, Some(&key));
            let row = key.and_then(|key| Ok((key, decode(&self.value, &self.topic, &row)?)));
            return Some(row.map_err(|source| unreadable(self.task, &self.store, &source)));
        }
    }
}

/// `time8 ++ value`, as in a timestamped store.
fn decode<V: 'static>(
    serde: &SharedSerde<V>,
    topic: &str,
    row: &[u8],
) -> Result<ValueAndTimestamp<V>, crate::SerdeError> {
    read_stored_value(&**serde, topic, true, -1, row)
}
