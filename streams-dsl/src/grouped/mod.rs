//! Grouped streams: counting, reducing, aggregating, plain and in time windows.

mod aggregate;
mod count;
mod reduce;
mod store;
mod table;
mod windowed;
mod windowed_aggregate;

use std::sync::{Arc, Mutex, PoisonError};

use streams_core::serde::SharedSerde;

use crate::graph::{Graph, NodeId};
use crate::kstream::{KStream, RepartitionParts};

pub use table::KGroupedTable;
pub use windowed::TimeWindowedKStream;

/// A stream grouped by its keys, to be counted, reduced or aggregated. Java counterpart: `KGroupedStream`.
pub struct KGroupedStream<K, V> {
    pub(crate) stream: KStream<K, V>,
    pub(crate) key: SharedSerde<K>,
    pub(crate) value: SharedSerde<V>,
    /// The repartition's name, if it was given one.
    pub(crate) name: Option<String>,
    /// The repartition made under that name: several aggregations use the same one.
    pub(crate) repartition: Arc<Mutex<Option<NodeId>>>,
}

impl<K, V> Clone for KGroupedStream<K, V> {
    fn clone(&self) -> Self {
        KGroupedStream {
            stream: self.stream.clone(),
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            name: self.name.clone(),
            repartition: Arc::clone(&self.repartition),
        }
    }
}

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Where an aggregation reads: behind a repartition if keys may have changed. Answers that node and the sources of
    /// what it gives. Called after the names of store and node are drawn.
    fn input(&self, graph: &mut Graph, store: &str) -> (NodeId, Vec<NodeId>) {
        if !self.stream.key_changed {
            return (self.stream.node, self.stream.sources.clone());
        }
        let names = graph.names.repartition(self.name.as_deref().unwrap_or(store));
        let mut known = self.repartition.lock().unwrap_or_else(PoisonError::into_inner);
        let node = match (*known, &self.name) {
            (Some(node), Some(_)) => node,
            _ => {
                let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
                let parts = RepartitionParts {
                    key,
                    value,
                    partitions: None,
                    partitioner: None,
                    optimizable: true,
                };
                parts.add(graph, names, self.stream.node)
            }
        };
        *known = Some(node);
        (node, vec![node])
    }
}
