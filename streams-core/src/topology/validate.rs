//! What is wrong with a topology, all of it at once.

use std::collections::{BTreeMap, BTreeSet};

use super::clock_size::{MAX_METADATA_CHARACTERS, metadata_characters};
use super::{NodeDefinition, NodeKind, SinkTopic, SourceTopic, Topology, TopologyError};

/// The longest name of a node, store or topic.
const MAX_NAME_CHARACTERS: usize = 249;

/// Checks a name by the rule of topic names. Source: `Named.validate`, `Topic.validate`.
///
/// # Errors
/// [`TopologyError::InvalidName`].
pub(crate) fn check_name(name: &str) -> Result<(), TopologyError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let fits = !name.is_empty() && name.len() <= MAX_NAME_CHARACTERS && name != "." && name != "..";
    if fits && name.bytes().all(legal) {
        Ok(())
    } else {
        Err(TopologyError::InvalidName { name: name.to_owned() })
    }
}

impl Topology {
    /// Checks everything that can be checked without a cluster.
    ///
    /// # Errors
    /// The finding, or [`TopologyError::Several`] with all of them.
    pub fn validate(&self) -> Result<(), TopologyError> {
        let mut findings = self.problems.clone();
        self.check_names(&mut findings);
        self.check_links(&mut findings);
        self.check_stores(&mut findings);
        self.check_topics(&mut findings);
        self.check_copartitioning(&mut findings);
        self.check_clocks(&mut findings);
        TopologyError::all(findings)
    }

    fn check_names(&self, findings: &mut Vec<TopologyError>) {
        let nodes = self.nodes.iter().map(|node| &*node.name);
        let topics = self.nodes.iter().flat_map(topics_of).map(|topic| &*topic.name);
        let all: BTreeSet<&str> = nodes
            .chain(topics)
            .chain(self.stores.keys().map(|n| &**n))
            .chain(self.repartition_topics.keys().map(|n| &**n))
            .collect();
        findings.extend(all.into_iter().filter_map(|name| check_name(name).err()));
        let mut seen = BTreeSet::new();
        for node in self.nodes.iter().filter(|node| !seen.insert(&node.name)) {
            findings.push(TopologyError::Duplicate {
                what: "node",
                name: node.name.to_string(),
            });
        }
    }

