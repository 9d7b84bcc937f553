//! A store of a task as an object.

use std::ops::Bound;

use crate::error::StateError;
use crate::family::Family;
use crate::overlay::Overlay;
use crate::range::{Direction, RangeIter};
use crate::store::KeyValueStore;

/// One store of a task as a [`KeyValueStore`].
#[derive(Debug)]
pub struct StoreView<'a> {
    pub(super) overlay: &'a mut Overlay<Family>,
    /// Only of window stores ever above 0.
    pub(super) rows_from: &'a mut u64,
}

impl KeyValueStore for StoreView<'_> {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        self.overlay.get(key, read)
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        if *self.rows_from > 0 {
            let bucket = key.first_chunk::<8>().copied().map_or(0, u64::from_be_bytes);
            *self.rows_from = bucket.min(*self.rows_from);
        }
        self.overlay.put(key, value)
    }

    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        self.overlay.range(lower, upper, direction)
    }

    fn delete_below(&mut self, bound: &[u8]) -> Result<(), StateError> {
        self.overlay.delete_below(bound)
    }
}
