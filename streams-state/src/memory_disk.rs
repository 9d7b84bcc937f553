//! A disk in memory: task state that outlives the [`TaskState`](crate::TaskState) which wrote it, for tests and simulations
//! that crash a process without ending one. It can refuse to be written and lose its last writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::StateError;
use crate::memory::MemoryStore;
use crate::metadata::StoreMetadata;

/// Writes of a task that a power failure can take back.
const KEPT_WRITES: usize = 4;

/// A disk in memory; clones are the same disk.
///
/// What a task applies is there in the order of its writes, as with a write-ahead log: a crash of the process loses
/// nothing of it, and [`MemoryDisk::lose_power`] takes back a number of last writes.
///
/// # Example
/// ```
/// use streams_state::{EpochMetadata, MemoryDisk, StoreSpec, TaskState};
/// let disk = MemoryDisk::default();
/// let mut state = TaskState::on_memory_disk(&disk, "0_0", vec![StoreSpec::key_value("counts")])?;
/// let counts = state.store_id("counts").unwrap();
/// state.put(counts, b"k", Some(b"1"))?;
/// state.freeze()?;
/// state.apply(&EpochMetadata::default())?;
/// state.put(counts, b"k", Some(b"2"))?;
/// drop(state); // the process ends: the open epoch is gone
/// let state = TaskState::on_memory_disk(&disk, "0_0", vec![StoreSpec::key_value("counts")])?;
/// assert_eq!(state.get_vec(counts, b"k")?, Some(b"1".to_vec()));
/// # Ok::<(), streams_state::StateError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(Arc<Mutex<Disk>>);

#[derive(Debug, Default)]
struct Disk {
    tasks: BTreeMap<String, Vec<SavedTask>>,
    open: BTreeMap<String, Weak<()>>,
    full: bool,
    failing: usize,
    file_bytes: Option<usize>,
    writes: u64,
}

/// All that is on the disk of one task at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavedTask {
    pub(crate) rows: BTreeMap<String, MemoryStore>,
    pub(crate) positions: BTreeMap<String, StoreMetadata>,
    /// Stores in the middle of a restore from zero, with how far the rows go that are in files.
    pub(crate) from_zero: BTreeMap<String, Option<StoreMetadata>>,
    pub(crate) input_offsets: BTreeMap<(String, i32), i64>,
    pub(crate) operator_times: BTreeMap<String, i64>,
}

impl MemoryDisk {
    /// From now on nothing can be written (`true`), or it can again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// The next `writes` writes fail, whatever is written, as with a device that has errors.
    pub fn fail_writes(&self, writes: usize) {
        self.lock().failing = writes;
    }

    /// Rows of a restore from zero go to the disk as a file when they hold so many bytes of memory; what is restored after
    /// this uses it. Without it files are as large as on a real disk, and a simulation would never see one.
    pub fn set_file_bytes(&self, bytes: usize) {
        self.lock().file_bytes = Some(bytes);
    }

    /// The power fails: of each task up to `writes` last writes are gone, at most 4 of them. Call it while no task is open.
    pub fn lose_power(&self, writes: usize) {
        for saved in self.lock().tasks.values_mut() {
            let kept = saved.len().saturating_sub(writes).max(1);
            saved.truncate(kept);
        }
    }

