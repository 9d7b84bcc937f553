//! Joins of streams, and joins of tables by foreign keys, with what they must give by plain recomputation.

use std::collections::{BTreeMap, BTreeSet};

use streams_dsl::{Consumed, JoinWindows, MINUTE, Materialized, SECOND, TableJoined};
use streams_testkit::Seeded;
use streams_testkit::simulate::{Compare, InputRecord, Simulation};

use super::{Entry, built, records, some};

/// All of this file.
pub(super) const ALL: [Entry; 2] = [
    Entry {
        name: "stream-joins",
        share: 2,
        make: stream_joins,
    },
    Entry {
        name: "foreign-keys",
        share: 2,
        make: foreign_keys,
    },
];

/// How far joined records may be apart, ms.
const APART_MS: i64 = 2_000;
/// Closes every window of before.
const CLOSING_MS: i64 = 10_000_000;

/// The inner, left and outer join of the same two streams. One stream at a time has new records, so that the order in
/// which a task meets them is given; with a short grace some are late, with a long one every pair is known.
fn stream_joins(rng: &mut Seeded) -> Simulation {
    let late = rng.below(2) == 0;
    let windows = JoinWindows::of(2 * SECOND).grace(if late { SECOND } else { 10 * MINUTE });
    let topology = built(|b| {
        let (left, right) = (b.stream::<String, String>("left"), b.stream::<String, String>("right"));
        let or_none = |value: Option<&String>| value.cloned().unwrap_or_else(|| "-".to_owned());
        left.join(&right, |_, left, right| format!("{left}+{right}"), windows)
            .to("inner");
        left.left_join(
            &right,
            move |_, left, right| format!("{left}+{}", or_none(right)),
            windows,
        )
        .to("with-left");
        let both = move |_: &String, left: Option<&String>, right: Option<&String>| {
            format!("{}+{}", or_none(left), or_none(right))
        };
        left.outer_join(&right, both, windows).to("with-both");
    });
    let phases = [("left", 0), ("right", 1_500), ("left", 3_000), ("right", 2_000)];
    let phases = phases.into_iter().map(|(topic, from_ms)| {
        let count = some(rng) / 3;
        records(rng, topic, count, from_ms, 6_000)
    });
    let mut phases: Vec<Vec<InputRecord>> = phases.collect();
    let given = phases.concat();
    let closing = |number: i64| InputRecord::new("left", format!("c{number}"), "closes", CLOSING_MS);
    phases.push((0..10).map(closing).collect());
    let simulation = Simulation::new(topology, phases).compare(Compare::Exact);
    if late {
        return simulation;
    }
    simulation.expect(joined(&given))
}

/// What the three joins of records give, none of which is late.
fn joined(given: &[InputRecord]) -> Vec<InputRecord> {
    let of = |topic: &str| {
        given
            .iter()
            .filter(move |record| record.topic == topic)
            .collect::<Vec<_>>()
    };
    let (lefts, rights) = (of("left"), of("right"));
    let text = |record: &InputRecord| String::from_utf8(record.value.clone().unwrap_or_default()).unwrap_or_default();
    let meet = |left: &InputRecord, right: &InputRecord| {
        left.key == right.key && (left.timestamp_ms - right.timestamp_ms).abs() <= APART_MS
    };
    let result = |topic: &str, of: &InputRecord, value: String, timestamp_ms: i64| {
        InputRecord::new(topic, of.key.clone().unwrap_or_default(), value, timestamp_ms)
    };
    let mut results = Vec::new();
    for left in &lefts {
        for right in rights.iter().filter(|right| meet(left, right)) {
            let value = format!("{}+{}", text(left), text(right));
            let time_ms = left.timestamp_ms.max(right.timestamp_ms);
            for topic in ["inner", "with-left", "with-both"] {
                results.push(result(topic, left, value.clone(), time_ms));
            }
        }
        if !rights.iter().any(|right| meet(left, right)) {
            for topic in ["with-left", "with-both"] {
                results.push(result(topic, left, format!("{}+-", text(left)), left.timestamp_ms));
            }
        }
    }
    for right in rights
        .iter()
        .filter(|right| !lefts.iter().any(|left| meet(left, right)))
    {
        results.push(result(
            "with-both",
            right,
            format!("-+{}", text(right)),
            right.timestamp_ms,
        ));
    }
    results
}

