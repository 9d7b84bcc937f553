//! The builder: where topologies begin and end.

use std::any::TypeId;
use std::sync::Arc;

use streams_core::processor::{
    NodeBuilder, Processor, ProcessorNode, ProcessorSupplier, RecordTimes, Timestamps, TypedSource,
};
use streams_core::serde::{DefaultSerde, OptionSerde};
use streams_core::topology::{Topology, TopologyError};

use crate::config::{Consumed, Materialized};
use crate::graph::{GlobalTable, Kind, Shared, Source, TableSource};
use crate::kstream::KStream;
use crate::ktable::{AskOld, GlobalKTable, KTable, TableFlags, View, source_factory};
use crate::names::Step;
use crate::stores::{Shape, StateStore};

/// What the optimizer may change. Java: `topology.optimization`; default: nothing. It changes names of internal topics, so
/// an application that runs keeps what it began with.
///
/// ```
/// use streams_dsl::{Optimization, StreamsBuilder, TopologyConfig};
/// let builder = StreamsBuilder::new();
/// builder.table::<String, i64>("prices").to_stream().to("out");
/// let optimization = Optimization::parse("reuse.ktable.source.topics")?;
/// let topology = builder.build_with(&TopologyConfig { optimization })?;
/// # let _ = topology;
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optimization {
    /// `reuse.ktable.source.topics`: the store of a `table` uses its source topic as changelog.
    pub reuse_source_topics: bool,
    /// `merge.repartition.topics`: repartitions below one key-changing step become one.
    pub merge_repartition_topics: bool,
    /// `single.store.self.join`: a stream joined with itself keeps its records once.
    pub single_store_self_join: bool,
}

impl Optimization {
    /// Reads the value of `topology.optimization`: `none`, `all`, or a list of the three names above.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        let mut optimization = Optimization::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "none" => {}
                "all" => {
                    optimization = Optimization {
                        reuse_source_topics: true,
                        merge_repartition_topics: true,
                        single_store_self_join: true,
                    }
                }
                "reuse.ktable.source.topics" => optimization.reuse_source_topics = true,
                "merge.repartition.topics" => optimization.merge_repartition_topics = true,
                "single.store.self.join" => optimization.single_store_self_join = true,
                other => {
                    return Err(TopologyError::Invalid(format!(
                        "topology.optimization can't be `{other}`: use none, all, reuse.ktable.source.topics, merge.repartition.topics or single.store.self.join"
                    )));
                }
            }
        }
        Ok(optimization)
    }
}

