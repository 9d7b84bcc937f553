//! Joins of two streams: inner, left and outer.

use std::any::Any;
use std::sync::Arc;

use streams_core::codec::JoinSide;
use streams_core::serde::{DefaultSerde, SharedSerde};

use super::join_node::{Combine, CombineBytes, Side, Waiting, windowed};
use super::self_join::{CombineSame, SelfJoin};
use super::{KStream, Keys};
use crate::config::StreamJoined;
use crate::graph::{Graph, NodeId, OneStoreJoin, Processor};
use crate::names::Step;
use crate::node::{PassThrough, factory};
use crate::stores::{join_window_store, unmatched_store};
use crate::windows::JoinWindows;

/// Which records without a partner are emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    None,
    Left,
    Both,
}

impl Keeps {
    fn left(self) -> bool {
        self != Keeps::None
    }

    fn right(self) -> bool {
        self == Keeps::Both
    }
}

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Joins each record with the records of the other stream that have the same key and lie within `windows`, whichever
    /// comes first. Records with a null key or value are dropped and counted.
    ///
    /// A pair's event time is the later one of the two, its headers are those of the record that came last. Both sides
    /// keep their records in a window store for `before + after + grace` of the store's own stream time; both must have
    /// equal partition counts, and a side whose keys may have changed goes through a repartition topic first.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (orders, payments) = (b.stream::<String, i64>("orders"), b.stream::<String, i64>("payments"));
    ///     orders.join(&payments, |_order, price, paid| price - paid, JoinWindows::of(5 * MINUTE)).to("open")
    /// })
    /// .pipe("orders", [("o1", 50, at(0))])
    /// .pipe("payments", [("o1", 20, at(60_000)), ("o2", 9, at(61_000)), ("o1", 30, at(300_001))])
    /// .gives("open", [("o1", 30, at(60_000))]);
    /// ```
    ///
    /// Different from Java: a row is seen one millisecond longer, as long as a partner in time can come.
    /// Java counterpart: `KStream.join(KStream, …)`.
    pub fn join<VO: DefaultSerde, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        join: impl Fn(&K, &V, &VO) -> V2 + Send + Sync + 'static,
        windows: JoinWindows,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.join_with(other, join, windows, StreamJoined::default())
    }

    /// As [`join`](Self::join), in a given way: serdes, names, stores.
    pub fn join_with<VO: 'static, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        join: impl Fn(&K, &V, &VO) -> V2 + Send + Sync + 'static,
        windows: JoinWindows,
        joined: StreamJoined<K, V, VO>,
    ) -> KStream<K, V2> {
        let join = move |key: &K, left: Option<&V>, right: Option<&VO>| Some(join(key, left?, right?));
        self.add_join(other, Keeps::None, Arc::new(join), windows, joined)
    }

    /// As [`join`](Self::join), but records of this stream without a partner are joined with `None`, once, when their
    /// window is closed: when the highest event time of both streams is more than `after + grace` ahead of them and some
    /// record comes that is not late itself. A record whose window is closed when it comes is joined at once, and one with
    /// a null key, which has no partners, too.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (orders, payments) = (b.stream::<String, i64>("orders"), b.stream::<String, i64>("payments"));
    ///     let open = |_order: &String, price: &i64, paid: Option<&i64>| price - paid.unwrap_or(&0);
    ///     orders.left_join(&payments, open, JoinWindows::of(5 * MINUTE)).to("open")
    /// })
    /// .pipe("orders", [("o1", 50, at(0)), ("o2", 10, at(1))])
    /// .pipe("payments", [("o1", 20, at(60_000))])
    /// .pipe("orders", [("o3", 7, at(400_000))])
    /// .gives("open", [("o1", 30, at(60_000)), ("o2", 10, at(1))]);
    /// ```
    ///
    /// The result without a partner has its own record's event time, and the headers of the record that closed the window,
    /// as in Java. Different from Java: a record that comes out of order waits for its grace too, so that no pair follows a
    /// result without partner; results come as soon as a window is closed, not once a second; stream time survives
    /// restarts. Java counterpart: `KStream.leftJoin(KStream, …)`.
    pub fn left_join<VO: DefaultSerde, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        join: impl Fn(&K, &V, Option<&VO>) -> V2 + Send + Sync + 'static,
        windows: JoinWindows,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.left_join_with(other, join, windows, StreamJoined::default())
    }

    /// As [`left_join`](Self::left_join), in a given way.
    pub fn left_join_with<VO: 'static, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        join: impl Fn(&K, &V, Option<&VO>) -> V2 + Send + Sync + 'static,
        windows: JoinWindows,
        joined: StreamJoined<K, V, VO>,
    ) -> KStream<K, V2> {
        let join = move |key: &K, left: Option<&V>, right: Option<&VO>| Some(join(key, left?, right));
        self.add_join(other, Keeps::Left, Arc::new(join), windows, joined)
    }

    /// As [`left_join`](Self::left_join), for both streams: no record of either is left out, and never both values are
    /// `None`.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (out, back) = (b.stream::<String, i64>("out"), b.stream::<String, i64>("back"));
    ///     let sum = |_tail: &String, out: Option<&i64>, back: Option<&i64>| out.unwrap_or(&0) + back.unwrap_or(&0);
    ///     out.outer_join(&back, sum, JoinWindows::of(5 * SECOND)).to("trips")
    /// })
    /// .pipe("out", [("n1", 1, at(10_000))])
    /// .pipe("back", [("n2", 2, at(2_000)), ("n1", 4, at(15_000)), ("n3", 8, at(20_001))])
    /// .gives("trips", [("n2", 2, at(2_000)), ("n1", 5, at(15_000))]);
    /// ```
    ///
    /// Java counterpart: `KStream.outerJoin`.
    pub fn outer_join<VO: DefaultSerde, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        join: impl Fn(&K, Option<&V>, Option<&VO>) -> V2 + Send + Sync + 'static,
        windows: JoinWindows,
    ) -> KStream<K, V2>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.outer_join_with(other, join, windows, StreamJoined::default())
    }

    /// As [`outer_join`](Self::outer_join), in a given way.
    pub fn outer_join_with<VO: 'static, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        join: impl Fn(&K, Option<&V>, Option<&VO>) -> V2 + Send + Sync + 'static,
        windows: JoinWindows,
        joined: StreamJoined<K, V, VO>,
    ) -> KStream<K, V2> {
        let join = move |key: &K, left: Option<&V>, right: Option<&VO>| Some(join(key, left, right));
        self.add_join(other, Keeps::Both, Arc::new(join), windows, joined)
    }

    /// Adds repartitions, windows, sides and the merge of their results, numbers in Java's order (`KStreamImpl.doJoin`,
    /// `KStreamImplJoin`).
    fn add_join<VO: 'static, V2: 'static>(
        &self,
        other: &KStream<K, VO>,
        keeps: Keeps,
        combine: Arc<Combine<K, V, VO, V2>>,
        windows: JoinWindows,
        joined: StreamJoined<K, V, VO>,
    ) -> KStream<K, V2> {
        let same_builder = self.builder.same_as(&other.builder);
        if !same_builder {
            self.builder
                .with(|graph| graph.found("streams of two builders can't be joined"));
        }
        if let Some(problem) = windows.problem() {
            self.builder.with(|graph| graph.found(problem));
        }
        let key = joined.key.resolve(self.key.as_ref());
        let value = joined.value.resolve(self.value.as_ref());
        let other_value = joined.other.resolve(other.value.as_ref());
        let suffixed = |side: &str| joined.name.as_ref().map(|name| format!("{name}-{side}"));
        let left = self.for_join(suffixed("left").as_deref(), Arc::clone(&key), Arc::clone(&value));
        let right = match same_builder {
            true => other.for_join(suffixed("right").as_deref(), Arc::clone(&key), Arc::clone(&other_value)),
            false => other.clone(),
        };
        let mut sources = left.sources.clone();
        sources.extend(right.sources.iter().filter(|source| !left.sources.contains(source)));
        let parts = Parts {
            keeps,
            combine,
            windows,
            key: Arc::clone(&key),
            value,
            other_value,
        };
        // A node of another builder means nothing here; the build fails anyway.
        let right_node = if same_builder { right.node } else { left.node };
        let node = self.builder.with(|graph| {
            let node = parts.add(graph, (left.node, right_node), &joined);
            graph.copartitions.push(sources.clone());
            node
        });
        KStream {
            sources,
            ..left.at(node, Keys::Kept(Some(key)), None)
        }
    }
}

