//! Compares what came out with what a case expects.

use serde_json::Value;

use super::Verdict;

pub(crate) fn verdict(case: &Value, actual: &Value) -> Verdict {
    let java_too = case.get("accept").and_then(Value::as_str) == Some("either");
    let expected = case.get("expect");
    let accepted = [expected, case.get("java_4_4_actual").filter(|_| java_too)];
    if accepted.into_iter().flatten().any(|expected| is_met(expected, actual)) {
        return Verdict::Passed;
    }
    let Some(expected) = expected else {
        return Verdict::Failed("  the case expects nothing".to_owned());
    };
    Verdict::Failed(difference(expected, actual))
}

fn is_met(expected: &Value, actual: &Value) -> bool {
    let equal = |name: &str| {
        expected
            .get(name)
            .is_none_or(|expected| Some(expected) == actual.get(name))
    };
    // A failure that is not expected is a difference, an expected one has to come.
    let failures = expected.get("step_error") == actual.get("step_error");
    equal("outputs") && equal("dropped_records") && equal("reads") && failures
}

fn difference(expected: &Value, actual: &Value) -> String {
    let names = ["outputs", "dropped_records", "reads", "step_error"];
    let mut lines = Vec::new();
    for name in names {
        let (want, got) = (expected.get(name), actual.get(name));
        if want != got && (want.is_some() || name == "step_error") {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            lines.push(format!("  {name}\n    want {}\n    got  {}", shown(want), shown(got)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn javas_output_counts_only_where_the_case_accepts_it() {
        let mut case =
            json!({ "expect": { "outputs": [1] }, "java_4_4_actual": { "outputs": [2] }, "accept": "expect" });
        let actual = json!({ "outputs": [2], "dropped_records": 0, "reads": [] });
        assert!(matches!(verdict(&case, &actual), Verdict::Failed(_)));
        case["accept"] = json!("either");
        assert_eq!(verdict(&case, &actual), Verdict::Passed);
    }

    #[test]
    fn a_failure_that_was_not_expected_is_a_difference() {
        let case = json!({ "expect": { "outputs": [] } });
        let actual = json!({ "outputs": [], "dropped_records": 0, "reads": [], "step_error": { "step": 0 } });
        assert!(matches!(verdict(&case, &actual), Verdict::Failed(_)));
    }
}
