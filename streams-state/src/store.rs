//! The store traits: synchronous, over bytes, object-safe. Conveniences are in the extension traits.

use std::ops::Bound;

use crate::error::StateError;
use crate::range::{Direction, RangeIter};
use crate::session::SessionIter;
use crate::window::WindowIter;

/// Ordered bytes by key.
///
/// Java counterpart: `KeyValueStore<Bytes, byte[]>`.
pub trait KeyValueStore {
    /// Lends the value of `key` to `read` (`None`: no such key), called exactly once unless an error is returned.
    ///
    /// # Errors
    /// The storage could not be read.
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError>;

    /// Sets the value of `key`; `None` deletes it.
    ///
    /// # Errors
    /// The storage could not be written.
    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError>;

    /// Rows between two bounds, as they are now: later writes do not disturb the iterator. An inverted range is empty.
    ///
    /// # Errors
    /// The storage could not be read.
    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError>;

    /// Deletes every key below `bound`.
    ///
    /// # Errors
    /// The storage could not be written.
    fn delete_below(&mut self, bound: &[u8]) -> Result<(), StateError>;
}

/// Conveniences for every [`KeyValueStore`].
pub trait KeyValueStoreExt: KeyValueStore {
    /// A copy of the value of `key`.
    ///
    /// # Errors
    /// The storage could not be read.
    fn get_vec(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let mut copy = None;
        self.get(key, &mut |value| copy = value.map(<[u8]>::to_vec))?;
        Ok(copy)
    }

    /// Every row.
    ///
    /// # Errors
    /// The storage could not be read.
    fn all(&mut self, direction: Direction) -> Result<RangeIter, StateError> {
        self.range(Bound::Unbounded, Bound::Unbounded, direction)
    }

    /// Every row whose key begins with `prefix`.
    ///
    /// # Errors
    /// The storage could not be read.
    fn prefix(&mut self, prefix: &[u8], direction: Direction) -> Result<RangeIter, StateError> {
        let range = crate::range::KeyRange::prefix(prefix);
        let upper = range.until.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.range(Bound::Included(&range.from), upper, direction)
    }

    /// Sets the value of `key` if it has none; returns the value it had.
    ///
    /// # Errors
    /// The storage could not be read or written.
    fn put_if_absent(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let old = self.get_vec(key)?;
        if old.is_none() {
            self.put(key, Some(value))?;
        }
        Ok(old)
    }

    /// Deletes `key`; returns the value it had.
    ///
    /// # Errors
    /// The storage could not be read or written.
    fn delete(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let old = self.get_vec(key)?;
        if old.is_some() {
            self.put(key, None)?;
        }
        Ok(old)
    }
}

impl<S: KeyValueStore + ?Sized> KeyValueStoreExt for S {}

/// Bytes by key and window start. Times are milliseconds of event time.
///
/// Java counterpart: `WindowStore<Bytes, byte[]>`. Unlike there, the store never hides or drops a row by itself: what is
/// dead is decided by the operators and told through [`WindowStore::expire`].
pub trait WindowStore {
    /// Sets the value of `key` in the window that starts at `start_ms`; `None` deletes it. A store that retains
    /// duplicates adds a row instead, and ignores deletions. Returns the sequence number of the row that was written
    /// (0 unless duplicates are retained), `None` if nothing was written.
    ///
    /// # Errors
    /// A negative start, or the storage could not be read or written.
    fn put(&mut self, key: &[u8], start_ms: i64, value: Option<&[u8]>) -> Result<Option<u32>, StateError>;

    /// Lends the value of `key` in the window that starts at `start_ms`. With retained duplicates this is the row with
    /// sequence number 0, which does not exist: read those with [`WindowStore::fetch_range`].
    ///
    /// # Errors
    /// The storage could not be read.
    fn fetch(&self, key: &[u8], start_ms: i64, read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError>;

    /// Rows of the keys between two bounds whose windows start between `from_ms` and `to_ms`, both included, ordered by
    /// time bucket, then key, start and sequence number; for one key this is the order of time.
    ///
    /// # Errors
    /// The storage could not be read.
    fn fetch_range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError>;

    /// Drops the buckets in which no window starts at or after `live_from_ms`; returns how many held rows.
    ///
    /// # Errors
    /// The storage could not be read or written.
    fn expire(&mut self, live_from_ms: i64) -> Result<u64, StateError>;
}

/// Conveniences for every [`WindowStore`].
pub trait WindowStoreExt: WindowStore {
    /// A copy of the value of `key` in the window that starts at `start_ms`.
    ///
    /// # Errors
    /// The storage could not be read.
    fn fetch_vec(&self, key: &[u8], start_ms: i64) -> Result<Option<Vec<u8>>, StateError> {
        let mut copy = None;
        self.fetch(key, start_ms, &mut |value| copy = value.map(<[u8]>::to_vec))?;
        Ok(copy)
    }

    /// Rows of one key by time.
    ///
    /// # Errors
    /// The storage could not be read.
    fn fetch_key(
        &mut self,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError> {
        self.fetch_range(Bound::Included(key), Bound::Included(key), from_ms, to_ms, direction)
    }

    /// Rows of all keys whose windows start between two times, both included.
    ///
    /// # Errors
    /// The storage could not be read.
    fn fetch_all(&mut self, from_ms: i64, to_ms: i64, direction: Direction) -> Result<WindowIter, StateError> {
        self.fetch_range(Bound::Unbounded, Bound::Unbounded, from_ms, to_ms, direction)
    }
}

impl<S: WindowStore + ?Sized> WindowStoreExt for S {}

/// Bytes by key and session: a stretch of event time, in milliseconds, both ends included.
///
/// Java counterpart: `SessionStore<Bytes, byte[]>`. As a [`WindowStore`], it never hides or drops a row by itself.
pub trait SessionStore {
    /// Sets the value of a session; `None` deletes it.
    ///
    /// # Errors
    /// A negative start, an end before the start, or the storage could not be written.
    fn put(&mut self, key: &[u8], start_ms: i64, end_ms: i64, value: Option<&[u8]>) -> Result<(), StateError>;

    /// Lends the value of a session to `read`, called exactly once unless an error is returned.
    ///
    /// # Errors
    /// The storage could not be read.
    fn fetch(
        &self,
        key: &[u8],
        start_ms: i64,
        end_ms: i64,
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError>;

    /// The sessions of a key that end at or after `from_end_ms` and start at or before `to_start_ms`, by their end.
    ///
    /// # Errors
    /// The storage could not be read.
    fn find(&mut self, key: &[u8], from_end_ms: i64, to_start_ms: i64) -> Result<SessionIter, StateError>;

    /// The sessions of all keys that end between two times, both included; ordered by time bucket, then key, end, start.
    ///
    /// # Errors
    /// The storage could not be read.
    fn ended(&mut self, from_end_ms: i64, to_end_ms: i64) -> Result<SessionIter, StateError>;
}

/// Lets a borrowed store be wrapped.
impl<S: KeyValueStore + ?Sized> KeyValueStore for &mut S {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        (**self).get(key, read)
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        (**self).put(key, value)
    }

    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        (**self).range(lower, upper, direction)
    }

    fn delete_below(&mut self, bound: &[u8]) -> Result<(), StateError> {
        (**self).delete_below(bound)
    }
}
