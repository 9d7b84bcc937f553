//! Rows with an end: each row says when it dies, over any ordered byte store.
//!
//! | row | key | value |
//! |---|---|---|
//! | when a row dies | `00`, time 8, key | nothing |
//! | the row | `01`, key | time 8, value |

use std::ops::Bound;

use crate::error::StateError;
use crate::range::{Direction, KeyRange, RangeIter};
use crate::store::KeyValueStore;

/// The end of rows that have none.
pub const NEVER_MS: i64 = i64::MAX;
const DEATH: u8 = 0;
const ROW: u8 = 1;

/// A store of rows that die, over a [`KeyValueStore`] that holds nothing else. Times are milliseconds of event time; what
/// the time is, the caller knows.
#[derive(Debug)]
pub struct Expiring<S> {
    rows: S,
}

impl<S: KeyValueStore> Expiring<S> {
    /// Rows that die, over `rows`.
    pub fn new(rows: S) -> Self {
        Self { rows }
    }

    /// Sets a row that dies at `dies_at_ms` (0 or later, [`NEVER_MS`] = never); `None` deletes it. What the row was before,
    /// its end included, is forgotten.
    ///
    /// # Errors
    /// The storage could not be read or written.
    pub fn put(&mut self, key: &[u8], value: Option<&[u8]>, dies_at_ms: i64) -> Result<(), StateError> {
        let dies_at_ms = dies_at_ms.max(0);
        let row_key = row_key(key);
        let mut before = None;
        self.rows.get(&row_key, &mut |row| {
            before = row.and_then(split_row).map(|(dies_at_ms, _)| dies_at_ms)
        })?;
        if let Some(before_ms) = before.filter(|before| *before != NEVER_MS)
            && (value.is_none() || before_ms != dies_at_ms)
        {
            self.rows.put(&death_key(before_ms, key), None)?;
        }
        let Some(value) = value else {
            return self.rows.put(&row_key, None);
        };
        if dies_at_ms != NEVER_MS && before != Some(dies_at_ms) {
            self.rows.put(&death_key(dies_at_ms, key), Some(&[]))?;
        }
        self.rows
            .put(&row_key, Some(&[&dies_at_ms.to_be_bytes(), value].concat()))
    }

    /// Lends a row to `read`, called once: the value and when it dies. Dead rows are there until they are deleted.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<(&[u8], i64)>)) -> Result<(), StateError> {
        self.rows.get(&row_key(key), &mut |row| {
            read(row.and_then(split_row).map(|(dies_at_ms, value)| (value, dies_at_ms)));
        })
    }

    /// The rows between two keys, both included, `None` = open, as they are now; each as [`ExpiringRows`] gives it.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn range(
        &mut self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        direction: Direction,
    ) -> Result<ExpiringRows, StateError> {
        let lower = row_key(from.unwrap_or_default());
        let upper = to.map(row_key);
        let end = KeyRange::prefix(&[ROW]).until.unwrap_or_default();
        let upper = upper
            .as_deref()
            .map_or(Bound::Excluded(end.as_slice()), Bound::Included);
        let rows = self.rows.range(Bound::Included(&lower), upper, direction)?;
        Ok(ExpiringRows { rows })
    }

    /// The keys of the rows that die at `now_ms` or before, the first to die first.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn dead(&mut self, now_ms: i64) -> Result<DeadKeys, StateError> {
        let end = death_key(now_ms.max(0).saturating_add(1), &[]);
        let none = now_ms < 0;
        let until = if none {
            Bound::Excluded(&[][..])
        } else {
            Bound::Excluded(end.as_slice())
        };
        let rows = self.rows.range(Bound::Unbounded, until, Direction::Forward)?;
        Ok(DeadKeys { rows })
    }
}

/// The rows of [`Expiring::range`]: key, value, when it dies.
#[derive(Debug)]
pub struct ExpiringRows {
    rows: RangeIter,
}

impl Iterator for ExpiringRows {
    type Item = Result<(Box<[u8]>, Box<[u8]>, i64), StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.rows.next()? {
                Err(error) => return Some(Err(error)),
                Ok((key, row)) => {
                    if let (Some(key), Some((dies_at_ms, value))) = (key.get(1..), split_row(&row)) {
                        return Some(Ok((key.into(), value.into(), dies_at_ms)));
                    }
                }
            }
        }
    }
}

