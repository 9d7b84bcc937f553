//! Each kind of store, in memory too, as processors, operators, changelogs and the test driver see it.

use std::collections::BTreeMap;

use streams_core::topology::InternalTopicDefaults;
use streams_dsl::prelude::*;
use streams_dsl::{LruStore, Topology};

use super::{driver, out, pipe, row};

/// Puts each record into a store of each kind.
struct Everywhere;

impl Processor<String, i64, String, i64> for Everywhere {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let (key, value) = (record.key, *record.value);
        let window = Windowed::new(key.clone(), Window::new(record.timestamp_ms, record.timestamp_ms + 10));
        cx.key_value_store::<String, i64>("kv")?
            .put(cx, key, Some(value), record)?;
        cx.window_store::<String, i64>("window")?
            .put(cx, &window, Some(value), record)?;
        cx.session_store::<String, i64>("session")?
            .put(cx, &window, Some(value), record)?;
        cx.versioned_store::<String, i64>("versioned")?
            .put(cx, key, Some(value), record)?;
        cx.ttl_store::<String, i64>("ttl")?.put(cx, key, Some(&value), record)?;
        cx.store::<LruStore<String, i64>>("lru")?
            .put(cx, key, Some(value), record)?;
        Ok(())
    }
}

/// Whether a store's rows are to be in memory.
fn placed<K: 'static, V: 'static>(
    store: streams_dsl::StateStore<K, V>,
    in_memory: bool,
) -> streams_dsl::StateStore<K, V> {
    match in_memory {
        true => store.in_memory(),
        false => store,
    }
}

#[test]
fn every_kind_of_store_works_in_memory() {
    for in_memory in [false, true] {
        let mut driver = driver(|b| {
            b.add_state_store(placed(Stores::key_value::<String, i64>("kv"), in_memory));
            b.add_state_store(placed(
                Stores::window::<String, i64>("window", HOUR, 10 * MILLISECOND),
                in_memory,
            ));
            b.add_state_store(placed(Stores::session::<String, i64>("session", HOUR), in_memory));
            b.add_state_store(placed(Stores::versioned::<String, i64>("versioned", HOUR), in_memory));
            b.add_state_store(placed(Stores::ttl::<String, i64>("ttl", HOUR), in_memory));
            b.add_state_store(placed(Stores::lru::<String, i64>("lru", 1), in_memory));
            let all = Connect::stores(["kv", "window", "session", "versioned", "ttl", "lru"]);
            b.stream::<String, i64>("in").process_with(|| Everywhere, all);
            let how = StreamJoined::named("j").store_named("j");
            let (left, right) = (b.stream::<String, i64>("l"), b.stream::<String, i64>("r"));
            let joined = left.join_with(
                &right,
                |_, l, r| l + r,
                JoinWindows::of(SECOND),
                if in_memory { how.in_memory() } else { how },
            );
            joined.to("joined");
        });
        pipe(&mut driver, "in", "a", 1, 5);
        pipe(&mut driver, "in", "b", 2, 7);
        let key = "b".to_owned();
        let value = |row: Option<ValueAndTimestamp<i64>>| row.map(|row| row.value);
        assert_eq!(value(driver.key_value("kv", &key).unwrap()), Some(2));
        let windows = driver.window_values::<String, i64>("window", 0, 6).unwrap();
        assert_eq!(
            windows
                .iter()
                .map(|(key, row)| (key.key.as_str(), row.value))
                .collect::<Vec<_>>(),
            [("a", 1)]
        );
        let sessions = driver.session_values::<String, i64>("session", &key).unwrap();
        assert_eq!(sessions, [(Window::new(7, 17), 2)]);
        let version = driver
            .version_as_of::<String, i64>("versioned", &key, i64::MAX)
            .unwrap();
        assert_eq!(version.map(|version| version.value), Some(2));
        assert_eq!(value(driver.ttl_value("ttl", &key).unwrap()), Some(2));
        let lru = |lru: &LruStore<String, i64>, cx: &mut streams_dsl::TaskContext| {
            let keys = lru.all(cx)?.map(|row| Ok(row?.0)).collect::<Result<Vec<_>, _>>();
            keys.map(Some)
        };
        assert_eq!(driver.ask_store("lru", lru).unwrap(), Some(vec![key]), "a is the elder");
        pipe(&mut driver, "l", "k", 1, 5);
        pipe(&mut driver, "r", "k", 2, 6);
        assert_eq!(out(&mut driver, "joined"), [row("k", 3)]);
    }
}

