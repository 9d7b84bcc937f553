#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::spec::StoreSpec;
use crate::task::TaskState;

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn config(&self) -> StateDirectoryConfig {
        StateDirectoryConfig {
            memory: MemoryBudget::of(64 << 20),
            ..StateDirectoryConfig::new(self.root.path().join("state"), "billing")
        }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("state/billing/rust-v1")
    }

    fn open(&self) -> Result<Arc<StateDirectory>, StateError> {
        StateDirectory::open(self.config())
    }
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found
}

#[test]
fn rule_6_4_a_second_process_is_refused_and_told_who_has_the_directory() {
    let place = Place::new();
    let first = place.open().unwrap();
    let error = place.open().unwrap_err();
    assert!(matches!(error, StateError::Locked { .. }), "{error}");
    assert!(
        error.to_string().contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    drop(first);
    place.open().unwrap();
}

/// A child process has the open files of its parent until its own program begins.
#[test]
fn a_directory_is_free_when_it_is_dropped_although_a_copy_of_the_lock_file_is_still_open() {
    let place = Place::new();
    let first = place.open().unwrap();
    let copy = first._lock.0.try_clone().unwrap();
    assert!(place.open().is_err());
    drop(first);
    place.open().unwrap();
    drop(copy);
}

#[test]
fn rule_5_5_a_java_application_directory_is_refused_untouched() {
    let place = Place::new();
    let state_dir = place.root.path().join("state");
    fs::create_dir_all(state_dir.join("0_1/rocksdb/counts")).unwrap();
    fs::write(state_dir.join(".lock"), "").unwrap();
    let before = contents(&state_dir);
    let error = place.open().unwrap_err();
    assert!(matches!(error, StateError::JavaDirectory { .. }), "{error}");
    assert_eq!(contents(&state_dir), before);
    assert!(!state_dir.join("billing").exists());
}

#[test]
fn rule_5_5_java_files_of_the_same_application_are_left_alone() {
    let place = Place::new();
    let java = place.root.path().join("state/billing");
    fs::create_dir_all(java.join("0_0/rocksdb/counts")).unwrap();
    fs::write(java.join("0_0/rocksdb/counts/CURRENT"), "MANIFEST-000005\n").unwrap();
    fs::write(java.join("kafka-streams-process-metadata"), "{}").unwrap();
    fs::write(java.join("0_0/.checkpoint"), "0\n0\n").unwrap();
    let before = contents(&java);
    let directory = place.open().unwrap();
    TaskState::open(&directory, "0_0", vec![StoreSpec::key_value("counts").in_memory()]).unwrap();
    directory.clean_up(i64::MAX, 0).unwrap();
    assert!(contents(&java).is_superset(&before));
}

#[test]
fn rule_5_5_a_newer_format_is_refused_untouched() {
    let place = Place::new();
    fs::create_dir_all(place.folder()).unwrap();
    fs::write(
        place.folder().join("format"),
        "kafka streams for rust, state format 2\n",
    )
    .unwrap();
    let before = contents(place.root.path());
    let error = place.open().unwrap_err();
    assert!(
        matches!(error, StateError::NewerFormat { found: 2, known: 1, .. }),
        "{error}"
    );
    assert_eq!(contents(place.root.path()), before);
}

#[test]
fn a_foreign_folder_is_refused_untouched() {
    for (file, text) in [("notes.txt", "mine"), ("format", "something else")] {
        let place = Place::new();
        fs::create_dir_all(place.folder()).unwrap();
        fs::write(place.folder().join(file), text).unwrap();
        let before = contents(place.root.path());
        let error = place.open().unwrap_err();
        assert!(matches!(error, StateError::Foreign { .. }), "{error}");
        assert_eq!(contents(place.root.path()), before);
    }
}

#[test]
fn a_crash_at_the_very_first_start_is_no_foreign_folder() {
    let place = Place::new();
    fs::create_dir_all(place.folder()).unwrap();
    fs::write(place.folder().join("lock"), "").unwrap();
    fs::write(place.folder().join("format.new"), "kafka str").unwrap();
    place.open().unwrap();
    place.open().unwrap();
}

#[test]
fn rule_6_1_identity_and_members_are_kept_over_a_restart() {
    let place = Place::new();
    let first = place.open().unwrap();
    let identity = first.identity().clone();
    let members = [first.member_id(0).unwrap(), first.member_id(1).unwrap()];
    assert_eq!(identity.origin, IdentityOrigin::Created);
    assert_ne!(members[0], members[1]);
    drop(first);
    let second = place.open().unwrap();
    assert_eq!(second.identity().process_id, identity.process_id);
    assert_eq!(second.identity().origin, IdentityOrigin::Kept);
    assert_eq!([second.member_id(0).unwrap(), second.member_id(1).unwrap()], members);
}

#[test]
fn rule_6_1_a_copied_directory_gets_an_identity_of_its_own_and_says_so() {
    let place = Place::new();
    let original = place.open().unwrap();
    let member = original.member_id(0).unwrap();
    let copy = Place::new();
    fs::create_dir_all(copy.folder()).unwrap();
    for name in ["format", "identity.json", "lock"] {
        fs::copy(place.folder().join(name), copy.folder().join(name)).unwrap();
    }
    let copied = copy.open().unwrap();
    assert!(matches!(copied.identity().origin, IdentityOrigin::Replaced { .. }));
    assert_ne!(copied.identity().process_id, original.identity().process_id);
    assert_ne!(copied.member_id(0).unwrap(), member);
    assert!(
        copied.warnings().iter().any(|warning| warning.contains("copied")),
        "{:?}",
        copied.warnings()
    );
}

#[test]
fn rule_6_5_an_unreadable_identity_is_replaced() {
    let place = Place::new();
    drop(place.open().unwrap());
    fs::write(place.folder().join("identity.json"), "{").unwrap();
    assert!(matches!(
        place.open().unwrap().identity().origin,
        IdentityOrigin::Replaced { .. }
    ));
}

#[test]
fn a_given_process_id_overrides_and_fixes_the_members() {
    let place = Place::new();
    drop(place.open().unwrap());
    let config = || StateDirectoryConfig {
        process_id: Some("pod-7".to_owned()),
        ..place.config()
    };
    let given = StateDirectory::open(config()).unwrap();
    assert_eq!(
        given.identity(),
        &ProcessIdentity {
            process_id: "pod-7".to_owned(),
            origin: IdentityOrigin::Given
        }
    );
    assert_eq!(given.member_id(1).unwrap(), "pod-7-1");
    drop(given);
    fs::remove_file(place.folder().join("identity.json")).unwrap();
    assert_eq!(StateDirectory::open(config()).unwrap().member_id(1).unwrap(), "pod-7-1");
    let own = place.open().unwrap();
    assert_ne!(
        own.identity().process_id,
        "pod-7",
        "a given id does not outlive its configuration"
    );
}

#[test]
fn rule_6_2_surplus_members_are_listed_until_they_are_forgotten() {
    let place = Place::new();
    let directory = place.open().unwrap();
    let members: Vec<_> = (1..=4).map(|thread| directory.member_id(thread).unwrap()).collect();
    assert_eq!(
        directory.surplus_members(2),
        [(3, members[2].clone()), (4, members[3].clone())]
    );
    directory.forget_member(4).unwrap();
    drop(directory);
    assert_eq!(place.open().unwrap().surplus_members(2), [(3, members[2].clone())]);
}

#[test]
fn rule_6_2_no_member_is_surplus_while_the_thread_count_stays_or_grows() {
    let place = Place::new();
    let directory = place.open().unwrap();
    for thread in 1..=2 {
        directory.member_id(thread).unwrap();
    }
    assert_eq!(directory.surplus_members(2), []);
    assert_eq!(directory.surplus_members(3), []);
}

#[test]
fn rule_6_1_every_process_of_a_baked_image_gets_an_identity_of_its_own() {
    let image = Place::new();
    let baked = image.open().unwrap();
    let mut members = BTreeSet::from([baked.member_id(1).unwrap()]);
    let mut processes = BTreeSet::from([baked.identity().process_id.clone()]);
    drop(baked);
    let pods: Vec<Place> = (0..3).map(|_| Place::new()).collect();
    for pod in &pods {
        fs::create_dir_all(pod.folder()).unwrap();
        for file in fs::read_dir(image.folder()).unwrap() {
            let path = file.unwrap().path();
            fs::copy(&path, pod.folder().join(path.file_name().unwrap())).unwrap();
        }
        let directory = pod.open().unwrap();
        processes.insert(directory.identity().process_id.clone());
        members.insert(directory.member_id(1).unwrap());
        // Its own from now on: the next start is a restart, not another copy.
        let identity = directory.identity().process_id.clone();
        drop(directory);
        let again = pod.open().unwrap();
        assert_eq!(
            (&again.identity().process_id, &again.identity().origin),
            (&identity, &IdentityOrigin::Kept)
        );
    }
    assert_eq!((processes.len(), members.len()), (4, 4));
}

#[test]
fn rule_6_1_an_identity_made_on_another_host_is_replaced() {
    let place = Place::new();
    let before = place.open().unwrap().identity().process_id.clone();
    let path = place.folder().join("identity.json");
    let mut file: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    file["fingerprint"]["host"] = "the-build-machine".into();
    // In place: the inode and the birth stay what they were.
    fs::write(&path, serde_json::to_vec(&file).unwrap()).unwrap();
    let directory = place.open().unwrap();
    assert_ne!(directory.identity().process_id, before);
    let warnings = directory.warnings().join("\n");
    assert!(warnings.contains("the-build-machine"), "{warnings}");
}

#[test]
fn rule_6_5_a_lost_directory_is_a_new_process() {
    let place = Place::new();
    let before = place.open().unwrap().identity().process_id.clone();
    fs::remove_dir_all(place.folder()).unwrap();
    let directory = place.open().unwrap();
    assert_eq!(directory.identity().origin, IdentityOrigin::Created);
    assert_ne!(directory.identity().process_id, before);
}

#[test]
fn rule_6_1_a_renewed_member_has_an_id_of_its_own_and_the_one_before_is_told_to_leave() {
    let place = Place::new();
    let first = place.open().unwrap().renew_member_id(1).unwrap();
    assert_eq!(first.1, None);
    let second = place.open().unwrap().renew_member_id(1).unwrap();
    assert_eq!(second.1.as_ref(), Some(&first.0));
    assert_ne!(second.0, first.0);
    // Exactly-once goes on with it: this process is the only one that has it.
    assert_eq!(place.open().unwrap().member_id(1).unwrap(), second.0);
}

#[test]
fn a_temporary_folder_is_warned_about() {
    let place = Place::new();
    let directory = place.open().unwrap();
    assert!(
        directory
            .warnings()
            .iter()
            .any(|warning| warning.contains("may be emptied"))
    );
}

#[test]
fn rule_1_4_a_task_is_open_once_only() {
    let place = Place::new();
    let directory = place.open().unwrap();
    let specs = || vec![StoreSpec::key_value("counts").in_memory()];
    let state = TaskState::open(&directory, "0_0", specs()).unwrap();
    let error = TaskState::open(&directory, "0_0", specs()).unwrap_err();
    assert!(matches!(error, StateError::TaskBusy { .. }), "{error}");
    state.close().unwrap();
    TaskState::open(&directory, "0_0", specs()).unwrap();
}

#[test]
fn rule_2_4_dormant_task_directories_are_removed_and_open_ones_are_not() {
    let place = Place::new();
    let directory = place.open().unwrap();
    for task in ["0_0", "0_1", "0_2.broken-1", "0_3.removed-1"] {
        fs::create_dir_all(place.folder().join(task)).unwrap();
        fs::write(place.folder().join(task).join("CURRENT"), "x").unwrap();
    }
    let lease = directory.lease("0_1").unwrap();
    let listed = directory.task_directories().unwrap();
    let shown: Vec<_> = listed
        .iter()
        .map(|task| (task.task.as_str(), task.open, task.set_aside))
        .collect();
    assert_eq!(
        shown,
        [("0_0", false, false), ("0_1", true, false), ("0_2", false, true)]
    );
    let oldest = listed.iter().map(|task| task.changed_at_ms).min().unwrap();
    let newest = listed.iter().map(|task| task.changed_at_ms).max().unwrap();
    assert_eq!(directory.clean_up(oldest + 10, 10).unwrap(), Vec::<PathBuf>::new());
    let removed = directory.clean_up(newest + 11, 10).unwrap();
    assert_eq!(
        removed,
        [place.folder().join("0_0"), place.folder().join("0_2.broken-1")]
    );
    assert!(place.folder().join("0_1/CURRENT").exists());
    drop((lease, directory));
    drop(place.open().unwrap());
    assert!(
        !place.folder().join("0_3.removed-1").exists(),
        "an interrupted removal is finished at the next start"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_names_the_file_and_the_remedy() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = StateError::io("write", Path::new("/state/x"), full);
    assert!(error.is_disk_full());
    assert!(
        error.to_string().contains("/state/x") && error.to_string().contains("free some space"),
        "{error}"
    );
}

#[test]
fn an_application_id_that_is_no_folder_name_is_refused() {
    let place = Place::new();
    for id in ["", "..", "a/b"] {
        let config = StateDirectoryConfig {
            application_id: id.to_owned(),
            ..place.config()
        };
        assert!(
            matches!(StateDirectory::open(config), Err(StateError::InvalidSpec { .. })),
            "{id:?}"
        );
    }
}
