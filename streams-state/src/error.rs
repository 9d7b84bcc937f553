//! What can go wrong with local state, named for the decision it forces.

use std::path::{Path, PathBuf};

/// A boxed source error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// An error of the state layer. Nothing on disk was changed by a call that returned one of the directory errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Another process holds the application directory: stop, or use another `state.dir`.
    #[error(
        "{} is in use by {holder}: two processes must not share it; give each its own state.dir, or stop the other one",
        path.display()
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as far as the lock file tells (process id and host).
        holder: String,
    },
    /// The task is open already in this process (or a query still pins it): release it first.
    #[error("state of task {task} is still open in this process: close it (and its queries) before it is opened again")]
    TaskBusy {
        /// The task.
        task: String,
    },
    /// The directory holds something that this library did not write: use another `state.dir`.
    #[error("{} holds {found}, which this library did not write: choose another state.dir, or move it away", path.display())]
    Foreign {
        /// The directory or file.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// Written by a newer version: upgrade, or use another `state.dir`.
    #[error(
        "{} has state format {found}, this version reads up to {known}: run the newer version, or move the directory away \
         (state is then restored from the changelogs)",
        path.display()
    )]
    NewerFormat {
        /// The marker file or database.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format this version knows.
        known: u32,
    },
    /// `state.dir` points into an application directory of Kafka Streams for Java.
    #[error(
        "{} is a directory of Kafka Streams for Java ({found}): local files are never shared with Java; \
         set state.dir to its parent or to another folder",
        path.display()
    )]
    JavaDirectory {
        /// The directory.
        path: PathBuf,
        /// The file or folder that gave it away.
        found: String,
    },
    /// The file system is full: make room and start again; nothing was lost, the tail is replayed.
    #[error("no space left for {}: free some space or move state.dir to a larger volume, then start again", path.display())]
    DiskFull {
        /// The file or directory that was written.
        path: PathBuf,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The process may not read or write there.
    #[error("no permission for {}: it must be readable and writable by this user", path.display())]
    Permission {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// Another failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The storage engine failed: close the task, open it again, replay the tail (rule 1.10).
    #[error(
        "storage of task {task} failed to {action}: {source}; close and reopen the task, then replay the changelog's tail"
    )]
    Storage {
        /// The task.
        task: String,
        /// What was tried.
        action: &'static str,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The storage engine found damaged data: stop this task; the next opening puts its files aside and it is restored.
    #[error("state of task {task} in {} is damaged: {source}; the next start puts it aside and restores it", path.display())]
    Corrupt {
        /// The task.
        task: String,
        /// The task's directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// A row of the metadata family or a window row cannot be read.
    #[error("task {task} has an unreadable {what}: move its directory {} away to restore it from the changelogs", path.display())]
    Unreadable {
        /// The task.
        task: String,
        /// What could not be read.
        what: String,
        /// The task's directory; empty for in-memory state.
        path: PathBuf,
    },
    /// No such store in this task: a bug in the caller.
    #[error("task {task} has no store {store}")]
    UnknownStore {
        /// The task.
        task: String,
        /// The store's name or number.
        store: String,
    },
    /// The store is of another kind than the call or the files need.
    #[error(
        "store {store} of task {task} is a {found} store, not a {wanted} store: rename the store, or remove its state"
    )]
    WrongKind {
        /// The task.
        task: String,
        /// The store.
        store: String,
        /// What it is.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// A store's settings make no sense.
    #[error("store {store}: {reason}")]
    InvalidSpec {
        /// The store, or the task when the task's name is the problem.
        store: String,
        /// What is wrong and how to put it right.
        reason: String,
    },
    /// A window key that no window store can hold.
    #[error("store {store}: {reason}")]
    InvalidWindowKey {
        /// The store; empty when the layer does not know it.
        store: String,
        /// What is wrong.
        reason: String,
    },
    /// The task's state was closed; a query must ask its new owner.
    #[error("state of task {task} was closed here: ask again, the task may have moved")]
    Closed {
        /// The task.
        task: String,
    },
    /// Calls came in an order that the epochs do not allow: a bug in the caller.
    #[error("task {task}: {reason}")]
    EpochOrder {
        /// The task.
        task: String,
        /// What was called when.
        reason: &'static str,
    },
}

impl StateError {
    /// Names a file-system error for what it means: full, forbidden, or another failure.
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::DiskFull {
                path,
                source: source.into(),
            },
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => Self::Permission {
                path,
                source: source.into(),
            },
            _ => Self::Io {
                action,
                path,
                source: source.into(),
            },
        }
    }

    /// True when freeing resources and trying the same call again may help (disk full).
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. })
    }
}
