//! What is changed in the recorded graph before it is written: sources of equal topics become one, and with
//! `merge.repartition.topics` so do repartitions below one key-changing step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use streams_core::topology::AutoOffsetReset;

use super::{Graph, Kind, NodeId, OneStoreJoin, Processor, Repartition};

/// The graph in work.
pub(super) struct Optimizer {
    pub(super) graph: Graph,
    /// Nodes that were replaced, with what replaced them.
    pub(super) merged: BTreeMap<NodeId, NodeId>,
}

impl Optimizer {
    pub(super) fn new(graph: Graph) -> Self {
        Optimizer {
            graph,
            merged: BTreeMap::new(),
        }
    }

    /// Sources of the same set of topics become the first of them (`mergeDuplicateSourceNodes`).
    pub(super) fn merge_equal_sources(&mut self) {
        let mut first: BTreeMap<(bool, BTreeSet<String>), NodeId> = BTreeMap::new();
        for at in 0..self.graph.nodes.len() {
            let id = NodeId(at);
            let Some(Kind::Source(source)) = self.graph.node(id).map(|node| &node.kind) else {
                continue;
            };
            let topics = source.names().map(str::to_owned).collect();
            let topics = (source.pattern.is_some(), topics);
            let (types, reset) = (source.types, source.reset);
            match first.get(&topics).copied() {
                None => {
                    first.insert(topics, id);
                }
                Some(main) => {
                    self.check_types(main, types);
                    self.check_resets(main, reset);
                    self.replace(id, main);
                }
            }
        }
        let gone: Vec<NodeId> = self.merged.keys().copied().collect();
        for id in gone {
            self.remove(id);
        }
    }

    fn check_types(&mut self, main: NodeId, other: (std::any::TypeId, &'static str)) {
        let Some(Kind::Source(source)) = self.graph.node(main).map(|node| &node.kind) else {
            return;
        };
        if source.types.0 != other.0 {
            let topics: Vec<&str> = source.names().collect();
            let sentence = format!(
                "topic {} is read as {} and as {}: a topic has one type; read it once and map",
                topics.join(", "),
                source.types.1,
                other.1
            );
            self.graph.found(sentence);
        }
    }

    fn check_resets(&mut self, main: NodeId, other: AutoOffsetReset) {
        let Some(Kind::Source(source)) = self.graph.node(main).map(|node| &node.kind) else {
            return;
        };
        if source.reset != other {
            let topics: Vec<&str> = source.names().collect();
            let sentence = format!(
                "topic {} is read with the offset resets {:?} and {other:?}: it is read once, so give it one",
                topics.join(", "),
                source.reset
            );
            self.graph.found(sentence);
        }
    }

    /// Children of `old` become children of `new`, at the same place among their parents.
    fn replace(&mut self, old: NodeId, new: NodeId) {
        for node in &mut self.graph.nodes {
            for parent in &mut node.parents {
                if *parent == old {
                    *parent = new;
                }
            }
        }
        self.merged.insert(old, new);
    }

    /// A removed node is never ready to be written: it is its own parent.
    fn remove(&mut self, id: NodeId) {
        if let Some(node) = self.graph.node_mut(id) {
            node.parents = vec![id];
        }
    }

    /// Joins of a stream with itself need one store only (`rewriteSingleStoreSelfJoin`).
    pub(super) fn join_on_one_store(&mut self) {
        let joins: Vec<(NodeId, Arc<OneStoreJoin>)> = self
            .graph
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(at, node)| Some((NodeId(at), Arc::clone(node.one_store_join.as_ref()?))))
            .collect();
        for (merge, join) in joins {
            if !self.is_self_join(&join) {
                continue;
            }
            let [this, other] = join.windowed;
            if let Some(node) = self.graph.node_mut(merge) {
                node.parents = vec![this];
                node.kind = Processor::using(Arc::clone(&join.factory), vec![Arc::clone(&join.store)]);
            }
            for gone in [other, join.joins[0], join.joins[1]] {
                self.remove(gone);
            }
            self.graph
                .stores
                .retain(|store| join.shared.as_deref() != Some(&*store.spec.name));
        }
    }

