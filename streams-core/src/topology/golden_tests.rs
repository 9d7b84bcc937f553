#![cfg(test)]
//! Texts and topics written by Kafka Streams 4.4: each text is parsed back into a topology, which must then describe
//! and plan itself exactly so.
//!
//! What a text does not tell is taken from what its DSL program says: the kinds of stores, reused source topics, given
//! partition counts. Nodes are written per sub-topology by their numbers, those of given names at their printed place.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::test_support::{node, source, store};
use super::{
    AutoOffsetReset, ChangelogDefinition, ChangelogKind, InternalTopicDefaults, SinkTopic, SourceTopic,
    StoreDefinition, Topology, TopologyPlan,
};

const GOLDEN: &str = include_str!("../../../tests/golden/golden-formats.json");

/// The topology that reads a pattern of topics, which a streams group does not know and we do not offer.
const NOT_OFFERED: [&str; 1] = ["pattern_source_dynamic_sink"];

/// A node as its text tells it.
#[derive(Debug)]
struct ParsedNode {
    kind: String,
    name: String,
    /// The topics of a source, the stores of a processor, the topic of a sink.
    items: Vec<String>,
    parents: Vec<String>,
}

struct ParsedGroup {
    global: bool,
    nodes: Vec<ParsedNode>,
}

fn list(text: &str) -> Vec<String> {
    text.split(", ")
        .filter(|item| !item.is_empty() && *item != "none")
        .map(str::to_owned)
        .collect()
}

fn parse(text: &str) -> Vec<ParsedGroup> {
    let mut groups: Vec<ParsedGroup> = Vec::new();
    for line in text.lines().skip(1) {
        let words = line.trim_start();
        if words.starts_with("Sub-topology: ") {
            groups.push(ParsedGroup {
                global: words.contains("for global store"),
                nodes: Vec::new(),
            });
        } else if let Some(parents) = words.strip_prefix("<-- ") {
            groups.last_mut().unwrap().nodes.last_mut().unwrap().parents = list(parents);
        } else if let Some((kind, rest)) = words.split_once(": ").filter(|_| !words.starts_with("-->")) {
            let (name, items) = rest.split_once(" (").unwrap();
            let items = items
                .split_once(": ")
                .unwrap()
                .1
                .trim_end_matches(')')
                .trim_matches(['[', ']']);
            let node = ParsedNode {
                kind: kind.into(),
                name: name.into(),
                items: list(items),
                parents: Vec::new(),
            };
            groups.last_mut().unwrap().nodes.push(node);
        }
    }
    groups
}

/// The number at the end of a generated name.
fn number(name: &str) -> Option<u64> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    (digits >= 10).then(|| name[name.len() - digits..].parse().unwrap())
}

/// The nodes of a group, parents first; among those that are free, the lowest number first, then the printed place.
fn writing_order(mut nodes: Vec<ParsedNode>) -> Vec<ParsedNode> {
    let mut written: Vec<ParsedNode> = Vec::new();
    while !nodes.is_empty() {
        let free = |node: &ParsedNode| {
            node.parents
                .iter()
                .all(|parent| written.iter().any(|other| other.name == *parent))
        };
        let next = (0..nodes.len())
            .filter(|at| free(&nodes[*at]))
            .min_by_key(|at| (number(&nodes[*at].name).unwrap_or(0), *at));
        let next = next.expect("a parent is missing");
        written.push(nodes.remove(next));
    }
    written
}

/// What the DSL program says of a store's kind.
fn changelog_kind(case: &str, store: &str) -> ChangelogKind {
    let windowed = |retention_ms| ChangelogKind::Windowed { retention_ms };
    let join_parts = [
        "JOINTHIS-",
        "JOINOTHER-",
        "OUTERTHIS-",
        "OUTEROTHER-",
        "-this-join-store",
        "-other-join-store",
    ];
    let is_join = case.starts_with("stream_stream_") || case == "self_join";
    match (case, store) {
        // 60 s windows with 10 s of grace.
        ("windowed_count", "win") | ("suppress_named", "w") => windowed(70_000),
        ("suppress_unnamed", "KSTREAM-AGGREGATE-STATE-STORE-0000000001") => windowed(70_000),
        // A gap of 30 s with 5 s of grace.
        ("session_count_unnamed", _) => windowed(35_000),
        // Twice 30 s with 5 s of grace.
        ("sliding_reduce", _) => windowed(65_000),
        ("stream_table_join_grace", "vt") => ChangelogKind::Versioned {
            history_retention_ms: 3_600_000,
        },
        // 10 s before and after with 5 s of grace.
        _ if is_join && join_parts.iter().any(|part| store.contains(part)) => {
            ChangelogKind::JoinWindow { retention_ms: 25_000 }
        }
        _ => ChangelogKind::KeyValue,
    }
}

/// With optimization a table's source topic is its changelog.
fn reused_source<'a>(case: &str, optimization: &str, store: &'a str) -> Option<&'a str> {
    let table = store
        .split_once("-STATE-STORE-")
        .map(|(topic, _)| topic)
        .filter(|topic| !topic.contains('-'));
    match (optimization, case) {
        ("all", "reuse_ktable_source_topic") => Some("tab"),
        ("all", "table_table_outer_join_materialized" | "fk_join_named") => table,
        _ => None,
    }
}

struct Case<'a> {
    name: &'a str,
    optimization: &'a str,
    text: &'a str,
    value: &'a Value,
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn cases(golden: &Value) -> Vec<Case<'_>> {
    let case = |value| Case {
        name: text(value, "name"),
        optimization: text(value, "topology.optimization"),
        text: text(value, "describe"),
        value,
    };
    golden["topologies"].as_array().unwrap().iter().map(case).collect()
}

