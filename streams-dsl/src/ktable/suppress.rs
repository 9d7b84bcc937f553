//! `suppress`: updates that are held back. Java counterpart: `KTableSuppressProcessorSupplier`.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::metrics::meters::NodeMeter;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, OperatorTime, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{Released, SuppressBuffer};
use streams_core::{BoxError, Change, ProcessResult, Record};

use super::view::{TableView, View};
use super::{AskOld, KTable};
use crate::config::{Suppressed, Until, WhenFull};
use crate::graph::{Graph, Processor};
use crate::names::Step;
use crate::stores::suppress_buffer;
use crate::windows::{Closing, millis};

impl<K: 'static, V: 'static> KTable<K, V> {
    /// Holds updates back: until their window is closed, so that each window gives one final result, or for some time, so
    /// that of many updates of a key the last one remains.
    ///
    /// Of each key the last update waits, at the place of the first one; it is emitted with its own event time and headers,
    /// while some record of the table is processed. Stream time here is the highest event time of the table's updates; it
    /// survives restarts. A look-up from further down (a join) finds the row that was emitted last.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     b.stream::<String, i64>("usage")
    ///         .group_by_key()
    ///         .windowed_by(TimeWindows::of(10 * MILLISECOND).grace(5 * MILLISECOND))
    ///         .count("by-window")
    ///         .suppress(Suppressed::until_window_closes())
    ///         .to_stream()
    ///         .to("final")
    /// })
    /// .pipe("usage", [("a", 1, at(0)), ("a", 1, at(5)), ("a", 1, at(2)), ("b", 1, at(14)), ("b", 1, at(15))])
    /// .gives("final", [(window("a", 0), 3, at(5))]);
    /// ```
    ///
    /// Different from Java: sliding windows and sessions, whose end is inside, are closed one millisecond later; and the old
    /// value of an emitted update, for what groups the table anew, is the one that was emitted before it.
    /// Java counterpart: `KTable.suppress`.
    #[must_use]
    pub fn suppress(&self, suppressed: Suppressed<K>) -> KTable<K, V> {
        let parts = Parts {
            key: Arc::clone(&self.key),
            hold: Hold::of(&suppressed, self.closing),
            max_records: suppressed.max_records,
            max_bytes: suppressed.max_bytes,
            full: suppressed.full.unwrap_or(match suppressed.until {
                Until::WindowCloses(_) => WhenFull::ShutDown,
                Until::TimeLimit(_) => WhenFull::EmitEarly,
            }),
        };
        let (node, store) = self.builder.with(|graph| {
            (self.ask_old)(graph, true);
            self.check(graph, &suppressed);
            let (name, store) = match &suppressed.name {
                Some(name) => (name.clone(), format!("{name}-store")),
                None => {
                    let name = graph.names.node(Step::Suppress, None);
                    (name, graph.names.store(Step::Suppress.prefix(), None))
                }
            };
            let store: Arc<str> = store.into();
            let clock: Arc<str> = format!("~{store}").into();
            let definition = suppress_buffer(&store, &self.key, &self.value, suppressed.logging.clone());
            let factory = parts.factory::<V>(Arc::clone(&store), Arc::clone(&clock));
            let kind = Processor::with_store(factory, definition, [clock]);
            (graph.add(name, &[self.node], kind), store)
        });
        let ask_old: AskOld = Arc::new(|_, _| true);
        KTable {
            node,
            view: self.view_past(store),
            ask_old,
            ..self.clone()
        }
    }

    fn check(&self, graph: &mut Graph, suppressed: &Suppressed<K>) {
        if graph.is_versioned(&self.view.stored_by) {
            graph.found("versioned tables can't be suppressed: suppress it before it is stored with versions");
        }
        if !matches!(suppressed.until, Until::WindowCloses(_)) {
            return;
        }
        if self.closing.is_none() {
            graph.found("`until_window_closes` needs the table of a windowed aggregation");
        }
        if suppressed.full == Some(WhenFull::EmitEarly) {
            graph.found("final results can't be emitted early: bound the buffer with `shut_down_when_full`");
        }
    }

    /// The rows of this table, except that of what waits the last emitted one is seen.
    fn view_past(&self, store: Arc<str>) -> View<K, V> {
        let parent = self.view.clone();
        let (stored_by, mut stores) = (parent.stored_by.clone(), parent.stores.clone());
        stores.push(Arc::clone(&store));
        let open = move |builder: &mut NodeBuilder<'_>| {
            let view: Rc<dyn TableView<K, V>> = Rc::new(EmittedRows {
                parent: (parent.open)(builder)?,
                buffer: builder.store::<SuppressBuffer<K, V>>(&store)?,
            });
            Ok(view)
        };
        View {
            stored_by,
            stores,
            open: Arc::new(open),
        }
    }
}

/// How long updates wait.
enum Hold<K> {
    /// Until the window with this end is closed; deletes are not emitted.
    Window(fn(&K) -> i64, Closing),
    /// For so long, ms.
    Limit(i64),
}

