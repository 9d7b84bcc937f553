//! Windows over any ordered byte store: rows in time buckets, read bucket by bucket.

mod iter;

use std::ops::Bound;

use crate::codec::window_key::{MAX_SEQUENCE, WindowKey, bucket_of};
use crate::error::StateError;
use crate::range::Direction;
use crate::store::{KeyValueStore, WindowStore};

pub(crate) use iter::WindowSlice;
pub use iter::{WindowIter, WindowRow};

/// How a window store lays out its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLayout {
    /// Width of a bucket, milliseconds, at least 1.
    pub segment_interval_ms: i64,
    /// Rows of equal key and start are kept apart by a sequence number.
    pub retain_duplicates: bool,
}

impl WindowLayout {
    /// The local key of a row.
    #[must_use]
    pub fn local_key(&self, row: &WindowKey<'_>) -> Vec<u8> {
        row.to_local_key(bucket_of(row.start_ms, self.segment_interval_ms))
    }

    /// The local key of the only row of a key and start, where duplicates are not retained.
    pub(crate) fn row_key(&self, key: &[u8], start_ms: i64) -> Vec<u8> {
        self.local_key(&WindowKey {
            key,
            start_ms,
            sequence: 0,
        })
    }

    /// The first bucket that is kept when windows from `live_from_ms` on are live.
    pub(crate) fn first_live_bucket(&self, live_from_ms: i64) -> u64 {
        bucket_of(live_from_ms, self.segment_interval_ms)
    }
}

/// A [`WindowStore`] over a [`KeyValueStore`].
#[derive(Debug)]
pub struct Windowed<S> {
    rows: S,
    layout: WindowLayout,
}

impl<S: KeyValueStore> Windowed<S> {
    /// Windows over `rows`, which must hold nothing but rows of this layout.
    pub fn new(rows: S, layout: WindowLayout) -> Self {
        Self { rows, layout }
    }

    /// The sequence number for a new row: one more than the largest stored (rule 2.10; Java's counter starts again with
    /// the process and then overwrites rows).
    fn next_sequence(&mut self, key: &[u8], start_ms: i64) -> Result<u32, StateError> {
        let first = self.layout.local_key(&WindowKey {
            key,
            start_ms,
            sequence: 0,
        });
        let last = self.layout.local_key(&WindowKey {
            key,
            start_ms,
            sequence: MAX_SEQUENCE,
        });
        let mut rows = self
            .rows
            .range(Bound::Included(&first), Bound::Included(&last), Direction::Reverse)?;
        while let Some((local_key, _)) = rows.next_row()? {
            // A longer key may lie between the two: its bytes are no row of this key.
            match WindowKey::from_local_key(local_key) {
                Some((_, row)) if row.key == key && row.start_ms == start_ms => return Ok(next_after(row.sequence)),
                _ => {}
            }
        }
        Ok(1)
    }

    /// As [`WindowStore::expire`], for one who knows that no row lies in a bucket below `first`: a database steps over
    /// rows that were deleted before one by one, and there may be millions.
    pub(crate) fn expire_from(&mut self, first: u64, live_from_ms: i64) -> Result<u64, StateError> {
        let (first, bound) = (
            first.to_be_bytes(),
            self.layout.first_live_bucket(live_from_ms).to_be_bytes(),
        );
        let mut rows = self
            .rows
            .range(Bound::Included(&first), Bound::Excluded(&bound), Direction::Forward)?;
        let mut buckets = 0;
        while let Some(bucket) = rows.peek()?.and_then(|(key, _)| key.first_chunk::<8>()) {
            buckets += 1;
            let next = u64::from_be_bytes(*bucket) + 1;
            rows.seek(&next.to_be_bytes())?;
        }
        drop(rows);
        if buckets > 0 {
            self.rows.delete_below(&bound)?;
        }
        Ok(buckets)
    }
}

fn next_after(sequence: u32) -> u32 {
    sequence.wrapping_add(1) & MAX_SEQUENCE
}

impl<S: KeyValueStore> WindowStore for Windowed<S> {
    fn put(&mut self, key: &[u8], start_ms: i64, value: Option<&[u8]>) -> Result<Option<u32>, StateError> {
        if start_ms < 0 {
            let reason = format!("a window cannot start at {start_ms} ms: event times below 0 are not supported");
            return Err(StateError::InvalidWindowKey {
                store: String::new(),
                reason,
            });
        }
        let sequence = match (self.layout.retain_duplicates, value) {
            (true, None) => return Ok(None),
            (true, Some(_)) => self.next_sequence(key, start_ms)?,
            (false, _) => 0,
        };
        self.rows.put(
            &self.layout.local_key(&WindowKey {
                key,
                start_ms,
                sequence,
            }),
            value,
        )?;
        Ok(Some(sequence))
    }

    fn fetch(&self, key: &[u8], start_ms: i64, read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        self.rows.get(&self.layout.row_key(key, start_ms), read)
    }

    fn fetch_range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError> {
        let slice = WindowSlice::new(lower, upper, from_ms, to_ms);
        let range = slice.local_range(&self.layout);
        let until = range.until.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range(Bound::Included(&range.from), until, direction)?;
        Ok(WindowIter::new(rows, slice))
    }

    fn expire(&mut self, live_from_ms: i64) -> Result<u64, StateError> {
        self.expire_from(0, live_from_ms)
    }
}

#[cfg(test)]
mod tests;
