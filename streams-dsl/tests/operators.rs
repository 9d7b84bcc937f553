//! Rules of the operators that their examples do not show, on the test driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::sync::Arc;

use streams_core::processor::{ErrorHandlers, LogAndContinue};
use streams_core::runtime::RuntimeSettings;
use streams_core::serde::{Long, Utf8};
use streams_dsl::{
    Consumed, DriverOptions, HOUR, Headers, MILLISECOND, Materialized, Optimization, StreamsBuilder, TimeWindows,
    TopologyError, TopologyTestDriver,
};

fn driver(builder: &StreamsBuilder, options: DriverOptions) -> TopologyTestDriver {
    TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap()
}

/// A cache that holds everything, and a commit only when all input is processed.
fn cached() -> DriverOptions {
    let settings = RuntimeSettings {
        cache_bytes: 1 << 20,
        commit_adaptive: false,
        commit_interval_ms: 60_000,
        ..RuntimeSettings::default()
    };
    DriverOptions {
        settings,
        commit_each: false,
        ..DriverOptions::default()
    }
}

fn pipe(driver: &mut TopologyTestDriver, topic: &str, key: &str, value: i64, time: i64) {
    driver
        .pipe(
            topic,
            Some(key.as_bytes()),
            Some(&value.to_be_bytes()),
            time,
            Headers::empty(),
        )
        .unwrap();
}

/// Everything a topic got: key, long value, time.
fn longs(driver: &TopologyTestDriver, topic: &str) -> Vec<(String, Option<i64>, i64)> {
    let long = |bytes: Vec<u8>| i64::from_be_bytes(bytes.try_into().unwrap());
    let records = driver.read_all(topic).into_iter();
    records
        .map(|r| {
            (
                String::from_utf8_lossy(&r.key.unwrap()).into_owned(),
                r.value.map(long),
                r.timestamp_ms,
            )
        })
        .collect()
}

#[test]
fn cached_and_uncached_aggregates_end_equal() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("in")
        .group_by_key()
        .reduce(|_, new, sum| sum + new, "sum")
        .to_stream()
        .to("out");
    let mut last = Vec::new();
    for options in [DriverOptions::default(), cached()] {
        let mut driver = driver(&builder, options);
        for (key, value, time) in [("a", 1, 5), ("b", 2, 1), ("a", 4, 3)] {
            pipe(&mut driver, "in", key, value, time);
        }
        last.push(
            longs(&driver, "out")
                .into_iter()
                .map(|(key, value, time)| (key, (value, time)))
                .collect::<std::collections::BTreeMap<_, _>>(),
        );
    }
    assert_eq!(last[0], last[1]);
    assert_eq!(last[0]["a"], (Some(5), 5));
}

#[test]
fn a_failing_function_leaves_the_row_as_it_was_and_ends_the_record_at_its_step() {
    for options in [DriverOptions::default(), cached()] {
        let builder = StreamsBuilder::new();
        let sums = builder.stream::<String, i64>("in").group_by_key().aggregate(
            || 0,
            |_, new, sum: i64| {
                assert!(*new != 13, "unlucky");
                sum + new
            },
            "sum",
        );
        sums.to_stream().to("out");
        let handlers = ErrorHandlers {
            processing: Arc::new(LogAndContinue),
            ..ErrorHandlers::default()
        };
        let mut driver = driver(
            &builder,
            DriverOptions {
                handlers: Arc::new(handlers),
                ..options
            },
        );
        for value in [1, 13, 4] {
            pipe(&mut driver, "in", "a", value, 0);
        }
        assert_eq!(longs(&driver, "out").last(), Some(&("a".to_owned(), Some(5), 0)));
        assert_eq!(driver.dropped_records(), 1);
    }
}

#[test]
fn null_values_count_in_windows_and_are_dropped_without() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<Option<String>, Option<i64>>("in").group_by_key();
    grouped.count("plain").to_stream().to("plain-out");
    grouped
        .windowed_by(TimeWindows::of(HOUR))
        .count("windowed")
        .to_stream()
        .to("windowed-out");
    let mut driver = driver(&builder, DriverOptions::default());
    driver.pipe("in", Some(b"a"), None, 0, Headers::empty()).unwrap();
    driver
        .pipe("in", None, Some(&1i64.to_be_bytes()), 0, Headers::empty())
        .unwrap();
    assert_eq!(driver.read_all("plain-out").len(), 0);
    assert_eq!(driver.read_all("windowed-out").len(), 1);
    assert_eq!(driver.dropped_records(), 3);
}

