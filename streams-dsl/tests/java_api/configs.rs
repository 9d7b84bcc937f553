//! Configs of operators, and windows.

use std::collections::BTreeMap;

use streams_core::serde::{Long, OptionSerde, Utf8};
use streams_dsl::prelude::*;

use super::{driver, driver_with, pipe};

#[test]
fn names_are_given_by_every_config() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream_with("in", Consumed::<String, i64>::with(Utf8, Long).with_name("src"));
    let grouped = stream.group_by_with(
        |_, n| n.to_string(),
        Grouped::<String, i64>::with(Utf8, Long).with_name("grp"),
    );
    grouped
        .count("counts")
        .to_stream()
        .to_with("counts", Produced::with(Utf8, OptionSerde(Long)).with_name("snk"));
    let table = builder.table_with("tab", Consumed::<String, i64>::with(Utf8, Long), "tab-store");
    let moved = stream.select_key(|_, n| n.to_string());
    moved
        .join_table_with(&table, |_, a, b| a + b, Joined::with(Utf8, Long).with_name("jnd"))
        .to("joined");
    stream
        .repartition_with(Repartitioned::with(Utf8, Long).with_name("rep").partitions(3))
        .to("spread");
    let partitioned = TableJoined::<String, String>::named("other")
        .with_name("fk")
        .partitioned_by(|_, _, _| Some(0))
        .other_partitioned_by(|_, _, _| Some(0));
    table
        .join_foreign_key_with(
            &table,
            |_, n| Some(n.to_string()),
            |_, a, b| a + b,
            partitioned,
            "fk-store",
        )
        .to_stream()
        .to("fk-out");
    let described = builder.build().unwrap().describe();
    for name in [
        "Source: src ",
        "Processor: grp ",
        "grp-repartition",
        "Sink: snk ",
        "Processor: jnd ",
        "jnd-repartition",
        "rep-repartition",
        "fk-subscription-registration-topic",
        "(stores: [fk-store])",
    ] {
        assert!(described.contains(name), "{name}: {described}");
    }
}

#[test]
fn a_partitioner_sends_a_record_to_one_partition_to_several_or_to_none() {
    let choose = |_: &str, _: &String, value: &i64, count: i32| match value {
        0 => Partitions::Each(Vec::new()),
        1 => Partitions::One(2),
        2 => Partitions::Each((0..count).collect()),
        _ => Partitions::Default,
    };
    let options = DriverOptions {
        partitions: BTreeMap::from([("out".to_owned(), 3)]),
        ..DriverOptions::default()
    };
    let mut driver = driver_with(
        |b| {
            let stream = b.stream::<String, i64>("in");
            stream.to_with("out", Produced::named("sink").partitioned_by(choose));
            stream
                .repartition_with(
                    Repartitioned::named("r")
                        .partitions(2)
                        .partitioned_by(|_, _, _, _| Partitions::One(1)),
                )
                .to("through");
        },
        options,
    );
    let mut written = Vec::new();
    for value in 0..3 {
        pipe(&mut driver, "in", "k", value, 5);
        let records = TestOutput::<String, i64>::of("out")
            .read_records_to_list(&mut driver)
            .unwrap();
        written.push(records.iter().map(|record| record.value).collect::<Vec<_>>());
    }
    assert_eq!(written, [vec![], vec![1], vec![2, 2, 2]]);
    assert_eq!(driver.dropped_records(), 1);
    let repartitioned = driver.broker().read_committed("app-r-repartition");
    assert_eq!(
        repartitioned
            .iter()
            .map(|(partition, _)| *partition)
            .collect::<Vec<_>>(),
        [1, 1, 1]
    );
}

#[test]
fn event_times_follow_the_policy() {
    let times = |timestamps: Timestamps<String, i64>| {
        let options = DriverOptions {
            now_ms: 1_000,
            ..DriverOptions::default()
        };
        let consumed = Consumed::with(Utf8, Long).timestamps(timestamps);
        let mut driver = driver_with(|b| drop(b.stream_with("in", consumed).to("out")), options);
        for time in [7, -1, 5] {
            let piped = TestInput::<String, i64>::of("in").pipe(&mut driver, "k", 1, time);
            if piped.is_err() {
                return (Vec::new(), 0);
            }
        }
        let records = TestOutput::<String, i64>::of("out")
            .read_records_to_list(&mut driver)
            .unwrap();
        let times: Vec<i64> = records.iter().map(|record| record.timestamp_ms).collect();
        (times, driver.dropped_records())
    };
    assert_eq!(times(Timestamps::FailOnInvalid), (vec![], 0), "it stops");
    assert_eq!(times(Timestamps::SkipInvalid), (vec![7, 5], 1));
    assert_eq!(times(Timestamps::PartitionTimeOnInvalid), (vec![7, 7, 5], 0));
    assert_eq!(times(Timestamps::WallClock), (vec![1_000; 3], 0));
    let consumed = Consumed::<String, i64>::default().timestamps_by(|_, value, times| value * 100 + times.record_ms);
    let mut driver = driver(|b| drop(b.stream_with("in", consumed).to("out")));
    pipe(&mut driver, "in", "k", 3, 4);
    pipe(&mut driver, "in", "k", -3, 4);
    let records = TestOutput::<String, i64>::of("out")
        .read_records_to_list(&mut driver)
        .unwrap();
    assert_eq!(
        records.iter().map(|record| record.timestamp_ms).collect::<Vec<_>>(),
        [304]
    );
    assert_eq!(driver.dropped_records(), 1, "a negative time");
}

