//! Runs machine-readable cases (`tests/cases/given.json` and files of its format) through the DSL and the test driver.

mod cogroup;
mod compare;
mod fanout;
mod foreign;
mod functions;
mod process;
mod program;
mod run;
mod tables;
mod windows;

use std::fmt;

use serde_json::Value;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What came out is right.
    Passed,
    /// What came out differs; told in a few lines.
    Failed(String),
    /// The case uses an operation that does not exist yet.
    Skipped(String),
}

/// One case and how it ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case's id.
    pub id: String,
    /// How it ended.
    pub verdict: Verdict,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Passed => write!(f, "passed  {}", self.id),
            Verdict::Failed(difference) => write!(f, "FAILED  {}\n{difference}", self.id),
            Verdict::Skipped(missing) => write!(f, "skipped {}: {missing}", self.id),
        }
    }
}

/// Why a case could not be run to its end.
pub(crate) enum Stop {
    /// An operation does not exist yet.
    Missing(String),
    /// The case's text is not in the format, or the topology can't be built.
    Broken(String),
}

pub(crate) type Step<T> = Result<T, Stop>;

/// Runs every `ttd` case of a file's text, in its order. The text is an object with `cases`, or a list of cases.
///
/// # Errors
/// When the text is no such file.
pub fn run_all(text: &str) -> Result<Vec<Outcome>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let cases = file
        .get("cases")
        .unwrap_or(&file)
        .as_array()
        .ok_or("no list of cases")?;
    let is_ttd = |case: &&Value| case.get("run").and_then(Value::as_str).unwrap_or("ttd") == "ttd";
    Ok(cases.iter().filter(is_ttd).map(outcome).collect())
}

fn outcome(case: &Value) -> Outcome {
    let id = case
        .get("id")
        .and_then(Value::as_str)
        .unwrap_or("a case without an id")
        .to_owned();
    let verdict = match run::run(case) {
        Ok(actual) => compare::verdict(case, &actual),
        Err(Stop::Missing(operation)) => Verdict::Skipped(operation),
        Err(Stop::Broken(reason)) => Verdict::Failed(format!("  can't be run: {reason}")),
    };
    Outcome { id, verdict }
}

/// What a case gave.
pub(crate) enum Ran {
    /// Outputs, reads, dropped records and, if any, the failure of a step.
    Done(Value),
    /// The topology was refused.
    Refused(String),
    /// An operation does not exist.
    Missing(String),
}

/// Runs one case, without a look at what it expects.
pub(crate) fn ran(case: &Value) -> Ran {
    match run::run(case) {
        Ok(actual) => Ran::Done(actual),
        Err(Stop::Missing(operation)) => Ran::Missing(operation),
        Err(Stop::Broken(reason)) => Ran::Refused(reason),
    }
}

/// The counts of a run: passed, failed, skipped.
#[must_use]
pub fn counts(outcomes: &[Outcome]) -> (usize, usize, usize) {
    let count = |is: fn(&Verdict) -> bool| outcomes.iter().filter(|outcome| is(&outcome.verdict)).count();
    (
        count(|verdict| *verdict == Verdict::Passed),
        count(|verdict| matches!(verdict, Verdict::Failed(_))),
        count(|verdict| matches!(verdict, Verdict::Skipped(_))),
    )
}

pub(crate) fn broken<T>(reason: impl Into<String>) -> Step<T> {
    Err(Stop::Broken(reason.into()))
}

pub(crate) fn missing<T>(operation: impl Into<String>) -> Step<T> {
    Err(Stop::Missing(operation.into()))
}
