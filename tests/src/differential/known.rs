//! The known differences: where we differ from Java on purpose.
//!
//! A difference counts as known only if it is gone when its cause is: each entry says which cases can have it, and how to
//! take the cause away. Entries with [`Side::Java`] change only Java's half (say, a longer retention), so that our own
//! output of the case as it was has to equal it; the others change both halves, which then have to agree.
#![allow(clippy::indexing_slicing, reason = "JSON values grow by index")]

use serde_json::{Value, json};

/// Whose case is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Java's alone.
    Java,
    /// Both.
    Both,
}

/// How the records of a topic are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Compared {
    /// In their order.
    InOrder,
    /// In their order for each key: that between keys is the cause.
    ByKey,
    /// The last one of each key in each step.
    LastOfKey,
}

/// One known difference.
pub(crate) struct Known {
    /// Its name in reports.
    pub(crate) id: &'static str,
    /// Why we differ.
    pub(crate) reason: &'static str,
    pub(crate) side: Side,
    /// It is one only if Java refuses the topology with this text.
    pub(crate) refusal: Option<&'static str>,
    /// How records are compared without it.
    pub(crate) compared: Compared,
    /// Whether a case can have it.
    pub(crate) applies: fn(&Value) -> bool,
    /// Takes the cause away.
    pub(crate) remove: fn(&mut Value),
}

