//! The given cases (`tests/cases/given.json`) in which a process dies or stands still; each test names the case it is.

use std::path::Path;

use streams_testkit::{NewRecord, wait_until};

use crate::application::LIMIT;
use crate::instances::{Group, Work, stop, wait_running};

const KEYS: usize = 3;

#[test]
fn case_eos_wall_punctuator_only() {
    let group = Group::new(Work::Punctuate, 1);
    let mut running = group.start("A");
    let times = || -> Vec<i64> {
        let records = group.kafka.collect(&group.output).unwrap();
        records
            .iter()
            .map(|record| {
                assert_eq!(record.key_text(), "punct");
                let text = record.value_text();
                text.strip_prefix("A ").unwrap().parse().unwrap()
            })
            .collect()
    };
    wait_until("five punctuations", LIMIT, || Ok(times().len() >= 5)).unwrap();
    running.kill().unwrap();
    let times = times();
    // One that comes late moves no later one: over all of them it is one every 200 ms, give or take the first.
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    let (intervals, took_ms) = (times.len() as i64 - 1, times[times.len() - 1] - times[0]);
    assert!(took_ms >= (intervals - 1) * 200, "{times:?}");
    // What was open when it died is ended by the next start of the same identity, or by the broker.
    let mut again = group.start("A");
    wait_running(&mut again, LIMIT);
    stop(&mut again);
    let topics = group.kafka.topics();
    assert_eq!(
        topics.last_stable_offsets(&group.output).unwrap(),
        topics.end_offsets(&group.output).unwrap()
    );
}

/// The case's 600 windows, with fewer keys. Windows have no folder and no file of their own here, so neither files on
/// disk nor open ones can grow with them. (They begin with minute 1: librdkafka writes a time of 0 as now.)
#[test]
fn case_mem_window_segments() {
    const EACH: usize = 40;
    let group = Group::new(Work::Windows, 1);
    let feed = |minutes: std::ops::Range<i64>| {
        let records = minutes
            .flat_map(|minute| (0..EACH).map(move |key| NewRecord::new(format!("k{key:02}"), "x").at(minute * 60_000)));
        group.kafka.produce(&group.input, records).unwrap();
    };
    let mut running = group.start("A");
    feed(1..101);
    group.wait_committed(LIMIT, &[&running]);
    let open_files = |pid: i32| std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let before = open_files(running.pid());
    feed(101..601);
    group.wait_committed(LIMIT, &[&running]);
    let after = open_files(running.pid());
    assert!(
        after <= before + 20,
        "{before} open files after 100 windows, {after} after 600"
    );
    stop(&mut running);
    let (files, bytes) = on_disk(&group.directory("A"));
    println!("600 windows: {files} files, {bytes} bytes");
    assert!(files < 60, "{files} files");
    let records = group.kafka.collect(&group.output).unwrap();
    assert_eq!(records.len(), 600 * EACH);
    let one = 1_i64.to_be_bytes();
    assert!(records.iter().all(|record| record.value.as_deref() == Some(&one[..])));
}

/// Files below a folder, and their bytes.
fn on_disk(folder: &Path) -> (usize, u64) {
    let mut found = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (files, bytes) = match path.is_dir() {
            true => on_disk(&path),
            false => (1, path.metadata().unwrap().len()),
        };
        found = (found.0 + files, found.1 + bytes);
    }
    found
}

#[cfg(feature = "test-hooks")]
mod hooked {
    use streams_testkit::{Exit, Isolation, RunningApp};

    use super::*;
    use crate::instances::impatient_broker;

    const POINT: &str = "after-offsets-sent-before-commit";
    /// SIGABRT.
    const ABORTED: Exit = Exit::Signal(6);

    fn dies(running: &mut RunningApp) {
        assert_eq!(running.wait(LIMIT).unwrap(), ABORTED, "{}", running.lines().join("\n"));
    }

    #[test]
    fn case_eos_kill_after_offsets_sent_before_commit() {
        let group = Group::new(Work::Count, 1);
        group.feed(KEYS);
        dies(&mut group.start_to_die_at("A", POINT));
        assert!(group.kafka.collect(&group.output).unwrap().is_empty());
        let mut again = group.start("A");
        group.wait_committed(LIMIT, &[&again]);
        group.feed(1);
        group.wait_committed(LIMIT, &[&again]);
        stop(&mut again);
        group.assert_exact();
    }

    /// Rows of an open transaction are in no memtable that could be flushed: the store has them after the commit. The
    /// case's point is what a dirty store would make of the next count.
    #[test]
    fn case_eos_kill_memtable_flushed() {
        let group = Group::new(Work::Count, 1);
        group.feed(1);
        let mut first = group.start("A");
        group.wait_committed(LIMIT, &[&first]);
        first.kill().unwrap();
        std::fs::remove_dir_all(group.directory("A").join(&group.id).join("rust-v1/0_0")).unwrap();
        let mut restored = group.start_to_die_at("A", POINT);
        assert_eq!(wait_running(&mut restored, LIMIT), 1);
        group.feed(1);
        dies(&mut restored);
        let mut again = group.start("A");
        group.wait_committed(LIMIT, &[&again]);
        stop(&mut again);
        // 1, then 2: a dirty store would have made it 3.
        group.assert_exact();
    }

    #[test]
    fn case_eos_takeover_pending_offsets() {
        let group = Group::on(impatient_broker(), Work::Count, 1).with("producer.transaction.timeout.ms", "8000");
        group.feed(KEYS);
        dies(&mut group.start_to_die_at("A", POINT));
        let mut other = group.start("B");
        group.wait_committed(LIMIT, &[&other]);
        stop(&mut other);
        group.assert_exact();
    }

    #[test]
    fn case_eos_abort_resets_store() {
        let group = Group::new(Work::Count, 1)
            .with("producer.transaction.timeout.ms", "2000")
            .with("statestore.cache.max.bytes", "10485760");
        group.feed(KEYS);
        let go_on = group.directory("go-on");
        let child = group.child("A").env("STREAMS_TEST_HOOKS", format!("{POINT}=pause"));
        let mut running = child.env("STREAMS_TEST_HOOKS_GO_ON", &go_on).start().unwrap();
        // The transaction stands open, with the offsets in it, until the broker ends it.
        let uncommitted = group.kafka.collector().isolation(Isolation::ReadUncommitted);
        uncommitted.wait_for_count(&group.output, KEYS, LIMIT).unwrap();
        let topics = group.kafka.topics();
        let ended = || {
            let stable = topics.last_stable_offsets(&group.output)?;
            Ok(stable[&0] > 0 && stable == topics.end_offsets(&group.output)?)
        };
        wait_until("the broker to end the transaction", LIMIT, ended).unwrap();
        assert!(group.kafka.collect(&group.output).unwrap().is_empty());
        std::fs::write(&go_on, "").unwrap();
        group.wait_committed(LIMIT, &[&running]);
        assert_eq!(running.exit().unwrap(), None, "no restart is needed");
        stop(&mut running);
        group.assert_exact();
    }
}
