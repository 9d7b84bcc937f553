//! What a run found, as text for `tests/results/differential.md`.

use std::fmt;

use serde_json::Value;

use super::compare::Outcome;
use super::known::KNOWN;
use super::{Counts, Finding};

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The first seed.
    pub seed: u64,
    /// How many cases.
    pub topologies: u64,
    /// Differences that nothing explains.
    pub findings: Vec<Finding>,
    operations: Counts,
    steps: u64,
    records: u64,
    refused: u64,
    failed: u64,
    known: Counts,
    explained: u64,
}

impl Report {
    pub(crate) fn of(seed: u64, topologies: u64) -> Self {
        Report {
            seed,
            topologies,
            ..Report::default()
        }
    }

    pub(crate) fn count(&mut self, case: &Value, outcome: &Outcome) {
        let list = |name: &str| case.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        self.steps += list("steps").len() as u64;
        for call in list("topology") {
            let mut name = call.get("op").and_then(Value::as_str).unwrap_or_default().to_owned();
            if call.get("fk").is_some() {
                name += " (foreign key)";
            } else if let Some(window) = call.get("window") {
                name += &format!(" ({})", window.get("kind").and_then(Value::as_str).unwrap_or("streams"));
            }
            *self.operations.entry(name).or_default() += 1;
        }
        match outcome {
            Outcome::Ran(run) => {
                self.records += run.records() as u64;
                self.failed += u64::from(run.failed());
            }
            Outcome::Refused(_) | Outcome::Missing(_) => self.refused += 1,
        }
    }

    pub(crate) fn known(&mut self, causes: &[&'static str]) {
        self.explained += 1;
        for cause in causes {
            *self.known.entry((*cause).to_owned()).or_default() += 1;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} topologies from seed {}: {} steps in, {} records out; {} refused on both sides, {} ended in a failure.",
            self.topologies, self.seed, self.steps, self.records, self.refused, self.failed
        )?;
        let equal = self.topologies - self.explained - self.findings.len() as u64;
        writeln!(
            f,
            "{equal} equal, {} differ by known causes, {} unexplained.\n",
            self.explained,
            self.findings.len()
        )?;
        writeln!(f, "| known difference | times | reason |\n|---|---|---|")?;
        for known in KNOWN {
            let times = self.known.get(known.id).copied().unwrap_or(0);
            writeln!(f, "| {} | {times} | {} |", known.id, known.reason)?;
        }
        let calls: Vec<String> = self
            .operations
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        writeln!(f, "\nCalls: {}.", calls.join(", "))?;
        for finding in &self.findings {
            writeln!(f, "\nseed {}\n{}  {}", finding.seed, finding.difference, finding.case)?;
        }
        Ok(())
    }
}
