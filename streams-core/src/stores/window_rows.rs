//! Rows of a window store by time: of one key, and of all keys.

use std::ops::Bound;

use streams_state::{Direction, WindowIter};

use super::layout::WindowLayout;
use super::managed::ValueAndTimestamp;
use super::typed::TypedStore;
use crate::Windowed;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::{OpenIterator, StoreOp};
use crate::processor::TaskContext;

/// A row as it is stored, still to be decoded, possibly more than once.
#[derive(Clone, Debug)]
pub struct StoredWindow {
    /// The window's start, ms since the Unix epoch.
    pub start_ms: i64,
    /// The event time of the row's last update, ms since the Unix epoch.
    pub timestamp_ms: i64,
    bytes: Box<[u8]>,
}

impl<K: 'static, V: 'static> TypedStore<WindowLayout<K>, V> {
    /// The rows of a key whose windows start between two times (ms since the Unix epoch), both included. A null key has
    /// none. Java: `fetch` and `backwardFetch`.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn fetch_key(
        &self,
        cx: &mut TaskContext,
        key: &K,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> ProcessResult<Vec<StoredWindow>> {
        let started = self.base.meter.start();
        self.serialize_dirty(cx)?;
        let encoded = self.encode_with(cx, |topic, out| self.layout.key_serde().serialize(topic, key, out))?;
        let Some(bytes) = encoded else { return Ok(Vec::new()) };
        let task = cx.task();
        let rows = cx
            .state()
            .window_fetch_key(self.base.id, &bytes, from_ms.max(0), to_ms, direction)
            .map_err(|source| Error::state(task, source));
        *self.key_buffer.borrow_mut() = bytes;
        let mut rows = rows?;
        let mut found = Vec::new();
        while let Some((key, value)) = rows.next_row().map_err(|source| Error::state(task, source))? {
            let time = value.first_chunk::<8>().map_or(-1, |time| i64::from_be_bytes(*time));
            found.push(StoredWindow {
                start_ms: key.start_ms,
                timestamp_ms: time,
                bytes: value.into(),
            });
        }
        self.base.meter.done(StoreOp::Fetch, started);
        Ok(found)
    }

    /// The value of a row.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn decode(&self, cx: &TaskContext, row: &StoredWindow) -> ProcessResult<ValueAndTimestamp<V>> {
        self.decode_value(cx, &row.bytes)
    }

    /// The rows of all keys whose windows start between two times (ms since the Unix epoch), both included, as they are
    /// now; ordered by time bucket, then key bytes and start.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn fetch_all(&self, cx: &mut TaskContext, from_ms: i64, to_ms: i64) -> ProcessResult<WindowRows> {
        let started = self.base.meter.start();
        self.serialize_dirty(cx)?;
        let task = cx.task();
        let rows = cx
            .state()
            .window_fetch_range(
                self.base.id,
                Bound::Unbounded,
                Bound::Unbounded,
                from_ms.max(0),
                to_ms,
                Direction::Forward,
            )
            .map_err(|source| Error::state(task, source))?;
        self.base.meter.done(StoreOp::Range, started);
        Ok(WindowRows {
            rows,
            _open: OpenIterator::new(&self.base.meter),
        })
    }

    /// Reads the next of those rows.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn next_row(
        &self,
        cx: &TaskContext,
        rows: &mut WindowRows,
    ) -> ProcessResult<Option<(Windowed<K>, ValueAndTimestamp<V>)>> {
        let row = rows.rows.next_row().map_err(|source| Error::state(cx.task(), source))?;
        let Some((parts, value)) = row else { return Ok(None) };
        let key = self.layout.key_serde().deserialize(&self.base.topic, Some(parts.key));
        let key = key.map_err(|source| self.unreadable(cx, &source))?;
        let window = self.layout.window(parts.start_ms);
        Ok(Some((Windowed::new(key, window), self.decode_value(cx, value)?)))
    }
}

/// Rows that are read one by one, see [`TypedStore::fetch_all`].
pub struct WindowRows {
    rows: WindowIter,
    _open: OpenIterator,
}
