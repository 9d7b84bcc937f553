//! Applications as child processes, to be killed at the worst moment: [`ChildApp`], [`RunningApp`], [`KillLoop`].

mod kill_loop;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use kill_loop::{KillLoop, KillReport};
use rustix::process::Signal;

use crate::error::{Error, Result};
use crate::supervise::{Exit, Program, Supervised};
use crate::wait::{Deadline, POLL_INTERVAL};

/// Set in a child that [`ChildApp::this_test`] starts, to the name of the test function.
const CHILD_VARIABLE: &str = "STREAMS_TESTKIT_CHILD";

/// The output kept of each run; older lines are dropped.
const KEPT_LINES: usize = 50_000;
const TAIL_LINES: usize = 30;
/// After the end of a process its output pipe is read out; only a process that it left behind can keep it open for longer.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// A program to run as a child: an example, a binary, or a test function of this very test binary.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use streams_testkit::ChildApp;
///
/// let mut app = ChildApp::new("sh").args(["-c", "echo up; exec sleep 1000"]).start()?;
/// app.wait_for_line(Duration::from_secs(10), |line| line == "up")?;
/// app.kill()?;
/// # Ok::<(), streams_testkit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChildApp {
    program: Program,
}

impl ChildApp {
    /// A program by path, or by name from `PATH`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let path = program.into();
        Self {
            program: Program {
                path,
                ..Program::default()
            },
        }
    }

    /// A binary of the same Cargo workspace and profile, from the folder that this test binary was built in.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has not been built: Cargo builds other packages' binaries only when asked.
    pub fn built(name: &str) -> Result<Self> {
        let here = current_exe()?;
        let folders = here.ancestors().skip(1).take(2);
        let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
        found.map(Self::new).ok_or_else(|| {
            Error::Usage(format!(
                "there is no binary {name} near {}: run `cargo build -p {name}` first",
                here.display()
            ))
        })
    }

    /// The test function `name` of this test binary (its full path, such as `crash::copy_app`) as a process of its own.
    /// Mark the function `#[ignore]` and let it return at once unless [`is_child_of_test`] says that it is meant.
    ///
    /// Its output begins on a line that the test runner has begun: look for lines by `contains` or `ends_with`.
    ///
    /// # Errors
    /// [`Error::Io`] if this program's own path can't be found out.
    pub fn this_test(name: &str) -> Result<Self> {
        let arguments = ["--exact", name, "--include-ignored", "--nocapture"];
        Ok(Self::new(current_exe()?).args(arguments).env(CHILD_VARIABLE, name))
    }

    /// Appends an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.program.args.push(arg.into());
        self
    }

    /// Appends arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.program.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable, in addition to this process's own.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.program.env.push((name.into(), value.into()));
        self
    }

    /// The folder to run in.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.program.cwd = Some(folder.into());
        self
    }

    /// Starts it. Each start is a new process with its own output; it is killed when the [`RunningApp`] is dropped, and when this process dies.
    ///
    /// # Errors
    /// [`Error::Io`]. A program that does not exist ends with exit code 127.
    pub fn start(&self) -> Result<RunningApp> {
        let mut process = Supervised::spawn(&self.program, Stdio::piped())?;
        let output = Arc::new(Output::default());
        if let Some(pipe) = process.take_output() {
            let output = Arc::clone(&output);
            std::thread::Builder::new()
                .name("child-output".to_owned())
                .spawn(move || output.read(pipe))
                .map_err(Error::io("read the output of", &self.program.path))?;
        }
        Ok(RunningApp {
            process,
            output,
            path: self.program.path.clone(),
        })
    }
}

/// True in the process that [`ChildApp::this_test`] started for the test function `name`.
pub fn is_child_of_test(name: &str) -> bool {
    std::env::var(CHILD_VARIABLE).is_ok_and(|meant| meant == name)
}

fn current_exe() -> Result<PathBuf> {
    std::env::current_exe().map_err(Error::io("find", Path::new("the running program")))
}

/// A child that runs. Standard output and standard error are collected together, line by line.
#[derive(Debug)]
pub struct RunningApp {
    process: Supervised,
    output: Arc<Output>,
    path: PathBuf,
}

impl RunningApp {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// All lines so far (the last 50,000).
    pub fn lines(&self) -> Vec<String> {
        self.output.lock().lines.iter().cloned().collect()
    }

