//! What is put in: records in and out of order, late, of equal times, after leaps; nulls; headers; the wall clock; reads.

use serde_json::{Value, json};
use streams_testkit::Seeded;

use super::topology::{Draft, Topic, Values};
use super::{chance, one_of};

pub(super) fn steps(draft: &mut Draft) -> Vec<Value> {
    let count = 4 + draft.dice.below(30);
    let topics = draft.topics.clone();
    let mut clock = Clock {
        now_ms: i64::try_from(draft.dice.below(30)).unwrap_or(0),
    };
    let mut steps = Vec::new();
    for _ in 0..count {
        if !draft.stores.is_empty() && draft.chance(8) {
            steps.push(read(draft, clock.now_ms));
        } else if draft.chance(if draft.wall { 15 } else { 1 }) {
            steps.push(json!({ "wall_ms": draft.one_of(&[5, 20, 45], 20) }));
        } else if let Some(topic) = pick(&mut draft.dice, &topics) {
            let time = clock.next(&mut draft.dice);
            steps.push(record(&mut draft.dice, topic, time));
        }
    }
    steps
}

fn pick<'t>(dice: &mut Seeded, topics: &'t [Topic]) -> Option<&'t Topic> {
    let at = usize::try_from(dice.below(topics.len() as u64)).unwrap_or(0);
    topics.get(at)
}

struct Clock {
    now_ms: i64,
}

impl Clock {
    fn next(&mut self, dice: &mut Seeded) -> i64 {
        let back = match dice.below(100) {
            0..45 => {
                self.now_ms += i64::try_from(dice.below(6)).unwrap_or(0);
                0
            }
            45..62 => 0,
            62..90 => dice.below(25),
            90..98 => {
                self.now_ms += 10 + i64::try_from(dice.below(60)).unwrap_or(0);
                0
            }
            _ => {
                self.now_ms += 1000;
                0
            }
        };
        (self.now_ms - i64::try_from(back).unwrap_or(0)).max(0)
    }
}

fn record(dice: &mut Seeded, topic: &Topic, time_ms: i64) -> Value {
    let keys = if topic.is_foreign {
        ["x", "y", "x"]
    } else {
        ["a", "b", "c"]
    };
    let key = if chance(dice, 6) {
        Value::Null
    } else {
        json!(one_of(dice, &keys, "a"))
    };
    let nulls = if topic.is_table { 22 } else { 10 };
    let value = if topic.is_times {
        json!((time_ms - if chance(dice, 5) { 2_000 } else { 0 }).to_string())
    } else if chance(dice, nulls) {
        Value::Null
    } else {
        value(dice, topic.values)
    };
    let mut step = json!({ "in": topic.name, "key": key, "value": value, "ts": time_ms });
    if chance(dice, 20) {
        step["headers"] = match dice.below(4) {
            0 => json!({ "h": null }),
            1 => json!({ "h": "1", "x": "" }),
            _ => json!({ "h": one_of(dice, &["1", "2"], "1") }),
        };
    }
    step
}

fn value(dice: &mut Seeded, values: Values) -> Value {
    let digit = dice.below(7);
    match values {
        Values::Numbers => json!(digit.to_string()),
        Values::Fields => json!(match dice.below(20) {
            0 => "|3".to_owned(),
            1 => "x".to_owned(),
            _ => format!("{}|{digit}", one_of(dice, &["x", "y", "z"], "x")),
        }),
        Values::Text => json!(one_of(dice, &["p", "q", "p", "r", "x", ""], "p")),
    }
}

fn read(draft: &mut Draft, now_ms: i64) -> Value {
    let at = usize::try_from(draft.dice.below(draft.stores.len() as u64)).unwrap_or(0);
    let (store, history) = draft.stores.get(at).cloned().unwrap_or_default();
    let key = draft.one_of(&["a", "b", "c", "x", "k", "1"], "a");
    let mut read = json!({ "read": store, "key": key });
    if history.is_some() {
        let back = i64::try_from(draft.dice.below(30)).unwrap_or(0);
        read["as_of"] = json!((now_ms - back).max(0));
    }
    read
}
