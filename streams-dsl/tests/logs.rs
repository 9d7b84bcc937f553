//! What is logged, and what never is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use streams_core::processor::{ErrorHandlers, LogAndContinue};
use streams_core::serde::Utf8;
use streams_dsl::{
    Consumed, DAY, DriverOptions, HOUR, Headers, Json, Materialized, StreamsBuilder, TimeWindows, Topology,
    TopologyTestDriver,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps every event and span of every level as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn write(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        record(&mut line);
        self.0.lock().unwrap().push_str(&(line.0 + "\n"));
    }

    fn lines(&self, with: &str) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .lines()
            .filter(|line| line.contains(with))
            .map(str::to_owned)
            .collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.write(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        self.0.lock().unwrap().push_str(&(line.0 + "\n"));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        self.write(event.metadata(), |line| event.record(line));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn logged(run: impl FnOnce()) -> Log {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), run);
    log
}

const MARKER: &str = "MARKER-4711";

/// Every kind of node that can refuse, drop or fail: reading, user code, windows that are over, repartition, tables.
fn topology() -> Topology {
    let builder = StreamsBuilder::new();
    let numbers = builder.stream_with::<String, i64>("numbers", Consumed::with(Utf8, Json::<i64>::new()));
    numbers
        .map_values(|_, number| 10_i64.checked_div(*number).expect("told to fail"))
        .to("quotients");
    let texts = builder.stream::<String, String>("texts");
    let table = builder.table::<String, String>("table");
    texts
        .join_table(&table, |_, text, row: &String| format!("{text}{row}"))
        .to("joined");
    let by_value = texts.group_by(|_, text| text.clone());
    by_value
        .windowed_by(TimeWindows::of(HOUR))
        .count("windows")
        .to_stream()
        .select_key(|window, _| window.key.clone())
        .to("counts");
    builder.build().unwrap()
}

#[test]
fn no_key_value_or_header_is_ever_logged() {
    let log = logged(|| {
        let handlers = ErrorHandlers {
            deserialization: Arc::new(LogAndContinue),
            processing: Arc::new(LogAndContinue),
            production: Arc::new(LogAndContinue),
            dead_letter_topic: None,
        };
        let options = DriverOptions {
            handlers: Arc::new(handlers),
            ..DriverOptions::default()
        };
        let mut driver = TopologyTestDriver::new(&topology(), options).unwrap();
        let mut headers = Headers::default();
        headers.add(MARKER, Some(MARKER.as_bytes()));
        let quoted = format!("\"{MARKER}\"");
        let mut broken = MARKER.as_bytes().to_vec();
        broken.push(0xff);
        let (marker, hours) = (MARKER.as_bytes(), 3_600_000);
        let records: [(&str, Option<&[u8]>, Option<&[u8]>, i64); 10] = [
            ("numbers", Some(marker), Some(b"5"), 1),
            ("numbers", Some(marker), Some(quoted.as_bytes()), 2),
            ("numbers", Some(marker), Some(marker), 3),
            ("numbers", Some(&broken), Some(b"5"), 4),
            ("numbers", Some(marker), Some(b"0"), 5),
            ("table", Some(marker), Some(marker), 6),
            ("texts", Some(marker), Some(marker), 48 * hours),
            ("texts", Some(marker), Some(marker), 7),
            ("texts", None, Some(marker), 8),
            ("table", Some(marker), None, 9),
        ];
        for (topic, key, value, time) in records {
            driver.pipe(topic, key, value, time, &headers).unwrap();
        }
        driver.advance_wall_clock_ms(1_000).unwrap();
        assert_eq!(driver.read_all("quotients").len(), 1);
        assert_eq!(driver.read_all("joined").len(), 2);
    });
    assert_eq!(log.lines("failed").len(), 5, "{:?}", log.lines(""));
    assert!(!log.lines("committed").is_empty());
    assert_eq!(log.lines(MARKER), Vec::<String>::new());
}

/// The warnings about records that are older than the windows' changelog keeps them.
fn warnings_about_old_records(materialized: Materialized<String, i64>, age_ms: i64) -> Vec<String> {
    let log = logged(|| {
        let builder = StreamsBuilder::new();
        let grouped = builder.stream::<String, String>("in").group_by_key();
        grouped.windowed_by(TimeWindows::of(HOUR)).count(materialized);
        let now_ms = 1_700_000_000_000;
        let options = DriverOptions {
            now_ms,
            ..DriverOptions::default()
        };
        let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
        for at in 0..3 {
            driver
                .pipe("in", Some(b"k"), Some(b"v"), now_ms - age_ms + at, Headers::empty())
                .unwrap();
        }
        let warned = driver.core().status().totals.lagging_tasks;
        assert!(warned <= 1);
    });
    log.lines("older than their changelog keeps records")
}

#[test]
fn records_older_than_the_changelog_keeps_them_are_told_once() {
    let year_ms = i64::try_from(365 * DAY.as_millis()).unwrap();
    let warnings = warnings_about_old_records(Materialized::named("windows"), year_ms);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in ["WARN", "task_id=0_0", "windows", "app-windows-changelog", "lag_ms="] {
        assert!(warnings[0].contains(part), "{part}: {}", warnings[0]);
    }
}

#[test]
fn records_of_now_or_a_changelog_for_ever_are_not_told() {
    let year_ms = i64::try_from(365 * DAY.as_millis()).unwrap();
    assert!(warnings_about_old_records(Materialized::named("windows"), 0).is_empty());
    let kept = Materialized::named("windows").logging([("retention.ms", "-1")]);
    assert!(warnings_about_old_records(kept, year_ms).is_empty());
}
