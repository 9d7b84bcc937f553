//! Joins of streams with streams, tables and global tables.

use serde_json::{Value, json};

use super::topology::{Draft, Kind, Values};

impl Draft {
    pub(super) fn join_streams(&mut self, name: &str) {
        let itself = self.chance(15);
        let Some(other) = self.any(|other| other.kind == Kind::Stream && (other.name == name) == itself) else {
            return;
        };
        let operation = self.one_of(&["join", "join", "leftJoin", "outerJoin"], "join");
        let window = json!({
            "before_ms": self.one_of(&[0, 5, 10, 10], 10),
            "after_ms": self.one_of(&[0, 5, 10, 10], 10),
            "grace_ms": self.one_of(&[0, 0, 5, 20], 0),
        });
        let mut call = json!({ "op": operation, "of": name, "with": other.name, "window": window });
        self.joiner(&mut call);
        self.add(call, Kind::Stream, Values::Text);
    }

    pub(super) fn joiner(&mut self, call: &mut Value) {
        if self.chance(10) {
            call["joiner"] = json!("nullifright");
        }
    }

    pub(super) fn join_table(&mut self, name: &str) {
        let Some(table) = self.any(|other| matches!(other.kind, Kind::Table | Kind::Versioned)) else {
            return;
        };
        let operation = self.one_of(&["join", "leftJoin"], "join");
        let mut call = json!({ "op": operation, "of": name, "with": table.name });
        let stored = self.stores_history(&table.name);
        if let Some(history) = stored.filter(|_| self.chance(50)) {
            let grace = self.one_of(&[5, 20], 5);
            call["grace_ms"] = json!(grace.min(history));
        }
        self.joiner(&mut call);
        self.add(call, Kind::Stream, Values::Text);
    }

    /// How long the table of this name keeps versions in a store of its own.
    fn stores_history(&self, table: &str) -> Option<i64> {
        let named = |call: &&Value| call.get("let").and_then(Value::as_str) == Some(table);
        self.calls.iter().find(named)?.get("history_ms")?.as_i64()
    }

    pub(super) fn join_global(&mut self, name: &str, values: Values) {
        let Some(table) = self.any(|other| other.kind == Kind::Global) else {
            return;
        };
        let operation = self.one_of(&["join", "leftJoin"], "join");
        let key = self.selector(values);
        let mut call = json!({ "op": operation, "of": name, "with": table.name, "fn": key });
        self.joiner(&mut call);
        self.add(call, Kind::Stream, Values::Text);
    }
}
