//! Bad records as a stream.

use streams_dsl::doctest::{at, run};
use streams_dsl::prelude::*;

const TOPIC: &str = "__streams.errors.topic";
const OFFSET: &str = "__streams.errors.offset";
const CLASS: &str = "__streams.errors.exception";

fn text(record: &streams_dsl::Record<'_, Option<Vec<u8>>, Option<Vec<u8>>>, header: &str) -> String {
    let value = record.headers.last(header).and_then(|header| header.value.as_deref());
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}

/// Where each bad record lies, and why it is bad.
fn places(bad: &KStream<Option<Vec<u8>>, Option<Vec<u8>>>) -> KStream<Option<Vec<u8>>, String> {
    bad.map_values_record(|record| {
        format!(
            "{}@{} {}",
            text(record, TOPIC),
            text(record, OFFSET),
            text(record, CLASS)
        )
    })
}

#[test]
fn what_can_not_be_read_or_processed_goes_on_and_the_rest_is_processed() {
    run(|b| {
        let stream = b.stream::<i64, i64>("in");
        stream.map_values(|_, value| 100 / value).to("out");
        places(&stream.bad_records()).to("bad");
    })
    .pipe("in", [("no number", 1, at(0))])
    .pipe("in", [(1, 4, at(1)), (2, 0, at(2)), (3, 5, at(3))])
    .gives("out", [(1, 25, at(1)), (3, 20, at(3))])
    .gives(
        "bad",
        [("no number", "in@0 DeserializationException", at(0))]
            .map(|(key, value, at)| (Bytes(key.into()), value, at))
            .into_iter()
            .chain([(Bytes(2_i64.to_be_bytes().into()), "in@2 ProcessingException", at(2))]),
    )
    .dropped(2);
}

/// A key as bytes.
struct Bytes(Vec<u8>);

impl streams_dsl::doctest::Sample for Bytes {
    type Typed = Vec<u8>;
    fn typed(self) -> Vec<u8> {
        self.0
    }
}

#[test]
fn a_bad_record_is_written_as_the_dead_letter_of_java() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, i64>("in");
    stream.bad_records().to("dead");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let mut record = TestRecord::new("a".to_owned(), "no number".to_owned(), 7);
    record.headers.add("trace", Some(b"x"));
    TestInput::<String, String>::of("in")
        .pipe_record(&mut driver, &record)
        .unwrap();
    let dead = driver.read_all("dead").pop().unwrap();
    assert_eq!(
        (dead.key.as_deref(), dead.value.as_deref(), dead.timestamp_ms),
        (Some(&b"a"[..]), Some(&b"no number"[..]), 7)
    );
    let names: Vec<String> = dead.headers.iter().map(|header| header.key.to_string()).collect();
    let written = ["exception", "message", "stacktrace", "topic", "partition", "offset"];
    let written: Vec<String> = written.map(|name| format!("__streams.errors.{name}")).into();
    assert_eq!(names, [&["trace".to_owned()][..], &written].concat());
}

#[test]
fn a_failure_behind_an_aggregation_names_its_record_and_leaves_the_row_as_it_was() {
    for cache_bytes in [0, 1 << 20] {
        let builder = StreamsBuilder::new();
        let stream = builder.stream::<String, i64>("in");
        let sums = stream.group_by_key().reduce(
            |_, new, sum| {
                assert!(*new != 13, "unlucky");
                sum + new
            },
            "sums",
        );
        sums.to_stream().to("out");
        places(&stream.bad_records()).to("bad");
        let mut options = DriverOptions::default();
        options.settings.cache_bytes = cache_bytes;
        options.commit_each = false;
        let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
        let records = [("a", 1, 0), ("a", 13, 1), ("a", 13, 2), ("a", 2, 3)];
        TestInput::<String, i64>::of("in")
            .pipe_all(&mut driver, records)
            .unwrap();
        let bad = TestOutput::<String, String>::of("bad")
            .read_key_values_to_list(&mut driver)
            .unwrap();
        let expected = [1, 2].map(|offset| ("a".to_owned(), format!("in@{offset} ProcessingException")));
        assert_eq!(bad, expected, "cache of {cache_bytes} bytes");
        let last = TestOutput::<String, i64>::of("out")
            .read_values_to_list(&mut driver)
            .unwrap()
            .pop();
        assert_eq!(last, Some(3));
    }
}