/// All of them.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        id: "retention-hides-open-windows",
        reason: "Java's window and session stores hide rows by their retention although the operator still needs them: \
                 sessions that are still open are overwritten, final results are lost (design §5). With a longer \
                 retention Java gives what we give.",
        side: Side::Java,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, is_windowed_aggregate),
        remove: |case| {
            each_call(case, |call| {
                if is_windowed_aggregate(call) {
                    call["retention_ms"] = json!(1_000_000_000);
                }
            })
        },
    },
    Known {
        id: "suppress-inclusive-end",
        reason: "The end of sliding windows and sessions is inside, so they are closed one millisecond later than Java's \
                 `suppress` thinks, which emits them while a record can still come (case sl-suppress).",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| {
            any_call(case, |call| call.get("untilWindowCloses").is_some())
                && any_call(case, |call| matches!(window_kind(call), Some("sliding" | "session")))
        },
        remove: |case| remove_calls(case, |call| call.get("untilWindowCloses").is_some()),
    },
    Known {
        id: "left-join-waits-for-grace",
        reason: "Java's left and outer joins of streams emit a record that comes out of order without its partner at once, \
                 although its grace is not over, and then the pair too (case ss-left-outoforder-in-grace).",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, is_padding_stream_join),
        remove: |case| {
            each_call(case, |call| {
                if is_padding_stream_join(call) {
                    call["op"] = json!("join");
                }
            })
        },
    },
    Known {
        id: "join-row-one-millisecond-longer",
        reason: "A row of a join of streams is seen one millisecond longer than in Java, for before + after + grace, the \
                 last one included.",
        side: Side::Java,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, is_stream_join),
        remove: |case| {
            each_call(case, |call| {
                if let (true, Some(window)) = (is_stream_join(call), call.get_mut("window")) {
                    let grace = window.get("grace_ms").and_then(Value::as_i64).unwrap_or(0);
                    window["grace_ms"] = json!(grace + 1);
                }
            });
        },
    },
    Known {
        id: "self-join-row-longer",
        reason: "Java's join of a stream with itself on one store hides a record from itself one millisecond earlier still.",
        side: Side::Java,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| case.pointer(OPTIMIZATION).is_some() && any_call(case, is_self_join),
        remove: |case| {
            each_call(case, |call| {
                if let (true, Some(window)) = (is_self_join(call), call.get_mut("window")) {
                    let grace = window.get("grace_ms").and_then(Value::as_i64).unwrap_or(0);
                    window["grace_ms"] = json!(grace + 2);
                }
            });
        },
    },
    Known {
        id: "versioned-tombstone-of-equal-time",
        reason: "Java's versioned store forgets a tombstone that has the time of the version before it, so older versions \
                 come back (case vs-same-timestamp-join).",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, |call| call.get("history_ms").is_some()),
        remove: |case| {
            each_call(case, |call| {
                if let (true, Some(call)) = (call.get("history_ms").is_some(), call.as_object_mut()) {
                    call.remove("history_ms");
                    call.remove("type");
                }
            });
            // There are no versions to be looked at.
            let steps = case.get_mut("steps").and_then(Value::as_array_mut);
            if let Some(steps) = steps {
                steps.retain(|step| step.get("as_of").is_none());
            }
        },
    },
    Known {
        id: "one-task-of-javas-driver",
        reason: "Java's test driver runs all sub-topologies as one task with one stream time; its real runtime, and ours with \
                 its driver, have a task and a stream time for each.",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, asks_for_stream_time),
        remove: |case| {
            each_call(case, |call| {
                if asks_for_stream_time(call) {
                    call["fn"] = json!("forward");
                }
            })
        },
    },
    Known {
        id: "one-task-of-javas-driver-order",
        reason: "For the same reason the order of records that several sub-topologies write to one topic is another one, \
                 which in production is any.",
        side: Side::Both,
        refusal: None,
        compared: Compared::ByKey,
        applies: |case| any_call(case, |call| text(call, "op") == Some("merge")),
        remove: |_| (),
    },
    Known {
        id: "foreign-join-two-ways",
        reason: "For the same reason: between the two ways through a foreign-key join, and what else lies behind a \
                 repartition, there is no order. The last result of a key is the same.",
        side: Side::Both,
        refusal: None,
        compared: Compared::LastOfKey,
        applies: |case| any_call(case, |call| call.get("fk").is_some()),
        remove: |_| (),
    },
    Known {
        id: "offsets-of-transactions",
        reason: "Transaction markers take offsets in our driver's internal topics, as in a broker's; Java's driver has none.",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, |call| text(call, "fn") == Some("meta")),
        remove: |case| {
            each_call(case, |call| {
                if text(call, "fn") == Some("meta") {
                    call["fn"] = json!("forward");
                }
            });
        },
    },
    Known {
        id: "stored-join-old-value",
        reason: "A stored join of tables that come from one source is told each update by both sides. The old value of the \
                 second is the row that is stored; Java's is that from before both, so what groups the table counts twice.",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| {
            any_call(case, |call| {
                is_stored_join(call) && leads_to(case, call, asks_for_old_values)
            })
        },
        remove: |case| {
            let stored = |call: &Value| is_stored_join(call).then(|| text(call, "store").map(str::to_owned));
            let stores: Vec<String> = calls(case).iter().filter_map(stored).flatten().collect();
            each_call(case, |call| {
                if let (true, Some(call)) = (is_stored_join(call), call.as_object_mut()) {
                    call.retain(|name, _| !matches!(name.as_str(), "store" | "type" | "caching"));
                }
            });
            if let Some(steps) = case.get_mut("steps").and_then(Value::as_array_mut) {
                steps.retain(|step| text(step, "read").is_none_or(|read| !stores.iter().any(|store| store == read)));
            }
        },
    },
    Known {
        id: "suppress-old-value",
        reason: "The old value of an update that `suppress` emits is the one that it emitted before; Java's is the last one \
                 that came in, which nobody below has seen. It matters to what groups or joins the table.",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| {
            any_call(case, |call| {
                is_suppress(call) && leads_to(case, call, asks_for_old_values)
            })
        },
        remove: |case| remove_calls(case, is_suppress),
    },
    Known {
        id: "old-value-of-a-first-aggregate",
        reason: "The first update of an aggregate has no old value. Java without a cache tells the initial value as the old \
                 one, so that a table grouped anew takes a row out of a group that it never was in; with a cache it does \
                 not, and gives what we give.",
        side: Side::Java,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| {
            any_call(case, |call| {
                text(call, "op") == Some("aggregate") && leads_to(case, call, asks_for_old_values)
            })
        },
        remove: |case| {
            case["config"]["statestore.cache.max.bytes"] = json!("10000000");
            each_call(case, |call| {
                if let (true, Some(call)) = (text(call, "op") == Some("aggregate"), call.as_object_mut()) {
                    call.remove("caching");
                }
            });
        },
    },
    Known {
        id: "foreign-delete-of-absent-row",
        reason: "The delete of a foreign row that is not there tells nobody; Java repeats the results without it (case \
                 fk-right-tombstone).",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| any_call(case, |call| call.get("fk").is_some()),
        remove: |case| {
            if let Some(steps) = case.get_mut("steps").and_then(Value::as_array_mut) {
                steps.retain(|step| step.get("value").is_none_or(|value| !value.is_null()));
            }
        },
    },
    Known {
        id: "session-of-failed-record",
        reason: "Java deletes the sessions that a record would merge before it calls the aggregator: if that fails and the \
                 handler goes on, they are lost. Here they stay.",
        side: Side::Both,
        refusal: None,
        compared: Compared::InOrder,
        applies: |case| case.pointer(HANDLER).is_some() && any_call(case, |call| window_kind(call) == Some("session")),
        remove: |case| remove_setting(case, HANDLER),
    },
    Known {
        id: "javas-optimizer-fails",
        reason: "Java's merging of repartition topics does not find the step that changed the keys where a split lies \
                 between (\"Found a null keyChangingChild node\"). Without optimization Java gives what we give.",
        side: Side::Java,
        refusal: Some("null keyChangingChild"),
        compared: Compared::InOrder,
        applies: |case| case.pointer(OPTIMIZATION).is_some(),
        remove: |case| remove_setting(case, OPTIMIZATION),
    },
];

