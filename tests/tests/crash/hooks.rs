//! The process is aborted at each point inside a commit, a restore and a hand-over; the restart makes everything exact.

use streams_testkit::{Exit, RunningApp};
use streams_tests::broker;

use crate::application::{Application, Kind, LIMIT, wait_running};
use crate::exact::{Transactions, assert_exact, copies};

/// SIGABRT.
const ABORTED: Exit = Exit::Signal(6);
const KEYS: u32 = 50;
const RECORDS: u32 = 300;

/// A point, how often it is passed before the process dies there, and whether the process has to be asked to stop first.
struct Point {
    name: &'static str,
    times: u32,
    stop: bool,
}

const fn working(name: &'static str, times: u32) -> Point {
    Point {
        name,
        times,
        stop: false,
    }
}

/// The points that every topology passes.
const POINTS: [Point; 7] = [
    working("after-send", 2),
    working("after-flush-before-offsets", 2),
    working("after-offsets-sent-before-commit", 1),
    working("after-commit-before-apply", 1),
    working("after-apply", 1),
    working("before-acknowledge", 1),
    Point {
        name: "during-revoke",
        times: 1,
        stop: true,
    },
];

#[test]
fn a_copy_is_exact_after_an_abort_at_each_point() {
    let app = Application::new(Kind::Copy);
    for point in &POINTS {
        die_at(&app, point);
        come_back(&app);
    }
    assert_exact(&app);
}

#[test]
fn counts_and_changelog_are_exact_after_an_abort_at_each_point() {
    let app = Application::new(Kind::CountEach);
    for point in &POINTS {
        let began = broker().topics().end_offsets(&app.changelog()).unwrap_or_default();
        die_at(&app, point);
        let ends = broker().topics().end_offsets(&app.changelog()).unwrap();
        let restored = come_back(&app);
        let transactions = Transactions::of(&app.changelog());
        let most = transactions.last_before(&ends);
        println!(
            "killed at {}: {restored} records restored, the last transaction had {most}",
            point.name
        );
        assert!(restored <= most, "{}: {restored} of at most {most}", point.name);
        if point.name == "after-commit-before-apply" {
            // It died behind its first commit, which need not have had records of every partition.
            let committed = transactions.records_between(&began, &ends);
            assert!(committed > 0);
            assert_eq!(
                restored, committed,
                "committed and not applied: all of it has to be read again"
            );
        }
    }
    // The stores are gone: a full restore, killed in its middle, and another one.
    app.lose_stores();
    die_at(&app, &working("during-restore", 1));
    let restored = come_back(&app);
    println!("killed during a full restore: {restored} records restored");
    assert!(restored > 0);
    assert_exact(&app);
}

/// The points of a commit without transactions.
const PLAIN_POINTS: [Point; 5] = [
    working("after-send", 2),
    working("after-flush-before-offsets", 2),
    working("after-apply", 1),
    working("before-offsets", 2),
    working("after-offsets", 2),
];

#[test]
fn at_least_once_loses_nothing_by_an_abort_at_each_point_and_repeats_something() {
    let app = Application::under(Kind::Copy, "at_least_once");
    for point in &PLAIN_POINTS {
        die_at(&app, point);
        come_back(&app);
    }
    let copies = copies(&app);
    assert!(copies.iter().all(|times| *times >= 1), "lost");
    assert!(
        copies.iter().any(|times| *times > 1),
        "no abort hit the gap between outputs and offsets"
    );
}

#[test]
fn at_most_once_repeats_nothing_by_an_abort_at_each_point_and_loses_something() {
    let app = Application::under(Kind::Copy, "at_most_once");
    for point in &PLAIN_POINTS {
        die_at(&app, point);
        come_back(&app);
    }
    let copies = copies(&app);
    assert!(copies.iter().all(|times| *times <= 1), "repeated");
    assert!(copies.contains(&0), "no abort hit a claim");
}

fn feed(app: &Application) {
    app.produce((0..RECORDS).map(|record| record % KEYS));
}

/// Runs until the point is reached, where the process ends itself.
fn die_at(app: &Application, point: &Point) {
    let hook = format!("{}=abort@{}", point.name, point.times);
    let mut running = app.child(&hook, "info").start().unwrap();
    if point.stop {
        feed(app);
        wait_running(&mut running);
        running
            .wait_for_line(LIMIT, |line| line.contains("FIRST RECORD"))
            .unwrap();
        app.wait_committed(&mut running);
        assert_eq!(running.terminate(LIMIT).unwrap(), ABORTED, "{}", point.name);
        return;
    }
    // Fed until it dies: some points want a second round.
    while running.exit().unwrap().is_none() {
        feed(app);
        assert!(
            app.produced.borrow().len() < 200_000,
            "{} is never reached:\n{}",
            point.name,
            running.lines().join("\n")
        );
    }
    assert_eq!(
        running.exit().unwrap(),
        Some(ABORTED),
        "{}:\n{}",
        point.name,
        running.lines().join("\n")
    );
}

/// Restarts it without hooks and lets it finish; answers how many records were restored.
fn come_back(app: &Application) -> u64 {
    let mut running: RunningApp = app.start();
    let restored = wait_running(&mut running);
    app.wait_committed(&mut running);
    assert_eq!(
        running.terminate(LIMIT).unwrap(),
        Exit::Code(0),
        "{}",
        running.lines().join("\n")
    );
    restored
}
