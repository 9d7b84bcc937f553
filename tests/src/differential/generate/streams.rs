//! Calls on streams.

use serde_json::json;

use super::topology::{Draft, Handle, Kind, Values};

/// Calls and how often they are drawn.
const CALLS: [(&str, u64); 19] = [
    ("filter", 3),
    ("filterNot", 1),
    ("mapValues", 3),
    ("flatMapValues", 1),
    ("flatMap", 1),
    ("map", 1),
    ("selectKey", 2),
    ("peek", 1),
    ("merge", 2),
    ("split", 1),
    ("process", 3),
    ("processValues", 1),
    ("repartition", 1),
    ("toTable", 2),
    ("group", 9),
    ("cogroup", 2),
    ("joinStream", 7),
    ("joinTable", 5),
    ("joinGlobal", 4),
];

impl Draft {
    pub(super) fn stream_call(&mut self, of: &Handle) {
        let (name, values) = (of.name.as_str(), of.values);
        match self.weighted(&CALLS) {
            operation @ ("filter" | "filterNot") => {
                let test = self.test(values);
                self.add(json!({ "op": operation, "of": name, "fn": test }), Kind::Stream, values);
            }
            "mapValues" => {
                let (function, values) = self.mapper(values);
                self.add(
                    json!({ "op": "mapValues", "of": name, "fn": function }),
                    Kind::Stream,
                    values,
                );
            }
            operation @ ("flatMapValues" | "flatMap") => {
                let values = if operation == "flatMap" { values } else { Values::Text };
                self.add(json!({ "op": operation, "of": name }), Kind::Stream, values);
            }
            "map" => {
                let (function, mapped) = self.mapper(values);
                let key = self.selector(values);
                let call = json!({ "op": "map", "of": name, "fn": function, "keyFn": key });
                self.add(call, Kind::Stream, mapped);
            }
            "selectKey" => {
                let key = self.selector(values);
                self.add(
                    json!({ "op": "selectKey", "of": name, "fn": key }),
                    Kind::Stream,
                    values,
                );
            }
            "peek" => {
                self.add(json!({ "op": "peek", "of": name, "fn": "value" }), Kind::Stream, values);
            }
            "merge" => {
                let Some(other) = self.any(|other| other.kind == Kind::Stream && other.name != name) else {
                    return;
                };
                let values = if other.values == values { values } else { Values::Text };
                self.add(
                    json!({ "op": "merge", "of": name, "with": other.name }),
                    Kind::Stream,
                    values,
                );
            }
            "split" => self.split(name, values),
            "process" => self.process(name, values),
            "processValues" => {
                let function = self.one_of(&["twice", "twice", "upper", "swallow", "keyvalue"], "twice");
                let values = if function == "upper" { values } else { Values::Text };
                self.add(
                    json!({ "op": "processValues", "of": name, "fn": function }),
                    Kind::Stream,
                    values,
                );
            }
            "repartition" => {
                self.add(json!({ "op": "repartition", "of": name }), Kind::Stream, values);
            }
            "toTable" => {
                let mut call = json!({ "op": "toTable", "of": name });
                let kind = if self.chance(15) {
                    self.versioned(&mut call);
                    Kind::Versioned
                } else {
                    self.maybe_store(&mut call);
                    Kind::Table
                };
                self.add(call, kind, values);
            }
            "group" => self.group(name, values),
            "cogroup" => self.cogroup(name, values),
            "joinStream" => self.join_streams(name),
            "joinTable" => self.join_table(name),
            _ => self.join_global(name, values),
        }
    }

    pub(super) fn weighted(&mut self, calls: &[(&'static str, u64)]) -> &'static str {
        let mut left = self.dice.below(calls.iter().map(|(_, weight)| weight).sum());
        for (call, weight) in calls {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return call,
            }
        }
        calls.first().map_or("", |(call, _)| call)
    }

    pub(super) fn test(&mut self, values: Values) -> &'static str {
        match values {
            Values::Numbers => self.one_of(&["gt:4", "ne:3", "eq:5", "notnull", "keynotnull"], "gt:4"),
            Values::Fields => self.one_of(&["ne:x|3", "notnull", "keynotnull"], "notnull"),
            Values::Text => self.one_of(&["ne:p", "notnull", "keynotnull"], "notnull"),
        }
    }

    /// A function of values, and what it makes of them.
    pub(super) fn mapper(&mut self, values: Values) -> (&'static str, Values) {
        if self.throws && self.chance(40) {
            let function = match values {
                Values::Numbers => "throwif:3",
                Values::Fields => "throwif:x|3",
                Values::Text => "throwif:p",
            };
            return (function, values);
        }
        match values {
            Values::Numbers => self.one_of(
                &[
                    ("upper", Values::Numbers),
                    ("dup", Values::Numbers),
                    ("nullif:3", Values::Numbers),
                    ("keyvalue", Values::Text),
                    ("const:7", Values::Numbers),
                    ("number", Values::Numbers),
                ],
                ("upper", Values::Numbers),
            ),
            Values::Fields => self.one_of(
                &[
                    ("part:1", Values::Numbers),
                    ("part:0", Values::Text),
                    ("part:1", Values::Numbers),
                    ("keyvalue", Values::Text),
                    ("nullif:x|3", Values::Fields),
                ],
                ("part:1", Values::Numbers),
            ),
            Values::Text => self.one_of(
                &[
                    ("upper", Values::Text),
                    ("dup", Values::Text),
                    ("nullif:p", Values::Text),
                    ("keyvalue", Values::Text),
                    ("number", Values::Numbers),
                ],
                ("upper", Values::Text),
            ),
        }
    }

    /// A function that gives keys.
    pub(super) fn selector(&mut self, values: Values) -> &'static str {
        match values {
            Values::Fields => self.one_of(&["part:0", "part:0", "value", "key"], "part:0"),
            _ => self.one_of(&["value", "value", "key", "const:k", "nullif:3", "number"], "value"),
        }
    }

    fn split(&mut self, name: &str, values: Values) {
        let test = self.test(values);
        let (yes, no) = (self.fresh("n"), self.fresh("n"));
        let call = json!({ "op": "split", "of": name, "fn": test, "let": yes, "otherwise": no });
        self.used(&call);
        self.calls.push(call);
        self.known(&yes, Kind::Stream, values);
        self.known(&no, Kind::Stream, values);
    }

    fn process(&mut self, name: &str, values: Values) {
        let function = self.one_of(
            &[
                "addheader",
                "meta",
                "streamtime",
                "ts-minus-100",
                "swallow",
                "punct-stream:20",
                "punct-wall:20",
                "forward",
            ],
            "forward",
        );
        self.wall |= function.starts_with("punct-wall");
        let values = match function {
            "streamtime" => Values::Numbers,
            "meta" => Values::Text,
            "punct-stream:20" | "punct-wall:20" if values == Values::Fields => Values::Text,
            _ => values,
        };
        self.add(
            json!({ "op": "process", "of": name, "fn": function }),
            Kind::Stream,
            values,
        );
    }
}
