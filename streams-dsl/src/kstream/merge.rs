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
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (eu, us) = (b.stream::<String, i64>("eu"), b.stream::<String, i64>("us"));
    ///     eu.merge(&us).to("all")
    /// })
    /// .pipe("eu", [("a", 1, at(0))])
    /// .pipe("us", [("b", 2, at(1))])
    /// .gives("all", [("a", 1, at(0)), ("b", 2, at(1))]);
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
            let parents: &[_] = if same_builder {
                &[self.node, other.node]
            } else {
                &[self.node]
            };
            let node = graph.add(name, parents, Processor::stateless(factory));
            if let Some(added) = graph.node_mut(node) {
                added.flags.merge = true;
            }
            node
        });
        let mut sources = self.sources.clone();
        sources.extend(other.sources.iter().filter(|source| !self.sources.contains(source)));
        let key_changed = self.key_changed || other.key_changed;
        KStream {
            builder: self.builder.clone(),
            node,
            key: None,
            value: None,
            sources,
            key_changed,
        }
    }
}
