//! Opening a task's database; one that cannot be opened is put aside, never deleted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use rocksdb::{ColumnFamilyDescriptor, DB, DEFAULT_COLUMN_FAMILY_NAME, ReadOptions};

use super::error::{CORRUPT, OpenError, Scope};
use super::{Database, Families, OpenDb, Opened};
use crate::directory::TaskLease;
use crate::error::StateError;

/// Opens the database of a task with a family for each store, making what is missing.
pub(crate) fn open(lease: &Arc<TaskLease>, task: &str, stores: &[&str]) -> Result<Opened, StateError> {
    let path = lease.directory().folder().join(task);
    let scope = Scope {
        task: task.to_owned(),
        path,
    };
    match try_open(lease, &scope, stores) {
        Ok(database) => Ok(Opened {
            database,
            set_aside: None,
        }),
        Err(OpenError::Refused(error)) => Err(error),
        Err(OpenError::Broken(reason)) => {
            let aside = crate::directory::set_aside(&scope.path)?;
            lease.directory().count_set_aside();
            tracing::error!(task, path = %scope.path.display(), aside = %aside.display(), reason,
                "state cannot be opened: it is put aside and restored from the changelogs");
            match try_open(lease, &scope, stores) {
                Ok(database) => Ok(Opened {
                    database,
                    set_aside: Some(aside),
                }),
                Err(OpenError::Refused(error)) => Err(error),
                Err(OpenError::Broken(reason)) => Err(StateError::Storage {
                    task: task.to_owned(),
                    action: "open an empty folder",
                    source: reason.into(),
                }),
            }
        }
    }
}

fn try_open(lease: &Arc<TaskLease>, scope: &Scope, stores: &[&str]) -> Result<Arc<Database>, OpenError> {
    let shared = lease.directory().shared();
    let options = shared.database_options(lease.directory().open_task_count());
    let mut families: Vec<String> = match state_of(&scope.path)? {
        Folder::Database => DB::list_cf(&options, &scope.path).map_err(|error| scope.open_error(error))?,
        Folder::Empty => vec![DEFAULT_COLUMN_FAMILY_NAME.to_owned()],
    };
    // Families of stores that the topology has no more stay as they are.
    for family in stores.iter().map(|store| family_name(store)) {
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let descriptors = families
        .iter()
        .map(|name| ColumnFamilyDescriptor::new(name, shared.family_options()));
    let db = DB::open_cf_descriptors(&options, &scope.path, descriptors).map_err(|error| scope.open_error(error))?;
    let db = OpenDb::try_new(db, |db| {
        let handle = |name: &str| {
            let missing = || OpenError::Broken(format!("column family {name} is missing after opening"));
            db.cf_handle(name).ok_or_else(missing)
        };
        let metadata = handle(DEFAULT_COLUMN_FAMILY_NAME)?;
        let stores = stores
            .iter()
            .map(|store| handle(&family_name(store)))
            .collect::<Result<_, _>>()?;
        Ok(Families { metadata, stores })
    })?;
    Ok(Arc::new(Database {
        db,
        scope: scope.clone(),
        read_options: ReadOptions::default(),
        snapshots: AtomicUsize::new(0),
        lease: Arc::clone(lease),
    }))
}

/// The default family is the metadata's, whatever a store is called.
fn family_name(store: &str) -> String {
    format!("store-{store}")
}

enum Folder {
    Database,
    Empty,
}

/// RocksDB itself would make a new database of a folder that lost its `CURRENT`, and delete what is left in it.
fn state_of(path: &Path) -> Result<Folder, OpenError> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Folder::Empty),
        Err(error) => return Err(OpenError::Refused(StateError::io("read", path, error))),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| OpenError::Refused(StateError::io("read", path, error)))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    let has = |wanted: fn(&str) -> bool| names.iter().any(|name| wanted(name));
    if has(|name| name == CORRUPT) {
        return Err(OpenError::Broken("it was found corrupt while it was read".to_owned()));
    }
    if has(|name| name == "CURRENT") {
        return Ok(Folder::Database);
    }
    if has(|name| name.ends_with(".sst") || name.ends_with(".log") || name.starts_with("MANIFEST-")) {
        return Err(OpenError::Broken(
            "it has data files but no CURRENT: half removed".to_owned(),
        ));
    }
    Ok(Folder::Empty)
}
