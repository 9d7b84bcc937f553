//! Runs the stages of a command: shows what runs and for how long, and sums up at the end.

// A progress display is made of wall-clock time; nothing else in xtask reads a clock.
#![allow(clippy::disallowed_methods)]

mod rocksdb;

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use self::rocksdb::RocksDb;
use crate::cargo::Invocation;

/// How often a long step says that it is alive.
const TICK: Duration = Duration::from_secs(60);

/// One step of a command.
pub(crate) struct Stage {
    /// Short name, as it stands in the summary.
    pub(crate) name: String,
    /// What it does.
    pub(crate) work: Work,
}

/// What a stage does.
pub(crate) enum Work {
    /// One or more calls of cargo, one after the other.
    Cargo(Vec<Invocation>),
    /// A check inside xtask.
    Check(fn() -> Result<()>),
    /// A part of the project that is not written yet; the text says which.
    Absent(String),
}

impl Stage {
    /// A stage that calls cargo once.
    pub(crate) fn cargo(name: impl Into<String>, call: Invocation) -> Self {
        Self {
            name: name.into(),
            work: Work::Cargo(vec![call]),
        }
    }

    /// A stage that calls cargo several times.
    pub(crate) fn cargo_each(name: impl Into<String>, calls: Vec<Invocation>) -> Self {
        Self {
            name: name.into(),
            work: Work::Cargo(calls),
        }
    }

    /// A stage that is a function of xtask.
    pub(crate) fn check(name: impl Into<String>, check: fn() -> Result<()>) -> Self {
        Self {
            name: name.into(),
            work: Work::Check(check),
        }
    }

    /// The calls of cargo in this stage.
    pub(crate) fn calls(&self) -> &[Invocation] {
        match &self.work {
            Work::Cargo(calls) => calls,
            Work::Check(_) | Work::Absent(_) => &[],
        }
    }
}

enum Outcome {
    Passed(Duration),
    Failed(Duration, String),
    Absent(String),
    NotRun,
}

/// What a failed stage means for those after it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// They do not run: they cost more and would say less.
    Stop,
    /// They run: they have nothing to do with each other.
    GoOn,
}

/// Runs the stages in order, then prints the summary.
pub(crate) fn run(title: &str, stages: &[Stage], target_dir: &Path, on_failure: OnFailure) -> Result<ExitCode> {
    let mut outcomes: Vec<(&str, Outcome)> = Vec::new();
    let mut failed = false;
    for stage in stages {
        let outcome = if failed && on_failure == OnFailure::Stop {
            Outcome::NotRun
        } else {
            run_stage(title, stage, target_dir)
        };
        failed |= matches!(outcome, Outcome::Failed(..));
        outcomes.push((&stage.name, outcome));
    }
    eprint!("{}", summary(title, &outcomes));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_stage(title: &str, stage: &Stage, target_dir: &Path) -> Outcome {
    eprintln!("\n==> {title}: {}", stage.name);
    let start = Instant::now();
    let result = match &stage.work {
        Work::Absent(why) => return Outcome::Absent(why.clone()),
        Work::Check(check) => check(),
        Work::Cargo(calls) => calls.iter().try_for_each(|call| run_call(call, target_dir)),
    };
    let took = start.elapsed();
    match result {
        Ok(()) => {
            eprintln!("<== {title}: {} passed in {}", stage.name, shown(took));
            Outcome::Passed(took)
        }
        Err(error) => {
            eprintln!("<== {title}: {} FAILED after {}: {error:#}", stage.name, shown(took));
            Outcome::Failed(took, format!("{error:#}"))
        }
    }
}

/// Runs one call of cargo; its output passes through.
pub(crate) fn run_call(call: &Invocation, target_dir: &Path) -> Result<()> {
    eprintln!("    {}", call.shown());
    let watch = RocksDb::new(target_dir);
    if call.needs_cpp() && !watch.is_compiled() {
        eprintln!(
            "    RocksDB is compiled once, 12 to 25 minutes on 2 cores; demo, tests and benches share it ({}).",
            target_dir.display()
        );
    }
    let status = with_ticks(&call.shown(), &watch, || call.status())?;
    if !status.success() {
        anyhow::bail!("`{}` ended with {status}", call.shown());
    }
    Ok(())
}

/// Runs `work` while another thread tells every minute how long it has taken.
fn with_ticks<T>(what: &str, watch: &RocksDb, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        scope.spawn(move || {
            let start = Instant::now();
            let mut objects = watch.objects();
            while waiting.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let before = std::mem::replace(&mut objects, watch.objects());
                let state = watch.shown(before, objects);
                eprintln!("    ... {} so far{state}: {what}", shown(start.elapsed()));
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn summary(title: &str, outcomes: &[(&str, Outcome)]) -> String {
    let width = outcomes.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = format!("\n{title}\n");
    let mut total = Duration::ZERO;
    for (name, outcome) in outcomes {
        let (time, word) = match outcome {
            Outcome::Passed(took) => (Some(*took), "passed".to_owned()),
            Outcome::Failed(took, why) => (Some(*took), format!("FAILED   {why}")),
            Outcome::Absent(why) => (None, format!("absent   {why}")),
            Outcome::NotRun => (None, "not run".to_owned()),
        };
        total += time.unwrap_or_default();
        text.push_str(&format!(
            "  {name:width$}  {:>9}  {word}\n",
            time.map(shown).unwrap_or_default()
        ));
    }
    text.push_str(&format!("  {:width$}  {:>9}\n", "total", shown(total)));
    text
}

/// A duration as people read it: `0.4 s`, `12 s`, `3 min 20 s`.
pub(crate) fn shown(took: Duration) -> String {
    let seconds = took.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", took.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(shown(Duration::from_millis(440)), "0.4 s");
        assert_eq!(shown(Duration::from_secs(59)), "59 s");
        assert_eq!(shown(Duration::from_secs(200)), "3 min 20 s");
    }

    #[test]
    fn the_summary_names_the_failure_and_what_did_not_run() {
        let outcomes = [
            ("first", Outcome::Passed(Duration::from_secs(1))),
            (
                "second",
                Outcome::Failed(Duration::from_secs(2), "`cargo test` ended with 101".to_owned()),
            ),
            ("third", Outcome::NotRun),
        ];
        let text = summary("test", &outcomes);
        assert!(
            text.contains("second      2.0 s  FAILED   `cargo test` ended with 101"),
            "{text}"
        );
        assert!(text.contains("third              not run"), "{text}");
        assert!(text.contains("total       3.0 s"), "{text}");
    }

    #[test]
    fn a_failed_stage_stops_the_run() -> Result<()> {
        let fail = Stage::check("fails", || anyhow::bail!("on purpose"));
        let never = Stage::check("never", || std::process::exit(3));
        assert_eq!(
            run("title", &[fail, never], Path::new("target"), OnFailure::Stop)?,
            ExitCode::FAILURE
        );
        Ok(())
    }

    #[test]
    fn a_stage_that_passes_is_a_success() -> Result<()> {
        assert_eq!(
            run(
                "title",
                &[Stage::check("passes", || Ok(()))],
                Path::new("target"),
                OnFailure::Stop
            )?,
            ExitCode::SUCCESS
        );
        Ok(())
    }
}
