//! What a start finds in local state and changelog.

use std::path::Path;
use std::time::Duration;

use rdkafka::admin::{AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::{Offset, TopicPartitionList};
use streams_dsl::{Consumed, Materialized, TimeWindows};
use streams_testkit::{NewRecord, Transaction};
use streams_tests::local::{Local, expected, restored, stop};

use super::{THREE, THREE_COUNTED, admin, counting, wait};

#[test]
fn case_rst_changelog_ends_with_markers() {
    let app = counting("ends-with-markers", 1);
    app.produce("in", &THREE);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 3);
    stop(&streams);
    let foreign = Transaction::begin(app.kafka().bootstrap(), &format!("{}-foreign", app.id)).unwrap();
    let value = [99_i64.to_be_bytes()].concat();
    let row = NewRecord::new("a", value).at(50).partition(0);
    foreign.send(&app.changelog("c"), [row]).unwrap();
    foreign.abort().unwrap();
    app.wipe();
    let streams = app.start_running();
    assert!(restored(&streams) > 0);
    // The store has what was committed, and goes on from there.
    app.produce("in", &[("a", Some("x"), 4), ("b", Some("x"), 5)]);
    app.wait_committed(&streams, "in", 5);
    stop(&streams);
    assert_eq!(app.counts("out")[3..], expected(&[("a", "3", 4), ("b", "2", 5)]));
}

#[test]
fn case_rst_tombstones() {
    let app = Local::new("tombstones", &[("T", 1), ("S", 1), ("out", 1)], |builder, names| {
        let rows = builder.table_with::<String, String>(names.of("T"), Consumed::default(), Materialized::named("ts"));
        let stream = builder.stream::<String, String>(names.of("S"));
        stream
            .left_join_table(&rows, |_, left, right: Option<&String>| {
                format!("({left},{})", right.map_or("null", |right| right.as_str()))
            })
            .to(names.of("out"));
    });
    let rows = [
        ("k", Some("v1"), 1),
        ("m", Some("v2"), 2),
        ("k", None, 3),
        ("m", Some(""), 4),
        ("n", None, 5),
    ];
    app.produce("T", &rows);
    let streams = app.start_running();
    app.wait_committed(&streams, "T", 5);
    stop(&streams);
    app.wipe();
    let streams = app.start_running();
    assert!(restored(&streams) > 0);
    app.produce("S", &[("k", Some("1"), 10), ("m", Some("2"), 11), ("n", Some("3"), 12)]);
    app.wait_committed(&streams, "S", 3);
    stop(&streams);
    assert_eq!(
        app.rows("out"),
        expected(&[("k", "(1,null)", 10), ("m", "(2,)", 11), ("n", "(3,null)", 12)])
    );
}

#[test]
fn case_rst_unknown_checkpoint() {
    let app = counting("unknown-checkpoint", 2);
    app.produce("in", &THREE);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 3);
    stop(&streams);
    let streams = app.start_running();
    assert_eq!(restored(&streams), 0);
    app.produce("in", &[("a", Some("x"), 4)]);
    app.produce_to("in", 1, &[("z", Some("x"), 5)]);
    app.wait_committed(&streams, "in", 4);
    app.wait_committed_of(&streams, "in", 1, 1);
    stop(&streams);
    let rows = app.counts("out");
    let of = |key: &[&str]| -> Vec<_> {
        rows.iter()
            .filter(|row| key.contains(&row.0.as_str()))
            .cloned()
            .collect()
    };
    assert_eq!(of(&["z"]), expected(&[("z", "1", 5)]));
    // The output's partitions follow from the keys: in order per key.
    assert_eq!(of(&["a"]), expected(&[("a", "1", 1), ("a", "2", 2), ("a", "3", 4)]));
    assert_eq!(of(&["b"]), expected(&[("b", "1", 3)]));
}

#[test]
fn case_st_stream_time_restart() {
    let app = Local::new("stream-time", &[("in", 1), ("out", 1)], |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        let windows = TimeWindows::of(Duration::from_millis(10)).grace(Duration::from_millis(5));
        let counts = stream.group_by_key().windowed_by(windows).count("c");
        let plain = counts.to_stream().select_key(|windowed, _| {
            let window = windowed.window;
            format!("{}@{}/{}", windowed.key, window.start_ms, window.end_ms)
        });
        plain.to(names.of("out"));
    });
    // The case has 0 for 2; librdkafka writes a time of 0 as now.
    app.produce("in", &[("a", Some("x"), 2), ("b", Some("x"), 100)]);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 2);
    stop(&streams);
    let streams = app.start_running();
    app.produce("in", &[("a", Some("x"), 1), ("b", Some("x"), 101)]);
    app.wait_committed(&streams, "in", 4);
    stop(&streams);
    assert_eq!(
        app.counts("out"),
        expected(&[("a@0/10", "1", 2), ("b@100/110", "1", 100), ("b@100/110", "2", 101)])
    );
    let counters = streams.threads()[0].status.as_ref().unwrap().counters;
    assert_eq!(counters.dropped_records, 1);
}

#[test]
fn case_rst_offset_out_of_range() {
    let app = counting("out-of-range", 1);
    let round = |app: &Local, time: i64| {
        let rows: Vec<(String, i64)> = (0..5).map(|at| (format!("k{at}"), time + at)).collect();
        let rows: Vec<_> = rows
            .iter()
            .map(|(key, time)| (key.as_str(), Some("x"), *time))
            .collect();
        app.produce("in", &rows);
    };
    round(&app, 1);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 5);
    stop(&streams);
    let (live, snapshot) = (app.state.path().join(&app.id), app.state.path().join("snapshot"));
    copy(&live, &snapshot);
    let second_round = app.kafka().topics().end_offsets(&app.changelog("c")).unwrap()[&0];
    let streams = app.start_running();
    round(&app, 11);
    app.wait_committed(&streams, "in", 10);
    stop(&streams);
    app.wipe();
    std::fs::rename(&snapshot, &live).unwrap();
    let changelog = app.changelog("c");
    let policy = AlterConfig::new(ResourceSpecifier::Topic(&changelog)).set("cleanup.policy", "compact,delete");
    wait(admin().alter_configs([&policy], &AdminOptions::new())).unwrap();
    let mut before = TopicPartitionList::new();
    before
        .add_partition_offset(&changelog, 0, Offset::Offset(second_round))
        .unwrap();
    wait(admin().delete_records(&before, &AdminOptions::new())).unwrap();
    let streams = app.start();
    app.produce("in", &[("k0", Some("x"), 20)]);
    app.wait_committed(&streams, "in", 11);
    stop(&streams);
    assert_eq!(app.counts("out").last(), expected(&[("k0", "3", 20)]).first());
    let counts = [("k0", "3"), ("k1", "2"), ("k2", "2"), ("k3", "2"), ("k4", "2")];
    let counts = counts.map(|(key, count)| (key.to_owned(), count.to_owned()));
    assert_eq!(app.stored_counts("c"), counts.into());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn the_input_of_most_cases_is_counted_right() {
    let app = counting("three", 1);
    app.produce("in", &THREE);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 3);
    stop(&streams);
    assert_eq!(app.counts("out"), expected(&THREE_COUNTED));
}
