//! Topologies that Java's DSL made (`tests/golden/golden-formats.json`), written again with ours: node names, numbers,
//! sub-topologies, topics and configs must be equal, byte for byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use streams_core::serde::{Long, Utf8};
use streams_core::topology::{InternalTopic, InternalTopicDefaults, SubtopologyPlan, TopologyPlan};
use streams_dsl::{
    BoxError, Branched, Connect, Consumed, Grouped, HOUR, JoinWindows, Joined, Materialized, Optimization, Processor,
    ProcessorContext, Produced, Record, Repartitioned, SECOND, SessionWindows, SlidingWindows, Stores, StreamJoined,
    StreamsBuilder, Suppressed, TableJoined, TimeWindows, TopologyConfig,
};

const GOLDEN: &str = include_str!("../../tests/golden/golden-formats.json");

type Program = (&'static str, fn(&StreamsBuilder));

const PROGRAMS: [Program; 14] = [
    ("stateless_chain", |b| {
        b.stream::<String, String>("in")
            .filter(|_, _| true)
            .map_values(|_, value| value.clone())
            .to("out");
    }),
    ("word_count", |b| {
        let words = b
            .stream::<String, String>("in")
            .flat_map_values(|_, line| vec![line.clone()]);
        words
            .group_by(|_, word| word.clone())
            .count(Materialized::unnamed())
            .to_stream()
            .to("out");
    }),
    ("word_count_named", |b| {
        let words = b
            .stream_with("in", Consumed::<String, String>::named("src"))
            .flat_map_values(|_, line| vec![line.clone()]);
        let grouped = words
            .named("split")
            .group_by_with(|_, word| word.clone(), Grouped::named("by-word"));
        grouped
            .count("counts")
            .named("cnt")
            .to_stream()
            .named("ts")
            .to_with("out", Produced::named("sink"));
    }),
    ("count_materialized_without_name", |b| {
        b.stream::<String, String>("in")
            .group_by_key()
            .count(Materialized::with(Utf8, Long))
            .to_stream()
            .to("out");
    }),
    ("aggregate_after_map", |b| {
        let mapped = b
            .stream::<String, String>("in")
            .map(|key, value| (value.clone(), key.clone()));
        mapped
            .group_by_key()
            .reduce(|_, new, _| new.clone(), Materialized::unnamed())
            .to_stream()
            .to("out");
    }),
    ("windowed_count", |b| {
        let windows = TimeWindows::of(60 * SECOND).grace(10 * SECOND);
        b.stream::<String, String>("in")
            .group_by_key()
            .windowed_by(windows)
            .count("win")
            .to_stream()
            .to("out");
    }),
    ("stream_table_join", |b| {
        let selected = b.stream::<String, String>("in").select_key(|_, value| value.clone());
        selected
            .join_table(&b.table::<String, String>("tab"), |_, left, right| {
                format!("{left}{right}")
            })
            .to("out");
    }),
    ("stream_global_table_join", |b| {
        let global = b.global_table::<String, String>("g");
        let first = b.stream::<String, String>("in");
        first
            .left_join_global(&global, |_, value| value.clone(), |_, left, _| left.clone())
            .to("out");
        let second = b.stream::<String, String>("in2");
        second
            .join_global(
                &global,
                |_, value| value.clone(),
                |_, left, right| format!("{left}{right}"),
            )
            .to("out2");
    }),
    ("table_ops_materialized", |b| {
        let filtered = b.table::<String, String>("a").filter_with(|_, _| true, "f");
        let mapped = filtered.map_values(|_, value| value.clone());
        mapped
            .map_values_with(|_, value| value.clone(), Materialized::with(Utf8, Utf8))
            .to_stream()
            .to("out");
    }),
    ("merge_split_repartition", |b| {
        let split = b.stream::<String, String>("in").split().named("sp-");
        let x = split.branch("x", |_, _| true);
        split.branch(Branched::unnamed(), |_, _| false);
        let rest = split.default_branch("rest");
        x.merge(&rest)
            .repartition_with(Repartitioned::named("rp").partitions(5))
            .to("out");
    }),
    ("split_unnamed_repartition_unnamed", |b| {
        let split = b.stream::<String, String>("in").split();
        split.branch(Branched::unnamed(), |_, _| true);
        split.branch(Branched::unnamed(), |_, _| false);
        split
            .default_branch(Branched::unnamed())
            .repartition()
            .peek(|_, _| {})
            .to("out");
    }),
    ("merge_repartition_topics", |b| {
        let mapped = b
            .stream::<String, String>("in")
            .map(|key, value| (value.clone(), key.clone()));
        mapped.group_by_key().count("c").to_stream().for_each(|_, _| {});
        mapped
            .group_by_key()
            .reduce(|_, new, _| new.clone(), "r")
            .to_stream()
            .for_each(|_, _| {});
        mapped.to("out");
    }),
    ("reuse_ktable_source_topic", |b| {
        b.table_with("tab", Consumed::<String, String>::default(), "t")
            .to_stream()
            .to("out");
    }),
    ("to_table_after_key_change", |b| {
        let selected = b
            .stream::<String, Option<String>>("in")
            .select_key(|key, _| key.clone());
        selected
            .to_table(Materialized::<String, String>::unnamed())
            .to_stream()
            .to("out");
    }),
];

struct Swallow;

impl Processor<String, String, String, String> for Swallow {
    fn process(
        &mut self,
        _: &mut ProcessorContext<'_, String, String>,
        _: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        Ok(())
    }
}

const TABLES: [Program; 3] = [
    ("table_table_join", |b| {
        let (left, right) = (b.table::<String, String>("a"), b.table::<String, String>("b"));
        left.join(&right, |_, left, right| format!("{left}{right}"))
            .to_stream()
            .to("out");
    }),
    ("table_table_outer_join_materialized", |b| {
        let (left, right) = (b.table::<String, String>("a"), b.table::<String, String>("b"));
        let joined = left.outer_join_with(&right, |_, left, right| format!("{left:?}{right:?}"), "joined");
        joined.named("tj").to_stream().to("out");
    }),
    ("table_group_by", |b| {
        let grouped = b
            .table::<String, String>("a")
            .group_by(|key, value| (value.clone(), key.clone()));
        grouped.count(Materialized::unnamed()).to_stream().to("out");
    }),
];

const FOREIGN: [Program; 2] = [
    ("fk_join", |b| {
        let (left, right) = (b.table::<String, String>("l"), b.table::<String, String>("r"));
        let joined = left.join_foreign_key(
            &right,
            |_, value| Some(value.clone()),
            |_, left, right| format!("{left}{right}"),
        );
        joined.to_stream().to("out");
    }),
    ("fk_join_named", |b| {
        let (left, right) = (b.table::<String, String>("l"), b.table::<String, String>("r"));
        let joined = left.left_join_foreign_key_with(
            &right,
            |_, value| Some(value.clone()),
            |_, left, _| left.clone(),
            TableJoined::named("fk"),
            "out-store",
        );
        joined.to_stream().to("out");
    }),
];

const MORE: [Program; 4] = [
    // Java's generator called it so; its sink is a plain one.
    ("pattern_source_dynamic_sink", |b| {
        b.stream_pattern::<String, String>("in-.*", Consumed::default())
            .to("o1");
    }),
    ("stream_table_join_grace", |b| {
        let stream = b.stream::<String, String>("in");
        let versioned = Materialized::named("vt").versioned(HOUR);
        let table = b.table_with::<String, String>("tab", Consumed::default(), versioned);
        let joined = Joined::default().grace(10 * SECOND);
        stream
            .join_table_with(&table, |_, left, right| format!("{left}{right}"), joined)
            .to("out");
    }),
    ("duplicate_sources_merged", |b| {
        b.stream::<String, String>("in").to("o1");
        b.stream::<String, String>("in").to("o2");
    }),
    ("process_with_store", |b| {
        b.add_state_store(Stores::key_value::<String, String>("st"));
        b.stream::<String, String>("in")
            .process_with(|| Swallow, Connect::stores(["st"]))
            .to("out");
    }),
];

fn join_windows() -> JoinWindows {
    JoinWindows::of(10 * SECOND).grace(5 * SECOND)
}

const STREAM_JOINS: [Program; 5] = [
    ("stream_stream_inner_join", |b| {
        let (left, right) = (b.stream::<String, String>("l"), b.stream::<String, String>("r"));
        left.join(&right, |_, left, right| format!("{left}{right}"), join_windows())
            .to("out");
    }),
    ("stream_stream_left_join", |b| {
        let (left, right) = (b.stream::<String, String>("l"), b.stream::<String, String>("r"));
        left.left_join(&right, |_, left, right| format!("{left}{right:?}"), join_windows())
            .to("out");
    }),
    ("stream_stream_outer_join", |b| {
        let (left, right) = (b.stream::<String, String>("l"), b.stream::<String, String>("r"));
        left.outer_join(&right, |_, left, right| format!("{left:?}{right:?}"), join_windows())
            .to("out");
    }),
    ("stream_stream_outer_join_named", |b| {
        let left = b.stream::<String, String>("l").select_key(|_, value| value.clone());
        let right = b.stream::<String, String>("r").select_key(|_, value| value.clone());
        let how = StreamJoined::with(Utf8, Utf8, Utf8).store_named("st").with_name("jn");
        left.outer_join_with(
            &right,
            |_, left, right| format!("{left:?}{right:?}"),
            join_windows(),
            how,
        )
        .to("out");
    }),
    ("self_join", |b| {
        let stream = b.stream::<String, String>("in");
        stream
            .join(&stream, |_, left, right| format!("{left}{right}"), join_windows())
            .to("out");
    }),
];

const WINDOWS: [Program; 5] = [
    ("cogroup", |b| {
        let first = b.stream::<String, String>("a").group_by_key();
        let second = b.stream::<String, String>("b").select_key(|_, value| value.clone());
        first
            .cogroup(|_, value, all: String| all + value)
            .cogroup(&second.group_by_key(), |_, value, all| all + value)
            .aggregate(String::new, Materialized::unnamed())
            .to_stream()
            .to("out");
    }),
    ("suppress_unnamed", |b| {
        let grouped = b.stream::<String, String>("in").group_by_key();
        grouped
            .windowed_by(TimeWindows::of(60 * SECOND).grace(10 * SECOND))
            .count(Materialized::unnamed())
            .suppress(Suppressed::until_window_closes())
            .to_stream()
            .for_each(|_, _| {});
    }),
    ("suppress_named", |b| {
        let grouped = b.stream::<String, String>("in").group_by_key();
        grouped
            .windowed_by(TimeWindows::of(60 * SECOND).grace(10 * SECOND))
            .count("w")
            .suppress(Suppressed::until_window_closes().with_name("sup"))
            .to_stream()
            .for_each(|_, _| {});
    }),
    ("session_count_unnamed", |b| {
        let grouped = b.stream::<String, String>("in").group_by_key();
        grouped
            .windowed_by(SessionWindows::of(30 * SECOND).grace(5 * SECOND))
            .count(Materialized::unnamed())
            .to_stream()
            .for_each(|_, _| {});
    }),
    ("sliding_reduce", |b| {
        let grouped = b.stream::<String, String>("in").group_by_key();
        grouped
            .windowed_by(SlidingWindows::of(30 * SECOND).grace(5 * SECOND))
            .reduce(|_, new, _| new.clone(), Materialized::unnamed())
            .to_stream()
            .for_each(|_, _| {});
    }),
];

fn programs() -> BTreeMap<&'static str, fn(&StreamsBuilder)> {
    PROGRAMS
        .into_iter()
        .chain(TABLES)
        .chain(FOREIGN)
        .chain(MORE)
        .chain(STREAM_JOINS)
        .chain(WINDOWS)
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

#[test]
fn our_topologies_equal_javas() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let programs = programs();
    let mut compared = 0;
    for case in golden["topologies"].as_array().unwrap() {
        let Some(program) = programs.get(text(case, "name")) else {
            continue;
        };
        let optimization = Optimization::parse(text(case, "topology.optimization")).unwrap();
        let builder = StreamsBuilder::new();
        program(&builder);
        let topology = builder.build_with(&TopologyConfig { optimization }).unwrap();
        assert_eq!(topology.describe(), text(case, "describe"), "{}", text(case, "name"));
        let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
        // Java leaves out a sub-topology whose topics are not known yet, those of a pattern.
        let known = plan.subtopologies.iter().filter(|sub| !sub.source_topics.is_empty());
        let topics: Vec<Value> = known.map(topics_of).collect();
        assert_eq!(&Value::from(topics), &case["topics"], "{}", text(case, "name"));
        assert_eq!(
            copartitions(&plan),
            as_sets(&case["copartition_groups"]),
            "{}",
            text(case, "name")
        );
        compared += 1;
    }
    assert_eq!(compared, 36);
}

