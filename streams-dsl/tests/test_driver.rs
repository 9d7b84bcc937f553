//! What a test of an application sees: typed topics, stores, the clock.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeMap;

use streams_dsl::prelude::*;
use streams_dsl::serdes::{Long, Utf8};
use streams_dsl::{BoxError, Error, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, PunctuationType, PunctuatorId};

fn driver(build: impl FnOnce(&StreamsBuilder)) -> TopologyTestDriver {
    let builder = StreamsBuilder::new();
    build(&builder);
    TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap()
}

fn sums(builder: &StreamsBuilder) {
    builder
        .stream::<String, i64>("in")
        .group_by_key()
        .reduce(|_, new, sum| sum + new, "sums")
        .to_stream()
        .to("out");
}

#[test]
fn every_record_is_read_once_in_the_form_that_is_asked_for() {
    let mut driver = driver(sums);
    let (input, output) = (TestInput::<String, i64>::of("in"), TestOutput::<String, i64>::of("out"));
    for (key, value) in [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5)] {
        input.pipe(&mut driver, key, value, 7).unwrap();
    }
    assert_eq!(output.queue_size(&driver), 5);
    let first = output.read_record(&mut driver).unwrap().unwrap();
    assert_eq!((first.key.as_str(), first.value, first.timestamp_ms), ("a", 1, 7));
    assert_eq!(output.read_key_value(&mut driver).unwrap(), Some(("b".to_owned(), 2)));
    assert_eq!(output.read_value(&mut driver).unwrap(), Some(4));
    let rest = output.read_key_values_to_map(&mut driver).unwrap();
    assert_eq!(rest, BTreeMap::from([("a".to_owned(), 8), ("b".to_owned(), 7)]));
    assert!(output.is_empty(&driver) && output.read_record(&mut driver).unwrap().is_none());
}

#[test]
fn headers_and_nulls_go_in_and_come_out() {
    let mut driver = driver(|b| drop(b.stream::<Option<String>, Option<i64>>("in").to("out")));
    let input = TestInput::<Option<String>, Option<i64>>::of("in");
    let output = TestOutput::<Option<String>, Option<i64>>::of("out");
    let mut record = TestRecord::new(None::<String>, Some(5), 9);
    record.headers.add("trace", Some(b"x"));
    input.pipe_record(&mut driver, &record).unwrap();
    input.pipe(&mut driver, "a".to_owned(), None, 10).unwrap();
    let read = output.read_records_to_list(&mut driver).unwrap();
    assert_eq!(read, [record, TestRecord::new("a".to_owned(), None, 10)]);
}

#[test]
fn records_piped_at_once_lie_in_the_topic_before_the_first_is_processed() {
    let mut driver = driver(sums);
    let input = TestInput::<String, i64>::of("in");
    input.pipe_all(&mut driver, [("a", 1, 5), ("a", 2, 3)]).unwrap();
    let sums = TestOutput::<String, i64>::of("out")
        .read_records_to_list(&mut driver)
        .unwrap();
    assert_eq!(
        sums.iter().map(|r| (r.value, r.timestamp_ms)).collect::<Vec<_>>(),
        [(1, 5), (3, 5)]
    );
}

#[test]
fn a_windowed_key_has_its_end_only_when_the_serde_knows_the_size() {
    let mut driver = driver(|builder| {
        let words = builder.stream::<String, i64>("in").group_by_key();
        words
            .windowed_by(TimeWindows::of(MINUTE))
            .count("counts")
            .to_stream()
            .to("out");
    });
    TestInput::<String, i64>::of("in")
        .pipe(&mut driver, "a", 1, 61_000)
        .unwrap();
    let by_default = TestOutput::<Windowed<String>, Option<i64>>::of("out");
    let sized = TestOutput::with("out", TimeWindowed::of_size(Utf8, 60_000), Long);
    let key = |end_ms| Windowed::new("a".to_owned(), Window::new(60_000, end_ms));
    let read: Vec<(Windowed<String>, i64)> = sized.read_key_values_to_list(&mut driver).unwrap();
    assert_eq!(read, [(key(120_000), 1)]);
    TestInput::<String, i64>::of("in")
        .pipe(&mut driver, "a", 1, 61_000)
        .unwrap();
    assert_eq!(
        by_default.read_key_values_to_list(&mut driver).unwrap(),
        [(key(i64::MAX), Some(2))]
    );
    let row = driver
        .window_value::<String, i64>("counts", &"a".to_owned(), 60_000)
        .unwrap();
    assert_eq!(row.unwrap().value, 2);
    assert!(
        driver
            .window_value::<String, i64>("counts", &"a".to_owned(), 0)
            .unwrap()
            .is_none()
    );
}

