#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::seed::Seeded;

const LIMIT: Duration = Duration::from_secs(30);

fn shell(script: &str) -> ChildApp {
    ChildApp::new("sh").args(["-c", script])
}

#[test]
fn both_streams_are_collected_in_order() {
    let mut app = shell("echo one; echo two >&2; echo three").start().unwrap();
    assert!(app.wait(LIMIT).unwrap().is_success());
    assert_eq!(app.lines(), ["one", "two", "three"]);
}

#[test]
fn a_line_printed_before_the_wait_is_found() {
    let mut app = shell("echo ready; exec sleep 1000").start().unwrap();
    for _ in 0..2 {
        assert_eq!(app.wait_for_line(LIMIT, |line| line == "ready").unwrap(), "ready");
    }
    assert_eq!(app.kill().unwrap(), Exit::Signal(9));
}

#[test]
fn waiting_for_a_line_of_an_ended_process_fails_at_once_with_its_output() {
    let mut app = shell("echo oops; exit 3").start().unwrap();
    let error = app.wait_for_line(LIMIT, |line| line == "ready").unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Child { .. }), "{text}");
    assert!(text.contains("exit code 3") && text.contains("oops"), "{text}");
}

#[test]
fn a_handler_for_sigterm_may_end_gracefully() {
    let script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let mut app = shell(script).start().unwrap();
    app.wait_for_line(LIMIT, |line| line == "up").unwrap();
    assert_eq!(app.terminate(LIMIT).unwrap(), Exit::Code(0));
    assert_eq!(app.lines(), ["up", "bye"]);
}

#[test]
fn a_paused_process_does_nothing_until_it_is_resumed() {
    let script = "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let mut app = shell(script).start().unwrap();
    app.wait_for_line(LIMIT, |line| line == "up").unwrap();
    app.pause().unwrap();
    // A stopped process does not get to its handler.
    app.process.signal(Signal::TERM).unwrap();
    assert_eq!(app.process.wait(Duration::from_millis(300)).unwrap(), None);
    app.resume().unwrap();
    assert_eq!(app.wait(LIMIT).unwrap(), Exit::Code(0));
}

#[test]
fn environment_and_folder_reach_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut app = shell("echo $GREETING; pwd")
        .env("GREETING", "hello")
        .current_dir(&folder)
        .start()
        .unwrap();
    app.wait(LIMIT).unwrap();
    assert_eq!(app.lines(), ["hello", folder.to_str().unwrap()]);
}

#[test]
fn only_the_newest_lines_are_kept() {
    let output = Output::default();
    for line in 0..KEPT_LINES + 3 {
        output.push(line.to_string());
    }
    let state = output.lock();
    assert_eq!(state.lines.len(), KEPT_LINES);
    assert_eq!(state.lines.front().unwrap(), "3");
}

#[test]
fn a_test_function_runs_as_a_process() {
    const NAME: &str = "child::tests::function_for_a_process";
    let mut app = ChildApp::this_test(NAME).unwrap().start().unwrap();
    app.wait_for_line(LIMIT, |line| line.contains("I am the child"))
        .unwrap();
    assert!(app.wait(LIMIT).unwrap().is_success());
}

#[test]
#[ignore = "run by a_test_function_runs_as_a_process"]
fn function_for_a_process() {
    if is_child_of_test("child::tests::function_for_a_process") {
        println!("I am the child");
    }
}

#[test]
fn a_kill_loop_kills_so_many_times_and_then_lets_the_work_end() {
    let folder = tempfile::tempdir().unwrap();
    let progress = folder.path().join("progress");
    // Each process appends one line; the work is done when six processes have.
    let script = format!("echo line >> {}; echo up; exec sleep 1000", progress.display());
    let lines = || std::fs::read_to_string(&progress).unwrap().lines().count();
    let report = KillLoop::new(5, Seeded::new(1))
        .delay(Duration::ZERO..=Duration::from_millis(20))
        .ready_line(|line| line == "up")
        .run(&shell(&script), LIMIT, || Ok(lines() == 6))
        .unwrap();
    assert_eq!((report.kills, report.starts, report.outputs.len()), (5, 6, 6));
    assert_eq!(lines(), 6);
}

#[test]
fn a_process_that_ends_before_its_kill_fails_the_loop() {
    let error = KillLoop::new(2, Seeded::new(42))
        .delay(LIMIT..=LIMIT)
        .run(&shell("echo finished"), LIMIT, || Ok(true))
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("before kill 1 of 2") && text.contains("seed 42"),
        "{text}"
    );
}

#[test]
fn a_bad_end_after_the_last_kill_fails_the_loop() {
    let error = KillLoop::new(0, Seeded::new(42))
        .run(&shell("exit 4"), LIMIT, || Ok(false))
        .unwrap_err();
    assert!(error.to_string().contains("ended badly (exit code 4)"), "{error}");
}
