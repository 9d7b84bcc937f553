//! The buffer of a suppressed table: the last update of each key, by the time until which it waits.
//!
//! Java counterpart: `InMemoryTimeOrderedKeyValueChangeBuffer`, whose changelog this one's is; the rows lie in the task's
//! state, so a restart needs no replay.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::rc::Rc;

use streams_state::Direction;

use super::bytes::ByteRows;
use super::managed::{ManagedStore, StoreBuilder};
use crate::codec::{BufferedValue, RecordContext as StoredContext, SUPPRESS_VERSION_HEADER, SUPPRESS_VERSION_VALUE};
use crate::error::ProcessResult;
use crate::processor::{RecordContext, TaskContext};
use crate::serde::SharedSerde;
use crate::{Change, Headers, Record};

type Bytes = Box<[u8]>;

/// What waits, without its values.
#[derive(Default)]
struct Index {
    /// The bytes charged for each entry, by time and key.
    by_time: BTreeMap<(i64, Bytes), usize>,
    by_key: HashMap<Bytes, i64>,
    bytes: usize,
}

impl Index {
    /// Notes an entry, which keeps its place if it waits already.
    fn set(&mut self, time_ms: i64, key: &[u8], size: usize) {
        let time_ms = *self.by_key.entry(key.into()).or_insert(time_ms);
        let before = self.by_time.insert((time_ms, key.into()), size);
        self.bytes = self.bytes + size - before.unwrap_or(0);
    }

    fn take_first(&mut self) -> Option<Bytes> {
        let ((_, key), size) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        self.bytes -= size;
        Some(key)
    }
}

/// An update that waits no longer.
pub struct Released<K, V> {
    /// The key.
    pub key: K,
    /// The update: its new value, and as old one the value that was released last.
    pub change: Change<V>,
    /// Where the update came from, with its event time and headers.
    pub context: RecordContext,
}

/// The buffer, in one task.
pub struct SuppressBuffer<K, V> {
    rows: ByteRows,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    index: RefCell<Index>,
    /// Keys that are to be logged at the next flush.
    dirty: RefCell<BTreeSet<Bytes>>,
}

impl<K: 'static, V: 'static> SuppressBuffer<K, V> {
    /// A buffer of the task.
    pub fn new(base: StoreBuilder, key: SharedSerde<K>, value: SharedSerde<V>) -> Self {
        SuppressBuffer {
            rows: ByteRows::new(base),
            key,
            value,
            index: RefCell::default(),
            dirty: RefCell::default(),
        }
    }

