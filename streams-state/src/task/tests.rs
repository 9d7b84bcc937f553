#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use super::*;
use crate::conformance::{self, TaskUnderTest};
use crate::metadata::EpochMetadata;
use crate::overlay::CommittedStore;

/// In memory: nothing survives.
struct InMemory;

impl TaskUnderTest for InMemory {
    fn open(&mut self) -> Result<TaskState, StateError> {
        TaskState::in_memory("0_0", conformance::tested_specs([false; 3]))
    }

    fn survives(&self) -> bool {
        false
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

#[test]
fn a_task_in_memory_conforms() {
    conformance::epochs(512, || InMemory).unwrap();
}

#[test]
fn restore_converts_changelog_keys_of_windows() {
    let mut state = TaskState::in_memory("0_0", vec![StoreSpec::window("w", 120_000, false)]).unwrap();
    let id = state.store_id("w").unwrap();
    let key = crate::codec::window_key::WindowKey {
        key: b"k",
        start_ms: 61_000,
        sequence: 0,
    }
    .to_changelog_key();
    state
        .restore(id, [(key.as_slice(), Some(&b"v"[..]))], position(1))
        .unwrap();
    let mut found = None;
    state
        .window_fetch(id, b"k", 61_000, &mut |value| found = value.map(<[u8]>::to_vec))
        .unwrap();
    assert_eq!(found, Some(b"v".to_vec()));
    assert_eq!(state.store_metadata(id), Some(&position(1)));
    let error = state.restore(id, [(&b"short"[..], None)], position(2)).unwrap_err();
    assert!(error.to_string().contains("store w"), "{error}");
    assert_eq!(
        state.store_metadata(id),
        Some(&position(1)),
        "nothing of a refused batch is kept"
    );
}

#[test]
fn restore_over_an_open_epoch_is_refused() {
    let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("s")]).unwrap();
    let id = state.store_id("s").unwrap();
    state.put(id, b"k", Some(b"v")).unwrap();
    assert!(matches!(
        state.restore(id, [], position(1)),
        Err(StateError::EpochOrder { .. })
    ));
    assert!(matches!(
        state.begin_full_restore(id),
        Err(StateError::EpochOrder { .. })
    ));
    state.drop_open();
    state.restore(id, [], position(1)).unwrap();
}

#[test]
fn a_full_restore_empties_the_store_first() {
    let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("s")]).unwrap();
    let id = state.store_id("s").unwrap();
    state
        .restore(id, [(&b"old"[..], Some(&b"v"[..]))], position(1))
        .unwrap();
    state.begin_full_restore(id).unwrap();
    assert!(state.is_restoring_from_zero(id).unwrap());
    assert_eq!(state.store_metadata(id), None);
    state
        .restore(id, [(&b"new"[..], Some(&b"v"[..]))], position(5))
        .unwrap();
    state.finish_full_restore(id, position(6)).unwrap();
    assert_eq!(state.get_vec(id, b"old").unwrap(), None);
    assert_eq!(state.approximate_num_entries(id).unwrap(), 1);
    assert_eq!(state.store_metadata(id), Some(&position(6)));
    assert!(matches!(
        state.finish_full_restore(id, position(7)),
        Err(StateError::EpochOrder { .. })
    ));
}

#[test]
fn an_apply_of_the_task_keeps_all_its_stores_young() {
    let specs = vec![StoreSpec::key_value("busy"), StoreSpec::key_value("idle")];
    let mut state = TaskState::in_memory("0_0", specs).unwrap();
    let idle = state.store_id("idle").unwrap();
    state.restore(idle, [], position(3)).unwrap();
    state.freeze().unwrap();
    state
        .apply(&EpochMetadata {
            now_ms: 1_000,
            ..EpochMetadata::default()
        })
        .unwrap();
    assert_eq!(state.store_metadata(idle).unwrap().applied_at_ms, 1_000);
}

#[test]
fn stores_are_guarded_against_calls_of_the_other_kind() {
    let specs = vec![StoreSpec::key_value("rows"), StoreSpec::window("windows", 1_000, false)];
    let mut state = TaskState::in_memory("0_0", specs).unwrap();
    let (rows, windows) = (state.store_id("rows").unwrap(), state.store_id("windows").unwrap());
    assert!(matches!(
        state.put(windows, b"k", None),
        Err(StateError::WrongKind { .. })
    ));
    assert!(matches!(
        state.window_put(rows, b"k", 0, None),
        Err(StateError::WrongKind { .. })
    ));
    assert!(matches!(
        state.get_vec(StoreId(9), b"k"),
        Err(StateError::UnknownStore { .. })
    ));
}

#[test]
fn impossible_specs_are_refused() {
    let twice = vec![StoreSpec::key_value("s"), StoreSpec::key_value("s")];
    for (task, specs) in [
        ("0_0", twice),
        ("../0_0", vec![StoreSpec::key_value("s")]),
        ("", vec![StoreSpec::key_value("s")]),
        ("0_0", vec![StoreSpec::key_value("")]),
    ] {
        assert!(matches!(
            TaskState::in_memory(task, specs),
            Err(StateError::InvalidSpec { .. })
        ));
    }
}

#[test]
fn a_reader_on_another_thread_sees_whole_commits_only() {
    let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("a"), StoreSpec::key_value("b")]).unwrap();
    let (a, b) = (state.store_id("a").unwrap(), state.store_id("b").unwrap());
    let reader = state.reader();
    let watcher = std::thread::spawn(move || {
        let mut seen = 0;
        while let Ok(snapshot) = reader.snapshot() {
            let value = snapshot.get_vec(a, b"n").unwrap();
            assert_eq!(
                value,
                snapshot.get_vec(b, b"n").unwrap(),
                "both stores are of one commit"
            );
            seen += u32::from(value.is_some());
            if value.as_deref() == Some(b"last") {
                break;
            }
        }
        seen
    });
    for n in 0..200_u32 {
        let value = if n == 199 {
            b"last".to_vec()
        } else {
            n.to_be_bytes().to_vec()
        };
        state.put(a, b"n", Some(&value)).unwrap();
        state.put(b, b"n", Some(&value)).unwrap();
        state.freeze().unwrap();
        state.apply(&EpochMetadata::default()).unwrap();
    }
    assert!(watcher.join().unwrap() > 0);
}

#[test]
fn a_closed_task_tells_its_readers() {
    let state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("a")]).unwrap();
    let reader = state.reader();
    state.close().unwrap();
    assert!(matches!(reader.snapshot(), Err(StateError::Closed { .. })));
}

#[test]
fn the_base_is_untouched_until_apply() {
    let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("a")]).unwrap();
    let a = state.store_id("a").unwrap();
    state.put(a, b"k", Some(b"v")).unwrap();
    state.freeze().unwrap();
    let mut seen = Some(());
    state
        .store(a)
        .unwrap()
        .overlay
        .base()
        .get(b"k", &mut |value| seen = value.map(|_| ()))
        .unwrap();
    assert_eq!(seen, None);
    assert!(state.has_frozen() && !state.is_dirty() && state.overlay_bytes() > 0);
}

#[test]
fn state_moves_between_threads_and_readers_are_shared() {
    fn send<T: Send>() {}
    fn share<T: Send + Sync>() {}
    send::<TaskState>();
    send::<RangeIter>();
    share::<StateSnapshot>();
    share::<StateReader>();
    share::<crate::StateDirectory>();
}
