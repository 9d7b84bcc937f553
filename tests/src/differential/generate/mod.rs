//! Cases from a seed: a topology, then what is put in.
#![allow(clippy::indexing_slicing, reason = "JSON values grow by index")]

mod groups;
mod input;
mod joins;
mod streams;
mod tables;
mod topology;

use serde_json::{Map, Value, json};
use streams_testkit::Seeded;

use topology::Draft;

/// The case of a seed, in the format of `tests/cases/given.json`.
pub fn case(seed: u64) -> Value {
    let mut draft = Draft::new(seed);
    let config = config(&mut draft.dice);
    draft.throws = config.contains_key(HANDLER);
    draft.compose();
    let steps = input::steps(&mut draft);
    json!({
        "id": format!("seed-{seed}"),
        "config": config,
        "header_list": true,
        "topology": draft.calls,
        "steps": steps,
    })
}

const HANDLER: &str = "processing.exception.handler";

/// Caches, optimization and handler are drawn; Java's throttles are off, as always here.
fn config(dice: &mut Seeded) -> Map<String, Value> {
    let mut config = Map::new();
    for interval in [
        "kstreams.outer.join.spurious.results.fix",
        "kstreams.windowed.aggregation",
    ] {
        config.insert(format!("__emit.interval.ms.{interval}__"), json!("0"));
    }
    if chance(dice, 25) {
        config.insert("statestore.cache.max.bytes".to_owned(), json!("10000000"));
    }
    if chance(dice, 25) {
        config.insert("topology.optimization".to_owned(), json!("all"));
    }
    if chance(dice, 15) {
        let handler = "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler";
        config.insert(HANDLER.to_owned(), json!(handler));
    }
    config
}

/// True in so many of a hundred.
pub(super) fn chance(dice: &mut Seeded, percent: u64) -> bool {
    dice.below(100) < percent
}

/// One of these.
pub(super) fn one_of<T: Copy>(dice: &mut Seeded, choices: &[T], otherwise: T) -> T {
    let at = usize::try_from(dice.below(choices.len() as u64)).unwrap_or(0);
    choices.get(at).copied().unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_one_case_and_other_seeds_others() {
        assert_eq!(case(7), case(7));
        assert_ne!(case(7)["topology"], case(8)["topology"]);
    }

    #[test]
    fn three_hundred_seeds_reach_every_operation_of_the_format() {
        let mut reached = BTreeSet::new();
        for seed in 0..300 {
            let case = case(seed);
            for call in case["topology"].as_array().unwrap() {
                let operation = call["op"].as_str().unwrap();
                reached.insert(operation.to_owned());
                if let Some(kind) = call["window"]["kind"].as_str() {
                    reached.insert(kind.to_owned());
                }
                let marks = [
                    "fk",
                    "grace_ms",
                    "untilWindowCloses",
                    "maxRecords",
                    "history_ms",
                    "extractor",
                    "retention_ms",
                ];
                reached.extend(
                    marks
                        .iter()
                        .filter(|mark| call.get(**mark).is_some())
                        .map(|mark| (*mark).to_owned()),
                );
            }
            let steps = case["steps"].as_array().unwrap();
            let kinds = ["in", "wall_ms", "read", "as_of", "headers"];
            reached.extend(
                kinds
                    .iter()
                    .filter(|kind| steps.iter().any(|step| step.get(**kind).is_some()))
                    .map(|kind| (*kind).to_owned()),
            );
        }
        let expected = "stream table globalTable filter filterNot mapValues selectKey map flatMap flatMapValues peek merge \
             split toTable repartition process processValues groupByKey groupBy windowedBy emitOnClose count reduce \
             aggregate cogroup suppress toStream unwindow transformValues join leftJoin outerJoin to tumbling hopping \
             sliding session unlimited fk grace_ms untilWindowCloses maxRecords history_ms extractor retention_ms in \
             wall_ms read as_of headers";
        let missing: Vec<_> = expected
            .split_whitespace()
            .filter(|one| !reached.contains(*one))
            .collect();
        assert!(missing.is_empty(), "never generated: {missing:?}");
    }
}