fn rebuild(case: &Case<'_>) -> Topology {
    let groups = parse(case.text);
    let topics = |kind: &str| -> BTreeSet<String> {
        let nodes = groups
            .iter()
            .flat_map(|group| &group.nodes)
            .filter(|node| node.kind == kind);
        nodes.flat_map(|node| node.items.clone()).collect()
    };
    let internal: BTreeSet<String> = topics("Source").intersection(&topics("Sink")).cloned().collect();
    let topic = |name: &str| SourceTopic {
        name: name.into(),
        internal: internal.contains(name),
    };
    let mut topology = Topology::new();
    for name in &internal {
        topology.repartition_topic(name, (name == "rp-repartition").then_some(5));
    }
    for group in groups {
        let nodes = writing_order(group.nodes);
        if group.global {
            let [from, to] = &nodes[..] else {
                panic!("{}", case.name)
            };
            let store = StoreDefinition {
                changelog: None,
                ..store(&to.items[0])
            };
            topology.add_global_store(store, &from.items[0], (&from.name, source()), (&to.name, node()));
            continue;
        }
        for parsed in nodes {
            let parents: Vec<&str> = parsed.parents.iter().map(String::as_str).collect();
            match parsed.kind.as_str() {
                "Source" => {
                    let topics = parsed.items.iter().map(|name| topic(name)).collect();
                    topology.add_source(&parsed.name, topics, AutoOffsetReset::Configured, source());
                }
                "Sink" => {
                    topology.add_sink(
                        &parsed.name,
                        &parents,
                        SinkTopic::Static(topic(&parsed.items[0])),
                        node(),
                    );
                }
                _ => {
                    topology.add_processor(&parsed.name, &parents, node());
                    for name in &parsed.items {
                        add_store(&mut topology, case, name);
                        topology.connect_store(&parsed.name, name);
                    }
                }
            }
        }
    }
    for group in case.value["copartition_groups"].as_array().unwrap() {
        let names = group.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        topology.copartition(
            names
                .map(|name| topic(name.strip_prefix("app-").unwrap_or(name)))
                .collect(),
        );
    }
    topology
}

fn add_store(topology: &mut Topology, case: &Case<'_>, name: &str) {
    if topology.store(name).is_none() {
        let mut changelog = ChangelogDefinition::new(changelog_kind(case.name, name));
        if let Some(topic) = reused_source(case.name, case.optimization, name) {
            changelog = changelog.in_source_topic(topic);
        }
        topology.add_store(StoreDefinition {
            changelog: Some(changelog),
            ..store(name)
        });
    }
}

fn offered(golden: &Value) -> Vec<Case<'_>> {
    cases(golden)
        .into_iter()
        .filter(|case| !NOT_OFFERED.contains(&case.name))
        .collect()
}

#[test]
fn descriptions_equal_javas_byte_for_byte() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let cases = offered(&golden);
    let mut texts = 0;
    for case in &cases {
        let topology = rebuild(case);
        topology
            .validate()
            .unwrap_or_else(|findings| panic!("{}: {findings}", case.name));
        assert_eq!(topology.describe(), case.text, "{} ({})", case.name, case.optimization);
        texts += case.text.matches("Sub-topology: ").count();
    }
    assert_eq!((cases.len(), texts), (35, 53));
}

#[test]
fn topics_configs_and_groups_equal_javas() {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let (mut subtopologies, mut groups) = (0, 0);
    for case in offered(&golden) {
        let plan = rebuild(&case).plan("app", &InternalTopicDefaults::default()).unwrap();
        let expected = case.value["topics"].as_array().unwrap();
        assert_eq!(plan.subtopologies.len(), expected.len(), "{}", case.name);
        for (planned, expected) in plan.subtopologies.iter().zip(expected) {
            assert_eq!(
                &subtopology_value(planned),
                expected,
                "{} ({})",
                case.name,
                case.optimization
            );
            subtopologies += 1;
        }
        let expected = case.value["copartition_groups"].as_array().unwrap();
        assert_eq!(&group_values(&plan), &as_sets(expected), "{}", case.name);
        groups += expected.len();
    }
    assert_eq!((subtopologies, groups), (52, 15));
}

/// A sub-topology in the shape of the golden file.
fn subtopology_value(planned: &super::SubtopologyPlan) -> Value {
    let configs = |topic: &super::InternalTopic| {
        let mut map: BTreeMap<String, Value> = topic
            .configs
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.clone())))
            .collect();
        if let Some(partitions) = topic.partitions {
            map.insert("#partitions".into(), partitions.into());
        }
        map
    };
    let changelogs: BTreeMap<String, _> = planned
        .changelogs
        .iter()
        .map(|changelog| (changelog.topic.name.to_string(), configs(&changelog.topic)))
        .collect();
    let to_create = planned.changelogs.iter().filter(|changelog| !changelog.source_topic);
    let repartition: BTreeMap<String, _> = planned
        .repartition_sources
        .iter()
        .map(|topic| (topic.name.to_string(), configs(topic)))
        .collect();
    serde_json::json!({
        "subtopology": planned.id,
        "sources": planned.source_topics.keys().map(ToString::to_string).collect::<Vec<_>>(),
        "sinks": planned.sink_topics.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "changelogs": changelogs,
        "changelogs_to_create": to_create.map(|changelog| changelog.topic.name.to_string()).collect::<Vec<_>>(),
        "repartition": repartition,
    })
}

fn group_values(plan: &TopologyPlan) -> BTreeSet<BTreeSet<String>> {
    plan.copartition_groups
        .iter()
        .map(|group| group.iter().map(|topic| topic.to_string()).collect())
        .collect()
}

fn as_sets(groups: &[Value]) -> BTreeSet<BTreeSet<String>> {
    let names = |group: &Value| {
        group
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    groups.iter().map(names).collect()
}
