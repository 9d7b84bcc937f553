//! The window store of one side of a stream–stream join: every record by key and time, records of one time apart by a
//! sequence number that goes on from the largest stored (design rule 2.10).

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

use streams_state::{Direction, StoreKind, WindowIter};

use super::bytes::ByteRows;
use super::managed::{ManagedStore, StoreBuilder};
use crate::Record;
use crate::codec::WindowKey;
use crate::error::ProcessResult;
use crate::metrics::meters::{OpenIterator, StoreOp};
use crate::processor::{OperatorTime, TaskContext};
use crate::serde::SharedSerde;

/// How long a join window store keeps rows, and which late ones it still takes.
#[derive(Clone, Copy, Debug)]
pub struct JoinWindowOptions {
    /// How long a row is seen after its time, ms of the store's own stream time, both ends included.
    pub retention_ms: i64,
    /// A late row is dropped as soon as nobody can see it (Java's in-memory stores), not when its time bucket is over
    /// (Java's RocksDB stores).
    pub exact: bool,
}

/// The records of one side of a join, as its task keeps them. Written through: never cached.
///
/// The store has a clock of its own, the highest time put into it: a row is seen until the clock is more than the
/// retention ahead of it. (Java hides it one millisecond earlier, when a partner may still come.) Java counterpart: the
/// window store of `StreamJoinedStoreFactory`, retaining duplicates.
pub struct JoinWindowStore<K, V> {
    rows: ByteRows,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    options: JoinWindowOptions,
    clock: Cell<Option<OperatorTime>>,
    bucket_ms: Cell<i64>,
}

impl<K: 'static, V: 'static> JoinWindowStore<K, V> {
    /// A store of the task.
    pub fn new(base: StoreBuilder, key: SharedSerde<K>, value: SharedSerde<V>, options: JoinWindowOptions) -> Self {
        JoinWindowStore {
            rows: ByteRows::new(base),
            key,
            value,
            options,
            clock: Cell::new(None),
            bucket_ms: Cell::new(1),
        }
    }

    /// Gives the store its clock, which travels under `key` in the offset-commit metadata. Every node of the store calls
    /// this before its first record.
    pub fn start(&self, cx: &mut TaskContext, key: &str) {
        self.clock.set(Some(cx.operator_time(key)));
        let width = cx.state_ref().specs().find_map(|(id, spec)| match spec.kind {
            StoreKind::Window {
                segment_interval_ms, ..
            } if id == self.rows.base.id => Some(segment_interval_ms),
            _ => None,
        });
        self.bucket_ms.set(width.unwrap_or(1).max(1));
    }

    /// The store's stream time: the highest time put into it, ms since the Unix epoch; -1 at first.
    #[must_use]
    pub fn observed_ms(&self, cx: &TaskContext) -> i64 {
        self.clock.get().map_or(-1, |clock| cx.observed(clock))
    }

    /// Whether a row of this time would be seen now.
    #[must_use]
    pub fn sees(&self, cx: &TaskContext, timestamp_ms: i64) -> bool {
        timestamp_ms >= self.seen_from_ms(cx)
    }

    fn seen_from_ms(&self, cx: &TaskContext) -> i64 {
        self.observed_ms(cx).saturating_sub(self.options.retention_ms)
    }

    /// Adds a record. A null key or value is not stored; a row that is too late for the store is dropped and counted.
    ///
    /// # Errors
    /// When the record can't be written.
    pub fn put(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let Some(key) = self.rows.encode(cx, "key", &*self.key, record.key)? else {
            return Ok(());
        };
        let Some(value) = self.rows.encode(cx, "value", &*self.value, record.value)? else {
            return Ok(());
        };
        if let Some(clock) = self.clock.get() {
            cx.observe(clock, record.timestamp_ms);
        }
        if self.is_too_late(cx, record.timestamp_ms) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let started = self.rows.base.meter.start();
        let written = cx
            .state()
            .window_put(self.rows.base.id, &key, record.timestamp_ms, Some(&value));
        self.rows.base.meter.done(StoreOp::Put, started);
        let Some(sequence) = self.rows.state(cx, written)? else {
            return Ok(());
        };
        let row = WindowKey {
            key: &key,
            start_ms: record.timestamp_ms,
            sequence,
        };
        self.rows.log(
            cx,
            &row.to_changelog_key(),
            Some(&value),
            record.timestamp_ms,
            record.headers,
        )
    }

    fn is_too_late(&self, cx: &TaskContext, timestamp_ms: i64) -> bool {
        let seen_from = self.seen_from_ms(cx);
        let width = self.bucket_ms.get();
        match self.options.exact {
            true => timestamp_ms < seen_from,
            false => timestamp_ms / width < seen_from / width,
        }
    }

    /// The rows of a key with times between two, both included, by time and then in the order in which they came, as they
    /// are now: later writes do not disturb them. A null key has none.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn fetch(&self, cx: &mut TaskContext, key: &K, from_ms: i64, to_ms: i64) -> ProcessResult<JoinRows<'_, V>> {
        let mut rows = JoinRows {
            rows: None,
            store: &self.rows,
            value: &self.value,
            _open: OpenIterator::new(&self.rows.base.meter),
        };
        let from_ms = from_ms.max(self.seen_from_ms(cx)).max(0);
        let Some(key) = self.rows.encode(cx, "key", &*self.key, key)? else {
            return Ok(rows);
        };
        if from_ms > to_ms {
            return Ok(rows);
        }
        let started = self.rows.base.meter.start();
        let found = cx
            .state()
            .window_fetch_key(self.rows.base.id, &key, from_ms, to_ms, Direction::Forward);
        self.rows.base.meter.done(StoreOp::Fetch, started);
        rows.rows = Some(self.rows.state(cx, found)?);
        Ok(rows)
    }
}

impl<K: 'static, V: 'static> ManagedStore for JoinWindowStore<K, V> {
    fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        let live_from_ms = self.seen_from_ms(cx);
        if live_from_ms <= 0 {
            return Ok(());
        }
        let expired = cx.state().expire_windows(self.rows.base.id, live_from_ms);
        self.rows.state(cx, expired).map(|_| ())
    }

    fn is_dirty(&self) -> bool {
        false
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

/// Rows of one key, read one by one.
pub struct JoinRows<'s, V> {
    rows: Option<WindowIter>,
    store: &'s ByteRows,
    value: &'s SharedSerde<V>,
    _open: OpenIterator,
}

impl<V: 'static> JoinRows<'_, V> {
    /// The next row: its time (ms since the Unix epoch) and value.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn next(&mut self, cx: &TaskContext) -> ProcessResult<Option<(i64, V)>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let row = rows.next_row();
        match self.store.state(cx, row)? {
            Some((key, value)) => Ok(Some((key.start_ms, self.store.decode(cx, &**self.value, value)?))),
            None => Ok(None),
        }
    }
}
