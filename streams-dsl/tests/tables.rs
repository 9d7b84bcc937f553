//! Rules of tables that their examples do not show, on the test driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use streams_core::runtime::RuntimeSettings;
use streams_dsl::{
    Consumed, DriverOptions, Grouped, Headers, KTable, Materialized, StreamsBuilder, TopologyTestDriver,
};

fn driver(builder: &StreamsBuilder) -> TopologyTestDriver {
    TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap()
}

/// A cache that holds everything, and a commit only when all input is processed.
fn cached(builder: &StreamsBuilder) -> TopologyTestDriver {
    let settings = RuntimeSettings {
        cache_bytes: 1 << 20,
        commit_adaptive: false,
        commit_interval_ms: 60_000,
        ..RuntimeSettings::default()
    };
    let options = DriverOptions {
        settings,
        commit_each: false,
        ..DriverOptions::default()
    };
    TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap()
}

fn pipe(driver: &mut TopologyTestDriver, topic: &str, key: &str, value: Option<i64>, time: i64) {
    let value = value.map(i64::to_be_bytes);
    let value = value.as_ref().map(|bytes| &bytes[..]);
    driver
        .pipe(topic, Some(key.as_bytes()), value, time, Headers::empty())
        .unwrap();
}

/// Everything a topic got: key, long value, time.
fn longs(driver: &TopologyTestDriver, topic: &str) -> Vec<(String, Option<i64>, i64)> {
    let long = |bytes: Vec<u8>| i64::from_be_bytes(bytes.try_into().unwrap());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let records = driver.read_all(topic).into_iter();
    records
        .map(|record| (text(record.key.unwrap()), record.value.map(long), record.timestamp_ms))
        .collect()
}

fn row(key: &str, value: impl Into<Option<i64>>, time: i64) -> (String, Option<i64>, i64) {
    (key.to_owned(), value.into(), time)
}

fn sum(_: &String, left: Option<&i64>, right: Option<&i64>) -> i64 {
    left.unwrap_or(&0) + right.unwrap_or(&0)
}

type Join = fn(&KTable<String, i64>, &KTable<String, i64>) -> KTable<String, i64>;

/// What a join of `L` and `R` gives for one key: left comes and goes without a partner, then both come, right goes and
/// comes, left goes, right goes.
fn joined(join: Join) -> Vec<(String, Option<i64>, i64)> {
    let builder = StreamsBuilder::new();
    let (left, right) = (builder.table::<String, i64>("L"), builder.table::<String, i64>("R"));
    join(&left, &right).to_stream().to("out");
    let mut driver = driver(&builder);
    let steps = [
        ("L", Some(1), 10),
        ("L", None, 11),
        ("L", None, 12),
        ("L", Some(2), 20),
        ("R", Some(100), 5),
        ("R", None, 6),
        ("R", Some(300), 30),
        ("L", None, 25),
        ("R", None, 40),
    ];
    for (topic, value, time) in steps {
        pipe(&mut driver, topic, "k", value, time);
    }
    longs(&driver, "out")
}

#[test]
fn an_inner_join_has_a_row_while_both_sides_have_one() {
    let out = joined(|left, right| left.join(right, |_, left, right| left + right));
    let expected = [
        row("k", 102, 20),
        row("k", None, 20),
        row("k", 302, 30),
        row("k", None, 30),
    ];
    assert_eq!(out, expected);
}

#[test]
fn a_left_join_has_a_row_while_the_left_side_has_one() {
    let out = joined(|left, right| left.left_join(right, |key, left, right| sum(key, Some(left), right)));
    let expected = [
        row("k", 1, 10),
        row("k", None, 11),
        row("k", 2, 20),
        row("k", 102, 20),
        row("k", 2, 20),
        row("k", 302, 30),
        row("k", None, 30),
    ];
    assert_eq!(out, expected);
}

#[test]
fn an_outer_join_has_a_row_while_either_side_has_one() {
    let out = joined(|left, right| left.outer_join(right, sum));
    let expected = [
        row("k", 1, 10),
        row("k", None, 11),
        row("k", 2, 20),
        row("k", 102, 20),
        row("k", 2, 20),
        row("k", 302, 30),
        row("k", 300, 30),
        row("k", None, 40),
    ];
    assert_eq!(out, expected);
}

