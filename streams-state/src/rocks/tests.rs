#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::conformance::{self, TaskUnderTest, tested_specs};
use crate::{
    Direction, EpochMetadata, MemoryBudget, Overlay, PROPERTY_NAMES, StateDirectory, StateDirectoryConfig, StateError,
    StoreKind, StoreMetadata, StoreSpec, TaskState, WindowLayout, Windowed,
};

use super::{Opened, RocksFamily};

pub(super) fn directory(root: &std::path::Path) -> Arc<StateDirectory> {
    let config = StateDirectoryConfig {
        memory: MemoryBudget::of(64 << 20),
        ..StateDirectoryConfig::new(root, "app")
    };
    StateDirectory::open(config).unwrap()
}

struct Home {
    root: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn open(&self) -> TaskState {
        self.try_open(vec![StoreSpec::key_value("counts")]).unwrap()
    }

    fn try_open(&self, specs: Vec<StoreSpec>) -> Result<TaskState, StateError> {
        TaskState::open(&directory(self.root.path()), "0_0", specs)
    }

    fn task(&self) -> PathBuf {
        self.root.path().join("app/rust-v1/0_0")
    }
}

fn position(position: i64) -> StoreMetadata {
    StoreMetadata {
        changelog_topic_id: None,
        position,
        own_commit: false,
        applied_at_ms: 0,
    }
}

fn commit(state: &mut TaskState, key: &[u8], value: Option<&[u8]>, at: i64) {
    let id = state.store_id("counts").unwrap();
    state.put(id, key, value).unwrap();
    state.freeze().unwrap();
    state
        .apply(&EpochMetadata {
            stores: vec![(id, position(at))],
            ..EpochMetadata::default()
        })
        .unwrap();
}

/// A family of its own in one shared database, so that a random run costs no opening.
pub(super) struct Families {
    _root: tempfile::TempDir,
    opened: Opened,
}

impl Families {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let lease = directory(root.path()).lease("0_0").unwrap();
        let opened = super::open(&lease, "0_0", &["a"]).unwrap();
        Self { _root: root, opened }
    }

    pub(super) fn emptied(&self) -> RocksFamily {
        let mut batch = self.opened.database.batch();
        self.opened.database.clear(&mut batch, 0).unwrap();
        self.opened.database.write(batch).unwrap();
        RocksFamily::new(Arc::clone(&self.opened.database), 0)
    }
}

#[test]
fn rocksdb_conforms() {
    let families = Families::new();
    conformance::key_value_store(128, || families.emptied()).unwrap();
}

#[test]
fn an_overlay_over_rocksdb_conforms() {
    let families = Families::new();
    conformance::key_value_store(128, || Overlay::new(families.emptied())).unwrap();
    let layout = WindowLayout {
        segment_interval_ms: 10,
        retain_duplicates: false,
    };
    conformance::window_store(128, false, || Windowed::new(Overlay::new(families.emptied()), layout)).unwrap();
}

struct OnDisk {
    home: Home,
    directory: Option<Arc<StateDirectory>>,
    persistent: [bool; 3],
}

impl TaskUnderTest for OnDisk {
    fn open(&mut self) -> Result<TaskState, StateError> {
        let directory = self.directory.get_or_insert_with(|| directory(self.home.root.path()));
        TaskState::open(directory, "0_0", tested_specs(self.persistent))
    }

    fn survives(&self) -> bool {
        self.persistent == [true; 3]
    }
}

#[test]
fn a_task_on_disk_conforms_over_restarts() {
    conformance::epochs(48, || OnDisk {
        home: Home::new(),
        directory: None,
        persistent: [true; 3],
    })
    .unwrap();
}

#[test]
fn a_task_half_on_disk_half_in_memory_conforms() {
    let make = || OnDisk {
        home: Home::new(),
        directory: None,
        persistent: [true, false, true],
    };
    conformance::epochs(48, make).unwrap();
}

#[test]
fn rule_2_6_an_in_memory_store_beside_rocksdb_forgets_its_position_with_its_rows() {
    let home = Home::new();
    let specs = || vec![StoreSpec::key_value("disk"), StoreSpec::key_value("memory").in_memory()];
    let mut state = home.try_open(specs()).unwrap();
    let (disk, memory) = (state.store_id("disk").unwrap(), state.store_id("memory").unwrap());
    state.freeze().unwrap();
    let stores = vec![(disk, position(5)), (memory, position(5))];
    state
        .apply(&EpochMetadata {
            stores,
            ..EpochMetadata::default()
        })
        .unwrap();
    state.close().unwrap();
    let state = home.try_open(specs()).unwrap();
    assert_eq!(state.store_metadata(disk).map(|metadata| metadata.position), Some(5));
    assert_eq!(state.store_metadata(memory), None);
}

