#![allow(clippy::unwrap_used, missing_docs)]
use super::*;
use crate::memory::MemoryStore;

fn sessions() -> Sessions<MemoryStore> {
    Sessions::new(
        MemoryStore::new(),
        SessionLayout {
            segment_interval_ms: 100,
        },
    )
}

fn times(rows: SessionIter) -> Vec<(i64, i64)> {
    rows.map(Result::unwrap).map(|row| (row.start_ms, row.end_ms)).collect()
}

#[test]
fn sessions_that_touch_a_stretch_of_time_are_found_across_buckets() {
    let mut store = sessions();
    for (start, end) in [(0, 50), (60, 170), (180, 180), (190, 450), (460, 500)] {
        store.put(b"k", start, end, Some(b"x")).unwrap();
    }
    assert_eq!(
        times(store.find(b"k", 170, 190).unwrap()),
        [(60, 170), (180, 180), (190, 450)]
    );
    assert_eq!(times(store.find(b"k", 171, 189).unwrap()), [(180, 180)]);
    assert_eq!(times(store.find(b"k", -5, 0).unwrap()), [(0, 50)]);
    assert_eq!(times(store.find(b"k", 501, i64::MAX).unwrap()), []);
}

#[test]
fn keys_that_begin_alike_are_not_mixed_up() {
    let mut store = sessions();
    let mut longer = b"a".to_vec();
    longer.extend_from_slice(&20_i64.to_be_bytes());
    for key in [b"a".as_slice(), b"aa", b"", &longer] {
        store.put(key, 10, 20, Some(key)).unwrap();
    }
    for key in [b"a".as_slice(), b"aa", b"", &longer] {
        let rows: Vec<_> = store
            .find(key, 0, i64::MAX)
            .unwrap()
            .map(|row| row.unwrap().value)
            .collect();
        assert_eq!(rows, [Box::from(key)]);
    }
}

#[test]
fn ended_sessions_of_all_keys_are_found_by_their_end() {
    let mut store = sessions();
    for (key, start, end) in [(b"b", 0, 99), (b"a", 0, 100), (b"a", 150, 250), (b"c", 5, 251)] {
        store.put(key, start, end, Some(b"x")).unwrap();
    }
    assert_eq!(times(store.ended(99, 250).unwrap()), [(0, 99), (0, 100), (150, 250)]);
    assert_eq!(times(store.ended(252, 251).unwrap()), []);
}

#[test]
fn a_session_that_ends_before_it_begins_is_refused() {
    let mut store = sessions();
    assert!(store.put(b"k", 10, 9, Some(b"x")).is_err());
    assert!(store.put(b"k", -1, 9, Some(b"x")).is_err());
    assert!(store.put(b"k", 9, 9, Some(b"x")).is_ok());
}

#[test]
fn a_session_store_does_what_the_model_does() {
    let layout = SessionLayout {
        segment_interval_ms: 10,
    };
    crate::conformance::session_store(256, || Sessions::new(MemoryStore::new(), layout)).unwrap();
}

#[test]
fn a_session_store_over_an_overlay_does_what_the_model_does() {
    let layout = SessionLayout {
        segment_interval_ms: 10,
    };
    let overlay = || crate::Overlay::new(MemoryStore::new());
    crate::conformance::session_store(256, || Sessions::new(overlay(), layout)).unwrap();
}

#[test]
fn sessions_of_a_task_are_restored_expired_and_of_one_kind() {
    use crate::{StoreSpec, TaskState};
    let specs = vec![StoreSpec::session("visits", 200_000)];
    let mut state = TaskState::in_memory("0_0", specs.clone()).unwrap();
    let id = state.store_id("visits").unwrap();
    for (start, end) in [(5, 10), (150_000, 250_000)] {
        state.session_put(id, b"k", start, end, Some(b"x")).unwrap();
    }
    assert_eq!(
        times(state.session_find(id, b"k", 0, i64::MAX).unwrap()),
        [(5, 10), (150_000, 250_000)]
    );
    assert!(state.window_put(id, b"k", 0, Some(b"x")).is_err());
    assert!(state.session_put(id, b"k", 9, 8, Some(b"x")).is_err());
    // Buckets are 100 s wide.
    assert_eq!(state.expire_windows(id, 99_999).unwrap(), 0);
    assert_eq!(state.expire_windows(id, 100_000).unwrap(), 1);
    assert_eq!(
        times(state.session_ended(id, 0, i64::MAX).unwrap()),
        [(150_000, 250_000)]
    );

    let mut restored = TaskState::in_memory("0_0", specs).unwrap();
    let key = SessionKey {
        key: b"k",
        start_ms: 7,
        end_ms: 9,
    };
    let metadata = crate::StoreMetadata {
        changelog_topic_id: None,
        position: 1,
        own_commit: false,
        applied_at_ms: 0,
    };
    restored
        .restore(id, [(&key.to_changelog_key()[..], Some(&b"v"[..]))], metadata)
        .unwrap();
    assert_eq!(times(restored.session_find(id, b"k", 9, 9).unwrap()), [(7, 9)]);
    assert!(restored.restore(id, [(&b"short"[..], None)], metadata).is_err());
}
