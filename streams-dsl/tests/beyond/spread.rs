//! Aggregation in two phases.

use std::collections::BTreeMap;

use streams_dsl::doctest::{at, run};
use streams_dsl::prelude::*;

fn options(cache_bytes: usize) -> DriverOptions {
    let mut options = DriverOptions {
        partitions: [("in".to_owned(), 3), ("out".to_owned(), 3)].into(),
        commit_each: cache_bytes == 0,
        ..DriverOptions::default()
    };
    options.settings.cache_bytes = cache_bytes;
    options
}

fn sums(builder: &StreamsBuilder) {
    let grouped = builder.stream::<String, i64>("in").group_by_key();
    let sums = grouped.spread_over(4).reduce(|_, new, sum| sum + new, "sums");
    sums.named("total").to_stream().to("out");
}

#[test]
fn the_parts_add_up_to_what_one_phase_counts_with_and_without_cache_and_over_kills() {
    for cache_bytes in [0, 1 << 20] {
        let builder = StreamsBuilder::new();
        sums(&builder);
        let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options(cache_bytes)).unwrap();
        let input = TestInput::<String, i64>::of("in");
        let mut expected: BTreeMap<String, i64> = BTreeMap::new();
        for number in 0..200_i64 {
            let key = if number % 5 == 0 {
                format!("cold-{}", number % 3)
            } else {
                "hot".to_owned()
            };
            input.pipe(&mut driver, &key, number, number).unwrap();
            *expected.entry(key).or_default() += number;
            if number % 41 == 0 {
                driver.restart().unwrap();
            }
        }
        let last = TestOutput::<String, i64>::of("out")
            .read_key_values_to_map(&mut driver)
            .unwrap();
        assert_eq!(last, expected);
    }
}

#[test]
fn a_hot_key_is_worked_on_in_all_of_its_parts() {
    let builder = StreamsBuilder::new();
    sums(&builder);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options(0)).unwrap();
    let input = TestInput::<String, i64>::of("in");
    for _ in 0..8 {
        input.pipe(&mut driver, "hot", 1, 0).unwrap();
    }
    let mut keys: Vec<Vec<u8>> = driver
        .read_all("app-sums-parts-changelog")
        .into_iter()
        .filter_map(|row| row.key)
        .collect();
    keys.sort();
    keys.dedup();
    let parts: Vec<Vec<u8>> = (0..4_u8).map(|part| [&b"hot\0\0\0"[..], &[part]].concat()).collect();
    assert_eq!(keys, parts);
    let row = driver.read_all("app-sums-changelog").pop().unwrap();
    let two = [&[0, 0, 0, 8][..], &2_i64.to_be_bytes()].concat();
    let expected: Vec<u8> = (0..4_u8)
        .flat_map(|part| [&[0, 0, 0, part][..], &two].concat())
        .collect();
    assert_eq!((row.key, row.value), (Some(b"hot".to_vec()), Some(expected)));
}

#[test]
fn with_the_cache_on_a_part_sends_one_update_a_commit() {
    let builder = StreamsBuilder::new();
    sums(&builder);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options(1 << 20)).unwrap();
    let records = (0..1_000).map(|_| ("hot", 1_i64, 0_i64));
    TestInput::<String, i64>::of("in")
        .pipe_all(&mut driver, records)
        .unwrap();
    let updates = driver.read_all("app-sums-repartition").len();
    assert!((4..=40).contains(&updates), "{updates} updates of 1000 records");
    assert_eq!(
        TestOutput::<String, i64>::of("out")
            .read_values_to_list(&mut driver)
            .unwrap()
            .pop(),
        Some(1_000)
    );
}

#[test]
fn a_null_aggregate_takes_its_part_away_and_the_last_one_the_row() {
    run(|b| {
        let grouped = b.stream::<String, i64>("in").group_by_key().spread_over(2);
        // A zero forgets what its part had.
        let sums = grouped.aggregate(
            || Some(0),
            |_, value, sum: Option<i64>| (*value != 0).then(|| sum.unwrap_or(0) + value),
            |_, one, other| Some(one.unwrap_or(0) + other.unwrap_or(0)),
            "sums",
        );
        sums.to_stream().to("out");
    })
    .pipe(
        "in",
        [("a", 1, at(0)), ("a", 2, at(1)), ("a", 0, at(2)), ("a", 0, at(3))],
    )
    .gives(
        "out",
        [
            ("a", Some(1), at(0)),
            ("a", Some(3), at(1)),
            ("a", Some(2), at(2)),
            ("a", None, at(3)),
        ],
    );
}

#[test]
fn null_keys_are_dropped_and_counted() {
    run(|b| {
        let grouped = b.stream::<Option<String>, i64>("in").group_by_key().spread_over(2);
        grouped.count("counts").to_stream().to("out");
    })
    .pipe("in", [(None, 1, at(0)), (Some("a"), 1, at(1))])
    .gives("out", [(Some("a"), 1, at(1))])
    .dropped(1);
}

#[test]
fn the_names_are_those_that_are_stated_and_no_parts_are_found_by_the_build() {
    let builder = StreamsBuilder::new();
    sums(&builder);
    let described = builder.build().unwrap().describe();
    for name in [
        "sums-parts-repartition",
        "(stores: [sums-parts])",
        "topic: sums-repartition",
        "(stores: [sums])",
        "Processor: total",
    ] {
        assert!(described.contains(name), "{name}: {described}");
    }
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("in")
        .group_by_key()
        .spread_over(0)
        .count("counts");
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("at least 1 part"), "{error}");
}
