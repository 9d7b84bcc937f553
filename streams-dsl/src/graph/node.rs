//! The kinds of steps.

use std::any::TypeId;
use std::sync::Arc;

use streams_core::processor::{NodeFactory, SourceFactory};
use streams_core::topology::{AutoOffsetReset, SinkTopic, StoreDefinition, TopicPattern};

/// A node of the recorded graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) usize);

/// One step. Some kinds become several nodes of the topology; `name` is the one that children are attached to.
#[derive(Clone)]
pub(crate) struct GraphNode {
    pub(crate) name: Arc<str>,
    pub(crate) parents: Vec<NodeId>,
    pub(crate) kind: Kind,
    pub(crate) flags: NodeFlags,
    /// Nodes are written in this order, parents first (Java: `buildPriority`).
    pub(crate) priority: usize,
    /// What is named after this node when it is given a name, each with its suffix.
    pub(crate) companions: Vec<(Companion, String)>,
    /// What follows the given name in this node's own.
    pub(crate) own_suffix: &'static str,
    /// How this merge of a stream–stream join is done on one store, should both its streams be the same.
    pub(crate) one_store_join: Option<Arc<OneStoreJoin>>,
}

/// What the optimizer needs to put a self join on one store.
pub(crate) struct OneStoreJoin {
    /// The nodes that store each side; the first stays.
    pub(crate) windowed: [NodeId; 2],
    /// The nodes that join each side; both go.
    pub(crate) joins: [NodeId; 2],
    /// The store that stays.
    pub(crate) store: Arc<str>,
    /// The store of records without a partner, which goes: a record always meets itself.
    pub(crate) shared: Option<Arc<str>>,
    /// Makes the node that takes the merge's place.
    pub(crate) factory: Arc<dyn NodeFactory>,
}

/// A part of a step that takes its name from another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Companion {
    /// A node.
    Node(NodeId),
    /// The sink of a repartition.
    Sink(NodeId),
}

/// What the optimizer has to know of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeFlags {
    /// It may change keys: below it, repartitions can be one.
    pub(crate) key_changing: bool,
    /// It may change values: a repartition below it can't move above it.
    pub(crate) value_changing: bool,
    /// It joins several streams into one.
    pub(crate) merge: bool,
    /// It wants records with null keys (left joins): repartitions above it let them pass (KIP-962).
    pub(crate) takes_null_keys: bool,
    /// It aggregates records of these keys and values by windows, and hands late ones to children of their own.
    pub(crate) hands_late_on: Option<TypeId>,
}

#[derive(Clone)]
pub(crate) enum Kind {
    Source(Source),
    Processor(Processor),
    Sink {
        topic: SinkTopic,
        factory: Arc<dyn NodeFactory>,
    },
    Repartition(Box<Repartition>),
    TableSource(Box<TableSource>),
    GlobalTable(Box<GlobalTable>),
}

#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) topics: Vec<Arc<str>>,
    /// Instead of topics: what their names fit.
    pub(crate) pattern: Option<TopicPattern>,
    pub(crate) reset: AutoOffsetReset,
    pub(crate) factory: Arc<dyn SourceFactory>,
    /// The types it reads; sources of equal topics are one node, so their types must be equal.
    pub(crate) types: (TypeId, &'static str),
}

impl Source {
    /// The topics, or the pattern.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let pattern = self.pattern.iter().map(TopicPattern::as_str);
        self.topics.iter().map(|topic| &**topic).chain(pattern)
    }
}

#[derive(Clone)]
pub(crate) struct Processor {
    pub(crate) factory: Arc<dyn NodeFactory>,
    /// The store it brings along.
    pub(crate) store: Option<StoreDefinition>,
    /// Whether the store it brings along is made.
    pub(crate) materialized: bool,
    /// Stores of others it uses.
    pub(crate) uses: Vec<Arc<str>>,
    /// The keys of its times in the offset-commit metadata.
    pub(crate) clocks: Vec<Arc<str>>,
}

impl Processor {
    /// A processor without state.
    pub(crate) fn stateless(factory: Arc<dyn NodeFactory>) -> Kind {
        Kind::Processor(Processor {
            factory,
            store: None,
            materialized: false,
            uses: Vec::new(),
            clocks: Vec::new(),
        })
    }

    /// A processor that uses stores of others.
    pub(crate) fn using(factory: Arc<dyn NodeFactory>, uses: Vec<Arc<str>>) -> Kind {
        Kind::Processor(Processor {
            factory,
            store: None,
            materialized: false,
            uses,
            clocks: Vec::new(),
        })
    }

    /// A processor that uses stores of others and keeps times under these keys.
    pub(crate) fn timed(
        factory: Arc<dyn NodeFactory>,
        uses: Vec<Arc<str>>,
        clocks: impl IntoIterator<Item = Arc<str>>,
    ) -> Kind {
        Kind::Processor(Processor {
            factory,
            store: None,
            materialized: false,
            uses,
            clocks: clocks.into_iter().collect(),
        })
    }

    /// A processor with a store of its own.
    pub(crate) fn with_store(
        factory: Arc<dyn NodeFactory>,
        store: StoreDefinition,
        clocks: impl IntoIterator<Item = Arc<str>>,
    ) -> Kind {
        Kind::Processor(Processor {
            factory,
            store: Some(store),
            materialized: true,
            uses: Vec::new(),
            clocks: clocks.into_iter().collect(),
        })
    }
}

impl Kind {
    /// The same processor, which uses stores of others too.
    pub(crate) fn using_too(mut self, stores: Vec<Arc<str>>) -> Self {
        if let Kind::Processor(processor) = &mut self {
            processor.uses.extend(stores);
        }
        self
    }
}

/// Makes the filter in front of a repartition topic: with `true` null keys pass.
pub(crate) type FilterFactory = Arc<dyn Fn(bool) -> Arc<dyn NodeFactory> + Send + Sync>;

/// A write to a repartition topic and the read of it. The node's name is the source's.
#[derive(Clone)]
pub(crate) struct Repartition {
    pub(crate) topic: Arc<str>,
    pub(crate) sink_name: Arc<str>,
    /// The filter of null keys; without one what comes has none.
    pub(crate) filter: Option<(Arc<str>, FilterFactory)>,
    /// The partition count that was asked for.
    pub(crate) partitions: Option<i32>,
    /// Whether it may be made one with others (not `repartition()` itself).
    pub(crate) optimizable: bool,
    /// Makes the sink and the source for a topic.
    pub(crate) sink: Arc<dyn NodeFactory>,
    pub(crate) source: Arc<dyn SourceFactory>,
}

/// A source and the table made of it. The node's name is the table's.
#[derive(Clone)]
pub(crate) struct TableSource {
    pub(crate) source_name: Arc<str>,
    pub(crate) topic: Arc<str>,
    pub(crate) reset: AutoOffsetReset,
    pub(crate) source: Arc<dyn SourceFactory>,
    pub(crate) factory: Arc<dyn NodeFactory>,
    pub(crate) store: StoreDefinition,
    /// Whether the store is made: it was named, or something looks rows up in it.
    pub(crate) materialized: bool,
}

/// A global table: a source, the table and its store, in every instance. The node's name is the table's.
#[derive(Clone)]
pub(crate) struct GlobalTable {
    pub(crate) source_name: Arc<str>,
    pub(crate) topic: Arc<str>,
    pub(crate) source: Arc<dyn SourceFactory>,
    pub(crate) factory: Arc<dyn NodeFactory>,
    pub(crate) store: StoreDefinition,
}
