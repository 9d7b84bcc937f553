//! Rules of versioned tables (KIP-889, KIP-914), on the test driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::time::Duration;

use streams_core::TopicPartition;
use streams_core::fetch::{PartitionBatch, PartitionId};
use streams_core::restore::replay_all;
use streams_core::runtime::ChangelogRestore;
use streams_dsl::{
    BoxError, Connect, Consumed, DriverOptions, HOUR, Headers, KTable, MILLISECOND, Materialized, Processor,
    ProcessorContext, Record, Stores, StreamsBuilder, TopologyTestDriver, VersionPut,
};
use streams_state::{StoreMetadata, StoreSpec, TaskState};

fn driver(builder: &StreamsBuilder) -> TopologyTestDriver {
    TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap()
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

type Row = (String, Option<String>, i64);

fn row(key: &str, value: impl Into<Option<&'static str>>, time: i64) -> Row {
    (key.to_owned(), value.into().map(str::to_owned), time)
}

fn rows(driver: &TopologyTestDriver, topic: &str) -> Vec<Row> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let records = driver.read_all(topic).into_iter();
    records
        .map(|record| (text(record.key.unwrap()), record.value.map(text), record.timestamp_ms))
        .collect()
}

fn table(builder: &StreamsBuilder, topic: &str, history: Duration) -> KTable<String, String> {
    let store = Materialized::named(format!("{topic}-rows")).versioned(history);
    builder.table_with(topic, Consumed::default(), store)
}

#[test]
fn every_accepted_version_is_logged_with_its_own_time_and_a_refused_one_is_dropped() {
    let builder = StreamsBuilder::new();
    table(&builder, "T", 100 * MILLISECOND).to_stream().to("out");
    let mut driver = driver(&builder);
    for (value, time) in [(Some("a"), 1_000), (None, 950), (Some("late"), 899), (Some("b"), 1_000)] {
        pipe(&mut driver, "T", "k", value, time);
    }
    let expected = [row("k", "a", 1_000), row("k", None, 950), row("k", "b", 1_000)];
    assert_eq!(rows(&driver, "out"), expected);
    assert_eq!(
        rows(&driver, "app-T-rows-changelog"),
        expected,
        "plain values, the version's time"
    );
    assert_eq!(driver.dropped_records(), 1);
}

#[test]
fn groups_are_made_of_the_newest_versions() {
    let builder = StreamsBuilder::new();
    let grouped = table(&builder, "T", HOUR).group_by(|key, value| (value.clone(), key.clone()));
    let counts = grouped.count("counts").to_stream();
    counts
        .map_values(|_, count| count.map(|count| count.to_string()))
        .to("out");
    let mut driver = driver(&builder);
    pipe(&mut driver, "T", "ann", Some("red"), 10);
    pipe(&mut driver, "T", "ann", Some("blue"), 5);
    pipe(&mut driver, "T", "ann", Some("green"), 20);
    let expected = [row("red", "1", 10), row("red", "0", 20), row("green", "1", 20)];
    assert_eq!(rows(&driver, "out"), expected);
    assert_eq!(
        driver.dropped_records(),
        0,
        "left out, as in Java, without being counted"
    );
}

#[test]
fn a_filtered_version_that_never_was_is_deleted_all_the_same() {
    // Of a plain table with old values known, a delete of nothing is not sent (`KTableFilter`).
    let run = |versioned: bool| {
        let builder = StreamsBuilder::new();
        let store = Materialized::named("rows");
        let store = if versioned { store.versioned(HOUR) } else { store };
        let table = builder.table_with::<String, String>("T", Consumed::default(), store);
        table.filter(|_, value| value != "hidden").to_stream().to("out");
        let mut driver = driver(&builder);
        pipe(&mut driver, "T", "k", Some("hidden"), 1);
        rows(&driver, "out")
    };
    assert_eq!(run(true), [row("k", None, 1)]);
    assert_eq!(run(false), []);
}

#[test]
fn an_aggregate_with_versions_goes_on_from_the_newest_and_keeps_the_older_ones() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<String, String>("in").group_by_key();
    let all = grouped.aggregate(
        String::new,
        |_, value, all: String| all + value,
        Materialized::named("all").versioned(HOUR),
    );
    all.to_stream().to("out");
    let mut driver = driver(&builder);
    for (value, time) in [("a", 10), ("b", 30), ("c", 20)] {
        pipe(&mut driver, "in", "k", Some(value), time);
    }
    let expected = [row("k", "a", 10), row("k", "ab", 30), row("k", "abc", 30)];
    assert_eq!(rows(&driver, "out"), expected);
    let as_of = |driver: &mut TopologyTestDriver, time| {
        let found = driver
            .version_as_of::<String, String>("all", &"k".to_owned(), time)
            .unwrap();
        found.map(|version| (version.value, version.from_ms, version.to_ms))
    };
    assert_eq!(as_of(&mut driver, 29), Some(("a".to_owned(), 10, Some(30))));
    assert_eq!(as_of(&mut driver, 30), Some(("abc".to_owned(), 30, None)));
    assert_eq!(as_of(&mut driver, 9), None);
}

