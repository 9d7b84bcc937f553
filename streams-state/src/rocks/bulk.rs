//! Whole files into a store, past log and memtables: for restores from zero.

use std::path::Path;

use rocksdb::{IngestExternalFileOptions, SstFileWriter};

use super::Database;
use crate::error::StateError;

/// Where files are written before the database takes them over.
const FOLDER: &str = "ingest";

impl Database {
    /// Takes over rows as one file, in the order of their keys, above every row that the store has; `None` deletes. The file
    /// is durable when this returns, and so is everything written before: a mark that a restore has begun never comes after
    /// rows of it (rule 2.9).
    pub(crate) fn ingest(&self, family: usize, rows: &[(Box<[u8]>, Option<Box<[u8]>>)]) -> Result<(), StateError> {
        if rows.is_empty() {
            return Ok(());
        }
        let folder = self.path().join(FOLDER);
        let file = folder.join(format!("{family}.sst"));
        std::fs::create_dir_all(&folder).map_err(|error| StateError::io("create", &folder, error))?;
        remove_left_over(&file)?;
        let failed = |error| self.scope.error("write a file of rows", error);
        let options = self.lease.directory().shared().family_options();
        let mut writer = SstFileWriter::create(&options);
        writer.open(&file).map_err(failed)?;
        for (key, value) in rows {
            match value {
                Some(value) => writer.put(key, value),
                None => writer.delete(key),
            }
            .map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        drop(writer);
        self.sync()?;
        let mut how = IngestExternalFileOptions::default();
        how.set_move_files(true);
        let ingested = self
            .db()
            .ingest_external_file_cf_opts(self.family(family)?, &how, vec![&file]);
        ingested.map_err(|error| self.scope.error("take over a file of rows", error))
    }
}

/// A process that was killed before the file was taken over leaves it.
fn remove_left_over(file: &Path) -> Result<(), StateError> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StateError::io("remove", file, error)),
        _ => Ok(()),
    }
}