#[test]
fn a_join_that_is_not_stored_can_be_joined_and_grouped_again() {
    let builder = StreamsBuilder::new();
    let [a, b, c] = ["a", "b", "c"].map(|topic| builder.table::<String, i64>(topic));
    let all = a.outer_join(&b, sum).outer_join(&c, sum);
    all.to_stream().to("out");
    let by_none = all.group_by_with(|_, value| ("all".to_owned(), *value), Grouped::named("all"));
    let total = by_none.reduce(|_, new, sum| sum + new, |_, old, sum| sum - old, "total");
    total.to_stream().to("total-out");
    let mut driver = driver(&builder);
    for (topic, key, value, time) in [
        ("a", "x", 1, 0),
        ("c", "x", 5, 1),
        ("b", "x", 10, 2),
        ("a", "y", 100, 3),
    ] {
        pipe(&mut driver, topic, key, Some(value), time);
    }
    pipe(&mut driver, "b", "x", None, 4);
    let values: Vec<_> = longs(&driver, "out")
        .into_iter()
        .map(|(_, value, _)| value.unwrap())
        .collect();
    assert_eq!(values, [1, 6, 16, 100, 6]);
    let totals: Vec<_> = longs(&driver, "total-out")
        .into_iter()
        .map(|(_, value, _)| value.unwrap())
        .collect();
    assert_eq!(totals, [1, 6, 16, 116, 106]);
}

#[test]
fn a_table_can_be_joined_with_itself() {
    let builder = StreamsBuilder::new();
    let table = builder.table::<String, i64>("t");
    let doubled = table.join_with(&table, |_, left, right| left + right, "doubled");
    doubled.filter(|_, _| true).to_stream().to("out");
    let mut driver = driver(&builder);
    pipe(&mut driver, "t", "k", Some(1), 0);
    pipe(&mut driver, "t", "k", Some(2), 1);
    assert_eq!(longs(&driver, "out").last(), Some(&row("k", 4, 1)));
    let stored = driver
        .key_value::<String, i64>("doubled", &"k".to_owned())
        .unwrap()
        .unwrap();
    assert_eq!((stored.value, stored.timestamp_ms), (4, 1));
}

#[test]
fn cached_and_uncached_groups_end_equal() {
    for make in [driver, cached] {
        let builder = StreamsBuilder::new();
        let table = builder.table_with("t", Consumed::<String, i64>::default(), "rows");
        let groups = table.group_by(|_, value| ((value % 2).to_string(), *value));
        groups.count("counts");
        groups.aggregate(|| 0, |_, new, sum: i64| sum + new, |_, old, sum| sum - old, "sums");
        let mut driver = make(&builder);
        for (key, value) in [("a", 1), ("b", 3), ("a", 2), ("c", 5), ("a", 7), ("b", 3), ("c", 5)] {
            pipe(&mut driver, "t", key, Some(value), 0);
        }
        pipe(&mut driver, "t", "c", None, 0);
        for (group, count, sum) in [("0", 0, 0), ("1", 2, 10)] {
            let key = group.to_owned();
            assert_eq!(
                driver.key_value::<String, i64>("counts", &key).unwrap().unwrap().value,
                count
            );
            assert_eq!(
                driver.key_value::<String, i64>("sums", &key).unwrap().unwrap().value,
                sum
            );
        }
    }
}

#[test]
fn groups_under_one_name_share_a_repartition_and_a_name_reaches_its_nodes() {
    let builder = StreamsBuilder::new();
    let groups = builder.table::<String, i64>("t");
    let groups = groups.group_by_with(|key, value| (key.clone(), *value), Grouped::named("by-key"));
    let _ = groups.count("counts").named("cnt");
    let _ = groups.count("more").named("other");
    let text = builder.build().unwrap().describe();
    for part in [
        "Processor: by-key ",
        "Sink: cnt-sink (topic: by-key-repartition)",
        "Source: cnt-source",
        "Processor: other",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("other-sink"));
}

#[test]
fn tables_of_two_builders_are_not_joined() {
    let (one, two) = (StreamsBuilder::new(), StreamsBuilder::new());
    let (left, right) = (one.table::<String, i64>("a"), two.table::<String, i64>("b"));
    left.join_with(&right, |_, left, right| left + right, Materialized::named("joined"));
    let Err(error) = one.build() else {
        panic!("they are of two builders")
    };
    let error = error.to_string();
    assert!(error.contains("two builders"), "{error}");
}

#[test]
fn the_result_of_a_join_is_stored_where_serdes_are_given_without_a_name() {
    let builder = StreamsBuilder::new();
    let (left, right) = (
        builder.table::<String, i64>("left"),
        builder.table::<String, i64>("right"),
    );
    left.left_join_with(
        &right,
        |_key, left, right| left + right.unwrap_or(&0),
        streams_dsl::Materialized::with(streams_dsl::serdes::Utf8, streams_dsl::serdes::Long),
    )
    .to_stream()
    .to("out");
    let text = builder.build().unwrap().describe().to_string();
    // KTableImpl.doJoin: the store of a `Materialized` without a name has a generated one, before the merge has its number.
    assert!(
        text.contains("KTABLE-MERGE-0000000007 (stores: [KTABLE-MERGE-STATE-STORE-0000000006])"),
        "{text}"
    );
}
