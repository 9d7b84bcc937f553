//! The node of an aggregation in sliding windows. Java counterpart: `KStreamSlidingWindowAggregate`, read from newest to
//! oldest; windows are updated and forwarded in its order.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::metrics::meters::NodeMeter;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{
    Direction, PendingWindows, StoredWindow, Update, ValueAndTimestamp, WindowLayout, WindowStore,
};
use streams_core::{Change, Headers, ProcessResult, Record, Window, Windowed};

use super::aggregate::before_and_time;
use super::emission::{Ends, OpenClocks};
use super::late::{self, Missed};
use super::store::Seed;
use super::wall_clock::{EmitsClosed, LastRecord, WallClock};
use super::windowed_aggregate::{Lifetime, Parts};
use crate::node::ForwardChanges;
use crate::windows::SlidingWindows;

pub(super) fn factory<K: Clone + 'static, V: 'static, A: 'static, F>(
    windows: SlidingWindows,
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
            // A record in time looks for windows that begin twice the difference before it.
            span_ms: windows.difference_ms().saturating_mul(3).saturating_add(1),
            retention_ms: parts.retention_ms,
        };
        store.keep_from(move |cx| lifetime.live_from_ms(cx, clocks));
        let pending = Rc::new(PendingWindows::new(Rc::clone(&store)));
        if clocks.emitted.is_some() {
            let (pending, closing) = (Rc::clone(&pending), windows.closing());
            builder.on_init(move |cx| pending.load(cx, clocks.first_open_end_ms(cx, closing)));
        }
        let node = Rc::new(SlidingAggregate {
            name: builder.name(),
            meter: builder.meter(),
            children,
            late,
            store,
            key: Arc::clone(&parts.key),
            value: Arc::clone(&parts.value),
            windows,
            clocks,
            pending,
            row: Arc::clone(&parts.row),
            last_record: LastRecord::default(),
        });
        WallClock::watch(parts.wall, builder, &node, clocks, windows.closing());
        Ok(AnyNode::new::<K, V>(node))
    })
}

struct SlidingAggregate<K: 'static, V, A, F> {
    name: Arc<str>,
    meter: Rc<NodeMeter>,
    children: Rc<Children<Windowed<K>, Change<A>>>,
    late: Children<Missed<K>, V>,
    store: Rc<WindowStore<K, A>>,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    windows: SlidingWindows,
    clocks: OpenClocks,
    pending: Rc<PendingWindows<WindowLayout<K>, A>>,
    row: Arc<F>,
    last_record: LastRecord,
}

/// What a record is added to.
enum Base<'w> {
    /// The window's row.
    Stored,
    /// A new window, which begins with the value of another one, if any, and whatever its own row says: a record may make
    /// one window in two roles, and is in it once. (It is then forwarded twice, as in Java.)
    New(Option<&'w StoredWindow>),
}

/// What the stored windows around a record tell.
#[derive(Default)]
struct Around {
    /// The starts that were met.
    starts: Vec<i64>,
    /// The window that ends last before the record.
    before: Option<StoredWindow>,
    /// The first window met that holds the record's time and more after it.
    after: Option<StoredWindow>,
    /// The record's own left window, where it is stored already.
    own_left: bool,
    /// The record's own right window, where it is stored already.
    own_right: bool,
    /// The time of the record before.
    previous_ms: Option<i64>,
}

impl<K: Clone + 'static, V: 'static, A: 'static, F> Downstream<K, V> for SlidingAggregate<K, V, A, F>
where
    F: Fn(&K, &V, Option<A>) -> Option<A>,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.key.is_null(record.key) || self.value.is_null(record.value) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        self.last_record.note(cx);
        let observed = cx.observe(self.clocks.observed, record.timestamp_ms);
        let last_end = record.timestamp_ms.saturating_add(self.windows.difference_ms());
        if self.windows.closing().is_closed(last_end, observed) {
            // It would have ended this one.
            let start = record.timestamp_ms.saturating_sub(self.windows.difference_ms()).max(0);
            return late::miss(&self.late, cx, self.window(start), record);
        }
        if record.timestamp_ms < self.windows.difference_ms() {
            self.process_early(cx, record)?;
        } else {
            self.process_ordinary(cx, record)?;
        }
        match self.clocks.take_closed(cx, self.windows.closing()) {
            Some(ends) => self.emit(cx, ends, record.headers),
            None => Ok(()),
        }
    }
}

