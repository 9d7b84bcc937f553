//! As-of joins.

use std::collections::BTreeMap;

use streams_dsl::doctest::{at, run};
use streams_dsl::prelude::*;

fn worth(builder: &StreamsBuilder, as_of: AsOf) {
    let (left, right) = (
        builder.stream::<String, i64>("left"),
        builder.stream::<String, i64>("right"),
    );
    left.join_as_of(&right, |_, left, right| left * 1_000 + right, as_of)
        .to("out");
}

#[test]
fn a_value_counts_from_its_time_to_the_next_ones_whatever_the_order_of_arrival() {
    run(|b| worth(b, AsOf::stored_in("values", HOUR)))
        .pipe("right", [("a", 1, at(10)), ("a", 3, at(30)), ("a", 2, at(20))])
        .pipe(
            "left",
            [
                ("a", 9, at(9)),
                ("a", 10, at(10)),
                ("a", 29, at(29)),
                ("a", 30, at(30)),
                ("a", 99, at(99)),
            ],
        )
        .gives(
            "out",
            [
                ("a", 10_001, at(10)),
                ("a", 29_002, at(29)),
                ("a", 30_003, at(30)),
                ("a", 99_003, at(99)),
            ],
        );
}

#[test]
fn a_restart_finds_the_history() {
    run(|b| worth(b, AsOf::stored_in("values", HOUR).at_most(15 * MILLISECOND)))
        .pipe("right", [("a", 1, at(10)), ("a", 2, at(20))])
        .restart()
        .pipe("left", [("a", 15, at(15)), ("a", 35, at(35)), ("a", 36, at(36))])
        .gives("out", [("a", 15_001, at(15)), ("a", 35_002, at(35))]);
}

#[test]
fn records_wait_for_late_values_over_a_restart() {
    run(|b| worth(b, AsOf::stored_in("values", HOUR).grace(10 * MILLISECOND)))
        .pipe("left", [("a", 20, at(20))])
        .restart()
        .pipe("right", [("a", 1, at(19)), ("a", 2, at(21))])
        .pipe("left", [("a", 30, at(30))])
        .gives("out", [("a", 20_001, at(20))]);
}

#[test]
fn what_is_older_than_the_history_is_gone_but_for_the_newest_value() {
    run(|b| worth(b, AsOf::stored_in("values", 10 * MILLISECOND)))
        .pipe("right", [("a", 1, at(0)), ("a", 2, at(5)), ("b", 3, at(100))])
        .pipe("left", [("a", 4, at(4)), ("a", 95, at(95))])
        .gives("out", [("a", 95_002, at(95))]);
}

#[test]
fn a_null_ends_the_last_value_and_a_left_join_is_told() {
    run(|b| {
        let (left, right) = (
            b.stream::<String, i64>("left"),
            b.stream::<String, Option<i64>>("right"),
        );
        let join =
            |_: &String, left: &i64, right: Option<&Option<i64>>| left * 1_000 + right.copied().flatten().unwrap_or(-1);
        left.left_join_as_of(&right, join, AsOf::stored_in("values", HOUR))
            .to("out");
    })
    .pipe("right", [("a", Some(1), at(10)), ("a", None, at(20))])
    .pipe("left", [("a", 19, at(19)), ("a", 20, at(20))])
    .gives("out", [("a", 19_001, at(19)), ("a", 19_999, at(20))]);
}

#[test]
fn changed_keys_are_brought_together_and_names_follow_the_store() {
    let builder = StreamsBuilder::new();
    let left = builder
        .stream::<String, i64>("left")
        .select_key(|key, _| key.to_lowercase());
    let right = builder
        .stream::<String, i64>("right")
        .select_key(|key, _| key.to_lowercase());
    let joined = left.join_as_of(&right, |_, left, right| left + right, AsOf::stored_in("values", HOUR));
    joined.to("out");
    let topology = builder.build().unwrap();
    let described = topology.describe();
    assert!(
        described.contains("topic: values-join-repartition") && described.contains("(stores: [values])"),
        "{described}"
    );
    let mut driver = TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap();
    TestInput::<String, i64>::of("right")
        .pipe(&mut driver, "A", 1, 0)
        .unwrap();
    TestInput::<String, i64>::of("left")
        .pipe(&mut driver, "a", 2, 1)
        .unwrap();
    assert_eq!(
        TestOutput::<String, i64>::of("out").read_value(&mut driver).unwrap(),
        Some(3)
    );
}

#[test]
fn a_grace_beyond_the_history_is_found_by_the_build() {
    let builder = StreamsBuilder::new();
    worth(&builder, AsOf::stored_in("values", SECOND).grace(MINUTE));
    let error = builder.build().err().unwrap().to_string();
    assert!(
        error.contains("records wait for 60000 ms, so its history can't be 1000 ms"),
        "{error}"
    );
}

#[test]
fn random_values_are_found_as_a_model_finds_them() {
    let builder = StreamsBuilder::new();
    worth(&builder, AsOf::stored_in("values", HOUR));
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let (left, right) = (
        TestInput::<String, i64>::of("left"),
        TestInput::<String, i64>::of("right"),
    );
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((seed >> 33) % below).unwrap()
    };
    let mut model: BTreeMap<(String, i64), i64> = BTreeMap::new();
    let mut expected = Vec::new();
    for step in 0..300 {
        let (key, time) = (format!("k{}", next(3)), next(1_000));
        if next(2) == 0 {
            right.pipe(&mut driver, &key, step, time).unwrap();
            model.insert((key, time), step);
        } else {
            left.pipe(&mut driver, &key, step, time).unwrap();
            let found = model.range((key.clone(), 0)..=(key, time)).next_back();
            expected.extend(found.map(|(_, value)| step * 1_000 + value));
        }
        if next(50) == 0 {
            driver.restart().unwrap();
        }
    }
    let joined = TestOutput::<String, i64>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(joined, expected);
    assert!(expected.len() > 80, "{} joined", expected.len());
}
