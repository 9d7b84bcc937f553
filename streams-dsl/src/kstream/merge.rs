//! `merge`.

use super::KStream;
use crate::graph::Processor;
use crate::names::Step;
use crate::node::{PassThrough, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// The records of both streams, without an order between them. Serdes given at the sources are forgotten: steps that
    /// write take the types' default ones, or are given some.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// let builder = StreamsBuilder::new();
    /// let (eu, us) = (builder.stream::<String, i64>("eu"), builder.stream::<String, i64>("us"));
    /// eu.merge(&us).to("all");
    /// assert!(builder.build()?.describe().contains("KSTREAM-MERGE-0000000002"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    ///
    /// Java counterpart: `KStream.merge`.
    pub fn merge(&self, other: &KStream<K, V>) -> KStream<K, V> {
        let factory = factory::<K, V, K, V, _>(PassThrough);
        let same_builder = self.builder.same_as(&other.builder);
        let node = self.builder.with(|graph| {
            if !same_builder {
                graph.found("streams of two builders can't be merged");
            }
            let name = graph.names.node(Step::Merge, None);
            let parents: &[_] = if same_builder { &[self.node, other.node] } else { &[self.node] };
            let node = graph.add(name, parents, Processor::stateless(factory));
            if let Some(added) = graph.node_mut(node) {
                added.flags.merge = true;
            }
            node
        });
        let mut sources = self.sources.clone();
        sources.extend(other.sources.iter().filter(|source| !self.sources.contains(source)));
        let key_changed = self.key_changed || other.key_changed;
        KStream { builder: self.builder.clone(), node, key: None, value: None, sources, key_changed }
    }
}