const OPTIMIZATION: &str = "/config/topology.optimization";
const HANDLER: &str = "/config/processing.exception.handler";

fn remove_setting(case: &mut Value, pointer: &str) {
    let config = case.get_mut("config").and_then(Value::as_object_mut);
    if let (Some(config), Some(name)) = (config, pointer.strip_prefix("/config/")) {
        config.remove(name);
    }
}

/// A join of tables by their keys with a store of its own.
fn is_stored_join(call: &Value) -> bool {
    matches!(text(call, "op"), Some("join" | "leftJoin" | "outerJoin"))
        && call.get("store").is_some()
        && call.get("fk").is_none()
}

fn is_self_join(call: &Value) -> bool {
    is_stream_join(call) && text(call, "of") == text(call, "with")
}

fn is_suppress(call: &Value) -> bool {
    text(call, "op") == Some("suppress")
}

/// Groups and joins of tables.
fn asks_for_old_values(call: &Value) -> bool {
    call.get("valueFn").is_some()
        || matches!(text(call, "op"), Some("join" | "leftJoin" | "outerJoin")) && call.get("window").is_none()
}

/// Whether some call that uses a call's result, or the result of one that does, is such.
fn leads_to(case: &Value, from: &Value, is: fn(&Value) -> bool) -> bool {
    let mut reached: Vec<&str> = text(from, "let").into_iter().collect();
    // Calls stand behind those whose results they use.
    for call in calls(case) {
        let uses = |name: &str| text(call, name).is_some_and(|used| reached.contains(&used));
        if uses("of") || uses("with") {
            if is(call) {
                return true;
            }
            reached.extend(text(call, "let"));
        }
    }
    false
}

fn asks_for_stream_time(call: &Value) -> bool {
    text(call, "fn").is_some_and(|function| function == "streamtime" || function.starts_with("punct-stream"))
}

fn any_call(case: &Value, is: impl Fn(&Value) -> bool) -> bool {
    calls(case).iter().any(is)
}

fn calls(case: &Value) -> &[Value] {
    case.get("topology")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn each_call(case: &mut Value, change: impl Fn(&mut Value)) {
    let calls = case.get_mut("topology").and_then(Value::as_array_mut);
    calls.into_iter().flatten().for_each(change);
}

/// Takes calls out; what used their result uses what they used.
fn remove_calls(case: &mut Value, is: impl Fn(&Value) -> bool) {
    while let Some(at) = calls(case).iter().position(&is) {
        super::shrink::take_out(case, at);
    }
}

fn text<'v>(call: &'v Value, name: &str) -> Option<&'v str> {
    call.get(name).and_then(Value::as_str)
}

fn window_kind(call: &Value) -> Option<&str> {
    call.get("window").and_then(|window| text(window, "kind"))
}

/// Marked by the generator's order: an aggregation whose store can have a retention.
fn is_windowed_aggregate(call: &Value) -> bool {
    matches!(text(call, "op"), Some("count" | "reduce" | "aggregate")) && call.get("windowed").is_some()
}

fn is_stream_join(call: &Value) -> bool {
    call.get("window")
        .is_some_and(|window| window.get("before_ms").is_some())
}

fn is_padding_stream_join(call: &Value) -> bool {
    matches!(text(call, "op"), Some("leftJoin" | "outerJoin")) && call.get("window").is_some()
}
