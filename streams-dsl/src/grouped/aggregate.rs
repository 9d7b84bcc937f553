//! `aggregate` without windows, and the node that `count` and `reduce` use too.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{TableStore, Update, ValueAndTimestamp};
use streams_core::{Change, ProcessResult, Record};

use super::KGroupedStream;
use super::store::{Names, Seed, some_unless_null};
use crate::config::Materialized;
use crate::ktable::KTable;
use crate::names::Step;
use crate::node::ForwardChanges;
use crate::stores::Shape;

pub(super) const AGGREGATE: Names = Names {
    step: Step::Aggregate,
    burns_if_unnamed: false,
};

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Keeps an aggregate for each key: `add` gets the key, the value and the aggregate so far (by value, at first what
    /// `init` makes), and answers the new one. A null aggregate (`None` of an `Option`) deletes the row.
    ///
    /// Records with a null key or value are dropped and counted. The row's event time is the highest of its records.
    /// With the cache on (the default) each commit emits the last aggregate of each changed key; without, every one.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     b.stream::<String, i64>("payments")
    ///         .group_by_key()
    ///         .aggregate(|| 0, |_account, cents, sum: i64| sum + cents, "balance")
    ///         .to_stream()
    ///         .to("balances")
    /// })
    /// .pipe("payments", [("a", 5, at(10)), ("a", 7, at(3))])
    /// .gives("balances", [("a", 5, at(10)), ("a", 12, at(10))]);
    /// ```
    ///
    /// Java counterpart: `KGroupedStream.aggregate`.
    pub fn aggregate<A: 'static>(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<K, A> {
        let materialized = materialized.into();
        let serde = materialized.value.resolve(None);
        self.aggregate_rows(AGGREGATE, materialized, move |key, value, row| {
            some_unless_null(&*serde, add(key, value, row.unwrap_or_else(&init)))
        })
    }

    /// As [`aggregate`](Self::aggregate), for aggregates that may vanish: `add` gets the aggregate if there is one, and
    /// with `None` deletes the row.
    pub fn aggregate_opt<A: 'static>(
        &self,
        add: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<K, A> {
        self.aggregate_rows(AGGREGATE, materialized.into(), add)
    }

    pub(super) fn aggregate_rows<A: 'static, F>(
        &self,
        names: Names,
        materialized: Materialized<K, A>,
        row: F,
    ) -> KTable<K, A>
    where
        F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
    {
        let serde = materialized.value.resolve(None);
        let value = Arc::clone(&self.value);
        let added = self.add(
            names,
            &materialized,
            Arc::clone(&serde),
            (Shape::KeyValue, false),
            |seed| factory(seed, value, Arc::new(row)),
        );
        self.table(added, &materialized, serde)
    }
}

pub(super) fn factory<K: 'static, V: 'static, A: 'static, F>(
    seed: Seed,
    value: SharedSerde<V>,
    row: Arc<F>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<K, Change<A>>()?);
        let store = builder.table_store::<K, A>(&seed.store)?;
        store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), seed.flags.sends_old());
        let node = Aggregate {
            name: builder.name(),
            children,
            store,
            value: Arc::clone(&value),
            row: Arc::clone(&row),
        };
        Ok(AnyNode::new::<K, V>(Rc::new(node)))
    })
}

struct Aggregate<K: 'static, V, A, F> {
    name: Arc<str>,
    children: Rc<Children<K, Change<A>>>,
    store: TableStore<K, A>,
    value: SharedSerde<V>,
    row: Arc<F>,
}

impl<K: 'static, V: 'static, A: 'static, F> Downstream<K, V> for Aggregate<K, V, A, F>
where
    F: Fn(&K, &V, Option<A>) -> Option<A>,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.value.is_null(record.value) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        // Of a deleted row too, of which the store keeps no time.
        let mut time = record.timestamp_ms;
        let update = self.store.update(cx, record.key, record, |cx, before| {
            let (before, timestamp_ms) = before_and_time(before, record.timestamp_ms);
            time = timestamp_ms;
            let row = cx.call_user(&self.name, || (self.row)(record.key, record.value, before))?;
            Ok(row.map(|row| row.map(|value| ValueAndTimestamp { value, timestamp_ms })))
        })?;
        match update {
            Update::NullKey => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
            Update::Skipped | Update::Deferred => Ok(()),
            Update::Changed(change, _) => self
                .children
                .forward(cx, record.with_value(&change).with_timestamp(time)),
        }
    }
}

/// A row taken apart, and the event time of its update: never less than before.
pub(super) fn before_and_time<A>(before: Option<ValueAndTimestamp<A>>, timestamp_ms: i64) -> (Option<A>, i64) {
    match before {
        Some(before) => (Some(before.value), before.timestamp_ms.max(timestamp_ms)),
        None => (None, timestamp_ms),
    }
}
