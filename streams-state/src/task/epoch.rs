//! Epochs: freeze, apply, drop.

use super::TaskState;
use crate::codec::metadata::MetadataRow;
use crate::durable::{Batch, Database};
use crate::error::StateError;
use crate::metadata::{EpochMetadata, TaskMetadata};
use crate::snapshot::Place;
use crate::spec::StoreId;

impl TaskState {
    /// Closes the open epoch: what it wrote waits, readable, for the outcome of its transaction.
    ///
    /// # Errors
    /// [`StateError::EpochOrder`]: an epoch is frozen already (at most one is in flight, rule 1.10).
    pub fn freeze(&mut self) -> Result<(), StateError> {
        if self.frozen {
            return Err(self.out_of_order("freeze before the frozen epoch was applied or dropped"));
        }
        for store in &mut self.stores {
            store.overlay.freeze()?;
        }
        self.frozen = true;
        Ok(())
    }

    /// Writes the frozen epoch's rows and the metadata in one batch, then releases the epoch. Call it only when the
    /// transaction is known to be committed.
    ///
    /// The write is in the operating system's hands when this returns (no fsync): it survives the end of the process;
    /// after a power failure the state is at an earlier commit, and the changelog's tail is replayed.
    ///
    /// # Errors
    /// Nothing is frozen, or the batch could not be written; then the epoch is still frozen and nothing of it is in the
    /// base. Close the state, open it again and replay the tail (rule 1.10).
    pub fn apply(&mut self, epoch: &EpochMetadata) -> Result<(), StateError> {
        if !self.frozen {
            return Err(self.out_of_order("apply without a frozen epoch"));
        }
        self.check_disk()?;
        let mut metadata = self.metadata.clone();
        metadata.merge(epoch);
        let batch = self
            .database
            .as_ref()
            .map(|database| (database, self.epoch_batch(database, epoch, &metadata)));
        let input_offsets = std::sync::Arc::new(metadata.input_offsets.clone());
        let (stores, shape) = (&self.stores, &self.shape);
        self.published.write(|committed| {
            if let Some((database, batch)) = batch {
                database.write(batch)?;
            }
            for (store, (_, place)) in stores.iter().zip(&shape.stores) {
                if let Place::Memory(number) = place
                    && let Some(memory) = committed.stores.get_mut(*number)
                {
                    store.overlay.frozen_changes(&mut |change| memory.change(change));
                }
            }
            committed.input_offsets = input_offsets;
            Ok::<(), StateError>(())
        })?;
        self.metadata = metadata;
        self.release_frozen();
        self.save();
        Ok(())
    }

    fn epoch_batch(&self, database: &Database, epoch: &EpochMetadata, merged: &TaskMetadata) -> Batch {
        let mut batch = database.batch();
        for (store, (_, place)) in self.stores.iter().zip(&self.shape.stores) {
            if let Place::Durable(family) = place {
                store
                    .overlay
                    .frozen_changes(&mut |change| database.add(&mut batch, *family, change));
            }
        }
        for (id, _) in &epoch.stores {
            let (Ok((spec, Place::Durable(_))), Some(Some(metadata))) =
                (self.shape.store(*id), merged.stores.get(id.index()))
            else {
                continue;
            };
            database.add_row(&mut batch, &MetadataRow::Store(&spec.name, *metadata));
        }
        for ((topic, partition), offset) in &epoch.input_offsets {
            database.add_row(&mut batch, &MetadataRow::Input(topic, *partition, *offset));
        }
        for (operator, time_ms) in &epoch.operator_times {
            database.add_row(&mut batch, &MetadataRow::OperatorTime(operator, *time_ms));
        }
        database.add_row(&mut batch, &MetadataRow::AppliedAt(epoch.now_ms));
        batch
    }

    /// Forgets the open epoch (abort of what is not frozen yet).
    pub fn drop_open(&mut self) {
        for store in &mut self.stores {
            store.overlay.drop_open();
            store.expired_below = 0;
            store.rows_from = 0;
        }
    }

    /// Forgets both epochs (abort, lost membership, unknown outcome).
    pub fn drop_all(&mut self) {
        self.drop_open();
        self.release_frozen();
    }

    fn release_frozen(&mut self) {
        for store in &mut self.stores {
            store.overlay.release_frozen();
        }
        self.frozen = false;
    }

    /// True when an epoch is frozen and neither applied nor dropped.
    #[must_use]
    pub fn has_frozen(&self) -> bool {
        self.frozen
    }

    /// True when the open epoch wrote something.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.stores.iter().any(|store| store.overlay.is_dirty())
    }

    /// Memory that both epochs hold, in bytes. An apply needs about twice as much on top (batch and memtable): an
    /// overlay counts three times in the memory budget.
    #[must_use]
    pub fn overlay_bytes(&self) -> usize {
        self.stores.iter().map(|store| store.overlay.bytes()).sum()
    }

    /// The part of [`TaskState::overlay_bytes`] of one store; 0 for an unknown one.
    #[must_use]
    pub fn store_overlay_bytes(&self, id: StoreId) -> usize {
        self.stores.get(id.index()).map_or(0, |store| store.overlay.bytes())
    }
}
