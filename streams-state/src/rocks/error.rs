//! RocksDB's errors, named for what they mean.

use std::path::PathBuf;

use rocksdb::{Error, ErrorKind};

use crate::error::StateError;

/// Which database an error belongs to.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) task: String,
    pub(super) path: PathBuf,
}

/// A file in the database's folder that says: found corrupt while it was read. The next opening puts the folder aside.
pub(super) const CORRUPT: &str = "found-corrupt";

impl Scope {
    /// The error of a read or write of an open database.
    pub(super) fn error(&self, action: &'static str, error: Error) -> StateError {
        let path = self.path.clone();
        let text = error.as_ref();
        if is_full(text) {
            return StateError::DiskFull {
                path,
                source: error.into(),
            };
        }
        if is_forbidden(text) {
            return StateError::Permission {
                path,
                source: error.into(),
            };
        }
        if error.kind() == ErrorKind::Corruption {
            // If this fails, the next start meets the same error and tries again.
            let noted = std::fs::write(self.path.join(CORRUPT), format!("{error}\n"));
            tracing::error!(task = %self.task, path = %path.display(), %error, noted = noted.is_ok(),
                "state is corrupt: the next start puts it aside and restores it");
            return StateError::Corrupt {
                task: self.task.clone(),
                path,
                source: error.into(),
            };
        }
        StateError::Storage {
            task: self.task.clone(),
            action,
            source: error.into(),
        }
    }
}

/// Why a database could not be opened.
pub(super) enum OpenError {
    /// Its files are damaged or incomplete: to be put aside.
    Broken(String),
    /// Anything else: nothing is touched.
    Refused(StateError),
}

impl Scope {
    pub(super) fn open_error(&self, error: Error) -> OpenError {
        let path = self.path.clone();
        let text = error.as_ref().to_owned();
        if is_full(&text) {
            return OpenError::Refused(StateError::DiskFull {
                path,
                source: error.into(),
            });
        }
        if is_forbidden(&text) {
            return OpenError::Refused(StateError::Permission {
                path,
                source: error.into(),
            });
        }
        // Our own lock is held, so whoever holds RocksDB's came around it (a tool, a restored lock).
        if text.contains("lock hold by") || text.contains("While lock file") {
            return OpenError::Refused(StateError::Locked {
                path,
                holder: "another process (RocksDB's LOCK)".to_owned(),
            });
        }
        let missing = error.kind() == ErrorKind::IOError && text.contains("No such file or directory");
        if missing || error.kind() == ErrorKind::Corruption {
            return OpenError::Broken(text);
        }
        OpenError::Refused(StateError::Storage {
            task: self.task.clone(),
            action: "open",
            source: error.into(),
        })
    }
}

pub(super) fn is_full(text: &str) -> bool {
    text.contains("No space left on device") || text.contains("Disk quota exceeded")
}

pub(super) fn is_forbidden(text: &str) -> bool {
    ["Permission denied", "Operation not permitted", "Read-only file system"]
        .iter()
        .any(|cause| text.contains(cause))
}
