//! Grouped tables: `count`, `reduce` and `aggregate` with an adder and a subtractor.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use streams_core::processor::{
    AnyNode, Children, Downstream, NodeBuilder, NodeFactory, SinkTarget, TaskContext, Timestamps, TypedSink,
    TypedSource,
};
use streams_core::serde::{ChangeSerde, SharedSerde};
use streams_core::stores::{TableStore, Update, ValueAndTimestamp};
use streams_core::topology::SourceTopic;
use streams_core::{BoxError, Change, ProcessResult, Record};

use super::aggregate::before_and_time;
use super::store::some_unless_null;
use crate::config::Materialized;
use crate::graph::{Companion, Graph, Kind, NodeId, Processor, Repartition, Shared};
use crate::ktable::{AskOld, KTable, TableFlags, View};
use crate::names::Step;
use crate::node::ForwardChanges;
use crate::stores::{Shape, StateStore};

/// A table grouped by other keys: what [`KTable::group_by`] makes. An update of a row takes the old value out of its old
/// group and puts the new one into its new group, so aggregations have an adder and a subtractor.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     let seats = b.table::<String, String>("person-in-town");
///     seats.group_by(|person, town| (town.clone(), person.clone())).count("people").to_stream().to("people-in-town")
/// })
/// .pipe("person-in-town", [("ann", "graz", at(0)), ("bob", "graz", at(1)), ("ann", "linz", at(2))])
/// .gives("people-in-town", [("graz", 1, at(0)), ("graz", 2, at(1)), ("graz", 1, at(2)), ("linz", 1, at(2))]);
/// ```
///
/// Java counterpart: `KGroupedTable`.
pub struct KGroupedTable<K, V> {
    pub(crate) builder: Shared,
    pub(crate) node: NodeId,
    pub(crate) key: SharedSerde<K>,
    pub(crate) value: SharedSerde<V>,
    /// The repartition's name, if it was given one.
    pub(crate) name: Option<String>,
    /// The repartition made under that name: several aggregations use the same one.
    pub(crate) repartition: Arc<Mutex<Option<NodeId>>>,
}

/// What a change makes of an aggregate; `None` = no row.
type Apply<K, V, A> = dyn Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync;

struct Functions<K, V, A> {
    add: Box<Apply<K, V, A>>,
    subtract: Box<Apply<K, V, A>>,
}

impl<K: 'static, V: 'static> KGroupedTable<K, V> {
    /// Counts the rows of each group. A group whose last row went has a count of 0, as in Java.
    ///
    /// Java counterpart: `KGroupedTable.count`. An example stands at [`KTable::group_by`].
    pub fn count(&self, materialized: impl Into<Materialized<K, i64>>) -> KTable<K, i64> {
        let functions = Functions {
            add: Box::new(|_: &K, _: &V, count| Some(count.unwrap_or(0) + 1)),
            subtract: Box::new(|_: &K, _: &V, count| count.map(|count| count - 1)),
        };
        self.add_aggregation(Step::TableAggregate, materialized.into(), functions)
    }

