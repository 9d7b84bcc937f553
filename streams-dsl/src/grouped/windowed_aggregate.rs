//! `aggregate` in windows, and the node that `count` and `reduce` use too.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::metrics::meters::NodeMeter;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{Update, ValueAndTimestamp, WindowStore};
use streams_core::{Change, Headers, ProcessResult, Record, Window, Windowed};

use super::TimeWindowedKStream;
use super::aggregate::{AGGREGATE, before_and_time};
use super::emission::{Ends, OpenClocks};
use super::late::{self, Missed};
use super::sliding_aggregate;
use super::store::{Names, Seed, some_unless_null};
use super::wall_clock::{EmitsClosed, LastRecord, WallClock};
use super::windowed::{EmitStrategy, WindowKind};
use crate::config::Materialized;
use crate::ktable::KTable;
use crate::node::ForwardChanges;
use crate::stores::Shape;
use crate::windows::{Closing, Enumerable};

impl<K: Clone + 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// Keeps an aggregate for each key and window, as `KGroupedStream::aggregate` does for each key.
    ///
    /// Records with a null key are dropped and counted; null values reach `add`, except in sliding windows, which drop
    /// them too. A record is late for a window whose end plus grace is not after the operator's stream time, the highest
    /// event time it has seen, this record included: that window is left alone, which counts as one dropped record. Stream
    /// time survives restarts and moves of the task.
    ///
    /// Java counterpart: `TimeWindowedKStream.aggregate`.
    pub fn aggregate<A: 'static>(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<Windowed<K>, A> {
        let materialized = materialized.into();
        let serde = materialized.value.resolve(None);
        self.aggregate_rows(AGGREGATE, materialized, move |key, value, row| {
            some_unless_null(&*serde, add(key, value, row.unwrap_or_else(&init)))
        })
    }

    pub(super) fn aggregate_rows<A: 'static, F>(
        &self,
        names: Names,
        materialized: Materialized<K, A>,
        row: F,
    ) -> KTable<Windowed<K>, A>
    where
        F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
    {
        let materialized = self.settings(materialized);
        let serde = materialized.value.resolve(None);
        let (shape, ends, closing) = self.sizes(materialized.retention);
        let key = self.grouped.store_key(&materialized);
        let parts = Parts {
            key,
            value: Arc::clone(&self.grouped.value),
            retention_ms: shape.retention_ms(),
            row: Arc::new(row),
            wall: self.wall,
        };
        let (windows, on_close) = (self.windows, self.emit == EmitStrategy::OnWindowClose);
        let make = |seed: Seed| factory::<K, V, A, F>(windows, seed, parts);
        let added = self
            .grouped
            .add(names, &materialized, Arc::clone(&serde), (shape, on_close), make);
        self.grouped.windowed_table(added, &materialized, serde, ends, closing)
    }
}

/// What the nodes of all window kinds are made of.
pub(super) struct Parts<K, V, F> {
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) retention_ms: i64,
    pub(super) row: Arc<F>,
    pub(super) wall: Option<WallClock>,
}

impl<K, V, F> Clone for Parts<K, V, F> {
    fn clone(&self) -> Self {
        Parts {
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            retention_ms: self.retention_ms,
            row: Arc::clone(&self.row),
            wall: self.wall,
        }
    }
}

/// The node for a kind of windows.
pub(super) fn factory<K: Clone + 'static, V: 'static, A: 'static, F>(
    windows: WindowKind,
    seed: Seed,
    parts: Parts<K, V, F>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
{
    match windows {
        WindowKind::Time(windows) => time_factory::<K, V, A, F, _>(windows, seed, parts),
        WindowKind::Calendar(windows) => time_factory::<K, V, A, F, _>(windows, seed, parts),
        WindowKind::Unlimited(windows) => time_factory::<K, V, A, F, _>(windows, seed, parts),
        WindowKind::Sliding(windows) => sliding_aggregate::factory::<K, V, A, F>(windows, seed, parts),
    }
}

fn time_factory<K: Clone + 'static, V: 'static, A: 'static, F, W: Enumerable>(
    windows: W,
    seed: Seed,
    parts: Parts<K, V, F>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let (children, late) = builder.children_of_two::<Windowed<K>, Change<A>, Missed<K>, V>()?;
        let children = Rc::new(children);
        let store = builder.store::<WindowStore<K, A>>(&seed.store)?;
        store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), seed.flags.sends_old());
        let clocks = seed.clocks.open(builder.context());
        let lifetime = Lifetime {
            closing: windows.closing(),
            span_ms: windows.size_ms(),
            retention_ms: parts.retention_ms,
        };
        store.keep_from(move |cx| lifetime.live_from_ms(cx, clocks));
        let node = Rc::new(WindowedAggregate {
            name: builder.name(),
            meter: builder.meter(),
            children,
            late,
            store,
            key: Arc::clone(&parts.key),
            windows,
            clocks,
            row: Arc::clone(&parts.row),
            last_record: LastRecord::default(),
        });
        WallClock::watch(parts.wall, builder, &node, clocks, windows.closing());
        Ok(AnyNode::new::<K, V>(node))
    })
}

/// How long rows live.
#[derive(Clone, Copy)]
pub(super) struct Lifetime {
    pub(super) closing: Closing,
    /// How far before an open window's end rows are needed.
    pub(super) span_ms: i64,
    pub(super) retention_ms: i64,
}