impl<K: Clone + 'static, V: 'static, A: 'static, F> SlidingAggregate<K, V, A, F>
where
    F: Fn(&K, &V, Option<A>) -> Option<A>,
{
    fn window(&self, start_ms: i64) -> Window {
        Window::of_size(start_ms, self.windows.difference_ms())
    }

    /// A record whose left window does not begin before the epoch.
    fn process_ordinary(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let (time, difference) = (record.timestamp_ms, self.windows.difference_ms());
        let from = time.saturating_sub(difference.saturating_mul(2)).max(0);
        let to = time.saturating_add(1);
        let rows = self.store.fetch_key(cx, record.key, from, to, Direction::Reverse)?;
        let mut around = Around::default();
        for row in rows {
            let end = row.start_ms.saturating_add(difference);
            around.starts.push(row.start_ms);
            if row.start_ms == to {
                around.own_right = true;
            } else if end > time {
                self.update(cx, row.start_ms, record, Base::Stored)?;
                around.after.get_or_insert(row);
            } else if end == time {
                around.own_left = true;
                self.update(cx, row.start_ms, record, Base::Stored)?;
                if row.timestamp_ms >= time {
                    // A record of this time was here before: all its windows are there.
                    return Ok(());
                }
                around.previous_ms = Some(row.timestamp_ms);
            } else {
                around.previous_ms = Some(row.timestamp_ms);
                around.before = Some(row);
                break;
            }
        }
        self.make_windows(cx, record, &around)
    }

    /// The windows that a record adds: the right one of the record before, its own left one, its own right one.
    fn make_windows(&self, cx: &mut TaskContext, record: Record<'_, K, V>, around: &Around) -> ProcessResult {
        let (time, difference) = (record.timestamp_ms, self.windows.difference_ms());
        if let Some(previous) = around.previous_ms {
            let start = previous.saturating_add(1);
            if !around.starts.contains(&start) && start.saturating_add(difference) >= time {
                self.update(cx, start, record, Base::New(None))?;
            }
        }
        if !around.own_left {
            let start = time.saturating_sub(difference);
            let reaches = around.previous_ms.is_some_and(|previous| previous >= start);
            let seed = around.before.as_ref().filter(|_| reaches);
            self.update(cx, start, record, Base::New(seed))?;
        }
        self.make_own_right(cx, record, around)
    }

    fn make_own_right(&self, cx: &mut TaskContext, record: Record<'_, K, V>, around: &Around) -> ProcessResult {
        match &around.after {
            Some(after) if !around.own_right && after.timestamp_ms > record.timestamp_ms => {
                self.copy(cx, record.timestamp_ms.saturating_add(1), record, after)
            }
            _ => Ok(()),
        }
    }

    /// A record whose left window would begin before the epoch: all such share the window from 0.
    fn process_early(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let time = record.timestamp_ms;
        let rows = self
            .store
            .fetch_key(cx, record.key, 0, time.saturating_add(1), Direction::Forward)?;
        let mut around = Around::default();
        let mut combined = None;
        for row in rows {
            around.starts.push(row.start_ms);
            if row.start_ms == 0 {
                around.previous_ms = (row.timestamp_ms < time).then_some(row.timestamp_ms);
                combined = Some(row);
            } else if row.start_ms <= time {
                self.update(cx, row.start_ms, record, Base::Stored)?;
                around.after = Some(row);
            } else {
                around.own_right = true;
            }
        }
        let is_new = combined.is_none();
        // Without a window between, all that the shared window holds lies after the record.
        if around.after.is_none() {
            around.after = combined.filter(|row| row.timestamp_ms > time);
        }
        self.make_own_right(cx, record, &around)?;
        if let Some(previous) = around.previous_ms {
            let start = previous.saturating_add(1);
            if !around.starts.contains(&start) {
                self.update(cx, start, record, Base::New(None))?;
            }
        }
        let shared = if is_new { Base::New(None) } else { Base::Stored };
        self.update(cx, 0, record, shared)
    }

    /// Adds the record to a window; a closed one is left alone.
    fn update(&self, cx: &mut TaskContext, start_ms: i64, record: Record<'_, K, V>, base: Base<'_>) -> ProcessResult {
        let window = self.window(start_ms);
        if self
            .windows
            .closing()
            .is_closed(window.end_ms, cx.observed(self.clocks.observed))
        {
            return late::miss(&self.late, cx, window, record);
        }
        let seed = match base {
            Base::Stored => None,
            Base::New(seed) => Some(seed.map(|seed| self.store.decode(cx, seed)).transpose()?),
        };
        let mut time = record.timestamp_ms;
        let update = self.store.update_window(cx, record.key, window, record, |cx, before| {
            let before = match seed {
                Some(seed) => seed.map(|seed| seed.value),
                None => {
                    let (before, timestamp_ms) = before_and_time(before, time);
                    time = timestamp_ms;
                    before
                }
            };
            let row = cx.call_user(&self.name, || (self.row)(record.key, record.value, before))?;
            let timestamp_ms = time;
            Ok(row.map(|row| row.map(|value| ValueAndTimestamp { value, timestamp_ms })))
        })?;
        self.updated(cx, window, update, record, time)
    }

    /// Makes a window of the records that another one holds after the record in hand.
    fn copy(
        &self,
        cx: &mut TaskContext,
        start_ms: i64,
        record: Record<'_, K, V>,
        from: &StoredWindow,
    ) -> ProcessResult {
        let window = self.window(start_ms);
        let row = self.store.decode(cx, from)?;
        let time = row.timestamp_ms;
        let update = self
            .store
            .update_window(cx, record.key, window, record, |_, _| Ok(Some(Some(row))))?;
        self.updated(cx, window, update, record, time)
    }

    fn updated(
        &self,
        cx: &mut TaskContext,
        window: Window,
        update: Update<A>,
        record: Record<'_, K, V>,
        time: i64,
    ) -> ProcessResult {
        let Update::Changed(change, _) = update else {
            return Ok(());
        };
        let key = Windowed::new(record.key.clone(), window);
        if self.clocks.emitted.is_some() {
            return self.pending.note(cx, &key, change.new.is_some());
        }
        self.children
            .forward(cx, record.with_key(&key).with_value(&change).with_timestamp(time))
    }
}

impl<K: Clone + 'static, V: 'static, A: 'static, F> EmitsClosed for SlidingAggregate<K, V, A, F> {
    fn emit(&self, cx: &mut TaskContext, (_, last): Ends, headers: &Headers) -> ProcessResult {
        self.meter.emit_finals(|| {
            let mut emitted = 0;
            while let Some((key, row)) = self.pending.take_first(cx, last)? {
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
