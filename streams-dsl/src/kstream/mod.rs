//! Streams of records: one operation per file.

mod bad_records;
mod drop_duplicates;
mod event_id;
mod filter;
mod flat_map;
mod flat_map_values;
mod for_each;
mod group_by;
mod join;
mod join_as_of;
mod join_global;
mod join_grace;
mod join_node;
mod join_table;
mod map;
mod map_values;
mod merge;
mod optional_keys;
mod peek;
mod process;
mod process_values;
mod records;
mod repartition;
mod select_key;
mod self_join;
mod split;
mod to;
mod to_table;
mod ungrouped;

use std::sync::Arc;

use streams_core::processor::NodeFactory;
use streams_core::serde::SharedSerde;

use crate::graph::{Kind, NodeId, Processor, Shared};
use crate::names::Step;

pub use drop_duplicates::DuplicatesWithin;
pub use join_as_of::AsOf;
pub use records::{NewRecord, RecordMeta};
pub(crate) use repartition::RepartitionParts;
pub use split::{Branched, BranchedKStream};

/// A stream of records with keys `K` and values `V`: each record is a fact of its own.
///
/// A handle: using it twice attaches two steps to the same stream. Closures get the key first, by reference, and the
/// value by reference; whatever they panic with, and every error they answer, is a failure of their own step and goes
/// to the processing handler. Nulls are `Option`: a stream of `String` and `Option<i64>` has values that may be null.
///
/// Steps that change the key (`map`, `flat_map`, `select_key`, `group_by`) make the next grouping or join send the
/// records through a repartition topic; `map_values` and its like do not.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     let usage = b.stream::<String, i64>("usage");
///     usage.filter(|_tenant, bytes| *bytes > 100).to("large");
///     usage.map_values(|_tenant, bytes| bytes * 2).to("doubled")
/// })
/// .pipe("usage", [("a", 7, at(0)), ("b", 500, at(1))])
/// .gives("large", [("b", 500, at(1))])
/// .gives("doubled", [("a", 14, at(0)), ("b", 1_000, at(1))]);
/// ```
///
/// Java counterpart: `KStream`.
pub struct KStream<K, V> {
    pub(crate) builder: Shared,
    pub(crate) node: NodeId,
    /// The serdes the records came with, where they are still the right ones.
    pub(crate) key: Option<SharedSerde<K>>,
    pub(crate) value: Option<SharedSerde<V>>,
    /// The sources whose partitions these records are in.
    pub(crate) sources: Vec<NodeId>,
    /// Keys may have changed since the records were partitioned (Java: `repartitionRequired`).
    pub(crate) key_changed: bool,
}

impl<K, V> Clone for KStream<K, V> {
    fn clone(&self) -> Self {
        KStream {
            builder: self.builder.clone(),
            node: self.node,
            key: self.key.clone(),
            value: self.value.clone(),
            sources: self.sources.clone(),
            key_changed: self.key_changed,
        }
    }
}

/// What a step makes of the stream's keys.
pub(crate) enum Keys<K> {
    /// They may be others: serdes are unknown, and a repartition is needed before grouping or joining.
    Changed,
    /// They are the same.
    Kept(Option<SharedSerde<K>>),
}

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Names the node of the step that made this stream. The step's number is drawn all the same, so other names stay as
    /// they are. Java: `Named.as`.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, i64>("in").filter(|_key, value| *value > 0).named("billable").to("out");
    /// assert!(builder.build()?.describe().contains("Processor: billable"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.builder.with(|graph| graph.rename(self.node, name));
        self
    }

    /// Adds a step without state below this one.
    pub(crate) fn step<K2: 'static, V2: 'static>(
        &self,
        step: Step,
        factory: Arc<dyn NodeFactory>,
        keys: Keys<K2>,
        value: Option<SharedSerde<V2>>,
    ) -> KStream<K2, V2> {
        let node = self.builder.with(|graph| {
            let name = graph.names.node(step, None);
            let node = graph.add(name, &[self.node], Processor::stateless(factory));
            if let Some(added) = graph.node_mut(node) {
                added.flags.key_changing = matches!(step, Step::Map | Step::FlatMap | Step::SelectKey);
                added.flags.value_changing = matches!(step, Step::MapValues | Step::FlatMapValues);
            }
            node
        });
        self.at(node, keys, value)
    }

    /// The stream that a node below this one gives.
    pub(crate) fn at<K2, V2>(&self, node: NodeId, keys: Keys<K2>, value: Option<SharedSerde<V2>>) -> KStream<K2, V2> {
        let (key, changed) = match keys {
            Keys::Changed => (None, true),
            Keys::Kept(key) => (key, false),
        };
        KStream {
            builder: self.builder.clone(),
            node,
            key,
            value,
            sources: self.sources.clone(),
            key_changed: self.key_changed || changed,
        }
    }

    /// Adds a node without a stream behind it.
    pub(crate) fn terminal(&self, step: Step, name: Option<&str>, kind: Kind) -> crate::Step {
        let node = self.builder.with(|graph| {
            let name = graph.names.node(step, name);
            graph.add(name, &[self.node], kind)
        });
        crate::Step {
            builder: self.builder.clone(),
            node,
        }
    }
}
