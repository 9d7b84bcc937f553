//! Opening a task's state on disk.

#[cfg(feature = "rocksdb")]
use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(feature = "rocksdb")]
use super::{SMALLEST_BULK, Store};
use super::{TaskState, check_specs};
use crate::directory::StateDirectory;
use crate::error::StateError;
use crate::spec::StoreSpec;

#[cfg(feature = "rocksdb")]
use crate::{
    codec::metadata::{MetadataRow, StoredLayout},
    durable::Database,
    family::{Family, Published},
    metadata::{StoreMetadata, TaskMetadata},
    rocks::RocksFamily,
    snapshot::Place,
    spec::{StoreId, StoreKind},
};

impl TaskState {
    /// Opens the state of a task: on disk if a store is persistent (and the feature `rocksdb` is on), else in memory.
    /// Stores that the task had earlier and has no more stay on disk untouched.
    ///
    /// A database that cannot be opened is renamed aside and the task starts empty: see
    /// [`TaskState::was_set_aside`]. A store that was left in the middle of a restore from zero is emptied, unless rows of
    /// it are in files: then the restore can go on behind them ([`TaskState::is_restoring_from_zero`]).
    ///
    /// # Errors
    /// The task is open in this process, a store's settings are impossible, a store changed its kind, the disk is full,
    /// access is refused, or the database fails in another way.
    pub fn open(directory: &Arc<StateDirectory>, task: &str, specs: Vec<StoreSpec>) -> Result<Self, StateError> {
        check_specs(task, &specs)?;
        let lease = directory.lease(task)?;
        #[cfg(feature = "rocksdb")]
        if specs.iter().any(|spec| spec.persistent) {
            return Self::open_database(lease, task, specs);
        }
        if specs.iter().any(|spec| spec.persistent) {
            tracing::warn!(
                task,
                "this build has no feature `rocksdb`: persistent stores are kept in memory"
            );
        }
        let mut state = Self::in_memory(task, specs)?;
        state.lease = Some(lease);
        Ok(state)
    }

    #[cfg(feature = "rocksdb")]
    fn open_database(
        lease: Arc<crate::directory::TaskLease>,
        task: &str,
        specs: Vec<StoreSpec>,
    ) -> Result<Self, StateError> {
        let durable: Vec<&str> = specs
            .iter()
            .filter(|spec| spec.persistent)
            .map(|spec| spec.name.as_str())
            .collect();
        let opened = crate::rocks::open(&lease, task, &durable)?;
        let known = Known::read(task, &opened.database)?;
        let published = Published::default();
        let (mut stores, mut places) = (Vec::new(), Vec::new());
        for spec in specs {
            let (family, place) = if spec.persistent {
                let number = places
                    .iter()
                    .filter(|(_, place)| matches!(place, Place::Durable(_)))
                    .count();
                (
                    Family::Rocks(RocksFamily::new(Arc::clone(&opened.database), number)),
                    Place::Durable(number),
                )
            } else {
                let family = published.add_store();
                let place = Place::Memory(family.number);
                (Family::Memory(family), place)
            };
            stores.push(Store::new(family));
            places.push((spec, place));
        }
        let resumable: Vec<String> = known.resumable().map(str::to_owned).collect();
        let metadata = known.settle(task, &opened.database, &mut places)?;
        for (store, (spec, _)) in stores.iter_mut().zip(&places) {
            if resumable.contains(&spec.name) {
                store.from_zero = true;
                store.bulk.has_files = true;
            }
        }
        let mut state = Self::assemble(task, stores, places, published, Some(opened.database), metadata);
        state.set_aside = opened.set_aside;
        let limit = usize::try_from(lease.directory().memory().overlay_limit()).unwrap_or(usize::MAX);
        state.bulk_bytes = (limit / 4).clamp(SMALLEST_BULK, super::LARGEST_BULK);
        state.lease = Some(lease);
        Ok(state)
    }
}

/// What the metadata family says.
#[cfg(feature = "rocksdb")]
#[derive(Debug, Default)]
struct Known {
    positions: BTreeMap<String, StoreMetadata>,
    layouts: BTreeMap<String, StoredLayout>,
    from_zero: BTreeMap<String, Option<StoreMetadata>>,
    input_offsets: BTreeMap<(String, i32), i64>,
    operator_times: BTreeMap<String, i64>,
    applied_at_ms: i64,
}

