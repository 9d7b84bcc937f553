//! Typed stores over in-memory state, cached and not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::rc::Rc;
use std::sync::Arc;

use streams_state::{Direction, StoreSpec, TaskState};

use super::{
    CacheBudget, Changelog, KeyValueLayout, KeyValueStore, ManagedStore, StoreBuilder, StoreOptions, TypedStore,
};
use crate::processor::TaskContext;
use crate::serde::DefaultSerde;
use crate::{Headers, Record, TaskId};

fn store(cache_bytes: usize) -> (KeyValueStore<String, i64>, TaskContext) {
    logged_store(cache_bytes, None)
}

fn logged_store(cache_bytes: usize, changelog: Option<Changelog>) -> (KeyValueStore<String, i64>, TaskContext) {
    let state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("s")]).unwrap();
    let id = state.store_id("s").unwrap();
    let task = TaskId::new(0, 0);
    let cx = TaskContext::new(task, Arc::default(), Arc::default(), Arc::default(), state, 0);
    let builder = StoreBuilder {
        name: "s".into(),
        id,
        changelog,
        topic: "s".into(),
        budget: CacheBudget::new(cache_bytes),
        meter: cx.meters.store("s", "in-memory"),
    };
    let options = StoreOptions {
        caching: true,
        timestamped: true,
    };
    let layout = KeyValueLayout::new(String::shared());
    (TypedStore::new(builder, layout, i64::shared(), options), cx)
}

fn put(store: &KeyValueStore<String, i64>, cx: &mut TaskContext, key: &str, value: Option<i64>) {
    let headers = Headers::default();
    let record = Record::new(&(), &(), 7).with_headers(&headers);
    store.put(cx, &key.to_owned(), value, record).unwrap();
}

fn keys(store: &KeyValueStore<String, i64>, cx: &mut TaskContext, direction: Direction) -> Vec<(String, i64)> {
    let rows = store.range(cx, None, None, direction).unwrap();
    rows.map(|row| row.map(|(key, row)| (key, row.value)).unwrap())
        .collect()
}

#[test]
fn rule_3_4_a_scan_sees_what_is_still_in_the_cache_in_key_order() {
    for cache_bytes in [0, 1 << 20] {
        let (store, mut cx) = store(cache_bytes);
        for (key, value) in [("b", Some(2)), ("a", Some(1)), ("c", Some(3)), ("b", None)] {
            put(&store, &mut cx, key, value);
        }
        let expected = [("a".to_owned(), 1), ("c".to_owned(), 3)];
        assert_eq!(
            keys(&store, &mut cx, Direction::Forward),
            expected,
            "cache {cache_bytes}"
        );
        assert_eq!(keys(&store, &mut cx, Direction::Reverse).len(), 2);
        assert_eq!(
            store.is_dirty(),
            cache_bytes > 0,
            "a scan must not emit: the entries stay dirty"
        );
    }
}

#[test]
fn rule_3_5_writes_made_while_a_list_is_read_do_not_show_in_it() {
    for cache_bytes in [0, 1 << 20] {
        let (store, mut cx) = store(cache_bytes);
        put(&store, &mut cx, "a", Some(1));
        put(&store, &mut cx, "b", Some(2));
        let mut seen = Vec::new();
        for row in store.range(&mut cx, None, None, Direction::Forward).unwrap() {
            let (key, _) = row.unwrap();
            put(&store, &mut cx, &format!("{key}{key}"), Some(9));
            put(&store, &mut cx, "b", None);
            seen.push(key);
        }
        assert_eq!(seen, ["a", "b"], "cache {cache_bytes}");
        assert_eq!(keys(&store, &mut cx, Direction::Forward).len(), 3, "a, aa, bb");
    }
}

#[test]
fn eviction_keeps_the_budget_and_loses_nothing() {
    let (store, mut cx) = store(1);
    let store = Rc::new(store);
    for n in 0..100 {
        put(&store, &mut cx, &format!("key-{n}"), Some(n));
        store.evict(&mut cx).unwrap();
        assert_eq!(store.cached_bytes(), 0);
    }
    assert_eq!(
        store
            .get(&mut cx, &"key-42".to_owned())
            .unwrap()
            .map(|row| (row.value, row.timestamp_ms)),
        Some((42, 7))
    );
}

#[test]
fn a_delete_is_logged_although_a_scan_has_already_written_it() {
    let changelog = Changelog {
        topic: 0,
        partition: 0,
        slot: 1,
    };
    let (store, mut cx) = logged_store(1 << 20, Some(changelog));
    cx.output_topic("app-s-changelog");
    put(&store, &mut cx, "k", Some(1));
    put(&store, &mut cx, "never-flushed", Some(2));
    put(&store, &mut cx, "never-flushed", None);
    store.flush(&mut cx).unwrap();
    assert_eq!(
        cx.outbox.len(),
        1,
        "a row that came and went within one flush is not logged"
    );
    put(&store, &mut cx, "k", None);
    assert_eq!(keys(&store, &mut cx, Direction::Forward), []);
    store.flush(&mut cx).unwrap();
    let logged: Vec<_> = cx.outbox.iter().map(|record| record.value.is_some()).collect();
    assert_eq!(logged, [true, false], "the value, then its tombstone");
}

#[test]
fn a_row_that_only_a_scan_has_written_is_gone_after_its_delete() {
    let (store, mut cx) = store(1 << 20);
    put(&store, &mut cx, "k", Some(1));
    assert_eq!(keys(&store, &mut cx, Direction::Forward).len(), 1);
    put(&store, &mut cx, "k", None);
    store.flush(&mut cx).unwrap();
    assert_eq!(keys(&store, &mut cx, Direction::Forward), []);
}
