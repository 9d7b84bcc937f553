//! The billing example under SIGKILLs at random moments: not one cent is lost or doubled.
//!
//! `STREAMS_CRASH_ROUNDS` says how many kills (5 unless set), `STREAMS_TEST_SEED` repeats their moments.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use streams_testkit::{ChildApp, Error, Exit, RunningApp, Seeded, is_child_of_test};
use streams_tests::{broker, unique};
use usage_billing::data::DataDir;
use usage_billing::feed::{self, Feed};
use usage_billing::plain;
use usage_billing::report::Results;
use usage_billing::run::{RunOptions, run};
use usage_billing::sample_dir;
use usage_billing::topics::Names;

pub(crate) const APP: &str = "billing::app";
const READY_LIMIT: Duration = Duration::from_secs(60);
/// For the process that is left alone until everything is billed.
const END_LIMIT: Duration = Duration::from_secs(240);
/// From the moment that its tasks run to its kill.
const LIFE: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(500);
/// From its start to its kill, where kills may hit the start-up.
const START: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(1_500);
/// One kill of so many may hit the start-up.
const EARLY: u64 = 4;

#[test]
fn every_total_is_right_after_kills_at_random_moments() {
    let rounds = rounds();
    let kafka = broker();
    let names = Names::with_prefix(&format!("{}.", unique("crash")));
    let data = DataDir::new(sample_dir());
    let (feed, expected) = (
        Feed::read(&data, |_| true).unwrap(),
        plain::compute(&data, |_| true).unwrap(),
    );
    names.create(kafka).unwrap();
    feed.write_tables(kafka, &names).unwrap();
    let state = tempfile::tempdir().unwrap();
    let orders = [&names_prefix(&names), state.path().join("state").to_str().unwrap()].join("\n");
    let app = ChildApp::this_test(APP)
        .unwrap()
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap());
    let mut seeded = Seeded::from_env().unwrap();
    // Each process finds new departures, so that every kill hits work.
    let slice = feed.departures.len().div_ceil(rounds + 1);
    let mut slices = feed.departures.chunks(slice);
    for round in 0..rounds {
        if let Some(departures) = slices.next() {
            feed::write(kafka, &names.raw(), departures).unwrap();
        }
        let mut running = app.clone().env("BILLING", format!("{orders}\nserve")).start().unwrap();
        let delay = match seeded.below(EARLY) {
            0 => seeded.duration(&START),
            _ => {
                running
                    .wait_for_line(READY_LIMIT, |line| line.contains("STATE RUNNING"))
                    .unwrap();
                seeded.duration(&LIFE)
            }
        };
        assert_still_runs(&mut running, delay, round, seeded.seed());
        running.kill().unwrap();
    }
    for departures in slices {
        feed::write(kafka, &names.raw(), departures).unwrap();
    }
    let mut last = app.env("BILLING", format!("{orders}\nend")).start().unwrap();
    let exit = last.wait(END_LIMIT).unwrap();
    assert!(
        exit.is_success(),
        "{exit}, seed {}:\n{}",
        seeded.seed(),
        last.lines().join("\n")
    );
    let results = Results::read(kafka, &names).unwrap();
    let differences = results.differences(&expected, &feed);
    assert!(
        differences.is_empty(),
        "after {rounds} kills with seed {}:\n{}",
        seeded.seed(),
        differences.join("\n")
    );
}

fn assert_still_runs(running: &mut RunningApp, delay: Duration, round: usize, seed: u64) {
    match running.wait(delay) {
        Err(Error::Timeout { .. }) => {}
        Ok(exit) => panic!(
            "it ended by itself ({exit}) in round {round}, seed {seed}:\n{}",
            running.lines().join("\n")
        ),
        Err(error) => panic!("{error}"),
    }
}

fn rounds() -> usize {
    match std::env::var("STREAMS_CRASH_ROUNDS") {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("STREAMS_CRASH_ROUNDS={text} is no number")),
        Err(_) => 5,
    }
}

fn names_prefix(names: &Names) -> String {
    names.application_id().trim_end_matches("usage-billing").to_owned()
}

/// Without a kill nothing may be restored, and every topic keeps its records for ever.
#[test]
fn topics_of_the_billing_keep_their_records_for_ever_and_a_clean_restart_restores_nothing() {
    let kafka = broker();
    let prefix = format!("{}.", unique("clean"));
    let names = Names::with_prefix(&prefix);
    let data = DataDir::new(sample_dir());
    // Every 20th departure is enough for configs.
    let feed = Feed::read(&data, |row| row % 20 == 0).unwrap();
    names.create(kafka).unwrap();
    feed.write_tables(kafka, &names).unwrap();
    feed.write_departures(kafka, &names).unwrap();
    let state = tempfile::tempdir().unwrap();
    let orders = [&prefix, state.path().join("state").to_str().unwrap(), "end"].join("\n");
    let app = ChildApp::this_test(APP)
        .unwrap()
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap())
        .env("BILLING", orders);
    for start in 1..=2 {
        let mut running = app.start().unwrap();
        let exit = running.wait(END_LIMIT).unwrap();
        assert_eq!(exit, Exit::Code(0), "{}", running.lines().join("\n"));
        let done = running.lines().into_iter().find(|line| line.contains("DONE ")).unwrap();
        assert!(done.contains("restored=0"), "start {start}: {done}");
    }
    let ours: Vec<_> = kafka
        .topics()
        .list()
        .unwrap()
        .into_iter()
        .filter(|topic| topic.starts_with(&prefix))
        .collect();
    assert_eq!(ours.len(), 15, "{ours:?}");
    for topic in ours {
        assert_eq!(kafka.topics().configs(&topic).unwrap()["retention.ms"], "-1", "{topic}");
    }
    let expected = plain::compute(&data, |row| row % 20 == 0).unwrap();
    assert_eq!(
        Results::read(kafka, &names).unwrap().differences(&expected, &feed),
        Vec::<String>::new()
    );
}

/// Bills as told by the environment: prefix, state directory, and whether to go on when everything is billed.
#[test]
#[ignore = "run by every_total_is_right_after_kills_at_random_moments"]
fn app() {
    if !is_child_of_test(APP) {
        return;
    }
    if std::env::var_os("BILLING_SPANS").is_some() {
        tracing_subscriber::fmt()
            .with_env_filter("streams_core=info")
            .with_span_events(tracing_subscriber::fmt::format::FmtSpan::NEW)
            .with_ansi(false)
            .init();
    }
    let orders = std::env::var("BILLING").unwrap();
    let [prefix, state_dir, mode] = orders.split('\n').collect::<Vec<_>>()[..] else {
        panic!("BILLING={orders}")
    };
    let options = RunOptions {
        bootstrap: std::env::var("KAFKA_BOOTSTRAP").unwrap(),
        names: Names::with_prefix(prefix),
        state_dir: PathBuf::from(state_dir),
        threads: 1,
        kill_after: None,
        serve: (mode == "serve").then_some(SocketAddr::new(usage_billing::endpoint::ADDRESS.ip(), 0)),
    };
    run(&options).unwrap();
}
