//! The differential test: seeded topologies and inputs through Java's test driver and ours, and what comes out compared.
//!
//! Compared are, by topic, the records in their order with keys, values, event times, headers and the step they belong to;
//! looks into stores; dropped records; failures. Every difference is unexplained unless it is in the list of known ones
//! (`known.rs`) and is gone when its cause is taken away. An unexplained one is shrunk to a small case.

mod compare;
pub mod generate;
mod java;
mod known;
mod report;
mod shrink;

use std::collections::BTreeMap;

use serde_json::Value;

use compare::{Outcome, difference, javas, ours};
pub use java::Java;
use known::{Compared, KNOWN, Known, Side};
pub use report::Report;

/// A difference that nothing explains.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed of its case.
    pub seed: u64,
    /// The case, shrunk.
    pub case: Value,
    /// Where the two differ, in a few lines.
    pub difference: String,
}

/// Runs the cases of the seeds from `seed` on. `tell` is told of each finding and of progress.
///
/// # Errors
/// When the JVM fails.
pub fn run(java: &mut Java, seed: u64, topologies: u64, mut tell: impl FnMut(&str)) -> Result<Report, String> {
    let mut report = Report::of(seed, topologies);
    for number in 0..topologies {
        let seed = seed.wrapping_add(number);
        let case = generate::case(seed);
        let (mine, theirs) = both(java, &case)?;
        report.count(&case, &mine);
        if difference(&mine, &theirs).is_some() {
            match explained(java, &case, &theirs)? {
                Some(causes) => report.known(&causes),
                None => {
                    let found = finding(java, seed, &case)?;
                    tell(&format!("seed {seed}:\n{}\n{}", found.difference, found.case));
                    report.findings.push(found);
                }
            }
        }
        if (number + 1) % 100 == 0 {
            tell(&format!("{} of {topologies}", number + 1));
        }
    }
    Ok(report)
}

fn both(java: &mut Java, case: &Value) -> Result<(Outcome, Outcome), String> {
    Ok((ours(case), javas(&java.run(case)?)))
}

fn finding(java: &mut Java, seed: u64, case: &Value) -> Result<Finding, String> {
    let mut broken = None;
    let kind = kind(&both(java, case)?);
    let case = shrink::shrink(case, |case| match is_unexplained(java, case, kind) {
        Ok(unexplained) => unexplained,
        Err(error) => {
            broken = Some(error);
            false
        }
    });
    if let Some(error) = broken {
        return Err(error);
    }
    let (mine, theirs) = both(java, &case)?;
    let difference = difference(&mine, &theirs).unwrap_or_default();
    Ok(Finding { seed, case, difference })
}

/// Which of the two ran, and whether a type was wrong: a smaller case that one of them can't run is another difference.
fn kind((mine, theirs): &(Outcome, Outcome)) -> [(bool, bool); 2] {
    [mine, theirs].map(|outcome| match outcome {
        Outcome::Ran(run) => (true, run.failed_by("ClassCastException")),
        _ => (false, false),
    })
}

fn is_unexplained(java: &mut Java, case: &Value, of_kind: [(bool, bool); 2]) -> Result<bool, String> {
    let outcomes = both(java, case)?;
    let differs = kind(&outcomes) == of_kind && difference(&outcomes.0, &outcomes.1).is_some();
    Ok(differs && explained(java, case, &outcomes.1)?.is_none())
}

/// The known causes without which the two agree: one if one is enough, else all that apply, if they are.
fn explained(java: &mut Java, case: &Value, theirs: &Outcome) -> Result<Option<Vec<&'static str>>, String> {
    let applies = |known: &&Known| (known.applies)(case) && known.refusal.is_none_or(|text| theirs.refuses_with(text));
    let causes: Vec<&'static Known> = KNOWN.iter().filter(applies).collect();
    let mut choices: Vec<Vec<&Known>> = causes.iter().map(|known| vec![*known]).collect();
    for (at, one) in causes.iter().enumerate() {
        choices.extend(causes.iter().skip(at + 1).map(|other| vec![*one, *other]));
    }
    choices.push(causes);
    for choice in choices {
        if !choice.is_empty() && agree_without(java, case, &choice)? {
            return Ok(Some(choice.iter().map(|known| known.id).collect()));
        }
    }
    Ok(None)
}

fn agree_without(java: &mut Java, case: &Value, causes: &[&Known]) -> Result<bool, String> {
    let (mut our_case, mut java_case) = (case.clone(), case.clone());
    for known in causes {
        (known.remove)(&mut java_case);
        if known.side == Side::Both {
            (known.remove)(&mut our_case);
        }
    }
    let (mut mine, mut theirs) = (ours(&our_case), javas(&java.run(&java_case)?));
    let compared = causes
        .iter()
        .map(|known| known.compared)
        .max()
        .unwrap_or(Compared::InOrder);
    mine.compared(compared);
    theirs.compared(compared);
    Ok(difference(&mine, &theirs).is_none())
}

/// How often each of these was met.
pub(crate) type Counts = BTreeMap<String, u64>;

/// Where a case differs, and what each side gave; `None` = nowhere.
///
/// # Errors
/// When the JVM fails.
pub fn compare_one(java: &mut Java, case: &Value) -> Result<Option<String>, String> {
    let answer = java.run(case)?;
    let (mine, theirs) = (ours(case), javas(&answer));
    Ok(difference(&mine, &theirs).map(|lines| format!("{lines}  ours {mine:?}\n  java {answer}")))
}
