//! Typed stores over in-memory state, cached and not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use streams_state::{Direction, StoreSpec, TaskState};

use super::{
    CacheBudget, Changelog, FlushListener, KeyValueLayout, KeyValueStore, ManagedStore, StoreBuilder, StoreOptions,
    TypedStore,
};
use crate::error::ProcessResult;
use crate::processor::TaskContext;
use crate::serde::DefaultSerde;
use crate::{Change, Headers, Record, TaskId};

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
        topic: crate::processor::OutputTopic::numbered(0),
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

/// Does something with the store for each entry that is flushed, and remembers what it was told.
struct Downstream<F> {
    store: std::cell::OnceCell<std::rc::Weak<KeyValueStore<String, i64>>>,
    told: RefCell<Vec<(String, Option<i64>, Option<i64>, i64)>>,
    act: F,
}

impl<F: Fn(&KeyValueStore<String, i64>, &mut TaskContext, &str)> FlushListener<String, i64> for Downstream<F> {
    fn flushed(&self, cx: &mut TaskContext, record: Record<'_, String, Change<i64>>) -> ProcessResult {
        let told = (
            record.key.clone(),
            record.value.new,
            record.value.old,
            record.timestamp_ms,
        );
        self.told.borrow_mut().push(told);
        let store = self.store.get().and_then(std::rc::Weak::upgrade).unwrap();
        (self.act)(&store, cx, record.key);
        Ok(())
    }
}

type Told = (Rc<KeyValueStore<String, i64>>, TaskContext);

fn listened<F>(act: F, send_old: bool) -> (Told, Rc<Downstream<F>>)
where
    F: Fn(&KeyValueStore<String, i64>, &mut TaskContext, &str) + 'static,
{
    let (store, cx) = store(1 << 20);
    let store = Rc::new(store);
    let downstream = Rc::new(Downstream {
        store: std::cell::OnceCell::new(),
        told: RefCell::default(),
        act,
    });
    downstream.store.set(Rc::downgrade(&store)).ok().unwrap();
    store.set_listener(Rc::clone(&downstream) as Rc<dyn FlushListener<String, i64>>, send_old);
    ((store, cx), downstream)
}

fn value(store: &KeyValueStore<String, i64>, cx: &mut TaskContext, key: &str) -> Option<i64> {
    store.get(cx, &key.to_owned()).unwrap().map(|row| row.value)
}

#[test]
fn rule_3_3_a_node_downstream_of_a_flush_may_read_and_write_the_same_store() {
    let act = |store: &KeyValueStore<String, i64>, cx: &mut TaskContext, key: &str| {
        let found = value(store, cx, key);
        if key == "a" {
            // The entry that is being flushed, one that waits for its turn, and a new one.
            put(store, cx, "a", found.map(|value| value + 100));
            put(store, cx, "b", Some(200));
            put(store, cx, "c", Some(300));
        }
    };
    let ((store, mut cx), downstream) = listened(act, false);
    put(&store, &mut cx, "a", Some(1));
    put(&store, &mut cx, "b", Some(2));
    while store.is_dirty() {
        store.flush(&mut cx).unwrap();
        let changes = downstream.told.borrow().len();
        assert!(changes < 20, "it never ends");
        if changes > 2 {
            break;
        }
    }
    assert_eq!(value(&store, &mut cx, "b"), Some(200));
    assert_eq!(value(&store, &mut cx, "c"), Some(300));
    assert!(value(&store, &mut cx, "a") >= Some(101));
    let told = downstream.told.borrow();
    assert_eq!(
        told.iter().filter(|(key, ..)| key == "b").count(),
        1,
        "one change, the newest: {told:?}"
    );
}

#[test]
fn rule_3_4_a_scan_downstream_of_a_flush_sees_the_entries_whose_turn_has_not_come() {
    let seen: Rc<RefCell<Vec<Vec<(String, i64)>>>> = Rc::default();
    let note = Rc::clone(&seen);
    let act = move |store: &KeyValueStore<String, i64>, cx: &mut TaskContext, _: &str| {
        note.borrow_mut().push(keys(store, cx, Direction::Forward));
    };
    let ((store, mut cx), downstream) = listened(act, false);
    for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
        put(&store, &mut cx, key, Some(value));
    }
    store.flush(&mut cx).unwrap();
    let all = vec![("a".to_owned(), 1), ("b".to_owned(), 2), ("c".to_owned(), 3)];
    assert_eq!(*seen.borrow(), [all.clone(), all.clone(), all]);
    assert_eq!(
        downstream.told.borrow().len(),
        3,
        "a scan emits nothing and swallows nothing"
    );
}

