//! `to_table`: a stream's records as updates of a table.

use std::sync::Arc;

use streams_core::serde::{DefaultSerde, OptionSerde};

use super::{KStream, RepartitionParts};
use crate::config::Materialized;
use crate::graph::Processor;
use crate::ktable::{KTable, TableFlags, View, ask_stored, source_factory};
use crate::names::Step;
use crate::stores::{Shape, StateStore};

impl<K: 'static, N: 'static> KStream<K, N> {
    /// Takes the records as updates of a table: a value replaces the row of its key, `None` deletes it, a null key is
    /// dropped and counted. If keys may have changed, the stream goes through a repartition topic first. For streams of
    /// `Option`s: what can't be null could never be deleted.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, Option<i64>>("prices").to_table("latest-prices").to_stream().to("changes"))
    ///     .pipe("prices", [("tea", Some(3), at(0)), ("tea", None, at(1))])
    ///     .gives("changes", [("tea", Some(3), at(0)), ("tea", None, at(1))]);
    /// ```
    ///
    /// A stream of plain values becomes one of `Option`s by `map_values(|_key, value| Some(value.clone()))`.
    /// Java counterpart: `KStream.toTable`.
    pub fn to_table<V>(&self, materialized: impl Into<Materialized<K, V>>) -> KTable<K, V>
    where
        K: DefaultSerde,
        Self: UpdatesOf<K, V>,
    {
        self.make_table(materialized.into())
    }
}

/// A stream whose records can be updates of a table: its values are `Option`s.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a table: its values can't be null, so no row could ever be deleted",
    label = "only a stream of `Option`s becomes a table",
    note = "make the values optional before: `.map_values(|_key, value| Some(value.clone()))`"
)]
pub trait UpdatesOf<K, V> {
    /// The table.
    fn make_table(&self, materialized: Materialized<K, V>) -> KTable<K, V>
    where
        K: DefaultSerde;
}

impl<K: 'static, V: Clone + 'static> UpdatesOf<K, V> for KStream<K, Option<V>> {
    fn make_table(&self, materialized: Materialized<K, V>) -> KTable<K, V>
    where
        K: DefaultSerde,
    {
        let given = materialized.key.clone();
        let key = given.or_else(|| self.key.clone()).unwrap_or_else(K::shared);
        let value = materialized.value.resolve(None);
        let flags = Arc::new(TableFlags::default());
        let (node, store_name, source) = self.builder.with(|graph| {
            let name = graph.names.node(Step::ToTable, None);
            let store_name = graph.names.store(Step::ToTable.prefix(), materialized.name.as_deref());
            let mut parent = self.node;
            if self.key_changed {
                let parts = RepartitionParts {
                    key: Arc::clone(&key),
                    value: Arc::new(OptionSerde(Arc::clone(&value))),
                    partitions: None,
                    partitioner: None,
                    optimizable: true,
                };
                let names = graph.names.repartition(&name);
                parent = parts.add(graph, names, parent);
            }
            let factory = source_factory::<K, V>(store_name.as_str().into(), Arc::clone(&key), Arc::clone(&flags));
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            )
            .definition();
            let mut processor = Processor::with_store(factory, store, None);
            if let crate::graph::Kind::Processor(processor) = &mut processor {
                processor.materialized = materialized.name.is_some();
            }
            (graph.add(name, &[parent], processor), store_name, parent)
        });
        let ask_old = ask_stored(node, flags);
        let sources = if self.key_changed {
            vec![source]
        } else {
            self.sources.clone()
        };
        let view = View::of_store(node, &store_name);
        KTable {
            builder: self.builder.clone(),
            node,
            key,
            value,
            sources,
            view,
            ask_old,
            closing: None,
        }
    }
}
