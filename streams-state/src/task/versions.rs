//! Versioned stores of a task. Times are milliseconds of event time.

use super::{StoreView, TaskState};
use crate::error::StateError;
use crate::metadata::StoreMetadata;
use crate::range::Direction;
use crate::spec::{StoreId, StoreKind};
use crate::versioned::{Version, VersionPut, VersionRow, Versioned};

impl TaskState {
    /// A versioned store as an object.
    ///
    /// # Errors
    /// Unknown store, or not a versioned store.
    pub fn versioned(&mut self, id: StoreId) -> Result<Versioned<StoreView<'_>>, StateError> {
        let layout = self.shape.versions(id)?;
        Ok(Versioned::new(self.view(id)?, layout))
    }

    /// True for a versioned store, whose changelog records are versions: it is restored by
    /// [`TaskState::restore_versions`].
    #[must_use]
    pub fn is_versioned(&self, id: StoreId) -> bool {
        matches!(self.shape.store(id), Ok((spec, _)) if matches!(spec.kind, StoreKind::Versioned { .. }))
    }

    /// Adds a version in the open epoch, as [`Versioned::put`].
    ///
    /// # Errors
    /// Unknown store, not a versioned store, a negative time, or the storage could not be read.
    pub fn version_put(
        &mut self,
        id: StoreId,
        key: &[u8],
        from_ms: i64,
        value: Option<&[u8]>,
    ) -> Result<VersionPut, StateError> {
        let put = self.versioned(id)?.put(key, from_ms, value);
        put.map_err(|error| match error {
            StateError::InvalidWindowKey { reason, .. } => StateError::InvalidWindowKey {
                store: self
                    .shape
                    .store(id)
                    .map(|(spec, _)| spec.name.clone())
                    .unwrap_or_default(),
                reason,
            },
            other => other,
        })
    }

    /// Lends the newest version of a key to `read`, called once, as [`Versioned::get`].
    ///
    /// # Errors
    /// As [`TaskState::version_put`].
    pub fn version_get(
        &mut self,
        id: StoreId,
        key: &[u8],
        read: &mut dyn FnMut(Option<Version<'_>>),
    ) -> Result<(), StateError> {
        self.versioned(id)?.get(key, read)
    }

    /// The version of a key that was valid at a time, as [`Versioned::get_as_of`].
    ///
    /// # Errors
    /// As [`TaskState::version_put`].
    pub fn version_as_of(&mut self, id: StoreId, key: &[u8], as_of_ms: i64) -> Result<Option<VersionRow>, StateError> {
        self.versioned(id)?.get_as_of(key, as_of_ms)
    }

    /// The versions of a key between two times, as [`Versioned::versions`].
    ///
    /// # Errors
    /// As [`TaskState::version_put`].
    pub fn versions(
        &mut self,
        id: StoreId,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<Vec<VersionRow>, StateError> {
        self.versioned(id)?.versions(key, from_ms, to_ms, direction)
    }

    /// Drops what is older than the store's history, as part of the open epoch. Buckets of which a frozen epoch still
    /// holds rows wait for a later call. Costs nothing while no further bucket has died since the last call.
    ///
    /// # Errors
    /// As [`TaskState::version_put`].
    pub fn expire_versions(&mut self, id: StoreId) -> Result<(), StateError> {
        let layout = self.shape.versions(id)?;
        let observed_ms = self.versioned(id)?.observed_ms()?;
        let live_from_ms = observed_ms.saturating_sub(layout.history_retention_ms);
        let first_live = layout.first_live_bucket(live_from_ms);
        let store = self.store_mut(id)?;
        if first_live <= store.expired_below {
            return Ok(());
        }
        let held = store.overlay.frozen_min().and_then(|key| key.first_chunk::<8>());
        if held.is_some_and(|held| u64::from_be_bytes(*held) < first_live) {
            return Ok(());
        }
        store.expired_below = first_live;
        self.versioned(id)?.expire(live_from_ms)
    }

    /// Applies changelog records of a versioned store (key, begin of the version, value or tombstone) in the order of
    /// their offsets, and the position behind them, in one batch. As in Java what is older than the history is left out.
    ///
    /// # Errors
    /// Unknown store, not a versioned store, writes of an epoch over it, or the storage could not be read or written;
    /// then nothing of the batch was.
    pub fn restore_versions<'r>(
        &mut self,
        id: StoreId,
        records: impl IntoIterator<Item = (&'r [u8], i64, Option<&'r [u8]>)>,
        metadata: StoreMetadata,
    ) -> Result<(), StateError> {
        self.restore_gathered(id, metadata, |state| {
            let mut versions = state.versioned(id)?;
            for (key, from_ms, value) in records {
                versions.put(key, from_ms.max(0), value)?;
            }
            state.expire_versions(id)
        })
    }
}
