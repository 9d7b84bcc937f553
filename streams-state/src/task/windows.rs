//! Window stores of a task. Times are milliseconds of event time.

use std::ops::Bound;

use super::{StoreView, TaskState};
use crate::error::StateError;
use crate::range::Direction;
use crate::spec::StoreId;
use crate::store::{KeyValueStore, WindowStore, WindowStoreExt};
use crate::window::{WindowIter, WindowLayout, Windowed};

impl TaskState {
    /// A window store as an object, for code that is written against [`WindowStore`].
    ///
    /// # Errors
    /// Unknown store, or not a window store.
    pub fn window(&mut self, id: StoreId) -> Result<Windowed<StoreView<'_>>, StateError> {
        let layout = self.shape.window(id)?;
        Ok(Windowed::new(self.view(id)?, layout))
    }

    /// Sets the value of `key` in the window that starts at `start_ms`, in the open epoch; `None` deletes it. With
    /// retained duplicates a row is added, and deletions are ignored (as in Java). Returns the row's sequence number,
    /// which belongs into its changelog key ([`crate::codec::window_key::WindowKey`]); `None` if nothing was written.
    ///
    /// # Errors
    /// Unknown store, not a window store, a negative start, or the storage could not be read.
    pub fn window_put(
        &mut self,
        id: StoreId,
        key: &[u8],
        start_ms: i64,
        value: Option<&[u8]>,
    ) -> Result<Option<u32>, StateError> {
        let written = self.window(id)?.put(key, start_ms, value);
        written.map_err(|error| match error {
            StateError::InvalidWindowKey { reason, .. } => {
                let store = self
                    .shape
                    .store(id)
                    .map(|(spec, _)| spec.name.clone())
                    .unwrap_or_default();
                StateError::InvalidWindowKey { store, reason }
            }
            other => other,
        })
    }

    /// Lends the value of `key` in the window that starts at `start_ms` to `read`, called once.
    ///
    /// # Errors
    /// Unknown store, not a window store, or the storage could not be read.
    pub fn window_fetch(
        &self,
        id: StoreId,
        key: &[u8],
        start_ms: i64,
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError> {
        let local = self.shape.window(id)?.row_key(key, start_ms);
        self.store(id)?.overlay.get(&local, read)
    }

    /// Rows of one key whose windows start between two times, both included, by time.
    ///
    /// # Errors
    /// As [`TaskState::window_fetch`].
    pub fn window_fetch_key(
        &mut self,
        id: StoreId,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError> {
        self.window(id)?.fetch_key(key, from_ms, to_ms, direction)
    }

    /// Rows of the keys between two bounds whose windows start between two times, both included; ordered by time bucket,
    /// then key, start and sequence number.
    ///
    /// # Errors
    /// As [`TaskState::window_fetch`].
    pub fn window_fetch_range(
        &mut self,
        id: StoreId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError> {
        self.window(id)?.fetch_range(lower, upper, from_ms, to_ms, direction)
    }

    /// Rows of all keys whose windows start between two times, both included.
    ///
    /// # Errors
    /// As [`TaskState::window_fetch`].
    pub fn window_fetch_all(
        &mut self,
        id: StoreId,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError> {
        self.window(id)?.fetch_all(from_ms, to_ms, direction)
    }

    /// Drops the buckets in which no window starts (or no session ends) at or after `live_from_ms`, as part of the open epoch; returns how
    /// many held rows. The caller knows what is closed *and* emitted for every user of the store; the store itself never
    /// hides or drops a row. Buckets of which a frozen epoch still holds rows wait for a later call.
    ///
    /// Costs nothing while no further bucket has died since the last call.
    ///
    /// # Errors
    /// Unknown store, neither a window nor a session store, or the storage could not be read.
    pub fn expire_windows(&mut self, id: StoreId, live_from_ms: i64) -> Result<u64, StateError> {
        // Buckets lie before all else in the keys of window and of session stores alike.
        let layout = WindowLayout {
            segment_interval_ms: self.shape.bucket_ms(id)?,
            retain_duplicates: false,
        };
        let store = self.store_mut(id)?;
        let held = store
            .overlay
            .frozen_min()
            .and_then(|key| key.first_chunk::<8>())
            .copied()
            .map(u64::from_be_bytes);
        let first_live = layout.first_live_bucket(live_from_ms).min(held.unwrap_or(u64::MAX));
        if first_live <= store.expired_below {
            return Ok(0);
        }
        let live_from_ms = i64::try_from(first_live)
            .unwrap_or(i64::MAX)
            .saturating_mul(layout.segment_interval_ms);
        let mut rows = Windowed::new(&mut store.overlay as &mut dyn KeyValueStore, layout);
        let buckets = rows.expire_from(store.rows_from, live_from_ms)?;
        store.expired_below = first_live;
        store.rows_from = first_live;
        Ok(buckets)
    }
}
