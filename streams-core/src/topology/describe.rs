//! `describe()`: the topology as text, byte for byte Java's.
//!
//! Java fills sorted sets while the sizes that they are sorted by still change, and never sorts them again; so the
//! order in which nodes are linked shows. That order is the one of a hash map filled from a hash set of the nodes'
//! names. Source: `InternalTopologyBuilder.describe`, `describeSubtopology`, `updateSize`, `NODE_COMPARATOR`, and the
//! `toString` methods of its description classes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::groups::NodeGroup;
use super::{NodeDefinition, NodeKind, SinkTopic, Topology};
use crate::java_hash::JavaHashSet;

impl Topology {
    /// The topology as text: sub-topologies with their nodes, topics, stores and links. Internal topics stand there
    /// without the application id. Tools that draw Java's topologies understand it.
    ///
    /// Java: `Topology.describe().toString()`, byte for byte.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = String::from("Topologies:\n ");
        for group in self.node_groups() {
            text.push_str("  ");
            // Writing to a string does not fail.
            let _ = if group.global {
                self.write_global(&mut text, &group)
            } else {
                self.write_group(&mut text, &group)
            };
        }
        text
    }

    fn write_group(&self, text: &mut String, group: &NodeGroup) -> std::fmt::Result {
        let linked = LinkedNodes::new(self, group);
        writeln!(text, "Sub-topology: {}", group.id)?;
        for at in linked.in_order() {
            self.write_node(text, &linked, at)?;
        }
        writeln!(text)
    }

    fn write_global(&self, text: &mut String, group: &NodeGroup) -> std::fmt::Result {
        let linked = LinkedNodes::new(self, group);
        writeln!(
            text,
            "Sub-topology: {} for global store (will not generate tasks)",
            group.id
        )?;
        // Always a source and its processor, in that order.
        for at in 0..linked.nodes.len() {
            self.write_node(text, &linked, at)?;
        }
        Ok(())
    }

    fn write_node(&self, text: &mut String, linked: &LinkedNodes<'_>, at: usize) -> std::fmt::Result {
        let Some(node) = linked.nodes.get(at) else {
            return Ok(());
        };
        let name = &node.definition.name;
        match &node.definition.kind {
            NodeKind::Source { topics, .. } => {
                let topics: Vec<&str> = topics.iter().map(|topic| &*topic.name).collect();
                writeln!(text, "    Source: {name} (topics: [{}])", topics.join(", "))?;
            }
            NodeKind::Processor { .. } => {
                let stores = self.shown_stores(node.definition).join(", ");
                writeln!(text, "    Processor: {name} (stores: [{stores}])")?;
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
            writeln!(text, "      --> {}", linked.names(&node.successors))?;
        }
        if !matches!(node.definition.kind, NodeKind::Source { .. }) {
            writeln!(text, "      <-- {}", linked.names(&node.predecessors))?;
        }
        Ok(())
    }

    /// A node's stores in the order of Java's set. Global stores show only at the node that fills them, as Java
    /// connects them nowhere else.
    fn shown_stores<'a>(&'a self, node: &'a NodeDefinition) -> Vec<&'a str> {
        let fills = |store: &str| {
            self.global_stores
                .iter()
                .any(|g| &*g.store == store && g.processor == node.name)
        };
        let shown = node
            .stores
            .iter()
            .map(|store| &**store)
            .filter(|store| !self.is_global(store) || fills(store));
        let connected: JavaHashSet<&str> = shown.collect();
        // The description copies the node's set into one of its own.
        let mut copied = JavaHashSet::sized_for(connected.len());
        for store in connected {
            copied.insert(store);
        }
        copied.into_iter().collect()
    }
}

/// The nodes of a group in the order of writing, linked as Java links them.
struct LinkedNodes<'a> {
    nodes: Vec<LinkedNode<'a>>,
}

