//! How an aggregation's store, node and table come together.

use std::any::TypeId;
use std::sync::Arc;

use streams_core::processor::NodeFactory;
use streams_core::serde::{Serde, SessionWindowed, SharedSerde, TimeWindowed};
use streams_core::stores::{Layout, SessionLayout, TypedStore, WindowEnds, WindowLayout};
use streams_core::{Windowed, processor::NodeBuilder};

use super::KGroupedStream;
use super::emission::Clocks;
use crate::config::Materialized;
use crate::graph::{Graph, NodeId, Processor, Shared};
use crate::ktable::{AskOld, KTable, StoreView, TableFlags, TableView, View};
use crate::names::Step;
use crate::stores::{Shape, StateStore};
use crate::windows::Closing;

/// What an aggregation is called and draws.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub(super) step: Step,
    /// `count` with a `Materialized` that has no name draws one number more.
    pub(super) burns_if_unnamed: bool,
}

/// The node, the store's name and the sources of an aggregation that was added to a graph.
pub(super) struct Added {
    pub(super) node: NodeId,
    pub(super) sources: Vec<NodeId>,
    pub(super) flags: Arc<TableFlags>,
    pub(super) store: String,
}

/// What an aggregation's factory is made from, once its store has a name.
pub(super) struct Seed {
    pub(super) store: Arc<str>,
    pub(super) flags: Arc<TableFlags>,
    pub(super) clocks: Clocks,
}

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Adds an aggregation: store, node and, if need be, repartition; numbers in Java's order
    /// (`KGroupedStreamImpl`, `GroupedStreamAggregateBuilder`).
    pub(super) fn add<A: 'static>(
        &self,
        names: Names,
        materialized: &Materialized<K, A>,
        value: SharedSerde<A>,
        (shape, emits_on_close): (Shape, bool),
        factory: impl FnOnce(Seed) -> Arc<dyn NodeFactory>,
    ) -> Added {
        let flags = Arc::new(TableFlags::default());
        let key = self.store_key(materialized);
        self.stream.builder.with(|graph: &mut Graph| {
            if names.burns_if_unnamed && materialized.explicit && materialized.name.is_none() {
                graph.names.burn();
            }
            let store = graph.names.store(names.step.prefix(), materialized.name.as_deref());
            if materialized.history.is_some() && !matches!(shape, Shape::KeyValue) {
                graph.found(format!(
                    "the rows of windows have no versions: take `versioned` from the materialization of `{store}`"
                ));
            }
            let name = graph.names.node(names.step, None);
            let (parent, sources) = self.input(graph, &store);
            let clocks = Clocks::of(&store, emits_on_close);
            let keys = match shape {
                Shape::KeyValue => Vec::new(),
                Shape::Window { .. } | Shape::Session { .. } => clocks.keys(),
            };
            let seed = Seed {
                store: store.as_str().into(),
                flags: Arc::clone(&flags),
                clocks,
            };
            let definition = StateStore::of(&store, key, value, shape, materialized).definition();
            let node = graph.add(name, &[parent], Processor::with_store(factory(seed), definition, keys));
            if let (Some(added), false) = (graph.node_mut(node), matches!(shape, Shape::KeyValue)) {
                added.flags.hands_late_on = Some(TypeId::of::<(K, V)>());
            }
            Added {
                node,
                sources,
                flags,
                store,
            }
        })
    }

    pub(super) fn store_key<A>(&self, materialized: &Materialized<K, A>) -> SharedSerde<K> {
        materialized.key.clone().unwrap_or_else(|| Arc::clone(&self.key))
    }

    /// The table of an aggregation without windows.
    pub(super) fn table<A: 'static>(
        &self,
        added: Added,
        materialized: &Materialized<K, A>,
        value: SharedSerde<A>,
    ) -> KTable<K, A> {
        let view = View::of_store(added.node, &added.store);
        made(
            self.stream.builder.clone(),
            added,
            self.store_key(materialized),
            value,
            view,
        )
    }

    /// The table of a windowed aggregation: its key serde knows the windows' ends.
    pub(super) fn windowed_table<A: 'static>(
        &self,
        added: Added,
        materialized: &Materialized<K, A>,
        value: SharedSerde<A>,
        ends: WindowEnds,
        closing: Closing,
    ) -> KTable<Windowed<K>, A> {
        let key: SharedSerde<Windowed<K>> = Arc::new(TimeWindowed::with_ends(self.store_key(materialized), ends));
        let view = typed_view::<WindowLayout<K>, A>(&added);
        let table = made(self.stream.builder.clone(), added, key, value, view);
        KTable {
            closing: Some(closing),
            ..table
        }
    }

    /// The table of an aggregation in sessions.
    pub(super) fn session_table<A: 'static>(
        &self,
        added: Added,
        materialized: &Materialized<K, A>,
        value: SharedSerde<A>,
        closing: Closing,
    ) -> KTable<Windowed<K>, A> {
        let key: SharedSerde<Windowed<K>> = Arc::new(SessionWindowed(self.store_key(materialized)));
        let view = typed_view::<SessionLayout<K>, A>(&added);
        let table = made(self.stream.builder.clone(), added, key, value, view);
        KTable {
            closing: Some(closing),
            ..table
        }
    }
}

/// The table that a node gives.
pub(super) fn made<KO, A>(
    builder: Shared,
    added: Added,
    key: SharedSerde<KO>,
    value: SharedSerde<A>,
    view: View<KO, A>,
) -> KTable<KO, A> {
    let Added {
        node, sources, flags, ..
    } = added;
    let ask_old: AskOld = Arc::new(move |_, _| {
        flags.send_old();
        true
    });
    KTable {
        builder,
        node,
        key,
        value,
        sources,
        view,
        ask_old,
        closing: None,
    }
}

/// The rows of a store of this layout.
pub(super) fn typed_view<L: Layout, A: 'static>(added: &Added) -> View<L::Key, A> {
    let store: Arc<str> = added.store.as_str().into();
    let name = Arc::clone(&store);
    let open = move |builder: &mut NodeBuilder<'_>| {
        let view: std::rc::Rc<dyn TableView<L::Key, A>> =
            std::rc::Rc::new(StoreView(builder.store::<TypedStore<L, A>>(&name)?));
        Ok(view)
    };
    View {
        stored_by: vec![added.node],
        stores: vec![store],
        open: Arc::new(open),
    }
}

/// Whether a table's value is a null: then its row is deleted.
pub(super) fn some_unless_null<A: 'static>(serde: &dyn Serde<A>, value: A) -> Option<A> {
    (!serde.is_null(&value)).then_some(value)
}