impl Lifetime {
    /// As [`live_from_at`](Self::live_from_at) now; `None` before the operator's first record.
    pub(super) fn live_from_ms(self, cx: &TaskContext, clocks: OpenClocks) -> Option<i64> {
        let observed = cx.observed(clocks.observed);
        (observed >= 0).then(|| self.live_from_at(observed))
    }

    /// The first start whose row is still needed: within retention, and in any case while its window is open. What is
    /// closed was emitted with the record that closed it.
    fn live_from_at(self, stream_time_ms: i64) -> i64 {
        let retained = stream_time_ms.saturating_sub(self.retention_ms);
        let open = self.closing.close_time_ms(stream_time_ms).saturating_sub(self.span_ms);
        retained.min(open)
    }
}

struct WindowedAggregate<K: 'static, V, A, F, W> {
    name: Arc<str>,
    meter: Rc<NodeMeter>,
    children: Rc<Children<Windowed<K>, Change<A>>>,
    late: Children<Missed<K>, V>,
    store: Rc<WindowStore<K, A>>,
    key: SharedSerde<K>,
    windows: W,
    clocks: OpenClocks,
    row: Arc<F>,
    last_record: LastRecord,
}

impl<K: Clone + 'static, V, A: 'static, F, W: Enumerable> Downstream<K, V> for WindowedAggregate<K, V, A, F, W>
where
    F: Fn(&K, &V, Option<A>) -> Option<A>,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.key.is_null(record.key) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        self.last_record.note(cx);
        // Stream time moves first: a record can close windows that it does not belong to.
        let observed = cx.observe(self.clocks.observed, record.timestamp_ms);
        let closing = self.windows.closing();
        self.windows.try_each(record.timestamp_ms, |window| {
            if closing.is_closed(window.end_ms, observed) {
                return late::miss(&self.late, cx, window, record);
            }
            self.update(cx, window, record)
        })?;
        match self.clocks.take_closed(cx, closing) {
            Some(ends) => self.emit(cx, ends, record.headers),
            None => Ok(()),
        }
    }
}

impl<K: Clone + 'static, V, A: 'static, F, W: Enumerable> WindowedAggregate<K, V, A, F, W> {
    fn update(&self, cx: &mut TaskContext, window: Window, record: Record<'_, K, V>) -> ProcessResult
    where
        F: Fn(&K, &V, Option<A>) -> Option<A>,
    {
        // Of a deleted row too, of which the store keeps no time.
        let mut time = record.timestamp_ms;
        let update = self.store.update_window(cx, record.key, window, record, |cx, before| {
            let (before, timestamp_ms) = before_and_time(before, record.timestamp_ms);
            time = timestamp_ms;
            let row = cx.call_user(&self.name, || (self.row)(record.key, record.value, before))?;
            Ok(row.map(|row| row.map(|value| ValueAndTimestamp { value, timestamp_ms })))
        })?;
        match update {
            Update::Changed(change, _) if self.clocks.emitted.is_none() => {
                let key = Windowed::new(record.key.clone(), window);
                self.children
                    .forward(cx, record.with_key(&key).with_value(&change).with_timestamp(time))
            }
            Update::Changed(..) | Update::NullKey | Update::Skipped | Update::Deferred => Ok(()),
        }
    }
}

impl<K: Clone + 'static, V, A: 'static, F, W: Enumerable> EmitsClosed for WindowedAggregate<K, V, A, F, W> {
    fn emit(&self, cx: &mut TaskContext, (first, last): Ends, headers: &Headers) -> ProcessResult {
        // Mostly no window ends there, and nothing has to be read.
        let Some((from_ms, to_ms)) = self.windows.starts_of(first, last) else {
            return Ok(());
        };
        self.meter.emit_finals(|| {
            let mut emitted = 0;
            let mut rows = self.store.fetch_all(cx, from_ms, to_ms)?;
            while let Some((key, row)) = self.store.next_row(cx, &mut rows)? {
                let change = Change::new(Some(row.value), None);
                let record = Record::new(&key, &change, row.timestamp_ms).with_headers(headers);
                self.children.forward(cx, record)?;
                emitted += 1;
            }
            Ok(emitted)
        })
    }

    fn last_record(&self) -> &LastRecord {
        &self.last_record
    }
}

impl Shape {
    /// How long rows are kept.
    pub(super) fn retention_ms(self) -> i64 {
        match self {
            Shape::KeyValue => i64::MAX,
            Shape::Window { retention_ms, .. } | Shape::Session { retention_ms } => retention_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUR, MINUTE, TimeWindows};

    #[test]
    fn a_row_lives_as_long_as_its_window_is_open_whatever_the_retention() {
        let windows = TimeWindows::of(HOUR).grace(5 * MINUTE);
        let lifetime = |retention_ms| Lifetime {
            closing: windows.closing(),
            span_ms: windows.size_ms(),
            retention_ms,
        };
        let (exact, short, long) = (lifetime(65 * 60_000), lifetime(1), lifetime(48 * 3_600_000));
        let time = 100 * 3_600_000;
        assert_eq!(exact.live_from_at(time), time - 65 * 60_000);
        assert_eq!(short.live_from_at(time), exact.live_from_at(time));
        assert_eq!(long.live_from_at(time), time - 48 * 3_600_000);
    }
}
