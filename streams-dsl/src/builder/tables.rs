//! Topics read as tables, by partition and in full.

use std::sync::Arc;

use streams_core::processor::{RecordTimes, Timestamps, TypedSource};
use streams_core::serde::{DefaultSerde, OptionSerde};

use super::StreamsBuilder;
use crate::config::{Consumed, Materialized};
use crate::graph::{GlobalTable, Kind, TableSource};
use crate::ktable::{GlobalKTable, KTable, TableFlags, View, ask_stored, source_factory};
use crate::names::Step;
use crate::stores::{Shape, StateStore};

impl StreamsBuilder {
    /// Reads a topic as a table in a given way; a named store is made in any case. Updates that are older than the
    /// stored row are applied all the same, as in Java: the last offset wins. Event times come from the records.
    pub fn table_with<K: 'static, V: Clone + 'static>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V> {
        let materialized = materialized.into();
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&consumed.key));
        let value = match &materialized.value {
            crate::serdes::Chosen::Given(given) => Arc::clone(given),
            crate::serdes::Chosen::Default(_) => Arc::clone(&consumed.value),
        };
        let flags = Arc::new(TableFlags::default());
        let (node, store_name) = self.shared.with(|graph| {
            let store_name = graph.names.store(&format!("{topic}-"), materialized.name.as_deref());
            let source_name = graph.names.node(
                Step::Source,
                consumed.name.as_ref().map(|name| format!("{name}-source")).as_deref(),
            );
            let name = graph.names.node(Step::TableSource, consumed.name.as_deref());
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            )
            .definition();
            let table = TableSource {
                source_name: source_name.into(),
                topic: topic.into(),
                reset: consumed.reset,
                source: nullable_source(&consumed),
                factory: source_factory::<K, V>(store_name.as_str().into(), Arc::clone(&key), Arc::clone(&flags)),
                store,
                materialized: materialized.name.is_some(),
            };
            (graph.add(name, &[], Kind::TableSource(Box::new(table))), store_name)
        });
        let ask_old = ask_stored(node, flags);
        let view = View::of_store(node, &store_name);
        KTable {
            builder: self.shared.clone(),
            node,
            key,
            value,
            sources: vec![node],
            view,
            ask_old,
            closing: None,
        }
    }

    /// Reads a topic as a global table: every instance has all of it, whatever its partitions, before anything is
    /// processed. Java: `globalTable`.
    pub fn global_table<K: DefaultSerde, V: DefaultSerde + Clone>(&self, topic: &str) -> GlobalKTable<K, V> {
        self.global_table_with(topic, Consumed::default(), Materialized::unnamed())
    }

    /// Reads a topic as a global table in a given way. Its store has no changelog: the topic is one.
    pub fn global_table_with<K: 'static, V: Clone + 'static>(
        &self,
        topic: &str,
        consumed: Consumed<K, V>,
        materialized: impl Into<Materialized<K, V>>,
    ) -> GlobalKTable<K, V> {
        let materialized = materialized.into().without_logging().caching(false);
        let (key, value) = (Arc::clone(&consumed.key), Arc::clone(&consumed.value));
        let flags = Arc::new(TableFlags::default());
        let store_name = self.shared.with(|graph| {
            if materialized.history.is_some() {
                graph.found(format!("global table `{topic}` can't be versioned"));
            }
            let store_name = graph.names.store(&format!("{topic}-"), materialized.name.as_deref());
            let source_name = graph.names.node(
                Step::Source,
                consumed.name.as_ref().map(|name| format!("{name}-source")).as_deref(),
            );
            let name = graph.names.node(Step::TableSource, consumed.name.as_deref());
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            )
            .definition();
            let table = GlobalTable {
                source_name: source_name.into(),
                topic: topic.into(),
                source: nullable_source(&consumed),
                factory: source_factory::<K, V>(store_name.as_str().into(), Arc::clone(&key), Arc::clone(&flags)),
                store,
            };
            graph.add(name, &[], Kind::GlobalTable(Box::new(table)));
            store_name
        });
        GlobalKTable {
            builder: self.shared.clone(),
            key,
            store: store_name.into(),
            value,
        }
    }
}

/// A table's source reads nulls as deletes, which have no value to find an event time in: they have the record's own.
fn nullable_source<K: 'static, V: 'static>(consumed: &Consumed<K, V>) -> Arc<TypedSource<K, Option<V>>> {
    let timestamps = match &consumed.timestamps {
        Timestamps::FailOnInvalid => Timestamps::FailOnInvalid,
        Timestamps::SkipInvalid => Timestamps::SkipInvalid,
        Timestamps::PartitionTimeOnInvalid => Timestamps::PartitionTimeOnInvalid,
        Timestamps::WallClock => Timestamps::WallClock,
        Timestamps::Extracted(extract) => {
            let extract = Arc::clone(extract);
            Timestamps::Extracted(Arc::new(
                move |key: &K, value: &Option<V>, times: RecordTimes| match value {
                    Some(value) => extract(key, value, times),
                    None => times.record_ms,
                },
            ))
        }
    };
    let value = Arc::new(OptionSerde(Arc::clone(&consumed.value)));
    Arc::new(TypedSource {
        key: Arc::clone(&consumed.key),
        value,
        timestamps,
    })
}
