//! A call of cargo that never outlives xtask, nor does anything that it started.
//!
//! A shell stands between, in a process group of its own. It holds the read end of a pipe whose write end is ours: when
//! that closes, because xtask was stopped by Ctrl-C, SIGTERM or SIGKILL, the shell ends the group: cargo, compilers, tests.
//! (Brokers of the testkit have groups of their own, and end in the same way with the test that started them.)

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Stdio};

/// `$@` is the program. `$$` is the group, in the watcher too. The watcher ignores the SIGTERM that it sends, and what has
/// not ended 10 s later is killed, itself included. `read` is a builtin, so the watcher leaves no process behind.
const WRAPPER: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
pid=$!
(
  exec >&- 2>&-
  while read -r line <&3; do :; done
  trap '' TERM
  kill -s TERM -- "-$$"
  tries=0
  while kill -0 "$pid" && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -s KILL -- "-$$"
) &
watcher=$!
exec 3<&-
wait "$pid"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// Runs a command to its end, under guard. It reads nothing from our standard input; its outputs are ours. A signal that
/// ended it is told as 128 + its number.
pub(super) fn status(command: &Command) -> io::Result<ExitStatus> {
    let mut guarded = Command::new("sh");
    guarded.args(["-c", WRAPPER, "sh"]);
    guarded.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(key, value),
            None => guarded.env_remove(key),
        };
    }
    let mut child = guarded.stdin(Stdio::piped()).process_group(0).spawn()?;
    // Held until the end: `wait` would close it before.
    let lifeline = child.stdin.take();
    let status = child.wait();
    drop(lifeline);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_and_the_environment_pass_through() -> io::Result<()> {
        let run = |script: &str| status(Command::new("sh").args(["-c", script]).env("GUARDED", "7"));
        assert_eq!(run("exit $GUARDED")?.code(), Some(7));
        assert_eq!(run("kill -KILL $$")?.code(), Some(137));
        assert!(run("read -r line; [ -z \"$line\" ]")?.success());
        Ok(())
    }

    #[test]
    fn a_program_that_does_not_exist_is_told_by_the_shells_code() -> io::Result<()> {
        assert_eq!(status(&Command::new("no-such-program-anywhere"))?.code(), Some(127));
        Ok(())
    }
}