/// The names of a join's nodes and stores.
struct JoinNames {
    this_windowed: String,
    other_windowed: String,
    this: String,
    other: String,
    merge: String,
    this_store: String,
    other_store: String,
    shared_store: String,
}

impl JoinNames {
    fn draw(graph: &mut Graph, keeps: Keeps, name: Option<&str>, store: Option<&str>) -> Self {
        let (this_step, this_suffix) = match keeps.right() {
            true => (Step::OuterThis, "-outer-this-join"),
            false => (Step::JoinThis, "-this-join"),
        };
        let (other_step, other_suffix) = match keeps.left() {
            true => (Step::OuterOther, "-outer-other-join"),
            false => (Step::JoinOther, "-other-join"),
        };
        let mut draw = |step, suffix: &str| {
            let generated = graph.names.node(step, None);
            let given = name.map(|name| format!("{name}{suffix}"));
            (given.unwrap_or_else(|| generated.clone()), generated)
        };
        let this_windowed = draw(Step::Windowed, "-this-windowed").0;
        let other_windowed = draw(Step::Windowed, "-other-windowed").0;
        let (this, this_generated) = draw(this_step, this_suffix);
        let (other, other_generated) = draw(other_step, other_suffix);
        let merge = draw(Step::Merge, "-merge").0;
        let of_store = |suffix: &str, generated: &str| match store {
            Some(store) => format!("{store}{suffix}-store"),
            None => format!("{generated}-store"),
        };
        let number = this_generated.get(this_step.prefix().len()..).unwrap_or_default();
        let shared_suffix = if keeps.right() {
            "-outer-shared-join"
        } else {
            "-left-shared-join"
        };
        JoinNames {
            this_store: of_store(this_suffix, &this_generated),
            other_store: of_store(other_suffix, &other_generated),
            shared_store: of_store(shared_suffix, &format!("KSTREAM-OUTERSHARED-{number}")),
            this_windowed,
            other_windowed,
            this,
            other,
            merge,
        }
    }
}

