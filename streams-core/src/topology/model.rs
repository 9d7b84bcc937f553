//! The model: what was added, in the order in which it was added (numbers and `describe()` depend on that order).

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_state::{StoreKind, StoreSpec};

use super::{TopicPattern, TopologyError};
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceTopic {
    /// The name, without the application id for internal topics.
    pub name: Arc<str>,
    /// Whether it is an internal (repartition) topic.
    pub internal: bool,
}

impl SourceTopic {
    /// A topic that others make and own.
    #[must_use]
    pub fn external(name: &str) -> Self {
        SourceTopic {
            name: name.into(),
            internal: false,
        }
    }

    /// A repartition topic of this application, named without the application id.
    #[must_use]
    pub fn internal(name: &str) -> Self {
        SourceTopic {
            name: name.into(),
            internal: true,
        }
    }
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
        /// The pattern of the topics; then they are those that [`Topology::with_topics`] found to fit, none at first.
        pattern: Option<TopicPattern>,
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

/// What a changelog topic has to keep; its topic configs follow from it.
///
/// Java counterparts: `UnwindowedChangelogTopicConfig`, `WindowedChangelogTopicConfig`,
/// `VersionedChangelogTopicConfig`, and the forced policy of `StreamJoinedStoreFactory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangelogKind {
    /// The last value of each key, without an end: `compact`. Key-value stores, suppress and grace buffers, the shared
    /// store of left and outer stream joins, subscriptions of foreign-key joins.
    KeyValue,
    /// `compact,delete`: window and session stores.
    Windowed {
        /// The store's retention in milliseconds of event time.
        retention_ms: i64,
    },
    /// `delete` only: the window stores of stream-stream joins, whose keys are never written twice.
    JoinWindow {
        /// The store's retention (`before + after + grace`) in milliseconds of event time.
        retention_ms: i64,
    },
    /// `compact` with a lag: versioned key-value stores, whose older versions must survive compaction.
    Versioned {
        /// The store's history retention in milliseconds of event time.
        history_retention_ms: i64,
    },
}

/// A store's changelog topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogDefinition {
    /// What the topic has to keep.
    pub kind: ChangelogKind,
    /// The source topic that serves as the changelog (optimization `reuse.ktable.source.topics`), else an internal
    /// topic `<application.id>-<store>-changelog` is used.
    pub source_topic: Option<Arc<str>>,
    /// Topic configs given for this store, by key; they win over everything else. Java: `withLoggingEnabled(map)`.
    pub configs: BTreeMap<String, String>,
}

impl ChangelogDefinition {
    /// An internal changelog topic with the configs of its kind.
    #[must_use]
    pub fn new(kind: ChangelogKind) -> Self {
        ChangelogDefinition {
            kind,
            source_topic: None,
            configs: BTreeMap::new(),
        }
    }

    /// The changelog that fits a store's layout: `compact` for plain keys, `compact,delete` for windows, `delete` for
    /// windows that keep duplicates, `compact` with a lag for versions.
    #[must_use]
    pub fn of(spec: &StoreSpec) -> Self {
        Self::new(match spec.kind {
            StoreKind::Window {
                retention_ms,
                retain_duplicates: true,
                ..
            } => ChangelogKind::JoinWindow { retention_ms },
            StoreKind::Window { retention_ms, .. } | StoreKind::Session { retention_ms, .. } => {
                ChangelogKind::Windowed { retention_ms }
            }
            StoreKind::Versioned {
                history_retention_ms, ..
            } => ChangelogKind::Versioned { history_retention_ms },
            _ => ChangelogKind::KeyValue,
        })
    }

    /// Adds topic configs for this store, which win over everything else.
    #[must_use]
    pub fn with_configs(mut self, configs: BTreeMap<String, String>) -> Self {
        self.configs = configs;
        self
    }

    /// Uses a source topic as the changelog: no topic is created, and changes are not written a second time.
    #[must_use]
    pub fn in_source_topic(mut self, topic: &str) -> Self {
        self.source_topic = Some(topic.into());
        self
    }
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

/// A store that every instance has in full, with the two nodes that fill it. Java: `Topology.addGlobalStore`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalStoreDefinition {
    /// The store.
    pub store: Arc<str>,
    /// The node that reads the topic.
    pub source: Arc<str>,
    /// The node that writes the store.
    pub processor: Arc<str>,
    /// The topic.
    pub topic: Arc<str>,
}

/// A graph of sources, processors, sinks and stores. Java counterpart: `Topology` with `InternalTopologyBuilder`.
///
/// Nodes are kept in the order in which they were written: sub-topology numbers and [`describe`](Self::describe) depend
/// on it. Nothing fails while it is written; [`validate`](Self::validate) reports all findings at once.
#[derive(Clone, Default)]
pub struct Topology {
    /// The nodes in the order in which they were written.
    pub(crate) nodes: Vec<NodeDefinition>,
    /// The stores by name, global ones among them.
    pub(crate) stores: BTreeMap<Arc<str>, StoreDefinition>,
    /// The global stores in the order in which they were added.
    pub(crate) global_stores: Vec<GlobalStoreDefinition>,
    /// Groups of topics (undecorated names) that must have equal partition counts, in the order of registration.
    pub(crate) copartition_groups: Vec<Vec<SourceTopic>>,
    /// Internal (repartition) topics by undecorated name, with their wanted partition count.
    pub(crate) repartition_topics: BTreeMap<Arc<str>, Option<i32>>,
    /// Keys of operator clocks in the offset-commit metadata, with the node that owns each.
    pub(crate) operator_clocks: Vec<OperatorClock>,
    /// What was found wrong while the topology was written.
    pub(crate) problems: Vec<TopologyError>,
}

/// An operator clock that a node keeps in the offset-commit metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorClock {
    pub(crate) node: Arc<str>,
    pub(crate) key: Arc<str>,
}
