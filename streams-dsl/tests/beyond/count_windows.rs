//! Windows of so many records.

use streams_dsl::doctest::{at, run};
use streams_dsl::prelude::*;

fn sums(builder: &StreamsBuilder, caching: bool) {
    let grouped = builder.stream::<String, i64>("in").group_by_key();
    let store = Materialized::named("sums").caching(caching);
    grouped
        .count_windowed(3)
        .reduce(|_, new, sum| sum + new, store)
        .to("out");
}

#[test]
fn a_window_gives_one_result_when_it_is_full_over_a_restart() {
    for caching in [true, false] {
        run(|b| sums(b, caching))
            .pipe("in", [("a", 1, at(0)), ("a", 2, at(7))])
            .restart()
            .pipe(
                "in",
                [("b", 9, at(1)), ("a", 4, at(3)), ("a", 8, at(4)), ("a", 16, at(5))],
            )
            .restart()
            .pipe("in", [("a", 32, at(6))])
            .gives("out", [("a", 7, at(7)), ("a", 56, at(6))]);
    }
}

#[test]
fn with_a_cache_of_a_whole_commit_each_full_window_is_told() {
    let builder = StreamsBuilder::new();
    sums(&builder, true);
    let mut options = DriverOptions::default();
    options.settings.cache_bytes = 1 << 20;
    options.commit_each = false;
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
    let records = (0..10).map(|value| ("a", value, value));
    TestInput::<String, i64>::of("in")
        .pipe_all(&mut driver, records)
        .unwrap();
    let told = TestOutput::<String, i64>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(told, [3, 12, 21]);
    driver.restart().unwrap();
    TestInput::<String, i64>::of("in")
        .pipe_all(&mut driver, [("a", 1, 0), ("a", 1, 0)])
        .unwrap();
    let told = TestOutput::<String, i64>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(told, [11]);
}

#[test]
fn nulls_are_dropped_and_counted_and_fill_no_window() {
    run(|b| {
        let grouped = b.stream::<Option<String>, Option<i64>>("in").group_by_key();
        let pairs = grouped
            .count_windowed(2)
            .aggregate(|| 0, |_, value, sum| sum + value.unwrap_or(0), "pairs");
        pairs.to("out");
    })
    .pipe(
        "in",
        [
            (Some("a"), Some(1), at(0)),
            (None, Some(2), at(1)),
            (Some("a"), None, at(2)),
            (Some("a"), Some(4), at(3)),
        ],
    )
    .gives("out", [(Some("a"), 5, at(3))])
    .dropped(2);
}

#[test]
fn a_failure_leaves_the_window_as_it_was() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, i64>("in");
    let add = |_: &String, new: &i64, sum: i64| {
        assert!(*new != 13, "unlucky");
        sum + new
    };
    stream.group_by_key().count_windowed(2).reduce(add, "sums").to("out");
    let bad = stream.bad_records();
    bad.to("bad");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let input = TestInput::<String, i64>::of("in");
    for value in [1, 13, 2] {
        input.pipe(&mut driver, "a", value, 0).unwrap();
    }
    assert_eq!(
        TestOutput::<String, i64>::of("out")
            .read_values_to_list(&mut driver)
            .unwrap(),
        [3]
    );
    assert_eq!(driver.read_all("bad").len(), 1);
}

#[test]
fn the_changelog_holds_count_and_aggregate_and_a_tombstone_of_a_full_window() {
    let builder = StreamsBuilder::new();
    sums(&builder, false);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let input = TestInput::<String, i64>::of("in");
    for value in [5, 6, 7] {
        input.pipe(&mut driver, "a", value, 0).unwrap();
    }
    let values: Vec<_> = driver
        .read_all("app-sums-changelog")
        .into_iter()
        .map(|row| row.value)
        .collect();
    let row = |count: u8, sum: i64| Some([&[0, 0, 0, count, 1][..], &sum.to_be_bytes()].concat());
    assert_eq!(values, [row(1, 5), row(2, 11), None]);
}

#[test]
fn changed_keys_are_brought_together_and_the_node_can_be_named() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<String, i64>("in").group_by(|_, value| value % 2);
    grouped
        .count_windowed(2)
        .reduce(|_, new, sum| sum + new, "sums")
        .named("pairs")
        .to("out");
    let described = builder.build().unwrap().describe();
    assert!(
        described.contains("sums-repartition") && described.contains("Processor: pairs (stores: [sums])"),
        "{described}"
    );
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<String, i64>("in").group_by_key();
    grouped
        .count_windowed(0)
        .reduce(|_, new, sum| sum + new, "sums")
        .to("out");
    assert!(builder.build().err().unwrap().to_string().contains("at least 1 record"));
}
