//! The given cases through the DSL and the test driver.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use streams_tests::cases::{Verdict, counts, run_all};
use streams_tests::project_file;

const GIVEN: &str = include_str!("../../cases/given.json");
/// Faults of ours that the differential test found.
const DIFFERENTIAL: &str = include_str!("../../cases/differential.json");

#[test]
fn what_the_differential_test_found_stays_as_java_gives_it() {
    let outcomes = run_all(DIFFERENTIAL).unwrap();
    let not_passed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.verdict != Verdict::Passed)
        .map(ToString::to_string)
        .collect();
    assert!(not_passed.is_empty(), "{}", not_passed.join("\n"));
}

#[test]
fn given_cases_of_existing_operations_pass() {
    let outcomes = run_all(GIVEN).unwrap();
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.verdict, Verdict::Failed(_)))
        .collect();
    assert!(
        failed.is_empty(),
        "{}",
        failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
    let (passed, _, skipped) = counts(&outcomes);
    assert_eq!(passed + skipped, 47);
}

/// The cases that are no input for the test driver are tests of the binaries `broker` and `crash`, under their names.
#[test]
fn every_given_case_that_needs_a_broker_is_a_test() {
    let given: Value = serde_json::from_str(GIVEN).unwrap();
    let cases = given["cases"].as_array().unwrap().iter();
    let on_a_broker: BTreeSet<&str> = cases
        .filter(|case| case["run"] != "ttd")
        .map(|case| case["id"].as_str().unwrap())
        .collect();
    let mut sources = String::new();
    for folder in ["tests/tests/broker", "tests/tests/crash"] {
        read_all(&project_file(folder), &mut sources);
    }
    let missing: Vec<&str> = on_a_broker
        .iter()
        .copied()
        .filter(|id| !sources.contains(&format!("fn case_{}", id.replace('-', "_"))))
        .collect();
    assert!(missing.is_empty(), "no test names these cases: {missing:?}");
}

fn read_all(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, text);
        } else {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}
