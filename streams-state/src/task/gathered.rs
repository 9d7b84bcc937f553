//! Restores of stores whose rows depend on those before them: the overlay gathers a batch, then it is written as one.

use super::TaskState;
use crate::codec::metadata::MetadataRow;
use crate::error::StateError;
use crate::metadata::StoreMetadata;
use crate::snapshot::Place;
use crate::spec::StoreId;

impl TaskState {
    /// Writes what `gather` puts into a store, and the position behind it, in one batch; nothing of it if that fails.
    pub(super) fn restore_gathered(
        &mut self,
        id: StoreId,
        metadata: StoreMetadata,
        gather: impl FnOnce(&mut Self) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        self.check_idle(id)?;
        self.check_disk()?;
        let gathered = gather(self).and_then(|()| self.store_mut(id)?.overlay.freeze());
        let written = gathered.and_then(|()| self.write_gathered(id, metadata));
        let store = self.store_mut(id)?;
        store.overlay.drop_all();
        store.expired_below = 0;
        written?;
        self.metadata.set_store(id, Some(metadata));
        self.save();
        Ok(())
    }

    fn write_gathered(&mut self, id: StoreId, metadata: StoreMetadata) -> Result<(), StateError> {
        let (spec, place) = self.shape.store(id)?;
        let store = self.store(id)?;
        match (place, &self.database) {
            (Place::Durable(family), Some(database)) => {
                let mut batch = database.batch();
                store
                    .overlay
                    .frozen_changes(&mut |change| database.add(&mut batch, *family, change));
                let row = match store.from_zero {
                    true => MetadataRow::FromZero(&spec.name, Some(metadata)),
                    false => MetadataRow::Store(&spec.name, metadata),
                };
                database.add_row(&mut batch, &row);
                database.write(batch)
            }
            _ => {
                self.change_memory(*place, |memory| {
                    store.overlay.frozen_changes(&mut |change| memory.change(change));
                });
                Ok(())
            }
        }
    }
}