/// The keys of [`Expiring::dead`].
#[derive(Debug)]
pub struct DeadKeys {
    rows: RangeIter,
}

impl Iterator for DeadKeys {
    type Item = Result<Box<[u8]>, StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(row.map(|(key, _)| key.get(9..).unwrap_or_default().into()))
    }
}

fn row_key(key: &[u8]) -> Vec<u8> {
    [&[ROW], key].concat()
}

fn death_key(dies_at_ms: i64, key: &[u8]) -> Vec<u8> {
    [&[DEATH], dies_at_ms.to_be_bytes().as_slice(), key].concat()
}

fn split_row(row: &[u8]) -> Option<(i64, &[u8])> {
    let (dies_at, value) = row.split_first_chunk::<8>()?;
    Some((i64::from_be_bytes(*dies_at), value))
}

/// What a stored row may be, for the fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_row(bytes: &[u8]) -> Result<(), String> {
    match split_row(bytes) {
        Some((dies_at_ms, value)) => crate::fuzzing::law(
            [&dies_at_ms.to_be_bytes()[..], value].concat() == bytes,
            "a row that dies is written as it was read",
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::memory::MemoryStore;

    type Rows = Vec<(Vec<u8>, Vec<u8>, i64)>;

    fn all(store: &mut Expiring<MemoryStore>, direction: Direction) -> Rows {
        let rows = store.range(None, None, direction).unwrap();
        rows.map(|row| {
            row.map(|(key, value, dies)| (key.into_vec(), value.into_vec(), dies))
                .unwrap()
        })
        .collect()
    }

    fn dead(store: &mut Expiring<MemoryStore>, now_ms: i64) -> Vec<Vec<u8>> {
        store.dead(now_ms).unwrap().map(|key| key.unwrap().into_vec()).collect()
    }

    #[test]
    fn a_row_dies_at_its_last_end_only() {
        let mut store = Expiring::new(MemoryStore::new());
        store.put(b"a", Some(b"1"), 10).unwrap();
        store.put(b"a", Some(b"2"), 30).unwrap();
        store.put(b"b", Some(b"3"), 20).unwrap();
        store.put(b"c", Some(b"4"), NEVER_MS).unwrap();
        assert_eq!(dead(&mut store, 19), Vec::<Vec<u8>>::new());
        assert_eq!(dead(&mut store, 30), [b"b".to_vec(), b"a".to_vec()]);
        store.put(b"a", None, 0).unwrap();
        assert_eq!(dead(&mut store, NEVER_MS), [b"b".to_vec()]);
        assert_eq!(dead(&mut store, -1), Vec::<Vec<u8>>::new());
    }

    proptest! {
        #[test]
        fn rows_and_ends_are_those_of_a_map(ops in proptest::collection::vec((0_u8..5, proptest::option::of(any::<u8>()), 0_i64..50), 1..80)) {
            let (mut store, mut model) = (Expiring::new(MemoryStore::new()), BTreeMap::new());
            for (key, value, end) in ops {
                let (key, end) = (vec![0xff; usize::from(key)], if end > 40 { NEVER_MS } else { end });
                let value = value.map(|value| vec![value]);
                store.put(&key, value.as_deref(), end).unwrap();
                match value {
                    Some(value) => model.insert(key, (value, end)),
                    None => model.remove(&key),
                };
                let mut rows: Rows = model.iter().map(|(key, (value, end))| (key.clone(), value.clone(), *end)).collect();
                prop_assert_eq!(&all(&mut store, Direction::Forward), &rows);
                rows.reverse();
                prop_assert_eq!(&all(&mut store, Direction::Reverse), &rows);
                let mut ends: Vec<_> = model.iter().filter(|(_, (_, end))| *end <= 20).map(|(key, (_, end))| (*end, key.clone())).collect();
                ends.sort();
                let ends: Vec<_> = ends.into_iter().map(|(_, key)| key).collect();
                prop_assert_eq!(dead(&mut store, 20), ends);
            }
        }
    }
}