impl<K> Clone for Hold<K> {
    fn clone(&self) -> Self {
        match self {
            Hold::Window(end, closing) => Hold::Window(*end, *closing),
            Hold::Limit(limit_ms) => Hold::Limit(*limit_ms),
        }
    }
}

impl<K> Hold<K> {
    fn of(suppressed: &Suppressed<K>, closing: Option<Closing>) -> Self {
        match suppressed.until {
            Until::WindowCloses(end) => Hold::Window(
                end,
                // Without windows the build fails.
                closing.unwrap_or(Closing {
                    lag_ms: 0,
                    end_is_inside: false,
                    calendar: None,
                }),
            ),
            Until::TimeLimit(limit) => Hold::Limit(millis(limit)),
        }
    }

    fn time_ms(&self, key: &K, timestamp_ms: i64) -> i64 {
        match self {
            Hold::Window(end, _) => end(key),
            Hold::Limit(_) => timestamp_ms,
        }
    }

    /// Whether what waits until `time_ms` is over at a stream time.
    fn is_over(&self, time_ms: i64, stream_time_ms: i64) -> bool {
        match self {
            Hold::Window(_, closing) => closing.is_closed(time_ms, stream_time_ms),
            Hold::Limit(limit_ms) => time_ms <= stream_time_ms.saturating_sub(*limit_ms),
        }
    }
}

struct Parts<K> {
    key: SharedSerde<K>,
    hold: Hold<K>,
    max_records: usize,
    max_bytes: usize,
    full: WhenFull,
}

impl<K: 'static> Parts<K> {
    fn factory<V: 'static>(self, store: Arc<str>, clock: Arc<str>) -> Arc<dyn streams_core::processor::NodeFactory> {
        Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let buffer = builder.store::<SuppressBuffer<K, V>>(&store)?;
            let loaded = Rc::clone(&buffer);
            builder.on_init(move |cx| loaded.load(cx));
            let node = Suppress {
                name: builder.name(),
                meter: builder.meter(),
                children: builder.children::<K, Change<V>>()?,
                buffer,
                key: Arc::clone(&self.key),
                clock: builder.context().operator_time(&clock),
                hold: self.hold.clone(),
                max_records: self.max_records,
                max_bytes: self.max_bytes,
                full: self.full,
            };
            Ok(AnyNode::new::<K, Change<V>>(Rc::new(node)))
        })
    }
}

struct Suppress<K, V> {
    name: Arc<str>,
    meter: Rc<NodeMeter>,
    children: Children<K, Change<V>>,
    buffer: Rc<SuppressBuffer<K, V>>,
    key: SharedSerde<K>,
    clock: OperatorTime,
    hold: Hold<K>,
    max_records: usize,
    max_bytes: usize,
    full: WhenFull,
}

impl<K: 'static, V: 'static> Downstream<K, Change<V>> for Suppress<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        if self.key.is_null(record.key) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let observed = cx.observe(self.clock, record.timestamp_ms);
        let time = self.hold.time_ms(record.key, record.timestamp_ms);
        self.buffer.put(cx, time, record)?;
        while self
            .buffer
            .first_time_ms()
            .is_some_and(|time| self.hold.is_over(time, observed))
        {
            self.emit_first(cx)?;
        }
        if !self.is_over_full() {
            return Ok(());
        }
        if self.full == WhenFull::ShutDown {
            let error: BoxError = format!(
                "the buffer holds {} keys and {} bytes, more than it may: give it a greater bound, or let it emit early",
                self.buffer.len(),
                self.buffer.bytes()
            )
            .into();
            return cx.user_code_failed(&self.name, error);
        }
        while self.is_over_full() {
            self.emit_first(cx)?;
        }
        Ok(())
    }
}

impl<K: 'static, V: 'static> Suppress<K, V> {
    fn is_over_full(&self) -> bool {
        self.buffer.len() > self.max_records || self.buffer.bytes() > self.max_bytes
    }

    fn emit_first(&self, cx: &mut TaskContext) -> ProcessResult {
        let Some(Released { key, change, context }) = self.buffer.release_first(cx)? else {
            return Ok(());
        };
        // A window that has no final result has given none: there is nothing to delete.
        if change.new.is_none() && matches!(self.hold, Hold::Window(..)) {
            return Ok(());
        }
        let (time, headers) = (context.timestamp_ms, context.headers.clone());
        self.meter.let_go();
        cx.at_place(context, |cx| {
            let record = Record::new(&key, &change, time).with_headers(&headers);
            self.children.forward(cx, record)
        })
    }
}

/// The rows as they were emitted.
struct EmittedRows<K, V> {
    parent: Rc<dyn TableView<K, V>>,
    buffer: Rc<SuppressBuffer<K, V>>,
}

impl<K: 'static, V: 'static> TableView<K, V> for EmittedRows<K, V> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V, i64)>)) -> ProcessResult {
        /// Its time is not kept, as in Java.
        const UNKNOWN_MS: i64 = -1;
        match self.buffer.prior(cx, key)? {
            Some(prior) => {
                read(prior.as_ref().map(|value| (value, UNKNOWN_MS)));
                Ok(())
            }
            None => self.parent.read(cx, key, read),
        }
    }
}
