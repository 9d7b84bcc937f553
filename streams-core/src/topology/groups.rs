//! Node groups: nodes that are linked or share a store work in the same tasks. A group is a sub-topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Topology;

/// A sub-topology, or the nodes of a global store.
pub(crate) struct NodeGroup {
    /// The number, part of every task id.
    pub(crate) id: u32,
    /// The nodes' places in the topology, ascending: parents before children.
    pub(crate) nodes: Vec<usize>,
    /// Whether it fills a global store: it takes a number too, but has no tasks.
    pub(crate) global: bool,
}

impl Topology {
    /// The groups, numbered 0, 1, 2 … in the order of the first node written.
    ///
    /// Co-partitioning joins no groups, nor do global stores. Source: `InternalTopologyBuilder.makeNodeGroups`.
    pub(crate) fn node_groups(&self) -> Vec<NodeGroup> {
        let mut union = self.linked_nodes();
        let mut by_root: BTreeMap<usize, usize> = BTreeMap::new();
        let mut groups: Vec<NodeGroup> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let at = *by_root.entry(union.root(index)).or_insert(groups.len());
            let global = self.global_stores.iter().any(|global| global.source == node.name);
            match groups.get_mut(at) {
                Some(group) => {
                    group.nodes.push(index);
                    group.global |= global;
                }
                None => groups.push(NodeGroup {
                    id: u32::try_from(at).unwrap_or(u32::MAX),
                    nodes: vec![index],
                    global,
                }),
            }
        }
        groups
    }

    /// Where each name was written first.
    pub(crate) fn node_indices(&self) -> BTreeMap<&str, usize> {
        let mut indices = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            indices.entry(&*node.name).or_insert(index);
        }
        indices
    }

    fn linked_nodes(&self) -> UnionFind {
        let indices = self.node_indices();
        let mut union = UnionFind::new(self.nodes.len());
        let mut first_user: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for parent in node.parents.iter().filter_map(|parent| indices.get(&**parent)) {
                union.unite(*parent, index);
            }
            for store in node.stores.iter().filter(|store| !self.is_global(store)) {
                union.unite(*first_user.entry(store).or_insert(index), index);
            }
        }
        union
    }

    /// Whether a store is a global one.
    pub(crate) fn is_global(&self, store: &str) -> bool {
        self.stores.get(store).is_some_and(|store| store.global)
    }
}

/// Disjoint sets of numbers. Java: `QuickUnion`.
struct UnionFind {
    parents: Vec<usize>,
}

impl UnionFind {
    fn new(len: usize) -> Self {
        UnionFind {
            parents: (0..len).collect(),
        }
    }

    /// The number that stands for a number's set. Paths are halved on the way, so that long chains stay cheap.
    fn root(&mut self, mut at: usize) -> usize {
        loop {
            let parent = self.parent(at);
            if parent == at {
                return at;
            }
            let grandparent = self.parent(parent);
            if let Some(entry) = self.parents.get_mut(at) {
                *entry = grandparent;
            }
            at = grandparent;
        }
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(entry) = self.parents.get_mut(b) {
            *entry = a;
        }
    }

    fn parent(&self, at: usize) -> usize {
        self.parents.get(at).copied().unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{TopologyText, topology};

    fn groups(text: TopologyText<'_>) -> Vec<(u32, bool, Vec<String>)> {
        let topology = topology(text);
        let names = |nodes: &[usize]| {
            nodes
                .iter()
                .map(|node| topology.nodes[*node].name.to_string())
                .collect()
        };
        topology
            .node_groups()
            .iter()
            .map(|group| (group.id, group.global, names(&group.nodes)))
            .collect()
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn unlinked_sources_are_groups_numbered_by_their_first_node() {
        let groups = groups(&["source b: tb", "source a: ta", "sink x: tx < a", "sink y: ty < b"]);
        assert_eq!(
            groups,
            [(0, false, strings(&["b", "y"])), (1, false, strings(&["a", "x"]))]
        );
    }

    #[test]
    fn a_shared_store_joins_groups_and_a_global_one_does_not() {
        let shared = groups(&["source a: ta", "source b: tb", "proc p < a [s]", "proc q < b [s]"]);
        assert_eq!(shared.len(), 1);
        let global = groups(&[
            "global g: tg gs gp",
            "source a: ta",
            "source b: tb",
            "proc p < a [g]",
            "proc q < b [g]",
        ]);
        assert_eq!(
            global,
            [
                (0, true, strings(&["gs", "gp"])),
                (1, false, strings(&["a", "p"])),
                (2, false, strings(&["b", "q"])),
            ]
        );
    }

    #[test]
    fn a_node_with_parents_in_two_groups_joins_them_under_the_first_number() {
        let groups = groups(&["source a: ta", "source b: tb", "source c: tc", "proc m < c a"]);
        assert_eq!(
            groups,
            [(0, false, strings(&["a", "c", "m"])), (1, false, strings(&["b"]))]
        );
    }
}
