//! A task's state on a [`MemoryDisk`]: the in-memory stores, written through.

use super::{TaskState, check_specs};
use crate::error::StateError;
use crate::memory_disk::{MemoryDisk, SavedTask};
use crate::snapshot::Place;
use crate::spec::{StoreId, StoreSpec};

impl TaskState {
    /// State in memory that is kept by `disk`: what is applied outlives this value, as with [`TaskState::open`] on a real
    /// disk. For tests and simulations. Stores whose spec is not persistent are lost with the value.
    ///
    /// # Errors
    /// The task is open on this disk, or a store's settings are impossible.
    pub fn on_memory_disk(disk: &MemoryDisk, task: &str, specs: Vec<StoreSpec>) -> Result<Self, StateError> {
        check_specs(task, &specs)?;
        let opened = disk.open(task)?;
        let mut state = Self::in_memory(task, specs)?;
        let mut saved = opened.load();
        state.published.write(|committed| {
            for (spec, place) in state.shape.stores.iter().filter(|(spec, _)| spec.persistent) {
                let rows = saved.rows.remove(&spec.name);
                if let (Place::Memory(number), Some(rows)) = (place, rows)
                    && saved.from_zero.get(&spec.name) != Some(&None)
                    && let Some(store) = committed.stores.get_mut(*number)
                {
                    *store = rows;
                }
            }
            committed.input_offsets = std::sync::Arc::new(saved.input_offsets.clone());
        });
        for ((spec, _), id) in state.shape.stores.iter().zip(0_u32..) {
            if !spec.persistent {
                continue;
            }
            let position = match saved.from_zero.get(&spec.name) {
                // Rows are in files: the restore goes on behind them, as on a real disk.
                Some(Some(progress)) => {
                    if let Some(store) = state.stores.get_mut(StoreId(id).index()) {
                        store.from_zero = true;
                        store.in_files = Some(*progress);
                        store.bulk.has_files = true;
                    }
                    Some(*progress)
                }
                Some(None) => None,
                None => saved.positions.get(&spec.name).copied(),
            };
            state.metadata.set_store(StoreId(id), position);
        }
        state.metadata.input_offsets = saved.input_offsets;
        state.metadata.operator_times = saved.operator_times;
        state.bulk_bytes = opened.file_bytes().unwrap_or(state.bulk_bytes);
        state.disk = Some(opened);
        Ok(state)
    }

    pub(super) fn check_disk(&self) -> Result<(), StateError> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.check_writable())
    }

    /// Writes all persistent stores and the metadata through; a copy of a store shares its rows.
    pub(super) fn save(&self) {
        let Some(disk) = &self.disk else { return };
        let mut saved = SavedTask {
            input_offsets: self.metadata.input_offsets.clone(),
            operator_times: self.metadata.operator_times.clone(),
            ..SavedTask::default()
        };
        for (((spec, place), store), metadata) in self.shape.stores.iter().zip(&self.stores).zip(&self.metadata.stores)
        {
            if !spec.persistent {
                continue;
            }
            if let Place::Memory(number) = place {
                let rows = self.published.read(|committed| committed.stores.get(*number).cloned());
                saved.rows.insert(spec.name.clone(), rows.unwrap_or_default());
            }
            if store.from_zero {
                saved.from_zero.insert(spec.name.clone(), store.in_files);
            }
            if let Some(metadata) = metadata {
                saved.positions.insert(spec.name.clone(), *metadata);
            }
        }
        disk.save(saved);
    }
}