/// Orders of customers, inner and left, with deletes on both sides: the last result of each order follows from the last rows.
/// Customers change while orders do not, and an order that was deleted does not come back: as in Java an answer to a row
/// that has changed meanwhile is dropped, and an inner join does not always get another. Rows are not cached, because a
/// cache leaves out steps that the stores remember.
fn foreign_keys(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let rows = |name: &str| Materialized::named(name).caching(false);
        let orders = b.table_with::<String, String>("orders", Consumed::default(), rows("orders"));
        let customers = b.table_with::<String, String>("customers", Consumed::default(), rows("customers"));
        let customer = |_: &String, order: &String| order.split('/').next().map(str::to_owned);
        let inner = |_: &String, order: &String, name: &String| format!("{order}: {name}");
        let left =
            |_: &String, order: &String, name: Option<&String>| format!("{order}: {}", name.map_or("-", |name| name));
        orders
            .join_foreign_key_with(
                &customers,
                customer,
                inner,
                TableJoined::named("inner"),
                Materialized::unnamed(),
            )
            .to_stream()
            .to("named-orders");
        orders
            .left_join_foreign_key_with(
                &customers,
                customer,
                left,
                TableJoined::named("left"),
                Materialized::unnamed(),
            )
            .to_stream()
            .to("all-orders");
    });
    let mut deleted = BTreeSet::new();
    let phases = ["customers", "orders", "customers", "orders", "customers"];
    let phases = (0..).zip(phases).map(|(phase, topic)| {
        let count = some(rng) / 2;
        (0..count)
            .map(|at| change(rng, topic, 1_000 * phase + at, &mut deleted))
            .collect()
    });
    let phases: Vec<Vec<InputRecord>> = phases.collect();
    let expected = by_customer(&phases.concat());
    Simulation::new(topology, phases)
        .compare(Compare::Latest)
        .partitions("customers", 3)
        .expect(expected)
}

/// A customer, an order of some customer, or a delete of one of them.
fn change(rng: &mut Seeded, topic: &str, at: u64, deleted: &mut BTreeSet<u64>) -> InputRecord {
    let customer = format!("c{}", rng.below(4));
    let order = (0..)
        .map(|more| rng.below(8) + more)
        .find(|order| !deleted.contains(order))
        .unwrap_or(0);
    let (key, value) = match topic {
        "customers" => (customer, format!("name-{at}")),
        _ => (format!("o{order}"), format!("{customer}/{at}")),
    };
    let mut record = InputRecord::new(topic, key, value, 100 * at as i64);
    if rng.below(5) == 0 {
        record.value = None;
        if topic == "orders" {
            deleted.insert(order);
        }
    }
    record
}

fn by_customer(given: &[InputRecord]) -> Vec<InputRecord> {
    let text = |bytes: &Option<Vec<u8>>| bytes.clone().and_then(|bytes| String::from_utf8(bytes).ok());
    let last = |topic: &str| {
        let of_topic = given.iter().filter(|record| record.topic == topic);
        let rows: BTreeMap<String, Option<String>> = of_topic
            .map(|record| (text(&record.key).unwrap_or_default(), text(&record.value)))
            .collect();
        rows.into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect::<BTreeMap<_, _>>()
    };
    let (orders, customers) = (last("orders"), last("customers"));
    let mut results = Vec::new();
    for (order, value) in orders {
        let name = customers.get(value.split('/').next().unwrap_or_default());
        if let Some(name) = name {
            results.push(InputRecord::new(
                "named-orders",
                order.clone(),
                format!("{value}: {name}"),
                0,
            ));
        }
        let name = name.map_or("-", |name| name);
        results.push(InputRecord::new("all-orders", order, format!("{value}: {name}"), 0));
    }
    results
}