    /// Writes since the disk was made, those that were refused left out.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    pub(crate) fn open(&self, task: &str) -> Result<DiskTask, StateError> {
        let mut disk = self.lock();
        if disk.open.get(task).is_some_and(|open| open.strong_count() > 0) {
            return Err(StateError::TaskBusy { task: task.to_owned() });
        }
        let lease = Arc::new(());
        disk.open.insert(task.to_owned(), Arc::downgrade(&lease));
        Ok(DiskTask {
            disk: self.clone(),
            task: task.to_owned(),
            _lease: lease,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that is open on a disk in memory.
#[derive(Debug)]
pub(crate) struct DiskTask {
    disk: MemoryDisk,
    task: String,
    _lease: Arc<()>,
}

impl DiskTask {
    pub(crate) fn load(&self) -> SavedTask {
        let disk = self.disk.lock();
        disk.tasks
            .get(&self.task)
            .and_then(|saved| saved.last())
            .cloned()
            .unwrap_or_default()
    }

    pub(crate) fn file_bytes(&self) -> Option<usize> {
        self.disk.lock().file_bytes
    }

    /// # Errors
    /// [`StateError::DiskFull`]: nothing can be written now; [`StateError::Storage`]: this write fails.
    pub(crate) fn check_writable(&self) -> Result<(), StateError> {
        let mut disk = self.disk.lock();
        if disk.failing > 0 {
            disk.failing -= 1;
            return Err(StateError::Storage {
                task: self.task.clone(),
                action: "write",
                source: "the disk in memory was told to fail".into(),
            });
        }
        if disk.full {
            return Err(StateError::DiskFull {
                path: self.task.as_str().into(),
                source: "the disk in memory was told to be full".into(),
            });
        }
        Ok(())
    }

    pub(crate) fn save(&self, state: SavedTask) {
        let mut disk = self.disk.lock();
        disk.writes += 1;
        let saved = disk.tasks.entry(self.task.clone()).or_default();
        saved.push(state);
        if saved.len() > KEPT_WRITES + 1 {
            saved.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{EpochMetadata, StoreId, StoreSpec, TaskState};

    fn specs() -> Vec<StoreSpec> {
        vec![StoreSpec::key_value("kept"), StoreSpec::key_value("lost").in_memory()]
    }

    fn epoch(state: &mut TaskState, value: &[u8], position: i64) -> Result<(), StateError> {
        let (kept, lost) = (state.store_id("kept").unwrap(), state.store_id("lost").unwrap());
        state.put(kept, b"k", Some(value)).unwrap();
        state.put(lost, b"k", Some(value)).unwrap();
        state.freeze().unwrap();
        state.apply(&EpochMetadata {
            stores: vec![(kept, at(position)), (lost, at(position))],
            input_offsets: vec![(("in".to_owned(), 0), position)],
            ..EpochMetadata::default()
        })
    }

    fn at(position: i64) -> StoreMetadata {
        StoreMetadata {
            changelog_topic_id: None,
            position,
            own_commit: true,
            applied_at_ms: 0,
        }
    }

    fn seen(disk: &MemoryDisk) -> (Option<Vec<u8>>, Option<i64>, Option<i64>) {
        let state = TaskState::on_memory_disk(disk, "0_0", specs()).unwrap();
        let (kept, lost) = (state.store_id("kept").unwrap(), state.store_id("lost").unwrap());
        assert_eq!(state.get_vec(lost, b"k").unwrap(), None);
        assert_eq!(state.store_metadata(lost), None);
        let position = state.store_metadata(kept).map(|metadata| metadata.position);
        let input = state.input_offsets().get(&("in".to_owned(), 0)).copied();
        (state.get_vec(kept, b"k").unwrap(), position, input)
    }

    #[test]
    fn rows_and_positions_of_persistent_stores_outlive_the_state() {
        let disk = MemoryDisk::default();
        epoch(&mut TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap(), b"1", 7).unwrap();
        assert_eq!(seen(&disk), (Some(b"1".to_vec()), Some(7), Some(7)));
    }

    #[test]
    fn a_full_disk_refuses_the_whole_write() {
        let disk = MemoryDisk::default();
        let mut state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        epoch(&mut state, b"1", 7).unwrap();
        disk.set_full(true);
        assert!(epoch(&mut state, b"2", 9).unwrap_err().is_disk_full());
        drop(state);
        assert_eq!(seen(&disk), (Some(b"1".to_vec()), Some(7), Some(7)));
    }

    #[test]
    fn a_write_that_fails_changes_nothing_and_the_next_one_succeeds() {
        let disk = MemoryDisk::default();
        let mut state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        disk.fail_writes(1);
        let error = epoch(&mut state, b"1", 7).unwrap_err();
        assert!(matches!(error, StateError::Storage { .. }), "{error}");
        drop(state);
        assert_eq!(seen(&disk), (None, None, None));
        epoch(&mut TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap(), b"2", 9).unwrap();
        assert_eq!(seen(&disk), (Some(b"2".to_vec()), Some(9), Some(9)));
    }

    #[test]
    fn rule_2_9_a_restore_from_zero_goes_on_behind_the_rows_that_are_in_files() {
        let disk = MemoryDisk::default();
        disk.set_file_bytes(100);
        let mut state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        let kept: StoreId = state.store_id("kept").unwrap();
        state.begin_full_restore(kept).unwrap();
        for (key, position) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
            state
                .restore(kept, [(&key[..], Some(&[7_u8; 60][..]))], at(position))
                .unwrap();
        }
        drop(state); // the first record was enough for a file, and so were the others
        let mut state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        assert!(state.is_restoring_from_zero(kept).unwrap());
        assert_eq!(state.store_metadata(kept), Some(&at(3)));
        state.restore(kept, [(&b"a"[..], None)], at(4)).unwrap();
        state.finish_full_restore(kept, at(4)).unwrap();
        drop(state);
        let state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        let rows = [b"a", b"b", b"c"].map(|key| state.get_vec(kept, key).unwrap().is_some());
        assert_eq!((rows, state.store_metadata(kept)), ([false, true, true], Some(&at(4))));
    }

    #[test]
    fn lost_power_takes_back_whole_writes() {
        let disk = MemoryDisk::default();
        let mut state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        for (value, position) in [(b"1", 2), (b"2", 4), (b"3", 6)] {
            epoch(&mut state, value, position).unwrap();
        }
        drop(state);
        disk.lose_power(2);
        assert_eq!(seen(&disk), (Some(b"1".to_vec()), Some(2), Some(2)));
        assert_eq!(disk.writes(), 3);
    }

    #[test]
    fn a_task_is_open_once() {
        let disk = MemoryDisk::default();
        let state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        let again = TaskState::on_memory_disk(&disk, "0_0", specs());
        assert!(matches!(again, Err(StateError::TaskBusy { .. })));
        drop(state);
        assert!(TaskState::on_memory_disk(&disk, "0_0", specs()).is_ok());
    }

    #[test]
    fn a_store_left_in_the_middle_of_a_restore_from_zero_starts_empty() {
        let disk = MemoryDisk::default();
        let mut state = TaskState::on_memory_disk(&disk, "0_0", specs()).unwrap();
        epoch(&mut state, b"1", 7).unwrap();
        let kept: StoreId = state.store_id("kept").unwrap();
        state.begin_full_restore(kept).unwrap();
        state.restore(kept, [(&b"k"[..], Some(&b"half"[..]))], at(3)).unwrap();
        drop(state);
        assert_eq!(seen(&disk), (None, None, Some(7)));
    }
}
