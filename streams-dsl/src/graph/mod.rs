//! What a builder records: the steps in the order in which they were called, before they become a topology.

mod node;
mod optimize;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use streams_core::topology::{StoreDefinition, TopologyError};
use streams_state::StoreKind;

use crate::names::Names;

pub(crate) use node::{
    Companion, FilterFactory, GlobalTable, GraphNode, Kind, NodeFlags, NodeId, OneStoreJoin, Processor, Repartition,
    Source, TableSource,
};

/// The recorded graph, shared by the builder and all handles.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Graph>>);

impl Shared {
    /// Works on the graph. Not to be nested.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Graph) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether two handles come from one builder.
    pub(crate) fn same_as(&self, other: &Shared) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The steps of a builder.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) names: Names,
    pub(crate) nodes: Vec<GraphNode>,
    /// Stores added by name, for processors.
    pub(crate) stores: Vec<StoreDefinition>,
    /// Groups of sources that must have equal partition counts.
    pub(crate) copartitions: Vec<Vec<NodeId>>,
    /// Repartitions made for joins under a generated name, by the node they follow: a second join uses the same one.
    pub(crate) join_repartitions: BTreeMap<NodeId, NodeId>,
    /// What was found wrong so far.
    pub(crate) findings: Vec<TopologyError>,
}

impl Graph {
    /// Adds a node; its place in the order is its build priority.
    pub(crate) fn add(&mut self, name: String, parents: &[NodeId], kind: Kind) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(GraphNode {
            name: name.into(),
            parents: parents.to_vec(),
            kind,
            flags: NodeFlags::default(),
            priority: id.0,
            companions: Vec::new(),
            own_suffix: "",
            one_store_join: None,
        });
        id
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&GraphNode> {
        self.nodes.get(id.0)
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut GraphNode> {
        self.nodes.get_mut(id.0)
    }

    /// The name by which children know a node.
    pub(crate) fn name(&self, id: NodeId) -> Arc<str> {
        self.node(id)
            .map_or_else(|| Arc::from(""), |node| Arc::clone(&node.name))
    }

    /// Gives a node another name than the generated one.
    pub(crate) fn rename(&mut self, id: NodeId, name: &str) {
        let Some(node) = self.node_mut(id) else { return };
        match &mut node.kind {
            Kind::Repartition(_) => {
                let sentence =
                    format!("`{name}` can't name a repartition afterwards: use `Repartitioned::named(\"{name}\")`");
                self.findings.push(TopologyError::Invalid(sentence));
                return;
            }
            Kind::TableSource(table) => table.source_name = format!("{name}-source").into(),
            _ => {}
        }
        if let Some(node) = self.node_mut(id) {
            node.name = format!("{name}{}", node.own_suffix).into();
            let companions = node.companions.clone();
            for (companion, suffix) in companions {
                self.rename_companion(companion, format!("{name}{suffix}").into());
            }
        }
    }

    fn rename_companion(&mut self, companion: Companion, name: Arc<str>) {
        let (Companion::Node(id) | Companion::Sink(id)) = companion;
        let Some(node) = self.node_mut(id) else { return };
        match (companion, &mut node.kind) {
            (Companion::Sink(_), Kind::Repartition(repartition)) => repartition.sink_name = name,
            _ => node.name = name,
        }
    }

    /// Notes something that is wrong; `build` reports it with the rest.
    pub(crate) fn found(&mut self, sentence: impl Into<String>) {
        self.findings.push(TopologyError::Invalid(sentence.into()));
    }

    /// Whether a table's rows are stored, as far as is known by now.
    pub(crate) fn is_materialized(&self, id: NodeId) -> bool {
        match self.node(id).map(|node| &node.kind) {
            Some(Kind::TableSource(table)) => table.materialized,
            Some(Kind::Processor(processor)) => processor.materialized,
            _ => false,
        }
    }

    /// Whether the rows that a look-up finds have versions: they lie in one store, and that is versioned. The rows of a join
    /// lie in two, and have none.
    pub(crate) fn is_versioned(&self, stored_by: &[NodeId]) -> bool {
        self.history_ms(stored_by).is_some()
    }

    /// For how long those versions are kept, ms of event time.
    pub(crate) fn history_ms(&self, stored_by: &[NodeId]) -> Option<i64> {
        let [id] = stored_by else { return None };
        let store = match self.node(*id).map(|node| &node.kind) {
            Some(Kind::TableSource(table)) => Some(&table.store),
            Some(Kind::Processor(processor)) => processor.store.as_ref(),
            _ => None,
        };
        match store?.spec.kind {
            StoreKind::Versioned {
                history_retention_ms, ..
            } => Some(history_retention_ms),
            _ => None,
        }
    }

    /// Asks a table for its store: something downstream looks rows up in it.
    pub(crate) fn materialize(&mut self, id: NodeId) {
        if let Some(GraphNode {
            kind: Kind::TableSource(table),
            ..
        }) = self.node_mut(id)
        {
            table.materialized = true;
        }
        if let Some(GraphNode {
            kind: Kind::Processor(processor),
            ..
        }) = self.node_mut(id)
        {
            processor.materialized = true;
        }
    }
}