#[test]
fn a_join_result_with_versions_of_its_own_is_versioned() {
    let builder = StreamsBuilder::new();
    let (left, right) = (table(&builder, "L", HOUR), table(&builder, "R", HOUR));
    let joined = left.join_with(
        &right,
        |_, left, right| format!("{left}{right}"),
        Materialized::named("joined").versioned(HOUR),
    );
    let stream = builder.stream::<String, String>("S");
    stream
        .join_table(&joined, |_, left, right| format!("{left}:{right}"))
        .to("out");
    let mut driver = driver(&builder);
    pipe(&mut driver, "L", "k", Some("l"), 10);
    pipe(&mut driver, "R", "k", Some("r"), 10);
    pipe(&mut driver, "R", "k", Some("R"), 20);
    pipe(&mut driver, "S", "k", Some("s"), 15);
    assert_eq!(rows(&driver, "out"), [row("k", "s:lr", 15)]);
}

#[test]
fn a_global_table_with_versions_is_refused() {
    let builder = StreamsBuilder::new();
    builder.global_table_with::<String, String>("G", Consumed::default(), Materialized::named("g").versioned(HOUR));
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("can't be versioned"), "{error}");
}

/// Puts what it gets at the time that stands in the value, and forwards what was valid one millisecond before.
struct Before;

impl Processor<String, i64, String, String> for Before {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let times = cx.versioned_store::<String, i64>("times")?;
        let put = times.put_at(cx, record.key, Some(record.value), *record.value)?;
        let before = times.get_as_of(cx, record.key, record.value - 1)?;
        let next = match put {
            VersionPut::Before(next) => next.to_string(),
            other => format!("{other:?}"),
        };
        let text = format!("{:?}, then {next}", before.map(|version| version.value));
        Ok(cx.forward(record.with_value(&text))?)
    }
}

#[test]
fn processors_read_and_write_versions() {
    let builder = StreamsBuilder::new();
    builder.add_state_store(Stores::versioned::<String, i64>("times", 50 * MILLISECOND));
    let stream = builder.stream::<String, i64>("in");
    stream.process_with(|| Before, Connect::stores(["times"])).to("out");
    let mut driver = driver(&builder);
    for value in [100_i64, 60, 80, 49] {
        let bytes = value.to_be_bytes();
        driver
            .pipe("in", Some(b"k"), Some(&bytes), 0, Headers::empty())
            .unwrap();
    }
    let told: Vec<String> = rows(&driver, "out")
        .into_iter()
        .map(|(_, value, _)| value.unwrap())
        .collect();
    assert_eq!(
        told,
        [
            "None, then Latest",
            "None, then 100",
            "Some(60), then 100",
            "None, then Expired"
        ]
    );
}

#[test]
fn the_changelog_gives_every_version_back() {
    let builder = StreamsBuilder::new();
    table(&builder, "T", 1_000 * MILLISECOND);
    let mut driver = driver(&builder);
    for (value, time) in [(Some("a"), 1_000), (Some("b"), 1_050), (None, 1_020)] {
        pipe(&mut driver, "T", "k", value, time);
    }
    let log = driver.read_all("app-T-rows-changelog");
    let spec = StoreSpec::versioned("T-rows", 1_000);
    let mut state = TaskState::in_memory("0_0", vec![spec]).unwrap();
    let store = state.store_id("T-rows").unwrap();
    let changelog = ChangelogRestore {
        store,
        name: "T-rows".to_owned(),
        topic_partition: TopicPartition::new("app-T-rows-changelog", 0),
        from: 0,
        to: 3,
        exact_end: false,
        from_zero: true,
        resumed: false,
        timestamped: false,
        rows: None,
        buffered: None,
        metadata: StoreMetadata {
            changelog_topic_id: None,
            position: 0,
            own_commit: false,
            applied_at_ms: 0,
        },
        meanwhile_ms: 0,
    };
    let replayed = replay_all(&mut state, &changelog, |from| {
        let mut batch = PartitionBatch::new(PartitionId(0), 0);
        for (offset, record) in (0_i64..).zip(&log).skip(usize::try_from(from).unwrap()) {
            let pushed = batch.push(
                offset,
                record.timestamp_ms,
                -1,
                record.key.as_deref(),
                record.value.as_deref(),
                [],
            );
            assert!(pushed);
        }
        (batch, 3)
    });
    assert_eq!(replayed.unwrap().rows, 3);
    assert_eq!(state.store_metadata(store).unwrap().position, 3);
    let mut as_of = |time| {
        let found = state.version_as_of(store, b"k", time).unwrap();
        found.map(|version| (String::from_utf8(version.value.into_vec()).unwrap(), version.from_ms))
    };
    assert_eq!(as_of(999), None);
    assert_eq!(as_of(1_019), Some(("a".to_owned(), 1_000)));
    assert_eq!((as_of(1_020), as_of(1_049)), (None, None));
    assert_eq!(as_of(1_050), Some(("b".to_owned(), 1_050)));
}
