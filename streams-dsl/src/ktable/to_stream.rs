//! `to_stream`: a table's changes as records.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::serde::OptionSerde;
use streams_core::{Change, ProcessResult, Record};

use super::KTable;
use crate::graph::Processor;
use crate::kstream::KStream;
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KTable<K, V> {
    /// The table's changes as records: the new value, `None` where a row was deleted, so that deletes can't be
    /// forgotten. The records keep the serdes of the table, windows included.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.table::<String, i64>("balances").to_stream().to("changes"))
    ///     .pipe("balances", [("a", Some(5), at(0)), ("a", None, at(1))])
    ///     .gives("changes", [("a", Some(5), at(0)), ("a", None, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KTable.toStream`.
    pub fn to_stream(&self) -> KStream<K, Option<V>> {
        let factory = factory::<K, Change<V>, K, Option<V>, _>(ToStream);
        let node = self.builder.with(|graph| {
            let name = graph.names.node(Step::ToStream, None);
            graph.add(name, &[self.node], Processor::stateless(factory))
        });
        KStream {
            builder: self.builder.clone(),
            node,
            key: Some(Arc::clone(&self.key)),
            value: Some(Arc::new(OptionSerde(Arc::clone(&self.value)))),
            sources: self.sources.clone(),
            key_changed: false,
        }
    }
}

struct ToStream<K, V>(Parts<K, Option<V>>);

impl<K, V> Downstream<K, Change<V>> for ToStream<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        self.0.children.forward(cx, record.with_value(&record.value.new))
    }
}