/// How a builder makes its topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyConfig {
    /// What may be optimized.
    pub optimization: Optimization,
}

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
        let source = Source {
            topics: topics.into_iter().map(Arc::from).collect(),
            reset: consumed.reset,
            factory: consumed.source(),
            types: (TypeId::of::<(K, V)>(), std::any::type_name::<(K, V)>()),
        };
        let node = self.shared.with(|graph| {
            if source.topics.is_empty() {
                graph.found("a stream needs a topic");
            }
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

    /// Reads a topic as a table in a given way; a named store is made in any case. Updates that are older than the
    /// stored row are applied all the same, as in Java: the last offset wins. Event times come from the records.
    pub fn table_with<K: 'static, V: Clone + 'static>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V> {
        let materialized = materialized.into();
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&consumed.key));
        let value = match &materialized.value {
            crate::serdes::Chosen::Given(given) => Arc::clone(given),
            crate::serdes::Chosen::Default(_) => Arc::clone(&consumed.value),
        };
        let flags = Arc::new(TableFlags::default());
        let (node, store_name) = self.shared.with(|graph| {
            let store_name = graph.names.store(&format!("{topic}-"), materialized.name.as_deref());
            let source_name = graph.names.node(
                Step::Source,
                consumed.name.as_ref().map(|name| format!("{name}-source")).as_deref(),
            );
            let name = graph.names.node(Step::TableSource, consumed.name.as_deref());
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            )
            .definition();
            let table = TableSource {
                source_name: source_name.into(),
                topic: topic.into(),
                reset: consumed.reset,
                source: nullable_source(&consumed),
                factory: source_factory::<K, V>(store_name.as_str().into(), Arc::clone(&key), Arc::clone(&flags)),
                store,
                materialized: materialized.name.is_some(),
            };
            (graph.add(name, &[], Kind::TableSource(Box::new(table))), store_name)
        });
        let ask_old: AskOld = Arc::new(move |graph, force| {
            let sends = force || graph.is_materialized(node);
            if sends {
                graph.materialize(node);
                flags.send_old();
            }
            sends
        });
        let view = View::of_store(node, &store_name);
        KTable {
            builder: self.shared.clone(),
            node,
            key,
            value,
            sources: vec![node],
            view,
            ask_old,
            closing: None,
        }
    }

    /// Reads a topic as a global table: every instance has all of it, whatever its partitions, before anything is
    /// processed. Java: `globalTable`.
    pub fn global_table<K: DefaultSerde, V: DefaultSerde + Clone>(&self, topic: &str) -> GlobalKTable<K, V> {
        self.global_table_with(topic, Consumed::default(), Materialized::unnamed())
    }

    /// Reads a topic as a global table in a given way. Its store has no changelog: the topic is one.
    pub fn global_table_with<K: 'static, V: Clone + 'static>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        materialized: impl Into<Materialized<K, V>>,
    ) -> GlobalKTable<K, V> {
        let materialized = materialized.into().without_logging().caching(false);
        let (key, value) = (Arc::clone(&consumed.key), Arc::clone(&consumed.value));
        let flags = Arc::new(TableFlags::default());
        let store_name = self.shared.with(|graph| {
            if materialized.history.is_some() {
                graph.found(format!("global table `{topic}` can't be versioned"));
            }
            let store_name = graph.names.store(&format!("{topic}-"), materialized.name.as_deref());
            let source_name = graph.names.node(
                Step::Source,
                consumed.name.as_ref().map(|name| format!("{name}-source")).as_deref(),
            );
            let name = graph.names.node(Step::TableSource, consumed.name.as_deref());
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            )
            .definition();
            let table = GlobalTable {
                source_name: source_name.into(),
                topic: topic.into(),
                source: nullable_source(&consumed),
                factory: source_factory::<K, V>(store_name.as_str().into(), Arc::clone(&key), Arc::clone(&flags)),
                store,
            };
            graph.add(name, &[], Kind::GlobalTable(Box::new(table)));
            store_name
        });
        GlobalKTable {
            builder: self.shared.clone(),
            key,
            store: store_name.into(),
            value,
        }
    }

    /// Adds a store that every instance has in full, written by a processor that is given every record of a topic. All
    /// other processors can read it, by `global_store`, without being connected. See
    /// [`TopologyBuilder::add_global_store`](crate::TopologyBuilder::add_global_store).
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// /// Stores what it reads.
    /// struct Keep;
    /// impl Processor<String, i64, (), ()> for Keep {
    ///     fn process(&mut self, cx: &mut ProcessorContext<'_, (), ()>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
    ///         let rates = cx.key_value_store::<String, i64>("rates")?;
    ///         rates.put(cx, record.key, Some(*record.value), record)?;
    ///         Ok(())
    ///     }
    /// }
    /// /// Multiplies by the rate of the key.
    /// struct Convert;
    /// impl Processor<String, i64, String, i64> for Convert {
    ///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
    ///         let rate = cx.global_store::<String, i64>("rates")?.get(cx, record.key)?.map_or(1, |row| row.value);
    ///         Ok(cx.forward(record.with_value(&(record.value * rate)))?)
    ///     }
    /// }
    /// run(|b| {
    ///     b.add_global_store(Stores::key_value::<String, i64>("rates"), "rates-topic", Consumed::default(), || Keep);
    ///     b.stream::<String, i64>("in").process(|| Convert).to("out")
    /// })
    /// .pipe("rates-topic", [("eur", 2, at(0))])
    /// .pipe("in", [("eur", 5, at(1)), ("usd", 5, at(2))])
    /// .gives("out", [("eur", 10, at(1)), ("usd", 5, at(2))]);
    /// ```
    ///
    /// Java: `addGlobalStore`.
    pub fn add_global_store<P, K, V, KIn, VIn>(
        &self,
        store: StateStore<K, V>,
        topic: &str,
        consumed: Consumed<KIn, VIn>,
        supplier: impl ProcessorSupplier<P>,
    ) -> &Self
    where
        P: Processor<KIn, VIn, (), ()>,
        K: 'static,
        V: 'static,
        KIn: 'static,
        VIn: 'static,
    {
        let store = store.without_logging().caching(false).definition();
        let source = consumed.source();
        let factory =
            move |builder: &mut NodeBuilder<'_>| ProcessorNode::<P, (), ()>::build::<KIn, VIn>(builder, supplier.get());
        self.shared.with(|graph| {
            let given = consumed.name.as_ref().map(|name| format!("{name}-source"));
            let source_name = graph.names.node(Step::Source, given.as_deref());
            let name = graph.names.node(Step::TableSource, consumed.name.as_deref());
            let table = GlobalTable {
                source_name: source_name.into(),
                topic: topic.into(),
                source,
                factory: Arc::new(factory),
                store,
            };
            graph.add(name, &[], Kind::GlobalTable(Box::new(table)));
        });
        self
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

/// A table's source reads nulls as deletes, which have no value to find an event time in: they have the record's own.
fn nullable_source<K: 'static, V: 'static>(consumed: &Consumed<K, V>) -> Arc<TypedSource<K, Option<V>>> {
    let timestamps = match &consumed.timestamps {
        Timestamps::FailOnInvalid => Timestamps::FailOnInvalid,
        Timestamps::SkipInvalid => Timestamps::SkipInvalid,
        Timestamps::PartitionTimeOnInvalid => Timestamps::PartitionTimeOnInvalid,
        Timestamps::WallClock => Timestamps::WallClock,
        Timestamps::Extracted(extract) => {
            let extract = Arc::clone(extract);
            Timestamps::Extracted(Arc::new(
                move |key: &K, value: &Option<V>, times: RecordTimes| match value {
                    Some(value) => extract(key, value, times),
                    None => times.record_ms,
                },
            ))
        }
    };
    let value = Arc::new(OptionSerde(Arc::clone(&consumed.value)));
    Arc::new(TypedSource {
        key: Arc::clone(&consumed.key),
        value,
        timestamps,
    })
}
