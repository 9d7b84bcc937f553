//! Kill and restart, at random moments, until the work is done.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::child::{ChildApp, RunningApp};
use crate::error::{Error, Result};
use crate::seed::Seeded;
use crate::supervise::Exit;
use crate::wait::{Deadline, POLL_INTERVAL, pause};

const READY_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What tells that an application has come up.
type ReadyLine = Box<dyn Fn(&str) -> bool>;

/// Runs an application under SIGKILLs: start, wait a random time, kill, start again, …; after the last kill it is left
/// alone until the work is done, and then stopped by SIGTERM. The seed is printed and repeats the moments.
///
/// # Example
/// ```no_run
/// # use std::time::Duration;
/// # use streams_testkit::{ChildApp, KillLoop};
/// let app = ChildApp::built("usage-billing")?.arg("--serve");
/// let report = KillLoop::from_env(20)?
///     .ready_line(|line| line.starts_with("STATE RUNNING"))
///     .delay(Duration::from_millis(50)..=Duration::from_secs(2))
///     .run(&app, Duration::from_secs(300), || Ok(/* is every input record committed? */ true))?;
/// assert_eq!(report.kills, 20);
/// # Ok::<(), streams_testkit::Error>(())
/// ```
pub struct KillLoop {
    kills: u32,
    seeded: Seeded,
    delay: RangeInclusive<Duration>,
    ready: Option<ReadyLine>,
}

/// How a [`KillLoop`] went.
#[derive(Debug, Clone)]
pub struct KillReport {
    /// The seed of the random moments.
    pub seed: u64,
    /// How many SIGKILLs hit a running process.
    pub kills: u32,
    /// How many processes were started.
    pub starts: u32,
    /// The output of each process, in order.
    pub outputs: Vec<Vec<String>>,
    /// How the last process ended.
    pub exit: Exit,
}

impl std::fmt::Debug for KillLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KillLoop")
            .field("kills", &self.kills)
            .field("seed", &self.seeded.seed())
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

impl KillLoop {
    /// A loop with this seed.
    pub fn new(kills: u32, seeded: Seeded) -> Self {
        Self {
            kills,
            seeded,
            delay: Duration::ZERO..=Duration::from_secs(2),
            ready: None,
        }
    }

    /// A loop whose seed is `STREAMS_TEST_SEED`, or a fresh one.
    ///
    /// # Errors
    /// [`Error::Usage`] when the variable is no number.
    pub fn from_env(kills: u32) -> Result<Self> {
        Ok(Self::new(kills, Seeded::from_env()?))
    }

    /// The random time between the start of a process (its ready line, if one is given) and its kill; 0 to 2 s unless given.
    #[must_use]
    pub fn delay(mut self, range: RangeInclusive<Duration>) -> Self {
        self.delay = range;
        self
    }

    /// The random time counts from the first line that matches, so that each process gets to work. Without this, kills hit the start-up too.
    #[must_use]
    pub fn ready_line(mut self, matches: impl Fn(&str) -> bool + 'static) -> Self {
        self.ready = Some(Box::new(matches));
        self
    }

    /// Runs `app` until all kills are done and `done` says so (looked at every 20 ms), or until it ends by itself with
    /// exit code 0 after the last kill.
    ///
    /// # Errors
    /// [`Error::Child`] if a process ends by itself before the last kill (give it more work, or a shorter delay) or ends
    /// badly; [`Error::Timeout`] if the work is not done in `timeout`. All name the seed.
    pub fn run(
        mut self,
        app: &ChildApp,
        timeout: Duration,
        mut done: impl FnMut() -> Result<bool>,
    ) -> Result<KillReport> {
        let deadline = Deadline::after(timeout);
        let mut outputs = Vec::new();
        for kill in 1..=self.kills {
            let mut running = app.start()?;
            self.await_ready(&mut running)?;
            let delay = self.seeded.duration(&self.delay);
            if let Some(exit) = running.process.wait(delay)? {
                return Err(running.failed(format!(
                    "ended by itself ({exit}) before kill {kill} of {}; seed {}",
                    self.kills,
                    self.seeded.seed()
                )));
            }
            running.kill()?;
            outputs.push(running.lines());
            self.check(deadline, timeout, &running)?;
        }
        let mut last = app.start()?;
        let exit = self.finish(&mut last, deadline, timeout, &mut done)?;
        outputs.push(last.lines());
        Ok(KillReport {
            seed: self.seeded.seed(),
            kills: self.kills,
            starts: self.kills + 1,
            outputs,
            exit,
        })
    }

    fn await_ready(&self, running: &mut RunningApp) -> Result<()> {
        match &self.ready {
            Some(matches) => running.wait_for_line(READY_LIMIT, matches).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The process after the last kill: until the work is done, then a graceful stop.
    fn finish(
        &self,
        running: &mut RunningApp,
        deadline: Deadline,
        timeout: Duration,
        done: &mut impl FnMut() -> Result<bool>,
    ) -> Result<Exit> {
        loop {
            if let Some(exit) = running.exit()? {
                return self.accept(exit, running);
            }
            if done()? {
                let exit = running.terminate(STOP_LIMIT)?;
                // A program without a handler for SIGTERM is ended by it.
                return match exit {
                    Exit::Signal(15) => Ok(exit),
                    _ => self.accept(exit, running),
                };
            }
            self.check(deadline, timeout, running)?;
            pause(POLL_INTERVAL);
        }
    }

    fn accept(&self, exit: Exit, running: &RunningApp) -> Result<Exit> {
        if exit.is_success() {
            return Ok(exit);
        }
        let seed = self.seeded.seed();
        Err(running.failed(format!("ended badly ({exit}); seed {seed}")))
    }

    fn check(&self, deadline: Deadline, timeout: Duration, running: &RunningApp) -> Result<()> {
        if !deadline.expired() {
            return Ok(());
        }
        Err(Error::Timeout {
            waiting_for: format!("the work to be done under {} kills", self.kills),
            waited: timeout,
            seen: format!(
                "it is not; seed {}; the last process printed:\n{}",
                self.seeded.seed(),
                running.tail()
            ),
        })
    }
}
