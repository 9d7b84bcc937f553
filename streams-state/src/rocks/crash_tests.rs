//! SIGKILL at random moments, between and inside applies: the state is a prefix of the epochs, all families and the
//! metadata at the same one, and no acknowledged epoch is missing.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::tests::directory;
use crate::{Direction, EpochMetadata, StoreId, StoreMetadata, StoreSpec, TaskState, WindowStoreExt};

const HOME: &str = "STREAMS_STATE_CRASH_TEST_HOME";
const CHILD: &str = "rocks::crash_tests::child_applies_epochs_until_it_is_killed";
const KILLS: u32 = 25;
/// Keys that every epoch writes again.
const KEYS: u32 = 400;

fn specs() -> Vec<StoreSpec> {
    vec![
        StoreSpec::key_value("a"),
        StoreSpec::key_value("b"),
        StoreSpec::window("w", 1_000_000_000, false),
    ]
}

fn open(home: &Path) -> TaskState {
    TaskState::open(&directory(home), "0_0", specs()).unwrap()
}

/// Writes epoch `n`: the same keys in each store with `n` as value, and one row of its own.
fn write_epoch(state: &mut TaskState, n: i64) {
    let value = n.to_be_bytes();
    for key in 0..KEYS {
        state.put(StoreId(0), &key.to_be_bytes(), Some(&value)).unwrap();
        state
            .put(StoreId(1), &key.to_be_bytes(), Some(&[value.as_slice(); 10].concat()))
            .unwrap();
        state
            .window_put(StoreId(2), &key.to_be_bytes(), i64::from(key), Some(&value))
            .unwrap();
    }
    state
        .put(StoreId(0), format!("epoch-{n:09}").as_bytes(), Some(b""))
        .unwrap();
}

fn metadata(n: i64) -> EpochMetadata {
    let position = StoreMetadata {
        changelog_topic_id: None,
        position: n,
        own_commit: true,
        applied_at_ms: n,
    };
    EpochMetadata {
        stores: (0..3).map(|id| (StoreId(id), position)).collect(),
        input_offsets: vec![(("in".to_owned(), 0), n)],
        operator_times: vec![("time".to_owned(), n)],
        now_ms: n,
    }
}

#[test]
#[ignore = "run by rule_2_11_a_kill_at_any_moment_leaves_a_prefix_of_the_epochs_with_every_acknowledged_one"]
fn child_applies_epochs_until_it_is_killed() {
    let Ok(home) = std::env::var(HOME) else { return };
    let mut state = open(Path::new(&home));
    let mut n = state.input_offsets().values().copied().next().unwrap_or(0);
    let mut out = std::io::stdout();
    loop {
        n += 1;
        write_epoch(&mut state, n);
        state.freeze().unwrap();
        // The next epoch is open already when this one is applied.
        state.put(StoreId(0), b"never applied", Some(b"x")).unwrap();
        state.apply(&metadata(n)).unwrap();
        state.drop_open();
        writeln!(out, "applied {n}").unwrap();
        out.flush().unwrap();
    }
}

fn spawn(home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([CHILD, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(HOME, home)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Lets the child acknowledge some epochs, kills it a moment later, and returns the last one it acknowledged.
fn run_and_kill(home: &Path, acknowledged: u32, moment: u32) -> i64 {
    let mut child = spawn(home);
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut applied = lines
        .by_ref()
        .filter_map(|line| line.strip_prefix("applied ")?.parse::<i64>().ok());
    let mut last = applied.by_ref().nth(acknowledged as usize).unwrap();
    // Somewhere in the next epochs: writing, freezing, or inside the batch.
    (0..moment).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    child.wait().unwrap();
    // What it could still say before it died counts too.
    last = applied.last().unwrap_or(last);
    last
}

fn check(home: &Path, acknowledged: i64) {
    let mut state = open(home);
    let n = state.input_offsets().values().copied().next().unwrap();
    assert!(state.was_set_aside().is_none());
    assert!(
        n >= acknowledged,
        "epoch {acknowledged} was acknowledged, the state is at {n}"
    );
    assert_eq!(state.operator_times().values().copied().collect::<Vec<_>>(), [n]);
    for id in 0..3 {
        assert_eq!(
            state.store_metadata(StoreId(id)).unwrap().position,
            n,
            "metadata of store {id}"
        );
    }
    let value = n.to_be_bytes();
    for key in 0..KEYS {
        let key = key.to_be_bytes();
        assert_eq!(state.get_vec(StoreId(0), &key).unwrap().unwrap(), value);
        assert_eq!(
            state.get_vec(StoreId(1), &key).unwrap().unwrap(),
            [value.as_slice(); 10].concat()
        );
    }
    let windows = state
        .window(StoreId(2))
        .unwrap()
        .fetch_all(0, i64::MAX, Direction::Forward)
        .unwrap();
    assert_eq!(
        windows.map(|row| assert_eq!(*row.unwrap().value, value)).count(),
        KEYS as usize
    );
    let epochs = state.prefix(StoreId(0), b"epoch-", Direction::Forward).unwrap().count();
    assert_eq!(epochs as i64, n, "a prefix without holes");
    assert_eq!(state.get_vec(StoreId(0), b"never applied").unwrap(), None);
}

#[test]
fn rule_2_11_a_kill_at_any_moment_leaves_a_prefix_of_the_epochs_with_every_acknowledged_one() {
    let home = tempfile::tempdir().unwrap();
    for kill in 0..KILLS {
        // Spread over the length of a few epochs; where exactly it hits is the scheduler's choice.
        let moment = kill.wrapping_mul(2_654_435_761) % 200_000;
        let acknowledged = run_and_kill(home.path(), kill % 7, moment);
        check(home.path(), acknowledged);
    }
}
