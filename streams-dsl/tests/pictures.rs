//! Pictures of real topologies, to the letter (`tests/pictures/`), and a law for all of them. `PICTURES=overwrite` writes
//! the files anew; read what changed.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;

use streams_dsl::{
    HOUR, JoinWindows, Joined, MINUTE, StreamJoined, StreamsBuilder, Suppressed, TimeWindows, Topology, TopologyError,
};

/// A repartition topic between two sub-topologies, a window store, a suppress buffer.
fn hourly_bills() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("usage")
        .filter(|_, bytes| *bytes > 0)
        .named("billable")
        .select_key(|project, _| project.clone())
        .named("by-project")
        .group_by_key()
        .windowed_by(TimeWindows::of(HOUR).grace(5 * MINUTE))
        .reduce(|_, new, sum| sum + new, "hourly-bill")
        .suppress(Suppressed::until_window_closes().with_name("final"))
        .to_stream()
        .to("invoices");
    builder.build()
}

/// A stream join, a table, a global table, a topic that is chosen for each record.
fn orders() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    let (orders, payments) = (
        builder.stream::<String, i64>("orders"),
        builder.stream::<String, i64>("payments"),
    );
    let (customers, countries) = (
        builder.table::<String, i64>("customers"),
        builder.global_table::<i64, String>("countries"),
    );
    orders
        .join_with(
            &payments,
            |_, price, paid| price - paid,
            JoinWindows::of(5 * MINUTE),
            StreamJoined::named("paid").store_named("paid"),
        )
        .join_table_with(&customers, |_, _, country| *country, Joined::named("of-customer"))
        .join_global(&countries, |_, country| *country, |_, _, name| name.clone())
        .to_dynamic(|_, name, _| format!("orders-{name}"));
    builder.build()
}

type Program = (&'static str, fn() -> Result<Topology, TopologyError>);
const PROGRAMS: [Program; 2] = [("hourly_bills", hourly_bills), ("orders", orders)];

#[test]
fn pictures_of_real_topologies_are_golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures");
    for (name, topology) in PROGRAMS {
        let topology = topology().unwrap();
        for (ending, ours) in [("mmd", topology.to_mermaid()), ("dot", topology.to_dot())] {
            let path = folder.join(format!("{name}.{ending}"));
            if std::env::var("PICTURES").is_ok_and(|value| value == "overwrite") {
                std::fs::write(&path, &ours).unwrap();
            }
            let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(ours, golden, "{name}.{ending}");
        }
    }
}

/// What `describe()` names: nodes with their links, topics, stores.
fn described(topology: &Topology) -> (BTreeSet<String>, usize) {
    let (mut names, mut links) = (BTreeSet::new(), 0);
    for line in topology.describe().lines().map(str::trim) {
        let Some((kind, rest)) = line.split_once(' ') else {
            continue;
        };
        match kind {
            "Source:" | "Processor:" | "Sink:" => {
                let (name, inside) = rest.split_once(" (").unwrap();
                names.insert(name.to_owned());
                let inside = inside.trim_end_matches(')').split_once(": ").unwrap().1;
                let listed = inside.trim_start_matches('[').trim_end_matches(']').split(", ");
                names.extend(listed.filter(|name| !name.is_empty()).map(str::to_owned));
            }
            "-->" if rest != "none" => links += rest.split(", ").count(),
            _ => {}
        }
    }
    (names, links)
}

#[test]
fn whatever_is_described_is_drawn() {
    for (name, topology) in PROGRAMS {
        let topology = topology().unwrap();
        let (names, links) = described(&topology);
        let (chart, graph) = (topology.to_mermaid(), topology.to_dot());
        for described in &names {
            assert!(
                chart.contains(described.as_str()),
                "{name} lacks {described} in\n{chart}"
            );
            assert!(
                graph.contains(described.as_str()),
                "{name} lacks {described} in\n{graph}"
            );
        }
        let between_nodes = |line: &&str| {
            let ends: Vec<&str> = line.split(" --> ").collect();
            ends.len() == 2 && ends.iter().all(|end| end.trim().starts_with('n'))
        };
        assert_eq!(chart.lines().filter(between_nodes).count(), links, "{name}\n{chart}");
        assert_eq!(
            chart.matches("subgraph").count(),
            graph.matches("subgraph").count(),
            "{name}"
        );
    }
}
