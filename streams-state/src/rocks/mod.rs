//! One RocksDB per task: a column family per store, the default family for the metadata.

mod bulk;
#[cfg(test)]
mod bulk_tests;
#[cfg(test)]
mod crash_tests;
mod error;
mod iter;
mod open;
mod options;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timed_tests;

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rocksdb::{ColumnFamily, DB, ReadOptions, Snapshot, WriteBatch};
use self_cell::self_cell;

use crate::codec::metadata::MetadataRow;
use crate::directory::TaskLease;
use crate::error::StateError;
use crate::overlay::{Change, CommittedStore};
use crate::range::{Cursor, Direction, KeyRange, RangeIter};
use crate::store::KeyValueStore;

use error::Scope;
use iter::{RocksCursor, Source};
pub(crate) use open::open;
pub(crate) use options::SharedMemory;

/// The families' handles, looked up once.
struct Families<'db> {
    metadata: &'db ColumnFamily,
    stores: Vec<&'db ColumnFamily>,
}

self_cell!(
    struct OpenDb {
        owner: DB,
        #[covariant]
        dependent: Families,
    }
);

/// A task's database. Closed when the last iterator or snapshot of it is gone.
pub(crate) struct Database {
    db: OpenDb,
    scope: Scope,
    read_options: ReadOptions,
    /// Snapshots that live.
    snapshots: AtomicUsize,
    /// Released after the database: fields are dropped in this order.
    lease: Arc<TaskLease>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("path", &self.scope.path)
            .finish_non_exhaustive()
    }
}

/// Changes that are written together.
pub(crate) struct Batch(WriteBatch);

impl Database {
    fn db(&self) -> &DB {
        self.db.borrow_owner()
    }

    fn metadata(&self) -> &ColumnFamily {
        self.db.borrow_dependent().metadata
    }

    fn family(&self, number: usize) -> Result<&ColumnFamily, StateError> {
        let unknown = || StateError::UnknownStore {
            task: self.scope.task.clone(),
            store: number.to_string(),
        };
        self.db
            .borrow_dependent()
            .stores
            .get(number)
            .copied()
            .ok_or_else(unknown)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.scope.path
    }

    pub(crate) fn batch(&self) -> Batch {
        Batch(WriteBatch::default())
    }

    /// Adds a change of a store. A family that is not there cannot occur: families are made with the stores.
    pub(crate) fn add(&self, batch: &mut Batch, family: usize, change: Change<'_>) {
        let Ok(family) = self.family(family) else { return };
        match change {
            Change::Put(key, value) => batch.0.put_cf(family, key, value),
            Change::Delete(key) => batch.0.delete_cf(family, key),
            Change::DeleteBelow(bound) => batch.0.delete_range_cf(family, &[][..], bound),
        }
    }

    pub(crate) fn add_row(&self, batch: &mut Batch, row: &MetadataRow<'_>) {
        batch.0.put_cf(self.metadata(), row.key(), row.value());
    }

    pub(crate) fn remove_row(&self, batch: &mut Batch, row: &MetadataRow<'_>) {
        batch.0.delete_cf(self.metadata(), row.key());
    }

    /// Adds the removal of every row of a store.
    pub(crate) fn clear(&self, batch: &mut Batch, family: usize) -> Result<(), StateError> {
        if let Some(end) = self.end_of(family)? {
            batch.0.delete_range_cf(self.family(family)?, &[][..], &end);
        }
        Ok(())
    }

    /// A key above every key of a store; `None` if it has none.
    fn end_of(&self, family: usize) -> Result<Option<Vec<u8>>, StateError> {
        let mut iterator = self.db().raw_iterator_cf(self.family(family)?);
        iterator.seek_to_last();
        iterator.status().map_err(|error| self.scope.error("read", error))?;
        Ok(iterator.key().map(|last| [last, &[0]].concat()))
    }

    /// Writes a batch: all or nothing, into the log of the operating system, without fsync.
    pub(crate) fn write(&self, batch: Batch) -> Result<(), StateError> {
        let options = options::write_options();
        self.db()
            .write_opt(batch.0, &options)
            .map_err(|error| self.scope.error("write", error))
    }

    /// Gives the disk space of a cleared store back at once, if nobody can be reading it. Best effort.
    pub(crate) fn reclaim(self: &Arc<Self>, family: usize) {
        if self.snapshots.load(Ordering::Acquire) > 0 {
            return;
        }
        // Dropping whole files is durable at once; the batch that emptied the store must be so before.
        let reclaimed = self
            .db()
            .flush_wal(true)
            .map_err(|error| self.scope.error("sync", error))
            .and_then(|()| {
                let family = self.family(family)?;
                // Above every key: keys of Kafka's records are far shorter than this.
                let end = [0xff_u8; 64];
                self.db()
                    .delete_file_in_range_cf(family, &[][..], &end[..])
                    .map_err(|error| self.scope.error("reclaim", error))
            });
        if let Err(error) = reclaimed {
            tracing::debug!(task = %self.scope.task, %error, "the space of an emptied store comes back with compaction");
        }
    }