    fn check_links(&self, findings: &mut Vec<TopologyError>) {
        if !self
            .nodes
            .iter()
            .any(|node| matches!(node.kind, NodeKind::Source { .. }))
        {
            let text = "the topology reads no topic: add a source, a stream or a table";
            findings.push(TopologyError::Invalid(text.to_owned()));
        }
        let indices = self.node_indices();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.parents.is_empty() && !matches!(node.kind, NodeKind::Source { .. }) {
                findings.push(TopologyError::Invalid(format!(
                    "`{}` has no parent: name at least one",
                    node.name
                )));
            }
            for parent in &node.parents {
                let known = indices
                    .get(&**parent)
                    .filter(|at| **at < index)
                    .and_then(|at| self.nodes.get(*at));
                match known.map(|parent| &parent.kind) {
                    None => findings.push(unknown(&node.name, "parent", parent)),
                    Some(NodeKind::Sink { .. }) => findings.push(TopologyError::Invalid(format!(
                        "sink `{parent}` can't be a parent of `{}`: read its topic with a source",
                        node.name
                    ))),
                    Some(_) => {}
                }
            }
        }
    }

    fn check_stores(&self, findings: &mut Vec<TopologyError>) {
        for node in &self.nodes {
            findings.extend(
                node.stores
                    .iter()
                    .filter(|s| !self.stores.contains_key(*s))
                    .map(|s| unknown(&node.name, "store", s)),
            );
            if !node.stores.is_empty() && !matches!(node.kind, NodeKind::Processor { .. }) {
                let text = format!("`{}` can't use a store: only processors can", node.name);
                findings.push(TopologyError::Invalid(text));
            }
        }
        let used: BTreeSet<&str> = self
            .nodes
            .iter()
            .flat_map(|node| &node.stores)
            .map(|store| &**store)
            .collect();
        for store in self.stores.keys().filter(|store| !used.contains(&***store)) {
            findings.push(TopologyError::Invalid(format!(
                "store `{store}` was added, but no processor is connected to it: name it where its processor is added, or leave it out"
            )));
        }
        for global in &self.global_stores {
            if self
                .stores
                .get(&global.store)
                .is_some_and(|store| store.changelog.is_some())
            {
                findings.push(TopologyError::Invalid(format!(
                    "global store `{}` can't have a changelog, its topic is one: switch logging off",
                    global.store
                )));
            }
        }
        for group in self
            .node_groups()
            .iter()
            .filter(|group| group.global && group.nodes.len() != 2)
        {
            let nodes = group.nodes.iter().filter_map(|node| self.nodes.get(*node));
            let names: Vec<&str> = nodes.map(|node| &*node.name).collect();
            findings.push(TopologyError::Invalid(format!(
                "a global store is filled by one source and one processor, and nothing else can be linked to them: {}",
                names.join(", ")
            )));
        }
    }

    fn check_topics(&self, findings: &mut Vec<TopologyError>) {
        let mut readers: BTreeMap<&SourceTopic, &NodeDefinition> = BTreeMap::new();
        for node in &self.nodes {
            let topics = topics_of(node);
            if topics.is_empty() && matches!(node.kind, NodeKind::Source { pattern: None, .. }) {
                findings.push(TopologyError::Invalid(format!(
                    "source `{}` reads no topic: name at least one",
                    node.name
                )));
            }
            for topic in topics
                .iter()
                .filter(|topic| topic.internal && !self.repartition_topics.contains_key(&topic.name))
            {
                findings.push(unknown(&node.name, "repartition topic", &topic.name));
            }
            for topic in topics.iter().filter(|_| matches!(node.kind, NodeKind::Source { .. })) {
                if let Some(first) = readers.insert(topic, node) {
                    let (first, second) = (first.name.to_string(), node.name.to_string());
                    findings.push(TopologyError::TopicReadTwice {
                        topic: topic.name.to_string(),
                        first,
                        second,
                    });
                }
            }
        }
        self.check_repartition_topics(&readers, findings);
        self.check_patterns(findings);
    }

    fn check_repartition_topics(
        &self,
        readers: &BTreeMap<&SourceTopic, &NodeDefinition>,
        findings: &mut Vec<TopologyError>,
    ) {
        let sinks = self
            .nodes
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Sink { .. }))
            .flat_map(topics_of);
        let written: BTreeSet<&SourceTopic> = sinks.collect();
        for (topic, reader) in readers
            .iter()
            .filter(|(topic, _)| topic.internal && !written.contains(*topic))
        {
            let text = format!(
                "repartition topic `{}` is read by `{}`, but nothing writes it: add a sink",
                topic.name, reader.name
            );
            findings.push(TopologyError::Invalid(text));
        }
        for (name, count) in self
            .repartition_topics
            .iter()
            .filter_map(|(name, count)| Some((name, (*count)?)))
        {
            if count < 1 {
                let text = format!("repartition topic `{name}` can't have {count} partitions: give at least 1");
                findings.push(TopologyError::Invalid(text));
            }
        }
    }

    fn check_copartitioning(&self, findings: &mut Vec<TopologyError>) {
        let sources = self
            .nodes
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Source { .. }));
        let read: BTreeSet<&SourceTopic> = sources.flat_map(topics_of).collect();
        for group in &self.copartition_groups {
            let by_pattern = |topic: &SourceTopic| self.source_patterns().any(|(_, it)| *it.as_str() == *topic.name);
            for topic in group.iter().filter(|topic| !read.contains(topic) && !by_pattern(topic)) {
                let text = format!("topic `{}` is joined, but no source reads it: add a source", topic.name);
                findings.push(TopologyError::Invalid(text));
            }
            let given = |topic: &SourceTopic| self.repartition_topics.get(&topic.name).copied().flatten();
            let counts: Option<Vec<(&SourceTopic, i32)>> = group
                .iter()
                .map(|topic| Some((topic, given(topic).filter(|_| topic.internal)?)))
                .collect();
            let Some(counts) = counts else { continue };
            if counts.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a != b)) {
                let texts: Vec<String> = counts
                    .iter()
                    .map(|(topic, count)| format!("{}: {count}", topic.name))
                    .collect();
                findings.push(TopologyError::CoPartitioning {
                    counts: texts.join(", "),
                });
            }
        }
    }

    fn check_clocks(&self, findings: &mut Vec<TopologyError>) {
        let indices = self.node_indices();
        for clock in self
            .operator_clocks
            .iter()
            .filter(|clock| !indices.contains_key(&*clock.node))
        {
            findings.push(unknown(&clock.key, "node", &clock.node));
        }
        for group in self.node_groups() {
            let characters = metadata_characters(self.clock_keys(&group.nodes));
            if characters > MAX_METADATA_CHARACTERS {
                let node = group.nodes.first().and_then(|node| self.nodes.get(*node));
                let node = node.map_or_else(String::new, |node| node.name.to_string());
                findings.push(TopologyError::OperatorClocks {
                    node,
                    characters,
                    limit: MAX_METADATA_CHARACTERS,
                });
            }
        }
    }

    /// The keys of the clocks of some nodes, sorted, each once.
    pub(crate) fn clock_keys(&self, nodes: &[usize]) -> BTreeSet<&str> {
        let names: BTreeSet<&str> = nodes
            .iter()
            .filter_map(|node| self.nodes.get(*node))
            .map(|node| &*node.name)
            .collect();
        let clocks = self.operator_clocks.iter().filter(|clock| names.contains(&*clock.node));
        clocks.map(|clock| &*clock.key).collect()
    }
}

/// The topics that a node reads or writes, as far as they are known beforehand.
pub(crate) fn topics_of(node: &NodeDefinition) -> &[SourceTopic] {
    match &node.kind {
        NodeKind::Source { topics, .. } => topics,
        NodeKind::Sink {
            topic: SinkTopic::Static(topic),
            ..
        } => std::slice::from_ref(topic),
        NodeKind::Processor { .. } | NodeKind::Sink { .. } => &[],
    }
}

fn unknown(node: &str, what: &'static str, name: &str) -> TopologyError {
    TopologyError::Unknown {
        node: node.to_owned(),
        what,
        name: name.to_owned(),
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
