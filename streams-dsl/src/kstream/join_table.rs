//! Joins of a stream with a table.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, TaskContext, catch_user};
use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::topology::TopologyError;
use streams_core::{BoxError, ProcessResult, Record};

use super::join_grace::{self, Grace};
use super::{KStream, Keys};
use crate::config::Joined;
use crate::graph::Processor;
use crate::ktable::{KTable, TableView};
use crate::names::Step;
use crate::windows::millis;

/// What a joined record is made of, by the row it found, if any; `None` = nothing follows.
type Joiner<K, V, VT, V2> = dyn Fn(&K, &V, Option<&VT>) -> Option<V2> + Send + Sync;

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Joins each record with the table's row of its key, as that is when the record is processed (of a versioned table:
    /// as that was at the record's event time); records without a row give nothing. Null keys and values are dropped and counted. An update of the table gives nothing by itself.
    ///
    /// Both sides must have equal partition counts. If the stream's keys may have changed, it goes through a repartition
    /// topic first. Event time and headers are the stream record's.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let prices = b.table::<String, i64>("prices");
    ///     b.stream::<String, i64>("orders").join_table(&prices, |_item, count, price| count * price).to("turnover")
    /// })
    /// .pipe("prices", [("tea", 3, at(0))])
    /// .pipe("orders", [("tea", 2, at(1)), ("ink", 9, at(2))])
    /// .gives("turnover", [("tea", 6, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KStream.join(KTable, …)`.
    pub fn join_table<VT: 'static, V2: 'static>(
        &self,
        table: &KTable<K, VT>,
        join: impl Fn(&K, &V, &VT) -> V2 + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.join_table_with(table, join, Joined::default())
    }

    /// As [`join_table`](Self::join_table), in a given way.
    pub fn join_table_with<VT: 'static, V2: 'static>(
        &self,
        table: &KTable<K, VT>,
        join: impl Fn(&K, &V, &VT) -> V2 + Send + Sync + 'static,
        joined: Joined<K, V>,
    ) -> KStream<K, V2> {
        let joiner = move |key: &K, value: &V, row: Option<&VT>| row.map(|row| join(key, value, row));
        self.add_table_join(table, Step::Join, Arc::new(joiner), joined)
    }

    /// As [`join_table`](Self::join_table), but records without a row are joined with `None`. A record with a null key
    /// has no row; null values are dropped and counted.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let planes = b.table::<String, i64>("planes");
    ///     b.stream::<String, i64>("departures")
    ///         .left_join_table(&planes, |_tail, miles, seats| miles * seats.copied().unwrap_or(100))
    ///         .to("seat-miles")
    /// })
    /// .pipe("planes", [("N1", 55, at(0))])
    /// .pipe("departures", [("N1", 10, at(1)), ("N2", 10, at(2))])
    /// .gives("seat-miles", [("N1", 550, at(1)), ("N2", 1000, at(2))]);
    /// ```
    ///
    /// Java counterpart: `KStream.leftJoin(KTable, …)`.
    pub fn left_join_table<VT: 'static, V2: 'static>(
        &self,
        table: &KTable<K, VT>,
        join: impl Fn(&K, &V, Option<&VT>) -> V2 + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.left_join_table_with(table, join, Joined::default())
    }

    /// As [`left_join_table`](Self::left_join_table), in a given way.
    pub fn left_join_table_with<VT: 'static, V2: 'static>(
        &self,
        table: &KTable<K, VT>,
        join: impl Fn(&K, &V, Option<&VT>) -> V2 + Send + Sync + 'static,
        joined: Joined<K, V>,
    ) -> KStream<K, V2> {
        let joiner = move |key: &K, value: &V, row: Option<&VT>| Some(join(key, value, row));
        self.add_table_join(table, Step::LeftJoin, Arc::new(joiner), joined)
    }

    fn add_table_join<VT: 'static, V2: 'static>(
        &self,
        table: &KTable<K, VT>,
        step: Step,
        joiner: Arc<Joiner<K, V, VT, V2>>,
        joined: Joined<K, V>,
    ) -> KStream<K, V2> {
        let key = joined.key.resolve(self.key.as_ref());
        let value = joined.value.resolve(self.value.as_ref());
        let stream = self.for_join(joined.name.as_deref(), Arc::clone(&key), Arc::clone(&value));
        let (view, is_left) = (table.view.clone(), step == Step::LeftJoin);
        let (stores, stored_by) = (view.stores.clone(), view.stored_by.clone());
        let (key_serde, same_builder) = (Arc::clone(&key), self.builder.same_as(&table.builder));
        let history_ms = self.builder.with(|graph| graph.history_ms(&stored_by));
        let is_versioned = history_ms.is_some();
        let grace = joined.grace.map(|grace| Grace {
            grace_ms: millis(grace),
            key: Arc::clone(&key),
            value: Arc::clone(&value),
        });
        let factory = move |builder: &mut NodeBuilder<'_>, buffer: Option<&str>| -> Result<AnyNode, TopologyError> {
            let join = TableJoin {
                name: builder.name(),
                children: builder.children::<K, V2>()?,
                rows: (view.open)(builder)?,
                key: Arc::clone(&key),
                value: Arc::clone(&value),
                joiner: Arc::clone(&joiner),
                is_left,
            };
            match (&grace, buffer) {
                (Some(grace), Some(buffer)) => grace.before(builder, buffer, join),
                _ => Ok(AnyNode::new::<K, V>(Rc::new(join))),
            }
        };
        let (with_grace, grace_ms) = (joined.grace.is_some(), joined.grace.map_or(0, millis));
        let mut sources = stream.sources.clone();
        sources.extend(table.sources.iter().filter(|source| !stream.sources.contains(source)));
        let node = self.builder.with(|graph| {
            if !same_builder {
                graph.found("a stream can't be joined with a table of another builder");
            }
            let name = graph.names.node(step, joined.name.as_deref());
            for node in stored_by {
                graph.materialize(node);
            }
            if with_grace && !is_versioned {
                graph.found(format!(
                    "join `{name}` has a grace period, so its table must be versioned: use `Materialized::versioned`"
                ));
            }
            if let Some(history_ms) = history_ms.filter(|history_ms| *history_ms < grace_ms) {
                graph.found(format!(
                    "join `{name}` waits for {grace_ms} ms, but the versions of its table are kept for {history_ms} ms: give \
                     `Materialized::versioned` at least the grace"
                ));
            }
            graph.copartitions.push(sources.clone());
            let kind = if with_grace {
                let buffer = join_grace::buffer_name(&name);
                let (store, clock) = (join_grace::buffer(&buffer), join_grace::clock(&buffer));
                let factory = move |builder: &mut NodeBuilder<'_>| factory(builder, Some(&buffer));
                Processor::with_store(Arc::new(factory), store, Some(clock)).using_too(stores)
            } else {
                let factory = move |builder: &mut NodeBuilder<'_>| factory(builder, None);
                Processor::using(Arc::new(factory), stores)
            };
            let node = graph.add(name, &[stream.node], kind);
            if let Some(added) = graph.node_mut(node) {
                added.flags.takes_null_keys = is_left;
            }
            node
        });
        KStream {
            sources,
            ..stream.at(node, Keys::Kept(Some(key_serde)), None)
        }
    }
}

