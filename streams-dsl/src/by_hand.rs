//! Topologies by hand: sources, processors, sinks and stores by name (Java's Processor API).

use std::sync::Arc;

use streams_core::processor::{
    NodeBuilder, NodeFactory, Processor, ProcessorNode, ProcessorSupplier, RecordContext, SinkTarget, TypedSink,
};
use streams_core::topology::{SinkTopic, SourceTopic, TopicPattern, Topology, TopologyError};

use crate::config::{Consumed, Produced};
use crate::stores::StateStore;

/// Builds a topology node by node. Nothing fails while it is written; [`build`](Self::build) tells everything that is
/// wrong at once.
///
/// ```
/// # use streams_dsl::doctest::*;
/// use streams_core::serde::Utf8;
/// /// Counts the records of each key.
/// struct Count;
/// impl Processor<String, String, String, i64> for Count {
///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, String>) -> Result<(), BoxError> {
///         let counts = cx.key_value_store::<String, i64>("counts")?;
///         let count = counts.get(cx, record.key)?.map_or(1, |row| row.value + 1);
///         counts.put(cx, record.key, Some(count), record)?;
///         Ok(cx.forward(record.with_value(&count))?)
///     }
/// }
/// let mut builder = TopologyBuilder::new();
/// builder
///     .add_source("words", ["in"], Consumed::<String, String>::default())
///     .add_processor("count", ["words"], || Count)
///     .add_state_store(Stores::key_value::<String, i64>("counts"), ["count"])
///     .add_sink("out", "counts-by-word", ["count"], Produced::<String, i64>::default());
/// let topology = builder.build()?;
/// assert!(topology.describe().contains("Processor: count (stores: [counts])"));
/// # Ok::<(), TopologyError>(())
/// ```
///
/// Java counterpart: `org.apache.kafka.streams.Topology`.
#[derive(Clone, Default)]
pub struct TopologyBuilder {
    topology: Topology,
    findings: Vec<TopologyError>,
}

impl From<Topology> for TopologyBuilder {
    /// Goes on with a topology, also with one that the DSL built.
    fn from(topology: Topology) -> Self {
        TopologyBuilder {
            topology,
            findings: Vec::new(),
        }
    }
}