    /// Both sides read one node, that stands below one source, and nothing but such windows was attached to it before
    /// (`InternalStreamsBuilder.isSelfJoin`).
    fn is_self_join(&self, join: &OneStoreJoin) -> bool {
        let parents = |id: NodeId| self.graph.node(id).map(|node| node.parents.clone()).unwrap_or_default();
        let [left, right] = join.windowed.map(parents);
        let ([parent], true) = (left.as_slice(), left == right) else {
            return false;
        };
        let windows: BTreeSet<NodeId> = self
            .graph
            .nodes
            .iter()
            .filter_map(|node| node.one_store_join.as_ref())
            .flat_map(|join| join.windowed)
            .collect();
        let earlier = self
            .graph
            .children(*parent)
            .any(|child| child < join.windowed[0] && !windows.contains(&child));
        !earlier && self.sources_above(*parent) == 1
    }

    fn sources_above(&self, id: NodeId) -> usize {
        let mut seen = vec![id];
        let mut at = 0;
        let mut sources = 0;
        while let Some(node) = seen.get(at).and_then(|id| self.graph.node(*id)) {
            at += 1;
            sources += usize::from(node.parents.is_empty());
            for parent in &node.parents {
                if !seen.contains(parent) {
                    seen.push(*parent);
                }
            }
        }
        sources
    }

    /// `maybeOptimizeRepartitionOperations`: for each key-changing step, the repartitions below it become one right
    /// after it, named as the first.
    pub(super) fn merge_repartitions(&mut self) {
        for (changer, repartitions) in self.repartitions_by_changer() {
            let first = repartitions
                .first()
                .and_then(|id| self.graph.node(*id))
                .map(|node| node.kind.clone());
            let Some(Kind::Repartition(first)) = first else {
                continue;
            };
            self.merge_below(changer, *first, &repartitions);
        }
    }

    fn merge_below(&mut self, changer: NodeId, first: Repartition, repartitions: &[NodeId]) {
        let names = self.graph.names.repartition(&first.topic);
        let single = Repartition {
            topic: names.topic.into(),
            sink_name: names.sink.into(),
            filter: first.filter.map(|(_, make)| (names.filter.into(), make)),
            ..first
        };
        let below: Vec<NodeId> = repartitions
            .iter()
            .filter_map(|id| self.step_below(changer, *id))
            .collect();
        let merged = self
            .graph
            .add(names.source, &[changer], Kind::Repartition(Box::new(single)));
        let priority = self.graph.node(changer).map_or(0, |node| node.priority);
        if let Some(node) = self.graph.node_mut(merged) {
            node.priority = priority;
        }
        for id in below {
            if let Some(node) = self.graph.node_mut(id) {
                for parent in &mut node.parents {
                    if *parent == changer {
                        *parent = merged;
                    }
                }
            }
        }
        for id in repartitions {
            let above = self.graph.node(*id).and_then(|node| node.parents.first().copied());
            if let Some(above) = above {
                self.replace(*id, above);
            }
            self.merged.insert(*id, merged);
            self.remove(*id);
        }
    }

    /// The optimizable repartitions by the key-changing step they can move up to, both in the order of their calls.
    fn repartitions_by_changer(&self) -> BTreeMap<NodeId, Vec<NodeId>> {
        let mut found: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for (at, node) in self.graph.nodes.iter().enumerate() {
            let optimizable = matches!(&node.kind, Kind::Repartition(repartition) if repartition.optimizable);
            if let Some(changer) = optimizable.then(|| self.changer_above(NodeId(at))).flatten() {
                found.entry(changer).or_default().push(NodeId(at));
            }
        }
        found
    }

    /// The nearest key-changing step above, unless a step that changes values lies between. Below a merge the keys
    /// come from several steps: then the merge itself counts as the changer, if every way up to it ends at one.
    fn changer_above(&self, id: NodeId) -> Option<NodeId> {
        let mut at = id;
        loop {
            let node = self.graph.node(at)?;
            let [parent] = node.parents.as_slice() else { return None };
            let above = self.graph.node(*parent)?;
            if above.flags.key_changing {
                return Some(*parent);
            }
            if above.flags.merge {
                let all_change = above.parents.iter().all(|way| self.is_or_follows_changer(*way));
                return all_change.then_some(*parent);
            }
            if above.flags.value_changing {
                return None;
            }
            at = *parent;
        }
    }

    fn is_or_follows_changer(&self, id: NodeId) -> bool {
        self.graph.node(id).is_some_and(|node| node.flags.key_changing) || self.changer_above(id).is_some()
    }

    /// The node right below `changer` on the way down to `id`; `id` itself if it is that.
    fn step_below(&self, changer: NodeId, id: NodeId) -> Option<NodeId> {
        let mut at = id;
        while let Some(node) = self.graph.node(at) {
            if node.parents.contains(&changer) {
                return Some(at);
            }
            at = *node.parents.first()?;
        }
        None
    }
}