    /// Waits for a line that matches, also among those printed before the call.
    ///
    /// # Errors
    /// [`Error::Child`] if the process ends without it; [`Error::Timeout`]; both with the last lines.
    pub fn wait_for_line(&mut self, timeout: Duration, matches: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Deadline::after(timeout);
        let mut searched = 0;
        loop {
            // Asked first: what it printed before its end is then surely searched below.
            let ended = self.exit()?;
            if let Some(line) = self.output.find(&mut searched, &matches, deadline) {
                return Ok(line);
            }
            if let Some(exit) = ended {
                return Err(self.failed(format!("ended ({exit}) without printing the line that was waited for")));
            }
            if deadline.expired() {
                return Err(Error::Timeout {
                    waiting_for: format!("a line of {}", self.path.display()),
                    waited: timeout,
                    seen: format!("it printed:\n{}", self.tail()),
                });
            }
        }
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn exit(&mut self) -> Result<Option<Exit>> {
        let exit = self.process.exit()?;
        if exit.is_some() {
            self.output.await_end();
        }
        Ok(exit)
    }

    /// Waits for it to end by itself.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the last lines if it still runs after `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<Exit> {
        let exit = self.process.wait(timeout)?;
        self.ended(exit, "to end", timeout)
    }

    /// SIGKILL.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it is still there 20 s later.
    pub fn kill(&mut self) -> Result<Exit> {
        let exit = self.process.kill()?;
        self.output.await_end();
        Ok(exit)
    }

    /// SIGTERM, and waits for a graceful end.
    ///
    /// # Errors
    /// [`Error::Timeout`] with the last lines if it still runs after `timeout`.
    pub fn terminate(&mut self, timeout: Duration) -> Result<Exit> {
        let exit = self.process.terminate(timeout)?;
        self.ended(exit, "to end after SIGTERM", timeout)
    }

    /// Freezes it (SIGSTOP): it holds its connections and sends nothing, like a process in a long pause.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn pause(&mut self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Ends [`pause`](Self::pause).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn resume(&mut self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    fn ended(&self, exit: Option<Exit>, what: &str, timeout: Duration) -> Result<Exit> {
        self.output.await_end_if(exit.is_some());
        exit.ok_or_else(|| Error::Timeout {
            waiting_for: format!("{} {what}", self.path.display()),
            waited: timeout,
            seen: format!("it still runs; it printed:\n{}", self.tail()),
        })
    }

    pub(crate) fn failed(&self, reason: String) -> Error {
        Error::Child {
            program: self.path.clone(),
            reason,
            tail: self.tail(),
        }
    }

    fn tail(&self) -> String {
        let lines = self.lines();
        let start = lines.len().saturating_sub(TAIL_LINES);
        lines.into_iter().skip(start).collect::<Vec<_>>().join("\n")
    }
}

/// Lines of a child, filled by a thread.
#[derive(Debug, Default)]
struct Output {
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutputState {
    lines: VecDeque<String>,
    /// Lines dropped at the front.
    dropped: usize,
    ended: bool,
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, OutputState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, pipe: impl Read) {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => self.push(String::from_utf8_lossy(&line).trim_end().to_owned()),
            }
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn push(&self, line: String) {
        let mut state = self.lock();
        if state.lines.len() == KEPT_LINES {
            state.lines.pop_front();
            state.dropped += 1;
        }
        state.lines.push_back(line);
        drop(state);
        self.changed.notify_all();
    }

    /// Searches the lines that were not searched yet, and otherwise waits a moment for more.
    fn find(&self, searched: &mut usize, matches: impl Fn(&str) -> bool, deadline: Deadline) -> Option<String> {
        let mut state = self.lock();
        for pass in 0..2 {
            let skip = searched.saturating_sub(state.dropped);
            let found = state.lines.iter().skip(skip).find(|line| matches(line));
            if let Some(line) = found {
                return Some(line.clone());
            }
            *searched = state.dropped + state.lines.len();
            if pass == 0 && !state.ended {
                let wait = deadline.slice(POLL_INTERVAL);
                let waited = self.changed.wait_timeout(state, wait);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        None
    }

    fn await_end(&self) {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, DRAIN_LIMIT, |state| !state.ended);
        drop(waited);
    }

    fn await_end_if(&self, condition: bool) {
        if condition {
            self.await_end();
        }
    }
}

#[cfg(test)]
mod tests;
