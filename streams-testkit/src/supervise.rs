//! A process that never outlives us.
//!
//! A shell stands between us and the program. It holds the read end of a pipe whose write end is ours: when that closes,
//! because we closed it or because this process died in whatever way, the shell kills the program. So no broker and no
//! application under test is left behind, without `unsafe` and without anything that only Linux has.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};
use crate::wait::{Deadline, poll};

/// `$1` is a folder to delete if we die (or empty), the rest is the program. Its process id goes to our standard output,
/// its own output to our standard error. `read` is a builtin, so killing the watcher leaves no other process behind; it runs
/// with its outputs closed, so that the reader of the output sees the end when the program ends. The process id is told
/// last: who has it knows that the guard stands. The wait before the deletion is bounded (5 s), because a process whose
/// parent is gone too may stay in the table for good. The outer shell ends the watcher when the program has ended by itself;
/// once the watcher is at its work it ignores that.
const WRAPPER: &str = r#"
folder=$1
shift
exec 3<&0
"$@" </dev/null >&2 3<&- &
pid=$!
(
  exec >&- 2>&-
  while read -r line <&3; do :; done
  trap '' TERM
  kill -KILL "$pid"
  [ -n "$folder" ] || exit 0
  tries=0
  while kill -0 "$pid" && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
  rm -rf -- "$folder"
) &
watcher=$!
echo "$pid"
exec >&-
exec 3<&-
wait "$pid" 2>/dev/null
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// How long a process may take to vanish after SIGKILL (longer only when it hangs in the kernel).
const KILL_LIMIT: Duration = Duration::from_secs(20);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself, with this exit code.
    Code(i32),
    /// A signal with this number ended it (9 = SIGKILL, 15 = SIGTERM).
    Signal(i32),
}

