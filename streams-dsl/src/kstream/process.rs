//! `process`: user processors, with stores and punctuation.

use std::sync::Arc;

use streams_core::processor::{NodeBuilder, Processor, ProcessorNode, ProcessorSupplier};

use super::{KStream, Keys};
use crate::config::Connect;
use crate::graph;
use crate::names::Step;

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Runs a processor for each record: typed in and out, with stores, schedules and forwarding. `supplier` makes one
    /// for each task. The result may have other keys, so grouping or joining it sends it through a repartition topic.
    ///
    /// ```
    /// use streams_dsl::{BoxError, Processor, ProcessorContext, Record, StreamsBuilder};
    /// struct Twice;
    /// impl Processor<String, i64, String, i64> for Twice {
    ///     fn process(&mut self, cx: &mut ProcessorContext<'_, String, i64>, record: Record<'_, String, i64>) -> Result<(), BoxError> {
    ///         cx.forward(record)?;
    ///         Ok(cx.forward(record)?)
    ///     }
    /// }
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, i64>("in").process(|| Twice).to("out");
    /// assert!(builder.build()?.describe().contains("KSTREAM-PROCESSOR-0000000001"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    ///
    /// Java counterpart: `KStream.process`.
    pub fn process<P, K2: 'static, V2: 'static>(&self, supplier: impl ProcessorSupplier<P>) -> KStream<K2, V2>
    where
        P: Processor<K, V, K2, V2>,
    {
        self.process_with(supplier, Connect::default())
    }

    /// As [`process`](Self::process), connected to stores that were added to the builder.
    pub fn process_with<P, K2: 'static, V2: 'static>(
        &self,
        supplier: impl ProcessorSupplier<P>,
        connect: Connect,
    ) -> KStream<K2, V2>
    where
        P: Processor<K, V, K2, V2>,
    {
        let factory = Arc::new(move |builder: &mut NodeBuilder<'_>| {
            ProcessorNode::<P, K2, V2>::build::<K, V>(builder, supplier.get())
        });
        let stores = connect.stores.iter().map(|store| store.as_str().into()).collect();
        let node = self.builder.with(|graph| {
            let name = graph.names.node_unless_given(Step::Process, connect.name.as_deref());
            let node = graph.add(name, &[self.node], graph::Processor::using(factory, stores));
            if let Some(added) = graph.node_mut(node) {
                // A repartition below can't move above: its records have the types that are made here (KAFKA-19668).
                added.flags.key_changing = true;
            }
            node
        });
        self.at(node, Keys::Changed, None)
    }
}
