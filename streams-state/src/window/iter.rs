//! Reading a window store bucket by bucket: inside a bucket the rows are ordered by key, so the iterator leaps from the
//! wanted keys of one bucket to those of the next.

use std::ops::Bound;

use super::WindowLayout;
use crate::codec::window_key::{MAX_SEQUENCE, WindowKey, bucket_of};
use crate::error::StateError;
use crate::range::{Direction, KeyRange, RangeIter};

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
