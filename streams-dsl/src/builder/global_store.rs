//! Global stores that a processor writes.

use std::sync::Arc;

use streams_core::processor::{NodeBuilder, Processor, ProcessorNode, ProcessorSupplier};

use super::StreamsBuilder;
use crate::config::Consumed;
use crate::graph::{GlobalTable, Kind};
use crate::names::Step;
use crate::stores::StateStore;

impl StreamsBuilder {
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
}