#[test]
fn a_failure_in_a_flush_goes_on_without_bytes_in_the_same_commit() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, i64>("in");
    let sums = stream
        .group_by_key()
        .reduce(|_, new, sum| sum + new, "sums")
        .to_stream();
    sums.map_values(|_, sum: &Option<i64>| {
        assert!(*sum != Some(13), "unlucky");
        *sum
    })
    .to("out");
    let bad = stream.bad_records();
    places(&bad).to("bad");
    // What follows from it may be cached itself.
    let counted = places(&bad).select_key(|_, place| place.clone());
    counted
        .group_by_key()
        .count("bad-counts")
        .to_stream()
        .to("bad-counts-out");
    let mut options = DriverOptions::default();
    options.settings.cache_bytes = 1 << 20;
    options.commit_each = false;
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
    let input = TestInput::<String, i64>::of("in");
    input
        .pipe_all(&mut driver, [("a", 6, 0), ("a", 7, 1), ("b", 1, 2)])
        .unwrap();
    let bad = TestOutput::<Option<String>, String>::of("bad")
        .read_key_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(bad, [(None, "in@1 ProcessingException".to_owned())]);
    let counts = TestOutput::<String, i64>::of("bad-counts-out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(counts, [1]);
    let out = TestOutput::<String, i64>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(out, [1]);
}

#[test]
fn a_failure_behind_the_bad_records_goes_to_the_handlers() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, i64>("in");
    let bad = stream.bad_records();
    bad.for_each(|_, _| panic!("worse"));
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let failed = TestInput::<String, String>::of("in").pipe(&mut driver, "a", "bad".to_owned(), 0);
    let failed = failed.unwrap_err().to_string();
    assert!(
        failed.contains("worse") && failed.contains("in-0 at offset 0"),
        "{failed}"
    );
}

#[test]
fn records_of_other_topics_go_to_the_handlers() {
    let builder = StreamsBuilder::new();
    let one = builder.stream::<String, i64>("one");
    let other = builder.stream::<String, i64>("other");
    one.merge(&other).to("out");
    places(&one.bad_records()).to("bad");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    TestInput::<String, String>::of("one")
        .pipe(&mut driver, "a", "bad".to_owned(), 0)
        .unwrap();
    let failed = TestInput::<String, String>::of("other").pipe(&mut driver, "a", "bad".to_owned(), 0);
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("other-0"), "{failed}");
    assert_eq!(driver.read_all("bad").len(), 1);
}

#[test]
fn a_restart_sends_no_bad_record_twice() {
    run(|b| places(&b.stream::<String, i64>("in").bad_records()).to("bad"))
        .pipe("in", [("a", "bad", at(0))])
        .restart()
        .pipe("in", [("a", "worse", at(1))])
        .gives(
            "bad",
            [
                ("a", "in@0 DeserializationException", at(0)),
                ("a", "in@1 DeserializationException", at(1)),
            ],
        );
}

#[test]
fn an_event_time_that_is_read_from_a_bad_value_is_a_bad_record() {
    run(|b| {
        let read = Consumed::<String, i64>::named("source").timestamps_by(|_, value, _| *value);
        let stream = b.stream_with("in", read);
        stream.to("out");
        places(&stream.bad_records()).to("bad");
    })
    .pipe("in", [("a", "bad", at(3))])
    .pipe("in", [("a", 7, at(4))])
    .gives("out", [("a", 7, at(7))])
    .gives("bad", [("a", "in@0 DeserializationException", at(3))]);
}
