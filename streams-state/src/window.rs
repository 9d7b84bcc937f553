//! Windows over any ordered byte store: rows in time buckets, read bucket by bucket.

use std::ops::Bound;

use crate::codec::window_key::{MAX_SEQUENCE, WindowKey, bucket_of};
use crate::error::StateError;
use crate::range::{Direction, KeyRange, RangeIter};
use crate::store::{KeyValueStore, WindowStore};

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
        let bound = self.layout.first_live_bucket(live_from_ms).to_be_bytes();
        let mut rows = self
            .rows
            .range(Bound::Unbounded, Bound::Excluded(&bound), Direction::Forward)?;
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

/// Which rows a fetch wants: keys between two bounds, starts between two times.
#[derive(Debug)]
pub(crate) struct WindowSlice {
    keys: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    from_ms: i64,
    to_ms: i64,
    /// What the rows' keys begin at and end with inside a bucket.
    first: Vec<u8>,
    last: Option<Vec<u8>>,
}

impl WindowSlice {
    pub(crate) fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>, from_ms: i64, to_ms: i64) -> Self {
        let from_ms = from_ms.max(0);
        let first = match (lower, upper) {
            (Bound::Included(key), Bound::Included(same)) if key == same => WindowKey {
                key,
                start_ms: from_ms,
                sequence: 0,
            }
            .to_changelog_key(),
            (Bound::Included(key) | Bound::Excluded(key), _) => key.to_vec(),
            (Bound::Unbounded, _) => Vec::new(),
        };
        let last = match (lower, upper) {
            (Bound::Included(key), Bound::Included(same)) if key == same => Some(
                WindowKey {
                    key,
                    start_ms: to_ms,
                    sequence: MAX_SEQUENCE,
                }
                .to_changelog_key(),
            ),
            (_, Bound::Included(key) | Bound::Excluded(key)) => Some(last_row(key, to_ms)),
            (_, Bound::Unbounded) => None,
        };
        let keys = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        Self {
            keys,
            from_ms,
            to_ms,
            first,
            last,
        }
    }

    pub(crate) fn local_range(&self, layout: &WindowLayout) -> KeyRange {
        if self.to_ms < self.from_ms {
            return KeyRange {
                from: vec![0],
                until: Some(Vec::new()),
            };
        }
        let from = bucketed(bucket_of(self.from_ms, layout.segment_interval_ms), &self.first);
        let last_bucket = bucket_of(self.to_ms, layout.segment_interval_ms);
        let until = match &self.last {
            Some(last) => {
                let mut until = bucketed(last_bucket, last);
                until.push(0);
                until
            }
            None => (last_bucket + 1).to_be_bytes().to_vec(),
        };
        KeyRange {
            from,
            until: Some(until),
        }
    }

    fn wants(&self, row: &WindowKey<'_>) -> bool {
        let (lower, upper) = (
            self.keys.0.as_ref().map(Vec::as_slice),
            self.keys.1.as_ref().map(Vec::as_slice),
        );
        let above = match lower {
            Bound::Included(key) => row.key >= key,
            Bound::Excluded(key) => row.key > key,
            Bound::Unbounded => true,
        };
        let below = match upper {
            Bound::Included(key) => row.key <= key,
            Bound::Excluded(key) => row.key < key,
            Bound::Unbounded => true,
        };
        above && below && (self.from_ms..=self.to_ms).contains(&row.start_ms)
    }

    /// Where to go on when `inside` (the part of a local key behind its bucket) is outside the wanted keys.
    fn detour(&self, bucket: u64, inside: &[u8], direction: Direction) -> Detour {
        let too_low = inside < self.first.as_slice();
        let too_high = self.last.as_ref().is_some_and(|last| inside > last.as_slice());
        match direction {
            Direction::Forward if too_low => Detour::Seek(bucketed(bucket, &self.first)),
            Direction::Forward if too_high => Detour::Seek(bucketed(bucket + 1, &self.first)),
            Direction::Reverse if too_high => Detour::Seek(bucketed(bucket, self.last.as_deref().unwrap_or_default())),
            Direction::Reverse if too_low => match (bucket.checked_sub(1), &self.last) {
                (None, _) => Detour::End,
                (Some(before), Some(last)) => Detour::Seek(bucketed(before, last)),
                // No upper bound: the last row of the bucket before is the first one below this bucket.
                (Some(_), None) => Detour::Seek(bucket.to_be_bytes().to_vec()),
            },
            _ => Detour::None,
        }
    }
}

enum Detour {
    None,
    Seek(Vec<u8>),
    End,
}

fn bucketed(bucket: u64, inside: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + inside.len());
    bytes.extend_from_slice(&bucket.to_be_bytes());
    bytes.extend_from_slice(inside);
    bytes
}

/// The greatest bytes that a row of a key up to `key` and a start up to `to_ms` can have inside its bucket. A row of a
/// shorter key (a prefix of `key`) may be greater than all rows of `key` itself, because a time follows its key.
fn last_row(key: &[u8], to_ms: i64) -> Vec<u8> {
    (0..=key.len())
        .filter_map(|len| key.get(..len))
        .map(|key| {
            WindowKey {
                key,
                start_ms: to_ms,
                sequence: MAX_SEQUENCE,
            }
            .to_changelog_key()
        })
        .max()
        .unwrap_or_default()
}