#[test]
fn a_store_left_in_a_restore_from_zero_begins_empty_again() {
    let home = Home::new();
    let mut state = home.open();
    let id = state.store_id("counts").unwrap();
    commit(&mut state, b"old", Some(b"1"), 3);
    state.begin_full_restore(id).unwrap();
    state
        .restore(id, [(&b"half"[..], Some(&b"1"[..]))], position(1))
        .unwrap();
    drop(state);
    let state = home.open();
    assert_eq!(state.get_vec(id, b"old").unwrap(), None);
    assert_eq!(state.get_vec(id, b"half").unwrap(), None);
    assert_eq!(state.store_metadata(id), None);
    assert!(!state.is_restoring_from_zero(id).unwrap());
}

#[test]
fn a_finished_full_restore_is_kept() {
    let home = Home::new();
    let mut state = home.open();
    let id = state.store_id("counts").unwrap();
    commit(&mut state, b"old", Some(b"1"), 3);
    state.begin_full_restore(id).unwrap();
    state
        .restore(id, [(&b"new"[..], Some(&b"1"[..]))], position(9))
        .unwrap();
    state.finish_full_restore(id, position(10)).unwrap();
    drop(state);
    let state = home.open();
    assert_eq!(state.get_vec(id, b"old").unwrap(), None);
    assert_eq!(state.get_vec(id, b"new").unwrap(), Some(b"1".to_vec()));
    assert_eq!(state.store_metadata(id), Some(&position(10)));
}

#[test]
fn a_half_removed_database_is_put_aside_and_counted() {
    let home = Home::new();
    let mut state = home.open();
    commit(&mut state, b"k", Some(b"1"), 3);
    state.close().unwrap();
    fs::remove_file(home.task().join("CURRENT")).unwrap();
    let directory = directory(home.root.path());
    let state = TaskState::open(&directory, "0_0", vec![StoreSpec::key_value("counts")]).unwrap();
    let id = state.store_id("counts").unwrap();
    let aside = state.was_set_aside().unwrap();
    assert!(aside.ends_with("0_0.broken-1"));
    assert!(fs::read_dir(aside).unwrap().count() > 0, "nothing of it is deleted");
    assert_eq!(directory.set_aside_total(), 1);
    assert_eq!(
        (state.get_vec(id, b"k").unwrap(), state.store_metadata(id)),
        (None, None)
    );
}

#[test]
fn damaged_and_missing_files_are_put_aside() {
    for damage in ["manifest", "sst"] {
        let home = Home::new();
        let mut state = home.open();
        commit(&mut state, b"k", Some(b"1"), 3);
        flush(&state);
        state.close().unwrap();
        for entry in fs::read_dir(home.task()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if damage == "manifest" && name.starts_with("MANIFEST-") {
                fs::write(&path, b"not a manifest at all").unwrap();
            }
            if damage == "sst" && name.ends_with(".sst") {
                fs::remove_file(&path).unwrap();
            }
        }
        let state = home.open();
        assert!(state.was_set_aside().is_some(), "{damage}");
        assert_eq!(state.store_metadata(state.store_id("counts").unwrap()), None);
        drop(state);
        assert!(
            home.open().was_set_aside().is_none(),
            "the next start is an ordinary one"
        );
    }
}

/// Writes the memtable to a file.
fn flush(state: &TaskState) {
    let database = state.database().unwrap();
    database.db().flush_cf(database.family(0).unwrap()).unwrap();
}

#[test]
fn corruption_found_while_reading_is_put_aside_at_the_next_start() {
    let home = Home::new();
    let mut state = home.open();
    for n in 0..2_000_u32 {
        let id = state.store_id("counts").unwrap();
        state.put(id, &n.to_be_bytes(), Some(&[n as u8; 100])).unwrap();
    }
    commit(&mut state, b"k", Some(b"1"), 3);
    flush(&state);
    state.close().unwrap();
    for entry in fs::read_dir(home.task()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "sst") {
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 4;
            bytes.iter_mut().skip(middle).take(64).for_each(|byte| *byte ^= 0xff);
            fs::write(&path, bytes).unwrap();
        }
    }
    let mut state = home.open();
    let id = state.store_id("counts").unwrap();
    let read = state.range(
        id,
        std::ops::Bound::Unbounded,
        std::ops::Bound::Unbounded,
        Direction::Forward,
    );
    let error = read.and_then(|rows| rows.collect::<Result<Vec<_>, _>>()).unwrap_err();
    assert!(matches!(error, StateError::Corrupt { .. }), "{error}");
    drop(state);
    assert!(home.open().was_set_aside().is_some());
}