#[test]
fn rule_3_6_the_old_value_is_the_one_flushed_last_and_a_row_that_came_and_went_is_not_told() {
    let ((store, mut cx), downstream) = listened(|_, _, _| {}, true);
    for value in [Some(1), Some(2)] {
        put(&store, &mut cx, "a", value);
    }
    store.flush(&mut cx).unwrap();
    for value in [Some(3), None, Some(4)] {
        put(&store, &mut cx, "a", value);
        put(&store, &mut cx, "b", value);
    }
    put(&store, &mut cx, "b", None);
    store.flush(&mut cx).unwrap();
    put(&store, &mut cx, "a", None);
    store.flush(&mut cx).unwrap();
    let told: Vec<_> = downstream
        .told
        .borrow()
        .iter()
        .map(|(key, new, old, _)| (key.clone(), *new, *old))
        .collect();
    let a = || "a".to_owned();
    assert_eq!(
        told,
        [(a(), Some(2), None), (a(), Some(4), Some(2)), (a(), None, Some(4))]
    );
}

#[test]
fn rule_3_7_a_flushed_entry_has_the_time_and_place_of_its_last_update() {
    let ((store, mut cx), downstream) = listened(|_, _, _| {}, false);
    let headers = Headers::default();
    for (time_ms, value) in [(50, 1), (40, 2)] {
        let record = Record::new(&(), &(), time_ms).with_headers(&headers);
        store.put(&mut cx, &"a".to_owned(), Some(value), record).unwrap();
    }
    // Something else is in hand when the flush comes.
    cx.current = crate::processor::RecordContext::of_punctuation(9_999);
    store.flush(&mut cx).unwrap();
    assert_eq!(*downstream.told.borrow(), [("a".to_owned(), Some(2), None, 40)]);
    assert_eq!(
        cx.record_context().timestamp_ms,
        9_999,
        "the record in hand is the same again"
    );
}

#[test]
fn rule_3_8_and_9_a_cache_of_any_size_ends_with_the_same_rows() {
    let rows = |cache_bytes: usize| {
        let (store, mut cx) = store(cache_bytes);
        let store = Rc::new(store);
        for n in 0..200_i64 {
            let key = format!("key-{}", n * 7 % 13);
            let sum = value(&store, &mut cx, &key).unwrap_or(0) + n;
            put(&store, &mut cx, &key, (n % 11 != 0).then_some(sum));
            store.evict(&mut cx).unwrap();
            assert!(store.cached_bytes() <= cache_bytes.max(1), "{cache_bytes}");
        }
        keys(&store, &mut cx, Direction::Forward)
    };
    let expected = rows(0);
    assert!(expected.len() > 5);
    for cache_bytes in [1, 200, 1_000, 1 << 20] {
        assert_eq!(rows(cache_bytes), expected, "cache {cache_bytes}");
    }
}

#[test]
fn rule_3_2_rows_are_told_apart_by_the_bytes_of_their_keys() {
    for cache_bytes in [0, 1 << 20] {
        let (_, mut cx) = store(0);
        let builder = StoreBuilder {
            name: "s".into(),
            id: cx.state.store_id("s").unwrap(),
            changelog: None,
            topic: "s".into(),
            budget: CacheBudget::new(cache_bytes),
            meter: cx.meters.store("s", "in-memory"),
        };
        let options = StoreOptions {
            caching: true,
            timestamped: true,
        };
        let rows: KeyValueStore<f64, i64> =
            TypedStore::new(builder, KeyValueLayout::new(f64::shared()), i64::shared(), options);
        let headers = Headers::default();
        let record = || Record::new(&(), &(), 7).with_headers(&headers);
        // Equal as numbers, and not equal to itself: two rows, and one.
        for (key, value) in [(0.0, 1), (-0.0, 2), (f64::NAN, 3), (f64::NAN, 4)] {
            rows.put(&mut cx, &key, Some(value), record()).unwrap();
        }
        let found = rows.range(&mut cx, None, None, Direction::Forward).unwrap();
        let values: Vec<_> = found.map(|row| row.unwrap().1.value).collect();
        assert_eq!(values, [1, 4, 2], "cache {cache_bytes}");
    }
}
