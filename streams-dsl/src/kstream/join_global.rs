//! Joins of a stream with a global table.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, TaskContext, catch_user};
use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::{ProcessResult, Record};

use super::join_table::join_row;
use super::{KStream, Keys};
use crate::config::Joined;
use crate::graph::Processor;
use crate::ktable::{GlobalKTable, TableView};
use crate::names::Step;

type Selector<K, V, KG> = dyn Fn(&K, &V) -> KG + Send + Sync;
type Joiner<K, V, VG, V2> = dyn Fn(&K, &V, Option<&VG>) -> Option<V2> + Send + Sync;

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Joins each record with the global table's row of the key that `select` makes; records without a row give nothing.
    /// The record keeps its own key, whatever it is, and needs no repartition. A null selected key or a null value is
    /// dropped and counted.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let airlines = b.global_table::<String, String>("airlines");
    ///     b.stream::<i64, String>("flights")
    ///         .join_global(&airlines, |_id, carrier| carrier.clone(), |_id, _carrier, name| name.clone())
    ///         .to("flights-by-name")
    /// })
    /// .pipe("airlines", [("UA", "United", at(0))])
    /// .pipe("flights", [(1, "UA", at(1)), (2, "XX", at(2))])
    /// .gives("flights-by-name", [(1, "United", at(1))]);
    /// ```
    ///
    /// Java counterpart: `KStream.join(GlobalKTable, …)`.
    pub fn join_global<KG: 'static, VG: 'static, V2: 'static>(
        &self,
        table: &GlobalKTable<KG, VG>,
        select: impl Fn(&K, &V) -> KG + Send + Sync + 'static,
        join: impl Fn(&K, &V, &VG) -> V2 + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.join_global_with(table, select, join, Joined::default())
    }

    /// As [`join_global`](Self::join_global), in a given way.
    pub fn join_global_with<KG: 'static, VG: 'static, V2: 'static>(
        &self,
        table: &GlobalKTable<KG, VG>,
        select: impl Fn(&K, &V) -> KG + Send + Sync + 'static,
        join: impl Fn(&K, &V, &VG) -> V2 + Send + Sync + 'static,
        joined: Joined<K, V>,
    ) -> KStream<K, V2> {
        let joiner = move |key: &K, value: &V, row: Option<&VG>| row.map(|row| join(key, value, row));
        self.add_global_join(table, Arc::new(select), Arc::new(joiner), false, joined)
    }

    /// As [`join_global`](Self::join_global), but records without a row, and those whose selected key is null, are joined
    /// with `None`. Null values are dropped and counted.
    ///
    /// Java counterpart: `KStream.leftJoin(GlobalKTable, …)`.
    pub fn left_join_global<KG: 'static, VG: 'static, V2: 'static>(
        &self,
        table: &GlobalKTable<KG, VG>,
        select: impl Fn(&K, &V) -> KG + Send + Sync + 'static,
        join: impl Fn(&K, &V, Option<&VG>) -> V2 + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.left_join_global_with(table, select, join, Joined::default())
    }

    /// As [`left_join_global`](Self::left_join_global), in a given way.
    pub fn left_join_global_with<KG: 'static, VG: 'static, V2: 'static>(
        &self,
        table: &GlobalKTable<KG, VG>,
        select: impl Fn(&K, &V) -> KG + Send + Sync + 'static,
        join: impl Fn(&K, &V, Option<&VG>) -> V2 + Send + Sync + 'static,
        joined: Joined<K, V>,
    ) -> KStream<K, V2> {
        let joiner = move |key: &K, value: &V, row: Option<&VG>| Some(join(key, value, row));
        self.add_global_join(table, Arc::new(select), Arc::new(joiner), true, joined)
    }

    fn add_global_join<KG: 'static, VG: 'static, V2: 'static>(
        &self,
        table: &GlobalKTable<KG, VG>,
        select: Arc<Selector<K, V, KG>>,
        joiner: Arc<Joiner<K, V, VG, V2>>,
        is_left: bool,
        joined: Joined<K, V>,
    ) -> KStream<K, V2> {
        let value = joined.value.resolve(self.value.as_ref());
        let (selected, rows) = (Arc::clone(&table.key), table.clone());
        let same_builder = self.builder.same_as(&table.builder);
        let uses = vec![Arc::clone(&table.store)];
        let factory = Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let join = GlobalJoin {
                name: builder.name(),
                children: builder.children::<K, V2>()?,
                rows: rows.open(builder)?,
                selected: Arc::clone(&selected),
                value: Arc::clone(&value),
                select: Arc::clone(&select),
                joiner: Arc::clone(&joiner),
                is_left,
            };
            Ok(AnyNode::new::<K, V>(Rc::new(join)))
        });
        let node = self.builder.with(|graph| {
            if !same_builder {
                graph.found("a stream can't be joined with a global table of another builder");
            }
            // Java names the inner join so too.
            let name = graph.names.node(Step::LeftJoin, joined.name.as_deref());
            let node = graph.add(name, &[self.node], Processor::using(factory, uses));
            if let Some(added) = graph.node_mut(node) {
                added.flags.value_changing = true;
            }
            node
        });
        self.at(node, Keys::Kept(self.key.clone()), None)
    }
}

struct GlobalJoin<K, V, KG, VG, V2> {
    name: Arc<str>,
    children: Children<K, V2>,
    rows: Rc<dyn TableView<KG, VG>>,
    selected: SharedSerde<KG>,
    value: SharedSerde<V>,
    select: Arc<Selector<K, V, KG>>,
    joiner: Arc<Joiner<K, V, VG, V2>>,
    is_left: bool,
}

impl<K, V: 'static, KG: 'static, VG, V2> Downstream<K, V> for GlobalJoin<K, V, KG, VG, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.value.is_null(record.value) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let selected = cx.call_user(&self.name, || (self.select)(record.key, record.value))?;
        let Some(selected) = selected else { return Ok(()) };
        let null_key = self.selected.is_null(&selected);
        if null_key && !self.is_left {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let join = |row: Option<&VG>| catch_user(|| (self.joiner)(record.key, record.value, row));
        let joined = if null_key {
            join(None)
        } else {
            join_row(cx, &*self.rows, (&selected, record.timestamp_ms), &join)?
        };
        match cx.try_user(&self.name, || joined)? {
            Some(Some(value)) => self.children.forward(cx, record.with_value(&value)),
            Some(None) | None => Ok(()),
        }
    }
}
