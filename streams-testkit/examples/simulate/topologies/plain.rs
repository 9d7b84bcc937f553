//! Without transactions: at least once and at most once.

use streams_core::config::ProcessingGuarantee;
use streams_dsl::{BoxError, Connect, Processor, ProcessorContext, Record, Stores};
use streams_testkit::Seeded;
use streams_testkit::simulate::{Compare, Simulation};

use super::{Entry, built, records, some};

/// All of this file.
pub(super) const ALL: [Entry; 3] = [
    Entry {
        name: "at-least-once",
        share: 3,
        make: at_least_once,
    },
    Entry {
        name: "at-least-once-cached",
        share: 2,
        make: at_least_once_cached,
    },
    Entry {
        name: "at-most-once",
        share: 3,
        make: at_most_once,
    },
];

/// A set of texts with one more in it, which changes nothing when it is there already: what such state holds is exact at
/// least once too.
fn with(set: &str, value: &str) -> String {
    let mut values: Vec<&str> = set.split(' ').filter(|known| !known.is_empty()).collect();
    if let Err(at) = values.binary_search(&value) {
        values.insert(at, value);
    }
    values.join(" ")
}

fn number_of(value: &str) -> String {
    value.rsplit(':').next().unwrap_or_default().to_owned()
}

/// A copy, one through a repartition topic, and state that repeated records do not change. Nothing may be lost of any, and the
/// sets end exact.
fn at_least_once(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let stream = b.stream::<String, String>("in");
        stream.to("copied");
        let moved = stream
            .map(|key, value| (value.clone(), format!("{key}!")))
            .repartition();
        moved.to("moved");
        let grouped = stream.group_by_key();
        grouped
            .aggregate(
                String::new,
                |_, value, set: String| with(&set, &number_of(value)),
                "sets",
            )
            .to_stream()
            .to("sets");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs])
        .guarantee(ProcessingGuarantee::AtLeastOnce)
        .compare(Compare::AnyOrder)
        .compare_topic("sets", Compare::Latest)
}

/// The sets alone, with and without the record cache, by another key: their changelog ends exact too.
fn at_least_once_cached(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.stream::<String, String>("in")
            .select_key(|_, value| format!("g{}", value.len() % 3))
            .group_by_key()
            .aggregate(String::new, |_, value, set: String| with(&set, value), "sets")
            .to_stream()
            .to("sets");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs]).guarantee(ProcessingGuarantee::AtLeastOnce)
}

/// Counts how often it has seen each value, and forwards it with that.
struct Seen;

impl Processor<String, String, String, String> for Seen {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        let seen = cx.key_value_store::<String, i64>("seen")?;
        let times = seen.get(cx, record.value)?.map_or(0, |row| row.value) + 1;
        seen.put(cx, record.value, Some(times), record)?;
        let value = format!("{}, seen {times} times", record.value);
        cx.forward(Record::new(record.key, &value, record.timestamp_ms))?;
        Ok(())
    }
}

/// A copy, one through a repartition topic, and a store that knows what it has seen: nothing is there twice, and nothing was
/// seen twice.
fn at_most_once(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.add_state_store(Stores::key_value::<String, i64>("seen"));
        let stream = b.stream::<String, String>("in");
        stream.to("copied");
        stream
            .process_with(|| Seen, Connect::stores(["seen"]))
            .map(|key, value| (value.clone(), format!("{key}!")))
            .repartition()
            .to("seen");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs])
        .guarantee(ProcessingGuarantee::AtMostOnce)
        .compare(Compare::AnyOrder)
}