    /// Combines the values of each group: the first is kept as it is; then `add` gets the key, a value that came into the
    /// group and the result so far, and `subtract` one that left it. A null result (`None` of an `Option`) deletes the
    /// row.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let cents = b.table::<String, i64>("cents").group_by(|account, cents| (account[..1].to_owned(), *cents));
    ///     cents.reduce(|_bank, cents, sum| sum + cents, |_bank, cents, sum| sum - cents, "sums").to_stream().to("sums")
    /// })
    /// .pipe("cents", [("a1", Some(5), at(0)), ("a2", Some(7), at(1)), ("a1", Some(6), at(2)), ("a2", None, at(3))])
    /// .gives("sums", [("a", 5, at(0)), ("a", 12, at(1)), ("a", 13, at(2)), ("a", 6, at(3))]);
    /// ```
    ///
    /// Java counterpart: `KGroupedTable.reduce`.
    pub fn reduce(
        &self,
        add: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        subtract: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V>
    where
        V: Clone,
    {
        let materialized = materialized.into().or_value_serde(&self.value);
        let nulls = materialized.value.resolve(None);
        let unless_null = Arc::clone(&nulls);
        let functions = Functions {
            add: Box::new(move |key: &K, value: &V, result: Option<V>| {
                let result = match result {
                    Some(result) => add(key, value, result),
                    None => value.clone(),
                };
                some_unless_null(&*nulls, result)
            }),
            subtract: Box::new(move |key: &K, value: &V, result: Option<V>| {
                some_unless_null(&*unless_null, subtract(key, value, result?))
            }),
        };
        self.add_aggregation(Step::TableReduce, materialized, functions)
    }

    /// Keeps an aggregate for each group: `add` gets the key, a value that came into the group and the aggregate so far
    /// (by value, at first what `init` makes), `subtract` one that left it. A null aggregate (`None` of an `Option`)
    /// deletes the row.
    ///
    /// An update inside a group subtracts the old value first and then adds the new one, in one step. The row's event time
    /// is the highest of its updates.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let cents = b.table::<String, i64>("cents").group_by(|account, cents| (account[..1].to_owned(), *cents));
    ///     cents
    ///         .aggregate(|| 0, |_bank, cents, sum: i64| sum + cents, |_bank, cents, sum| sum - cents, "sums")
    ///         .to_stream()
    ///         .to("sums")
    /// })
    /// .pipe("cents", [("a1", 5, at(0)), ("a1", 6, at(2))])
    /// .gives("sums", [("a", 5, at(0)), ("a", 6, at(2))]);
    /// ```
    ///
    /// Java counterpart: `KGroupedTable.aggregate`.
    pub fn aggregate<A: 'static>(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        subtract: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<K, A> {
        let materialized = materialized.into();
        let nulls = materialized.value.resolve(None);
        let unless_null = Arc::clone(&nulls);
        let functions = Functions {
            add: Box::new(move |key: &K, value: &V, aggregate: Option<A>| {
                some_unless_null(&*nulls, add(key, value, aggregate.unwrap_or_else(&init)))
            }),
            subtract: Box::new(move |key: &K, value: &V, aggregate: Option<A>| {
                some_unless_null(&*unless_null, subtract(key, value, aggregate?))
            }),
        };
        self.add_aggregation(Step::TableAggregate, materialized, functions)
    }

    pub(super) fn aggregate_rows<A: 'static>(
        &self,
        materialized: Materialized<K, A>,
        add: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        subtract: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
    ) -> KTable<K, A> {
        let functions = Functions {
            add: Box::new(add),
            subtract: Box::new(subtract),
        };
        self.add_aggregation(Step::TableAggregate, materialized, functions)
    }

    /// Adds repartition, node and store, numbers in Java's order (`KGroupedTableImpl.doAggregate`).
    fn add_aggregation<A: 'static>(
        &self,
        step: Step,
        materialized: Materialized<K, A>,
        functions: Functions<K, V, A>,
    ) -> KTable<K, A> {
        let flags = Arc::new(TableFlags::default());
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&self.key));
        let value = materialized.value.resolve(None);
        let functions = Arc::new(functions);
        let (node, source, store_name) = self.builder.with(|graph| {
            let store_name = graph
                .names
                .store(Step::TableAggregate.prefix(), materialized.name.as_deref());
            let sink = graph.names.node(Step::Sink, None);
            let source = graph.names.node(Step::Source, None);
            let name = graph.names.node(step, None);
            let (source, is_new) = self.input(graph, &store_name, sink, source);
            let factory = factory(store_name.as_str().into(), Arc::clone(&flags), functions);
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            );
            let node = graph.add(
                name,
                &[source],
                Processor::with_store(factory, store.definition(), None),
            );
            if let (true, Some(added)) = (is_new, graph.node_mut(node)) {
                added.companions = vec![
                    (Companion::Sink(source), "-sink".to_owned()),
                    (Companion::Node(source), "-source".to_owned()),
                ];
            }
            (node, source, store_name)
        });
        let view = View::of_store(node, &store_name);
        let ask_old: AskOld = Arc::new(move |_, _| {
            flags.send_old();
            true
        });
        KTable {
            builder: self.builder.clone(),
            node,
            key,
            value,
            sources: vec![source],
            view,
            ask_old,
            closing: None,
        }
    }

    /// The repartition that an aggregation reads, and whether it was made for it.
    fn input(&self, graph: &mut Graph, store: &str, sink: String, source: String) -> (NodeId, bool) {
        let mut known = self.repartition.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(node), Some(_)) = (*known, &self.name) {
            return (node, false);
        }
        let topic: Arc<str> = format!("{}-repartition", self.name.as_deref().unwrap_or(store)).into();
        let value: SharedSerde<Change<V>> = Arc::new(ChangeSerde(Arc::clone(&self.value)));
        let typed_sink = TypedSink {
            target: SinkTarget::Fixed(SourceTopic {
                name: Arc::clone(&topic),
                internal: true,
            }),
            key: Arc::clone(&self.key),
            value: Arc::clone(&value),
            partitioner: None,
        };
        let typed_source = TypedSource {
            key: Arc::clone(&self.key),
            value,
            timestamps: Timestamps::FailOnInvalid,
        };
        let repartition = Repartition {
            topic,
            sink_name: sink.into(),
            filter: None,
            partitions: None,
            optimizable: false,
            sink: Arc::new(typed_sink),
            source: Arc::new(typed_source),
        };
        let node = graph.add(source, &[self.node], Kind::Repartition(Box::new(repartition)));
        *known = Some(node);
        (node, true)
    }
}

