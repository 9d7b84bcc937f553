//! From the recorded steps to a topology, in Java's order (`InternalStreamsBuilder.buildAndOptimizeTopology`).

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_core::topology::{SinkTopic, SourceTopic, Topology, TopologyError};

use super::optimize::Optimizer;
use super::{Graph, GraphNode, Kind, NodeId, Repartition, TableSource};
use crate::builder::Optimization;

impl Graph {
    /// The topology, or everything that is wrong with it. Works on a copy: building twice gives the same.
    pub(crate) fn build(&self, optimization: Optimization) -> Result<Topology, TopologyError> {
        let mut optimizer = Optimizer::new(self.clone());
        optimizer.merge_equal_sources();
        if optimization.single_store_self_join {
            optimizer.join_on_one_store();
        }
        if optimization.merge_repartition_topics {
            optimizer.merge_repartitions();
        }
        let Optimizer { mut graph, merged } = optimizer;
        let mut topology = Topology::new();
        for store in std::mem::take(&mut graph.stores) {
            topology.add_store(store);
        }
        for id in graph.build_order() {
            graph.write(&mut topology, id, optimization);
        }
        for group in &graph.copartitions {
            topology.copartition(graph.topics_of(group, &merged));
        }
        let mut findings = std::mem::take(&mut graph.findings);
        match topology.validate() {
            Err(TopologyError::Several(more)) => findings.extend(more),
            Err(one) => findings.push(one),
            Ok(()) => {}
        }
        match findings.len() {
            0 => Ok(topology),
            1 => Err(findings.remove(0)),
            _ => Err(TopologyError::Several(findings)),
        }
    }

    /// The nodes by priority, each after all of its parents.
    fn build_order(&self) -> Vec<NodeId> {
        let mut order = Vec::new();
        let mut written = vec![false; self.nodes.len()];
        let is_written = |written: &[bool], id: &NodeId| written.get(id.0).copied().unwrap_or(true);
        loop {
            let ready = self.nodes.iter().enumerate().filter(|(at, node)| {
                !is_written(&written, &NodeId(*at)) && node.parents.iter().all(|parent| is_written(&written, parent))
            });
            let Some((at, _)) = ready.min_by_key(|(_, node)| node.priority) else {
                return order;
            };
            if let Some(done) = written.get_mut(at) {
                *done = true;
            }
            order.push(NodeId(at));
        }
    }

    fn write(&self, topology: &mut Topology, id: NodeId, optimization: Optimization) {
        let Some(node) = self.node(id) else { return };
        let parents: Vec<Arc<str>> = node.parents.iter().map(|parent| self.name(*parent)).collect();
        let parents: Vec<&str> = parents.iter().map(|name| &**name).collect();
        let name = &*node.name;
        match &node.kind {
            Kind::Source(source) => match &source.pattern {
                Some(pattern) => {
                    topology.add_pattern_source(name, pattern.clone(), source.reset, Arc::clone(&source.factory));
                }
                None => {
                    let topics = source.topics.iter().map(|topic| SourceTopic::external(topic)).collect();
                    topology.add_source(name, topics, source.reset, Arc::clone(&source.factory));
                }
            },
            Kind::Processor(processor) => {
                topology.add_processor(name, &parents, Arc::clone(&processor.factory));
                if let (Some(store), true) = (&processor.store, processor.materialized) {
                    topology.add_store(store.clone());
                    topology.connect_store(name, &store.spec.name);
                }
                for store in &processor.uses {
                    topology.connect_store(name, store);
                }
                for clock in &processor.clocks {
                    topology.declare_operator_clock(name, clock);
                }
            }
            Kind::Sink { topic, factory } => {
                topology.add_sink(name, &parents, topic.clone(), Arc::clone(factory));
            }
            Kind::Repartition(repartition) => self.write_repartition(topology, id, node, repartition, &parents),
            Kind::TableSource(table) => write_table(topology, name, table, optimization),
            Kind::GlobalTable(table) => {
                let source = (&*table.source_name, Arc::clone(&table.source));
                let processor = (name, Arc::clone(&table.factory));
                topology.add_global_store(table.store.clone(), &table.topic, source, processor);
            }
        }
    }

    /// Filter, sink and source. Null keys are filtered out unless something below takes them.
    fn write_repartition(
        &self,
        topology: &mut Topology,
        id: NodeId,
        node: &GraphNode,
        repartition: &Repartition,
        parents: &[&str],
    ) {
        let topic = SourceTopic::internal(&repartition.topic);
        topology.repartition_topic(&repartition.topic, repartition.partitions);
        let (sink, to) = (Arc::clone(&repartition.sink), SinkTopic::Static(topic.clone()));
        match &repartition.filter {
            Some((name, make)) => {
                topology.add_processor(name, parents, make(self.takes_null_keys_below(id)));
                topology.add_sink(&repartition.sink_name, &[name], to, sink);
            }
            None => {
                topology.add_sink(&repartition.sink_name, parents, to, sink);
            }
        }
        let reset = streams_core::topology::AutoOffsetReset::Earliest;
        topology.add_source(&node.name, vec![topic], reset, Arc::clone(&repartition.source));
    }

    pub(super) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.nodes
            .iter()
            .enumerate()
            .filter(move |(_, node)| node.parents.contains(&id))
            .map(|(at, _)| NodeId(at))
    }

    fn takes_null_keys_below(&self, id: NodeId) -> bool {
        let mut seen = vec![id];
        let mut at = 0;
        while let Some(node) = seen.get(at).copied() {
            at += 1;
            for child in self.children(node) {
                if self.node(child).is_some_and(|child| child.flags.takes_null_keys) {
                    return true;
                }
                if !seen.contains(&child) {
                    seen.push(child);
                }
            }
        }
        false
    }

    /// The topics that a group of sources reads, each once.
    fn topics_of(&self, sources: &[NodeId], merged: &BTreeMap<NodeId, NodeId>) -> Vec<SourceTopic> {
        let mut topics = Vec::new();
        for id in sources {
            let Some(node) = self.node(*merged.get(id).unwrap_or(id)) else {
                continue;
            };
            let read = match &node.kind {
                Kind::Source(source) => source.names().map(SourceTopic::external).collect(),
                Kind::TableSource(table) => vec![SourceTopic::external(&table.topic)],
                Kind::Repartition(repartition) => vec![SourceTopic::internal(&repartition.topic)],
                Kind::Processor(_) | Kind::Sink { .. } | Kind::GlobalTable(_) => Vec::new(),
            };
            for topic in read {
                if !topics.contains(&topic) {
                    topics.push(topic);
                }
            }
        }
        topics
    }
}

fn write_table(topology: &mut Topology, name: &str, table: &TableSource, optimization: Optimization) {
    let topics = vec![SourceTopic::external(&table.topic)];
    topology.add_source(&table.source_name, topics, table.reset, Arc::clone(&table.source));
    topology.add_processor(name, &[&table.source_name], Arc::clone(&table.factory));
    if !table.materialized {
        return;
    }
    let mut store = table.store.clone();
    if optimization.reuse_source_topics {
        store.changelog = store.changelog.map(|changelog| changelog.in_source_topic(&table.topic));
    }
    let store_name = store.spec.name.clone();
    topology.add_store(store);
    topology.connect_store(name, &store_name);
}
