//! The given cases through the DSL and the test driver.

use streams_tests::cases::{Verdict, counts, run_all};

const GIVEN: &str = include_str!("../../cases/given.json");

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
