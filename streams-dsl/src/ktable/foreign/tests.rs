//! Rules of foreign-key joins that the examples do not show, on the test driver.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use streams_core::murmur2::partition_for_key;
use streams_core::murmur3::hash128;
use streams_core::runtime::RuntimeSettings;
use streams_core::test_driver::{DriverOptions, LogRecord, TopologyTestDriver};
use streams_core::{Headers, TopicPartition};

use crate::{Materialized, StreamsBuilder, TableJoined};

const REGISTRATION: &str = "app-fk-subscription-registration-topic";
const RESPONSE: &str = "app-fk-subscription-response-topic";

/// `L` joined with `R`: the foreign key is the value up to `|`, empty = none.
fn builder(left_join: bool) -> StreamsBuilder {
    let builder = StreamsBuilder::new();
    let (left, right) = (
        builder.table::<String, String>("L"),
        builder.table::<String, String>("R"),
    );
    let foreign_key = |_: &String, value: &String| {
        let key = value.split('|').next().unwrap_or_default();
        (!key.is_empty()).then(|| key.to_owned())
    };
    let pair = |left: &String, right: Option<&String>| format!("({left},{})", right.map_or("null", String::as_str));
    let named = TableJoined::named("fk");
    let joined = match left_join {
        true => left.left_join_foreign_key_with(
            &right,
            foreign_key,
            move |_, l, r| pair(l, r),
            named,
            Materialized::unnamed(),
        ),
        false => left.join_foreign_key_with(
            &right,
            foreign_key,
            move |_, l, r| pair(l, Some(r)),
            named,
            Materialized::unnamed(),
        ),
    };
    joined.to_stream().to("out");
    builder
}

fn driver(left_join: bool) -> TopologyTestDriver {
    TopologyTestDriver::new(&builder(left_join).build().unwrap(), DriverOptions::default()).unwrap()
}

fn pipe(driver: &mut TopologyTestDriver, topic: &str, key: &str, value: Option<&str>, time: i64) {
    let value = value.map(str::as_bytes);
    driver
        .pipe(topic, Some(key.as_bytes()), value, time, Headers::empty())
        .unwrap();
}

type Row = (String, Option<String>, i64);

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn rows(driver: &TopologyTestDriver, topic: &str) -> Vec<Row> {
    let row = |record: LogRecord| (text(record.key.unwrap()), record.value.map(text), record.timestamp_ms);
    driver.read_all(topic).into_iter().map(row).collect()
}

fn row(key: &str, value: impl Into<Option<&'static str>>, time: i64) -> Row {
    (key.to_owned(), value.into().map(str::to_owned), time)
}

#[test]
fn messages_and_subscriptions_are_written_as_java_writes_them() {
    let mut driver = driver(false);
    let mut headers = Headers::default();
    headers.add("trace", Some(b"7"));
    driver.pipe("L", Some(b"k"), Some(b"x|a"), 5, &headers).unwrap();
    pipe(&mut driver, "R", "x", Some("1"), 6);

    let mut subscription = vec![1, 3];
    subscription.extend_from_slice(&hash128(b"x|a"));
    subscription.extend_from_slice(b"k\0\0\0\0");
    let sent = driver.read_all(REGISTRATION).pop().unwrap();
    assert_eq!(sent.key.as_deref(), Some(&b"x"[..]));
    assert_eq!(sent.value, Some(subscription.clone()));

    let stored = driver.read_all("app-fk-subscription-store-changelog").pop().unwrap();
    assert_eq!(stored.key.as_deref(), Some(&b"\0\0\0\x01xk"[..]));
    assert_eq!((stored.value, stored.timestamp_ms), (Some(subscription), 5));
    assert_eq!(stored.headers, headers, "Java's subscription store logs headers");

    let mut response = vec![0];
    response.extend_from_slice(&hash128(b"x|a"));
    response.push(b'1');
    let told = driver.read_all(RESPONSE).pop().unwrap();
    assert_eq!(
        (told.key, told.value, told.timestamp_ms),
        (Some(b"k".to_vec()), Some(response), 6)
    );
}

#[test]
fn the_end_of_a_subscription_deletes_it_from_store_and_changelog() {
    let mut driver = driver(false);
    pipe(&mut driver, "L", "k", Some("x|a"), 1);
    pipe(&mut driver, "L", "k", None, 2);
    let log: Vec<_> = driver.read_all("app-fk-subscription-store-changelog");
    assert_eq!(log.len(), 2);
    assert_eq!((log[1].value.as_deref(), log[1].timestamp_ms), (None, 2));
    let sent = driver.read_all(REGISTRATION).pop().unwrap();
    assert_eq!(
        sent.value,
        Some(b"\x81\x01k\0\0\0\0".to_vec()),
        "no hash: the row is gone"
    );
    pipe(&mut driver, "R", "x", Some("1"), 3);
    assert_eq!(rows(&driver, "out"), [row("k", None, 2)]);
}

