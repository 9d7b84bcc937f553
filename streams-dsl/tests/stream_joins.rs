//! Joins of two streams: when what is emitted, at which time, and what the changelogs hold.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::time::Duration;

use streams_core::test_driver::LogRecord;
use streams_dsl::{
    DriverOptions, Headers, JoinWindows, KStream, Optimization, StreamJoined, StreamsBuilder, TopologyConfig,
    TopologyTestDriver,
};

type Text = Option<String>;

fn windows(before_ms: u64, after_ms: u64, grace_ms: u64) -> JoinWindows {
    JoinWindows::of(Duration::ZERO)
        .before(Duration::from_millis(before_ms))
        .after(Duration::from_millis(after_ms))
        .grace(Duration::from_millis(grace_ms))
}

fn text(value: Option<&String>) -> &str {
    value.map_or("null", String::as_str)
}

struct Run(TopologyTestDriver);

impl Run {
    fn of(build: impl FnOnce(&StreamsBuilder, KStream<Text, String>, KStream<Text, String>)) -> Self {
        Self::optimized(Optimization::default(), build)
    }

    fn optimized(
        optimization: Optimization,
        build: impl FnOnce(&StreamsBuilder, KStream<Text, String>, KStream<Text, String>),
    ) -> Self {
        let builder = StreamsBuilder::new();
        build(&builder, builder.stream("L"), builder.stream("R"));
        let topology = builder.build_with(&TopologyConfig { optimization }).unwrap();
        Run(TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap())
    }

    fn inner(windows: JoinWindows) -> Self {
        Self::of(|_, left, right| {
            left.join_with(&right, |_, l, r| format!("({l},{r})"), windows, named())
                .to("out");
        })
    }

    fn left(windows: JoinWindows) -> Self {
        Self::of(|_, left, right| {
            let join = |_: &Text, l: &String, r: Option<&String>| format!("({l},{})", text(r));
            left.left_join_with(&right, join, windows, named()).to("out");
        })
    }

    fn outer(windows: JoinWindows) -> Self {
        Self::of(|_, left, right| {
            let join = |_: &Text, l: Option<&String>, r: Option<&String>| format!("({},{})", text(l), text(r));
            left.outer_join_with(&right, join, windows, named()).to("out");
        })
    }

    fn pipe(&mut self, topic: &str, key: Option<&str>, value: &str, time: i64) -> Vec<String> {
        let (key, value) = (key.map(str::as_bytes), Some(value.as_bytes()));
        self.0.pipe(topic, key, value, time, Headers::empty()).unwrap();
        let mut out = Vec::new();
        while let Some(record) = self.0.read_record("out") {
            out.push(shown(&record));
        }
        out
    }
}

fn named() -> StreamJoined<Text, String, String> {
    StreamJoined::named("j").store_named("st")
}

fn shown(record: &LogRecord) -> String {
    let text = |bytes: &Option<Vec<u8>>| {
        bytes
            .as_ref()
            .map_or("null".to_owned(), |bytes| String::from_utf8(bytes.clone()).unwrap())
    };
    format!("{}={}@{}", text(&record.key), text(&record.value), record.timestamp_ms)
}

const K: Option<&str> = Some("k");
const NONE: [&str; 0] = [];

#[test]
fn bounds_are_inclusive_on_both_sides_and_asymmetric() {
    let mut run = Run::inner(windows(10, 100, 1_000));
    assert_eq!(run.pipe("L", K, "l", 50), NONE);
    assert_eq!(run.pipe("R", K, "r39", 39), NONE);
    assert_eq!(run.pipe("R", K, "r40", 40), ["k=(l,r40)@50"]);
    assert_eq!(run.pipe("R", K, "r150", 150), ["k=(l,r150)@150"]);
    assert_eq!(run.pipe("R", K, "r151", 151), NONE);
    assert_eq!(run.pipe("L", K, "m", 49), ["k=(m,r39)@49", "k=(m,r40)@49"]);
}

#[test]
fn partners_come_by_their_time_and_then_in_the_order_of_their_arrival() {
    let mut run = Run::inner(windows(10, 10, 100));
    for (value, time) in [("b", 7), ("a", 5), ("c", 7)] {
        assert_eq!(run.pipe("R", K, value, time), NONE);
    }
    let all = ["k=(l,a)@6", "k=(l,b)@7", "k=(l,c)@7"];
    assert_eq!(run.pipe("L", K, "l", 6), all);
}

#[test]
fn records_of_equal_key_and_time_are_all_kept() {
    let mut run = Run::outer(windows(5, 5, 0));
    for value in ["1", "2", "3"] {
        assert_eq!(run.pipe("L", K, value, 0), NONE);
    }
    assert_eq!(
        run.pipe("R", Some("x"), "r", 6),
        ["k=(1,null)@0", "k=(2,null)@0", "k=(3,null)@0"]
    );
    let mut run = Run::inner(windows(5, 5, 0));
    for value in ["1", "2", "3"] {
        assert_eq!(run.pipe("L", K, value, 0), NONE);
    }
    assert_eq!(run.pipe("R", K, "r", 5).len(), 3);
}

