//! The store that both sides of a left or outer stream–stream join share: records that have found no partner yet.

use std::any::Any;
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

use streams_state::Direction;

use super::bytes::ByteRows;
use super::managed::{ManagedStore, StoreBuilder};
use crate::Headers;
use crate::codec::{
    JoinSide, ListEncoding, TimestampedSideKey, decode_list, decode_side_value, encode_list, encode_side_value,
};
use crate::error::ProcessResult;
use crate::processor::TaskContext;
use crate::serde::SharedSerde;

/// The times before which records of a side wait no longer, ms since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseTimes {
    /// Of the left side.
    pub left_ms: i64,
    /// Of the right side.
    pub right_ms: i64,
}

impl CloseTimes {
    fn of(self, side: JoinSide) -> i64 {
        match side {
            JoinSide::Left => self.left_ms,
            JoinSide::Right => self.right_ms,
        }
    }

    fn at_most(self, time_ms: i64) -> Self {
        CloseTimes {
            left_ms: self.left_ms.min(time_ms),
            right_ms: self.right_ms.min(time_ms),
        }
    }
}

/// Records of one key, side and time that found no partner.
pub struct Unmatched<K> {
    /// Which side they came from.
    pub side: JoinSide,
    /// Their event time, ms since the Unix epoch.
    pub timestamp_ms: i64,
    /// Their key.
    pub key: K,
    /// Their values' bytes, in the order in which they came.
    pub values: Vec<Vec<u8>>,
    stored_key: Box<[u8]>,
}

/// Records without a partner, ordered by time. Each row is the list of all values of a key, side and time, and is logged
/// as a whole. Java counterpart: `ListValueStore` of `OuterStreamJoinStoreFactory`.
pub struct UnmatchedStore<K> {
    rows: ByteRows,
    key: SharedSerde<K>,
    /// No record of a side waits that is older than this; unknown at first. Exact enough to ask for nothing in vain.
    oldest: Cell<CloseTimes>,
}

