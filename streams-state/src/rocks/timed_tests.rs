//! Versions, and rows that die, on disk.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use super::tests::{Families, directory};
use crate::conformance::{HISTORY_MS, versioned_store};
use crate::{
    EpochMetadata, Overlay, StateError, StoreMetadata, StoreSpec, TaskState, VersionLayout, VersionPut, Versioned,
};

fn specs() -> Vec<StoreSpec> {
    vec![
        StoreSpec::versioned("versions", 10_000),
        StoreSpec::expiring("dying", 1_000),
    ]
}

fn position(position: i64) -> StoreMetadata {
    StoreMetadata {
        changelog_topic_id: None,
        position,
        own_commit: false,
        applied_at_ms: 0,
    }
}

fn open(root: &std::path::Path) -> TaskState {
    TaskState::open(&directory(root), "0_0", specs()).unwrap()
}

#[test]
fn versions_over_rocksdb_are_those_of_the_model() {
    let families = Families::new();
    let layout = VersionLayout {
        history_retention_ms: HISTORY_MS,
        segment_interval_ms: 7,
    };
    versioned_store(96, || Versioned::new(Overlay::new(families.emptied()), layout)).unwrap();
}

#[test]
fn versions_ends_and_the_observed_time_outlive_the_process() {
    let root = tempfile::tempdir().unwrap();
    let mut state = open(root.path());
    let (versions, dying) = (state.store_id("versions").unwrap(), state.store_id("dying").unwrap());
    for (time, value) in [(1_000, Some(&b"a"[..])), (30_000, Some(b"b")), (25_000, None)] {
        state.version_put(versions, b"k", time, value).unwrap();
    }
    state.expiring(dying).unwrap().put(b"d", Some(b"x"), 500).unwrap();
    state.freeze().unwrap();
    state.apply(&EpochMetadata::default()).unwrap();
    state
        .version_put(versions, b"k", 90_000, Some(b"never committed"))
        .unwrap();
    state.close().unwrap();

    let mut state = open(root.path());
    assert_eq!(
        state.version_put(versions, b"k", 19_999, Some(b"late")).unwrap(),
        VersionPut::Expired
    );
    assert_eq!(
        state.version_put(versions, b"k", 20_000, Some(b"c")).unwrap(),
        VersionPut::Before(25_000)
    );
    let as_of = |state: &mut TaskState, time| {
        let found = state.version_as_of(versions, b"k", time).unwrap();
        found.map(|version| version.value.into_vec())
    };
    assert_eq!(as_of(&mut state, 24_999), Some(b"c".to_vec()));
    assert_eq!(as_of(&mut state, 29_999), None);
    assert_eq!(as_of(&mut state, 30_000), Some(b"b".to_vec()));
    let dead: Vec<_> = state
        .expiring(dying)
        .unwrap()
        .dead(500)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(dead, [Box::from(&b"d"[..])]);
}

#[test]
fn a_restore_from_zero_that_was_interrupted_goes_on_with_the_versions_it_had() {
    let root = tempfile::tempdir().unwrap();
    let mut state = open(root.path());
    let versions = state.store_id("versions").unwrap();
    let first: [(&[u8], i64, Option<&[u8]>); 2] = [(b"k", 1_000, Some(b"a")), (b"k", 2_000, Some(b"b"))];
    state.begin_full_restore(versions).unwrap();
    state.restore_versions(versions, first, position(2)).unwrap();
    state.close().unwrap();

    let mut state = open(root.path());
    assert!(state.is_restoring_from_zero(versions).unwrap());
    assert_eq!(state.store_metadata(versions).unwrap().position, 2);
    state
        .restore_versions(versions, [(&b"k"[..], 1_500, None)], position(3))
        .unwrap();
    state.finish_full_restore(versions, position(3)).unwrap();
    state.close().unwrap();

    let mut state = open(root.path());
    assert!(!state.is_restoring_from_zero(versions).unwrap());
    let mut from = |time| {
        state
            .version_as_of(versions, b"k", time)
            .unwrap()
            .map(|version| version.from_ms)
    };
    assert_eq!(
        (from(1_499), from(1_500), from(2_000)),
        (Some(1_000), None, Some(2_000))
    );
}

#[test]
fn a_store_that_becomes_versioned_under_its_old_name_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let plain = vec![StoreSpec::key_value("versions")];
    TaskState::open(&directory(root.path()), "0_0", plain)
        .unwrap()
        .close()
        .unwrap();
    let directory: Arc<_> = directory(root.path());
    let refused = TaskState::open(&directory, "0_0", specs()).err();
    assert!(matches!(refused, Some(StateError::WrongKind { .. })), "{refused:?}");
}
