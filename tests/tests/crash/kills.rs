//! SIGKILL under load: outputs and changelogs stay exact, and a restart applies no more than the last transaction.
//!
//! `STREAMS_CRASH_ROUNDS` (default 5) kills, `STREAMS_CRASH_KEYS` (default 20000) keys, `STREAMS_TEST_SEED` for the moments.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use streams_testkit::{Exit, RunningApp, Seeded};
use streams_tests::broker;

use crate::application::{Application, Kind, LIMIT, number, wait_running};
use crate::exact::{Transactions, assert_exact};

fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number"))
    })
}

/// One life of the process, between start and SIGKILL.
pub(crate) struct Life {
    restored: u64,
    running_ms: u128,
    first_record_ms: u128,
    /// The ends of the changelog when it was dead.
    ends: BTreeMap<i32, i64>,
}

#[allow(clippy::disallowed_methods, reason = "a test that measures restarts")]
fn now() -> Instant {
    Instant::now()
}

fn live_and_die(app: &Application, keys: u32, seeded: &mut Seeded) -> Life {
    let started = now();
    // Something to do from the first moment on.
    app.produce(some_keys(keys, 500, seeded));
    let mut running = app.start();
    let restored = wait_running(&mut running);
    let running_ms = started.elapsed().as_millis();
    running
        .wait_for_line(LIMIT, |line| line.contains("FIRST RECORD"))
        .unwrap();
    let first_record_ms = started.elapsed().as_millis();
    for _ in 0..=seeded.below(12) {
        let records = 1 + seeded.below(2_000);
        app.produce(some_keys(keys, records, seeded));
    }
    running.kill().unwrap();
    let ends = if app.kind == Kind::Copy {
        BTreeMap::new()
    } else {
        broker().topics().end_offsets(&app.changelog()).unwrap()
    };
    Life {
        restored,
        running_ms,
        first_record_ms,
        ends,
    }
}

fn some_keys(keys: u32, records: u64, seeded: &mut Seeded) -> Vec<u32> {
    (0..records)
        .map(|_| u32::try_from(seeded.below(u64::from(keys))).unwrap())
        .collect()
}

/// Kills it `STREAMS_CRASH_ROUNDS` times, then lets it finish and stops it in an orderly way. Answers its lives, the last
/// one's restore included, without ends.
pub(crate) fn under_kills(app: &Application, keys: u32) -> Vec<Life> {
    let mut seeded = Seeded::from_env().unwrap();
    let mut lives: Vec<Life> = (0..setting("STREAMS_CRASH_ROUNDS", 5))
        .map(|_| live_and_die(app, keys, &mut seeded))
        .collect();
    let mut running = app.start();
    let restored = wait_running(&mut running);
    app.wait_committed(&mut running);
    lives.push(Life {
        restored,
        running_ms: 0,
        first_record_ms: 0,
        ends: BTreeMap::new(),
    });
    stop(&mut running);
    lives
}

fn stop(running: &mut RunningApp) {
    let exit = running.terminate(LIMIT).unwrap();
    assert_eq!(exit, Exit::Code(0), "{}", running.lines().join("\n"));
}

fn report(name: &str, lives: &[Life]) {
    let killed = &lives[..lives.len() - 1];
    let sorted = |of: fn(&Life) -> u128| {
        let mut times: Vec<u128> = killed.iter().map(of).collect();
        times.sort_unstable();
        times
    };
    let restored: Vec<u64> = lives.iter().map(|life| life.restored).collect();
    println!("{name}: ms from start to RUNNING {:?}", sorted(|life| life.running_ms));
    println!(
        "{name}: ms from start to the first record {:?}",
        sorted(|life| life.first_record_ms)
    );
    println!("{name}: records restored at each start {restored:?}");
}

#[test]
fn a_copy_is_exact_after_kills() {
    let app = Application::new(Kind::Copy);
    report("copy", &under_kills(&app, 100));
    assert_exact(&app);
}

#[test]
fn counts_are_exact_after_kills_and_a_restart_applies_the_last_transaction_at_most() {
    counts_under_kills(Kind::CountEach, 500);
}

#[test]
fn cached_counts_of_many_keys_are_exact_after_kills() {
    counts_under_kills(Kind::CountCached, setting("STREAMS_CRASH_KEYS", 20_000));
}

fn counts_under_kills(kind: Kind, keys: u32) {
    let app = Application::new(kind);
    let mut running = app.start();
    assert_eq!(wait_running(&mut running), 0);
    app.produce(0..keys);
    app.wait_committed(&mut running);
    stop(&mut running);
    let lives = under_kills(&app, keys);
    report(kind.name(), &lives);
    let transactions = Transactions::of(&app.changelog());
    println!(
        "{}: the largest transaction has {} records of a partition",
        kind.name(),
        transactions.largest()
    );
    for pair in lives.windows(2) {
        let most = transactions.last_before(&pair[0].ends);
        assert!(
            pair[1].restored <= most,
            "{} records restored after a last transaction of {most}",
            pair[1].restored
        );
    }
    // The first of the lives began after an orderly stop.
    assert_eq!(lives[0].restored, 0);
    assert_exact(&app);
    clean_restart_restores_nothing(&app);
}

/// One listing of the changelogs' offsets and no fetch: not one record, and no consumer was even started for it (design
/// rule 2.1).
fn clean_restart_restores_nothing(app: &Application) {
    let mut running = app
        .child("", "info,streams_core::kafka::shell::effects=trace")
        .start()
        .unwrap();
    assert_eq!(wait_running(&mut running), 0);
    stop(&mut running);
    let lines = running.lines();
    assert!(lines.iter().any(|line| line.contains("state changed")), "{lines:?}");
    assert!(
        !lines.iter().any(|line| line.contains("store is restored")),
        "{lines:?}"
    );
    let effects = |name: &str| {
        lines
            .iter()
            .filter(|line| line.contains(&format!("effect=\"{name}\"")))
            .count()
    };
    assert_eq!(effects("list-changelogs"), 1, "{lines:?}");
    assert_eq!(effects("fetch-committed"), 1, "{lines:?}");
    assert_eq!(effects("resolve-reset"), 0, "{lines:?}");
    assert_eq!(effects("restore"), 0, "{lines:?}");
}

/// Commits of 100 records, one after the other. The times are printed; `STREAMS_TIMED=1`, on a quiet machine, checks the
/// median against 15 ms.
#[test]
fn commits_of_a_hundred_records() {
    const COMMITS: usize = 40;
    let app = Application::new(Kind::Copy);
    let mut running = app.child("", "info,streams_core=debug").start().unwrap();
    wait_running(&mut running);
    for _ in 0..COMMITS {
        app.produce(0..100);
        app.wait_committed(&mut running);
    }
    stop(&mut running);
    let lines = running.lines();
    let commits: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("committed") && line.contains("took_ms="))
        .collect();
    let records: u64 = commits.iter().map(|line| number(line, "records")).sum();
    assert_eq!(records, 100 * COMMITS as u64);
    let mut times: Vec<u64> = commits
        .iter()
        .filter(|line| number(line, "records") > 0)
        .map(|line| number(line, "took_ms"))
        .collect();
    times.sort_unstable();
    let (median, high) = (times[times.len() / 2], times[times.len() * 9 / 10]);
    println!(
        "{} commits of {records} records: p50 {median} ms, p90 {high} ms",
        times.len()
    );
    if std::env::var("STREAMS_TIMED").is_ok_and(|timed| timed == "1") {
        assert!(Duration::from_millis(median) <= Duration::from_millis(15), "{times:?}");
    }
    assert_exact(&app);
}
