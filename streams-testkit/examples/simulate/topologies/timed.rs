//! Stores whose rows have a time: versions, and rows that die.

use std::collections::BTreeMap;

use streams_core::murmur2::partition_for_key;
use streams_dsl::{
    BoxError, Connect, Consumed, HOUR, Joined, Materialized, Processor, ProcessorContext, Record, SECOND, Stores,
};
use streams_testkit::Seeded;
use streams_testkit::simulate::{Compare, InputRecord, Simulation};

use super::{Entry, built, records, some};

/// All of this file.
pub(super) const ALL: [Entry; 1] = [Entry {
    name: "timed-rows",
    share: 2,
    make: timed_rows,
}];

/// How long a key is remembered, ms.
const REMEMBERED_MS: i64 = 3_000;

/// Forwards a record unless its key was seen within 3 s, and forgets old keys.
struct First;

impl Processor<String, String, String, String> for First {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        let seen = cx.ttl_store::<String, String>("seen")?;
        if seen.get(cx, record.key)?.is_none() {
            seen.put(cx, record.key, Some(record.value), record)?;
            cx.forward(record)?;
        }
        Ok(())
    }
}

/// A stream that joins the versions of a table, at once and after a grace, and one whose keys are remembered for a while.
fn timed_rows(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let versions = Materialized::named("versions").versioned(HOUR);
        let table = b.table_with::<String, String>("table", Consumed::default(), versions);
        let stream = b.stream::<String, String>("in");
        let both = |_: &String, value: &String, row: &String| format!("{value}+{row}");
        stream.join_table(&table, both).to("joined");
        stream
            .join_table_with(&table, both, Joined::named("later").grace(SECOND))
            .to("joined-later");
        b.add_state_store(Stores::ttl::<String, String>("seen", 3 * SECOND));
        b.stream::<String, String>("visits")
            .process_with(|| First, Connect::stores(["seen"]))
            .to("first-visits");
    });
    let phases = [
        ("table", 0),
        ("in", 500),
        ("table", 1_000),
        ("in", 2_000),
        ("visits", 0),
    ];
    let phases = phases.into_iter().map(|(topic, from_ms)| {
        let count = some(rng) / 2;
        records(rng, topic, count, from_ms, 3_000)
    });
    let phases: Vec<Vec<InputRecord>> = phases.collect();
    let mut expected = joined(&phases);
    expected.extend(first_visits(&phases.concat()));
    Simulation::new(topology, phases)
        .compare(Compare::Exact)
        .expect(expected)
}

/// Each record with the version of its own time that is known when it comes.
fn joined(phases: &[Vec<InputRecord>]) -> Vec<InputRecord> {
    let mut versions: BTreeMap<Vec<u8>, BTreeMap<i64, Vec<u8>>> = BTreeMap::new();
    let mut results = Vec::new();
    for record in phases.iter().flatten() {
        let (key, value) = (
            record.key.clone().unwrap_or_default(),
            record.value.clone().unwrap_or_default(),
        );
        let of_key = versions.entry(key.clone()).or_default();
        match record.topic.as_str() {
            "table" => {
                of_key.insert(record.timestamp_ms, value);
            }
            "in" => {
                if let Some((_, row)) = of_key.range(..=record.timestamp_ms).next_back() {
                    let both = [value, b"+".to_vec(), row.clone()].concat();
                    results.push(InputRecord::new("joined", key, both, record.timestamp_ms));
                }
            }
            _ => {}
        }
    }
    results
}

fn first_visits(given: &[InputRecord]) -> Vec<InputRecord> {
    let mut times_ms = BTreeMap::new();
    let mut until_ms: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let mut results = Vec::new();
    for record in given.iter().filter(|record| record.topic == "visits") {
        let key = record.key.clone().unwrap_or_default();
        let time_ms = times_ms.entry(partition_for_key(&key, 2)).or_insert(0);
        *time_ms = record.timestamp_ms.max(*time_ms);
        if until_ms.get(&key).is_none_or(|until_ms| *until_ms <= *time_ms) {
            until_ms.insert(key, record.timestamp_ms + REMEMBERED_MS);
            results.push(InputRecord {
                topic: "first-visits".to_owned(),
                ..record.clone()
            });
        }
    }
    results
}
