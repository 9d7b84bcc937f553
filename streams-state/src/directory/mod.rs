//! What a process has on disk: `<state.dir>/<application.id>/rust-v1/` with a lock, a format marker, the identity file and
//! a folder per task. Files of Kafka Streams for Java beside it are never read and never touched.

mod cleanup;
mod files;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod identity;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::budget::MemoryBudget;
use crate::error::StateError;

pub use cleanup::TaskDirectory;
#[cfg(feature = "rocksdb")]
pub(crate) use cleanup::set_aside;
use identity::IdentityFile;
pub use identity::{IdentityOrigin, ProcessIdentity};

/// Name of our folder in the application's directory; the number is the format's.
pub(crate) const FOLDER: &str = "rust-v1";

/// Where a process keeps its state, and with how much memory.
#[derive(Debug, Clone)]
pub struct StateDirectoryConfig {
    /// `state.dir`.
    pub state_dir: PathBuf,
    /// `application.id`.
    pub application_id: String,
    /// `process.id`: an identity from outside, such as the pod's name, for where there is no volume. Must be unique in
    /// the application.
    pub process_id: Option<String>,
    /// How the memory of the process is divided.
    pub memory: MemoryBudget,
}

impl StateDirectoryConfig {
    /// With an identity of its own and the default memory.
    pub fn new(state_dir: impl Into<PathBuf>, application_id: impl Into<String>) -> Self {
        Self {
            state_dir: state_dir.into(),
            application_id: application_id.into(),
            process_id: None,
            memory: MemoryBudget::detect(),
        }
    }
}

/// The state directory of a process. Locked for life: dropping the last reference (open tasks hold one each) unlocks it.
///
/// Java counterpart: `StateDirectory`.
#[derive(Debug)]
pub struct StateDirectory {
    folder: PathBuf,
    memory: MemoryBudget,
    warnings: Vec<String>,
    identity: ProcessIdentity,
    identity_file: Mutex<IdentityFile>,
    open_tasks: Mutex<BTreeSet<String>>,
    set_aside: AtomicU64,
    #[cfg(feature = "rocksdb")]
    shared: crate::rocks::SharedMemory,
    /// Unlocks when it is dropped.
    _lock: files::DirectoryLock,
}

impl StateDirectory {
    /// Takes the application's directory for this process, making it if need be, and finds or makes its identity.
    ///
    /// # Errors
    /// Another process holds it, it is not ours, it is newer, it is Java's, the disk is full, or access is refused. Then
    /// nothing was changed but for empty folders and the lock file.
    pub fn open(config: StateDirectoryConfig) -> Result<Arc<Self>, StateError> {
        files::refuse_java(&config.state_dir)?;
        files::check_application_id(&config.application_id)?;
        let folder = config.state_dir.join(&config.application_id).join(FOLDER);
        files::check_marker(&folder)?;
        files::create_folder(&folder)?;
        let lock = files::lock(&folder)?;
        // Again, now that nobody else can be about to write it.
        if !files::check_marker(&folder)? {
            files::write_marker(&folder)?;
        }
        cleanup::remove_leftovers(&folder)?;
        let (identity_file, origin) = IdentityFile::load_or_create(&folder, config.process_id.as_deref())?;
        let identity = ProcessIdentity {
            process_id: identity_file.process_id().to_owned(),
            origin,
        };
        let mut warnings: Vec<String> = files::temporary_folder_warning(&config.state_dir).into_iter().collect();
        warnings.extend(identity.warning(&folder));
        for warning in &warnings {
            tracing::warn!(state_dir = %config.state_dir.display(), "{warning}");
        }
        Ok(Arc::new(Self {
            folder,
            #[cfg(feature = "rocksdb")]
            shared: crate::rocks::SharedMemory::new(&config.memory),
            memory: config.memory,
            warnings,
            identity,
            identity_file: Mutex::new(identity_file),
            open_tasks: Mutex::default(),
            set_aside: AtomicU64::new(0),
            _lock: lock,
        }))
    }

