//! Key ranges and cursors: how ordered rows are read from several layers at once.

use std::ops::Bound;

use crate::error::StateError;

/// Order of iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending by key bytes.
    Forward,
    /// Descending by key bytes.
    Reverse,
}

/// A half-open range of keys, `from` included, `until` excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key of the range (empty: from the beginning).
    pub from: Vec<u8>,
    /// The first key behind the range (`None`: to the end).
    pub until: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self {
            from: Vec::new(),
            until: None,
        }
    }

    /// From bounds. An inverted range is empty, not an error.
    #[must_use]
    pub fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Self {
        let from = match lower {
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => successor(key),
            Bound::Unbounded => Vec::new(),
        };
        let until = match upper {
            Bound::Included(key) => Some(successor(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        Self { from, until }
    }

    /// All keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self {
            from: prefix.to_vec(),
            until: prefix_end(prefix),
        }
    }

    /// True when no key can be inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.until.as_ref().is_some_and(|until| *until <= self.from)
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.until.as_ref().is_none_or(|until| key < until.as_slice())
    }

    /// The part of the range at or above `bound`.
    pub(crate) fn at_least(&self, bound: Option<&[u8]>) -> Self {
        let mut range = self.clone();
        if let Some(bound) = bound
            && range.from.as_slice() < bound
        {
            range.from = bound.to_vec();
        }
        range
    }
}

/// The smallest key greater than `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// The smallest key greater than every key that begins with `prefix`; `None` if there is none.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// A row as one layer sees it: without a value it hides the rows of the layers below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRow<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value; `None` says that the key is deleted here.
    pub value: Option<&'a [u8]>,
}

/// Ordered reading of one layer within a range that was fixed when the cursor was made. It owns what it reads: later
/// writes to the store do not disturb it.
pub trait Cursor: Send {
    /// The row under the cursor; `None` behind the last one.
    fn current(&self) -> Option<LayerRow<'_>>;

    /// Goes one row on, in the cursor's direction.
    ///
    /// # Errors
    /// The storage could not be read.
    fn advance(&mut self) -> Result<(), StateError>;

    /// Goes to the first row at or beyond `key`, in the cursor's direction, but never outside the cursor's range.
    ///
    /// # Errors
    /// The storage could not be read.
    fn seek(&mut self, key: &[u8]) -> Result<(), StateError>;
}

/// Rows of a store in key order, as the store was when the iterator was made.
///
/// As an [`Iterator`] it hands out copies; [`RangeIter::next_row`] lends the row without copying.
pub struct RangeIter {
    /// Newest layer first.
    layers: Vec<Box<dyn Cursor>>,
    direction: Direction,
    /// The layer whose current row was handed out last.
    handed_out: Option<usize>,
    failed: bool,
}

impl RangeIter {
    /// Merges layers, the newest first; all of them must have the direction `direction`.
    #[must_use]
    pub fn merge(layers: Vec<Box<dyn Cursor>>, direction: Direction) -> Self {
        Self {
            layers,
            direction,
            handed_out: None,
            failed: false,
        }
    }

    /// The next row, lent until the next call.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>, StateError> {
        self.pass()?;
        let Some(winner) = self.settle()? else { return Ok(None) };
        self.handed_out = Some(winner);
        Ok(self.row_of(winner))
    }

    /// The row that [`RangeIter::next_row`] would hand out, without going on.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn peek(&mut self) -> Result<Option<(&[u8], &[u8])>, StateError> {
        self.pass()?;
        let Some(winner) = self.settle()? else { return Ok(None) };
        Ok(self.row_of(winner))
    }

    /// Goes to the first row at or beyond `key` in the iterator's direction; never outside its range.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn seek(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.handed_out = None;
        self.layers.iter_mut().try_for_each(|layer| layer.seek(key))
    }

    /// Direction of iteration.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    fn row_of(&self, layer: usize) -> Option<(&[u8], &[u8])> {
        let row = self.layers.get(layer)?.current()?;
        Some((row.key, row.value?))
    }

    /// Leaves the row that was handed out.
    fn pass(&mut self) -> Result<(), StateError> {
        match self.handed_out.take().and_then(|layer| self.layers.get_mut(layer)) {
            Some(layer) => layer.advance(),
            None => Ok(()),
        }
    }

    /// Finds the layer with the next visible row, moving the older layers past the rows that it hides.
    fn settle(&mut self) -> Result<Option<usize>, StateError> {
        loop {
            let Some(winner) = self.foremost() else { return Ok(None) };
            let (newer, older) = self.layers.split_at_mut(winner + 1);
            let Some(first) = newer.last_mut() else { return Ok(None) };
            let Some(row) = first.current() else { return Ok(None) };
            for layer in older {
                if layer.current().is_some_and(|hidden| hidden.key == row.key) {
                    layer.advance()?;
                }
            }
            if row.value.is_some() {
                return Ok(Some(winner));
            }
            first.advance()?;
        }
    }

    /// The layer whose row comes next; the newest one if several stand on that key.
    fn foremost(&self) -> Option<usize> {
        let mut best: Option<(usize, &[u8])> = None;
        for (number, layer) in self.layers.iter().enumerate() {
            let Some(row) = layer.current() else { continue };
            let before = match (best, self.direction) {
                (None, _) => true,
                (Some((_, key)), Direction::Forward) => row.key < key,
                (Some((_, key)), Direction::Reverse) => row.key > key,
            };
            if before {
                best = Some((number, row.key));
            }
        }
        best.map(|(number, _)| number)
    }
}

impl std::fmt::Debug for RangeIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RangeIter")
            .field("layers", &self.layers.len())
            .field("direction", &self.direction)
            .finish()
    }
}

impl Iterator for RangeIter {
    type Item = Result<(Box<[u8]>, Box<[u8]>), StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let result = self
            .next_row()
            .map(|row| row.map(|(key, value)| (key.into(), value.into())));
        self.failed = result.is_err();
        result.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_ff_bytes_reaches_to_the_end() {
        assert_eq!(KeyRange::prefix(&[1, 0xff]).until, Some(vec![2]));
        assert_eq!(KeyRange::prefix(&[0xff, 0xff]).until, None);
    }

    #[test]
    fn an_inverted_range_is_empty() {
        assert!(KeyRange::new(Bound::Included(b"b"), Bound::Excluded(b"a")).is_empty());
        assert!(KeyRange::new(Bound::Excluded(b"a"), Bound::Included(b"a")).is_empty());
        assert!(!KeyRange::new(Bound::Included(b"a"), Bound::Included(b"a")).is_empty());
    }
}
