//! What is committed when nothing, or nothing readable, comes out.

use std::time::Duration;

use streams_dsl::KafkaStreams;
use streams_testkit::{Transaction, wait_until};
use streams_tests::local::{Local, expected, record, stop};

use super::{THREE, THREE_COUNTED, counting};

const LIMIT: Duration = Duration::from_secs(60);
/// So long nothing may be written by an application that has nothing to do.
const IDLE: Duration = Duration::from_secs(3);

fn commits(streams: &KafkaStreams) -> u64 {
    let statuses = streams.threads().into_iter().filter_map(|thread| thread.status);
    statuses.map(|status| status.totals.commits).sum()
}

#[test]
fn case_eos_filter_all_offsets() {
    let app = Local::new("filter-all", &[("in", 1), ("out", 1)], |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.filter(|_, value| value == "never").to(names.of("out"));
    });
    app.produce("in", &THREE);
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 3);
    // The status of a thread is told a moment behind its commit.
    wait_until("the status after the commit", LIMIT, || Ok(commits(&streams) > 0)).unwrap();
    let before = commits(&streams);
    // Other tests' groups write to the topic of offsets meanwhile: a transaction of ours would be what makes it grow.
    assert!(
        !streams.wait_for(IDLE, |_| commits(&streams) > before),
        "a commit without work"
    );
    assert_eq!(app.kafka().topics().end_offsets(app.name("out")).unwrap()[&0], 0);
    stop(&streams);
    assert_eq!(
        app.kafka().topics().committed_offsets(&app.id, app.name("in")).unwrap()[&0],
        3
    );
}

#[test]
fn case_offs_aborted_tail_lag() {
    let app = counting("aborted-tail", 1);
    let source = format!("{}-source", app.id);
    let transaction = || Transaction::begin(app.kafka().bootstrap(), &source).unwrap();
    let committed = transaction();
    committed.send(app.name("in"), THREE.iter().map(record)).unwrap();
    committed.commit().unwrap();
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 4);
    let aborted = transaction();
    let rows = [("z", Some("x"), 5), ("z", Some("x"), 6)];
    aborted.send(app.name("in"), rows.iter().map(record)).unwrap();
    aborted.abort().unwrap();
    assert_eq!(app.kafka().topics().end_offsets(app.name("in")).unwrap()[&0], 7);
    app.wait_committed(&streams, "in", 7);
    stop(&streams);
    let streams = app.start_running();
    stop(&streams);
    assert_eq!(
        app.kafka().topics().committed_offsets(&app.id, app.name("in")).unwrap()[&0],
        7
    );
    assert_eq!(app.counts("out"), expected(&THREE_COUNTED));
}

#[test]
fn case_offs_reset_repartition() {
    let app = Local::new("reset-repartition", &[("in", 1), ("out", 1)], |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        let by_field = stream.select_key(|_, value| value.split('|').next().unwrap_or_default().to_owned());
        by_field.group_by_key().count("c").to_stream().to(names.of("out"));
    })
    .with("auto.offset.reset", "latest");
    let streams = app.start_running();
    app.produce("in", &[("1", Some("a|1"), 1), ("2", Some("a|2"), 2)]);
    app.kafka()
        .collector()
        .wait_for_count(app.name("out"), 2, streams_tests::local::LIMIT)
        .unwrap();
    stop(&streams);
    app.wipe();
    let streams = app.start_running();
    app.produce("in", &[("3", Some("a|3"), 3)]);
    app.kafka()
        .collector()
        .wait_for_count(app.name("out"), 3, streams_tests::local::LIMIT)
        .unwrap();
    stop(&streams);
    assert_eq!(
        app.counts("out"),
        expected(&[("a", "1", 1), ("a", "2", 2), ("a", "3", 3)])
    );
}
