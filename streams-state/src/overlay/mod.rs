//! The transaction overlay: what an epoch wrote, above a committed base.
//!
//! Reads see the open epoch, then the frozen one that is being committed, then the base. Nothing reaches the base before
//! the epoch's transaction is known to be committed, so dropping an epoch needs no undo.

mod arena;
mod index;
mod layer;
mod layers;

use std::ops::Bound;

use crate::error::StateError;
use crate::range::{Cursor, Direction, KeyRange, RangeIter};
use crate::store::KeyValueStore;

pub use layer::Change;
use layer::{Found, hash_key};
use layers::Layers;

/// The committed bytes under an overlay.
pub trait CommittedStore: Send {
    /// Lends the committed value of `key`, with at most one read of the storage.
    ///
    /// # Errors
    /// The storage could not be read.
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError>;

    /// Committed rows of a range, as they are now.
    ///
    /// # Errors
    /// The storage could not be read.
    fn cursor(&self, range: &KeyRange, direction: Direction) -> Result<Box<dyn Cursor>, StateError>;

    /// Writes changes in the order given, all or none.
    ///
    /// # Errors
    /// The storage could not be written; then nothing was.
    fn write(&mut self, changes: &mut dyn FnMut(&mut dyn FnMut(Change<'_>))) -> Result<(), StateError>;
}

/// A store whose writes stay in memory until their epoch is applied.
#[derive(Debug)]
pub struct Overlay<B> {
    base: B,
    open: Layers,
    frozen: Layers,
}

impl<B: CommittedStore> Overlay<B> {
    /// An overlay without writes above `base`.
    #[must_use]
    pub fn new(base: B) -> Self {
        Self {
            base,
            open: Layers::default(),
            frozen: Layers::default(),
        }
    }

    /// The committed base.
    pub fn base(&self) -> &B {
        &self.base
    }

    /// Closes the open epoch: its writes are frozen until they are applied or dropped.
    ///
    /// # Errors
    /// [`StateError::EpochOrder`] if a frozen epoch is still there.
    pub fn freeze(&mut self) -> Result<(), StateError> {
        if !self.frozen.is_empty() {
            let reason = "freeze before the frozen epoch was applied or dropped";
            return Err(StateError::EpochOrder {
                task: String::new(),
                reason,
            });
        }
        self.frozen = std::mem::take(&mut self.open);
        Ok(())
    }

    /// Writes the frozen epoch to the base and releases it, in this order: after an error it is still there.
    ///
    /// # Errors
    /// The base could not be written.
    pub fn apply(&mut self) -> Result<(), StateError> {
        let frozen = &self.frozen;
        self.base.write(&mut |sink| frozen.changes(sink))?;
        self.release_frozen();
        Ok(())
    }

    /// The frozen epoch's writes, oldest first.
    pub(crate) fn frozen_changes(&self, sink: &mut dyn FnMut(Change<'_>)) {
        self.frozen.changes(sink);
    }

    pub(crate) fn release_frozen(&mut self) {
        self.frozen = Layers::default();
    }

    /// Forgets the open epoch's writes.
    pub fn drop_open(&mut self) {
        self.open = Layers::default();
    }

    /// Forgets the writes of both epochs.
    pub fn drop_all(&mut self) {
        self.drop_open();
        self.release_frozen();
    }

    /// True when the open epoch wrote something.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        !self.open.is_empty()
    }

    /// True when the frozen epoch wrote something.
    #[must_use]
    pub fn has_frozen(&self) -> bool {
        !self.frozen.is_empty()
    }

    /// Memory that both epochs hold, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.open.bytes() + self.frozen.bytes()
    }

    /// Rows in both epochs, deletions included.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.open.rows() + self.frozen.rows()
    }

    /// The smallest key that the frozen epoch wrote.
    pub(crate) fn frozen_min(&self) -> Option<&[u8]> {
        self.frozen.min_key()
    }

    /// Rows of a range above the committed base, as they are now.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn range_of(&mut self, range: &KeyRange, direction: Direction) -> Result<RangeIter, StateError> {
        if range.is_empty() {
            return Ok(RangeIter::merge(Vec::new(), direction));
        }
        let mut cursors: Vec<Box<dyn Cursor>> = Vec::with_capacity(3);
        let mut visible = range.clone();
        self.open.push_cursors(&mut visible, direction, &mut cursors);
        self.frozen.push_cursors(&mut visible, direction, &mut cursors);
        if !visible.is_empty() {
            cursors.push(self.base.cursor(&visible, direction)?);
        }
        Ok(RangeIter::merge(cursors, direction))
    }
}

impl<B: CommittedStore> KeyValueStore for Overlay<B> {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        if self.open.is_empty() && self.frozen.is_empty() {
            return self.base.get(key, read);
        }
        let hash = hash_key(key);
        for layers in [&self.open, &self.frozen] {
            match layers.get(hash, key) {
                Found::Value(value) => {
                    read(Some(value));
                    return Ok(());
                }
                Found::Deleted => {
                    read(None);
                    return Ok(());
                }
                Found::Nothing => {}
            }
        }
        self.base.get(key, read)
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        self.open.put(key, value);
        Ok(())
    }

    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        self.range_of(&KeyRange::new(lower, upper), direction)
    }

    fn delete_below(&mut self, bound: &[u8]) -> Result<(), StateError> {
        self.open.delete_below(bound);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
