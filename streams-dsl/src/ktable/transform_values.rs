//! `transform_values` of tables: rows made by code that may use stores and the update's context.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{
    AnyNode, Children, Downstream, NodeBuilder, NodeFactory, RecordContext, TaskContext, catch_user,
};
use streams_core::serde::DefaultSerde;
use streams_core::stores::{KeyValueStore, TableStore, TaskStores, Update};
use streams_core::topology::TopologyError;
use streams_core::{BoxError, Change, Headers, ProcessResult, Record};

use super::source::TableFlags;
use super::view::{TableView, View};
use super::{AskOld, KTable};
use crate::config::{Connect, Materialized};
use crate::graph::Processor;
use crate::names::Step;
use crate::node::ForwardChanges;
use crate::stores::{Shape, StateStore};

/// User code that makes each row's value another one. One instance per task, made anew after an aborted transaction.
///
/// Java counterpart: `ValueTransformerWithKey`.
pub trait ValueTransformer<K, V, V2>: 'static {
    /// Called once before the first row, with the stores restored.
    ///
    /// # Errors
    /// An error, as a panic, goes to the processing handler.
    fn init(&mut self, _cx: &mut ValueTransformerContext<'_>) -> Result<(), BoxError> {
        Ok(())
    }

    /// Makes a row's value; `None` = no row. Also called for deletes, with `None`, and again for old values and look-ups
    /// where the result is not stored: the answer should depend on key and value alone.
    ///
    /// # Errors
    /// An error, as a panic, goes to the processing handler.
    fn transform(
        &mut self,
        cx: &mut ValueTransformerContext<'_>,
        key: &K,
        value: Option<&V>,
    ) -> Result<Option<V2>, BoxError>;

    /// Called when the task is given away, closed, or made anew after an abort.
    fn close(&mut self) {}
}

/// What a [`ValueTransformer`] can reach: its stores, the update's context, the task's times. It can't forward.
pub struct ValueTransformerContext<'a> {
    cx: &'a mut TaskContext,
    name: &'a str,
    names: &'a [Arc<str>],
    stores: &'a TaskStores,
}

impl Deref for ValueTransformerContext<'_> {
    type Target = TaskContext;
    fn deref(&self) -> &TaskContext {
        self.cx
    }
}

impl DerefMut for ValueTransformerContext<'_> {
    fn deref_mut(&mut self) -> &mut TaskContext {
        self.cx
    }
}

impl ValueTransformerContext<'_> {
    /// The store of this name, as the type it was defined with.
    ///
    /// # Errors
    /// When the transformer is not connected to it, or it is of another type.
    pub fn store<S: 'static>(&self, name: &str) -> Result<Rc<S>, TopologyError> {
        let node = self.name.to_owned();
        let store = name.to_owned();
        if !self.names.iter().any(|connected| &**connected == name) {
            return Err(TopologyError::StoreNotConnected { node, store });
        }
        let wanted = std::any::type_name::<S>();
        self.stores
            .get(name)
            .ok_or(TopologyError::StoreType { node, store, wanted })
    }

    /// A key-value store; values carry the event time of their last update.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn key_value_store<K: 'static, V: 'static>(
        &self,
        name: &str,
    ) -> Result<Rc<KeyValueStore<K, V>>, TopologyError> {
        self.store(name)
    }
}

