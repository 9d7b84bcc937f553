//! Stores of a task whose rows die. Times are milliseconds of event time.

use super::{StoreView, TaskState};
use crate::error::StateError;
use crate::expiring::Expiring;
use crate::metadata::StoreMetadata;
use crate::spec::{StoreId, StoreKind};

impl TaskState {
    /// A store of rows that die, as an object.
    ///
    /// # Errors
    /// Unknown store, or not such a store.
    pub fn expiring(&mut self, id: StoreId) -> Result<Expiring<StoreView<'_>>, StateError> {
        self.shape.expiring(id)?;
        Ok(Expiring::new(self.view(id)?))
    }

    /// How long rows of such a store live that do not say it; `None` for a store of another kind. Its changelog records
    /// are rows with an end: it is restored by [`TaskState::restore_expiring`].
    #[must_use]
    pub fn default_ttl_ms(&self, id: StoreId) -> Option<i64> {
        match self.shape.store(id).ok()?.0.kind {
            StoreKind::Expiring { default_ttl_ms } => Some(default_ttl_ms),
            _ => None,
        }
    }

    /// Applies changelog records of such a store (key, value or deletion, when the row dies) in the order of their
    /// offsets, and the position behind them, in one batch.
    ///
    /// # Errors
    /// Unknown store, not such a store, writes of an epoch over it, or the storage could not be read or written; then
    /// nothing of the batch was.
    pub fn restore_expiring<'r>(
        &mut self,
        id: StoreId,
        records: impl IntoIterator<Item = (&'r [u8], Option<&'r [u8]>, i64)>,
        metadata: StoreMetadata,
    ) -> Result<(), StateError> {
        self.restore_gathered(id, metadata, |state| {
            let mut rows = state.expiring(id)?;
            records
                .into_iter()
                .try_for_each(|(key, value, dies_at_ms)| rows.put(key, value, dies_at_ms))
        })
    }
}
