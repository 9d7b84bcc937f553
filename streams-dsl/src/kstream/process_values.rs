//! `process_values`: user processors that can't change the key.

use std::sync::Arc;

use streams_core::processor::{FixedKey, FixedKeyProcessor, NodeBuilder, ProcessorNode, ProcessorSupplier};

use super::{KStream, Keys};
use crate::config::Connect;
use crate::graph;
use crate::names::Step;

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Runs a processor for each record that may change the value, the event time and the headers but not the key, so
    /// that grouping or joining the result needs no repartition. `supplier` makes one for each task.
    ///
    /// Null keys and values reach the processor. A schedule of the processor can read and write stores; it has no record
    /// and so nothing to forward: [`process`](Self::process) can.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// /// The rise since the last value of the key.
    /// struct Rise;
    /// impl FixedKeyProcessor<String, i64, i64> for Rise {
    ///     fn process(&mut self, cx: &mut FixedKeyContext<'_, String, i64>, record: FixedKeyRecord<'_, String, i64>) -> Result<(), BoxError> {
    ///         let last = cx.key_value_store::<String, i64>("last")?;
    ///         let before = last.get(cx, record.key())?.map_or(0, |row| row.value);
    ///         last.put(cx, record.key(), Some(*record.value()), record.as_record())?;
    ///         Ok(cx.forward(record.with_value(&(record.value() - before)))?)
    ///     }
    /// }
    /// run(|b| {
    ///     b.add_state_store(Stores::key_value::<String, i64>("last"));
    ///     b.stream::<String, i64>("meters").process_values_with(|| Rise, Connect::stores(["last"])).to("use")
    /// })
    /// .pipe("meters", [("a", 5, at(0)), ("a", 9, at(1))])
    /// .gives("use", [("a", 5, at(0)), ("a", 4, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KStream.processValues` (KIP-820).
    pub fn process_values<P, V2: 'static>(&self, supplier: impl ProcessorSupplier<P>) -> KStream<K, V2>
    where
        P: FixedKeyProcessor<K, V, V2>,
    {
        self.process_values_with(supplier, Connect::default())
    }

    /// As [`process_values`](Self::process_values), connected to stores that were added to the builder, or with a name.
    pub fn process_values_with<P, V2: 'static>(
        &self,
        supplier: impl ProcessorSupplier<P>,
        connect: Connect,
    ) -> KStream<K, V2>
    where
        P: FixedKeyProcessor<K, V, V2>,
    {
        let factory = Arc::new(move |builder: &mut NodeBuilder<'_>| {
            ProcessorNode::<FixedKey<P>, K, V2>::build::<K, V>(builder, FixedKey(supplier.get()))
        });
        let stores = connect.stores.iter().map(|store| store.as_str().into()).collect();
        let node = self.builder.with(|graph| {
            let name = graph
                .names
                .node_unless_given(Step::ProcessValues, connect.name.as_deref());
            let node = graph.add(name, &[self.node], graph::Processor::using(factory, stores));
            if let Some(added) = graph.node_mut(node) {
                // A repartition below can't move above: its records have the values that are made here (KAFKA-19668).
                added.flags.value_changing = true;
            }
            node
        });
        self.at(node, Keys::Kept(self.key.clone()), None)
    }
}
