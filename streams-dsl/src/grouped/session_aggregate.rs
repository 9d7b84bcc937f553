//! The node of an aggregation in sessions. Java counterpart: `KStreamSessionWindowAggregate`.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::metrics::meters::NodeMeter;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{FlushListener, PendingWindows, SessionLayout, SessionStore, Update};
use streams_core::{Change, Headers, ProcessResult, Record, Window, Windowed};

use super::emission::{Ends, OpenClocks};
use super::late::{self, Missed};
use super::store::Seed;
use super::wall_clock::{EmitsClosed, LastRecord, WallClock};
use super::windowed_aggregate::Lifetime;
use crate::windows::SessionWindows;

/// Adds a value to an aggregate, and makes one of two.
pub(super) struct Functions<F, M> {
    pub(super) add: F,
    pub(super) merge: M,
}

/// What the node is made of.
pub(super) struct Parts<K, F, M> {
    pub(super) key: SharedSerde<K>,
    pub(super) windows: SessionWindows,
    pub(super) retention_ms: i64,
    pub(super) functions: Arc<Functions<F, M>>,
    pub(super) wall: Option<WallClock>,
}

pub(super) fn factory<K: Clone + 'static, V: 'static, A: 'static, F, M>(
    seed: Seed,
    parts: Parts<K, F, M>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
    M: Fn(&K, Option<A>, A) -> Option<A> + Send + Sync + 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let (children, late) = builder.children_of_two::<Windowed<K>, Change<A>, Missed<K>, V>()?;
        let children = Rc::new(children);
        let store = builder.store::<SessionStore<K, A>>(&seed.store)?;
        store.set_listener(Rc::new(ForwardSessions(Rc::clone(&children))), seed.flags.sends_old());
        let clocks = seed.clocks.open(builder.context());
        let lifetime = Lifetime {
            closing: parts.windows.closing(),
            span_ms: 0,
            retention_ms: parts.retention_ms,
        };
        store.keep_from(move |cx| lifetime.live_from_ms(cx, clocks));
        let pending = Rc::new(PendingWindows::new(Rc::clone(&store)));
        if clocks.emitted.is_some() {
            let (pending, closing) = (Rc::clone(&pending), parts.windows.closing());
            builder.on_init(move |cx| pending.load(cx, clocks.first_open_end_ms(cx, closing)));
        }
        let node = Rc::new(SessionAggregate {
            name: builder.name(),
            meter: builder.meter(),
            children,
            late,
            store,
            key: Arc::clone(&parts.key),
            windows: parts.windows,
            clocks,
            pending,
            functions: Arc::clone(&parts.functions),
            last_record: LastRecord::default(),
        });
        WallClock::watch(parts.wall, builder, &node, clocks, parts.windows.closing());
        Ok(AnyNode::new::<K, V>(node))
    })
}

/// Hands the changes of a flushed store on, at the end of their session.
struct ForwardSessions<K, A>(Rc<Children<Windowed<K>, Change<A>>>);

impl<K, A> FlushListener<Windowed<K>, A> for ForwardSessions<K, A> {
    fn flushed(&self, cx: &mut TaskContext, record: Record<'_, Windowed<K>, Change<A>>) -> ProcessResult {
        self.0.forward(cx, record.with_timestamp(record.key.window.end_ms))
    }
}

struct SessionAggregate<K: 'static, V, A, F, M> {
    name: Arc<str>,
    meter: Rc<NodeMeter>,
    children: Rc<Children<Windowed<K>, Change<A>>>,
    late: Children<Missed<K>, V>,
    store: Rc<SessionStore<K, A>>,
    key: SharedSerde<K>,
    windows: SessionWindows,
    clocks: OpenClocks,
    pending: Rc<PendingWindows<SessionLayout<K>, A>>,
    functions: Arc<Functions<F, M>>,
    last_record: LastRecord,
}

impl<K: Clone + 'static, V: 'static, A: 'static, F, M> Downstream<K, V> for SessionAggregate<K, V, A, F, M>
where
    F: Fn(&K, &V, Option<A>) -> Option<A>,
    M: Fn(&K, Option<A>, A) -> Option<A>,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.key.is_null(record.key) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        self.last_record.note(cx);
        let observed = cx.observe(self.clocks.observed, record.timestamp_ms);
        let (time, gap) = (record.timestamp_ms, self.windows.gap_ms());
        // A closed session is final: it takes no record any more, whatever comes within its gap.
        let first_open_end = self.windows.closing().last_closed_end_ms(observed).saturating_add(1);
        let from_end = time.saturating_sub(gap).max(first_open_end);
        let found = self.store.find(cx, record.key, from_end, time.saturating_add(gap))?;
        let session = found
            .iter()
            .fold(Window::new(time, time), |session, (window, _)| Window {
                start_ms: session.start_ms.min(window.start_ms),
                end_ms: session.end_ms.max(window.end_ms),
            });
        if self.windows.closing().is_closed(session.end_ms, observed) {
            late::miss(&self.late, cx, session, record)?;
        } else {
            self.merge(cx, session, found, record)?;
        }
        match self.clocks.take_closed(cx, self.windows.closing()) {
            Some(ends) => self.emit(cx, ends, record.headers),
            None => Ok(()),
        }
    }
}

impl<K: Clone + 'static, V, A: 'static, F, M> SessionAggregate<K, V, A, F, M> {
    /// Makes one session of the record and the sessions it touches.
    fn merge(
        &self,
        cx: &mut TaskContext,
        session: Window,
        found: Vec<(Window, A)>,
        record: Record<'_, K, V>,
    ) -> ProcessResult
    where
        F: Fn(&K, &V, Option<A>) -> Option<A>,
        M: Fn(&K, Option<A>, A) -> Option<A>,
    {
        let windows: Vec<Window> = found.iter().map(|(window, _)| *window).collect();
        let aggregate = cx.call_user(&self.name, || {
            let merge = |one, (_, other)| (self.functions.merge)(record.key, one, other);
            let merged = found.into_iter().fold(None, merge);
            (self.functions.add)(record.key, record.value, merged)
        })?;
        let Some(aggregate) = aggregate else { return Ok(()) };
        // Sessions that become one are deleted, also one that the record makes no longer; only a record at the single time
        // of a session leaves it as it is (`KStreamSessionWindowAggregate`).
        if session != Window::new(record.timestamp_ms, record.timestamp_ms) {
            for window in windows {
                self.put(cx, window, None, record)?;
            }
        }
        self.put(cx, session, aggregate, record)
    }

    fn put(
        &self,
        cx: &mut TaskContext,
        window: Window,
        aggregate: Option<A>,
        record: Record<'_, K, V>,
    ) -> ProcessResult {
        let key = Windowed::new(record.key.clone(), window);
        let exists = aggregate.is_some();
        let Update::Changed(change, _) = self.store.put(cx, &key, aggregate, record)? else {
            return Ok(());
        };
        if self.clocks.emitted.is_some() {
            return self.pending.note(cx, &key, exists);
        }
        let session = Record::new(&key, &change, window.end_ms);
        self.children.forward(cx, session.with_headers(Headers::empty()))
    }
}

impl<K: Clone + 'static, V, A: 'static, F, M> EmitsClosed for SessionAggregate<K, V, A, F, M> {
    fn emit(&self, cx: &mut TaskContext, (_, last): Ends, headers: &Headers) -> ProcessResult {
        self.meter.emit_finals(|| {
            let mut emitted = 0;
            while let Some((key, row)) = self.pending.take_first(cx, last)? {
                let change = Change::new(Some(row.value), None);
                let record = Record::new(&key, &change, key.window.end_ms).with_headers(headers);
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
