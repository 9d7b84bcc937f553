//! Task folders: listing them and removing those that nobody has used for long (`state.cleanup.delay.ms`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StateDirectory;
use super::files::names;
use crate::error::StateError;

/// Folders on their way out: renamed first, so that a crash leaves no half-removed database under a task's name.
const REMOVED: &str = ".removed-";
const BROKEN: &str = ".broken-";

/// A task's folder on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskDirectory {
    /// The task's name.
    pub task: String,
    /// The folder.
    pub path: PathBuf,
    /// Wall-clock time of the last change of any of its files, milliseconds since the Unix epoch.
    pub changed_at_ms: i64,
    /// The task is open in this process.
    pub open: bool,
    /// A database that could not be opened and was put aside.
    pub set_aside: bool,
}

impl StateDirectory {
    /// The task folders on disk, those put aside included, by name.
    ///
    /// # Errors
    /// The directory could not be read.
    pub fn task_directories(&self) -> Result<Vec<TaskDirectory>, StateError> {
        let open = self.open_tasks().clone();
        let mut found = Vec::new();
        for name in names(&self.folder)? {
            let path = self.folder.join(&name);
            if !path.is_dir() || name.contains(REMOVED) {
                continue;
            }
            let (task, set_aside) = match name.split_once(BROKEN) {
                Some((task, _)) => (task.to_owned(), true),
                None => (name, false),
            };
            let changed_at_ms = changed_at_ms(&path)?;
            found.push(TaskDirectory {
                open: !set_aside && open.contains(&task),
                task,
                path,
                changed_at_ms,
                set_aside,
            });
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Removes the folders of tasks that are not open here and were not changed for `delay_ms`
    /// (`state.cleanup.delay.ms`), and databases put aside that long ago. Returns what was removed.
    ///
    /// # Errors
    /// A folder could not be read or removed.
    pub fn clean_up(self: &Arc<Self>, now_ms: i64, delay_ms: i64) -> Result<Vec<PathBuf>, StateError> {
        let mut removed = Vec::new();
        for directory in self.task_directories()? {
            if directory.open || now_ms.saturating_sub(directory.changed_at_ms) <= delay_ms {
                continue;
            }
            // A task that is opened in this moment is in use after all.
            let Ok(_lease) = self.lease(&directory.task) else {
                continue;
            };
            remove(&directory.path)?;
            tracing::info!(path = %directory.path.display(), "state unused for longer than state.cleanup.delay.ms is removed");
            removed.push(directory.path);
        }
        Ok(removed)
    }

    /// Removes the folder of one task, on request (Java: `KafkaStreams.cleanUp`).
    ///
    /// # Errors
    /// [`StateError::TaskBusy`] while the task is open; or the folder could not be removed.
    pub fn remove_task(self: &Arc<Self>, task: &str) -> Result<(), StateError> {
        let _lease = self.lease(task)?;
        let path = self.folder.join(task);
        if path.is_dir() { remove(&path) } else { Ok(()) }
    }
}

/// The newest change among a folder's own time and its files'.
fn changed_at_ms(folder: &Path) -> Result<i64, StateError> {
    let mut newest = 0;
    let children = names(folder)?.into_iter().map(|name| folder.join(name));
    for path in children.chain([folder.to_path_buf()]) {
        let changed = match path.metadata().and_then(|metadata| metadata.modified()) {
            Ok(changed) => changed,
            // Background work of the database may remove a file at any time.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(StateError::io("read", &path, error)),
        };
        let age = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        newest = newest.max(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    }
    Ok(newest)
}

fn remove(path: &Path) -> Result<(), StateError> {
    let aside = rename_aside(path, REMOVED)?;
    std::fs::remove_dir_all(&aside).map_err(|error| StateError::io("remove", &aside, error))
}

/// Renames a folder to the first free name with this ending and a number.
fn rename_aside(path: &Path, ending: &str) -> Result<PathBuf, StateError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free = (1_u32..)
        .map(|number| path.with_file_name(format!("{name}{ending}{number}")))
        .find(|path| !path.exists());
    let aside = free.unwrap_or_else(|| path.with_file_name(format!("{name}{ending}")));
    std::fs::rename(path, &aside).map_err(|error| StateError::io("rename", path, error))?;
    Ok(aside)
}

/// Puts a database aside that cannot be opened; nothing of it is deleted.
#[cfg(feature = "rocksdb")]
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, StateError> {
    rename_aside(path, BROKEN)
}

/// Finishes removals that a crash interrupted.
pub(super) fn remove_leftovers(folder: &Path) -> Result<(), StateError> {
    for name in names(folder)?.into_iter().filter(|name| name.contains(REMOVED)) {
        let path = folder.join(name);
        std::fs::remove_dir_all(&path).map_err(|error| StateError::io("remove", &path, error))?;
    }
    Ok(())
}
