#![allow(clippy::unwrap_used, missing_docs)]
use super::*;
use crate::memory::MemoryStore;
use crate::store::WindowStoreExt;

fn windows(retain_duplicates: bool) -> Windowed<MemoryStore> {
    Windowed::new(
        MemoryStore::new(),
        WindowLayout {
            segment_interval_ms: 100,
            retain_duplicates,
        },
    )
}

#[test]
fn rule_2_10_duplicates_continue_from_the_largest_stored_number() {
    let mut store = windows(true);
    assert_eq!(store.put(b"k", 10, Some(b"a")).unwrap(), Some(1));
    assert_eq!(store.put(b"k", 10, Some(b"b")).unwrap(), Some(2));
    assert_eq!(store.put(b"k", 11, Some(b"c")).unwrap(), Some(1));
    assert_eq!(
        store.put(b"k", 10, None).unwrap(),
        None,
        "deletions are ignored, as in Java"
    );
    let mut again = Windowed::new(store.rows, store.layout);
    assert_eq!(again.put(b"k", 10, Some(b"d")).unwrap(), Some(3));
}

#[test]
fn a_key_that_begins_like_another_is_not_fetched_with_it() {
    let mut store = windows(false);
    let mut longer = b"k".to_vec();
    longer.extend_from_slice(&50_i64.to_be_bytes());
    store.put(b"k", 10, Some(b"a")).unwrap();
    store.put(&longer, 20, Some(b"b")).unwrap();
    store.put(b"k", 90, Some(b"c")).unwrap();
    let rows: Vec<_> = store
        .fetch_key(b"k", 0, 99, Direction::Forward)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.iter().map(|row| row.start_ms).collect::<Vec<_>>(), [10, 90]);
}

#[test]
fn expiry_drops_whole_buckets_only() {
    let mut store = windows(false);
    for start in [0, 99, 100, 250, 299, 300] {
        store.put(b"k", start, Some(b"x")).unwrap();
    }
    assert_eq!(
        store.expire(299).unwrap(),
        2,
        "buckets 0 and 100; 200 still holds a live start"
    );
    let left: Vec<_> = store
        .fetch_all(0, i64::MAX, Direction::Forward)
        .unwrap()
        .map(|row| row.unwrap().start_ms)
        .collect();
    assert_eq!(left, [250, 299, 300]);
    assert_eq!(store.expire(299).unwrap(), 0);
}

#[test]
fn windows_over_memory_conform() {
    for retain_duplicates in [false, true] {
        let layout = WindowLayout {
            segment_interval_ms: 10,
            retain_duplicates,
        };
        let make = || Windowed::new(MemoryStore::new(), layout);
        crate::conformance::window_store(256, retain_duplicates, make).unwrap();
    }
}

#[test]
fn a_negative_start_is_refused() {
    assert!(windows(false).put(b"k", -1, Some(b"x")).is_err());
}

#[test]
fn the_rows_of_a_prefix_key_are_found_behind_the_upper_key() {
    let mut store = windows(false);
    let upper = b"k\0\0\0\0\0\0\0".to_vec();
    let late = i64::MAX / 2;
    store.put(b"k", late, Some(b"x")).unwrap();
    let found = store
        .fetch_range(
            Bound::Unbounded,
            Bound::Included(&upper),
            0,
            i64::MAX,
            Direction::Reverse,
        )
        .unwrap()
        .count();
    assert_eq!(found, 1);
}
