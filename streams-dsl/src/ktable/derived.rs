//! Tables computed row by row from another one: `filter`, `map_values`.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext, catch_user};
use streams_core::serde::SharedSerde;
use streams_core::stores::{TableStore, Update};
use streams_core::{BoxError, Change, ProcessResult, Record};

use super::source::TableFlags;
use super::view::{TableView, View};
use super::{AskOld, KTable};
use crate::config::Materialized;
use crate::graph::Processor;
use crate::names::Step;
use crate::node::ForwardChanges;
use crate::stores::{Shape, StateStore};

/// What a derived table does besides computing rows.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) step: Step,
    /// With old values known, no tombstone is sent for a row that was not there (`KTableFilter`); of a versioned table it
    /// is, as a version of its own time.
    pub(super) skip_absent: bool,
}

impl<K: 'static, V: 'static> KTable<K, V> {
    /// The table that `compute` makes of each row; `None` = no row. It is stored only if `materialized` has a name.
    pub(super) fn derive<V2, F>(
        &self,
        rules: Rules,
        value: SharedSerde<V2>,
        materialized: &Materialized<K, V2>,
        compute: F,
    ) -> KTable<K, V2>
    where
        V2: Clone + 'static,
        F: Fn(&K, &V) -> Option<V2> + Send + Sync + 'static,
    {
        let (compute, flags) = (Arc::new(compute), Arc::new(TableFlags::default()));
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&self.key));
        let stored = materialized.name.clone();
        let versioned = self.builder.with(|graph| graph.is_versioned(&self.view.stored_by));
        let asked = rules.skip_absent && self.builder.with(|graph| (self.ask_old)(graph, false));
        if asked {
            flags.send_old();
        }
        let rules = Rules {
            skip_absent: rules.skip_absent && !versioned,
            ..rules
        };
        let factory = factory(
            stored.as_deref().map(Arc::from),
            rules,
            Arc::clone(&flags),
            Arc::clone(&compute),
        );
        let node = self.builder.with(|graph| {
            if stored.is_none() && materialized.explicit {
                graph.names.burn();
            }
            let name = graph.names.node(rules.step, None);
            let kind = match &stored {
                None => Processor::stateless(factory),
                Some(store) => {
                    let store = StateStore::of(
                        store,
                        Arc::clone(&key),
                        Arc::clone(&value),
                        Shape::KeyValue,
                        materialized,
                    );
                    Processor::with_store(factory, store.definition(), None)
                }
            };
            graph.add(name, &[self.node], kind)
        });
        let (is_stored, parent) = (stored.is_some(), Arc::clone(&self.ask_old));
        let ask_old: AskOld = Arc::new(move |graph, force| {
            let sends = is_stored || parent(graph, force);
            if sends {
                flags.send_old();
            }
            sends
        });
        let view = match stored {
            Some(store) => View::of_store(node, &store),
            None => self.derived_view(compute),
        };
        KTable {
            builder: self.builder.clone(),
            node,
            key,
            value,
            sources: self.sources.clone(),
            view,
            ask_old,
            closing: self.closing,
        }
    }

    /// Rows computed anew for each look-up.
    fn derived_view<V2: 'static, F>(&self, compute: Arc<F>) -> View<K, V2>
    where
        F: Fn(&K, &V) -> Option<V2> + Send + Sync + 'static,
    {
        let parent = self.view.clone();
        let (stored_by, stores) = (parent.stored_by.clone(), parent.stores.clone());
        let open = move |builder: &mut NodeBuilder<'_>| {
            let view: Rc<dyn TableView<K, V2>> = Rc::new(DerivedView {
                name: builder.name(),
                parent: (parent.open)(builder)?,
                compute: Arc::clone(&compute),
                value: PhantomData,
            });
            Ok(view)
        };
        View {
            stored_by,
            stores,
            open: Arc::new(open),
        }
    }
}

struct DerivedView<K, V, V2, F> {
    name: Arc<str>,
    parent: Rc<dyn TableView<K, V>>,
    compute: Arc<F>,
    value: PhantomData<fn() -> V2>,
}

