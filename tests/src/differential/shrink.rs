//! Makes a case that differs smaller, as long as it still differs.

use serde_json::Value;

/// The most trials for one case.
const TRIALS: usize = 400;

/// The smallest case found for which `differs` still holds.
pub(crate) fn shrink(case: &Value, mut differs: impl FnMut(&Value) -> bool) -> Value {
    let mut best = case.clone();
    let mut left = TRIALS;
    loop {
        let before = size(&best);
        for candidates in [fewer_steps, fewer_calls, simpler_config, simpler_calls, simpler_steps] {
            let mut at = 0;
            while left > 0 {
                let Some(candidate) = candidates(&best).into_iter().nth(at) else {
                    break;
                };
                left -= 1;
                if differs(&candidate) {
                    best = candidate;
                } else {
                    at += 1;
                }
            }
        }
        if left == 0 || size(&best) == before {
            return best;
        }
    }
}

fn size(case: &Value) -> usize {
    case.to_string().len()
}

fn list<'c>(case: &'c Value, name: &str) -> &'c [Value] {
    case.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn with_list(case: &Value, name: &str, list: Vec<Value>) -> Value {
    let mut case = case.clone();
    if let Some(case) = case.as_object_mut() {
        case.insert(name.to_owned(), Value::from(list));
    }
    case
}

/// Without a run of steps: halves first, then quarters, to single ones.
fn fewer_steps(case: &Value) -> Vec<Value> {
    let steps = list(case, "steps");
    let mut candidates = Vec::new();
    let mut run = steps.len() / 2;
    while run > 0 {
        for from in (0..steps.len()).step_by(run) {
            let rest = steps
                .iter()
                .enumerate()
                .filter(|(at, _)| *at < from || *at >= from + run);
            candidates.push(with_list(case, "steps", rest.map(|(_, step)| step.clone()).collect()));
        }
        run /= 2;
    }
    candidates
}

/// Without one call: with all that need it, or with its input in its place.
fn fewer_calls(case: &Value) -> Vec<Value> {
    let mut candidates = Vec::new();
    for at in (0..list(case, "topology").len()).rev() {
        let mut without = case.clone();
        cut_off(&mut without, at);
        candidates.push(without);
        // Without it its input would be of another type.
        let changes_type = |call: &Value| matches!(text(call, "op"), Some("unwindow" | "toStream" | "toTable"));
        if !list(case, "topology").get(at).is_some_and(changes_type) {
            let mut short = case.clone();
            take_out(&mut short, at);
            candidates.push(short);
        }
    }
    candidates.retain(|candidate| candidate != case && !list(candidate, "topology").is_empty());
    candidates
}

fn simpler_config(case: &Value) -> Vec<Value> {
    let names = case
        .get("config")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, _)| name);
    let droppable = names.filter(|name| !name.starts_with("__"));
    droppable.map(|name| without(case, &["config"], name)).collect()
}

/// Without an optional field of a call.
fn simpler_calls(case: &Value) -> Vec<Value> {
    const OPTIONAL: [&str; 6] = ["caching", "retention_ms", "joiner", "type", "maxRecords", "extractor"];
    let mut candidates = Vec::new();
    for (at, call) in list(case, "topology").iter().enumerate() {
        for name in OPTIONAL {
            // What has versions needs its history too.
            if call.get(name).is_some() && !(name == "type" && call.get("history_ms").is_some()) {
                candidates.push(without(case, &["topology", &at.to_string()], name));
            }
        }
    }
    candidates
}

fn simpler_steps(case: &Value) -> Vec<Value> {
    let with_headers = list(case, "steps")
        .iter()
        .enumerate()
        .filter(|(_, step)| step.get("headers").is_some());
    with_headers
        .map(|(at, _)| without(case, &["steps", &at.to_string()], "headers"))
        .collect()
}

/// The case without a field, by the path of what has it.
fn without(case: &Value, path: &[&str], name: &str) -> Value {
    let mut case = case.clone();
    let pointer: String = path.iter().map(|part| format!("/{part}")).collect();
    if let Some(holder) = case.pointer_mut(&pointer).and_then(Value::as_object_mut) {
        holder.remove(name);
    }
    case
}

fn text<'v>(call: &'v Value, name: &str) -> Option<&'v str> {
    call.get(name).and_then(Value::as_str)
}

/// Takes a call and all that need its result out of a case.
fn cut_off(case: &mut Value, at: usize) {
    let Some(calls) = case.get_mut("topology").and_then(Value::as_array_mut) else {
        return;
    };
    if at >= calls.len() {
        return;
    }
    let mut gone = vec![calls.remove(at)];
    let mut kept = Vec::new();
    for call in calls.drain(..) {
        let needs = |name: &str| text(&call, name).is_some_and(|of| gone.iter().any(|gone| gives(gone, of)));
        if needs("of") || needs("with") {
            gone.push(call);
        } else {
            kept.push(call);
        }
    }
    *calls = kept;
    drop_orphans(case);
}

fn gives(call: &Value, name: &str) -> bool {
    text(call, "let") == Some(name) || text(call, "otherwise") == Some(name)
}

/// Takes a call out of a case; what used its result uses its input. A source is cut off with all that need it.
pub(crate) fn take_out(case: &mut Value, at: usize) {
    let Some(call) = list(case, "topology").get(at).cloned() else {
        return;
    };
    let Some(of) = text(&call, "of").map(str::to_owned) else {
        return cut_off(case, at);
    };
    let Some(calls) = case.get_mut("topology").and_then(Value::as_array_mut) else {
        return;
    };
    calls.remove(at);
    for other in calls.iter_mut() {
        for name in ["of", "with"] {
            if text(other, name).is_some_and(|used| gives(&call, used)) {
                if let Some(other) = other.as_object_mut() {
                    other.insert(name.to_owned(), Value::from(of.clone()));
                }
            }
        }
    }
    drop_orphans(case);
}

/// Steps of topics and stores that are gone go too.
fn drop_orphans(case: &mut Value) {
    let calls = list(case, "topology").to_vec();
    let has = |name: &str, value: &str| calls.iter().any(|call| text(call, name) == Some(value));
    let listed = |topic: &str| {
        calls
            .iter()
            .any(|call| list(call, "topics").iter().any(|one| one.as_str() == Some(topic)))
    };
    let Some(steps) = case.get_mut("steps").and_then(Value::as_array_mut) else {
        return;
    };
    steps.retain(|step| {
        let topic = text(step, "in").is_none_or(|topic| has("topic", topic) || listed(topic));
        topic && text(step, "read").is_none_or(|store| has("store", store))
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let case = crate::differential::generate::case(3);
        let first = list(&case, "topology")[0].clone();
        let small = shrink(&case, |case| list(case, "topology").contains(&first));
        assert_eq!(list(&small, "topology"), [first]);
        assert!(list(&small, "steps").is_empty());
    }

    #[test]
    fn a_call_taken_out_leaves_its_input_to_those_that_used_it() {
        let mut case = json!({ "topology": [
            { "let": "a", "op": "stream", "topic": "in" },
            { "let": "b", "op": "filter", "of": "a" },
            { "op": "to", "of": "b", "topic": "out" },
        ], "steps": [] });
        take_out(&mut case, 1);
        assert_eq!(case["topology"][1], json!({ "op": "to", "of": "a", "topic": "out" }));
        take_out(&mut case, 0);
        assert!(list(&case, "topology").is_empty());
    }
}