#[test]
fn tables_are_filtered_both_ways() {
    let mut driver = driver(|b| {
        let table = b.table::<String, i64>("in");
        table.filter(|_, n| *n > 5).to_stream().to("large");
        table
            .filter_not_with(|_, n| *n > 5, "small-rows")
            .to_stream()
            .to("small");
    });
    pipe(&mut driver, "in", "a", 7, 1);
    pipe(&mut driver, "in", "a", 3, 2);
    let read = |driver: &mut TopologyTestDriver, topic: &str| {
        let output = TestOutput::<String, Option<i64>>::of(topic);
        output.read_values_to_list(driver).unwrap()
    };
    assert_eq!(read(&mut driver, "large"), [Some(7), None]);
    assert_eq!(read(&mut driver, "small"), [None, Some(3)]);
    let row = driver.key_value::<String, i64>("small-rows", &"a".to_owned()).unwrap();
    assert_eq!(row.map(|row| row.value), Some(3));
}

#[test]
fn cogrouped_streams_are_aggregated_in_windows_and_sessions() {
    let mut driver = driver(|b| {
        let (plus, minus) = (b.stream::<String, i64>("plus"), b.stream::<String, i64>("minus"));
        let both = plus
            .group_by_key()
            .cogroup(|_, n, sum: i64| sum + n)
            .cogroup(&minus.group_by_key(), |_, n, sum| sum - n);
        both.windowed_by(TimeWindows::of(10 * MILLISECOND))
            .aggregate(|| 0, "windows");
        both.windowed_by(SlidingWindows::of(10 * MILLISECOND))
            .aggregate(|| 0, "sliding");
        both.windowed_by(SessionWindows::of(10 * MILLISECOND))
            .aggregate(|| 0, |_, a, b| a + b, "sessions");
    });
    pipe(&mut driver, "plus", "a", 5, 8);
    pipe(&mut driver, "minus", "a", 2, 12);
    let key = "a".to_owned();
    let windows = driver.window_values::<String, i64>("windows", 0, 100).unwrap();
    let windows: Vec<_> = windows
        .iter()
        .map(|(key, row)| (key.window.start_ms, row.value))
        .collect();
    assert_eq!(windows, [(0, 5), (10, -2)]);
    let sessions = driver.session_values::<String, i64>("sessions", &key).unwrap();
    assert_eq!(sessions, [(Window::new(8, 12), 3)]);
    let sliding = driver.window_value::<String, i64>("sliding", &key, 2).unwrap();
    assert_eq!(sliding.map(|row| row.value), Some(3), "from 2 to 12");
}

#[test]
fn a_buffer_is_bounded_by_bytes_too() {
    let mut driver = driver(|b| {
        let table = b.table::<String, i64>("in");
        // One entry is larger than that.
        let early = Suppressed::until_time_limit(HOUR).max_bytes(1).emit_early_when_full();
        table.suppress(early).to_stream().to("out");
    });
    pipe(&mut driver, "in", "a", 1, 0);
    pipe(&mut driver, "in", "b", 2, 0);
    let values = TestOutput::<String, Option<i64>>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(values, [Some(1), Some(2)]);
}

#[test]
fn windows_say_their_sizes() {
    let join = JoinWindows::of(3 * SECOND).before(SECOND).grace(MILLISECOND);
    assert_eq!((join.size_ms(), join.grace_ms()), (4_000, 1));
    let time = TimeWindows::of(HOUR).grace(MINUTE);
    assert_eq!((time.size_ms(), time.grace_ms()), (3_600_000, 60_000));
    let sliding = SlidingWindows::of(HOUR).grace(MINUTE);
    assert_eq!((sliding.difference_ms(), sliding.grace_ms()), (3_600_000, 60_000));
    let sessions = SessionWindows::of(HOUR).grace(MINUTE);
    assert_eq!((sessions.gap_ms(), sessions.grace_ms()), (3_600_000, 60_000));
    let mut driver = driver(|b| {
        let grouped = b.stream::<String, i64>("in").group_by_key();
        grouped.windowed_by(UnlimitedWindows::from_ms(100)).count("since");
    });
    pipe(&mut driver, "in", "a", 1, 99);
    pipe(&mut driver, "in", "a", 1, 100);
    let count = driver
        .window_value::<String, i64>("since", &"a".to_owned(), 100)
        .unwrap();
    assert_eq!(count.map(|row| row.value), Some(1));
}
