//! The first of several records.

use std::collections::BTreeMap;

use streams_dsl::doctest::{at, run};
use streams_dsl::prelude::*;

fn deduplicated(builder: &StreamsBuilder) {
    let within = DuplicatesWithin::of(10 * MILLISECOND).grace(100 * MILLISECOND);
    builder
        .stream::<String, i64>("in")
        .drop_duplicates(within, "seen")
        .to("out");
}

#[test]
fn a_duplicate_is_near_a_kept_record_on_either_side() {
    run(deduplicated)
        .pipe(
            "in",
            [
                ("a", 1, at(50)),
                ("a", 2, at(41)),
                ("a", 3, at(59)),
                ("a", 4, at(40)),
                ("a", 5, at(60)),
            ],
        )
        .gives("out", [("a", 1, at(50)), ("a", 4, at(40)), ("a", 5, at(60))])
        .dropped(0);
}

#[test]
fn a_dropped_duplicate_makes_no_others_duplicates() {
    run(deduplicated)
        .pipe("in", [("a", 1, at(0)), ("a", 2, at(9)), ("a", 3, at(11))])
        .gives("out", [("a", 1, at(0)), ("a", 3, at(11))]);
}

#[test]
fn what_is_later_than_the_grace_is_dropped_and_counted_and_what_is_not_is_judged() {
    run(deduplicated)
        .pipe(
            "in",
            [
                ("a", 1, at(100)),
                ("b", 2, at(200)),
                ("a", 3, at(101)),
                ("c", 4, at(99)),
                ("c", 5, at(100)),
            ],
        )
        .gives("out", [("a", 1, at(100)), ("b", 2, at(200)), ("c", 5, at(100))])
        .dropped(1);
}

#[test]
fn a_null_key_is_dropped_and_counted_and_moves_no_time() {
    run(|b| {
        let within = DuplicatesWithin::of(10 * MILLISECOND);
        b.stream::<Option<String>, i64>("in")
            .drop_duplicates(within, "seen")
            .to("out");
    })
    .pipe("in", [(None, 1, at(1_000)), (Some("a"), 2, at(0))])
    .gives("out", [(Some("a"), 2, at(0))])
    .dropped(1);
}

#[test]
fn a_restart_remembers_ids_and_time() {
    run(deduplicated)
        .pipe("in", [("a", 1, at(100)), ("b", 2, at(190))])
        .restart()
        .pipe(
            "in",
            [("a", 3, at(105)), ("b", 4, at(199)), ("c", 5, at(98)), ("c", 6, at(99))],
        )
        .gives("out", [("a", 1, at(100)), ("b", 2, at(190)), ("c", 6, at(99))]);
}

#[test]
fn ids_are_forgotten_when_no_record_in_time_can_ask_for_them() {
    let builder = StreamsBuilder::new();
    deduplicated(&builder);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let input = TestInput::<String, i64>::of("in");
    input.pipe(&mut driver, "old", 1, 0).unwrap();
    // Rows go by whole buckets of time.
    input.pipe(&mut driver, "new", 1, 1_000_000).unwrap();
    input.pipe(&mut driver, "new", 1, 2_000_000).unwrap();
    let row = |driver: &mut TopologyTestDriver, key: &str, time| {
        driver
            .window_value::<String, bool>("seen", &key.to_owned(), time)
            .unwrap()
    };
    assert!(row(&mut driver, "old", 0).is_none());
    assert!(row(&mut driver, "new", 2_000_000).is_some());
}

#[test]
fn the_changelog_holds_ids_and_times_as_a_window_store_of_java_does() {
    let builder = StreamsBuilder::new();
    deduplicated(&builder);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    TestInput::<String, i64>::of("in")
        .pipe(&mut driver, "id", 1, 5)
        .unwrap();
    let log = driver.read_all("app-seen-changelog");
    assert_eq!(log[0].key.as_deref(), Some(&b"id\0\0\0\0\0\0\0\x05\0\0\0\0"[..]));
    assert_eq!((log[0].value.as_deref(), log[0].timestamp_ms), (Some(&[1][..]), 5));
}

#[test]
fn changed_keys_are_brought_together_first() {
    let builder = StreamsBuilder::new();
    let stream = builder
        .stream::<String, String>("in")
        .select_key(|_, value| value.clone());
    stream.drop_duplicates(MINUTE, "seen").to("out");
    let topology = builder.build().unwrap();
    assert!(
        topology.describe().contains("seen-repartition"),
        "{}",
        topology.describe()
    );
    let options = DriverOptions {
        partitions: [("in".to_owned(), 3), ("out".to_owned(), 1)].into(),
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&topology, options).unwrap();
    let input = TestInput::<String, String>::of("in");
    for (at, key) in (0..).zip(["k1", "k2", "k3", "k4", "k5", "k6"]) {
        input.pipe(&mut driver, key, "same".to_owned(), at).unwrap();
    }
    let out = TestOutput::<String, String>::of("out")
        .read_key_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(out, [("same".to_owned(), "same".to_owned())]);
}

#[test]
fn no_time_within_is_found_by_the_build() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, i64>("in");
    stream.drop_duplicates(std::time::Duration::ZERO, "seen").to("out");
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("at least 1 ms"), "{error}");
}

/// A model: everything that was kept, without forgetting.
#[test]
fn any_order_of_arrival_with_kills_in_between_keeps_what_the_model_keeps() {
    let (within, grace) = (10, 100);
    let mut seed = 42_u64;
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((seed >> 33) % below).unwrap()
    };
    let builder = StreamsBuilder::new();
    deduplicated(&builder);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let input = TestInput::<String, i64>::of("in");
    let mut kept: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let (mut expected, mut observed) = (Vec::new(), -1);
    for step in 0..600_i64 {
        let key = format!("k{}", next(3));
        let time = (step + next(150) - 120).max(0);
        observed = observed.max(time);
        let times = kept.entry(key.clone()).or_default();
        if time >= observed - grace && times.iter().all(|kept| (kept - time).abs() >= within) {
            times.push(time);
            expected.push(step);
        }
        input.pipe(&mut driver, &key, step, time).unwrap();
        if next(40) == 0 {
            driver.restart().unwrap();
        }
    }
    let passed = TestOutput::<String, i64>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(passed, expected);
    assert!(
        expected.len() > 100 && expected.len() < 500,
        "{} passed",
        expected.len()
    );
}
