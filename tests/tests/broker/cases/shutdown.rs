//! A close in the middle of other work.

use std::time::Duration;

use streams_dsl::{KafkaStreams, State};
use streams_testkit::{NewRecord, Transaction, wait_until};
use streams_tests::local::{LIMIT, Local, restored, stop};

/// The case has 100,000 keys.
const KEYS: usize = 5_000;
/// As many rounds in each half as make the case's ten.
const ROUNDS: usize = 5;
/// How long the close may take.
const SOON: Duration = Duration::from_secs(5);

fn summing() -> Local {
    Local::new("during-restore", &[("in", 1), ("out", 1)], |builder, names| {
        let grouped = builder.stream::<String, String>(names.of("in")).group_by_key();
        let number = |text: &String| text.parse::<i64>().unwrap();
        let sums = grouped.reduce(move |_, new, sum: String| (number(new) + number(&sum)).to_string(), "c");
        sums.to_stream().to(names.of("out"));
    })
}

/// Writes `value` for every key, `rounds` times.
fn produce(app: &Local, rounds: usize, value: &'static str) {
    let keys = (0..rounds).flat_map(|_| 0..KEYS);
    let records = keys.map(|key| NewRecord::new(format!("k{key:05}"), value).partition(0));
    app.kafka()
        .produce(app.name("in"), records.collect::<Vec<_>>())
        .unwrap();
}

/// Records restored and offsets to go of the one restore, while it is there.
fn progress(streams: &KafkaStreams) -> Option<(u64, u64)> {
    let threads = streams.threads();
    let restores = threads.iter().flat_map(|thread| thread.restores.values());
    restores.map(|progress| (progress.restored, progress.remaining)).next()
}

/// The restore is held in its middle by an open transaction of somebody else, which lies between the two halves of the
/// changelog: a restore reads committed rows only.
#[test]
fn case_shut_during_restore() {
    let app = summing();
    produce(&app, ROUNDS, "1");
    let streams = app.start_running();
    app.wait_lag_0(&streams, "in");
    let foreign = Transaction::begin(app.kafka().bootstrap(), &format!("{}-foreign", app.id)).unwrap();
    let row = NewRecord::new("nobody", "99").partition(0);
    let held_at = foreign.send(&app.changelog("c"), [row]).unwrap()[0].1;
    produce(&app, ROUNDS, "1");
    app.wait_lag_0(&streams, "in");
    stop(&streams);
    app.wipe();

    let streams = app.start();
    wait_until("the middle of the restore", LIMIT, || {
        Ok(progress(&streams).is_some_and(|(restored, _)| restored == (KEYS * ROUNDS) as u64))
    })
    .unwrap();
    let (_, remaining) = progress(&streams).unwrap();
    assert!(remaining > (KEYS * ROUNDS) as u64, "{remaining} to go");
    assert_eq!(streams.state(), State::Rebalancing);
    assert!(streams.close(SOON), "not closed in time");
    assert_eq!(streams.state(), State::NotRunning, "{:?}", streams.error());
    foreign.abort().unwrap();

    let streams = app.start_running();
    // From where the first one was, not from 0: the second half alone.
    assert_eq!(
        restored(&streams),
        (KEYS * ROUNDS) as u64,
        "the log was held at {held_at}"
    );
    let before = app.records("out").len();
    produce(&app, 1, "0");
    let records = app
        .kafka()
        .collector()
        .wait_for_count(app.name("out"), before + KEYS, LIMIT)
        .unwrap();
    stop(&streams);
    assert!(records[before..].iter().all(|record| record.value_text() == "10"));
}
