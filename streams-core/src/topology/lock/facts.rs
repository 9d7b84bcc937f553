//! What is told of a topology, from the topology itself and from its plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use streams_state::{StoreKind, StoreSpec};

use super::super::{
    ChangelogPlan, InternalTopic, InternalTopicDefaults, NodeDefinition, NodeKind, SinkTopic, SourceTopic,
    SubtopologyPlan, Topology, TopologyError, TopologyPlan,
};
use super::{Facts, Section, TopologyLock};
use crate::serde::Format;

/// Stands for the application id, which is not in the file. The shortest, so that no name becomes too long by it.
const APPLICATION: &str = "a";

/// How internal topics begin.
const PREFIX: &str = "a-";

pub(super) fn of(topology: &Topology) -> Result<TopologyLock, TopologyError> {
    let plan = topology.plan(APPLICATION, &InternalTopicDefaults::default())?;
    let teller = Teller { topology, plan: &plan };
    let mut lock = TopologyLock::default();
    for subtopology in &plan.subtopologies {
        let facts = teller.subtopology(subtopology);
        lock.sections.insert(Section::Subtopology(subtopology.id), facts);
        for store in &subtopology.stores {
            let changelog = subtopology
                .changelogs
                .iter()
                .find(|changelog| changelog.store == *store);
            if let Some(facts) = teller.store(store, changelog) {
                lock.sections.insert(Section::Store(store.to_string()), facts);
            }
        }
        for topic in &subtopology.repartition_sources {
            let name = undecorated(&topic.name).to_owned();
            let facts = teller.repartition(&name, topic);
            lock.sections.insert(Section::Repartition(name), facts);
        }
    }
    for global in topology.global_stores() {
        if let Some(mut facts) = teller.store(&global.store, None) {
            facts.insert("changelog".to_owned(), format!("topic {}", global.topic));
            facts.insert("from".to_owned(), global.topic.to_string());
            facts.insert("global".to_owned(), "yes".to_owned());
            lock.sections.insert(Section::Store(global.store.to_string()), facts);
        }
    }
    Ok(lock)
}

fn undecorated(internal: &str) -> &str {
    internal.strip_prefix(PREFIX).unwrap_or(internal)
}

fn joined<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let sorted: BTreeSet<&str> = names.into_iter().collect();
    sorted.into_iter().collect::<Vec<_>>().join(", ")
}

fn put(facts: &mut Facts, key: &str, value: impl ToString) {
    // One fact is one line, whatever a serde calls its format.
    let value = value.to_string().replace(char::is_control, " ");
    facts.insert(key.to_owned(), value.trim().to_owned());
}

fn put_format(facts: &mut Facts, what: &str, format: &Format) {
    put(facts, what, &format.format);
    put(facts, &format!("{what}.type"), &format.type_name);
}

fn put_configs(facts: &mut Facts, prefix: &str, configs: &BTreeMap<String, String>) {
    for (key, value) in configs {
        put(facts, &format!("{prefix}.{key}"), value);
    }
}

struct Teller<'a> {
    topology: &'a Topology,
    plan: &'a TopologyPlan,
}