    /// Makes everything written so far durable against a power failure.
    pub(crate) fn sync(&self) -> Result<(), StateError> {
        self.db()
            .flush_wal(true)
            .map_err(|error| self.scope.error("sync", error))
    }

    /// Visits the rows of the metadata family.
    pub(crate) fn metadata_rows(
        &self,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let mut iterator = self.db().raw_iterator_cf(self.metadata());
        iterator.seek_to_first();
        while let Some((key, value)) = iterator.item() {
            visit(key, value)?;
            iterator.next();
        }
        iterator.status().map_err(|error| self.scope.error("read", error))
    }

    pub(crate) fn snapshot(self: &Arc<Self>) -> DatabaseSnapshot {
        self.snapshots.fetch_add(1, Ordering::AcqRel);
        DatabaseSnapshot(SnapshotCell::new(Arc::clone(self), |database| database.db().snapshot()))
    }

    /// A property by its metric's name in Kafka Streams.
    pub(crate) fn property(&self, family: usize, name: &str) -> Option<u64> {
        if !crate::spec::PROPERTY_NAMES.contains(&name) {
            return None;
        }
        let family = self.family(family).ok()?;
        self.db()
            .property_int_value_cf(family, &format!("rocksdb.{name}"))
            .ok()?
    }

    fn get(&self, family: usize, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        let found = self
            .db()
            .get_pinned_cf_opt(&self.family(family)?, key, &self.read_options);
        let value = found.map_err(|error| self.scope.error("read", error))?;
        read(value.as_deref());
        Ok(())
    }
}

self_cell!(
    struct SnapshotCell {
        owner: Arc<Database>,
        #[covariant]
        dependent: Snapshot,
    }
);

/// The database at one moment.
pub(crate) struct DatabaseSnapshot(SnapshotCell);

impl std::fmt::Debug for DatabaseSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DatabaseSnapshot").field(self.database()).finish()
    }
}

impl Drop for DatabaseSnapshot {
    fn drop(&mut self) {
        self.database().snapshots.fetch_sub(1, Ordering::AcqRel);
    }
}

impl DatabaseSnapshot {
    fn database(&self) -> &Database {
        self.0.borrow_owner()
    }

    pub(crate) fn get(&self, family: usize, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        let database = self.database();
        let found = self.0.borrow_dependent().get_pinned_cf(database.family(family)?, key);
        let value = found.map_err(|error| database.scope.error("read", error))?;
        read(value.as_deref());
        Ok(())
    }

    pub(crate) fn cursor(
        self: &Arc<Self>,
        family: usize,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor>, StateError> {
        Ok(Box::new(RocksCursor::new(
            Source::Snapshot(Arc::clone(self)),
            family,
            range,
            direction,
        )?))
    }
}

/// One store's family.
#[derive(Debug)]
pub(crate) struct RocksFamily {
    database: Arc<Database>,
    number: usize,
}

impl RocksFamily {
    pub(crate) fn new(database: Arc<Database>, number: usize) -> Self {
        Self { database, number }
    }
}

impl CommittedStore for RocksFamily {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        self.database.get(self.number, key, read)
    }

    fn cursor(&self, range: &KeyRange, direction: Direction) -> Result<Box<dyn Cursor>, StateError> {
        Ok(Box::new(RocksCursor::new(
            Source::Live(Arc::clone(&self.database)),
            self.number,
            range,
            direction,
        )?))
    }

    fn write(&mut self, changes: &mut dyn FnMut(&mut dyn FnMut(Change<'_>))) -> Result<(), StateError> {
        let mut batch = self.database.batch();
        changes(&mut |change| self.database.add(&mut batch, self.number, change));
        self.database.write(batch)
    }
}

/// Without an overlay: every write is a batch of its own.
impl KeyValueStore for RocksFamily {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        CommittedStore::get(self, key, read)
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        let change = value.map_or(Change::Delete(key), |value| Change::Put(key, value));
        CommittedStore::write(self, &mut |sink| sink(change))
    }

    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        let range = KeyRange::new(lower, upper);
        let cursors = if range.is_empty() {
            Vec::new()
        } else {
            vec![self.cursor(&range, direction)?]
        };
        Ok(RangeIter::merge(cursors, direction))
    }

    fn delete_below(&mut self, bound: &[u8]) -> Result<(), StateError> {
        CommittedStore::write(self, &mut |sink| sink(Change::DeleteBelow(bound)))
    }
}

/// A database that was opened, and where the one before it was put if that could not be opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) database: Arc<Database>,
    pub(crate) set_aside: Option<PathBuf>,
}
