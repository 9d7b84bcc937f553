//! The topologies that are simulated. To add one: a function that builds it with its inputs, and a line in [`ALL`].

use std::time::Duration;

use streams_dsl::{
    BoxError, Connect, Processor, ProcessorContext, PunctuationType, PunctuatorId, Record, SECOND, Stores,
    StreamsBuilder, TimeWindows, Topology,
};
use streams_state::Direction;
use streams_testkit::Seeded;
use streams_testkit::simulate::{Compare, InputRecord, Simulation};

/// A topology by name; its inputs are drawn.
pub(crate) struct Entry {
    /// The name, for `--topology`.
    pub(crate) name: &'static str,
    /// Makes it.
    pub(crate) make: fn(&mut Seeded) -> Simulation,
}

/// All of them.
pub(crate) const ALL: [Entry; 8] = [
    Entry {
        name: "copy",
        make: copy,
    },
    Entry {
        name: "count",
        make: count,
    },
    Entry {
        name: "cached-count",
        make: cached_count,
    },
    Entry {
        name: "windows",
        make: windows,
    },
    Entry {
        name: "table-join",
        make: table_join,
    },
    Entry {
        name: "outbox",
        make: outbox,
    },
    Entry {
        name: "global-join",
        make: global_join,
    },
    Entry {
        name: "chain",
        make: chain,
    },
];

fn built(build: impl FnOnce(&StreamsBuilder)) -> Topology {
    let builder = StreamsBuilder::new();
    build(&builder);
    builder.build().expect("the topology is right")
}

/// Records of few keys; the value is unique, the time rises with hiccups.
fn records(rng: &mut Seeded, topic: &str, count: u64, from_ms: i64, late_ms: u64) -> Vec<InputRecord> {
    let mut time_ms = from_ms;
    (0..count)
        .map(|number| {
            time_ms += rng.below(400) as i64;
            let late_ms = if late_ms > 0 && rng.below(5) == 0 {
                rng.below(late_ms) as i64
            } else {
                0
            };
            let key = format!("k{}", rng.below(7));
            let value = format!("{key}:{topic}:{from_ms}:{number}");
            InputRecord::new(topic, key, value, (time_ms - late_ms).max(0))
        })
        .collect()
}

fn some(rng: &mut Seeded) -> u64 {
    20 + rng.below(60)
}

fn copy(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.stream::<String, String>("in").to("out");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs])
        .compare(Compare::Exact)
        .partitions("in", 3)
        .partitions("out", 3)
}

fn counting() -> Topology {
    built(|b| {
        b.stream::<String, String>("in")
            .select_key(|_, value| format!("g{}", value.len() % 3 + usize::from(value.ends_with('1'))))
            .group_by_key()
            .count("counts")
            .to_stream()
            .to("out");
    })
}

/// Two sub-topologies: by another key through a repartition topic, then a count with a store.
fn count(rng: &mut Seeded) -> Simulation {
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(counting(), vec![inputs]).compare(Compare::Values)
}

/// As `count`, with the record cache.
fn cached_count(rng: &mut Seeded) -> Simulation {
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(counting(), vec![inputs]).compare(Compare::Latest)
}

/// Windows with grace: late records are dropped by the operator's stream time, which has to survive everything.
fn windows(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.stream::<String, String>("in")
            .group_by_key()
            .windowed_by(TimeWindows::of(2 * SECOND).grace(SECOND))
            .count("windows")
            .to_stream()
            .to("out");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 8_000);
    Simulation::new(topology, vec![inputs])
        .compare(Compare::Exact)
        .partitions("in", 3)
        .partitions("out", 3)
}

/// A table is filled, joined, changed and joined again.
fn table_join(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let table = b.table::<String, String>("table");
        b.stream::<String, String>("in")
            .join_table(&table, |_, value, row| format!("{value}+{row}"))
            .to("out");
    });
    let phases = [("table", 0), ("in", 100_000), ("table", 200_000), ("in", 300_000)];
    let phases = phases.into_iter().map(|(topic, from_ms)| {
        let count = some(rng) / 2;
        records(rng, topic, count, from_ms, 0)
    });
    let phases = phases.collect();
    Simulation::new(topology, phases).compare(Compare::Exact)
}

/// Keeps what comes and sends it on by the wall clock: transactions without input.
struct Outbox;

impl Processor<String, String, String, String> for Outbox {
    fn init(&mut self, cx: &mut ProcessorContext<'_, String, String>) -> Result<(), BoxError> {
        cx.schedule_every(Duration::from_millis(400), PunctuationType::WallClockTime);
        Ok(())
    }

    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        let waiting = cx.key_value_store::<String, String>("waiting")?;
        waiting.put(cx, record.value, Some(record.key.clone()), record)?;
        Ok(())
    }

    fn punctuate(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        _: PunctuatorId,
        _: i64,
    ) -> Result<(), BoxError> {
        let waiting = cx.key_value_store::<String, String>("waiting")?;
        let mut rows = Vec::new();
        for row in waiting.range(cx, None, None, Direction::Forward)? {
            rows.push(row?);
        }
        for (value, row) in rows {
            let record = Record::new(&row.value, &value, row.timestamp_ms);
            cx.forward(record)?;
            waiting.put(cx, &value, None, Record::new(&value, &row.value, row.timestamp_ms))?;
        }
        Ok(())
    }
}

fn outbox(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.add_state_store(Stores::key_value::<String, String>("waiting"));
        b.stream::<String, String>("in")
            .process_with(|| Outbox, Connect::stores(["waiting"]))
            .to("out");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs])
        .compare(Compare::AnyOrder)
        .settle_ms(2_500)
}

/// A global table is filled, joined, changed and joined again.
fn global_join(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let table = b.global_table::<String, String>("global");
        b.stream::<String, String>("in")
            .join_global(&table, |key, _| key.clone(), |_, value, row| format!("{value}+{row}"))
            .to("out");
    });
    let phases = [("global", 0), ("in", 100_000), ("global", 200_000), ("in", 300_000)];
    let phases = phases.into_iter().map(|(topic, from_ms)| {
        let count = some(rng) / 2;
        records(rng, topic, count, from_ms, 0)
    });
    let phases = phases.collect();
    Simulation::new(topology, phases).compare(Compare::Exact)
}

/// Two sub-topologies without stores: repartition topics that are purged behind the readers.
fn chain(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.stream::<String, String>("in")
            .map(|key, value| (value.clone(), format!("{key}!")))
            .repartition()
            .map_values(|_, value| format!("{value}?"))
            .to("out");
    });
    let count = some(rng) * 2;
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs]).compare(Compare::AnyOrder)
}
