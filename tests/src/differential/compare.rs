//! What a case gave here and in Java, in one form, and where they differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::known::Compared;
use crate::cases::{Ran, ran};

/// What a case gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The topology was refused, with what was said.
    Refused(String),
    /// The case can't be told in this runner.
    Missing(String),
    /// It ran.
    Ran(Run),
}

/// What a case that ran gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// By topic: the records in their order, with the number of their step.
    outputs: BTreeMap<String, Vec<Value>>,
    reads: Vec<Value>,
    dropped: Value,
    /// The step that failed and the name of the cause.
    failed: Option<(i64, String)>,
}

/// What our driver gives.
pub(crate) fn ours(case: &Value) -> Outcome {
    let run = std::panic::catch_unwind(|| ran(case));
    match run {
        Ok(Ran::Done(actual)) => {
            let failed = actual
                .get("step_error")
                .map(|error| (number(error, "step"), javas_name(text(error, "root"))));
            Outcome::Ran(Run::of(&actual, "dropped_records", failed))
        }
        Ok(Ran::Refused(reason)) => Outcome::Refused(reason),
        Ok(Ran::Missing(operation)) => Outcome::Missing(operation),
        Err(_) => Outcome::Refused("the driver panicked".to_owned()),
    }
}

/// Our error of user code or an operator without a cause of its own has this name in Java.
fn javas_name(root: String) -> String {
    match root.as_str() {
        "Processing" => "StreamsException".to_owned(),
        _ => root,
    }
}

/// What Java's driver gave, by its answer.
pub(crate) fn javas(answer: &Value) -> Outcome {
    if let Some(error) = answer.get("runner_error") {
        return Outcome::Missing(error.to_string());
    }
    if let Some(error) = answer.get("build_error") {
        return Outcome::Refused(answer.get("build_error_text").unwrap_or(error).to_string());
    }
    let failed = answer.get("step_error").map(|root| {
        (
            number(answer, "step_error_at"),
            root.as_str().unwrap_or_default().to_owned(),
        )
    });
    Outcome::Ran(Run::of(answer, "dropped", failed))
}

impl Outcome {
    /// Puts the records of each topic into the form in which they are compared.
    pub(crate) fn compared(&mut self, how: Compared) {
        let Outcome::Ran(run) = self else { return };
        let key = |record: &Value| record.get("key").map(ToString::to_string);
        for records in run.outputs.values_mut() {
            if how >= Compared::ByKey {
                records.sort_by_key(key);
            }
            if how == Compared::LastOfKey {
                let of_one = |one: &Value, other: &Value| {
                    key(one) == key(other) && number(one, "after") == number(other, "after")
                };
                let next: Vec<Value> = records.iter().skip(1).cloned().collect();
                let is_last = |at: usize, record: &Value| next.get(at).is_none_or(|next| !of_one(record, next));
                let last = records.iter().enumerate().filter(|(at, record)| is_last(*at, record));
                *records = last.map(|(_, record)| record.clone()).collect();
            }
        }
    }

    /// Whether the topology was refused with this in what was said.
    pub(crate) fn refuses_with(&self, text: &str) -> bool {
        matches!(self, Outcome::Refused(reason) if reason.contains(text))
    }
}

impl Run {
    pub(crate) fn failed_by(&self, root: &str) -> bool {
        self.failed.as_ref().is_some_and(|(_, cause)| cause == root)
    }