#[test]
fn rows_of_all_tasks_are_seen() {
    let builder = StreamsBuilder::new();
    sums(&builder);
    let options = DriverOptions {
        partitions: [("in".to_owned(), 3), ("out".to_owned(), 2)].into(),
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
    let input = TestInput::<String, i64>::of("in");
    let names: Vec<String> = (0..20).map(|number| format!("key-{number}")).collect();
    for name in &names {
        input.pipe(&mut driver, name, 1, 0).unwrap();
    }
    let rows: BTreeMap<String, i64> = driver
        .key_values::<String, i64>("sums")
        .unwrap()
        .into_iter()
        .map(|(key, row)| (key, row.value))
        .collect();
    assert_eq!(rows.len(), 20);
    assert_eq!(
        driver
            .key_value::<String, i64>("sums", &names[7])
            .unwrap()
            .unwrap()
            .value,
        1
    );
    assert_eq!(TestOutput::<String, i64>::of("out").queue_size(&driver), 20);
}

#[test]
fn a_wrong_name_or_type_is_told_with_what_there_is() {
    let mut driver = driver(sums);
    let input = TestInput::<String, i64>::of("inn").pipe(&mut driver, "a", 1, 0);
    let output = TestOutput::<String, i64>::of("outt").read_value(&mut driver);
    let topics = "its topics are app-sums-changelog, in, out";
    for error in [input.unwrap_err(), output.unwrap_err()] {
        assert!(error.to_string().ends_with(topics), "{error}");
    }
    let stores = [
        driver.key_value::<String, i64>("sum", &"a".to_owned()).unwrap_err(),
        driver.key_values::<String, String>("sums").map(drop).unwrap_err(),
    ];
    for error in stores {
        assert!(
            error.to_string().ends_with("their stores, of whatever kind, are sums"),
            "{error}"
        );
    }
    TestInput::<String, i64>::of("in").pipe(&mut driver, "a", 1, 0).unwrap();
    let unreadable = TestOutput::<i64, i64>::of("out").read_value(&mut driver).unwrap_err();
    assert!(
        matches!(&*unreadable, Error::Deserialize { what: "key", topic_partition, offset: 0, .. } if &*topic_partition.topic == "out"),
        "{unreadable}"
    );
}

/// Forwards the wall-clock time of each punctuation.
struct Ticks;

impl FixedKeyProcessor<String, i64, i64> for Ticks {
    fn init(&mut self, cx: &mut FixedKeyContext<'_, String, i64>) -> Result<(), BoxError> {
        cx.schedule_every(10 * SECOND, PunctuationType::WallClockTime);
        Ok(())
    }

    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, i64>,
        record: FixedKeyRecord<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let counts = cx.key_value_store::<String, i64>("seen")?;
        counts.put(cx, record.key(), Some(*record.value()), record.as_record())?;
        Ok(())
    }

    fn punctuate(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, i64>,
        _: PunctuatorId,
        timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        let seen = cx.key_value_store::<String, i64>("seen")?;
        let key = "tick".to_owned();
        seen.put(
            cx,
            &key,
            Some(timestamp_ms),
            streams_dsl::Record::new(&key, &(), timestamp_ms),
        )?;
        Ok(())
    }
}

#[test]
fn the_wall_clock_moves_only_by_hand() {
    let mut driver = driver(|builder| {
        builder.add_state_store(streams_dsl::Stores::key_value::<String, i64>("seen"));
        let ticks = builder.stream::<String, i64>("in");
        ticks.process_values_with(|| Ticks, Connect::stores(["seen"])).to("out");
    });
    TestInput::<String, i64>::of("in")
        .pipe(&mut driver, "a", 1, 1_000_000)
        .unwrap();
    let tick = |driver: &mut TopologyTestDriver| {
        let row = driver.key_value::<String, i64>("seen", &"tick".to_owned()).unwrap();
        row.map(|row| row.value)
    };
    assert_eq!(tick(&mut driver), None);
    driver.advance_wall_clock_time(9 * SECOND).unwrap();
    assert_eq!(tick(&mut driver), None);
    driver.advance_wall_clock_time(SECOND).unwrap();
    assert_eq!((tick(&mut driver), driver.now_ms()), (Some(10_000), 10_000));
}
