//! Tables: the last value of each key, and its changes.

mod derived;
mod filter;
mod foreign;
mod global;
mod group_by;
mod join;
mod join_node;
mod map_values;
mod merge;
mod source;
mod suppress;
mod to_stream;
mod transform_values;
mod view;

use std::sync::Arc;

use streams_core::serde::SharedSerde;

use crate::graph::{Graph, NodeId, Shared};
use crate::windows::Closing;

pub use global::GlobalKTable;
pub(crate) use source::{TableFlags, source_factory};
pub use transform_values::{ValueTransformer, ValueTransformerContext};
pub(crate) use view::{StoreView, TableView, View};

/// Asks a table to send old values with its changes; with `true` it stores its rows for that if need be. Answers
/// whether it sends them.
pub(crate) type AskOld = Arc<dyn Fn(&mut Graph, bool) -> bool + Send + Sync>;

/// Of a table that can store its rows: it knows old values if it does.
pub(crate) fn ask_stored(node: NodeId, flags: Arc<TableFlags>) -> AskOld {
    Arc::new(move |graph, force| {
        let sends = force || graph.is_materialized(node);
        if sends {
            graph.materialize(node);
            flags.send_old();
        }
        sends
    })
}

/// A table: for each key the last value; an update replaces it, a null value deletes it.
///
/// A handle: using it twice attaches two steps to the same table. Values of a table are never null, so closures get a
/// plain `V`; its updates are, as [`to_stream`](KTable::to_stream) shows: `Option<V>`, where `None` is a deletion.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     let prices = b.table::<String, i64>("prices");
///     prices.filter(|_item, cents| *cents >= 100).to_stream().to("not-cheap")
/// })
/// .pipe("prices", [("tea", Some(450), at(0)), ("tea", Some(50), at(1)), ("pot", Some(900), at(2)), ("pot", None, at(3))])
/// .gives("not-cheap", [("tea", Some(450), at(0)), ("tea", None, at(1)), ("pot", Some(900), at(2)), ("pot", None, at(3))]);
/// ```
///
/// Java counterpart: `KTable`.
pub struct KTable<K, V> {
    pub(crate) builder: Shared,
    pub(crate) node: NodeId,
    pub(crate) key: SharedSerde<K>,
    pub(crate) value: SharedSerde<V>,
    pub(crate) sources: Vec<NodeId>,
    pub(crate) view: View<K, V>,
    pub(crate) ask_old: AskOld,
    /// When the windows of a windowed table's keys are closed.
    pub(crate) closing: Option<Closing>,
}

impl<K, V> Clone for KTable<K, V> {
    fn clone(&self) -> Self {
        KTable {
            builder: self.builder.clone(),
            node: self.node,
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            sources: self.sources.clone(),
            view: self.view.clone(),
            ask_old: Arc::clone(&self.ask_old),
            closing: self.closing,
        }
    }
}

impl<K: 'static, V: 'static> KTable<K, V> {
    /// Names the node of the step that made this table (for a table read from a topic the source becomes
    /// `NAME-source`). Java: `Named.as`.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.builder.with(|graph| graph.rename(self.node, name));
        self
    }
}