fn factory<K: 'static, V: 'static, A: 'static>(
    store: Arc<str>,
    flags: Arc<TableFlags>,
    functions: Arc<Functions<K, V, A>>,
) -> Arc<dyn NodeFactory> {
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<K, Change<A>>()?);
        let store = builder.table_store::<K, A>(&store)?;
        store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), flags.sends_old());
        let node = TableAggregate {
            name: builder.name(),
            children,
            store,
            functions: Arc::clone(&functions),
        };
        Ok(AnyNode::new::<K, Change<V>>(Rc::new(node)))
    })
}

/// Java: `KTableAggregate`, `KTableReduce`.
struct TableAggregate<K: 'static, V, A> {
    name: Arc<str>,
    children: Rc<Children<K, Change<A>>>,
    store: TableStore<K, A>,
    functions: Arc<Functions<K, V, A>>,
}

impl<K: 'static, V: 'static, A: 'static> TableAggregate<K, V, A> {
    /// First the old value out, then the new one in. The time moves only by what was combined with the row.
    fn apply(&self, record: Record<'_, K, Change<V>>, before: Option<ValueAndTimestamp<A>>) -> (Option<A>, i64) {
        let change = record.value;
        let (mut row, combined_ms) = before_and_time(before, record.timestamp_ms);
        let mut timestamp_ms = record.timestamp_ms;
        if let (Some(old), true) = (&change.old, row.is_some()) {
            row = (self.functions.subtract)(record.key, old, row);
            timestamp_ms = combined_ms;
        }
        if let Some(new) = &change.new {
            row = (self.functions.add)(record.key, new, row);
            timestamp_ms = combined_ms;
        }
        (row, timestamp_ms)
    }
}

impl<K: 'static, V: 'static, A: 'static> Downstream<K, Change<V>> for TableAggregate<K, V, A> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        // Of a deleted row too, of which the store keeps no time.
        let mut time = record.timestamp_ms;
        let update = self.store.update(cx, record.key, record, |cx, before| {
            let applied = cx.call_user(&self.name, || self.apply(record, before))?;
            Ok(applied.map(|(row, timestamp_ms)| {
                time = timestamp_ms;
                row.map(|value| ValueAndTimestamp { value, timestamp_ms })
            }))
        })?;
        match update {
            Update::NullKey => {
                let error: BoxError = "a change with a null key can't be aggregated".into();
                cx.user_code_failed(&self.name, error)
            }
            Update::Skipped | Update::Deferred => Ok(()),
            Update::Changed(change, _) => self
                .children
                .forward(cx, record.with_value(&change).with_timestamp(time)),
        }
    }
}