impl<K: 'static, V: Clone + 'static> KTable<K, V> {
    /// Each row's value made another one by a transformer, which is also told of deletes. `supplier` makes one for each
    /// task. Prefer [`map_values`](Self::map_values) where neither stores nor the context are needed.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// /// Keeps the offset that a row came from.
    /// struct Origin;
    /// impl ValueTransformer<String, i64, String> for Origin {
    ///     fn transform(&mut self, cx: &mut ValueTransformerContext<'_>, _: &String, value: Option<&i64>) -> Result<Option<String>, BoxError> {
    ///         Ok(Some(format!("{value:?} at {}", cx.record_context().offset)))
    ///     }
    /// }
    /// run(|b| b.table::<String, i64>("in").transform_values(|| Origin).to_stream().to("out"))
    ///     .pipe("in", [("a", Some(7), at(0)), ("a", None, at(1))])
    ///     .gives("out", [("a", Some("Some(7) at 0"), at(0)), ("a", Some("None at 1"), at(1))]);
    /// ```
    ///
    /// Java counterpart: `KTable.transformValues`.
    pub fn transform_values<T, V2>(&self, supplier: impl Fn() -> T + Send + Sync + 'static) -> KTable<K, V2>
    where
        T: ValueTransformer<K, V, V2>,
        V2: DefaultSerde + Clone,
    {
        self.transform_values_with(supplier, Connect::default(), Materialized::unnamed())
    }

    /// As [`transform_values`](Self::transform_values), connected to stores that were added to the builder; the result is
    /// stored if `materialized` has a name.
    pub fn transform_values_with<T, V2>(
        &self,
        supplier: impl Fn() -> T + Send + Sync + 'static,
        connect: Connect,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2>
    where
        T: ValueTransformer<K, V, V2>,
        V2: Clone + 'static,
    {
        let materialized = materialized.into();
        let supplier: Arc<Supplier<T>> = Arc::new(supplier);
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&self.key));
        let value = materialized.value.resolve(None);
        let flags = Arc::new(TableFlags::default());
        let stored = materialized.name.clone();
        let uses: Vec<Arc<str>> = connect.stores.iter().map(|store| store.as_str().into()).collect();
        let factory = factory::<K, V, V2, T>(
            stored.as_deref().map(Arc::from),
            Arc::clone(&flags),
            Arc::clone(&supplier),
        );
        let node = self.builder.with(|graph| {
            let name = graph.names.node(Step::TransformValues, connect.name.as_deref());
            let kind = match &stored {
                None => Processor::using(factory, uses.clone()),
                Some(store) => {
                    let store = StateStore::of(
                        store,
                        Arc::clone(&key),
                        Arc::clone(&value),
                        Shape::KeyValue,
                        &materialized,
                    );
                    Processor::with_store(factory, store.definition(), None).using_too(uses.clone())
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
            None => transformed_view(&self.view, uses, supplier),
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
}

type Supplier<T> = dyn Fn() -> T + Send + Sync;

/// A transformer with what it can reach.
struct Transformer<T> {
    name: Arc<str>,
    names: Vec<Arc<str>>,
    stores: TaskStores,
    code: RefCell<T>,
}

impl<T: 'static> Transformer<T> {
    /// Makes it, to live as long as the task's nodes.
    fn make<K, V, V2>(builder: &mut NodeBuilder<'_>, supplier: &Supplier<T>) -> Rc<Self>
    where
        T: ValueTransformer<K, V, V2>,
    {
        let transformer = Rc::new(Transformer {
            name: builder.name(),
            names: builder.store_names().to_vec(),
            stores: builder.stores(),
            code: RefCell::new(supplier()),
        });
        let (init, close) = (Rc::clone(&transformer), Rc::clone(&transformer));
        builder.on_init(move |cx| init.call(cx, |code, context| code.init(context)).map(|_| ()));
        builder.on_close(move |_| close.code.borrow_mut().close());
        transformer
    }

    /// Calls it; `None` if it failed and the handler let that pass.
    fn call<R>(
        &self,
        cx: &mut TaskContext,
        call: impl FnOnce(&mut T, &mut ValueTransformerContext<'_>) -> Result<R, BoxError>,
    ) -> ProcessResult<Option<R>> {
        let called = catch_user(|| {
            let mut context = ValueTransformerContext {
                cx,
                name: &self.name,
                names: &self.names,
                stores: &self.stores,
            };
            call(&mut self.code.borrow_mut(), &mut context)
        });
        cx.try_user(&self.name, || called?)
    }
}

fn factory<K: 'static, V: 'static, V2: Clone + 'static, T: ValueTransformer<K, V, V2>>(
    store: Option<Arc<str>>,
    flags: Arc<TableFlags>,
    supplier: Arc<Supplier<T>>,
) -> Arc<dyn NodeFactory> {
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<K, Change<V2>>()?);
        let store = store
            .as_ref()
            .map(|name| builder.table_store::<K, V2>(name))
            .transpose()?;
        if let Some(store) = &store {
            store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), flags.sends_old());
        }
        let node = Transform {
            children,
            transformer: Transformer::make::<K, V, V2>(builder, &*supplier),
            store,
            sends_old: flags.sends_old(),
        };
        Ok(AnyNode::new::<K, Change<V>>(Rc::new(node)))
    })
}

