//! The model: what was added, in the order in which it was added (numbers and `describe()` depend on that order).

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_state::StoreSpec;

use crate::processor::{NodeFactory, SourceFactory};
use crate::stores::StoreFactory;

/// Where a source starts when the group has no offset. Java: `AutoOffsetReset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AutoOffsetReset {
    /// As `auto.offset.reset` of the configuration says (Kafka Streams' default: earliest).
    #[default]
    Configured,
    /// At the oldest record.
    Earliest,
    /// At the end.
    Latest,
    /// Fail and say so.
    None,
}

/// A topic that a source reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTopic {
    /// The name, without the application id for internal topics.
    pub name: Arc<str>,
    /// Whether it is an internal (repartition) topic.
    pub internal: bool,
}

/// Where a sink writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkTopic {
    /// One topic; internal ones get the application id in front.
    Static(SourceTopic),
    /// Chosen for each record; the text stands in `describe()` (Java prints the extractor's `toString`).
    Dynamic(String),
}

/// What a node is.
#[derive(Clone)]
pub enum NodeKind {
    /// Reads topics.
    Source {
        /// The topics, in the order given.
        topics: Vec<SourceTopic>,
        /// Makes the node.
        factory: Arc<dyn SourceFactory>,
        /// Where to start without an offset.
        reset: AutoOffsetReset,
    },
    /// Works on records.
    Processor {
        /// Makes the node.
        factory: Arc<dyn NodeFactory>,
    },
    /// Writes to a topic.
    Sink {
        /// The topic.
        topic: SinkTopic,
        /// Makes the node.
        factory: Arc<dyn NodeFactory>,
    },
}

/// A node of a topology.
#[derive(Clone)]
pub struct NodeDefinition {
    /// The name, unique in the topology.
    pub name: Arc<str>,
    /// The parents' names, in the order given.
    pub parents: Vec<Arc<str>>,
    /// The stores it is connected to, in the order of connection.
    pub stores: Vec<Arc<str>>,
    /// What it is.
    pub kind: NodeKind,
}

/// A store's changelog topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogDefinition {
    /// The source topic that serves as the changelog (optimization `reuse.ktable.source.topics`), else an internal
    /// topic `<application.id>-<store>-changelog` is used.
    pub source_topic: Option<Arc<str>>,
    /// Topic configs of the internal topic, by key.
    pub configs: BTreeMap<String, String>,
}

/// A store of a topology.
#[derive(Clone)]
pub struct StoreDefinition {
    /// Name, kind and place of the bytes.
    pub spec: StoreSpec,
    /// The changelog; `None` = logging is off.
    pub changelog: Option<ChangelogDefinition>,
    /// Makes the typed store of a task.
    pub factory: Arc<dyn StoreFactory>,
    /// Whether it is a global store: every instance has all of it.
    pub global: bool,
}

/// A graph of sources, processors, sinks and stores. Java counterpart: `Topology` with `InternalTopologyBuilder`.
#[derive(Clone, Default)]
pub struct Topology {
    /// The nodes in the order in which they were written.
    pub(crate) nodes: Vec<NodeDefinition>,
    /// The stores by name.
    pub(crate) stores: BTreeMap<Arc<str>, StoreDefinition>,
    /// Groups of topics (undecorated names) that must have equal partition counts, in the order of registration.
    pub(crate) copartition_groups: Vec<Vec<SourceTopic>>,
    /// Internal (repartition) topics by undecorated name, with their wanted partition count.
    pub(crate) repartition_topics: BTreeMap<Arc<str>, Option<i32>>,
    /// The most characters of base64 that the operators' clocks may need in one offset commit.
    pub(crate) operator_clock_keys: Vec<Arc<str>>,
}

impl Topology {
    pub fn nodes(&self) -> &[NodeDefinition] { &self.nodes }
    pub fn store(&self, name: &str) -> Option<&StoreDefinition> { self.stores.get(name) }
}