impl TopologyBuilder {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node that reads topics. The name in `consumed` is not used. Java: `addSource`.
    pub fn add_source<'a, K: 'static, V: 'static>(
        &mut self,
        name: &str,
        topics: impl IntoIterator<Item = &'a str>,
        consumed: Consumed<K, V>,
    ) -> &mut Self {
        let topics = topics.into_iter().map(SourceTopic::external).collect();
        self.topology
            .add_source(name, topics, consumed.reset, consumed.source());
        self
    }

    /// Adds a node that reads all topics whose whole names fit a pattern; see
    /// [`StreamsBuilder::stream_pattern`](crate::StreamsBuilder::stream_pattern). Java: `addSource` with a `Pattern`.
    pub fn add_pattern_source<K: 'static, V: 'static>(
        &mut self,
        name: &str,
        pattern: &str,
        consumed: Consumed<K, V>,
    ) -> &mut Self {
        match TopicPattern::new(pattern) {
            Ok(pattern) => drop(
                self.topology
                    .add_pattern_source(name, pattern, consumed.reset, consumed.source()),
            ),
            Err(error) => self.findings.push(error),
        }
        self
    }

    /// Adds a processor below nodes that are there already; `supplier` makes one for each task. Java: `addProcessor`.
    pub fn add_processor<'a, P, KIn, VIn, KOut, VOut>(
        &mut self,
        name: &str,
        parents: impl IntoIterator<Item = &'a str>,
        supplier: impl ProcessorSupplier<P>,
    ) -> &mut Self
    where
        P: Processor<KIn, VIn, KOut, VOut>,
        KIn: 'static,
        VIn: 'static,
        KOut: 'static,
        VOut: 'static,
    {
        let parents: Vec<&str> = parents.into_iter().collect();
        self.topology.add_processor(name, &parents, factory(supplier));
        self
    }

    /// Adds a node that writes the records of its parents to a topic, which has to exist. Java: `addSink`.
    pub fn add_sink<'a, K: 'static, V: 'static>(
        &mut self,
        name: &str,
        topic: &str,
        parents: impl IntoIterator<Item = &'a str>,
        produced: Produced<K, V>,
    ) -> &mut Self {
        let topic = SourceTopic::external(topic);
        self.sink(
            name,
            SinkTarget::Fixed(topic.clone()),
            SinkTopic::Static(topic),
            parents,
            produced,
        )
    }

    /// Adds a node that writes each record to the topic that `choose` answers. Java: `addSink` with a
    /// `TopicNameExtractor`.
    pub fn add_dynamic_sink<'a, K: 'static, V: 'static>(
        &mut self,
        name: &str,
        choose: impl Fn(&K, &V, &RecordContext) -> String + Send + Sync + 'static,
        parents: impl IntoIterator<Item = &'a str>,
        produced: Produced<K, V>,
    ) -> &mut Self {
        let dynamic = SinkTopic::Dynamic("closure".to_owned());
        self.sink(name, SinkTarget::Chosen(Arc::new(choose)), dynamic, parents, produced)
    }

    fn sink<'a, K: 'static, V: 'static>(
        &mut self,
        name: &str,
        target: SinkTarget<K, V>,
        topic: SinkTopic,
        parents: impl IntoIterator<Item = &'a str>,
        produced: Produced<K, V>,
    ) -> &mut Self {
        let sink = TypedSink {
            target,
            key: produced.key.resolve(None),
            value: produced.value.resolve(None),
            partitioner: produced.partitioner,
        };
        let parents: Vec<&str> = parents.into_iter().collect();
        self.topology.add_sink(name, &parents, topic, Arc::new(sink));
        self
    }

    /// Adds a store and lets processors use it. Processors that share a store work in the same tasks.
    /// Java: `addStateStore`.
    pub fn add_state_store<'a, K: 'static, V: 'static>(
        &mut self,
        store: StateStore<K, V>,
        processors: impl IntoIterator<Item = &'a str>,
    ) -> &mut Self {
        let definition = store.definition();
        let name = definition.spec.name.clone();
        self.topology.add_store(definition);
        for processor in processors {
            self.topology.connect_store(processor, &name);
        }
        self
    }

    /// Lets a processor use stores that were added. Java: `connectProcessorAndStateStores`.
    pub fn connect_processor_and_state_stores<'a>(
        &mut self,
        processor: &str,
        stores: impl IntoIterator<Item = &'a str>,
    ) -> &mut Self {
        for store in stores {
            self.topology.connect_store(processor, store);
        }
        self
    }

    /// Adds a store that every instance has in full: the processor is given every record of the topic and writes the
    /// store, which has no changelog, because the topic is one. It should store what it reads, key by key, and forwards
    /// nothing. All other processors can read it, by `global_store`, without being connected.
    ///
    /// Java: `addGlobalStore`.
    pub fn add_global_store<P, K, V, KIn, VIn>(
        &mut self,
        store: StateStore<K, V>,
        source: (&str, Consumed<KIn, VIn>),
        topic: &str,
        processor: (&str, impl ProcessorSupplier<P>),
    ) -> &mut Self
    where
        P: Processor<KIn, VIn, (), ()>,
        K: 'static,
        V: 'static,
        KIn: 'static,
        VIn: 'static,
    {
        let store = store.without_logging().caching(false).definition();
        let (source_name, consumed) = source;
        let (name, supplier) = processor;
        self.topology.add_global_store(
            store,
            topic,
            (source_name, consumed.source()),
            (name, factory(supplier)),
        );
        self
    }

    /// Adds a store that only its own processor writes, from a topic that serves as its changelog (KIP-813): each task
    /// has the rows of its partition, and a restart reads the topic again. The processor should store what it reads, key
    /// by key, because a restore copies the topic's records.
    ///
    /// Java: `addReadOnlyStateStore`.
    pub fn add_read_only_state_store<P, K, V, KOut, VOut>(
        &mut self,
        store: StateStore<K, V>,
        source: (&str, Consumed<K, V>),
        topic: &str,
        processor: (&str, impl ProcessorSupplier<P>),
    ) -> &mut Self
    where
        P: Processor<K, V, KOut, VOut>,
        K: 'static,
        V: 'static,
        KOut: 'static,
        VOut: 'static,
    {
        let mut definition = store.caching(false).logging([]).definition();
        definition.changelog = definition.changelog.map(|changelog| changelog.in_source_topic(topic));
        let store_name = definition.spec.name.clone();
        let (source_name, consumed) = source;
        let (name, supplier) = processor;
        self.add_source(source_name, [topic], consumed);
        self.topology.add_processor(name, &[source_name], factory(supplier));
        self.topology.add_store(definition);
        self.topology.connect_store(name, &store_name);
        self
    }

    /// The topology.
    ///
    /// # Errors
    /// Everything that is wrong, all at once: names, parents, stores, topics read twice.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        match (self.findings.as_slice(), self.topology.validate()) {
            ([], valid) => valid?,
            ([one], Ok(())) => return Err(one.clone()),
            (found, valid) => {
                let more = match valid {
                    Err(TopologyError::Several(more)) => more,
                    other => other.err().into_iter().collect(),
                };
                return Err(TopologyError::Several([found, &more].concat()));
            }
        }
        Ok(self.topology.clone())
    }
}

fn factory<P, KIn: 'static, VIn: 'static, KOut: 'static, VOut: 'static>(
    supplier: impl ProcessorSupplier<P>,
) -> Arc<dyn NodeFactory>
where
    P: Processor<KIn, VIn, KOut, VOut>,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        ProcessorNode::<P, KOut, VOut>::build::<KIn, VIn>(builder, supplier.get())
    })
}
