//! Committed rows in memory: a sorted list of small leaves, each shared with the snapshots that still read it.
//!
//! A snapshot costs one reference count. While it lives, a write copies only the leaf it touches (and once the list of
//! leaves), so that queries never make an apply copy a whole store.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::StateError;
use crate::overlay::{Change, CommittedStore};
use crate::range::{Cursor, Direction, KeyRange, LayerRow, RangeIter};
use crate::store::KeyValueStore;

/// Rows per leaf before it is split.
const LEAF: usize = 128;

type Row = (Box<[u8]>, Box<[u8]>);

/// Ordered rows in memory; a clone is a snapshot.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    /// Never holds an empty leaf.
    leaves: Arc<Vec<Arc<Vec<Row>>>>,
    rows: usize,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// True when there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Removes every row.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The value of a key.
    #[must_use]
    pub fn value(&self, key: &[u8]) -> Option<&[u8]> {
        let leaf = self.leaves.get(self.leaf_of(key))?;
        let at = leaf.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        leaf.get(at).map(|(_, value)| &**value)
    }

    /// Makes one change.
    pub fn change(&mut self, change: Change<'_>) {
        match change {
            Change::Put(key, value) => self.insert(key, value),
            Change::Delete(key) => self.remove(key),
            Change::DeleteBelow(bound) => self.remove_below(bound),
        }
    }

    /// The last leaf whose first key is not above `key`.
    fn leaf_of(&self, key: &[u8]) -> usize {
        let after = self
            .leaves
            .partition_point(|leaf| leaf.first().is_some_and(|(first, _)| **first <= *key));
        after.saturating_sub(1)
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) {
        let number = self.leaf_of(key);
        let leaves = Arc::make_mut(&mut self.leaves);
        let Some(leaf) = leaves.get_mut(number) else {
            leaves.push(Arc::new(vec![(key.into(), value.into())]));
            self.rows += 1;
            return;
        };
        let rows = Arc::make_mut(leaf);
        match rows.binary_search_by(|(other, _)| (**other).cmp(key)) {
            Ok(at) => {
                if let Some((_, old)) = rows.get_mut(at) {
                    *old = value.into();
                }
            }
            Err(at) => {
                rows.insert(at, (key.into(), value.into()));
                self.rows += 1;
            }
        }
        if rows.len() > LEAF {
            // Ascending keys are the common case of a bulk load: then the left leaf stays nearly full.
            let split = if number + 1 == leaves.len() { LEAF } else { LEAF / 2 };
            if let Some(leaf) = leaves.get_mut(number) {
                let upper = Arc::make_mut(leaf).split_off(split);
                leaves.insert(number + 1, Arc::new(upper));
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let number = self.leaf_of(key);
        let Some(leaf) = self.leaves.get(number) else { return };
        let Ok(at) = leaf.binary_search_by(|(other, _)| (**other).cmp(key)) else {
            return;
        };
        let leaves = Arc::make_mut(&mut self.leaves);
        self.rows -= 1;
        if let Some(leaf) = leaves.get_mut(number) {
            let rows = Arc::make_mut(leaf);
            rows.remove(at);
            if rows.is_empty() {
                leaves.remove(number);
            }
        }
    }

    fn remove_below(&mut self, bound: &[u8]) {
        let leaves = Arc::make_mut(&mut self.leaves);
        let whole = leaves.partition_point(|leaf| leaf.last().is_some_and(|(last, _)| **last < *bound));
        self.rows -= leaves.drain(..whole).map(|leaf| leaf.len()).sum::<usize>();
        if let Some(leaf) = leaves.first_mut() {
            let below = leaf.partition_point(|(key, _)| **key < *bound);
            if below > 0 {
                Arc::make_mut(leaf).drain(..below);
                self.rows -= below;
            }
        }
    }

    pub(crate) fn cursor_of(&self, range: &KeyRange, direction: Direction) -> MemoryCursor {
        let mut cursor = MemoryCursor {
            leaves: Arc::clone(&self.leaves),
            range: range.clone(),
            direction,
            place: None,
        };
        cursor.place = match direction {
            Direction::Forward => cursor.at_or_above(&range.from),
            Direction::Reverse => cursor.last_of_range(),
        };
        cursor
    }
}

impl CommittedStore for MemoryStore {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        read(self.value(key));
        Ok(())
    }

    fn cursor(&self, range: &KeyRange, direction: Direction) -> Result<Box<dyn Cursor>, StateError> {
        Ok(Box::new(self.cursor_of(range, direction)))
    }

    fn write(&mut self, changes: &mut dyn FnMut(&mut dyn FnMut(Change<'_>))) -> Result<(), StateError> {
        changes(&mut |change| self.change(change));
        Ok(())
    }
}

impl KeyValueStore for MemoryStore {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        CommittedStore::get(self, key, read)
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        self.change(value.map_or(Change::Delete(key), |value| Change::Put(key, value)));
        Ok(())
    }

    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        let cursor = self.cursor_of(&KeyRange::new(lower, upper), direction);
        Ok(RangeIter::merge(vec![Box::new(cursor)], direction))
    }

    fn delete_below(&mut self, bound: &[u8]) -> Result<(), StateError> {
        self.remove_below(bound);
        Ok(())
    }
}