/// What the nodes are made of.
struct Parts<K, V, VO, V2> {
    keeps: Keeps,
    combine: Arc<Combine<K, V, VO, V2>>,
    windows: JoinWindows,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    other_value: SharedSerde<VO>,
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> Parts<K, V, VO, V2> {
    fn add(self, graph: &mut Graph, (left, right): (NodeId, NodeId), joined: &StreamJoined<K, V, VO>) -> NodeId {
        let names = JoinNames::draw(graph, self.keeps, joined.name.as_deref(), joined.store.as_deref());
        let [this_store, other_store, shared] =
            [&names.this_store, &names.other_store, &names.shared_store].map(|name| Arc::<str>::from(name.as_str()));
        // The mark keeps our entries of the metadata apart from Java's own.
        let clock = |store: &str| -> Arc<str> { format!("~{store}").into() };
        let (this_clock, other_clock, shared_clock) = (clock(&this_store), clock(&other_store), clock(&shared));
        let settings = (joined.logging.clone(), joined.in_memory);
        let retention_ms = self.windows.retention_ms();
        let this_definition = join_window_store(&this_store, &self.key, &self.value, retention_ms, &settings);
        let other_definition = join_window_store(&other_store, &self.key, &self.other_value, retention_ms, &settings);
        let this_windowed = graph.add(
            names.this_windowed,
            &[left],
            Processor::with_store(
                windowed::<K, V>(Arc::clone(&this_store), Arc::clone(&this_clock)),
                this_definition,
                Some(Arc::clone(&this_clock)),
            ),
        );
        let other_windowed = graph.add(
            names.other_windowed,
            &[right],
            Processor::with_store(
                windowed::<K, VO>(Arc::clone(&other_store), Arc::clone(&other_clock)),
                other_definition,
                Some(Arc::clone(&other_clock)),
            ),
        );
        let mut uses = (vec![Arc::clone(&other_store)], vec![Arc::clone(&this_store)]);
        let waiting = self.keeps.left().then(|| {
            uses.0.push(Arc::clone(&shared));
            uses.1.push(Arc::clone(&shared));
            graph.stores.push(unmatched_store(&shared, &self.key, &settings));
            Waiting {
                store: Arc::clone(&shared),
                clock: Arc::clone(&shared_clock),
                emit: self.emitter(&shared),
            }
        });
        let this_side = Side {
            side: JoinSide::Left,
            windows: self.windows,
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            other_store,
            other_clock,
            combine: Arc::clone(&self.combine),
            keeps: self.keeps.left(),
            waiting: waiting.clone(),
        };
        let turned = Arc::clone(&self.combine);
        let other_side = Side {
            side: JoinSide::Right,
            windows: self.windows,
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.other_value),
            other_store: Arc::clone(&this_store),
            other_clock: Arc::clone(&this_clock),
            combine: Arc::new(move |key: &K, right: Option<&VO>, left: Option<&V>| turned(key, left, right)),
            keeps: self.keeps.right(),
            waiting: waiting.clone(),
        };
        let shared_clock = waiting.is_some().then_some(shared_clock);
        let this = graph.add(
            names.this,
            &[this_windowed],
            Processor::timed(this_side.factory(), uses.0, shared_clock.clone()),
        );
        let other = graph.add(
            names.other,
            &[other_windowed],
            Processor::timed(other_side.factory(), uses.1, shared_clock),
        );
        let merge = factory::<K, V2, K, V2, _>(PassThrough);
        let merge = graph.add(names.merge, &[this, other], Processor::stateless(merge));
        let one_store = self.on_one_store(&this_store, &this_clock).map(|factory| OneStoreJoin {
            windowed: [this_windowed, other_windowed],
            joins: [this, other],
            store: this_store,
            shared: waiting.map(|waiting| waiting.store),
            factory,
        });
        if let Some(added) = graph.node_mut(merge) {
            // Null keys pass the repartitions of both sides, as in Java, and end in the side that has no use for them.
            added.flags.takes_null_keys = self.keeps.left();
            added.one_store_join = one_store.map(Arc::new);
        }
        merge
    }

