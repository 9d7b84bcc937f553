//! The builder: where topologies begin and end.

mod global_store;
mod options;
mod tables;

use std::any::TypeId;
use std::sync::Arc;

use streams_core::serde::DefaultSerde;
use streams_core::topology::{TopicPattern, Topology, TopologyError};

use crate::config::{Consumed, Materialized};
use crate::graph::{Kind, Shared, Source};
use crate::kstream::KStream;
use crate::ktable::KTable;
use crate::names::Step;
use crate::stores::StateStore;

pub use options::{Optimization, TopologyConfig};

/// Builds topologies of streams and tables.
///
/// Handles are cheap and can be used again: each call adds a step and gives a new handle.
///
/// ```
/// use streams_dsl::StreamsBuilder;
/// let builder = StreamsBuilder::new();
/// builder
///     .stream::<String, String>("lines")
///     .flat_map_values(|_key, line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
///     .group_by(|_key, word| word.clone())
///     .count("counts")
///     .to_stream()
///     .to("counts-by-word");
/// let topology = builder.build()?;
/// assert!(topology.describe().contains("Sub-topology: 1"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
///
/// Java counterpart: `org.apache.kafka.streams.StreamsBuilder`.
#[derive(Clone, Default)]
pub struct StreamsBuilder {
    shared: Shared,
}

impl StreamsBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a topic with the types' default serdes. A null key or value that meets a plain type goes to the
    /// deserialization handler; read it as `Option<V>` where nulls mean something. Event times are the records' timestamps,
    /// milliseconds since the Unix epoch.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<Option<String>, i64>("in").map(|key, value| (key.is_some().to_string(), *value)).to("out"))
    ///     .pipe("in", [(Some("a"), 1, at(5)), (None, 2, at(6))])
    ///     .gives("out", [("true", 1, at(5)), ("false", 2, at(6))]);
    /// ```
    ///
    /// Java counterpart: `StreamsBuilder.stream`.
    pub fn stream<K: DefaultSerde, V: DefaultSerde>(&self, topic: &str) -> KStream<K, V> {
        self.stream_with(topic, Consumed::default())
    }

    /// Reads a topic in a given way. Java: `stream(topic, Consumed)`.
    pub fn stream_with<K: 'static, V: 'static>(&self, topic: &str, consumed: Consumed<K, V>) -> KStream<K, V> {
        self.stream_of([topic], consumed)
    }

    /// Reads several topics of the same types as one stream, without an order between them; at least one.
    ///
    /// Java counterpart: `stream(Collection)`.
    pub fn stream_of<'a, K: 'static, V: 'static>(
        &self,
        topics: impl IntoIterator<Item = &'a str>,
        consumed: Consumed<K, V>,
    ) -> KStream<K, V> {
        let topics: Vec<Arc<str>> = topics.into_iter().map(Arc::from).collect();
        if topics.is_empty() {
            self.shared.with(|graph| graph.found("a stream needs a topic"));
        }
        self.stream_from(topics, None, consumed)
    }

    /// Reads all topics whose whole names fit a pattern, as [`stream_of`](Self::stream_of) reads topics by name.
    ///
    /// Members of a streams group name their topics (KIP-1071), so `KafkaStreams` refuses such a topology, as Java does under
    /// that protocol, until [`Topology::with_topics`] tells it the topics. The test driver reads those that fit of
    /// [`DriverOptions::partitions`](crate::DriverOptions::partitions).
    ///
    /// ```
    /// use streams_dsl::prelude::*;
    /// let builder = StreamsBuilder::new();
    /// builder.stream_pattern::<String, i64>("usage-.*", Consumed::default()).to("usage");
    /// let partitions = [("usage-eu".to_owned(), 1), ("usage-us".to_owned(), 1)].into();
    /// let options = DriverOptions { partitions, ..DriverOptions::default() };
    /// let mut driver = TopologyTestDriver::new(&builder.build()?, options)?;
    /// TestInput::<String, i64>::of("usage-eu").pipe(&mut driver, "web", 7, 1_000)?;
    /// let usage = TestOutput::<String, i64>::of("usage");
    /// assert_eq!(usage.read_key_value(&mut driver)?, Some(("web".to_owned(), 7)));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// Java counterpart: `stream(Pattern)`.
    pub fn stream_pattern<K: 'static, V: 'static>(&self, pattern: &str, consumed: Consumed<K, V>) -> KStream<K, V> {
        let pattern = TopicPattern::new(pattern);
        let pattern = pattern.map_err(|error| self.shared.with(|graph| graph.findings.push(error)));
        self.stream_from(Vec::new(), pattern.ok(), consumed)
    }

    fn stream_from<K: 'static, V: 'static>(
        &self,
        topics: Vec<Arc<str>>,
        pattern: Option<TopicPattern>,
        consumed: Consumed<K, V>,
    ) -> KStream<K, V> {
        let source = Source {
            topics,
            pattern,
            reset: consumed.reset,
            factory: consumed.source(),
            types: (TypeId::of::<(K, V)>(), std::any::type_name::<(K, V)>()),
        };
        let node = self.shared.with(|graph| {
            let name = graph.names.node(Step::Source, consumed.name.as_deref());
            graph.add(name, &[], Kind::Source(source))
        });
        KStream {
            builder: self.shared.clone(),
            node,
            key: Some(consumed.key),
            value: Some(consumed.value),
            sources: vec![node],
            key_changed: false,
        }
    }

    /// Reads a topic as a table: the last value of each key. A null value deletes, a null key is dropped and counted.
    ///
    /// Rows are stored only where something looks them up (a join), or when the store is named:
    /// [`table_with`](Self::table_with).
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let prices = b.table::<String, i64>("prices");
    ///     b.stream::<String, i64>("orders").join_table(&prices, |_item, count, cents| count * cents).to("sums")
    /// })
    /// .pipe("prices", [("tea", Some(450), at(0))])
    /// .pipe("orders", [("tea", 2, at(1)), ("pot", 1, at(2))])
    /// .gives("sums", [("tea", 900, at(1))]);
    /// ```
    ///
    /// Java counterpart: `StreamsBuilder.table`.
    pub fn table<K: DefaultSerde, V: DefaultSerde + Clone>(&self, topic: &str) -> KTable<K, V> {
        self.table_with(topic, Consumed::default(), Materialized::unnamed())
    }

    /// Adds a store by name, for processors that connect to it. Java: `addStateStore`.
    pub fn add_state_store<K: 'static, V: 'static>(&self, store: StateStore<K, V>) -> &Self {
        let definition = store.definition();
        self.shared.with(|graph| {
            graph.stores.push(definition);
        });
        self
    }

    /// The topology, not optimized. Can be called again; what is added later is in the next one.
    ///
    /// # Errors
    /// Everything that is wrong, all at once: names, stores, topics read twice, types that do not fit.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        self.build_with(&TopologyConfig::default())
    }

    /// The topology, built in a given way.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_with(&self, config: &TopologyConfig) -> Result<Topology, TopologyError> {
        self.shared.with(|graph| graph.build(config.optimization))
    }
}