    /// Our folder: `<state.dir>/<application.id>/rust-v1`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How the memory of the process is divided.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Memory that block cache and memtables of all tasks use now, in bytes, by name; for metrics.
    #[must_use]
    pub fn memory_in_use(&self) -> Vec<(&'static str, u64)> {
        #[cfg(feature = "rocksdb")]
        let in_use = self.shared.in_use();
        #[cfg(not(feature = "rocksdb"))]
        let in_use = Vec::new();
        in_use
    }

    /// What the operator should know: a temporary folder, an identity that was replaced. Also logged at open.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Who this process is in its group.
    #[must_use]
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// The member id of a stream thread (numbered from 1), made and stored at the first call. To be reused only under
    /// exactly-once, where the transactional id fences a second process (rule 6.1); otherwise ask for a
    /// [new one](Self::renew_member_id).
    ///
    /// # Errors
    /// The identity file could not be written.
    pub fn member_id(&self, thread: usize) -> Result<String, StateError> {
        self.identity_file().member_id(&self.folder, thread)
    }

    /// A member id that nobody had before, stored as the thread's, and the one that the thread had before: the member of a
    /// process that is gone, since this one holds the directory's lock. Without exactly-once no transactional id fences a
    /// second process of one identity, so an id is not used again (rule 6.1); the old member can leave its group at once
    /// instead of by its session time-out.
    ///
    /// # Errors
    /// The identity file could not be written.
    pub fn renew_member_id(&self, thread: usize) -> Result<(String, Option<String>), StateError> {
        self.identity_file().renew(&self.folder, thread)
    }

    /// A member id that nobody had before, and that is stored nowhere.
    #[must_use]
    pub fn fresh_member_id() -> String {
        identity::fresh_id()
    }

    /// Stored members of threads that do not exist any more because the process has only the threads 1 to `threads` now:
    /// fence them and leave their group, then [forget](Self::forget_member) them (rule 6.2).
    #[must_use]
    pub fn surplus_members(&self, threads: usize) -> Vec<(usize, String)> {
        self.identity_file().surplus(threads)
    }

    /// Removes a member from the identity file.
    ///
    /// # Errors
    /// The identity file could not be written.
    pub fn forget_member(&self, thread: usize) -> Result<(), StateError> {
        self.identity_file().forget(&self.folder, thread)
    }

    /// Databases that could not be opened and were renamed aside since the start.
    #[must_use]
    pub fn set_aside_total(&self) -> u64 {
        self.set_aside.load(Ordering::Relaxed)
    }

    #[cfg(feature = "rocksdb")]
    pub(crate) fn count_set_aside(&self) {
        self.set_aside.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(feature = "rocksdb")]
    pub(crate) fn open_task_count(&self) -> usize {
        self.open_tasks().len()
    }

    #[cfg(feature = "rocksdb")]
    pub(crate) fn shared(&self) -> &crate::rocks::SharedMemory {
        &self.shared
    }

    /// Takes a task for one owner in this process (rule 1.4).
    pub(crate) fn lease(self: &Arc<Self>, task: &str) -> Result<Arc<TaskLease>, StateError> {
        if !self.open_tasks().insert(task.to_owned()) {
            return Err(StateError::TaskBusy { task: task.to_owned() });
        }
        Ok(Arc::new(TaskLease {
            directory: Arc::clone(self),
            task: task.to_owned(),
        }))
    }

    fn open_tasks(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.open_tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn identity_file(&self) -> std::sync::MutexGuard<'_, IdentityFile> {
        self.identity_file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a task from being opened twice in a process. Held by the task's state and by its database, which a query may
/// keep open a little longer.
#[derive(Debug)]
pub(crate) struct TaskLease {
    directory: Arc<StateDirectory>,
    task: String,
}

impl TaskLease {
    #[cfg(feature = "rocksdb")]
    pub(crate) fn directory(&self) -> &StateDirectory {
        &self.directory
    }
}

impl Drop for TaskLease {
    fn drop(&mut self) {
        self.directory.open_tasks().remove(&self.task);
    }
}

#[cfg(test)]
mod tests;
