//! `repartition`, and the repartitions that grouping and joining need.

use std::sync::Arc;

use streams_core::processor::{
    Downstream, NodeFactory, SinkPartitioner, SinkTarget, TaskContext, Timestamps, TypedSink, TypedSource,
};
use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::topology::SourceTopic;
use streams_core::{ProcessResult, Record};

use super::KStream;
use crate::config::Repartitioned;
use crate::graph::{FilterFactory, Graph, Kind, NodeId, Repartition};
use crate::names::{RepartitionNames, Step};
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Sends the stream through a topic of its own, so that its records are in partitions by their keys. Records with a
    /// null key are left out, as in every repartition. Grouping and joining do this by themselves where keys may have
    /// changed. The topic's name has a generated number: see [`repartition_with`](Self::repartition_with).
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("in").repartition().to("out"))
    ///     .pipe("in", [("a", 1, at(0))])
    ///     .gives("out", [("a", 1, at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.repartition`.
    pub fn repartition(&self) -> KStream<K, V>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.repartition_with(Repartitioned::default())
    }

    /// As [`repartition`](Self::repartition), in a given way: name, partition count, partitioner.
    pub fn repartition_with(&self, repartitioned: Repartitioned<K, V>) -> KStream<K, V> {
        let key = repartitioned.key.resolve(self.key.as_ref());
        let value = repartitioned.value.resolve(self.value.as_ref());
        let parts = RepartitionParts {
            key: Arc::clone(&key),
            value: Arc::clone(&value),
            partitions: repartitioned.partitions,
            partitioner: repartitioned.partitioner,
            optimizable: false,
        };
        let node = self.builder.with(|graph| {
            if repartitioned.partitions.is_some_and(|count| count < 1) {
                graph.found("a repartition topic needs at least one partition");
            }
            let prefix = graph
                .names
                .node_unless_given(Step::Repartition, repartitioned.name.as_deref());
            let names = graph.names.repartition(&prefix);
            parts.add(graph, names, self.node)
        });
        self.behind(node, key, value)
    }

    /// The stream behind a repartition.
    pub(crate) fn behind(&self, node: NodeId, key: SharedSerde<K>, value: SharedSerde<V>) -> KStream<K, V> {
        KStream {
            builder: self.builder.clone(),
            node,
            key: Some(key),
            value: Some(value),
            sources: vec![node],
            key_changed: false,
        }
    }

    /// This stream, ready to be joined: repartitioned if keys may have changed. `name` is the join's, if it has one.
    pub(crate) fn for_join(&self, name: Option<&str>, key: SharedSerde<K>, value: SharedSerde<V>) -> KStream<K, V> {
        if !self.key_changed {
            return self.clone();
        }
        let (key_serde, value_serde) = (Arc::clone(&key), Arc::clone(&value));
        let parts = RepartitionParts {
            key: key_serde,
            value: value_serde,
            partitions: None,
            partitioner: None,
            optimizable: true,
        };
        let node = self.builder.with(|graph| {
            let prefix = name.map_or_else(|| graph.name(self.node).to_string(), str::to_owned);
            // Numbers are drawn also where a repartition is used again.
            let names = graph.names.repartition(&prefix);
            if name.is_none()
                && let Some(known) = graph.join_repartitions.get(&self.node)
            {
                return *known;
            }
            let node = parts.add(graph, names, self.node);
            if name.is_none() {
                graph.join_repartitions.insert(self.node, node);
            }
            node
        });
        self.behind(node, key, value)
    }
}

/// What a repartition is made of.
pub(crate) struct RepartitionParts<K, V> {
    pub(crate) key: SharedSerde<K>,
    pub(crate) value: SharedSerde<V>,
    pub(crate) partitions: Option<i32>,
    pub(crate) partitioner: Option<SinkPartitioner<K, V>>,
    pub(crate) optimizable: bool,
}

impl<K: 'static, V: 'static> RepartitionParts<K, V> {
    pub(crate) fn add(self, graph: &mut Graph, names: RepartitionNames, parent: NodeId) -> NodeId {
        let topic: Arc<str> = names.topic.into();
        let sink = TypedSink {
            target: SinkTarget::Fixed(SourceTopic {
                name: Arc::clone(&topic),
                internal: true,
            }),
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            partitioner: self.partitioner,
        };
        let (key, value) = (Arc::clone(&self.key), self.value);
        let source = TypedSource {
            key,
            value,
            timestamps: Timestamps::FailOnInvalid,
        };
        let repartition = Repartition {
            topic,
            sink_name: names.sink.into(),
            partitions: self.partitions,
            optimizable: self.optimizable,
            filter: Some((names.filter.into(), filter::<K, V>(self.key))),
            sink: Arc::new(sink),
            source: Arc::new(source),
        };
        graph.add(names.source, &[parent], Kind::Repartition(Box::new(repartition)))
    }
}

fn filter<K: 'static, V: 'static>(key: SharedSerde<K>) -> FilterFactory {
    Arc::new(move |nulls_pass| -> Arc<dyn NodeFactory> {
        let key = Arc::clone(&key);
        factory::<K, V, K, V, _>(move |parts| NullKeyFilter {
            parts,
            key: Arc::clone(&key),
            nulls_pass,
        })
    })
}

/// The filter before a repartition topic. What it leaves out has a counter of its own: Java does not count it, and
/// `dropped-records-total` is to mean the same.
struct NullKeyFilter<K, V> {
    parts: Parts<K, V>,
    key: SharedSerde<K>,
    nulls_pass: bool,
}

impl<K: 'static, V> Downstream<K, V> for NullKeyFilter<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if !self.nulls_pass && self.key.is_null(record.key) {
            cx.counters.unpartitioned_records += 1;
            return Ok(());
        }
        self.parts.children.forward(cx, record)
    }
}
