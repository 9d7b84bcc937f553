//! Rules of the grace period that its example does not show, on the test driver.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use streams_core::codec::BufferedValue;
use streams_core::test_driver::{DriverOptions, LogRecord, TopologyTestDriver};

use crate::{Consumed, HOUR, Headers, Joined, MILLISECOND, Materialized, StreamsBuilder};

const BUFFER: &str = "app-j-Buffer-changelog";

fn builder(left: bool) -> StreamsBuilder {
    let builder = StreamsBuilder::new();
    let versioned = Materialized::named("rows").versioned(HOUR);
    let table = builder.table_with::<String, String>("T", Consumed::default(), versioned);
    let joined = Joined::named("j").grace(10 * MILLISECOND);
    let stream = builder.stream::<String, String>("S2");
    let out = match left {
        false => stream.join_table_with(&table, |_, left, right| format!("({left},{right})"), joined),
        true => stream.left_join_table_with(&table, |_, left, right| format!("({left},{right:?})"), joined),
    };
    out.to("out");
    builder
}

fn driver(left: bool) -> TopologyTestDriver {
    TopologyTestDriver::new(&builder(left).build().unwrap(), DriverOptions::default()).unwrap()
}

fn pipe(driver: &mut TopologyTestDriver, topic: &str, key: &str, value: Option<&str>, time: i64) {
    driver
        .pipe(
            topic,
            Some(key.as_bytes()),
            value.map(str::as_bytes),
            time,
            Headers::empty(),
        )
        .unwrap();
}

fn out(driver: &TopologyTestDriver) -> Vec<(String, String, i64)> {
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
    let row = |record: LogRecord| (text(record.key), text(record.value), record.timestamp_ms);
    driver.read_all("out").into_iter().map(row).collect()
}

fn row(key: &str, value: &str, time: i64) -> (String, String, i64) {
    (key.to_owned(), value.to_owned(), time)
}

#[test]
fn waiting_records_join_by_time_and_at_one_time_by_key() {
    let mut driver = driver(true);
    for (key, value, time) in [
        ("b", "1", 7),
        ("a", "2", 7),
        ("b", "3", 6),
        ("a", "4", 8),
        ("a", "5", 7),
    ] {
        pipe(&mut driver, "S2", key, Some(value), time);
    }
    assert_eq!(out(&driver), []);
    pipe(&mut driver, "T", "a", Some("x"), 7);
    pipe(&mut driver, "S2", "c", Some("late to come"), 18);
    let expected = [
        row("b", "(3,None)", 6),
        row("a", "(2,Some(\"x\"))", 7),
        row("a", "(5,Some(\"x\"))", 7),
        row("b", "(1,None)", 7),
        row("a", "(4,Some(\"x\"))", 8),
    ];
    assert_eq!(out(&driver), expected);
}

#[test]
fn a_record_later_than_the_grace_joins_at_once_and_one_at_its_edge_waits_for_none() {
    let mut driver = driver(false);
    pipe(&mut driver, "T", "k", Some("a"), 0);
    pipe(&mut driver, "S2", "k", Some("1"), 20);
    pipe(&mut driver, "S2", "k", Some("2"), 9);
    assert_eq!(out(&driver), [row("k", "(2,a)", 9)]);
    pipe(&mut driver, "S2", "k", Some("3"), 10);
    assert_eq!(out(&driver)[1..], [row("k", "(3,a)", 10)]);
    assert_eq!(
        driver.read_all(BUFFER).len(),
        3,
        "the late one was not kept, the other was, and let go"
    );
}

#[test]
fn the_buffer_is_logged_as_java_logs_it() {
    let mut driver = driver(false);
    let mut headers = Headers::default();
    headers.add("trace", Some(b"7"));
    driver.advance_wall_clock_ms(5_000).unwrap();
    driver.pipe("S2", Some(b"k"), Some(b"v"), 10, &headers).unwrap();
    let kept = driver.read_all(BUFFER).pop().unwrap();
    let key = [&[0][..], &10_i64.to_be_bytes(), b"k", &1_u32.to_be_bytes()].concat();
    assert_eq!(kept.key, Some(key));
    assert_eq!(
        (kept.timestamp_ms, kept.headers.len()),
        (5_000, 0),
        "Java's producer takes the clock's time"
    );
    let buffered = BufferedValue::decode_grace(&kept.value.unwrap()).unwrap();
    assert_eq!((buffered.new.as_deref(), buffered.time_ms), (Some(&b"v"[..]), 0));
    assert_eq!((&*buffered.context.topic, buffered.context.offset), ("S2", 0));
    assert_eq!(
        (buffered.context.timestamp_ms, buffered.context.headers),
        (10, headers.clone())
    );

    pipe(&mut driver, "T", "k", Some("t"), 1);
    pipe(&mut driver, "S2", "k", Some("w"), 20);
    let joined = driver.read_all("out").pop().unwrap();
    assert_eq!(joined.headers, headers, "those of the record that waited");
    let gone = driver.read_all(BUFFER).pop().unwrap();
    assert!(gone.value.is_none() && gone.key.unwrap().starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 10]));
}

#[test]
fn a_table_without_versions_is_refused_when_it_is_built() {
    let builder = StreamsBuilder::new();
    let table = builder.table::<String, String>("T");
    let joined = Joined::named("j").grace(10 * MILLISECOND);
    builder
        .stream::<String, String>("S")
        .join_table_with(&table, |_, left, _| left.clone(), joined)
        .to("out");
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("must be versioned"), "{error}");
}

#[test]
fn versions_are_found_through_filters_and_mapped_values() {
    let builder = StreamsBuilder::new();
    let versioned = Materialized::named("rows").versioned(HOUR);
    let table = builder.table_with::<String, String>("T", Consumed::default(), versioned);
    let derived = table
        .filter(|_, value| value != "hidden")
        .map_values(|_, value| value.to_uppercase());
    let joined = Joined::named("j").grace(10 * MILLISECOND);
    builder
        .stream::<String, String>("S2")
        .left_join_table_with(&derived, |_, left, right| format!("({left},{right:?})"), joined)
        .to("out");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    for (value, time) in [("a", 1), ("hidden", 5), ("b", 9)] {
        pipe(&mut driver, "T", "k", Some(value), time);
    }
    for time in [2, 6, 9, 30] {
        pipe(&mut driver, "S2", "k", Some("s"), time);
    }
    let found: Vec<String> = out(&driver).into_iter().map(|(_, value, _)| value).collect();
    assert_eq!(found, ["(s,Some(\"A\"))", "(s,None)", "(s,Some(\"B\"))"]);
}