/// Java: `KTableTransformValues`.
struct Transform<K: 'static, V2, T> {
    children: Rc<Children<K, Change<V2>>>,
    transformer: Rc<Transformer<T>>,
    store: Option<TableStore<K, V2>>,
    sends_old: bool,
}

impl<K: 'static, V: 'static, V2: Clone + 'static, T: ValueTransformer<K, V, V2>> Downstream<K, Change<V>>
    for Transform<K, V2, T>
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        let change = record.value;
        let with_old = self.sends_old && self.store.is_none();
        let rows = self.transformer.call(cx, |code, context| {
            let new = code.transform(context, record.key, change.new.as_ref())?;
            let old = match with_old {
                true => code.transform(context, record.key, change.old.as_ref())?,
                false => None,
            };
            let is_latest = change.is_latest;
            Ok(Change { new, old, is_latest })
        })?;
        let Some(rows) = rows else { return Ok(()) };
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

/// Rows transformed anew for each look-up.
fn transformed_view<K: 'static, V: Clone + 'static, V2: 'static, T: ValueTransformer<K, V, V2>>(
    parent: &View<K, V>,
    uses: Vec<Arc<str>>,
    supplier: Arc<Supplier<T>>,
) -> View<K, V2> {
    let parent = parent.clone();
    let stored_by = parent.stored_by.clone();
    let mut stores = parent.stores.clone();
    stores.extend(uses);
    let open = move |builder: &mut NodeBuilder<'_>| {
        let view: Rc<dyn TableView<K, V2>> = Rc::new(TransformedView {
            parent: (parent.open)(builder)?,
            transformer: Transformer::make::<K, V, V2>(builder, &*supplier),
        });
        Ok(view)
    };
    View {
        stored_by,
        stores,
        open: Arc::new(open),
    }
}

struct TransformedView<K, V, T> {
    parent: Rc<dyn TableView<K, V>>,
    transformer: Rc<Transformer<T>>,
}

impl<K: 'static, V: Clone + 'static, T: 'static> TransformedView<K, V, T> {
    /// Transforms a row in a context that knows the row's time and nothing else, as in Java.
    fn hand_on<V2>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        row: Option<(V, i64)>,
        read: &mut dyn FnMut(Option<(&V2, i64)>),
    ) -> ProcessResult
    where
        T: ValueTransformer<K, V, V2>,
    {
        let (value, time_ms) = row.map_or((None, -1), |(value, time_ms)| (Some(value), time_ms));
        let place = RecordContext::of_kept(Arc::from(""), -1, -1, time_ms, Headers::default());
        let outer = cx.exchange_record_context(place);
        let made = self
            .transformer
            .call(cx, |code, context| code.transform(context, key, value.as_ref()));
        cx.exchange_record_context(outer);
        if let Some(made) = made? {
            read(made.as_ref().map(|made| (made, time_ms)));
        }
        Ok(())
    }
}

impl<K: 'static, V: Clone + 'static, V2, T: ValueTransformer<K, V, V2>> TableView<K, V2> for TransformedView<K, V, T> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V2, i64)>)) -> ProcessResult {
        // No row of a store is borrowed while the transformer runs: it may use the same store.
        let row = RefCell::new(None);
        self.parent.read(cx, key, &mut |found| {
            *row.borrow_mut() = found.map(|(value, time)| (value.clone(), time));
        })?;
        self.hand_on(cx, key, row.into_inner(), read)
    }

    fn read_as_of(
        &self,
        cx: &mut TaskContext,
        key: &K,
        as_of_ms: i64,
        read: &mut dyn FnMut(Option<(&V2, i64)>),
    ) -> ProcessResult {
        let row = RefCell::new(None);
        self.parent.read_as_of(cx, key, as_of_ms, &mut |found| {
            *row.borrow_mut() = found.map(|(value, time)| (value.clone(), time));
        })?;
        self.hand_on(cx, key, row.into_inner(), read)
    }
}
