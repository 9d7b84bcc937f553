//! All state of one task: an overlay per store above one database, and the metadata that is written with it.

mod bulk;
mod epoch;
mod expiring;
mod gathered;
mod on_disk;
mod open;
mod restore;
mod sessions;
mod versions;
mod view;
mod windows;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::durable::Database;
use crate::error::StateError;
use crate::family::{Family, Published};
use crate::memory_disk::DiskTask;
use crate::metadata::{StoreMetadata, TaskMetadata};
use crate::overlay::Overlay;
use crate::range::{Direction, KeyRange, RangeIter};
use crate::snapshot::{Place, Shape, StateReader, StateSnapshot};
use crate::spec::{StoreId, StoreSpec};
use crate::store::KeyValueStore;

pub use view::StoreView;

/// The rows of one file of a restore from zero hold at most so much memory, and at least so much, within the bound of the
/// process.
const LARGEST_BULK: usize = 32 << 20;
#[cfg(feature = "rocksdb")]
const SMALLEST_BULK: usize = 1 << 20;

/// All state of one task.
///
/// Reads see the open epoch, then the frozen one, then the committed base. The state belongs to one thread; other
/// threads read what is committed through [`TaskState::reader`].
#[derive(Debug)]
pub struct TaskState {
    shape: Arc<Shape>,
    stores: Vec<Store>,
    published: Published,
    database: Option<Arc<Database>>,
    /// Tests only: in-memory rows that outlive this value.
    disk: Option<DiskTask>,
    metadata: TaskMetadata,
    /// An epoch was frozen, with rows or without.
    frozen: bool,
    set_aside: Option<PathBuf>,
    /// Rows of a restore from zero are written as a file when they hold so much memory.
    bulk_bytes: usize,
    alive: Arc<()>,
    /// Keeps the task from being opened twice in this process; the database holds one of its own.
    lease: Option<Arc<crate::directory::TaskLease>>,
}

#[derive(Debug)]
struct Store {
    overlay: Overlay<Family>,
    /// Buckets below this one were dropped already (window stores).
    expired_below: u64,
    /// No row lies in a bucket below this one, so that looking for dead buckets does not pass what was deleted before.
    rows_from: u64,
    /// Being restored from zero.
    from_zero: bool,
    /// Rows of that restore that are in no file yet.
    bulk: bulk::BulkRows,
    /// On a disk in memory: how far the rows go that are in files.
    in_files: Option<StoreMetadata>,
}

impl TaskState {
    /// State in memory, gone with the process: for the test driver and for tasks without persistent stores.
    ///
    /// # Errors
    /// [`StateError::InvalidSpec`]: a store without a name, two of one name, or impossible settings.
    pub fn in_memory(task: &str, specs: Vec<StoreSpec>) -> Result<Self, StateError> {
        check_specs(task, &specs)?;
        let published = Published::default();
        let mut stores = Vec::with_capacity(specs.len());
        let mut places = Vec::with_capacity(specs.len());
        for spec in specs {
            let family = published.add_store();
            places.push((spec, Place::Memory(family.number)));
            stores.push(Store::new(Family::Memory(family)));
        }
        let metadata = TaskMetadata::empty(stores.len());
        Ok(Self::assemble(task, stores, places, published, None, metadata))
    }

    fn assemble(
        task: &str,
        stores: Vec<Store>,
        places: Vec<(StoreSpec, Place)>,
        published: Published,
        database: Option<Arc<Database>>,
        metadata: TaskMetadata,
    ) -> Self {
        let shape = Arc::new(Shape {
            task: task.to_owned(),
            stores: places,
        });
        published.write(|committed| committed.input_offsets = Arc::new(metadata.input_offsets.clone()));
        Self {
            shape,
            stores,
            published,
            database,
            disk: None,
            metadata,
            frozen: false,
            set_aside: None,
            bulk_bytes: LARGEST_BULK,
            alive: Arc::new(()),
            lease: None,
        }
    }

