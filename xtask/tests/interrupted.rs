//! xtask that is killed leaves nothing behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Stands for cargo: tells its process id and that of a process it starts, which runs much longer than the test.
const CARGO: &str = "#!/bin/sh
sleep 1000 &
echo \"$$ $!\" > \"$PIDS.new\"
mv \"$PIDS.new\" \"$PIDS\"
wait
";

#[test]
fn what_xtask_started_ends_with_it_even_by_sigkill() {
    let folder = std::env::temp_dir().join(format!("xtask-interrupted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (cargo, pids) = (folder.join("cargo"), folder.join("pids"));
    std::fs::write(&cargo, CARGO).unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["simulate", "--seeds", "1"])
        .env("CARGO", &cargo)
        .env("PIDS", &pids)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the program has started", || pids.exists());
    let started = std::fs::read_to_string(&pids).unwrap();
    let started: Vec<&str> = started.split_whitespace().collect();
    assert_eq!(started.len(), 2);
    assert!(started.iter().all(|pid| is_alive(pid)));
    xtask.kill().unwrap();
    xtask.wait().unwrap();
    wait_until("everything has ended", || !started.iter().any(|pid| is_alive(pid)));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Looks every 10 ms, for at most 30 s.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if done() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("not within 30 s: {what}");
}

/// Whether a process runs; one that has ended and that nobody has asked for its exit code does not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(Some('Z' | 'X')))
}
