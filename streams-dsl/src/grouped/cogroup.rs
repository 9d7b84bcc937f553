//! Several grouped streams aggregated into one table. Java counterpart: `CogroupedKStream` (KIP-150) with
//! `CogroupedStreamAggregateBuilder`.

use std::sync::Arc;

use streams_core::processor::NodeFactory;
use streams_core::serde::SharedSerde;
use streams_core::stores::{SessionLayout, WindowLayout};
use streams_core::{Change, Windowed};

use super::KGroupedStream;
use super::emission::Clocks;
use super::store::{Added, Seed, some_unless_null, typed_view};
use super::windowed::{WindowKind, sizes};
use super::{aggregate, session_aggregate, windowed_aggregate};
use crate::config::Materialized;
use crate::graph::{Companion, Graph, NodeId, Processor};
use crate::ktable::{KTable, TableFlags, View};
use crate::names::Step;
use crate::node::{PassThrough, factory};
use crate::stores::{Shape, StateStore};
use crate::windows::{CalendarWindows, SessionWindows, SlidingWindows, TimeWindows};

/// Grouped streams that are aggregated together: each with an adder of its own, into one aggregate a key.
pub struct CogroupedKStream<K, A> {
    first: Arc<dyn Input<K, A>>,
    others: Vec<Arc<dyn Input<K, A>>>,
}

impl<K, A> Clone for CogroupedKStream<K, A> {
    fn clone(&self) -> Self {
        CogroupedKStream {
            first: Arc::clone(&self.first),
            others: self.others.clone(),
        }
    }
}

impl<K: Clone + 'static, V: 'static> KGroupedStream<K, V> {
    /// Begins an aggregation of several streams: `add` adds this one's values.
    ///
    /// Each input is repartitioned by itself where its keys may have changed; the topics that the inputs are read from must
    /// have equal partition counts. Records with a null key or value are dropped and counted, as in plain aggregations.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let bought = b.stream::<String, i64>("bought").group_by_key();
    ///     let sold = b.stream::<String, i64>("sold").group_by_key();
    ///     bought
    ///         .cogroup(|_item, count, stock: i64| stock + count)
    ///         .cogroup(&sold, |_item, count, stock| stock - count)
    ///         .aggregate(|| 0, "stock")
    ///         .to_stream()
    ///         .to("stock")
    /// })
    /// .pipe("bought", [("tea", 5, at(0))])
    /// .pipe("sold", [("tea", 2, at(1))])
    /// .gives("stock", [("tea", 5, at(0)), ("tea", 3, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KGroupedStream.cogroup`.
    pub fn cogroup<A: 'static>(&self, add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static) -> CogroupedKStream<K, A> {
        CogroupedKStream {
            first: Arc::new(TypedInput {
                grouped: self.clone(),
                add: Arc::new(add),
            }),
            others: Vec::new(),
        }
    }
}