#[test]
fn an_inner_join_counts_rows_without_a_foreign_key_and_retracts_their_results() {
    let mut driver = driver(false);
    pipe(&mut driver, "R", "x", Some("1"), 0);
    pipe(&mut driver, "L", "k", Some("|a"), 1);
    assert_eq!(driver.dropped_records(), 1);
    pipe(&mut driver, "L", "k", Some("x|a"), 2);
    pipe(&mut driver, "L", "k", Some("|b"), 3);
    assert_eq!(driver.dropped_records(), 2);
    pipe(&mut driver, "L", "k", None, 4);
    assert_eq!(rows(&driver, "out"), [row("k", "(x|a,1)", 2), row("k", None, 3)]);
}

#[test]
fn an_update_that_keeps_the_foreign_key_is_answered_only_by_a_foreign_row() {
    let mut driver = driver(false);
    pipe(&mut driver, "L", "k", Some("x|a"), 1);
    pipe(&mut driver, "L", "k", Some("x|b"), 2);
    assert_eq!(rows(&driver, "out"), []);
    pipe(&mut driver, "L", "k", Some("y|b"), 3);
    assert_eq!(
        rows(&driver, "out"),
        [row("k", None, 3)],
        "as in Java: the old key may have joined"
    );
}

#[test]
fn a_left_join_answers_every_change_of_a_left_row_but_the_delete_of_none() {
    let mut driver = driver(true);
    pipe(&mut driver, "L", "k", None, 0);
    pipe(&mut driver, "L", "k", Some("x|a"), 1);
    pipe(&mut driver, "R", "x", None, 2);
    pipe(&mut driver, "R", "x", Some("1"), 3);
    pipe(&mut driver, "R", "x", None, 4);
    pipe(&mut driver, "L", "k", Some("|c"), 5);
    pipe(&mut driver, "L", "k", None, 6);
    let expected = [
        row("k", "(x|a,null)", 1),
        row("k", "(x|a,1)", 3),
        row("k", "(x|a,null)", 4),
        row("k", "(|c,null)", 5),
        row("k", None, 6),
    ];
    assert_eq!(rows(&driver, "out"), expected);
    assert_eq!(driver.dropped_records(), 0);
}

#[test]
fn answers_to_a_row_that_has_changed_meanwhile_are_dropped_and_counted() {
    let mut driver = driver(false);
    pipe(&mut driver, "R", "x", Some("1"), 0);
    let changes: [(Option<&[u8]>, Option<&[u8]>, i64); 3] = [
        (Some(b"k"), Some(b"x|a"), 1),
        (Some(b"k"), Some(b"x|b"), 2),
        (Some(b"k"), Some(b"x|c"), 3),
    ];
    // One commit for all of them: every subscription is sent before the first answer comes back.
    let settings = RuntimeSettings {
        commit_adaptive: false,
        commit_interval_ms: 60_000,
        cache_bytes: 0,
        ..RuntimeSettings::default()
    };
    let options = DriverOptions {
        settings,
        commit_each: false,
        ..DriverOptions::default()
    };
    let mut late = TopologyTestDriver::new(&builder(false).build().unwrap(), options).unwrap();
    pipe(&mut late, "R", "x", Some("1"), 0);
    for driver in [&mut driver, &mut late] {
        driver.pipe_all("L", changes).unwrap();
        assert_eq!(rows(driver, "out").pop(), Some(row("k", "(x|c,1)", 3)));
    }
    assert_eq!(rows(&late, "out").len(), 1);
    assert_eq!(late.dropped_records(), 2);
}

#[test]
fn tables_of_different_partition_counts_join_and_answers_come_home() {
    let options = DriverOptions {
        partitions: BTreeMap::from([("L".to_owned(), 3), ("R".to_owned(), 2)]),
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&builder(false).build().unwrap(), options).unwrap();
    for number in 0..12 {
        pipe(&mut driver, "R", &format!("f{number}"), Some("r"), 0);
        let (key, value) = (format!("k{number}"), format!("f{number}|"));
        pipe(&mut driver, "L", &key, Some(&value), 1);
    }
    assert_eq!(rows(&driver, "out").len(), 12);
    for partition in 0..3 {
        let topic = TopicPartition::new(RESPONSE, partition);
        let (answers, _) = driver.broker().log(&topic).unwrap().read_committed(0, 100);
        assert!(!answers.is_empty());
        for answer in answers {
            assert_eq!(partition_for_key(&answer.key.unwrap(), 3), partition);
        }
    }
}

