//! The topology of a case: sources, then calls on what is there, then sinks for what nothing has used.

use serde_json::{Value, json};
use streams_testkit::Seeded;

use super::{chance, one_of};

/// What the values of a stream or table look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Decimal numbers.
    Numbers,
    /// `x|3`: a foreign key and a number.
    Fields,
    /// Anything.
    Text,
}

/// What a call gave.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) values: Values,
    /// How many calls have used it.
    pub(super) uses: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stream,
    Table,
    /// A table with versions, or one that is made of it.
    Versioned,
    Global,
}

/// A topic that the case puts records into.
#[derive(Clone, Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) values: Values,
    pub(super) is_table: bool,
    /// Keys are those that `Fields` point to.
    pub(super) is_foreign: bool,
    /// Values are event times.
    pub(super) is_times: bool,
}

/// A case in the making.
pub(super) struct Draft {
    pub(super) dice: Seeded,
    pub(super) calls: Vec<Value>,
    pub(super) handles: Vec<Handle>,
    pub(super) topics: Vec<Topic>,
    /// Key-value stores that can be read, with the history of versioned ones.
    pub(super) stores: Vec<(String, Option<i64>)>,
    /// Functions may throw: failures are handled.
    pub(super) throws: bool,
    /// Something waits for the wall clock.
    pub(super) wall: bool,
    names: usize,
}

impl Draft {
    pub(super) fn new(seed: u64) -> Self {
        Draft {
            // Mixed: the sequences of neighbouring seeds are the same one, shifted.
            dice: Seeded::new(Seeded::new(seed).next_u64()),
            calls: Vec::new(),
            handles: Vec::new(),
            topics: Vec::new(),
            stores: Vec::new(),
            throws: false,
            wall: false,
            names: 0,
        }
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        chance(&mut self.dice, percent)
    }

    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T], otherwise: T) -> T {
        one_of(&mut self.dice, choices, otherwise)
    }

    pub(super) fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    pub(super) fn compose(&mut self) {
        for _ in 0..self.one_of(&[1, 1, 2, 2, 2, 3], 1) {
            self.source();
        }
        for _ in 0..self.one_of(&[1, 2, 2, 3, 3, 4, 5, 7], 2) {
            let Some(of) = self.any(|_| true) else { continue };
            match of.kind {
                Kind::Stream => self.stream_call(&of),
                Kind::Table | Kind::Versioned => self.table_call(&of),
                Kind::Global => {}
            }
        }
        self.sinks();
    }

    fn source(&mut self) {
        let values = self.one_of(
            &[Values::Numbers, Values::Numbers, Values::Fields, Values::Text],
            Values::Numbers,
        );
        let topic = self.fresh("in");
        let mut described = Topic {
            name: topic.clone(),
            values,
            is_table: false,
            is_foreign: false,
            is_times: false,
        };
        match self.dice.below(100) {
            0..8 => {
                let second = self.fresh("in");
                let call = json!({ "op": "stream", "topics": [topic, second] });
                self.topics.push(Topic {
                    name: second,
                    ..described.clone()
                });
                self.topics.push(described);
                self.add(call, Kind::Stream, values);
            }
            8..55 => {
                let mut call = json!({ "op": "stream", "topic": topic });
                if values == Values::Numbers && self.chance(12) {
                    call["extractor"] = json!("value");
                    described.is_times = true;
                } else if self.chance(6) {
                    call["extractor"] = json!(self.one_of(&["log-and-skip", "partition-time"], "log-and-skip"));
                }
                self.topics.push(described);
                self.add(call, Kind::Stream, values);
            }
            55..90 => {
                let mut call = json!({ "op": "table", "topic": topic });
                let versioned = self.chance(20);
                if versioned {
                    self.versioned(&mut call);
                } else if self.chance(50) {
                    self.store(&mut call);
                }
                described.is_table = true;
                described.is_foreign = self.chance(35);
                self.topics.push(described);
                self.add(call, if versioned { Kind::Versioned } else { Kind::Table }, values);
            }
            _ => {
                described.is_table = true;
                described.is_foreign = self.chance(35);
                self.topics.push(described);
                let store = self.fresh("s");
                self.add(
                    json!({ "op": "globalTable", "topic": topic, "store": store }),
                    Kind::Global,
                    values,
                );
            }
        }
    }

    /// Adds a call and gives its result a name.
    pub(super) fn add(&mut self, mut call: Value, kind: Kind, values: Values) -> String {
        let name = self.fresh("n");
        call["let"] = json!(name);
        self.used(&call);
        self.calls.push(call);
        self.known(&name, kind, values);
        name
    }

    pub(super) fn known(&mut self, name: &str, kind: Kind, values: Values) {
        self.handles.push(Handle {
            name: name.to_owned(),
            kind,
            values,
            uses: 0,
        });
    }

    /// Adds a call whose result only the next call uses.
    pub(super) fn step(&mut self, mut call: Value) -> String {
        let name = self.fresh("n");
        call["let"] = json!(name);
        self.used(&call);
        self.calls.push(call);
        name
    }

    pub(super) fn used(&mut self, call: &Value) {
        for handle in &mut self.handles {
            let named = |field: &str| call.get(field).and_then(Value::as_str) == Some(&handle.name);
            if named("of") || named("with") {
                handle.uses += 1;
            }
        }
    }

    /// A handle of this sort, rather one that nothing has used.
    pub(super) fn any(&mut self, wanted: impl Fn(&Handle) -> bool) -> Option<Handle> {
        let fitting: Vec<Handle> = self.handles.iter().filter(|handle| wanted(handle)).cloned().collect();
        let unused: Vec<Handle> = fitting.iter().filter(|handle| handle.uses == 0).cloned().collect();
        let from = if !unused.is_empty() && self.chance(75) {
            unused
        } else {
            fitting
        };
        let at = usize::try_from(self.dice.below(from.len() as u64)).unwrap_or(0);
        from.get(at).cloned()
    }

    /// Gives the call's key-value store a name, mostly, and a place.
    pub(super) fn store(&mut self, call: &mut Value) {
        let name = self.fresh("s");
        call["store"] = json!(name);
        if self.chance(25) {
            call["type"] = json!("mem");
        }
        self.caching(call);
        self.stores.push((name, None));
    }

    pub(super) fn maybe_store(&mut self, call: &mut Value) {
        if self.chance(50) {
            self.store(call);
        } else {
            self.caching(call);
        }
    }

    pub(super) fn versioned(&mut self, call: &mut Value) {
        let name = self.fresh("s");
        let history = self.one_of(&[20, 100, 1000], 100);
        call["store"] = json!(name);
        call["type"] = json!("versioned");
        call["history_ms"] = json!(history);
        self.stores.push((name, Some(history)));
    }

    pub(super) fn caching(&mut self, call: &mut Value) {
        if self.chance(15) {
            let caching = self.chance(50);
            call["caching"] = json!(caching);
        }
    }

    fn sinks(&mut self) {
        let ends: Vec<Handle> = self.handles.iter().filter(|handle| handle.uses == 0).cloned().collect();
        for end in ends.iter().take(4) {
            let stream = match end.kind {
                Kind::Global => continue,
                Kind::Stream => end.name.clone(),
                Kind::Table | Kind::Versioned => self.step(json!({ "op": "toStream", "of": end.name })),
            };
            let topic = self.fresh("out");
            self.calls.push(json!({ "op": "to", "of": stream, "topic": topic }));
        }
    }
}
