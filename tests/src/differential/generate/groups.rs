//! Grouped streams: plain and windowed aggregations, cogroups, and what suppresses their results.

use serde_json::{Value, json};

use super::topology::{Draft, Kind, Values};

impl Draft {
    /// A grouped stream, and what its values are.
    fn grouped(&mut self, name: &str, values: Values) -> String {
        if self.chance(60) {
            self.step(json!({ "op": "groupByKey", "of": name }))
        } else {
            let key = self.selector(values);
            self.step(json!({ "op": "groupBy", "of": name, "fn": key }))
        }
    }

    pub(super) fn group(&mut self, name: &str, values: Values) {
        let grouped = self.grouped(name, values);
        if self.chance(35) {
            let (mut call, values) = self.aggregation(&grouped, values, false);
            self.maybe_store(&mut call);
            let counts = call.get("op").and_then(Value::as_str) == Some("count");
            self.plain_result(call, counts, values);
            return;
        }
        let (window, kept) = self.window(true);
        let unlimited = window.get("kind").and_then(Value::as_str) == Some("unlimited");
        let mut windowed = self.step(json!({ "op": "windowedBy", "of": grouped, "window": window }));
        let on_close = !unlimited && self.chance(25);
        if on_close {
            windowed = self.step(json!({ "op": "emitOnClose", "of": windowed }));
        }
        let (mut call, values) = self.aggregation(&windowed, values, true);
        self.window_store(&mut call, kept);
        self.windowed_result(call, values, !unlimited && !on_close);
    }

    pub(super) fn cogroup(&mut self, name: &str, values: Values) {
        let grouped = self.grouped(name, values);
        let function = self.one_of(&["cat", "add"], "cat");
        let mut cogrouped = self.step(json!({ "op": "cogroup", "of": grouped, "fn": function }));
        if let Some(other) = self.any(|other| other.kind == Kind::Stream && other.name != name) {
            let grouped = self.step(json!({ "op": "groupByKey", "of": other.name }));
            self.used(&json!({ "of": other.name }));
            cogrouped = self.step(json!({ "op": "cogroup", "of": cogrouped, "with": grouped, "fn": "sub" }));
        }
        if self.chance(40) {
            let mut call = json!({ "op": "aggregate", "of": cogrouped, "init": "0" });
            self.maybe_store(&mut call);
            self.add(call, Kind::Table, Values::Text);
            return;
        }
        let (window, kept) = self.window(false);
        let windowed = self.step(json!({ "op": "windowedBy", "of": cogrouped, "window": window }));
        let mut call = json!({ "op": "aggregate", "of": windowed, "init": "0" });
        self.window_store(&mut call, kept);
        self.windowed_result(call, Values::Text, true);
    }

    /// Windows, and how long their rows are kept at least.
    fn window(&mut self, unlimited: bool) -> (Value, i64) {
        let grace = self.one_of(&[0, 0, 5, 20], 0);
        let kinds: &[&str] = match unlimited {
            true => &["tumbling", "hopping", "sliding", "session", "unlimited"],
            false => &["tumbling", "hopping", "sliding", "session"],
        };
        match self.one_of(kinds, "tumbling") {
            "hopping" => {
                let advance = self.one_of(&[3, 5], 5);
                (
                    json!({ "kind": "hopping", "size_ms": 10, "advance_ms": advance, "grace_ms": grace }),
                    10 + grace,
                )
            }
            "sliding" => {
                let diff = self.one_of(&[5, 10], 10);
                (
                    json!({ "kind": "sliding", "diff_ms": diff, "grace_ms": grace }),
                    2 * diff + grace,
                )
            }
            "session" => {
                let gap = self.one_of(&[5, 10], 10);
                (
                    json!({ "kind": "session", "gap_ms": gap, "grace_ms": grace }),
                    gap + grace,
                )
            }
            "unlimited" => (
                json!({ "kind": "unlimited", "start_ms": self.one_of(&[0, 0, 20], 0) }),
                0,
            ),
            _ => {
                let size = self.one_of(&[5, 10, 20], 10);
                (
                    json!({ "kind": "tumbling", "size_ms": size, "grace_ms": grace }),
                    size + grace,
                )
            }
        }
    }

    fn window_store(&mut self, call: &mut Value, kept: i64) {
        if kept > 0 {
            // Read by nobody but the list of known differences: a longer retention can be asked for.
            call["windowed"] = json!(true);
        }
        if self.chance(50) {
            call["store"] = json!(self.fresh("s"));
        }
        if self.chance(25) {
            call["type"] = json!("mem");
        }
        if kept > 0 && self.chance(25) {
            let more = self.one_of(&[1, 50, 1000], 50);
            call["retention_ms"] = json!(kept + more);
        }
        self.caching(call);
    }

    /// `count`, `reduce` or `aggregate`, and what their values are. Windows hand null values on, which numbers are not.
    fn aggregation(&mut self, of: &str, values: Values, windowed: bool) -> (Value, Values) {
        let numbers = values == Values::Numbers && !(windowed && self.chance(70));
        match self.dice.below(3) {
            0 => (json!({ "op": "count", "of": of }), Values::Numbers),
            1 => {
                let function = if numbers {
                    self.one_of(&["sum", "max"], "sum")
                } else {
                    self.one_of(&["cat", "cat", "last"], "cat")
                };
                let values = match function {
                    "cat" => Values::Text,
                    _ => values,
                };
                (json!({ "op": "reduce", "of": of, "fn": function }), values)
            }
            _ if numbers => (
                json!({ "op": "aggregate", "of": of, "init": "0", "fn": "sum" }),
                Values::Numbers,
            ),
            _ => {
                let function = self.one_of(&["cat", "add", "last", "nullon:3"], "cat");
                let init = if self.chance(70) { json!("0") } else { Value::Null };
                (
                    json!({ "op": "aggregate", "of": of, "init": init, "fn": function }),
                    Values::Text,
                )
            }
        }
    }

    pub(super) fn plain_result(&mut self, call: Value, counts: bool, values: Values) {
        if !counts {
            self.add(call, Kind::Table, values);
            return;
        }
        let mut table = self.step(call);
        if self.chance(15) {
            table = self.suppressed_for_a_time(&table);
        }
        let stream = self.step(json!({ "op": "toStream", "of": table }));
        self.add(json!({ "op": "unwindow", "of": stream }), Kind::Stream, Values::Numbers);
    }

    fn windowed_result(&mut self, call: Value, values: Values, may_suppress: bool) {
        let mut table = self.step(call);
        if may_suppress && self.chance(25) {
            table = self.step(json!({ "op": "suppress", "of": table, "untilWindowCloses": true }));
        } else if self.chance(8) {
            table = self.suppressed_for_a_time(&table);
        }
        let stream = self.step(json!({ "op": "toStream", "of": table }));
        self.add(json!({ "op": "unwindow", "of": stream }), Kind::Stream, values);
    }

    fn suppressed_for_a_time(&mut self, table: &str) -> String {
        let limit_ms = self.one_of(&[0, 10, 30], 10);
        self.step(json!({ "op": "suppress", "of": table, "untilTimeLimit_ms": limit_ms }))
    }
}
