//! `describe()`: the topology as text, byte for byte Java's.
//!
//! Java fills sorted sets while the sizes that they are sorted by still change, and never sorts them again; so the
//! order in which nodes are linked shows. That order is the one of a hash map filled from a hash set of the nodes'
//! names (`described`). Source: `InternalTopologyBuilder.describe`, `describeSubtopology`, `updateSize`,
//! `NODE_COMPARATOR`, and the `toString` methods of its description classes.

use std::fmt::Write as _;

use super::described::{DescribedGroup, DescribedNode};
use super::{NodeKind, SinkTopic, Topology};

impl Topology {
    /// The topology as text: sub-topologies with their nodes, topics, stores and links. Internal topics stand there
    /// without the application id. Tools that draw Java's topologies understand it; [`to_mermaid`](Self::to_mermaid) and
    /// [`to_dot`](Self::to_dot) draw it.
    ///
    /// Java: `Topology.describe().toString()`, byte for byte.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::from("Topologies:\n ");
        for group in self.described() {
            // Writing to a string does not fail.
            let _ = write_group(&mut text, &group);
        }
        text
    }
}

fn write_group(text: &mut String, group: &DescribedGroup<'_>) -> std::fmt::Result {
    write!(text, "  Sub-topology: {}", group.id)?;
    if group.global {
        write!(text, " for global store (will not generate tasks)")?;
    }
    writeln!(text)?;
    for node in &group.nodes {
        write_node(text, node)?;
    }
    if group.global { Ok(()) } else { writeln!(text) }
}

fn write_node(text: &mut String, node: &DescribedNode<'_>) -> std::fmt::Result {
    let name = &node.definition.name;
    match &node.definition.kind {
        NodeKind::Source {
            pattern: Some(pattern), ..
        } => writeln!(text, "    Source: {name} (topics: {})", pattern.as_str())?,
        NodeKind::Source { topics, .. } => {
            let topics: Vec<&str> = topics.iter().map(|topic| &*topic.name).collect();
            writeln!(text, "    Source: {name} (topics: [{}])", topics.join(", "))?;
        }
        NodeKind::Processor { .. } => {
            writeln!(text, "    Processor: {name} (stores: [{}])", node.stores.join(", "))?;
        }
        NodeKind::Sink {
            topic: SinkTopic::Static(topic),
            ..
        } => {
            writeln!(text, "    Sink: {name} (topic: {})", topic.name)?;
        }
        NodeKind::Sink {
            topic: SinkTopic::Dynamic(extractor),
            ..
        } => {
            writeln!(text, "    Sink: {name} (extractor class: {extractor})")?;
        }
    }
    if !matches!(node.definition.kind, NodeKind::Sink { .. }) {
        writeln!(text, "      --> {}", names(&node.successors))?;
    }
    if !matches!(node.definition.kind, NodeKind::Source { .. }) {
        writeln!(text, "      <-- {}", names(&node.predecessors))?;
    }
    Ok(())
}

fn names(nodes: &[&str]) -> String {
    if nodes.is_empty() {
        "none".to_owned()
    } else {
        nodes.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{node, topology};
    use super::*;

    #[test]
    fn an_empty_topology_is_its_header() {
        assert_eq!(Topology::new().describe(), "Topologies:\n ");
    }

    #[test]
    fn topics_print_in_the_given_order_and_a_dynamic_sink_prints_its_extractor() {
        let mut topology = topology(&["source s: b a"]);
        topology.add_sink("k", &["s"], SinkTopic::Dynamic("by_country".into()), node());
        let expected = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [b, a])\n      --> k\n    \
                        Sink: k (extractor class: by_country)\n      <-- s\n\n";
        assert_eq!(topology.describe(), expected);
    }

    #[test]
    fn a_connection_to_a_global_store_does_not_show() {
        let topology = topology(&["global g: tg gs gp", "source s: t", "proc p < s [g own]"]);
        let text = topology.describe();
        assert!(text.contains("Processor: gp (stores: [g])"), "{text}");
        assert!(text.contains("Processor: p (stores: [own])"), "{text}");
    }

    #[test]
    fn a_ladder_of_diamonds_is_described_at_once() {
        // 2^60 ways from top to bottom: walking them all would not end.
        let mut lines = vec!["source n0: t".to_owned()];
        for rung in 0..60 {
            lines.push(format!("proc a{rung} < n{rung}"));
            lines.push(format!("proc b{rung} < n{rung}"));
            lines.push(format!("proc n{} < a{rung} b{rung}", rung + 1));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(topology(&lines).describe().matches("Processor: ").count(), 180);
    }
}