#[test]
fn a_row_that_had_to_go_is_deleted_in_the_changelog_and_the_order_is_that_of_use() {
    /// Reads for a negative value and writes for others.
    struct Use;
    impl Processor<String, i64, String, i64> for Use {
        fn process(
            &mut self,
            cx: &mut ProcessorContext<'_, String, i64>,
            record: Record<'_, String, i64>,
        ) -> Result<(), BoxError> {
            let rows = cx.store::<LruStore<String, i64>>("lru")?;
            match *record.value {
                ..0 => rows.get(cx, record.key).map(|_| ())?,
                0 => rows.put(cx, record.key, None, record).map(|_| ())?,
                value => rows.put(cx, record.key, Some(value), record).map(|_| ())?,
            }
            let count = i64::try_from(rows.len(cx)?)?;
            Ok(cx.forward(record.with_value(&count))?)
        }
    }
    let mut driver = driver(|b| {
        b.add_state_store(Stores::lru::<String, i64>("lru", 2));
        let connected = Connect::stores(["lru"]);
        b.stream::<String, i64>("in").process_with(|| Use, connected).to("out");
    });
    for (key, value) in [("a", 1), ("b", 1), ("a", -1), ("c", 1), ("a", 0), ("b", 1)] {
        pipe(&mut driver, "in", key, value, 1);
    }
    let counts: Vec<i64> = out(&mut driver, "out").into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [1, 2, 2, 2, 1, 2]);
    let logged: Vec<_> = driver
        .read_all("app-lru-changelog")
        .into_iter()
        .map(|record| (String::from_utf8(record.key.unwrap()).unwrap(), record.value.is_some()))
        .collect();
    let put = |key: &str| (key.to_owned(), true);
    let deleted = |key: &str| (key.to_owned(), false);
    assert_eq!(
        logged,
        [put("a"), put("b"), put("c"), deleted("b"), deleted("a"), put("b")]
    );
}

/// The topic configs of a topology's changelogs; `None`: no changelog.
fn changelogs(topology: &Topology) -> BTreeMap<String, BTreeMap<String, String>> {
    let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
    let changelogs = plan.subtopologies.iter().flat_map(|sub| &sub.changelogs);
    changelogs
        .map(|changelog| (changelog.store.to_string(), changelog.topic.configs.clone()))
        .collect()
}

#[test]
fn stores_are_logged_as_they_say() {
    const CONFIG: [(&str, &str); 1] = [("segment.ms", "7")];
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<String, i64>("in").group_by_key();
    grouped.count(Materialized::named("logged").logging(CONFIG));
    let table = grouped.count(Materialized::named("unlogged").without_logging());
    let late = |name: &str| Suppressed::until_time_limit(HOUR).with_name(name);
    table.suppress(late("sup").logging(CONFIG)).to_stream().to("a");
    table.suppress(late("unsup").without_logging()).to_stream().to("b");
    let (left, right) = (builder.stream::<String, i64>("l"), builder.stream::<String, i64>("r"));
    let joined = |name: &str| StreamJoined::named(name).store_named(name);
    let windows = JoinWindows::of(SECOND);
    left.join_with(&right, |_, l, r| l + r, windows, joined("j").logging(CONFIG))
        .to("c");
    left.join_with(&right, |_, l, r| l + r, windows, joined("k").without_logging())
        .to("d");
    builder.add_state_store(Stores::key_value::<String, i64>("own").logging(CONFIG));
    builder.add_state_store(Stores::key_value::<String, i64>("unlogged-own").without_logging());
    let connected = Connect::stores(["own", "unlogged-own"]);
    builder
        .stream::<String, i64>("p")
        .process_with(|| Everywhere, connected);
    let logs = changelogs(&builder.build().unwrap());
    let names: Vec<&str> = logs.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["j-other-join-store", "j-this-join-store", "logged", "own", "sup-store"]
    );
    assert!(
        logs.values()
            .all(|configs| configs.get("segment.ms").is_some_and(|ms| ms == "7")),
        "{logs:?}"
    );
    let policy = |store: &str| logs[store].get("cleanup.policy").map(String::as_str);
    assert_eq!(
        (policy("own"), policy("j-this-join-store")),
        (Some("compact"), Some("delete"))
    );
}

#[test]
fn a_global_table_is_read_in_the_test_driver() {
    let mut driver = driver(|b| {
        let global = b.global_table_with::<String, i64>("rates", Consumed::default(), "rates-store");
        assert_eq!(global.store_name(), "rates-store");
        b.stream::<String, i64>("in")
            .join_global(&global, |key, _| key.clone(), |_, n, rate| n * rate)
            .to("out");
    });
    pipe(&mut driver, "rates", "eur", 3, 1);
    let eur = "eur".to_owned();
    let row = driver.key_value::<String, i64>("rates-store", &eur).unwrap().unwrap();
    assert_eq!((row.value, row.timestamp_ms), (3, 1));
    let missing = driver
        .key_value::<String, i64>("nowhere", &eur)
        .unwrap_err()
        .to_string();
    assert!(missing.contains("rates-store"), "{missing}");
}
