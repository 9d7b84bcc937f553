//! `late`: the records that a windowed aggregation dropped, as a stream of their own.

use std::any::TypeId;
use std::sync::Arc;

use streams_core::processor::{Children, Downstream, TaskContext};
use streams_core::{ProcessResult, Record, Window, Windowed};

use super::KGroupedStream;
use super::session::SessionWindowedKStream;
use super::windowed::TimeWindowedKStream;
use crate::graph::Processor;
use crate::kstream::KStream;
use crate::ktable::KTable;
use crate::names::Step;
use crate::node::{Parts, factory};

/// The key of a record and the window that it missed: a type of its own, so that an aggregation can tell the children that
/// take late records from those that take its results.
pub(super) struct Missed<K>(Windowed<K>);

/// Drops a record that is late for a window: counts it, and hands it to whoever takes such.
pub(super) fn miss<K: Clone, V>(
    late: &Children<Missed<K>, V>,
    cx: &mut TaskContext,
    window: Window,
    record: Record<'_, K, V>,
) -> ProcessResult {
    cx.counters.dropped_records += 1;
    if late.is_empty() {
        return Ok(());
    }
    let key = Missed(Windowed::new(record.key.clone(), window));
    late.forward(cx, record.with_key(&key))
}

impl<K: 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// The records that the aggregation `table` drops because they are late, as a stream: once for each window that they
    /// miss (in sliding windows, where none is open for a record any more: for the one that it would have ended), with that window in the key, and with their own
    /// value, event time and headers. They are counted in `dropped-records-total` all the same. Records that are dropped
    /// for another reason, such as a null key, are not among them.
    ///
    /// `table` is the table that an aggregation of this stream made, before anything else is done with it. Each late record
    /// is told in the transaction in which it was dropped.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let hourly = b.stream::<String, i64>("usage").group_by_key().windowed_by(TimeWindows::of(HOUR).grace(5 * MINUTE));
    ///     let bytes = hourly.reduce(|_project, bytes, sum| sum + bytes, "hourly-bytes");
    ///     bytes.to_stream().to("bills");
    ///     hourly.late(&bytes).to("corrections")
    /// })
    /// .pipe("usage", [("a", 1, at(0)), ("a", 2, at(3_900_000)), ("a", 3, at(3_599_999))])
    /// .gives("bills", [(window("a", 0), 1, at(0)), (window("a", 3_600_000), 2, at(3_900_000))])
    /// .gives("corrections", [(window("a", 0), 3, at(3_599_999))])
    /// .dropped(1);
    /// ```
    ///
    /// Not in Java, which counts and forgets them.
    #[must_use]
    pub fn late<A: 'static>(&self, table: &KTable<Windowed<K>, A>) -> KStream<Windowed<K>, V> {
        late_of(&self.grouped, table)
    }
}

impl<K: 'static, V: 'static> SessionWindowedKStream<K, V> {
    /// The records that the aggregation `table` drops because they are late, as a stream, with the session that they
    /// would have made in the key. As [`TimeWindowedKStream::late`].
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let visits = b.stream::<String, i64>("clicks").group_by_key().windowed_by(SessionWindows::of(10 * MILLISECOND));
    ///     let clicks = visits.count("clicks-by-visit");
    ///     visits.late(&clicks).to("late-clicks")
    /// })
    /// .pipe("clicks", [("a", 1, at(100)), ("a", 2, at(89))])
    /// .gives("late-clicks", [(session("a", 89, 89), 2, at(89))]);
    /// ```
    #[must_use]
    pub fn late<A: 'static>(&self, table: &KTable<Windowed<K>, A>) -> KStream<Windowed<K>, V> {
        late_of(&self.grouped, table)
    }
}

fn late_of<K: 'static, V: 'static, A: 'static>(
    grouped: &KGroupedStream<K, V>,
    table: &KTable<Windowed<K>, A>,
) -> KStream<Windowed<K>, V> {
    let factory = factory::<Missed<K>, V, Windowed<K>, V, _>(Late);
    let same_builder = grouped.stream.builder.same_as(&table.builder);
    let node = table.builder.with(|graph| {
        let flags = graph.node(table.node).map(|node| node.flags).unwrap_or_default();
        if !same_builder || flags.hands_late_on != Some(TypeId::of::<(K, V)>()) {
            graph.found("`late` takes the table that an aggregation of this windowed stream made, and nothing that follows from it");
        }
        let name = graph.names.node(Step::Late, None);
        let node = graph.add(name, &[table.node], Processor::stateless(factory));
        if let Some(added) = graph.node_mut(node) {
            // A repartition below can't move above: keys and values are those that are made here.
            added.flags.key_changing = true;
        }
        node
    });
    KStream {
        builder: table.builder.clone(),
        node,
        key: Some(Arc::clone(&table.key)),
        value: Some(Arc::clone(&grouped.value)),
        sources: table.sources.clone(),
        key_changed: false,
    }
}

struct Late<K, V>(Parts<Windowed<K>, V>);

impl<K, V> Downstream<Missed<K>, V> for Late<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Missed<K>, V>) -> ProcessResult {
        self.0.children.forward(cx, record.with_key(&record.key.0))
    }
}