#[test]
fn every_golden_topology_is_compared() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let names: BTreeSet<&str> = golden["topologies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| text(case, "name"))
        .collect();
    let known: BTreeSet<&str> = programs().into_keys().collect();
    assert_eq!(known, names);
}

/// A sub-topology's topics in the shape of the golden file.
fn topics_of(plan: &SubtopologyPlan) -> Value {
    let configs = |topic: &InternalTopic| {
        let own = topic
            .configs
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.clone())));
        let count = topic
            .partitions
            .map(|count| ("#partitions".to_owned(), Value::from(count)));
        own.chain(count).collect::<serde_json::Map<_, _>>()
    };
    let named = |topic: &InternalTopic| (topic.name.to_string(), Value::from(configs(topic)));
    let created = plan.changelogs.iter().filter(|changelog| !changelog.source_topic);
    json!({
        "subtopology": plan.id,
        "sources": plan.source_topics.keys().map(ToString::to_string).collect::<Vec<_>>(),
        "sinks": plan.sink_topics.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "changelogs": plan.changelogs.iter().map(|changelog| named(&changelog.topic)).collect::<serde_json::Map<_, _>>(),
        "changelogs_to_create": created.map(|changelog| changelog.topic.name.to_string()).collect::<Vec<_>>(),
        "repartition": plan.repartition_sources.iter().map(named).collect::<serde_json::Map<_, _>>(),
    })
}

fn copartitions(plan: &TopologyPlan) -> BTreeSet<BTreeSet<String>> {
    plan.copartition_groups
        .iter()
        .map(|group| group.iter().map(ToString::to_string).collect())
        .collect()
}

fn as_sets(groups: &Value) -> BTreeSet<BTreeSet<String>> {
    let names = |group: &Value| {
        group
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    groups.as_array().unwrap().iter().map(names).collect()
}