struct LinkedNode<'a> {
    definition: &'a NodeDefinition,
    /// How many nodes can be reached from here, counting one once for every way to it. Wraps, as Java's `int`.
    size: i32,
    predecessors: Vec<usize>,
    successors: Vec<usize>,
}

impl<'a> LinkedNodes<'a> {
    fn new(topology: &'a Topology, group: &NodeGroup) -> Self {
        let definitions = group.nodes.iter().filter_map(|node| topology.nodes.get(*node));
        let unlinked = |definition| LinkedNode {
            definition,
            size: 1,
            predecessors: Vec::new(),
            successors: Vec::new(),
        };
        let mut linked = LinkedNodes {
            nodes: definitions.map(unlinked).collect(),
        };
        let places: BTreeMap<&'a str, usize> = linked
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (&*node.definition.name, at))
            .collect();
        for name in linked.linking_order() {
            let Some(at) = places.get(name).copied() else { continue };
            let Some(definition) = linked.nodes.get(at).map(|node| node.definition) else {
                continue;
            };
            for parent in definition.parents.iter().filter_map(|parent| places.get(&**parent)) {
                linked.link(*parent, at);
            }
        }
        linked
    }

    /// The names in the order in which Java walks its map of nodes, which it fills from a set of the names.
    fn linking_order(&self) -> Vec<&'a str> {
        let group: JavaHashSet<&'a str> = self.nodes.iter().map(|node| &*node.definition.name).collect();
        let by_name: JavaHashSet<&'a str> = group.into_iter().collect();
        by_name.into_iter().collect()
    }

    fn link(&mut self, parent: usize, child: usize) {
        let Some(size) = self.nodes.get(child).map(|node| node.size) else {
            return;
        };
        self.insert(child, parent, |node| &mut node.predecessors);
        self.insert(parent, child, |node| &mut node.successors);
        self.grow(parent, size);
    }

    /// Puts `new` into one of the lists of the node `of`, at the place that the sizes of this moment give it.
    fn insert(&mut self, of: usize, new: usize, list: for<'n> fn(&'n mut LinkedNode<'a>) -> &'n mut Vec<usize>) {
        let Some(mut nodes) = self.nodes.get_mut(of).map(|node| std::mem::take(list(node))) else {
            return;
        };
        if !nodes.contains(&new) {
            let key = self.sort_key(new);
            let place = nodes
                .iter()
                .position(|other| self.sort_key(*other) > key)
                .unwrap_or(nodes.len());
            nodes.insert(place, new);
        }
        if let Some(node) = self.nodes.get_mut(of) {
            *list(node) = nodes;
        }
    }

    /// Larger nodes first, then by name.
    fn sort_key(&self, at: usize) -> Option<(std::cmp::Reverse<i32>, &'a str)> {
        self.nodes
            .get(at)
            .map(|node| (std::cmp::Reverse(node.size), &*node.definition.name))
    }

    /// Adds to the size of a node, and to that of each node above it once for every way down from there. The ways are
    /// counted, not walked: there can be exponentially many.
    fn grow(&mut self, at: usize, delta: i32) {
        let mut ways = vec![0i32; self.nodes.len()];
        if let Some(way) = ways.get_mut(at) {
            *way = 1;
        }
        // Parents come before children, so one pass upwards meets every node after all nodes below it.
        for below in (0..=at).rev() {
            let count = ways.get(below).copied().unwrap_or(0);
            let Some(node) = self.nodes.get_mut(below) else {
                continue;
            };
            node.size = node.size.wrapping_add(delta.wrapping_mul(count));
            for above in &node.predecessors {
                if let Some(way) = ways.get_mut(*above) {
                    *way = way.wrapping_add(count);
                }
            }
        }
    }

    fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|at| self.sort_key(*at));
        order
    }

    fn names(&self, nodes: &[usize]) -> String {
        let names: Vec<&str> = nodes
            .iter()
            .filter_map(|at| self.nodes.get(*at))
            .map(|node| &*node.definition.name)
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
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