#[test]
fn rows_of_open_windows_outlive_a_jump_of_time_and_rows_of_closed_ones_go() {
    let builder = StreamsBuilder::new();
    let windows = TimeWindows::of(100 * MILLISECOND).grace(1_000_000 * MILLISECOND);
    builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(windows)
        .count("w")
        .to_stream()
        .to("out");
    let mut driver = driver(&builder, DriverOptions::default());
    pipe(&mut driver, "in", "a", 1, 0);
    pipe(&mut driver, "in", "b", 1, 1_000_099);
    pipe(&mut driver, "in", "a", 1, 0);
    let counts: Vec<_> = driver
        .read_all("out")
        .into_iter()
        .map(|r| r.value.unwrap()[7])
        .collect();
    assert_eq!(counts, [1, 1, 2]);
    pipe(&mut driver, "in", "b", 1, 10_000_000);
    pipe(&mut driver, "in", "a", 1, 0);
    assert_eq!((driver.read_all("out").len(), driver.dropped_records()), (4, 1));
}

#[test]
fn a_filter_of_a_stored_table_sends_no_delete_for_a_row_that_was_not_there() {
    let builder = StreamsBuilder::new();
    let table = builder.table_with("in", Consumed::<String, i64>::default(), "t");
    table.filter(|_, value| *value > 0).to_stream().to("out");
    let mut driver = driver(&builder, DriverOptions::default());
    for (value, time) in [(-1, 0), (5, 1), (-2, 2), (-3, 3)] {
        pipe(&mut driver, "in", "a", value, time);
    }
    let expected = [("a".to_owned(), Some(5), 1), ("a".to_owned(), None, 2)];
    assert_eq!(longs(&driver, "out"), expected);
}

#[test]
fn aggregates_may_vanish() {
    let builder = StreamsBuilder::new();
    let open = builder.stream::<String, i64>("in").group_by_key();
    let open = open.aggregate_opt(
        |_, delta, count: Option<i64>| Some(count.unwrap_or(0) + delta).filter(|count| *count != 0),
        "open",
    );
    open.to_stream().to("out");
    let mut driver = driver(&builder, DriverOptions::default());
    pipe(&mut driver, "in", "a", 1, 0);
    pipe(&mut driver, "in", "a", -1, 1);
    assert_eq!(
        longs(&driver, "out"),
        [("a".to_owned(), Some(1), 0), ("a".to_owned(), None, 1)]
    );
    assert_eq!(driver.key_value::<String, i64>("open", &"a".to_owned()).unwrap(), None);
}

#[test]
fn build_reports_every_finding() {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(TimeWindows::of(HOUR).advance_by(2 * HOUR))
        .count("a b");
    builder.stream::<String, String>("in").to("out").named("not a name");
    let Err(TopologyError::Several(findings)) = builder.build() else {
        panic!("several things are wrong")
    };
    let text = TopologyError::Several(findings).to_string();
    for part in ["must advance by", "`a b`", "`not a name`", "is read as"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn building_twice_gives_the_same_topology() {
    let builder = StreamsBuilder::new();
    let mapped = builder
        .stream::<String, String>("in")
        .map(|key, value| (value.clone(), key.clone()));
    mapped.group_by_key().count(Materialized::with(Utf8, Long));
    let config = streams_dsl::TopologyConfig {
        optimization: Optimization::parse("all").unwrap(),
    };
    let (first, second) = (
        builder.build_with(&config).unwrap(),
        builder.build_with(&config).unwrap(),
    );
    assert_eq!(first.describe(), second.describe());
    assert!(Optimization::parse("single.store.self.joins").is_err());
}

#[test]
fn what_follows_through_a_repartition_topic_is_there_when_pipe_returns_also_without_a_commit_for_each_record() {
    let builder = StreamsBuilder::new();
    let by_value = builder
        .stream::<String, String>("in")
        .group_by(|_, value| value.clone());
    by_value.count("counts").to_stream().to("out");
    let options = DriverOptions {
        commit_each: false,
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
    driver.pipe("in", Some(b"k"), Some(b"v"), 1, Headers::empty()).unwrap();
    assert_eq!(driver.read_all("out").len(), 1);
    let more: [(Option<&[u8]>, Option<&[u8]>, i64); 2] = [(Some(b"k"), Some(b"v"), 2), (Some(b"l"), Some(b"v"), 3)];
    driver.pipe_all("in", more).unwrap();
    let last = driver.read_all("out").pop().unwrap();
    assert_eq!(
        (last.key.as_deref(), last.value.as_deref()),
        (Some(&b"v"[..]), Some(&3_i64.to_be_bytes()[..]))
    );
}

#[test]
fn a_late_record_that_deletes_an_aggregate_does_not_take_its_time_back() {
    let builder = StreamsBuilder::new();
    let open = builder.stream::<String, i64>("in").group_by_key();
    let row =
        |_: &String, delta: &i64, count: Option<i64>| Some(count.unwrap_or(0) + delta).filter(|count| *count != 0);
    open.aggregate_opt(row, "open").to_stream().to("out");
    let mut driver = driver(&builder, DriverOptions::default());
    pipe(&mut driver, "in", "a", 1, 5);
    pipe(&mut driver, "in", "a", -1, 2);
    assert_eq!(longs(&driver, "out").last(), Some(&("a".to_owned(), None, 5)));
}