impl Exit {
    /// True for exit code 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// A shell reports a signal as 128 + its number.
    fn from_shell(status: std::process::ExitStatus) -> Self {
        match status.code() {
            Some(code) if code > 128 => Self::Signal(code - 128),
            Some(code) => Self::Code(code),
            None => Self::Signal(std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(9)),
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What to run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
    /// Deleted if this process dies before the program has ended: our own destructors don't run then.
    pub(crate) remove_if_orphaned: Option<PathBuf>,
}

/// A running program under the guard of the wrapper. Dropping it kills the program.
#[derive(Debug)]
pub(crate) struct Supervised {
    wrapper: Child,
    /// Held open as long as the program may run; closing it is the order to kill.
    lifeline: Option<ChildStdin>,
    path: PathBuf,
    pid: Pid,
    exit: Option<Exit>,
}

impl Supervised {
    /// Starts `program`; `output` receives what it prints (both streams, in order).
    pub(crate) fn spawn(program: &Program, output: Stdio) -> Result<Self> {
        let mut command = Command::new("sh");
        let folder = program.remove_if_orphaned.clone().unwrap_or_default();
        command.args(["-c", WRAPPER, "sh"]).arg(folder).arg(&program.path);
        command
            .args(&program.args)
            .envs(program.env.iter().map(|(k, v)| (k, v)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(output);
        // A group of its own: Ctrl-C in a terminal ends us, and our end ends the program; it does not get the signal twice.
        command.process_group(0);
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        let mut wrapper = command.spawn().map_err(Error::io("start", &program.path))?;
        let lifeline = wrapper.stdin.take();
        match read_pid(&mut wrapper) {
            Some(pid) => Ok(Self {
                wrapper,
                lifeline,
                path: program.path.clone(),
                pid,
                exit: None,
            }),
            None => {
                drop(lifeline);
                let _ = wrapper.wait();
                Err(Error::Usage(format!(
                    "the shell could not start {}",
                    program.path.display()
                )))
            }
        }
    }

    /// The output of a program that was started with `Stdio::piped()`; only once.
    pub(crate) fn take_output(&mut self) -> Option<ChildStderr> {
        self.wrapper.stderr.take()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// How it ended, or `None` while it runs.
    pub(crate) fn exit(&mut self) -> Result<Option<Exit>> {
        if self.exit.is_none() {
            let status = self.wrapper.try_wait().map_err(Error::io("wait for", &self.path))?;
            self.exit = status.map(Exit::from_shell);
        }
        Ok(self.exit)
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<Option<Exit>> {
        poll(Deadline::after(timeout), || self.exit())
    }

    /// Sends a signal; does nothing once the program has ended.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.exit()?.is_some() {
            return Ok(());
        }
        match kill_process(self.pid, signal) {
            // It ended a moment ago and the shell has yet to report it.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(Error::Io {
                what: "send a signal to",
                path: self.path.clone(),
                source: errno.into(),
            }),
        }
    }

    /// SIGKILL, and waits until the process is gone.
    pub(crate) fn kill(&mut self) -> Result<Exit> {
        self.signal(Signal::KILL)?;
        self.wait(KILL_LIMIT)?.ok_or_else(|| Error::Timeout {
            waiting_for: format!("the end of {} after SIGKILL", self.path.display()),
            waited: KILL_LIMIT,
            seen: format!("process {} is still there", self.pid()),
        })
    }

    /// SIGTERM, and waits until the process is gone; `None` if it still runs after `timeout`.
    pub(crate) fn terminate(&mut self, timeout: Duration) -> Result<Option<Exit>> {
        self.signal(Signal::TERM)?;
        self.wait(timeout)
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            tracing::warn!(%error, "a child process may be left");
        }
        // Only now: as long as the program runs, this would also have the watcher delete the folder.
        drop(self.lifeline.take());
    }
}

fn read_pid(wrapper: &mut Child) -> Option<Pid> {
    let mut line = String::new();
    BufReader::new(wrapper.stdout.take()?).read_line(&mut line).ok()?;
    Pid::from_raw(line.trim().parse().ok()?)
}

/// The program `name` in the folders of `PATH`.
pub(crate) fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            ..Program::default()
        }
    }

    const LIMIT: Duration = Duration::from_secs(20);

    fn alive(pid: i32) -> bool {
        rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
    }

    #[test]
    fn exit_codes_and_signals_are_told_apart() {
        let mut ended = Supervised::spawn(&shell("exit 3"), Stdio::null()).unwrap();
        assert_eq!(ended.wait(LIMIT).unwrap(), Some(Exit::Code(3)));
        let mut killed = Supervised::spawn(&shell("exec sleep 1000"), Stdio::null()).unwrap();
        assert_eq!(killed.kill().unwrap(), Exit::Signal(9));
        let mut stopped = Supervised::spawn(&shell("exec sleep 1000"), Stdio::null()).unwrap();
        assert_eq!(stopped.terminate(LIMIT).unwrap(), Some(Exit::Signal(15)));
    }

    #[test]
    fn the_program_dies_when_the_lifeline_closes() {
        let mut program = Supervised::spawn(&shell("exec sleep 1000"), Stdio::null()).unwrap();
        assert!(alive(program.pid()));
        // The end of this process closes the pipe in just this way.
        drop(program.lifeline.take());
        assert_eq!(program.wait(LIMIT).unwrap(), Some(Exit::Signal(9)));
        assert!(!alive(program.pid()));
    }

    #[test]
    fn the_program_dies_when_the_shell_is_killed_and_the_lifeline_closes() {
        let mut program = Supervised::spawn(&shell("exec sleep 1000"), Stdio::null()).unwrap();
        program.wrapper.kill().unwrap();
        program.wrapper.wait().unwrap();
        assert!(alive(program.pid()));
        drop(program.lifeline.take());
        let pid = program.pid();
        // Its parent is gone: who reaps it decides when it vanishes from the table, so a zombie counts as dead.
        let gone = || !alive(pid) || is_zombie(pid);
        crate::wait_until("the orphan's end", LIMIT, || Ok(gone())).unwrap();
    }

    fn is_zombie(pid: i32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    }

    #[test]
    fn the_folder_of_an_orphan_is_deleted_and_that_of_a_killed_one_is_not() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut programs = folders.each_ref().map(|folder| {
            let mut program = shell("exec sleep 1000");
            program.remove_if_orphaned = Some(folder.path().to_owned());
            Supervised::spawn(&program, Stdio::null()).unwrap()
        });
        programs[0].kill().unwrap();
        drop(programs[0].lifeline.take());
        drop(programs[1].lifeline.take());
        let gone = || Ok(!folders[1].path().exists());
        crate::wait_until("the deletion of the folder", LIMIT, gone).unwrap();
        assert!(folders[0].path().exists());
    }

    #[test]
    fn a_missing_program_ends_with_the_shells_code_127() {
        let program = Program {
            path: "/no/such/program".into(),
            ..Program::default()
        };
        let mut missing = Supervised::spawn(&program, Stdio::null()).unwrap();
        assert_eq!(missing.wait(LIMIT).unwrap(), Some(Exit::Code(127)));
    }
}