#[test]
fn a_row_is_seen_as_long_as_a_partner_in_time_can_come() {
    // Java hides the row at 0 from a partner at 5 that is late by nothing: its store is at 10 = retention.
    let mut run = Run::inner(windows(5, 5, 0));
    assert_eq!(run.pipe("L", K, "a", 0), NONE);
    assert_eq!(run.pipe("L", K, "b", 10), NONE);
    assert_eq!(run.pipe("R", K, "r", 5), ["k=(a,r)@5", "k=(b,r)@10"]);
    assert_eq!(run.pipe("L", K, "c", 11), NONE);
    assert_eq!(run.pipe("R", K, "s", 5), ["k=(b,s)@10"]);
}

#[test]
fn records_without_partner_wait_for_the_close_of_their_own_side() {
    let mut run = Run::outer(windows(10, 100, 0));
    assert_eq!(run.pipe("L", Some("a"), "1", 0), NONE);
    assert_eq!(run.pipe("R", Some("b"), "y", 1), NONE);
    assert_eq!(run.pipe("L", Some("c"), "2", 11), NONE);
    // A left record moves stream time; the right one at 1 is closed, the older left one is not (KAFKA-15417).
    assert_eq!(run.pipe("L", Some("c"), "3", 12), ["b=(null,y)@1"]);
    assert_eq!(run.pipe("R", Some("d"), "z", 101), ["a=(1,null)@0"]);
}

#[test]
fn what_is_emitted_at_once_comes_in_the_order_of_time_side_and_key() {
    let mut run = Run::outer(windows(5, 5, 0));
    let records = [
        ("L", "b", 3),
        ("R", "c", 3),
        ("L", "a", 3),
        ("R", "z", 1),
        ("L", "a", 2),
    ];
    for (topic, key, time) in records {
        assert_eq!(run.pipe(topic, Some(key), "v", time), NONE);
    }
    let expected = [
        "z=(null,v)@1",
        "a=(v,null)@2",
        "c=(null,v)@3",
        "a=(v,null)@3",
        "b=(v,null)@3",
    ];
    assert_eq!(run.pipe("R", Some("last"), "v", 50), expected);
}

#[test]
fn a_late_record_waits_for_its_grace_and_an_even_later_one_does_not() {
    let mut run = Run::left(windows(10, 10, 100));
    assert_eq!(run.pipe("L", Some("z"), "0", 50), NONE);
    assert_eq!(run.pipe("L", K, "1", 30), NONE);
    assert_eq!(run.pipe("R", K, "x", 35), ["k=(1,x)@35"]);
    assert_eq!(run.pipe("R", Some("t"), "t", 500), ["z=(0,null)@50"]);
    assert_eq!(run.pipe("L", Some("y"), "2", 389), ["y=(2,null)@389"]);
    assert_eq!(run.pipe("L", Some("y"), "3", 390), NONE);
}

#[test]
fn a_left_join_emits_rows_of_the_left_side_only() {
    let mut run = Run::left(windows(5, 5, 0));
    assert_eq!(run.pipe("R", Some("r"), "x", 0), NONE);
    assert_eq!(run.pipe("L", Some("l"), "1", 1), NONE);
    assert_eq!(run.pipe("R", Some("r"), "y", 100), ["l=(1,null)@1"]);
}

#[test]
fn null_keys_of_a_kept_side_are_joined_with_nothing_and_the_rest_is_dropped() {
    let mut run = Run::left(windows(5, 5, 0));
    assert_eq!(run.pipe("L", None, "1", 0), ["null=(1,null)@0"]);
    assert_eq!(run.pipe("R", None, "x", 0), NONE);
    assert_eq!(run.0.dropped_records(), 1);
    let mut run = Run::outer(windows(5, 5, 0));
    assert_eq!(run.pipe("R", None, "x", 0), ["null=(null,x)@0"]);
    let mut run = Run::inner(windows(5, 5, 0));
    assert_eq!(run.pipe("L", None, "x", 0), NONE);
    assert_eq!(run.0.dropped_records(), 1);
}

#[test]
fn null_keys_pass_the_repartition_of_a_left_join() {
    let mut run = Run::of(|_, left, right| {
        let join = |_: &Text, l: &String, r: Option<&String>| format!("({l},{})", text(r));
        left.select_key(|key, _| key.clone())
            .left_join_with(&right, join, windows(5, 5, 0), named())
            .to("out");
    });
    assert_eq!(run.pipe("L", None, "1", 0), ["null=(1,null)@0"]);
}

fn log(run: &Run, topic: &str) -> Vec<(String, Option<String>, i64, usize)> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let records = run.0.read_all(topic).into_iter();
    records
        .map(|record| {
            (
                hex(record.key.as_deref().unwrap()),
                record.value.as_deref().map(hex),
                record.timestamp_ms,
                record.headers.len(),
            )
        })
        .collect()
}