#[test]
fn own_partitioners_place_subscriptions_and_answers() {
    let builder = StreamsBuilder::new();
    let (left, right) = (
        builder.table::<String, String>("L"),
        builder.table::<String, String>("R"),
    );
    let joined = TableJoined::named("fk")
        .partitioned_by(|_, _, count| Some(count - 1))
        .other_partitioned_by(|topic, key, count| {
            assert!(topic == REGISTRATION && key.is_some());
            Some(count - 1)
        });
    left.join_foreign_key_with(
        &right,
        |_, value| Some(value.clone()),
        |_, _, right| right.clone(),
        joined,
        Materialized::unnamed(),
    );
    let options = DriverOptions {
        partitions: BTreeMap::from([("L".to_owned(), 4), ("R".to_owned(), 3)]),
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
    // Murmur2 places all of these elsewhere, so the right table's rows are not found.
    for key in ["a", "b", "c", "d"] {
        pipe(&mut driver, "L", key, Some(key), 1);
    }
    let records = |driver: &TopologyTestDriver, topic: &str, partition: i32| {
        let topic = TopicPartition::new(topic, partition);
        driver.broker().log(&topic).unwrap().read_committed(0, 100).0.len()
    };
    assert_eq!(records(&driver, REGISTRATION, 2), 4);
    for key in ["a", "b", "c", "d"] {
        pipe(&mut driver, "L", key, None, 2);
    }
    assert_eq!(records(&driver, RESPONSE, 3), 4);
}

#[test]
fn a_result_that_is_asked_for_old_values_is_stored() {
    let builder = StreamsBuilder::new();
    let (left, right) = (
        builder.table::<String, String>("L"),
        builder.table::<String, String>("R"),
    );
    let joined = left.join_foreign_key(&right, |_, value| Some(value.clone()), |_, _, right| right.clone());
    let grouped = joined.group_by(|key, value| (value.clone(), key.clone()));
    grouped.count("sizes").to_stream().to("out");
    let topology = builder.build().unwrap();
    assert!(
        topology
            .describe()
            .contains("(stores: [KTABLE-FK-JOIN-OUTPUT-STATE-STORE-0000000019])")
    );
    let mut driver = TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap();
    pipe(&mut driver, "R", "x", Some("red"), 0);
    pipe(&mut driver, "L", "k", Some("x"), 1);
    pipe(&mut driver, "R", "x", Some("blue"), 2);
    let count = |bytes: Vec<u8>| i64::from_be_bytes(bytes.try_into().unwrap());
    let counts = driver.read_all("out").into_iter();
    let counts: Vec<_> = counts
        .map(|r| (text(r.key.unwrap()), count(r.value.unwrap())))
        .collect();
    assert_eq!(
        counts,
        [("red".to_owned(), 1), ("red".to_owned(), 0), ("blue".to_owned(), 1)]
    );
}

/// A small generator with a seed; nothing here needs more.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What the join of two maps is.
fn model(
    left: &BTreeMap<String, String>,
    right: &BTreeMap<String, String>,
    left_join: bool,
) -> BTreeMap<String, String> {
    let result = |(key, value): (&String, &String)| {
        let foreign = right.get(value.split('|').next().unwrap_or_default());
        let shown = match (foreign, left_join) {
            (Some(foreign), _) => foreign.as_str(),
            (None, true) => "null",
            (None, false) => return None,
        };
        Some((key.clone(), format!("({value},{shown})")))
    };
    left.iter().filter_map(result).collect()
}

#[test]
fn the_last_result_of_each_key_is_that_of_the_last_rows_whatever_the_batches() {
    for seed in 0..40 {
        let mut random = Seeded(seed);
        let left_join = random.below(2) == 1;
        let settings = RuntimeSettings {
            commit_adaptive: false,
            commit_interval_ms: 60_000,
            cache_bytes: if random.below(2) == 1 { 1 << 16 } else { 0 },
            ..RuntimeSettings::default()
        };
        let options = DriverOptions {
            settings,
            commit_each: random.below(2) == 1,
            partitions: BTreeMap::from([("L".to_owned(), 1 + random.below(3) as i32), ("R".to_owned(), 2)]),
            ..DriverOptions::default()
        };
        let mut driver = TopologyTestDriver::new(&builder(left_join).build().unwrap(), options).unwrap();
        let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
        for time in 0..60 {
            let (topic, table, value) = if random.below(2) == 0 {
                let foreign = ["", "x", "xx", "y"][random.below(4) as usize];
                ("L", &mut left, format!("{foreign}|{}", random.below(5)))
            } else {
                ("R", &mut right, random.below(9).to_string())
            };
            let key = match topic {
                "L" => format!("k{}", random.below(4)),
                _ => ["x", "xx", "y"][random.below(3) as usize].to_owned(),
            };
            let value = (random.below(4) > 0).then_some(value);
            match &value {
                Some(value) => table.insert(key.clone(), value.clone()),
                None => table.remove(&key),
            };
            pipe(&mut driver, topic, &key, value.as_deref(), time);
        }
        let mut result = BTreeMap::new();
        for (key, value, _) in rows(&driver, "out") {
            match value {
                Some(value) => result.insert(key, value),
                None => result.remove(&key),
            };
        }
        assert_eq!(result, model(&left, &right, left_join), "seed {seed}");
    }
}
