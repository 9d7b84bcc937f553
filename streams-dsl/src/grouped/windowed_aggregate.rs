//! `aggregate` in time windows, and the node that `count` and `reduce` use too.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, OperatorTime, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{Update, ValueAndTimestamp, WindowStore};
use streams_core::{Change, ProcessResult, Record, Window, Windowed};

use super::TimeWindowedKStream;
use super::aggregate::{AGGREGATE, before_and_time};
use super::store::{Names, Seed, some_unless_null};
use crate::config::Materialized;
use crate::ktable::KTable;
use crate::node::ForwardChanges;
use crate::stores::WindowSizes;
use crate::windows::TimeWindows;

impl<K: Clone + 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// Keeps an aggregate for each key and window, as `KGroupedStream::aggregate` does for each key.
    ///
    /// Records with a null key are dropped and counted; null values reach `add`. A record is late for a window whose end
    /// plus grace is not after the operator's stream time, the highest event time it has seen, this record included: that
    /// window is left alone, which counts as one dropped record. Stream time survives restarts and moves of the task.
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
        let serde = materialized.value.resolve(None);
        let (sizes, windows) = (self.store_sizes(&materialized), self.windows);
        let key = self.grouped.store_key(&materialized);
        let make = |seed| factory::<K, V, A, F>(seed, windows, sizes, key, Arc::new(row));
        let added = self
            .grouped
            .add(names, &materialized, Arc::clone(&serde), Some(sizes), make);
        self.grouped.windowed_table(added, &materialized, serde, sizes.size_ms)
    }
}

fn factory<K: Clone + 'static, V: 'static, A: 'static, F>(
    seed: Seed,
    windows: TimeWindows,
    sizes: WindowSizes,
    key: SharedSerde<K>,
    row: Arc<F>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<Windowed<K>, Change<A>>()?);
        let store = builder.store::<WindowStore<K, A>>(&seed.store)?;
        store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), seed.flags.sends_old());
        let clock = builder
            .context()
            .operator_time(seed.clock.as_deref().unwrap_or_default());
        let (weak, keep) = (
            Rc::downgrade(&store),
            Lifetime {
                windows,
                retention_ms: sizes.retention_ms,
            },
        );
        store.set_after_flush(move |cx| match weak.upgrade() {
            Some(store) => store.expire(cx, keep.live_from_ms(cx.observed(clock))).map(|_| ()),
            None => Ok(()),
        });
        let name = builder.name();
        let node = WindowedAggregate {
            name,
            children,
            store,
            key: Arc::clone(&key),
            windows,
            clock,
            row: Arc::clone(&row),
        };
        Ok(AnyNode::new::<K, V>(Rc::new(node)))
    })
}

/// How long rows live.
#[derive(Clone, Copy)]
struct Lifetime {
    windows: TimeWindows,
    retention_ms: i64,
}

impl Lifetime {
    /// The first start whose row is still needed: within retention, and in any case while its window is open.
    fn live_from_ms(self, stream_time_ms: i64) -> i64 {
        let retained = stream_time_ms.saturating_sub(self.retention_ms);
        let open = self
            .windows
            .close_time_ms(stream_time_ms)
            .saturating_sub(self.windows.size_ms());
        retained.min(open)
    }
}

struct WindowedAggregate<K: 'static, A, F> {
    name: Arc<str>,
    children: Rc<Children<Windowed<K>, Change<A>>>,
    store: Rc<WindowStore<K, A>>,
    key: SharedSerde<K>,
    windows: TimeWindows,
    clock: OperatorTime,
    row: Arc<F>,
}

impl<K: Clone + 'static, V, A: 'static, F> Downstream<K, V> for WindowedAggregate<K, A, F>
where
    F: Fn(&K, &V, Option<A>) -> Option<A>,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.key.is_null(record.key) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        // Stream time moves first: a record can close windows that it does not belong to.
        let observed = cx.observe(self.clock, record.timestamp_ms);
        let close_time = self.windows.close_time_ms(observed);
        for window in self.windows.windows_of(record.timestamp_ms) {
            if window.end_ms > close_time {
                self.update(cx, window, record)?;
            } else {
                cx.counters.dropped_records += 1;
            }
        }
        Ok(())
    }
}

impl<K: Clone + 'static, A: 'static, F> WindowedAggregate<K, A, F> {
    fn update<V>(&self, cx: &mut TaskContext, window: Window, record: Record<'_, K, V>) -> ProcessResult
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
            Update::NullKey | Update::Skipped | Update::Deferred => Ok(()),
            Update::Changed(change, _) => {
                let key = Windowed::new(record.key.clone(), window);
                self.children
                    .forward(cx, record.with_key(&key).with_value(&change).with_timestamp(time))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUR, MINUTE};

    #[test]
    fn a_row_lives_as_long_as_its_window_is_open_whatever_the_retention() {
        let windows = TimeWindows::of(HOUR).grace(5 * MINUTE);
        let exact = Lifetime {
            windows,
            retention_ms: 65 * 60_000,
        };
        let short = Lifetime {
            windows,
            retention_ms: 1,
        };
        let long = Lifetime {
            windows,
            retention_ms: 48 * 3_600_000,
        };
        let time = 100 * 3_600_000;
        assert_eq!(exact.live_from_ms(time), time - 65 * 60_000);
        assert_eq!(short.live_from_ms(time), exact.live_from_ms(time));
        assert_eq!(long.live_from_ms(time), time - 48 * 3_600_000);
    }
}