impl<K: Clone + 'static, A: 'static> CogroupedKStream<K, A> {
    /// Adds another stream.
    ///
    /// Java counterpart: `CogroupedKStream.cogroup`.
    #[must_use]
    pub fn cogroup<V: 'static>(
        mut self,
        grouped: &KGroupedStream<K, V>,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
    ) -> Self {
        self.others.push(Arc::new(TypedInput {
            grouped: grouped.clone(),
            add: Arc::new(add),
        }));
        self
    }

    /// Keeps an aggregate for each key, at first what `init` makes. A null aggregate (`None` of an `Option`) deletes.
    ///
    /// Java counterpart: `CogroupedKStream.aggregate`.
    pub fn aggregate(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<K, A> {
        let materialized = materialized.into();
        let how = How::of(init, &materialized, Kind::Plain);
        let (added, key) = self.add(&materialized, Shape::KeyValue, &how);
        let view = View::of_store(added.node, &added.store);
        self.table(added, key, how.nulls, view)
    }

    /// Aggregates by windows too: [`TimeWindows`], [`CalendarWindows`], [`SlidingWindows`] or [`SessionWindows`].
    ///
    /// Each input has a stream time of its own: a record is late by those of its own stream, as in Java. Results are
    /// emitted at each update.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (bought, sold) = (b.stream::<String, i64>("bought"), b.stream::<String, i64>("sold"));
    ///     let both = bought.group_by_key().cogroup(|_, n, sum: i64| sum + n).cogroup(&sold.group_by_key(), |_, n, sum| sum - n);
    ///     both.windowed_by(TimeWindows::of(HOUR)).aggregate(|| 0, "hourly-stock").to_stream().to("hourly");
    ///     both.windowed_by(SessionWindows::of(MINUTE)).aggregate(|| 0, |_, a, b| a + b, "sessions").to_stream().to("sessions")
    /// })
    /// .pipe("bought", [("tea", 5, at(0))])
    /// .pipe("sold", [("tea", 2, at(1))])
    /// .gives("hourly", [(window("tea", 0), 5, at(0)), (window("tea", 0), 3, at(1))]);
    /// ```
    ///
    /// Java counterpart: `CogroupedKStream.windowedBy`.
    #[must_use]
    pub fn windowed_by<W: CogroupWindows<K, A>>(&self, windows: W) -> W::Windowed {
        windows.window(self)
    }

    /// Adds store, repartitions, a node for each input and the merge, numbers in Java's order.
    fn add(&self, materialized: &Materialized<K, A>, shape: Shape, how: &How<K, A>) -> (Added, SharedSerde<K>) {
        let key = match &materialized.key {
            Some(key) => Arc::clone(key),
            None => self.first.key(),
        };
        let inputs: Vec<_> = std::iter::once(&self.first).chain(&self.others).collect();
        let builder = self.first.builder();
        let flags = Arc::new(TableFlags::default());
        let added = builder.with(|graph: &mut Graph| {
            if inputs.iter().any(|input| !input.builder().same_as(&builder)) {
                graph.found("streams of two builders can't be aggregated together");
            }
            let step = Step::CogroupAggregate;
            let store = graph.names.store(step.prefix(), materialized.name.as_deref());
            let definition =
                StateStore::of(&store, Arc::clone(&key), Arc::clone(&how.nulls), shape, materialized).definition();
            let mut definition = Some(definition);
            let parents: Vec<(NodeId, Vec<NodeId>)> = inputs.iter().map(|input| input.parent(graph, &store)).collect();
            let mut nodes = Vec::new();
            for (at, (input, (parent, _))) in inputs.iter().zip(&parents).enumerate() {
                let clocks = Clocks {
                    observed: format!("~{store}-{at}").into(),
                    emitted: None,
                };
                let keys = match shape {
                    Shape::KeyValue => Vec::new(),
                    Shape::Window { .. } | Shape::Session { .. } => clocks.keys(),
                };
                let seed = Seed {
                    store: store.as_str().into(),
                    flags: Arc::clone(&flags),
                    clocks,
                };
                let factory = input.factory(seed, how, &key);
                let kind = match definition.take() {
                    Some(definition) => Processor::with_store(factory, definition, keys),
                    None => Processor::timed(factory, vec![store.as_str().into()], keys),
                };
                let name = graph.names.node(step, None);
                nodes.push(graph.add(name, &[*parent], kind));
            }
            graph
                .copartitions
                .push(inputs.iter().flat_map(|input| input.read_from()).collect());
            let name = graph.names.node(Step::CogroupMerge, None);
            let node = graph.add(name, &nodes, Processor::stateless(how.merge()));
            if let Some(added) = graph.node_mut(node) {
                added.own_suffix = "-cogroup-merge";
                let named = nodes.iter().enumerate();
                added.companions = named
                    .map(|(at, node)| (Companion::Node(*node), format!("-cogroup-agg-{at}")))
                    .collect();
            }
            let mut sources: Vec<NodeId> = Vec::new();
            for source in parents.into_iter().flat_map(|(_, sources)| sources) {
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
            Added {
                node,
                sources,
                flags,
                store,
            }
        });
        (added, key)
    }

    fn table<KO>(&self, added: Added, key: SharedSerde<KO>, value: SharedSerde<A>, view: View<KO, A>) -> KTable<KO, A> {
        super::store::made(self.first.builder(), added, key, value, view)
    }
}

/// What cogrouped streams can be windowed by.
pub trait CogroupWindows<K, A>: sealed::Sealed {
    /// The windowed streams.
    type Windowed;

    #[doc(hidden)]
    fn window(self, cogrouped: &CogroupedKStream<K, A>) -> Self::Windowed;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::TimeWindows {}
    impl Sealed for super::CalendarWindows {}
    impl Sealed for super::SlidingWindows {}
    impl Sealed for super::SessionWindows {}
}

impl<K, A> CogroupWindows<K, A> for TimeWindows {
    type Windowed = TimeWindowedCogroupedKStream<K, A>;

    fn window(self, cogrouped: &CogroupedKStream<K, A>) -> Self::Windowed {
        TimeWindowedCogroupedKStream {
            cogrouped: cogrouped.clone(),
            windows: WindowKind::Time(self),
            problem: self.problem(),
        }
    }
}

impl<K, A> CogroupWindows<K, A> for CalendarWindows {
    type Windowed = TimeWindowedCogroupedKStream<K, A>;

    fn window(self, cogrouped: &CogroupedKStream<K, A>) -> Self::Windowed {
        TimeWindowedCogroupedKStream {
            cogrouped: cogrouped.clone(),
            windows: WindowKind::Calendar(self),
            problem: self.problem(),
        }
    }
}

impl<K, A> CogroupWindows<K, A> for SlidingWindows {
    type Windowed = TimeWindowedCogroupedKStream<K, A>;

    fn window(self, cogrouped: &CogroupedKStream<K, A>) -> Self::Windowed {
        TimeWindowedCogroupedKStream {
            cogrouped: cogrouped.clone(),
            windows: WindowKind::Sliding(self),
            problem: None,
        }
    }
}

impl<K, A> CogroupWindows<K, A> for SessionWindows {
    type Windowed = SessionWindowedCogroupedKStream<K, A>;

    fn window(self, cogrouped: &CogroupedKStream<K, A>) -> Self::Windowed {
        SessionWindowedCogroupedKStream {
            cogrouped: cogrouped.clone(),
            windows: self,
        }
    }
}

/// Cogrouped streams in time or sliding windows. Java counterpart: `TimeWindowedCogroupedKStream`.
pub struct TimeWindowedCogroupedKStream<K, A> {
    cogrouped: CogroupedKStream<K, A>,
    windows: WindowKind,
    problem: Option<String>,
}

impl<K: Clone + 'static, A: 'static> TimeWindowedCogroupedKStream<K, A> {
    /// Keeps an aggregate for each key and window, at first what `init` makes.
    ///
    /// Java counterpart: `TimeWindowedCogroupedKStream.aggregate`.
    pub fn aggregate(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<Windowed<K>, A> {
        let materialized = materialized.into();
        let (shape, ends, closing, too_short) = sizes(self.windows, false, materialized.retention);
        let how = How::of(init, &materialized, Kind::Windows(self.windows, shape.retention_ms()));
        let (added, key) = self.cogrouped.add(&materialized, shape, &how);
        let view = typed_view::<WindowLayout<K>, A>(&added);
        let key: SharedSerde<Windowed<K>> = Arc::new(streams_core::serde::TimeWindowed::with_ends(key, ends));
        let table = self.cogrouped.table(added, key, how.nulls, view);
        for problem in self.problem.iter().chain(&too_short) {
            table.builder.with(|graph| graph.found(problem.as_str()));
        }
        KTable {
            closing: Some(closing),
            ..table
        }
    }
}

/// Cogrouped streams in sessions. Java counterpart: `SessionWindowedCogroupedKStream`.
pub struct SessionWindowedCogroupedKStream<K, A> {
    cogrouped: CogroupedKStream<K, A>,
    windows: SessionWindows,
}

impl<K: Clone + 'static, A: 'static> SessionWindowedCogroupedKStream<K, A> {
    /// Keeps an aggregate for each session, at first what `init` makes; `merge` makes one of two when sessions become one,
    /// that of the later session last.
    ///
    /// Java counterpart: `SessionWindowedCogroupedKStream.aggregate`.
    pub fn aggregate(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        merge: impl Fn(&K, A, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<Windowed<K>, A> {
        let materialized = materialized.into();
        let (shape, too_short) = super::session::shape(self.windows, materialized.retention);
        let kind = Kind::Sessions(self.windows, shape.retention_ms(), Arc::new(merge));
        let how = How::of(init, &materialized, kind);
        let (added, key) = self.cogrouped.add(&materialized, shape, &how);
        let view = typed_view::<SessionLayout<K>, A>(&added);
        let key: SharedSerde<Windowed<K>> = Arc::new(streams_core::serde::SessionWindowed(key));
        let table = self.cogrouped.table(added, key, how.nulls, view);
        for problem in self.windows.problem().iter().chain(&too_short) {
            table.builder.with(|graph| graph.found(problem.as_str()));
        }
        KTable {
            closing: Some(self.windows.closing()),
            ..table
        }
    }
}

type Merge<K, A> = dyn Fn(&K, A, A) -> A + Send + Sync;

/// Which aggregation.
enum Kind<K, A> {
    Plain,
    Windows(WindowKind, i64),
    Sessions(SessionWindows, i64, Arc<Merge<K, A>>),
}

/// What all inputs have in common.
struct How<K, A> {
    init: Arc<dyn Fn() -> A + Send + Sync>,
    nulls: SharedSerde<A>,
    kind: Kind<K, A>,
}

impl<K: 'static, A: 'static> How<K, A> {
    fn of(init: impl Fn() -> A + Send + Sync + 'static, materialized: &Materialized<K, A>, kind: Kind<K, A>) -> Self {
        How {
            init: Arc::new(init),
            nulls: materialized.value.resolve(None),
            kind,
        }
    }

    /// The node that hands the changes of all inputs on.
    fn merge(&self) -> Arc<dyn NodeFactory> {
        match self.kind {
            Kind::Plain => factory::<K, Change<A>, K, Change<A>, _>(PassThrough),
            Kind::Windows(..) | Kind::Sessions(..) => {
                factory::<Windowed<K>, Change<A>, Windowed<K>, Change<A>, _>(PassThrough)
            }
        }
    }
}

/// One input, whatever its values.
trait Input<K, A>: Send + Sync {
    fn builder(&self) -> crate::graph::Shared;
    fn key(&self) -> SharedSerde<K>;
    /// The sources of the stream before it is repartitioned.
    fn read_from(&self) -> Vec<NodeId>;
    /// The node that the aggregation reads, and the sources of what that gives.
    fn parent(&self, graph: &mut Graph, store: &str) -> (NodeId, Vec<NodeId>);
    fn factory(&self, seed: Seed, how: &How<K, A>, key: &SharedSerde<K>) -> Arc<dyn NodeFactory>;
}

struct TypedInput<K, V, F> {
    grouped: KGroupedStream<K, V>,
    add: Arc<F>,
}

impl<K: Clone + 'static, V: 'static, A: 'static, F> Input<K, A> for TypedInput<K, V, F>
where
    F: Fn(&K, &V, A) -> A + Send + Sync + 'static,
{
    fn builder(&self) -> crate::graph::Shared {
        self.grouped.stream.builder.clone()
    }

    fn key(&self) -> SharedSerde<K> {
        Arc::clone(&self.grouped.key)
    }

    fn read_from(&self) -> Vec<NodeId> {
        self.grouped.stream.sources.clone()
    }

    fn parent(&self, graph: &mut Graph, store: &str) -> (NodeId, Vec<NodeId>) {
        self.grouped.input(graph, store)
    }

    fn factory(&self, seed: Seed, how: &How<K, A>, key: &SharedSerde<K>) -> Arc<dyn NodeFactory> {
        let (add, init, nulls) = (Arc::clone(&self.add), Arc::clone(&how.init), Arc::clone(&how.nulls));
        let row = move |key: &K, value: &V, row: Option<A>| {
            some_unless_null(&*nulls, add(key, value, row.unwrap_or_else(|| init())))
        };
        let (key, value) = (Arc::clone(key), Arc::clone(&self.grouped.value));
        match &how.kind {
            Kind::Plain => aggregate::factory::<K, V, A, _>(seed, value, Arc::new(row)),
            Kind::Windows(windows, retention_ms) => {
                let parts = windowed_aggregate::Parts {
                    key,
                    value,
                    retention_ms: *retention_ms,
                    row: Arc::new(row),
                    wall: None,
                };
                windowed_aggregate::factory::<K, V, A, _>(*windows, seed, parts)
            }
            Kind::Sessions(windows, retention_ms, merge) => {
                let (merge, init, nulls) = (Arc::clone(merge), Arc::clone(&how.init), Arc::clone(&how.nulls));
                let merge = move |key: &K, one: Option<A>, other: A| {
                    some_unless_null(&*nulls, merge(key, one.unwrap_or_else(|| init()), other))
                };
                let parts = session_aggregate::Parts {
                    key,
                    windows: *windows,
                    retention_ms: *retention_ms,
                    functions: Arc::new(session_aggregate::Functions { add: row, merge }),
                    wall: None,
                };
                session_aggregate::factory::<K, V, A, _, _>(seed, parts)
            }
        }
    }
}