    fn of(actual: &Value, dropped: &str, failed: Option<(i64, String)>) -> Run {
        let list = |name: &str| actual.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let mut outputs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for record in list("outputs") {
            // What a step wrote before it failed is not committed: here it is not seen, in Java's driver it is.
            if failed
                .as_ref()
                .is_some_and(|(step, _)| *step == number(&record, "after"))
            {
                continue;
            }
            outputs.entry(text(&record, "topic")).or_default().push(record);
        }
        Run {
            outputs,
            reads: list("reads"),
            dropped: actual.get(dropped).cloned().unwrap_or_default(),
            failed,
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.is_some()
    }

    pub(crate) fn records(&self) -> usize {
        self.outputs.values().map(Vec::len).sum()
    }
}

fn number(value: &Value, name: &str) -> i64 {
    value.get(name).and_then(Value::as_i64).unwrap_or(-1)
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Where the two differ, in a few lines; `None` = nowhere. Two refusals are equal whatever they say.
pub(crate) fn difference(ours: &Outcome, java: &Outcome) -> Option<String> {
    let (mine, theirs) = match (ours, java) {
        (Outcome::Refused(_), Outcome::Refused(_)) => return None,
        (Outcome::Ran(mine), Outcome::Ran(theirs)) => (mine, theirs),
        (ours, java) => return Some(format!("  ours {}\n  java {}\n", told(ours), told(java))),
    };
    let mut lines = String::new();
    let topics: std::collections::BTreeSet<_> = mine.outputs.keys().chain(theirs.outputs.keys()).collect();
    for topic in topics {
        let none = Vec::new();
        let (here, there) = (
            mine.outputs.get(topic).unwrap_or(&none),
            theirs.outputs.get(topic).unwrap_or(&none),
        );
        if here != there {
            let at = here.iter().zip(there).take_while(|(here, there)| here == there).count();
            let _ = writeln!(lines, "  topic {topic}, record {at}");
            for (name, records) in [("ours", here), ("java", there)] {
                let rest = records.get(at..).unwrap_or_default();
                let shown: Vec<String> = rest.iter().take(4).map(record).collect();
                let _ = writeln!(lines, "    {name} {} more: {}", rest.len(), shown.join(" "));
            }
        }
    }
    if mine.failed != theirs.failed {
        let _ = writeln!(
            lines,
            "  failed\n    ours {:?}\n    java {:?}",
            mine.failed, theirs.failed
        );
    }
    for (here, there) in mine.reads.iter().zip(&theirs.reads) {
        if here != there {
            let _ = writeln!(lines, "  read\n    ours {here}\n    java {there}");
        }
    }
    // What a step dropped before it failed is counted or not, as for its outputs.
    if mine.failed.is_none() && theirs.failed.is_none() && mine.dropped != theirs.dropped {
        let _ = writeln!(
            lines,
            "  dropped records: ours {}, java {}",
            mine.dropped, theirs.dropped
        );
    }
    (!lines.is_empty()).then_some(lines)
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused(reason) => format!("refuses the topology: {reason}"),
        Outcome::Missing(what) => format!("can't run the case: {what}"),
        Outcome::Ran(run) => format!("runs, {} records", run.records()),
    }
}

fn record(record: &Value) -> String {
    let field = |name: &str| record.get(name).cloned().unwrap_or_default();
    let headers = record.get("headers").map(ToString::to_string).unwrap_or_default();
    format!(
        "[step {} {}={}@{}{headers}]",
        field("after"),
        field("key"),
        field("value"),
        field("ts")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn java(outputs: &Value) -> Outcome {
        javas(&json!({ "outputs": outputs, "reads": [], "dropped": 0 }))
    }

    #[test]
    fn order_counts_within_a_topic_and_not_between_topics() {
        let record =
            |topic: &str, value: &str| json!({ "after": 0, "topic": topic, "key": "k", "value": value, "ts": 1 });
        let (a1, a2, b) = (record("a", "1"), record("a", "2"), record("b", "1"));
        let one = java(&json!([a1, b, a2]));
        assert_eq!(difference(&one, &java(&json!([a1, a2, b]))), None);
        assert!(difference(&one, &java(&json!([a2, b, a1]))).is_some());
        assert!(difference(&one, &java(&json!([a1, b]))).is_some());
    }

    #[test]
    fn a_failed_step_wrote_nothing_and_has_to_fail_on_both_sides() {
        let failed = |root: &str, outputs: Value| {
            javas(&json!({ "outputs": outputs, "reads": [], "dropped": 0, "step_error": root, "step_error_at": 1 }))
        };
        let seen = json!([{ "after": 1, "topic": "a", "key": "k", "value": "1", "ts": 1 }]);
        assert_eq!(difference(&failed("A", json!([])), &failed("A", seen)), None);
        assert!(difference(&failed("A", json!([])), &failed("B", json!([]))).is_some());
        assert!(difference(&failed("A", json!([])), &java(&json!([]))).is_some());
    }

    #[test]
    fn both_refusing_is_agreement_and_one_refusing_is_not() {
        let refused = javas(&json!({ "build_error": "TopologyException" }));
        assert_eq!(difference(&Outcome::Refused("no".to_owned()), &refused), None);
        assert!(difference(&java(&json!([])), &refused).is_some());
    }
}