pub(super) struct TableJoin<K, V, VT, V2> {
    pub(super) name: Arc<str>,
    children: Children<K, V2>,
    rows: Rc<dyn TableView<K, VT>>,
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    joiner: Arc<Joiner<K, V, VT, V2>>,
    is_left: bool,
}

impl<K: 'static, V: 'static, VT, V2> Downstream<K, V> for TableJoin<K, V, VT, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let null_key = self.key.is_null(record.key);
        if self.value.is_null(record.value) || (null_key && !self.is_left) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let join = |row: Option<&VT>| catch_user(|| (self.joiner)(record.key, record.value, row));
        let joined = if null_key {
            join(None)
        } else {
            join_row(cx, &*self.rows, (record.key, record.timestamp_ms), &join)?
        };
        match cx.try_user(&self.name, || joined)? {
            Some(Some(value)) => self.children.forward(cx, record.with_value(&value)),
            Some(None) | None => Ok(()),
        }
    }
}

/// Looks a row up, of a versioned table that of the time (ms since the Unix epoch), and joins it while it is lent.
pub(super) fn join_row<K, VT, R>(
    cx: &mut TaskContext,
    rows: &dyn TableView<K, VT>,
    (key, time_ms): (&K, i64),
    join: &dyn Fn(Option<&VT>) -> Result<Option<R>, BoxError>,
) -> ProcessResult<Result<Option<R>, BoxError>> {
    let joined = RefCell::new(Ok(None));
    rows.read_as_of(cx, key, time_ms, &mut |row| {
        *joined.borrow_mut() = join(row.map(|(value, _)| value))
    })?;
    Ok(joined.into_inner())
}