    /// Learns what waits in the task's state; to be called once, before the first record.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn load(&self, cx: &mut TaskContext) -> ProcessResult {
        let rows = self
            .rows
            .range(cx, Bound::Unbounded, Bound::Unbounded, Direction::Forward)?;
        for row in rows {
            let (key, bytes) = self.rows.state(cx, row)?;
            let value = self.read(cx, &bytes)?;
            self.index
                .borrow_mut()
                .set(value.time_ms, &key, size_of_entry(&key, &value));
        }
        Ok(())
    }

    /// How many keys wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.borrow().by_key.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that wait, counted as Java counts them: keys, values, topic and headers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.index.borrow().bytes
    }

    /// The time until which the first entry waits, ms since the Unix epoch.
    #[must_use]
    pub fn first_time_ms(&self) -> Option<i64> {
        self.index
            .borrow()
            .by_time
            .first_key_value()
            .map(|((time, _), _)| *time)
    }

    /// Lets an update wait until `time_ms`. A key that waits already keeps its time and the value that was released last;
    /// its update is replaced.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn put(&self, cx: &mut TaskContext, time_ms: i64, record: Record<'_, K, Change<V>>) -> ProcessResult {
        let Some(key) = self.rows.encode(cx, "key", &*self.key, record.key)? else {
            return Ok(());
        };
        let encode = |cx: &TaskContext, value: &Option<V>| match value {
            Some(value) => self.rows.encode(cx, "value", &*self.value, value),
            None => Ok(None),
        };
        let (old, new) = (encode(cx, &record.value.old)?, encode(cx, &record.value.new)?);
        let waiting = self.get(cx, &key)?;
        let (prior, time_ms) = match waiting {
            Some(waiting) => (waiting.prior, waiting.time_ms),
            None => (old.clone(), time_ms),
        };
        let from = cx.record_context();
        let context = StoredContext {
            timestamp_ms: record.timestamp_ms,
            offset: from.offset,
            topic: from.topic.to_string(),
            partition: from.partition,
            headers: record.headers.clone(),
        };
        let value = BufferedValue {
            context,
            prior,
            old,
            new,
            time_ms,
        };
        let mut bytes = Vec::new();
        value.encode(&mut bytes).map_err(|e| self.rows.corrupted(cx, e))?;
        self.rows.put(cx, &key, Some(&bytes))?;
        self.index.borrow_mut().set(time_ms, &key, size_of_entry(&key, &value));
        self.measure();
        self.dirty.borrow_mut().insert(key.into());
        Ok(())
    }

    /// Releases the first entry.
    ///
    /// # Errors
    /// When it can't be read or deleted.
    pub fn release_first(&self, cx: &mut TaskContext) -> ProcessResult<Option<Released<K, V>>> {
        let Some(key) = self.index.borrow_mut().take_first() else {
            return Ok(None);
        };
        self.measure();
        let Some(waiting) = self.get(cx, &key)? else {
            return Err(self.rows.corrupted(cx, "an entry of the buffer has no row"));
        };
        self.rows.put(cx, &key, None)?;
        let typed_key = self.rows.decode(cx, &*self.key, &key)?;
        self.dirty.borrow_mut().insert(key);
        let decode = |value: Option<Vec<u8>>| {
            value
                .map(|value| self.rows.decode(cx, &*self.value, &value))
                .transpose()
        };
        let change = Change::new(decode(waiting.new)?, decode(waiting.prior)?);
        let StoredContext {
            timestamp_ms,
            offset,
            topic,
            partition,
            headers,
        } = waiting.context;
        Ok(Some(Released {
            key: typed_key,
            change,
            context: RecordContext::of_kept(topic.as_str().into(), partition, offset, timestamp_ms, headers),
        }))
    }

    fn measure(&self) {
        self.rows.base.meter.buffered(self.len(), self.bytes());
    }

    /// The value of a waiting key that was released last; `None`: the key does not wait.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn prior(&self, cx: &TaskContext, key: &K) -> ProcessResult<Option<Option<V>>> {
        let Some(key) = self.rows.encode(cx, "key", &*self.key, key)? else {
            return Ok(None);
        };
        if !self.index.borrow().by_key.contains_key(key.as_slice()) {
            return Ok(None);
        }
        let waiting = self.get(cx, &key)?;
        let prior = waiting.and_then(|waiting| waiting.prior);
        let prior = prior.map(|prior| self.rows.decode(cx, &*self.value, &prior));
        Ok(Some(prior.transpose()?))
    }

    fn get(&self, cx: &TaskContext, key: &[u8]) -> ProcessResult<Option<BufferedValue>> {
        let bytes = self.rows.get(cx, key)?;
        bytes.map(|bytes| self.read(cx, &bytes)).transpose()
    }

    fn read(&self, cx: &TaskContext, bytes: &[u8]) -> ProcessResult<BufferedValue> {
        BufferedValue::decode_grace(bytes).map_err(|e| self.rows.corrupted(cx, e))
    }
}

/// What Java charges for an entry (`computeRecordSize`, `residentMemorySizeEstimate`).
fn size_of_entry(key: &[u8], value: &BufferedValue) -> usize {
    const NUMBERS: usize = 8 + 8 + 8 + 4;
    let len = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let old = if value.old == value.prior { 0 } else { len(&value.old) };
    let header = |header: &crate::Header| header.key.chars().count() + header.value.as_deref().map_or(0, <[u8]>::len);
    let headers: usize = value.context.headers.iter().map(header).sum();
    NUMBERS + key.len() + len(&value.prior) + old + len(&value.new) + value.context.topic.chars().count() + headers
}

impl<K: 'static, V: 'static> ManagedStore for SuppressBuffer<K, V> {
    fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        let dirty = std::mem::take(&mut *self.dirty.borrow_mut());
        let version: Headers = [(SUPPRESS_VERSION_HEADER, Some(&SUPPRESS_VERSION_VALUE[..]))]
            .into_iter()
            .collect();
        // Java gives these records no time, so they get the producer's.
        let now_ms = cx.now_ms();
        for key in dirty {
            match self.rows.get(cx, &key)? {
                Some(row) => self.rows.log(cx, &key, Some(&row), now_ms, &version)?,
                None => self.rows.log(cx, &key, None, now_ms, Headers::empty())?,
            }
        }
        Ok(())
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.borrow().is_empty()
    }

    fn evict(&self, _cx: &mut TaskContext) -> ProcessResult {
        Ok(())
    }

    fn cached_bytes(&self) -> usize {
        0
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
