//! Rules of versioned stores, on memory.
#![allow(clippy::unwrap_used, missing_docs)]

use super::*;
use crate::memory::MemoryStore;

fn store(history_retention_ms: i64) -> Versioned<MemoryStore> {
    let layout = VersionLayout {
        history_retention_ms,
        segment_interval_ms: 10,
    };
    Versioned::new(MemoryStore::new(), layout)
}

fn as_of(store: &mut Versioned<MemoryStore>, time: i64) -> Option<(Vec<u8>, i64, Option<i64>)> {
    let found = store.get_as_of(b"k", time).unwrap();
    found.map(|version| (version.value.into_vec(), version.from_ms, version.to_ms))
}

#[test]
fn updates_out_of_order_find_their_place_among_the_versions() {
    let mut store = store(100);
    assert_eq!(store.put(b"k", 50, Some(b"b")).unwrap(), VersionPut::Latest);
    assert_eq!(store.put(b"k", 20, Some(b"a")).unwrap(), VersionPut::Before(50));
    assert_eq!(store.put(b"k", 10, Some(b"0")).unwrap(), VersionPut::Before(20));
    assert_eq!(store.put(b"k", 30, None).unwrap(), VersionPut::Before(50));
    assert_eq!(store.put(b"k", 20, Some(b"A")).unwrap(), VersionPut::Before(30));
    assert_eq!(as_of(&mut store, 9), None);
    assert_eq!(as_of(&mut store, 10), Some((b"0".to_vec(), 10, Some(20))));
    assert_eq!(as_of(&mut store, 29), Some((b"A".to_vec(), 20, Some(30))));
    assert_eq!(as_of(&mut store, 49), None, "deleted then");
    assert_eq!(as_of(&mut store, 50), Some((b"b".to_vec(), 50, None)));
    let froms: Vec<i64> = store
        .versions(b"k", 0, 100, Direction::Reverse)
        .unwrap()
        .iter()
        .map(|version| version.from_ms)
        .collect();
    assert_eq!(froms, [50, 20, 10]);
}

#[test]
fn a_tombstone_that_replaces_the_newest_value_is_still_the_newest_version() {
    let mut store = store(100);
    store.put(b"k", 10, Some(b"b")).unwrap();
    assert_eq!(store.put(b"k", 10, None).unwrap(), VersionPut::Latest);
    assert_eq!(store.put(b"k", 9, Some(b"c")).unwrap(), VersionPut::Before(10));
    assert_eq!(as_of(&mut store, 10), None);
    assert_eq!(as_of(&mut store, 9), Some((b"c".to_vec(), 9, Some(10))));
}

#[test]
fn an_update_older_than_the_history_is_refused_and_one_at_its_edge_is_not() {
    let mut store = store(100);
    store.put(b"other", 1_050, Some(b"x")).unwrap();
    assert_eq!(store.put(b"k", 949, Some(b"z")).unwrap(), VersionPut::Expired);
    assert_eq!(store.put(b"k", 950, Some(b"y")).unwrap(), VersionPut::Latest);
    assert_eq!(store.observed_ms().unwrap(), 1_050);
    assert_eq!(as_of(&mut store, 949), None);
    assert!(store.put(b"k", -1, None).is_err());
}

#[test]
fn the_newest_version_never_expires_but_a_tombstone_does() {
    let mut store = store(100);
    store.put(b"k", 10, Some(b"a")).unwrap();
    store.put(b"gone", 10, Some(b"a")).unwrap();
    store.put(b"gone", 20, None).unwrap();
    store.put(b"back", 20, None).unwrap();
    store.put(b"back", 25, Some(b"b")).unwrap();
    store.put(b"clock", 500, Some(b"x")).unwrap();
    let before = store
        .rows
        .range(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
        .unwrap()
        .count();
    store.expire(400).unwrap();
    let after = store
        .rows
        .range(Bound::Unbounded, Bound::Unbounded, Direction::Forward)
        .unwrap()
        .count();
    assert_eq!((before, after), (9, 4), "k, back, clock and the highest time stay");
    assert_eq!(as_of(&mut store, 399), Some((b"a".to_vec(), 10, None)), "as in Java");
    assert_eq!(store.put(b"gone", 410, Some(b"new")).unwrap(), VersionPut::Latest);
}

#[test]
fn keys_that_begin_alike_do_not_meet() {
    let mut store = store(1_000);
    let long = [b"k".as_slice(), &15_i64.to_be_bytes()].concat();
    for key in [b"k".as_slice(), &long, b"k\0"] {
        store.put(key, 11, Some(key)).unwrap();
        store.put(key, 30, Some(b"new")).unwrap();
    }
    for key in [b"k".as_slice(), &long, b"k\0"] {
        let found = store.get_as_of(key, 20).unwrap().unwrap();
        assert_eq!((&*found.value, found.to_ms), (key, Some(30)));
    }
}
