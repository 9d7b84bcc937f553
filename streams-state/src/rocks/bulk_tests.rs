//! Restores from zero in files, killed and gone on with anywhere, against a map.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::directory;
use crate::{Direction, StoreId, StoreMetadata, StoreSpec, TaskState};

type Record = (u8, Option<Vec<u8>>);

fn at(position: usize) -> StoreMetadata {
    StoreMetadata {
        changelog_topic_id: Some([3; 16]),
        position: i64::try_from(position).unwrap(),
        own_commit: false,
        applied_at_ms: 1_000,
    }
}

fn open(root: &std::path::Path, bulk_bytes: usize) -> (TaskState, StoreId) {
    let mut state = TaskState::open(&directory(root), "0_0", vec![StoreSpec::key_value("counts")]).unwrap();
    state.set_bulk_bytes(bulk_bytes);
    let id = state.store_id("counts").unwrap();
    (state, id)
}

fn key(number: u8) -> Vec<u8> {
    format!("key-{number:03}").into_bytes()
}

fn rows(state: &mut TaskState, id: StoreId) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let rows = state.prefix(id, b"", Direction::Forward).unwrap();
    rows.map(|row| row.unwrap())
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

/// Where a restore goes on after an open: behind what is in files, else from an empty store.
fn go_on(state: &mut TaskState, id: StoreId) -> usize {
    if state.is_restoring_from_zero(id).unwrap() {
        return usize::try_from(state.store_metadata(id).unwrap().position).unwrap();
    }
    state.begin_full_restore(id).unwrap();
    0
}

fn feed(state: &mut TaskState, id: StoreId, log: &[Record], from: usize, to: usize) {
    let keys: Vec<_> = log[from..to].iter().map(|(number, _)| key(*number)).collect();
    let values = log[from..to].iter().map(|(_, value)| value.as_deref());
    state
        .restore(id, keys.iter().map(Vec::as_slice).zip(values), at(to))
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn rule_2_9_a_restore_in_files_killed_anywhere_ends_with_the_last_value_of_each_key(
        log in prop::collection::vec((0..40_u8, prop::option::weighted(0.8, prop::collection::vec(any::<u8>(), 0..60))), 1..400),
        batch in 1..60_usize,
        kills in prop::collection::vec(0..12_usize, 0..4),
        old in prop::collection::vec(0..40_u8, 0..10),
    ) {
        let root = tempfile::tempdir().unwrap();
        let (mut state, id) = open(root.path(), 2_000);
        // What an earlier life left, which must be gone.
        for number in &old {
            state.put(id, &key(*number), Some(b"old")).unwrap();
        }
        state.freeze().unwrap();
        state.apply(&crate::EpochMetadata { stores: vec![(id, at(1))], ..Default::default() }).unwrap();
        state.begin_full_restore(id).unwrap();
        let mut position = 0;
        for batches in kills {
            for _ in 0..batches {
                let to = (position + batch).min(log.len());
                feed(&mut state, id, &log, position, to);
                position = to;
            }
            drop(state);
            (state, _) = open(root.path(), 2_000);
            let resumed = go_on(&mut state, id);
            prop_assert!(resumed <= position, "{resumed} > {position}");
            position = resumed;
        }
        while position < log.len() {
            let to = (position + batch).min(log.len());
            feed(&mut state, id, &log, position, to);
            position = to;
        }
        state.finish_full_restore(id, at(log.len())).unwrap();
        let mut expected = BTreeMap::new();
        for (number, value) in &log {
            match value {
                Some(value) => expected.insert(key(*number), value.clone()),
                None => expected.remove(&key(*number)),
            };
        }
        prop_assert_eq!(rows(&mut state, id), expected.clone());
        drop(state);
        let (mut state, _) = open(root.path(), 2_000);
        prop_assert!(!state.is_restoring_from_zero(id).unwrap());
        prop_assert_eq!(state.store_metadata(id), Some(&at(log.len())));
        prop_assert_eq!(rows(&mut state, id), expected);
    }
}

#[test]
fn rule_2_9_a_restore_goes_on_behind_its_last_file_and_not_from_the_start() {
    let root = tempfile::tempdir().unwrap();
    let (mut state, id) = open(root.path(), 10_000);
    state.begin_full_restore(id).unwrap();
    let log: Vec<Record> = (0..200_usize)
        .map(|n| (u8::try_from(n).unwrap(), Some(vec![7; 100])))
        .collect();
    for from in (0..200).step_by(10) {
        feed(&mut state, id, &log, from, from + 10);
    }
    assert_eq!(state.store_metadata(id), Some(&at(200)));
    drop(state);
    let (state, _) = open(root.path(), 10_000);
    assert!(state.is_restoring_from_zero(id).unwrap());
    let resumed = state.store_metadata(id).unwrap().position;
    assert!((60..200).contains(&resumed), "{resumed}");
}

/// Rows that are too few for a file, and one that is deleted behind them.
#[test]
fn rule_2_9_a_restore_that_ends_early_in_an_orderly_way_loses_nothing_of_what_it_has_read() {
    let root = tempfile::tempdir().unwrap();
    let (mut state, id) = open(root.path(), 1 << 20);
    state.keep_full_restore(id).unwrap();
    assert_eq!(state.store_metadata(id), None, "there is no restore to keep");
    state.begin_full_restore(id).unwrap();
    let log: Vec<Record> = vec![(1, Some(vec![1])), (2, Some(vec![2])), (1, None), (3, Some(vec![3]))];
    feed(&mut state, id, &log, 0, 2);
    state.keep_full_restore(id).unwrap();
    drop(state);
    let (mut state, _) = open(root.path(), 1 << 20);
    assert_eq!(go_on(&mut state, id), 2);
    feed(&mut state, id, &log, 2, 4);
    state.finish_full_restore(id, at(4)).unwrap();
    let expected = BTreeMap::from([(key(2), vec![2]), (key(3), vec![3])]);
    assert_eq!(rows(&mut state, id), expected);
}

#[test]
fn rule_2_9_a_second_begin_forgets_the_files_of_the_first() {
    let root = tempfile::tempdir().unwrap();
    let (mut state, id) = open(root.path(), 1_000);
    state.begin_full_restore(id).unwrap();
    let log: Vec<Record> = (0..100).map(|number| (number, Some(vec![7; 100]))).collect();
    feed(&mut state, id, &log, 0, 100);
    drop(state);
    let (mut state, _) = open(root.path(), 1_000);
    state.begin_full_restore(id).unwrap();
    assert_eq!(state.store_metadata(id), None);
    feed(&mut state, id, &[(1, Some(vec![1]))], 0, 1);
    state.finish_full_restore(id, at(1)).unwrap();
    assert_eq!(rows(&mut state, id), BTreeMap::from([(key(1), vec![1])]));
}
