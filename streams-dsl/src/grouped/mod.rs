//! Grouped streams: counting, reducing, aggregating, plain and in time windows.

mod aggregate;
mod aggregate_opt;
mod cogroup;
mod count;
mod count_windows;
mod emission;
mod late;
mod reduce;
mod session;
mod session_aggregate;
mod sliding_aggregate;
mod spread;
mod store;
mod table;
mod wall_clock;
mod windowed;
mod windowed_aggregate;

use std::sync::{Arc, Mutex, PoisonError};

use streams_core::serde::SharedSerde;

use crate::graph::{Graph, NodeId};
use crate::kstream::{KStream, RepartitionParts};

pub use cogroup::{CogroupWindows, CogroupedKStream, SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream};
pub use count_windows::CountWindowedKStream;
pub use session::SessionWindowedKStream;
pub use spread::SpreadKGroupedStream;
pub use table::KGroupedTable;
pub use windowed::{EmitStrategy, TimeWindowedKStream, WindowsOf};

/// A stream grouped by its keys, to be counted, reduced or aggregated: plainly, or with
/// [`windowed_by`](KGroupedStream::windowed_by) by time windows.
///
/// If the key was changed before, the records go through the topic `<application.id>-<name of the store>-repartition`
/// ([`Grouped::named`](crate::Grouped::named) gives another name, and several aggregations share it). Records with a null
/// key are dropped and counted.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     let bytes = b.stream::<String, i64>("usage").group_by_key();
///     bytes.count("requests").to_stream().to("requests");
///     bytes.reduce(|_tenant, bytes, sum| sum + bytes, "bytes").to_stream().to("bytes")
/// })
/// .pipe("usage", [("a", 7, at(0)), ("a", 5, at(1))])
/// .gives("requests", [("a", 1, at(0)), ("a", 2, at(1))])
/// .gives("bytes", [("a", 7, at(0)), ("a", 12, at(1))]);
/// ```
///
/// Java counterpart: `KGroupedStream`.
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
