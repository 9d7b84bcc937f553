//! A topology as it is described: its parts in the order of Java's text. The text (`describe`) and the pictures
//! (`picture`) are made from it, so they can't differ.

use std::collections::BTreeMap;

use super::groups::NodeGroup;
use super::{NodeDefinition, Topology};
use crate::java_hash::JavaHashSet;

/// A sub-topology, or the nodes of a global store, as it is described.
pub(super) struct DescribedGroup<'a> {
    /// The number.
    pub(super) id: u32,
    /// Whether it fills a global store.
    pub(super) global: bool,
    /// The nodes, in the order of the text.
    pub(super) nodes: Vec<DescribedNode<'a>>,
}

/// A node as it is described.
pub(super) struct DescribedNode<'a> {
    /// What it is.
    pub(super) definition: &'a NodeDefinition,
    /// Its stores. Global ones stand at the node that fills them alone, as Java connects them nowhere else.
    pub(super) stores: Vec<&'a str>,
    /// The names of the nodes before it.
    pub(super) predecessors: Vec<&'a str>,
    /// The names of the nodes after it.
    pub(super) successors: Vec<&'a str>,
}

impl Topology {
    /// The parts, in the order of the text.
    pub(super) fn described(&self) -> Vec<DescribedGroup<'_>> {
        let described = |group: NodeGroup| {
            let linked = LinkedNodes::new(self, &group);
            let order = if group.global {
                // Always a source and its processor, in that order.
                (0..linked.nodes.len()).collect()
            } else {
                linked.in_order()
            };
            let nodes = order.into_iter().filter_map(|at| linked.nodes.get(at));
            let nodes = nodes.map(|node| DescribedNode {
                definition: node.definition,
                stores: self.shown_stores(node.definition),
                predecessors: linked.names(&node.predecessors),
                successors: linked.names(&node.successors),
            });
            DescribedGroup {
                id: group.id,
                global: group.global,
                nodes: nodes.collect(),
            }
        };
        self.node_groups().into_iter().map(described).collect()
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

    fn names(&self, nodes: &[usize]) -> Vec<&'a str> {
        let nodes = nodes.iter().filter_map(|at| self.nodes.get(*at));
        nodes.map(|node| &*node.definition.name).collect()
    }
}