#[test]
fn the_changelogs_hold_javas_bytes() {
    let mut run = Run::outer(windows(5, 5, 0));
    let headers: Headers = [("h", Some(&b"x"[..]))].into_iter().collect();
    run.0.pipe("L", Some(b"k"), Some(b"v"), 10_000, &headers).unwrap();
    let windows = log(&run, "app-st-outer-this-join-store-changelog");
    assert_eq!(
        windows,
        [("6b000000000000271000000001".into(), Some("76".into()), 10_000, 1)]
    );
    let shared = "app-st-outer-shared-join-store-changelog";
    let key = "0000000000002710016b".to_owned();
    assert_eq!(
        log(&run, shared),
        [(key.clone(), Some("0100000001000000020176".into()), 10_000, 0)]
    );
    run.pipe("R", K, "w", 10_001);
    assert_eq!(log(&run, shared)[1], (key, None, 10_001, 0));
    // A second record of one key and time gets the next number.
    run.pipe("L", K, "v", 10_000);
    assert_eq!(
        log(&run, "app-st-outer-this-join-store-changelog")[1].0,
        "6b000000000000271000000002"
    );
}

#[test]
fn a_self_join_on_one_store_gives_what_it_gives_on_two() {
    let records = [
        ("a", 10),
        ("b", 12),
        ("c", 3),
        ("d", 12),
        ("e", 60),
        ("f", 55),
        ("g", 71),
        ("h", 48),
    ];
    let on = |optimization: Optimization| {
        let mut run = Run::optimized(optimization, |_, left, _| {
            left.join_with(&left, |_, l, r| format!("({l},{r})"), windows(3, 9, 0), named())
                .to("out");
        });
        records.map(|(value, time)| run.pipe("L", K, value, time))
    };
    let one_store = Optimization {
        single_store_self_join: true,
        ..Optimization::default()
    };
    let two_stores = on(Optimization::default());
    assert_eq!(two_stores[1], ["k=(b,a)@12", "k=(a,b)@12", "k=(b,b)@12"]);
    assert_eq!(on(one_store), two_stores);
}

#[test]
fn a_partner_that_has_to_be_later_is_found_beyond_the_size_of_the_window() {
    // From 80 to 100 later: a size of 20, and left records are needed for 100.
    let mut run = Run::inner(windows(0, 100, 0).later_by_at_least(Duration::from_millis(80)));
    assert_eq!(run.pipe("L", K, "l", 0), NONE);
    assert_eq!(run.pipe("R", K, "r79", 79), NONE);
    assert_eq!(run.pipe("R", K, "r80", 80), ["k=(l,r80)@80"]);
    assert_eq!(run.pipe("L", K, "m", 20), ["k=(m,r100)@100"; 0]);
    assert_eq!(run.pipe("R", K, "r100", 100), ["k=(l,r100)@100", "k=(m,r100)@100"]);
    assert_eq!(run.pipe("R", K, "r101", 101), ["k=(m,r101)@101"]);
}

#[test]
fn a_left_record_whose_partner_has_to_be_earlier_is_alone_at_once() {
    let mut run = Run::left(windows(100, 0, 0).earlier_by_at_least(Duration::from_millis(80)));
    assert_eq!(run.pipe("R", K, "r", 0), NONE);
    assert_eq!(run.pipe("L", K, "l79", 79), ["k=(l79,null)@79"]);
    assert_eq!(run.pipe("L", K, "l80", 80), ["k=(l80,r)@80"]);
}

#[test]
fn a_stream_whose_partners_have_to_be_later_does_not_meet_its_own_record_on_one_store_either() {
    for single_store_self_join in [false, true] {
        let optimization = Optimization {
            single_store_self_join,
            ..Optimization::default()
        };
        let windows = windows(0, 100, 0).later_by_at_least(Duration::from_millis(10));
        let mut run = Run::optimized(optimization, |_, left, _| {
            left.join_with(&left, |_, l, r| format!("({l},{r})"), windows, named())
                .to("out");
        });
        assert_eq!(run.pipe("L", K, "a", 0), NONE);
        assert_eq!(run.pipe("L", K, "b", 9), NONE);
        assert_eq!(run.pipe("L", K, "c", 10), ["k=(a,c)@10"]);
        assert_eq!(run.pipe("L", K, "d", 5), NONE);
    }
}

#[test]
fn join_windows_that_hold_nothing_are_found_when_the_topology_is_built() {
    let builder = StreamsBuilder::new();
    let (left, right) = (builder.stream::<Text, String>("L"), builder.stream::<Text, String>("R"));
    let windows = windows(0, 10, 0).later_by_at_least(Duration::from_millis(11));
    left.join_with(&right, |_, l, r| format!("({l},{r})"), windows, named())
        .to("out");
    let Err(found) = builder.build() else { panic!("built") };
    assert!(found.to_string().contains("hold nothing"), "{found}");
}