    /// The task's name, for example `0_1`.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.shape.task
    }

    /// The store of this name.
    #[must_use]
    pub fn store_id(&self, name: &str) -> Option<StoreId> {
        self.shape.id(name)
    }

    /// The stores, in the order of their numbers. A window store on disk shows the bucket width it was created with.
    pub fn specs(&self) -> impl Iterator<Item = (StoreId, &StoreSpec)> {
        (0_u32..)
            .map(StoreId)
            .zip(self.shape.stores.iter().map(|(spec, _)| spec))
    }

    /// True when the store's committed rows survive the process.
    #[must_use]
    pub fn is_persistent(&self, id: StoreId) -> bool {
        matches!(self.shape.store(id), Ok((_, Place::Durable(_))))
    }

    /// Where a database that could not be opened was put, when this task had to start empty because of it.
    #[must_use]
    pub fn was_set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Lends the value of a key to `read`, called once: `None` if there is none. At most one read of the storage, and
    /// no copy.
    ///
    /// # Errors
    /// Unknown store, a window store, or the storage could not be read.
    pub fn get(&self, id: StoreId, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        self.shape.key_value(id)?;
        self.store(id)?.overlay.get(key, read)
    }

    /// A copy of the value of a key.
    ///
    /// # Errors
    /// As [`TaskState::get`].
    pub fn get_vec(&self, id: StoreId, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let mut copy = None;
        self.get(id, key, &mut |value| copy = value.map(<[u8]>::to_vec))?;
        Ok(copy)
    }

    /// Sets the value of a key in the open epoch; `None` deletes it.
    ///
    /// # Errors
    /// Unknown store, or a window store.
    pub fn put(&mut self, id: StoreId, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        self.shape.key_value(id)?;
        self.store_mut(id)?.overlay.put(key, value)
    }

    /// Rows between two bounds, as they are now: later writes, applies and drops do not disturb the iterator.
    ///
    /// # Errors
    /// As [`TaskState::get`].
    pub fn range(
        &mut self,
        id: StoreId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        self.shape.key_value(id)?;
        self.store_mut(id)?.overlay.range(lower, upper, direction)
    }

    /// Rows whose key begins with `prefix`, as they are now.
    ///
    /// # Errors
    /// As [`TaskState::get`].
    pub fn prefix(&mut self, id: StoreId, prefix: &[u8], direction: Direction) -> Result<RangeIter, StateError> {
        self.shape.key_value(id)?;
        self.store_mut(id)?
            .overlay
            .range_of(&KeyRange::prefix(prefix), direction)
    }

    /// A store as an object, for code that is written against [`KeyValueStore`]. For a window store these are its local
    /// rows.
    ///
    /// # Errors
    /// Unknown store.
    pub fn view(&mut self, id: StoreId) -> Result<StoreView<'_>, StateError> {
        let store = self.store_mut(id)?;
        Ok(StoreView {
            overlay: &mut store.overlay,
            rows_from: &mut store.rows_from,
        })
    }

    /// How far the store has applied its changelog; `None` if that is not known (new, or in memory after a start).
    #[must_use]
    pub fn store_metadata(&self, id: StoreId) -> Option<&StoreMetadata> {
        self.metadata.stores.get(id.index())?.as_ref()
    }

    /// Next offsets of the inputs, (topic, partition), at the last apply.
    #[must_use]
    pub fn input_offsets(&self) -> &BTreeMap<(String, i32), i64> {
        &self.metadata.input_offsets
    }

    /// Operator times by name at the last apply, milliseconds of event time.
    #[must_use]
    pub fn operator_times(&self) -> &BTreeMap<String, i64> {
        &self.metadata.operator_times
    }

    /// The committed state now.
    ///
    /// # Errors
    /// Never for an open task; the signature is that of [`StateReader::snapshot`].
    pub fn snapshot(&self) -> Result<StateSnapshot, StateError> {
        self.reader().snapshot()
    }

    /// Takes snapshots from other threads.
    #[must_use]
    pub fn reader(&self) -> StateReader {
        StateReader {
            shape: Arc::clone(&self.shape),
            published: self.published.clone(),
            database: self.database.as_ref().map(Arc::downgrade),
            alive: Arc::downgrade(&self.alive),
        }
    }

    /// Rows of a store, about: exact in memory, RocksDB's estimate on disk, plus what the epochs hold.
    ///
    /// # Errors
    /// Unknown store.
    pub fn approximate_num_entries(&self, id: StoreId) -> Result<u64, StateError> {
        let store = self.store(id)?;
        let committed = match store.overlay.base() {
            Family::Memory(family) => family.len() as u64,
            #[cfg(feature = "rocksdb")]
            Family::Rocks(_) => self.property(id, "estimate-num-keys").unwrap_or_default(),
        };
        Ok(committed + store.overlay.rows() as u64)
    }

    /// A property of the store's database by its metric's name in Kafka Streams, such as `estimate-num-keys` or
    /// `size-all-mem-tables`; `None` for in-memory stores and unknown names.
    #[must_use]
    pub fn property(&self, id: StoreId, name: &str) -> Option<u64> {
        match (self.shape.store(id).ok()?.1, &self.database) {
            (Place::Durable(family), Some(database)) => database.property(family, name),
            _ => None,
        }
    }

    /// Closes the state; writes of epochs that were not applied are gone. Snapshots that live on keep the files open.
    ///
    /// # Errors
    /// [`StateError::TaskBusy`] if a snapshot or iterator still keeps the files: the task can be opened again only when
    /// that is gone.
    pub fn close(self) -> Result<(), StateError> {
        let Self {
            shape,
            database,
            stores,
            lease,
            ..
        } = self;
        #[cfg(feature = "rocksdb")]
        if let Some(database) = &database {
            database.sync()?;
        }
        drop((stores, lease));
        match database.and_then(Arc::into_inner) {
            // `into_inner` gives the database to the last owner only.
            None if shape.stores.iter().any(|(_, place)| matches!(place, Place::Durable(_))) => {
                Err(StateError::TaskBusy {
                    task: shape.task.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    #[cfg(all(test, feature = "rocksdb"))]
    pub(crate) fn set_bulk_bytes(&mut self, bytes: usize) {
        self.bulk_bytes = bytes;
    }

    #[cfg(all(test, feature = "rocksdb"))]
    pub(crate) fn database(&self) -> Option<&Database> {
        self.database.as_deref()
    }

    fn store(&self, id: StoreId) -> Result<&Store, StateError> {
        self.stores.get(id.index()).ok_or_else(|| unknown(&self.shape, id))
    }

    fn store_mut(&mut self, id: StoreId) -> Result<&mut Store, StateError> {
        self.stores.get_mut(id.index()).ok_or_else(|| unknown(&self.shape, id))
    }

    fn out_of_order(&self, reason: &'static str) -> StateError {
        StateError::EpochOrder {
            task: self.shape.task.clone(),
            reason,
        }
    }
}

impl Store {
    fn new(family: Family) -> Self {
        Self {
            overlay: Overlay::new(family),
            expired_below: 0,
            rows_from: 0,
            from_zero: false,
            bulk: bulk::BulkRows::default(),
            in_files: None,
        }
    }
}

fn unknown(shape: &Shape, id: StoreId) -> StateError {
    StateError::UnknownStore {
        task: shape.task.clone(),
        store: id.index().to_string(),
    }
}

/// The task's name is a folder's name, store names are unique.
fn check_specs(task: &str, specs: &[StoreSpec]) -> Result<(), StateError> {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if task.is_empty() || !task.chars().all(safe) {
        let reason = "a task's name is made of letters, digits, '_' and '-'".to_owned();
        return Err(StateError::InvalidSpec {
            store: task.to_owned(),
            reason,
        });
    }
    let mut names = BTreeSet::new();
    for spec in specs {
        spec.check()?;
        if !names.insert(spec.name.as_str()) {
            let reason = "two stores of this name in one task: rename one".to_owned();
            return Err(StateError::InvalidSpec {
                store: spec.name.clone(),
                reason,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
