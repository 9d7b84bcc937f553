//! SIGKILL under load without transactions: at-least-once loses nothing, at-most-once repeats nothing.

use crate::application::{Application, Kind, LIMIT, PARTITIONS, wait_running};
use crate::exact::{copies, counts};
use crate::kills::under_kills;
use streams_testkit::Exit;

/// `buffered.records.per.partition`, which bounds a claim of at-most-once.
const CLAIM: usize = 1_000;

#[test]
fn a_copy_at_least_once_loses_nothing_under_kills() {
    let app = Application::under(Kind::Copy, "at_least_once");
    under_kills(&app, 100);
    let copies = copies(&app);
    let lost = copies.iter().filter(|times| **times == 0).count();
    let repeated = copies.iter().filter(|times| **times > 1).count();
    println!("at least once: {} records, {repeated} repeated", copies.len());
    assert_eq!(lost, 0);
}

#[test]
fn counts_at_least_once_are_never_too_low_under_kills() {
    let app = Application::under(Kind::CountEach, "at_least_once");
    under_kills(&app, 500);
    let counts = counts(&app);
    let over: i64 = counts.values().map(|(count, records)| count - records).sum();
    println!("at least once: {} keys, counted {over} too many", counts.len());
    for (key, (count, records)) in counts {
        assert!(count >= records, "{key}: {count} of {records}");
    }
}

#[test]
fn a_copy_at_most_once_repeats_nothing_under_kills_and_loses_a_claim_a_kill_at_most() {
    let app = Application::under(Kind::Copy, "at_most_once");
    let kills = under_kills(&app, 100).len() - 1;
    let copies = copies(&app);
    let lost = copies.iter().filter(|times| **times == 0).count();
    println!("at most once: {} records, {lost} lost", copies.len());
    assert!(copies.iter().all(|times| *times <= 1), "repeated");
    assert!(
        lost <= kills * CLAIM * PARTITIONS as usize,
        "{lost} lost by {kills} kills"
    );
}

#[test]
fn counts_at_most_once_are_never_too_high_under_kills() {
    let app = Application::under(Kind::CountEach, "at_most_once");
    under_kills(&app, 500);
    let counts = counts(&app);
    let under: i64 = counts.values().map(|(count, records)| records - count).sum();
    println!("at most once: {} keys, counted {under} too few", counts.len());
    for (key, (count, records)) in counts {
        assert!(count <= records, "{key}: {count} of {records}");
    }
}

/// An orderly stop is no crash: what is claimed is processed before the process goes.
#[test]
fn without_a_kill_both_are_exact() {
    for guarantee in ["at_least_once", "at_most_once"] {
        let app = Application::under(Kind::CountEach, guarantee);
        for _ in 0..2 {
            let mut running = app.start();
            wait_running(&mut running);
            app.produce((0..5_000).map(|at| at % 50));
            app.wait_committed(&mut running);
            let exit = running.terminate(LIMIT).unwrap();
            assert_eq!(exit, Exit::Code(0), "{}", running.lines().join("\n"));
        }
        for (key, (count, records)) in counts(&app) {
            assert_eq!(count, records, "{guarantee}: {key}");
        }
    }
}
