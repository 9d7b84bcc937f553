//! Calls on tables.

use serde_json::{Value, json};

use super::topology::{Draft, Handle, Kind, Values};

/// Calls and how often they are drawn.
const CALLS: [(&str, u64); 9] = [
    ("filter", 2),
    ("filterNot", 1),
    ("mapValues", 2),
    ("transformValues", 1),
    ("groupBy", 4),
    ("join", 5),
    ("fk", 5),
    ("suppress", 2),
    ("toStream", 3),
];

impl Draft {
    pub(super) fn table_call(&mut self, of: &Handle) {
        let (name, values, kind) = (of.name.as_str(), of.values, of.kind);
        match self.weighted(&CALLS) {
            operation @ ("filter" | "filterNot") => {
                let test = self.test(values);
                let mut call = json!({ "op": operation, "of": name, "fn": test });
                let kind = self.derived_store(&mut call, kind);
                self.add(call, kind, values);
            }
            "mapValues" => {
                let (function, values) = self.mapper(values);
                let mut call = json!({ "op": "mapValues", "of": name, "fn": function });
                let kind = self.derived_store(&mut call, kind);
                self.add(call, kind, values);
            }
            "transformValues" => {
                let mut call = json!({ "op": "transformValues", "of": name });
                let kind = self.derived_store(&mut call, kind);
                self.add(call, kind, Values::Text);
            }
            "groupBy" => self.group_table(name, values),
            "join" => self.join_tables(name),
            "fk" => self.join_foreign(of),
            "suppress" if kind == Kind::Table => {
                let mut call =
                    json!({ "op": "suppress", "of": name, "untilTimeLimit_ms": self.one_of(&[0, 10, 30], 10) });
                if self.chance(40) {
                    call["maxRecords"] = json!(self.one_of(&[1, 2], 1));
                    if self.chance(20) {
                        call["full"] = json!("shutdown");
                    }
                }
                self.add(call, Kind::Table, values);
            }
            _ => {
                self.add(json!({ "op": "toStream", "of": name }), Kind::Stream, values);
            }
        }
    }

    /// A store for what is made of a table, now and then; the result has versions if that store or the table has.
    fn derived_store(&mut self, call: &mut Value, parent: Kind) -> Kind {
        if self.chance(8) {
            self.versioned(call);
            Kind::Versioned
        } else if self.chance(35) {
            self.store(call);
            Kind::Table
        } else {
            parent
        }
    }

    fn group_table(&mut self, name: &str, values: Values) {
        let key = self.selector(values);
        let (value, grouped_values) = match values {
            Values::Fields => self.one_of(
                &[("part:1", Values::Numbers), ("value", Values::Text)],
                ("value", Values::Text),
            ),
            Values::Numbers => ("value", Values::Numbers),
            Values::Text => self.one_of(
                &[("value", Values::Text), ("number", Values::Numbers)],
                ("value", Values::Text),
            ),
        };
        let grouped = self.step(json!({ "op": "groupBy", "of": name, "fn": key, "valueFn": value }));
        let numbers = grouped_values == Values::Numbers;
        let (mut call, result) = match (self.dice.below(3), numbers) {
            (0, _) => (json!({ "op": "count", "of": grouped }), Values::Numbers),
            (1, true) => (
                json!({ "op": "reduce", "of": grouped, "fn": "sum", "subFn": "minus" }),
                Values::Numbers,
            ),
            (1, false) => (
                json!({ "op": "reduce", "of": grouped, "fn": "cat", "subFn": "sub" }),
                Values::Text,
            ),
            (_, true) => (
                json!({ "op": "aggregate", "of": grouped, "init": "0", "fn": "sum", "subFn": "minus" }),
                Values::Numbers,
            ),
            (_, false) => (
                json!({ "op": "aggregate", "of": grouped, "init": "0", "fn": "add", "subFn": "sub" }),
                Values::Text,
            ),
        };
        self.maybe_store(&mut call);
        let counts = call.get("op").and_then(Value::as_str) == Some("count");
        self.plain_result(call, counts, result);
    }

    fn join_tables(&mut self, name: &str) {
        let fits = |other: &Handle| matches!(other.kind, Kind::Table | Kind::Versioned) && other.name != name;
        let Some(other) = self.any(fits) else { return };
        let operation = self.one_of(&["join", "leftJoin", "outerJoin"], "join");
        let mut call = json!({ "op": operation, "of": name, "with": other.name });
        if self.chance(40) {
            self.store(&mut call);
        }
        self.joiner(&mut call);
        self.add(call, Kind::Table, Values::Text);
    }

    fn join_foreign(&mut self, of: &Handle) {
        let fits = |other: &Handle| matches!(other.kind, Kind::Table | Kind::Versioned) && other.name != of.name;
        let Some(other) = self.any(fits) else { return };
        let operation = self.one_of(&["join", "leftJoin"], "join");
        let key = if of.values == Values::Fields {
            "part:0"
        } else {
            self.one_of(&["value", "number"], "value")
        };
        let mut call = json!({ "op": operation, "of": of.name, "with": other.name, "fk": key });
        if self.chance(40) {
            self.store(&mut call);
        }
        self.joiner(&mut call);
        self.add(call, Kind::Table, Values::Text);
    }
}