    /// Joins a record that waited, which is known by its bytes, with nothing.
    fn emitter(&self, shared: &str) -> Arc<CombineBytes<K, V2>> {
        let (left, right) = (Arc::clone(&self.value), Arc::clone(&self.other_value));
        let (combine, topic) = (Arc::clone(&self.combine), shared.to_owned());
        Arc::new(move |key, side, bytes| {
            Ok(match side {
                JoinSide::Left => combine(key, Some(&left.deserialize(&topic, Some(bytes))?), None),
                JoinSide::Right => combine(key, None, Some(&right.deserialize(&topic, Some(bytes))?)),
            })
        })
    }

    /// The node that joins a stream with itself on one store; `None` when the two sides have different types, or a record
    /// might be without a partner because it does not meet itself.
    fn on_one_store(
        &self,
        store: &Arc<str>,
        clock: &Arc<str>,
    ) -> Option<Arc<dyn streams_core::processor::NodeFactory>> {
        let may_be_alone = self.keeps != Keeps::None && !self.windows.hold_equal_times();
        if may_be_alone || std::any::TypeId::of::<V>() != std::any::TypeId::of::<VO>() {
            return None;
        }
        let combine = Arc::clone(&self.combine);
        let combine: Arc<CombineSame<K, V, V2>> = Arc::new(move |key: &K, left: &V, right: &V| {
            let right = (right as &dyn Any).downcast_ref::<VO>();
            combine(key, Some(left), right)
        });
        let join = SelfJoin {
            windows: self.windows,
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            combine,
        };
        Some(join.factory())
    }
}
