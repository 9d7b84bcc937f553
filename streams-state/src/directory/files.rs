//! Folder, format marker, lock, and what does not belong to us.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::StateError;

/// The newest format of the folder that this version reads.
const FORMAT: u32 = 1;
const MARKER: &str = "format";
const MARKER_TEXT: &str = "kafka streams for rust, state format ";
const LOCK: &str = "lock";
/// Files that may be there before the marker is, after a crash at the very first start.
const BEFORE_MARKER: [&str; 2] = [LOCK, "format.new"];

/// Refuses a `state.dir` that is an application's directory of Kafka Streams for Java (`StateDirectory`).
pub(super) fn refuse_java(state_dir: &Path) -> Result<(), StateError> {
    let java = |found: &str| StateError::JavaDirectory {
        path: state_dir.to_path_buf(),
        found: found.to_owned(),
    };
    if state_dir.join("kafka-streams-process-metadata").exists() {
        return Err(java("kafka-streams-process-metadata"));
    }
    for name in names(state_dir)? {
        let task = state_dir.join(&name);
        let looks_like_one = is_task_name(&name) || name == "global";
        if looks_like_one && (task.join("rocksdb").is_dir() || task.join(".checkpoint").exists()) {
            return Err(java(&name));
        }
    }
    Ok(())
}

/// `<subtopology>_<partition>`.
fn is_task_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('_')
        .is_some_and(|(subtopology, partition)| digits(subtopology) && digits(partition))
}

/// The application id becomes a folder's name.
pub(super) fn check_application_id(id: &str) -> Result<(), StateError> {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if id.is_empty() || id == "." || id == ".." || !id.chars().all(safe) {
        let reason = format!("application.id {id:?} must be made of letters, digits, '.', '_' and '-'");
        return Err(StateError::InvalidSpec {
            store: id.to_owned(),
            reason,
        });
    }
    Ok(())
}

/// True if our marker is there, false if the folder is missing or new.
pub(super) fn check_marker(folder: &Path) -> Result<bool, StateError> {
    let marker = folder.join(MARKER);
    let text = match std::fs::read_to_string(&marker) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return check_unmarked(folder),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(StateError::io("read", &marker, error)),
    };
    match marked_format(&text) {
        Some(found) if found > FORMAT => Err(StateError::NewerFormat {
            path: marker,
            found,
            known: FORMAT,
        }),
        Some(_) => Ok(true),
        None => Err(StateError::Foreign {
            path: marker,
            found: "another text than our format marker".to_owned(),
        }),
    }
}

/// The format that a marker's text names; `None` if it is another text.
pub(super) fn marked_format(text: &str) -> Option<u32> {
    let rest = text.strip_prefix(MARKER_TEXT)?;
    rest.lines().next()?.trim().parse().ok()
}

/// A marker's text.
pub(super) fn marker_text(format: u32) -> String {
    format!("{MARKER_TEXT}{format}\n")
}

fn check_unmarked(folder: &Path) -> Result<bool, StateError> {
    match names(folder)?
        .into_iter()
        .find(|name| !BEFORE_MARKER.contains(&name.as_str()))
    {
        Some(found) => Err(StateError::Foreign {
            path: folder.to_path_buf(),
            found: format!("{found:?} but no format marker"),
        }),
        None => Ok(false),
    }
}

pub(super) fn write_marker(folder: &Path) -> Result<(), StateError> {
    write_atomically(folder, MARKER, |_| Ok(marker_text(FORMAT).into_bytes()))
}

/// Writes a file so that a reader sees the old one or the new one, whole. The content may depend on the new file itself.
pub(super) fn write_atomically(
    folder: &Path,
    name: &str,
    content: impl FnOnce(&File) -> std::io::Result<Vec<u8>>,
) -> Result<(), StateError> {
    let path = folder.join(name);
    let new = folder.join(format!("{name}.new"));
    let write = || {
        let mut file = File::create(&new)?;
        let bytes = content(&file)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        // The rename itself is made durable by the folder; where folders cannot be opened, the system does it.
        File::open(folder).and_then(|folder| folder.sync_all()).or(Ok(()))
    };
    write().map_err(|error: std::io::Error| StateError::io("write", &path, error))
}

/// Makes our folder and those above it, closed to others as in Java (`rwxr-x---`).
pub(super) fn create_folder(folder: &Path) -> Result<(), StateError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o750);
    builder
        .create(folder)
        .map_err(|error| StateError::io("create", folder, error))
}

/// The lock of a directory. Dropping it unlocks, and does not leave that to the closing of the file: a child process that
/// is just being started has a copy of the open file until its own program begins, and would keep the lock that long.
#[derive(Debug)]
pub(super) struct DirectoryLock(pub(super) File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "the lock of the state directory goes with its file");
        }
    }
}

/// Takes the lock, or says who has it.
pub(super) fn lock(folder: &Path) -> Result<DirectoryLock, StateError> {
    let path = folder.join(LOCK);
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let mut file = opened.map_err(|error| StateError::io("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => {
            // For the message of the next one who tries; nothing depends on it.
            let text = format!("process {} on {}\n", std::process::id(), host_name());
            let noted = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(text.as_bytes()));
            noted.map_err(|error| StateError::io("write", &path, error))?;
            Ok(DirectoryLock(file))
        }
        Err(TryLockError::WouldBlock) => Err(StateError::Locked {
            path,
            holder: holder(&mut file),
        }),
        Err(TryLockError::Error(error)) => Err(StateError::io("lock", &path, error)),
    }
}

/// Who a lock file says has it.
pub(super) fn holder(lock: &mut impl Read) -> String {
    /// A host's name has at most 253 characters.
    const MOST_BYTES: u64 = 512;
    let mut text = Vec::new();
    // What can't be read names nobody.
    let _ = lock.take(MOST_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => line.to_owned(),
        _ => "another process".to_owned(),
    }
}

/// The host's name, as far as it can be read.
pub(super) fn host_name() -> String {
    let kernel =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = kernel
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty());
    name.or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .unwrap_or_default()
}

/// A temporary folder loses the state, or keeps it on a memory file system.
pub(super) fn temporary_folder_warning(state_dir: &Path) -> Option<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let state_dir = real(state_dir);
    let known = ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(PathBuf::from);
    let temporary = known.into_iter().chain([std::env::temp_dir()]).map(|path| real(&path));
    let found = temporary.into_iter().find(|folder| state_dir.starts_with(folder))?;
    Some(format!(
        "state.dir {} lies in {}, which may be emptied at any time: every start may have to restore all state; \
         set state.dir to a permanent folder",
        state_dir.display(),
        found.display()
    ))
}

/// Names in a folder; none if it does not exist.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, StateError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StateError::io("read", folder, error)),
    };
    entries
        .map(|entry| {
            Ok(entry
                .map_err(|error| StateError::io("read", folder, error))?
                .file_name()
                .to_string_lossy()
                .into_owned())
        })
        .collect()
}