#[test]
fn a_store_of_the_old_topology_stays_on_disk() {
    let home = Home::new();
    let mut state = home.open();
    commit(&mut state, b"k", Some(b"1"), 3);
    state.close().unwrap();
    home.try_open(vec![StoreSpec::key_value("other")])
        .unwrap()
        .close()
        .unwrap();
    let state = home.open();
    let id = state.store_id("counts").unwrap();
    assert_eq!(state.get_vec(id, b"k").unwrap(), Some(b"1".to_vec()));
    assert_eq!(state.store_metadata(id), Some(&position(3)));
}

#[test]
fn a_window_store_keeps_the_bucket_width_it_was_created_with() {
    let home = Home::new();
    let spec = |segment_interval_ms| {
        let kind = StoreKind::Window {
            retention_ms: 1_000,
            segment_interval_ms,
            retain_duplicates: false,
        };
        vec![StoreSpec {
            name: "w".to_owned(),
            kind,
            persistent: true,
        }]
    };
    let mut state = home.try_open(spec(100)).unwrap();
    let id = state.store_id("w").unwrap();
    state.window_put(id, b"k", 250, Some(b"v")).unwrap();
    state.freeze().unwrap();
    state.apply(&EpochMetadata::default()).unwrap();
    state.close().unwrap();
    let mut state = home.try_open(spec(7)).unwrap();
    let mut found = 0;
    state
        .window_fetch(id, b"k", 250, &mut |value| found += value.map_or(0, <[u8]>::len))
        .unwrap();
    assert_eq!(found, 1);
    assert_eq!(state.expire_windows(id, 300).unwrap(), 1);
    let error = home_kind_change(home, state).unwrap_err();
    assert!(
        matches!(
            error,
            StateError::WrongKind {
                found: "window",
                wanted: "key-value",
                ..
            }
        ),
        "{error}"
    );
}

fn home_kind_change(home: Home, state: TaskState) -> Result<TaskState, StateError> {
    state.close().unwrap();
    home.try_open(vec![StoreSpec::key_value("w")])
}

#[test]
fn a_live_snapshot_keeps_its_rows_and_the_task_busy() {
    let home = Home::new();
    let directory = directory(home.root.path());
    let specs = || vec![StoreSpec::key_value("counts")];
    let mut state = TaskState::open(&directory, "0_0", specs()).unwrap();
    let id = state.store_id("counts").unwrap();
    commit(&mut state, b"k", Some(b"1"), 1);
    let snapshot = state.snapshot().unwrap();
    commit(&mut state, b"k", Some(b"2"), 2);
    state.begin_full_restore(id).unwrap();
    assert_eq!(snapshot.get_vec(id, b"k").unwrap(), Some(b"1".to_vec()));
    assert!(matches!(state.close(), Err(StateError::TaskBusy { .. })));
    let again = TaskState::open(&directory, "0_0", specs());
    assert!(matches!(again, Err(StateError::TaskBusy { .. })));
    assert_eq!(snapshot.get_vec(id, b"k").unwrap(), Some(b"1".to_vec()));
    drop(snapshot);
    TaskState::open(&directory, "0_0", specs()).unwrap();
}

#[test]
fn every_property_of_the_list_is_known_to_rocksdb() {
    let home = Home::new();
    let mut state = home.open();
    commit(&mut state, b"k", Some(b"1"), 3);
    let id = state.store_id("counts").unwrap();
    for name in PROPERTY_NAMES {
        assert!(state.property(id, name).is_some(), "{name}");
    }
    assert_eq!(state.property(id, "num-entries-active-mem-table"), Some(1));
    assert_eq!(state.property(id, "no-such-thing"), None);
    assert_eq!(state.approximate_num_entries(id).unwrap(), 1);
}

#[test]
fn errors_are_named_for_what_they_mean() {
    let scope = super::Scope {
        task: "0_0".to_owned(),
        path: PathBuf::from("/state/app/rust-v1/0_0"),
    };
    // RocksDB's own errors cannot be made by hand: a database below a file gives a real one.
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = rocksdb::DB::open_default(file.path().join("db")).unwrap_err();
    let told = scope.error("write", error).to_string();
    assert!(told.contains("task 0_0") && told.contains("reopen"), "{told}");
    assert!(super::error::is_full(
        "IO error: No space left on device: While appending to file"
    ));
    assert!(super::error::is_forbidden(
        "IO error: Permission denied: While open a file"
    ));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_directory_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    drop(directory(root.path()));
    let folder = root.path().join("app/rust-v1");
    let before = fs::read(folder.join("identity.json")).unwrap();
    let directory = directory(root.path());
    // Writing there fails with "no space left", as on a full disk.
    std::os::unix::fs::symlink("/dev/full", folder.join("identity.json.new")).unwrap();
    let error = directory.member_id(0).unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(fs::read(folder.join("identity.json")).unwrap(), before);
    fs::remove_file(folder.join("identity.json.new")).unwrap();
    directory.member_id(0).unwrap();
}
