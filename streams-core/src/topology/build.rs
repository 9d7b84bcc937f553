//! Writing a topology. Nothing fails here: findings are kept for [`Topology::validate`], which reports all of them.

use std::sync::Arc;

use super::model::OperatorClock;
use super::{
    AutoOffsetReset, GlobalStoreDefinition, NodeDefinition, NodeKind, SinkTopic, SourceTopic, StoreDefinition,
    TopicPattern, Topology, TopologyError,
};
use crate::processor::{NodeFactory, SourceFactory};

impl Topology {
    /// An empty topology.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node that reads topics. Java: `Topology.addSource`.
    pub fn add_source(
        &mut self,
        name: &str,
        topics: Vec<SourceTopic>,
        reset: AutoOffsetReset,
        factory: Arc<dyn SourceFactory>,
    ) -> &mut Self {
        let pattern = None;
        self.add_node(
            name,
            &[],
            NodeKind::Source {
                topics,
                factory,
                reset,
                pattern,
            },
        )
    }

    /// Adds a node that reads all topics that fit a pattern; [`with_topics`](Self::with_topics) finds them.
    /// Java: `Topology.addSource` with a `Pattern`.
    pub fn add_pattern_source(
        &mut self,
        name: &str,
        pattern: TopicPattern,
        reset: AutoOffsetReset,
        factory: Arc<dyn SourceFactory>,
    ) -> &mut Self {
        self.add_node(
            name,
            &[],
            NodeKind::Source {
                topics: Vec::new(),
                factory,
                reset,
                pattern: Some(pattern),
            },
        )
    }

    /// Adds a node that works on records of its parents, which must be there already. Java: `Topology.addProcessor`.
    pub fn add_processor(&mut self, name: &str, parents: &[&str], factory: Arc<dyn NodeFactory>) -> &mut Self {
        self.add_node(name, parents, NodeKind::Processor { factory })
    }

    /// Adds a node that writes to a topic. Java: `Topology.addSink`.
    pub fn add_sink(
        &mut self,
        name: &str,
        parents: &[&str],
        topic: SinkTopic,
        factory: Arc<dyn NodeFactory>,
    ) -> &mut Self {
        self.add_node(name, parents, NodeKind::Sink { topic, factory })
    }

    /// Adds a store, to be connected with [`connect_store`](Self::connect_store). The same definition may be added
    /// again (it is the same if it has the same factory); another one of the same name is a finding, and so is a store that
    /// no node is connected to (Java never makes it). Java: `Topology.addStateStore`.
    pub fn add_store(&mut self, store: StoreDefinition) -> &mut Self {
        let name: Arc<str> = store.spec.name.as_str().into();
        match self.stores.get(&name) {
            Some(known) if !Arc::ptr_eq(&known.factory, &store.factory) => {
                self.problems.push(TopologyError::Duplicate {
                    what: "store",
                    name: name.to_string(),
                });
            }
            Some(_) => {}
            None => {
                self.stores.insert(name, store);
            }
        }
        self
    }

    /// Lets a processor use a store. Nodes that share a store work in the same tasks, so their sub-topologies become
    /// one.
    ///
    /// A global store may be named too: it is readable from everywhere, and joins nothing together.
    /// Java: `Topology.connectProcessorAndStateStores` (which refuses global stores, as they need no connection).
    pub fn connect_store(&mut self, node: &str, store: &str) -> &mut Self {
        let Some(definition) = self.nodes.iter_mut().find(|definition| &*definition.name == node) else {
            self.problems.push(TopologyError::Unknown {
                node: store.to_owned(),
                what: "node",
                name: node.to_owned(),
            });
            return self;
        };
        if !definition.stores.iter().any(|known| &**known == store) {
            definition.stores.push(store.into());
        }
        self
    }

    /// Adds a store that every instance has in full: a source that reads `topic` from its beginning, a processor that
    /// writes the store, and the store itself, which must not have a changelog (the topic is one).
    ///
    /// Java: `Topology.addGlobalStore`.
    pub fn add_global_store(
        &mut self,
        mut store: StoreDefinition,
        topic: &str,
        source: (&str, Arc<dyn SourceFactory>),
        processor: (&str, Arc<dyn NodeFactory>),
    ) -> &mut Self {
        let (source_name, source_factory) = source;
        let (processor_name, processor_factory) = processor;
        let name: Arc<str> = store.spec.name.as_str().into();
        store.global = true;
        self.add_source(
            source_name,
            vec![SourceTopic::external(topic)],
            AutoOffsetReset::Earliest,
            source_factory,
        );
        self.add_processor(processor_name, &[source_name], processor_factory);
        if self.stores.contains_key(&name) {
            self.problems.push(TopologyError::Duplicate {
                what: "store",
                name: name.to_string(),
            });
        } else {
            self.stores.insert(Arc::clone(&name), store);
        }
        self.connect_store(processor_name, &name);
        self.global_stores.push(GlobalStoreDefinition {
            store: name,
            source: source_name.into(),
            processor: processor_name.into(),
            topic: topic.into(),
        });
        self
    }

    /// Says that topics are joined: they must have equal partition counts. Name the topics of every joined source.
    ///
    /// Java: `InternalTopologyBuilder.copartitionSources`, which takes the sources' node names.
    pub fn copartition(&mut self, topics: Vec<SourceTopic>) -> &mut Self {
        if !topics.is_empty() {
            self.copartition_groups.push(topics);
        }
        self
    }

    /// Makes a topic, named without the application id, an internal topic of the application. Without `partitions` it
    /// gets as many as the sources that feed it. Java: `InternalTopologyBuilder.addInternalTopic`.
    pub fn repartition_topic(&mut self, name: &str, partitions: Option<i32>) -> &mut Self {
        if let Some(known) = self.repartition_topics.get(name)
            && *known != partitions
        {
            self.problems.push(TopologyError::Invalid(format!(
                "repartition topic `{name}` is wanted with {} and with {} partitions: give it one count",
                count_text(*known),
                count_text(partitions)
            )));
        }
        self.repartition_topics.insert(name.into(), partitions);
        self
    }

    /// Says that a node keeps a clock under `key` in the metadata of offset commits (Java uses store names as keys), so
    /// that its worst-case size can be checked while the topology is built.
    pub fn declare_operator_clock(&mut self, node: &str, key: &str) -> &mut Self {
        self.operator_clocks.push(OperatorClock {
            node: node.into(),
            key: key.into(),
        });
        self
    }

    /// The nodes in the order in which they were written: parents before children.
    #[must_use]
    pub fn nodes(&self) -> &[NodeDefinition] {
        &self.nodes
    }

    /// A store by its name.
    #[must_use]
    pub fn store(&self, name: &str) -> Option<&StoreDefinition> {
        self.stores.get(name)
    }

    /// All stores, sorted by name; global ones among them.
    pub fn stores(&self) -> impl Iterator<Item = &StoreDefinition> {
        self.stores.values()
    }

    /// The global stores in the order in which they were added.
    #[must_use]
    pub fn global_stores(&self) -> &[GlobalStoreDefinition] {
        &self.global_stores
    }

    fn add_node(&mut self, name: &str, parents: &[&str], kind: NodeKind) -> &mut Self {
        let parents = parents.iter().map(|parent| Arc::from(*parent)).collect();
        self.nodes.push(NodeDefinition {
            name: name.into(),
            parents,
            stores: Vec::new(),
            kind,
        });
        self
    }
}

fn count_text(partitions: Option<i32>) -> String {
    partitions.map_or_else(|| "its feeders'".to_owned(), |count| count.to_string())
}