impl<K, V, V2, F: Fn(&K, &V) -> Option<V2>> TableView<K, V2> for DerivedView<K, V, V2, F> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V2, i64)>)) -> ProcessResult {
        let computed = RefCell::new(None);
        self.parent.read(cx, key, &mut |row| {
            *computed.borrow_mut() = row.map(|(value, time)| (catch_user(|| (self.compute)(key, value)), time));
        })?;
        self.hand_on(cx, computed.into_inner(), read)
    }

    fn read_as_of(
        &self,
        cx: &mut TaskContext,
        key: &K,
        as_of_ms: i64,
        read: &mut dyn FnMut(Option<(&V2, i64)>),
    ) -> ProcessResult {
        let computed = RefCell::new(None);
        self.parent.read_as_of(cx, key, as_of_ms, &mut |row| {
            *computed.borrow_mut() = row.map(|(value, time)| (catch_user(|| (self.compute)(key, value)), time));
        })?;
        self.hand_on(cx, computed.into_inner(), read)
    }
}

/// What the table's code made of a row, and the row's event time.
type Computed<V2> = (Result<Option<V2>, BoxError>, i64);

impl<K, V, V2, F> DerivedView<K, V, V2, F> {
    fn hand_on(
        &self,
        cx: &mut TaskContext,
        computed: Option<Computed<V2>>,
        read: &mut dyn FnMut(Option<(&V2, i64)>),
    ) -> ProcessResult {
        match computed {
            None => read(None),
            Some((result, time)) => {
                if let Some(value) = cx.try_user(&self.name, || result)? {
                    read(value.as_ref().map(|value| (value, time)));
                }
            }
        }
        Ok(())
    }
}

fn factory<K: 'static, V: 'static, V2: Clone + 'static, F>(
    store: Option<Arc<str>>,
    rules: Rules,
    flags: Arc<TableFlags>,
    compute: Arc<F>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V) -> Option<V2> + Send + Sync + 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<K, Change<V2>>()?);
        let store = store
            .as_ref()
            .map(|name| builder.table_store::<K, V2>(name))
            .transpose()?;
        if let Some(store) = &store {
            store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), flags.sends_old());
        }
        let (compute, name) = (Arc::clone(&compute), builder.name());
        let sends_old = flags.sends_old();
        Ok(AnyNode::new::<K, Change<V>>(Rc::new(Derived {
            name,
            children,
            compute,
            store,
            rules,
            sends_old,
        })))
    })
}

struct Derived<K: 'static, V2, F> {
    name: Arc<str>,
    children: Rc<Children<K, Change<V2>>>,
    compute: Arc<F>,
    store: Option<TableStore<K, V2>>,
    rules: Rules,
    sends_old: bool,
}

impl<K: 'static, V, V2: Clone + 'static, F: Fn(&K, &V) -> Option<V2>> Downstream<K, Change<V>> for Derived<K, V2, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        let change = record.value;
        let row = |value: &Option<V>| value.as_ref().and_then(|value| (self.compute)(record.key, value));
        let rows = cx.call_user(&self.name, || {
            let old = if self.sends_old { row(&change.old) } else { None };
            Change {
                new: row(&change.new),
                old,
                is_latest: change.is_latest,
            }
        })?;
        let Some(rows) = rows else { return Ok(()) };
        if self.rules.skip_absent && self.sends_old && rows.new.is_none() {
            // What this table stores is its old row; the update of a table that stores nothing does not tell one.
            let absent = match &self.store {
                Some(store) => store.read(cx, record.key, |row| row.is_none())?,
                None => rows.old.is_none(),
            };
            if absent {
                return Ok(());
            }
        }
        let Some(store) = &self.store else {
            return self.children.forward(cx, record.with_value(&rows));
        };
        match store.put(cx, record.key, rows.new, record)? {
            Update::NullKey | Update::Skipped | Update::Deferred => Ok(()),
            Update::Changed(change, time) => self
                .children
                .forward(cx, record.with_value(&change).with_timestamp(time)),
        }
    }
}