impl<K: 'static> UnmatchedStore<K> {
    /// A store of the task.
    pub fn new(base: StoreBuilder, key: SharedSerde<K>) -> Self {
        UnmatchedStore {
            rows: ByteRows::new(base),
            key,
            oldest: Cell::new(CloseTimes {
                left_ms: i64::MIN,
                right_ms: i64::MIN,
            }),
        }
    }

    /// The topic that serdes see.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.rows.base.topic
    }

    fn encoded(&self, cx: &TaskContext, side: JoinSide, key: &K, timestamp_ms: i64) -> ProcessResult<Option<Vec<u8>>> {
        let Some(key) = self.rows.encode(cx, "key", &*self.key, key)? else {
            return Ok(None);
        };
        let mut out = Vec::with_capacity(key.len() + 9);
        TimestampedSideKey {
            timestamp_ms,
            side,
            key: &key,
        }
        .encode(&mut out);
        Ok(Some(out))
    }

    /// Lets a record wait for its partner.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn add(&self, cx: &mut TaskContext, side: JoinSide, key: &K, value: &[u8], timestamp_ms: i64) -> ProcessResult {
        let Some(stored_key) = self.encoded(cx, side, key, timestamp_ms)? else {
            return Ok(());
        };
        let before = self.rows.get(cx, &stored_key)?;
        let mut elements = match &before {
            Some(list) => decode_list(ListEncoding::Variable, list).map_err(|e| self.rows.corrupted(cx, e))?,
            None => Vec::new(),
        };
        let mut element = Vec::with_capacity(value.len() + 1);
        encode_side_value(side, value, &mut element);
        elements.push(Some(&element));
        let mut list = Vec::new();
        encode_list(ListEncoding::Variable, elements, &mut list).map_err(|e| self.rows.corrupted(cx, e))?;
        self.rows.put(cx, &stored_key, Some(&list))?;
        let mut oldest = self.oldest.get();
        match side {
            JoinSide::Left => oldest.left_ms = oldest.left_ms.min(timestamp_ms),
            JoinSide::Right => oldest.right_ms = oldest.right_ms.min(timestamp_ms),
        }
        self.oldest.set(oldest);
        self.log(cx, &stored_key, Some(&list))
    }

    /// A partner was found for the records of a key, side and time: they wait no longer.
    ///
    /// # Errors
    /// When the row can't be read or written.
    pub fn remove(&self, cx: &mut TaskContext, side: JoinSide, key: &K, timestamp_ms: i64) -> ProcessResult {
        if timestamp_ms < self.oldest.get().of(side) {
            return Ok(());
        }
        match self.encoded(cx, side, key, timestamp_ms)? {
            Some(stored_key) if self.rows.get(cx, &stored_key)?.is_some() => self.delete(cx, &stored_key),
            _ => Ok(()),
        }
    }

    /// The records that are older than their side's close time, by time, side (right first) and key. Costs nothing when
    /// there are none. Each is to be [settled](Self::settle) when it was emitted.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn closed(&self, cx: &mut TaskContext, close: CloseTimes) -> ProcessResult<Vec<Unmatched<K>>> {
        let oldest = self.oldest.get();
        let sides = [JoinSide::Left, JoinSide::Right];
        let from = sides.iter().filter(|side| oldest.of(**side) < close.of(**side));
        let Some(from_ms) = from.map(|side| oldest.of(*side)).min() else {
            return Ok(Vec::new());
        };
        let to_ms = close.left_ms.max(close.right_ms);
        let lower = from_ms.max(0).to_be_bytes();
        let rows = self
            .rows
            .range(cx, Bound::Included(&lower), Bound::Unbounded, Direction::Forward)?;
        let mut closed = Vec::new();
        let mut next = CloseTimes {
            left_ms: i64::MAX,
            right_ms: i64::MAX,
        };
        for row in rows {
            let (stored_key, list) = self.rows.state(cx, row)?;
            let parts = TimestampedSideKey::decode(&stored_key).map_err(|e| self.rows.corrupted(cx, e))?;
            let (side, timestamp_ms) = (parts.side, parts.timestamp_ms);
            if timestamp_ms >= to_ms {
                // Nothing of either side that was not met yet is older.
                next = next.at_most(timestamp_ms);
                break;
            }
            if timestamp_ms >= close.of(side) {
                match side {
                    JoinSide::Left => next.left_ms = next.left_ms.min(timestamp_ms),
                    JoinSide::Right => next.right_ms = next.right_ms.min(timestamp_ms),
                }
                continue;
            }
            let key = self.rows.decode(cx, &*self.key, parts.key)?;
            let values = self.values(cx, &list)?;
            closed.push(Unmatched {
                side,
                timestamp_ms,
                key,
                values,
                stored_key,
            });
        }
        // What lies before the first row that was read stays as it was.
        if oldest.left_ms < from_ms {
            next.left_ms = oldest.left_ms;
        }
        if oldest.right_ms < from_ms {
            next.right_ms = oldest.right_ms;
        }
        self.oldest.set(next);
        Ok(closed)
    }

    fn values(&self, cx: &TaskContext, list: &[u8]) -> ProcessResult<Vec<Vec<u8>>> {
        let elements = decode_list(ListEncoding::Variable, list).map_err(|e| self.rows.corrupted(cx, e))?;
        let mut values = Vec::with_capacity(elements.len());
        for element in elements.into_iter().flatten() {
            let (_, value) = decode_side_value(element).map_err(|e| self.rows.corrupted(cx, e))?;
            values.push(value.to_vec());
        }
        Ok(values)
    }

    /// Deletes what was emitted.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn settle(&self, cx: &mut TaskContext, emitted: &Unmatched<K>) -> ProcessResult {
        self.delete(cx, &emitted.stored_key)
    }

    fn delete(&self, cx: &mut TaskContext, stored_key: &[u8]) -> ProcessResult {
        self.rows.put(cx, stored_key, None)?;
        self.log(cx, stored_key, None)
    }

    fn log(&self, cx: &mut TaskContext, stored_key: &[u8], list: Option<&[u8]>) -> ProcessResult {
        let timestamp_ms = cx.record_context().timestamp_ms;
        self.rows.log(cx, stored_key, list, timestamp_ms, Headers::empty())
    }
}

impl<K: 'static> ManagedStore for UnmatchedStore<K> {
    fn flush(&self, _cx: &mut TaskContext) -> ProcessResult {
        Ok(())
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