/// Ordered reading of a snapshot.
pub(crate) struct MemoryCursor {
    leaves: Arc<Vec<Arc<Vec<Row>>>>,
    range: KeyRange,
    direction: Direction,
    /// Leaf and row; `None` before the first row.
    place: Option<(usize, usize)>,
}

impl MemoryCursor {
    fn at_or_above(&self, key: &[u8]) -> Option<(usize, usize)> {
        let number = self
            .leaves
            .partition_point(|leaf| leaf.last().is_some_and(|(last, _)| **last < *key));
        let at = self
            .leaves
            .get(number)
            .map_or(0, |leaf| leaf.partition_point(|(other, _)| **other < *key));
        Some((number, at))
    }

    fn before(&self, place: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let (leaf, row) = place?;
        if let Some(row) = row.checked_sub(1) {
            return Some((leaf, row));
        }
        let leaf = leaf.checked_sub(1)?;
        Some((leaf, self.leaves.get(leaf)?.len().checked_sub(1)?))
    }

    fn after(&self, place: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let (leaf, row) = place?;
        let more = self.leaves.get(leaf).is_some_and(|rows| row + 1 < rows.len());
        Some(if more { (leaf, row + 1) } else { (leaf + 1, 0) })
    }

    fn last_of_range(&self) -> Option<(usize, usize)> {
        let end = match &self.range.until {
            Some(until) => self.at_or_above(until),
            None => Some((self.leaves.len(), 0)),
        };
        self.before(end)
    }

    fn row(&self, place: Option<(usize, usize)>) -> Option<&Row> {
        let (leaf, row) = place?;
        self.leaves.get(leaf)?.get(row)
    }
}

impl Cursor for MemoryCursor {
    fn current(&self) -> Option<LayerRow<'_>> {
        let (key, value) = self.row(self.place)?;
        self.range.contains(key).then_some(LayerRow {
            key,
            value: Some(value),
        })
    }

    fn advance(&mut self) -> Result<(), StateError> {
        self.place = match self.direction {
            Direction::Forward => self.after(self.place),
            Direction::Reverse => self.before(self.place),
        };
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.place = match self.direction {
            Direction::Forward => self.at_or_above(key.max(&self.range.from)),
            Direction::Reverse if self.range.until.as_deref().is_some_and(|until| key >= until) => self.last_of_range(),
            Direction::Reverse => {
                let found = self.at_or_above(key);
                if self.row(found).is_some_and(|(other, _)| **other == *key) {
                    found
                } else {
                    self.before(found)
                }
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;
    use crate::store::KeyValueStoreExt;

    #[test]
    fn a_snapshot_keeps_its_rows_while_the_store_changes() {
        let mut store = MemoryStore::new();
        for n in 0..1_000_u32 {
            store.put(&n.to_be_bytes(), Some(b"old")).unwrap();
        }
        let snapshot = store.clone();
        for n in 0..1_000_u32 {
            store
                .put(&n.to_be_bytes(), (n % 2 == 0).then_some(b"new".as_slice()))
                .unwrap();
        }
        assert_eq!(store.len(), 500);
        assert_eq!(snapshot.len(), 1_000);
        assert_eq!(snapshot.get_vec(&7_u32.to_be_bytes()).unwrap(), Some(b"old".to_vec()));
        let values = snapshot
            .clone()
            .all(Direction::Forward)
            .unwrap()
            .map(|row| row.unwrap().1);
        assert!(values.into_iter().all(|value| *value == *b"old"));
    }

    #[test]
    fn memory_conforms() {
        crate::conformance::key_value_store(256, MemoryStore::new).unwrap();
    }

    #[test]
    fn deleting_below_a_bound_counts_rows_right() {
        let mut store = MemoryStore::new();
        for n in 0..1_000_u32 {
            store.put(&n.to_be_bytes(), Some(b"x")).unwrap();
        }
        store.delete_below(&300_u32.to_be_bytes()).unwrap();
        assert_eq!(store.len(), 700);
        assert_eq!(store.all(Direction::Forward).unwrap().count(), 700);
        assert_eq!(store.value(&299_u32.to_be_bytes()), None);
        assert!(store.value(&300_u32.to_be_bytes()).is_some());
    }
}