impl Teller<'_> {
    /// The name of a topic without the application id.
    fn shown(&self, topic: &str) -> String {
        if self.plan.reads_repartition(topic) {
            undecorated(topic).to_owned()
        } else {
            topic.to_owned()
        }
    }

    fn subtopology(&self, plan: &SubtopologyPlan) -> Facts {
        let mut facts = Facts::new();
        let reads: Vec<String> = plan.source_topics.keys().map(|topic| self.shown(topic)).collect();
        put(&mut facts, "reads", joined(reads.iter().map(String::as_str)));
        let repartitions = plan.repartition_sinks.iter().map(|topic| undecorated(topic));
        put(&mut facts, "repartitions", joined(repartitions));
        put(&mut facts, "stores", joined(plan.stores.iter().map(|store| &**store)));
        let equal = plan.copartition_groups.iter().map(|group| {
            let topics: Vec<String> = group.iter().map(|topic| self.shown(topic)).collect();
            joined(topics.iter().map(String::as_str))
        });
        let equal: BTreeSet<String> = equal.collect();
        put(
            &mut facts,
            "equal.partitions",
            equal.into_iter().collect::<Vec<_>>().join("; "),
        );
        facts.retain(|_, value| !value.is_empty());
        facts
    }

    fn store(&self, name: &Arc<str>, changelog: Option<&ChangelogPlan>) -> Option<Facts> {
        let definition = self.topology.store(name)?;
        let mut facts = Facts::new();
        put_layout(&mut facts, &definition.spec);
        if let Some(formats) = definition.factory.formats() {
            put_format(&mut facts, "key", &formats.key);
            put_format(&mut facts, "value", &formats.value);
            if let Some(size_ms) = formats.window_size_ms {
                put(&mut facts, "window.size.ms", size_ms);
            }
        }
        if definition.factory.is_timestamped() {
            put(&mut facts, "value.time", "in front");
        }
        // The node that was written first is the one that fills it; others look into it.
        let filler = self.topology.nodes().iter().find(|node| node.stores.contains(name));
        put(
            &mut facts,
            "from",
            joined(self.origins(filler.into_iter()).iter().map(String::as_str)),
        );
        match changelog {
            None => put(&mut facts, "changelog", "off"),
            Some(changelog) if changelog.source_topic => {
                put(&mut facts, "changelog", format!("topic {}", changelog.topic.name));
            }
            Some(changelog) => {
                put(&mut facts, "changelog", undecorated(&changelog.topic.name));
                put_configs(&mut facts, "changelog", &changelog.topic.configs);
            }
        }
        Some(facts)
    }

    fn repartition(&self, name: &str, topic: &InternalTopic) -> Facts {
        let mut facts = Facts::new();
        put_configs(&mut facts, "config", &topic.configs);
        let writers: Vec<&NodeDefinition> = self.topology.nodes().iter().filter(|node| writes(node, name)).collect();
        for writer in &writers {
            if let NodeKind::Sink { factory, .. } = &writer.kind
                && let Some((key, value)) = factory.written()
            {
                put_format(&mut facts, "key", &key);
                put_format(&mut facts, "value", &value);
            }
        }
        let origins = self.origins(writers.into_iter());
        put(&mut facts, "from", joined(origins.iter().map(String::as_str)));
        let feeders = self
            .plan
            .subtopologies
            .iter()
            .filter(|plan| plan.repartition_sinks.contains(&topic.name));
        let feeders: Vec<String> = feeders
            .flat_map(|plan| plan.source_topics.keys())
            .map(|topic| self.shown(topic))
            .collect();
        let partitions = match topic.partitions {
            Some(count) => count.to_string(),
            None => format!(
                "as many as the largest of {}",
                joined(feeders.iter().map(String::as_str))
            ),
        };
        put(&mut facts, "partitions", partitions);
        facts
    }

    /// The topics of others from which records come to these nodes, through repartition topics too.
    fn origins<'n>(&self, nodes: impl Iterator<Item = &'n NodeDefinition>) -> BTreeSet<String> {
        let indices = self.topology.node_indices();
        let mut waiting: Vec<&str> = nodes.map(|node| &*node.name).collect();
        let (mut seen, mut origins) = (BTreeSet::new(), BTreeSet::new());
        while let Some(name) = waiting.pop() {
            let node = indices.get(name).and_then(|at| self.topology.nodes().get(*at));
            let Some(node) = node.filter(|_| seen.insert(name.to_owned())) else {
                continue;
            };
            waiting.extend(node.parents.iter().map(|parent| &**parent));
            let NodeKind::Source { topics, .. } = &node.kind else {
                continue;
            };
            for topic in topics {
                if topic.internal {
                    let writers = self.topology.nodes().iter().filter(|node| writes(node, &topic.name));
                    waiting.extend(writers.map(|writer| &*writer.name));
                } else {
                    origins.insert(topic.name.to_string());
                }
            }
        }
        origins
    }
}

/// Whether a node is a sink of this repartition topic.
fn writes(node: &NodeDefinition, repartition: &str) -> bool {
    matches!(
        &node.kind,
        NodeKind::Sink { topic: SinkTopic::Static(SourceTopic { name, internal: true }), .. } if &**name == repartition
    )
}

fn put_layout(facts: &mut Facts, spec: &StoreSpec) {
    let kind = match spec.kind {
        StoreKind::KeyValue => "key-value",
        StoreKind::Window {
            retention_ms,
            retain_duplicates,
            ..
        } => {
            put(facts, "retention.ms", retention_ms);
            if retain_duplicates { "join-window" } else { "window" }
        }
        StoreKind::Session { retention_ms, .. } => {
            put(facts, "retention.ms", retention_ms);
            "session"
        }
        StoreKind::Versioned {
            history_retention_ms, ..
        } => {
            put(facts, "history.ms", history_retention_ms);
            "versioned"
        }
        StoreKind::Expiring { default_ttl_ms } => {
            put(facts, "ttl.ms", default_ttl_ms);
            "expiring"
        }
        _ => "other",
    };
    put(facts, "kind", kind);
    put(facts, "place", if spec.persistent { "disk" } else { "memory" });
}
