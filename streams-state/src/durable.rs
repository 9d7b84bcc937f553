//! The durable side of a task: RocksDB, or, without the feature `rocksdb`, a type that has no value.

#[cfg(feature = "rocksdb")]
pub(crate) use crate::rocks::{Batch, Database, DatabaseSnapshot};

#[cfg(not(feature = "rocksdb"))]
pub(crate) use absent::{Batch, Database, DatabaseSnapshot};

#[cfg(not(feature = "rocksdb"))]
mod absent {
    use std::sync::Arc;

    use crate::codec::metadata::MetadataRow;
    use crate::error::StateError;
    use crate::overlay::Change;
    use crate::range::{Cursor, Direction, KeyRange};

    #[derive(Debug)]
    enum Never {}

    /// No database: this build keeps state in memory only.
    #[derive(Debug)]
    pub(crate) struct Database(Never);

    /// No batch either.
    #[derive(Debug)]
    pub(crate) struct Batch(Never);

    /// And nothing to take a snapshot of.
    #[derive(Debug)]
    pub(crate) struct DatabaseSnapshot(Never);

    impl Database {
        pub(crate) fn batch(&self) -> Batch {
            match self.0 {}
        }

        pub(crate) fn add(&self, _: &mut Batch, _: usize, _: Change<'_>) {
            match self.0 {}
        }

        pub(crate) fn add_row(&self, _: &mut Batch, _: &MetadataRow<'_>) {
            match self.0 {}
        }

        pub(crate) fn remove_row(&self, _: &mut Batch, _: &MetadataRow<'_>) {
            match self.0 {}
        }

        pub(crate) fn clear(&self, _: &mut Batch, _: usize) -> Result<(), StateError> {
            match self.0 {}
        }

        pub(crate) fn write(&self, _: Batch) -> Result<(), StateError> {
            match self.0 {}
        }

        pub(crate) fn reclaim(self: &Arc<Self>, _: usize) {
            match self.0 {}
        }

        pub(crate) fn ingest(&self, _: usize, _: &[(Box<[u8]>, Option<Box<[u8]>>)]) -> Result<(), StateError> {
            match self.0 {}
        }

        pub(crate) fn snapshot(self: &Arc<Self>) -> DatabaseSnapshot {
            match self.0 {}
        }

        pub(crate) fn property(&self, _: usize, _: &str) -> Option<u64> {
            match self.0 {}
        }
    }

    impl DatabaseSnapshot {
        pub(crate) fn get(&self, _: usize, _: &[u8], _: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
            match self.0 {}
        }

        pub(crate) fn cursor(
            self: &Arc<Self>,
            _: usize,
            _: &KeyRange,
            _: Direction,
        ) -> Result<Box<dyn Cursor>, StateError> {
            match self.0 {}
        }
    }
}
