//! The topologies that are simulated. To add one: a function that builds it with its inputs, and an entry in a list.

#[path = "topologies/joins.rs"]
mod joins;
#[path = "topologies/plain.rs"]
mod plain;
#[path = "topologies/timed.rs"]
mod timed;
#[path = "topologies/windowed.rs"]
mod windowed;

use std::time::Duration;

use streams_dsl::{
    BoxError, Connect, Consumed, Materialized, Optimization, Processor, ProcessorContext, PunctuationType,
    PunctuatorId, Record, SECOND, Stores, StreamsBuilder, TimeWindows, Topology, TopologyConfig,
};
use streams_state::Direction;
use streams_testkit::Seeded;
use streams_testkit::simulate::{Compare, InputRecord, Simulation, UserFaults};

/// A topology by name; its inputs are drawn.
pub(crate) struct Entry {
    /// The name, for `--topology`.
    pub(crate) name: &'static str,
    /// How many of the seeds it gets: fewer where one takes long.
    pub(crate) share: u64,
    /// Makes it.
    pub(crate) make: fn(&mut Seeded) -> Simulation,
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Entry> {
    let lists: [&'static [Entry]; 5] = [&SIMPLE, &joins::ALL, &windowed::ALL, &timed::ALL, &plain::ALL];
    lists.into_iter().flatten()
}

/// The topology of a seed: each in turn, as often as its share says.
pub(crate) fn of_seed(seed: u64) -> &'static Entry {
    let shares = all().map(|entry| entry.share).sum::<u64>();
    let mut left = seed % shares;
    let found = all().find(|entry| {
        let is_it = left < entry.share;
        left = left.saturating_sub(entry.share);
        is_it
    });
    found.expect("a share for each")
}

const SIMPLE: [Entry; 12] = [
    Entry {
        name: "copy",
        share: 3,
        make: copy,
    },
    Entry {
        name: "count",
        share: 3,
        make: count,
    },
    Entry {
        name: "cached-count",
        share: 3,
        make: cached_count,
    },
    Entry {
        name: "windows",
        share: 3,
        make: windows,
    },
    Entry {
        name: "table-join",
        share: 3,
        make: table_join,
    },
    Entry {
        name: "outbox",
        share: 3,
        make: outbox,
    },
    Entry {
        name: "global-join",
        share: 3,
        make: global_join,
    },
    Entry {
        name: "chain",
        share: 3,
        make: chain,
    },
    Entry {
        name: "memory-count",
        share: 3,
        make: memory_count,
    },
    Entry {
        name: "reused-table",
        share: 3,
        make: reused_table,
    },
    Entry {
        name: "failing",
        share: 3,
        make: failing,
    },
    Entry {
        name: "broken-records",
        share: 3,
        make: broken_records,
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

/// A count whose rows are in memory: each start restores them whole.
fn memory_count(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.stream::<String, String>("in")
            .group_by_key()
            .count(Materialized::named("counts").in_memory())
            .to_stream()
            .to("out");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs]).compare(Compare::Values)
}

/// A table whose source topic is its changelog, grouped by another key: the old row must be the one that was processed.
fn reused_table(rng: &mut Seeded) -> Simulation {
    let builder = StreamsBuilder::new();
    builder
        .table_with::<String, String>("table", Consumed::default(), "rows")
        .group_by(|_, value| (format!("g{}", value.len() % 3), value.clone()))
        .count("groups")
        .to_stream()
        .to("out");
    let optimization = Optimization {
        reuse_source_topics: true,
        ..Optimization::default()
    };
    let topology = builder.build_with(&TopologyConfig { optimization });
    let count = some(rng) * 2;
    let mut inputs = records(rng, "table", count, 0, 0);
    // No group is ever empty: with a cache one that has come and gone meanwhile is never told of.
    let members = ["one", "four", "seven"].map(|value| InputRecord::new("table", format!("of-{value}"), value, 0));
    inputs.splice(0..0, members);
    Simulation::new(topology.expect("the topology is right"), vec![inputs])
}

/// Writes a row and a record, may fail, and writes a second record.
struct Failing(UserFaults);

impl Processor<String, String, String, String> for Failing {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        let seen = cx.key_value_store::<String, i64>("seen")?;
        let times = seen.get(cx, record.key)?.map_or(0, |row| row.value) + 1;
        seen.put(cx, record.key, Some(times), record)?;
        let first = format!("{}#{times}", record.value);
        cx.forward(Record::new(record.key, &first, record.timestamp_ms))?;
        self.0.may_fail()?;
        let second = format!("{first}!");
        cx.forward(Record::new(record.key, &second, record.timestamp_ms))?;
        Ok(())
    }
}

/// User code that fails in the middle of a record, and a panic behind it.
fn failing(rng: &mut Seeded) -> Simulation {
    let faults = UserFaults::default();
    let (in_processor, in_map) = (faults.clone(), faults.clone());
    let topology = built(|b| {
        b.add_state_store(Stores::key_value::<String, i64>("seen"));
        b.stream::<String, String>("in")
            .process_with(move || Failing(in_processor.clone()), Connect::stores(["seen"]))
            .map_values(move |_, value| {
                in_map.may_panic();
                value.clone()
            })
            .to("out");
    });
    let count = some(rng);
    let inputs = records(rng, "in", count, 0, 0);
    Simulation::new(topology, vec![inputs])
        .compare(Compare::Exact)
        .user_faults(&faults)
}

/// Sums with the handlers `continue`: values that can't be read, and values that make the aggregate panic while its entry
/// is changed, must leave every sum as it is.
fn broken_records(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        b.stream::<String, i64>("in")
            .group_by_key()
            .aggregate(
                || 0,
                |_, value, sum: i64| {
                    if *value < 0 {
                        std::panic::resume_unwind(Box::new("a broken value".to_owned()));
                    }
                    sum + value
                },
                "sums",
            )
            .to_stream()
            .to("out");
    });
    let key = |rng: &mut Seeded| format!("k{}", rng.below(4));
    let inputs = (0..some(rng) as i64).map(|at| InputRecord::new("in", key(rng), at.to_be_bytes(), at * 100));
    let inputs = inputs.collect();
    let broken = (0..some(rng) / 4).map(|at| match at % 2 {
        0 => InputRecord::new("in", key(rng), (-1_i64).to_be_bytes(), 0),
        _ => InputRecord::new("in", key(rng), *b"odd", 0),
    });
    let broken = broken.collect();
    Simulation::new(topology, vec![inputs])
        .harmless(broken)
        .continue_on_errors()
}