#[cfg(feature = "rocksdb")]
impl Known {
    fn read(task: &str, database: &Database) -> Result<Self, StateError> {
        let mut known = Self::default();
        database.metadata_rows(&mut |key, value| {
            match MetadataRow::decode(key, value) {
                Some(MetadataRow::Store(store, metadata)) => drop(known.positions.insert(store.to_owned(), metadata)),
                Some(MetadataRow::FromZero(store, progress)) => {
                    known.from_zero.insert(store.to_owned(), progress);
                }
                Some(MetadataRow::Layout(store, layout)) => drop(known.layouts.insert(store.to_owned(), layout)),
                Some(MetadataRow::Input(topic, partition, offset)) => {
                    known.input_offsets.insert((topic.to_owned(), partition), offset);
                }
                Some(MetadataRow::OperatorTime(operator, time_ms)) => {
                    known.operator_times.insert(operator.to_owned(), time_ms);
                }
                Some(MetadataRow::AppliedAt(time_ms)) => known.applied_at_ms = time_ms,
                None => {
                    let what = format!("metadata row {:?}", String::from_utf8_lossy(key));
                    return Err(StateError::Unreadable {
                        task: task.to_owned(),
                        what,
                        path: database.path().to_owned(),
                    });
                }
            }
            Ok(())
        })?;
        Ok(known)
    }

    /// Stores whose restore from zero goes on where it was.
    fn resumable(&self) -> impl Iterator<Item = &str> {
        let begun = self.from_zero.iter();
        begun.filter_map(|(store, progress)| progress.is_some().then_some(store.as_str()))
    }

    /// Brings specs and disk together: layouts are kept or noted, stores left in a restore from zero are emptied.
    fn settle(
        mut self,
        task: &str,
        database: &Arc<Database>,
        places: &mut [(StoreSpec, Place)],
    ) -> Result<TaskMetadata, StateError> {
        let mut metadata = TaskMetadata::empty(places.len());
        let mut batch = database.batch();
        let mut emptied = Vec::new();
        for ((spec, place), id) in places.iter_mut().zip(0_u32..) {
            let Place::Durable(family) = *place else { continue };
            match self.layouts.get(&spec.name) {
                Some(stored) => adopt_layout(task, spec, *stored)?,
                None => database.add_row(
                    &mut batch,
                    &MetadataRow::Layout(&spec.name, StoredLayout::of(spec.kind)),
                ),
            }
            let position = self.positions.remove(&spec.name);
            if let Some(Some(progress)) = self.from_zero.get(&spec.name) {
                // Not `with_task_time`: nothing was applied to this store by an epoch since.
                metadata.set_store(StoreId(id), Some(*progress));
                continue;
            }
            if self.from_zero.contains_key(&spec.name) {
                database.clear(&mut batch, family)?;
                database.remove_row(&mut batch, &MetadataRow::FromZero(&spec.name, None));
                emptied.push(family);
                continue;
            }
            metadata.set_store(StoreId(id), position.map(|position| self.with_task_time(position)));
        }
        database.write(batch)?;
        emptied.into_iter().for_each(|family| database.reclaim(family));
        metadata.input_offsets = self.input_offsets;
        metadata.operator_times = self.operator_times;
        Ok(metadata)
    }

    /// The last apply of the task counts for each of its stores.
    fn with_task_time(&self, position: StoreMetadata) -> StoreMetadata {
        StoreMetadata {
            applied_at_ms: position.applied_at_ms.max(self.applied_at_ms),
            ..position
        }
    }
}

/// A store on disk keeps the bucket width it was created with; its kind must be the same.
#[cfg(feature = "rocksdb")]
fn adopt_layout(task: &str, spec: &mut StoreSpec, stored: StoredLayout) -> Result<(), StateError> {
    match (&mut spec.kind, stored) {
        (StoreKind::KeyValue, StoredLayout::KeyValue) | (StoreKind::Expiring { .. }, StoredLayout::Expiring) => Ok(()),
        (
            StoreKind::Window {
                segment_interval_ms, ..
            },
            StoredLayout::Window {
                segment_interval_ms: created,
            },
        ) => {
            *segment_interval_ms = created;
            Ok(())
        }
        (
            StoreKind::Session {
                segment_interval_ms, ..
            },
            StoredLayout::Session {
                segment_interval_ms: created,
            },
        ) => {
            *segment_interval_ms = created;
            Ok(())
        }
        (
            StoreKind::Versioned {
                segment_interval_ms, ..
            },
            StoredLayout::Versioned {
                segment_interval_ms: created,
            },
        ) => {
            *segment_interval_ms = created;
            Ok(())
        }
        (wanted, found) => Err(StateError::WrongKind {
            task: task.to_owned(),
            store: spec.name.clone(),
            found: found.label(),
            wanted: wanted.label(),
        }),
    }
}