/// A row of a window store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRow {
    /// The serialized key.
    pub key: Box<[u8]>,
    /// Start of the window, milliseconds of event time.
    pub start_ms: i64,
    /// Sequence number; 0 unless duplicates are retained.
    pub sequence: u32,
    /// The value.
    pub value: Box<[u8]>,
}

/// Rows of a window store, as it was when the iterator was made; ordered by bucket, then key, start and sequence number.
#[derive(Debug)]
pub struct WindowIter {
    rows: RangeIter,
    slice: WindowSlice,
    done: bool,
}

impl WindowIter {
    pub(crate) fn new(rows: RangeIter, slice: WindowSlice) -> Self {
        Self {
            rows,
            slice,
            done: false,
        }
    }

    /// The next row, lent until the next call.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn next_row(&mut self) -> Result<Option<(WindowKey<'_>, &[u8])>, StateError> {
        if !self.find()? {
            return Ok(None);
        }
        let row = self.rows.next_row()?;
        Ok(row.and_then(|(key, value)| Some((WindowKey::from_local_key(key)?.1, value))))
    }

    /// Stops before the next row that is wanted; false if there is none.
    fn find(&mut self) -> Result<bool, StateError> {
        let direction = self.rows.direction();
        while !self.done {
            let Some((key, _)) = self.rows.peek()? else { break };
            // A key too short for a window row can only come from a store of another layout: skipped.
            let Some((bucket, row)) = WindowKey::from_local_key(key) else {
                self.rows.next_row()?;
                continue;
            };
            match self.slice.detour(bucket, key.get(8..).unwrap_or_default(), direction) {
                Detour::Seek(to) => self.rows.seek(&to)?,
                Detour::End => self.done = true,
                Detour::None if self.slice.wants(&row) => return Ok(true),
                Detour::None => {
                    self.rows.next_row()?;
                }
            }
        }
        self.done = true;
        Ok(false)
    }
}

impl Iterator for WindowIter {
    type Item = Result<WindowRow, StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_row().map(|row| {
            row.map(|(key, value)| WindowRow {
                key: key.key.into(),
                start_ms: key.start_ms,
                sequence: key.sequence,
                value: value.into(),
            })
        });
        if row.is_err() {
            self.done = true;
        }
        row.transpose()
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;
    use crate::memory::MemoryStore;
    use crate::store::WindowStoreExt;

    fn windows(retain_duplicates: bool) -> Windowed<MemoryStore> {
        Windowed::new(
            MemoryStore::new(),
            WindowLayout {
                segment_interval_ms: 100,
                retain_duplicates,
            },
        )
    }

    #[test]
    fn duplicates_continue_from_the_largest_stored_number() {
        let mut store = windows(true);
        assert_eq!(store.put(b"k", 10, Some(b"a")).unwrap(), Some(1));
        assert_eq!(store.put(b"k", 10, Some(b"b")).unwrap(), Some(2));
        assert_eq!(store.put(b"k", 11, Some(b"c")).unwrap(), Some(1));
        assert_eq!(
            store.put(b"k", 10, None).unwrap(),
            None,
            "deletions are ignored, as in Java"
        );
        let mut again = Windowed::new(store.rows, store.layout);
        assert_eq!(again.put(b"k", 10, Some(b"d")).unwrap(), Some(3));
    }

    #[test]
    fn a_key_that_begins_like_another_is_not_fetched_with_it() {
        let mut store = windows(false);
        let mut longer = b"k".to_vec();
        longer.extend_from_slice(&50_i64.to_be_bytes());
        store.put(b"k", 10, Some(b"a")).unwrap();
        store.put(&longer, 20, Some(b"b")).unwrap();
        store.put(b"k", 90, Some(b"c")).unwrap();
        let rows: Vec<_> = store
            .fetch_key(b"k", 0, 99, Direction::Forward)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.iter().map(|row| row.start_ms).collect::<Vec<_>>(), [10, 90]);
    }

    #[test]
    fn expiry_drops_whole_buckets_only() {
        let mut store = windows(false);
        for start in [0, 99, 100, 250, 299, 300] {
            store.put(b"k", start, Some(b"x")).unwrap();
        }
        assert_eq!(
            store.expire(299).unwrap(),
            2,
            "buckets 0 and 100; 200 still holds a live start"
        );
        let left: Vec<_> = store
            .fetch_all(0, i64::MAX, Direction::Forward)
            .unwrap()
            .map(|row| row.unwrap().start_ms)
            .collect();
        assert_eq!(left, [250, 299, 300]);
        assert_eq!(store.expire(299).unwrap(), 0);
    }

    #[test]
    fn windows_over_memory_conform() {
        for retain_duplicates in [false, true] {
            let layout = WindowLayout {
                segment_interval_ms: 10,
                retain_duplicates,
            };
            let make = || Windowed::new(MemoryStore::new(), layout);
            crate::conformance::window_store(256, retain_duplicates, make).unwrap();
        }
    }

    #[test]
    fn a_negative_start_is_refused() {
        assert!(windows(false).put(b"k", -1, Some(b"x")).is_err());
    }

    #[test]
    fn the_rows_of_a_prefix_key_are_found_behind_the_upper_key() {
        let mut store = windows(false);
        let upper = b"k\0\0\0\0\0\0\0".to_vec();
        let late = i64::MAX / 2;
        store.put(b"k", late, Some(b"x")).unwrap();
        let found = store
            .fetch_range(
                Bound::Unbounded,
                Bound::Included(&upper),
                0,
                i64::MAX,
                Direction::Reverse,
            )
            .unwrap()
            .count();
        assert_eq!(found, 1);
    }
}
