//! `drop_duplicates`: the first record of each key, or of each id.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, OperatorTime, TaskContext};
use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::stores::{Direction, ValueAndTimestamp, WindowEnds, WindowStore};
use streams_core::{ProcessResult, Record, Window};

use super::{KStream, Keys};
use crate::config::Materialized;
use crate::graph::Processor;
use crate::names::Step;
use crate::stores::{Shape, StateStore};
use crate::windows::millis;

/// How close two records are that count as one: less than `within` of event time apart, either way. A bare `Duration` is
/// the normal case.
///
/// ```
/// use streams_dsl::{DuplicatesWithin, HOUR, MINUTE};
/// let retries = DuplicatesWithin::of(MINUTE).grace(HOUR);
/// assert_eq!(retries, DuplicatesWithin::from(MINUTE).grace(HOUR));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicatesWithin {
    within_ms: i64,
    grace_ms: i64,
}

impl DuplicatesWithin {
    /// Less than `within` apart, in whole milliseconds. Records may come as late as that too.
    #[must_use]
    pub fn of(within: Duration) -> Self {
        DuplicatesWithin {
            within_ms: millis(within),
            grace_ms: millis(within),
        }
    }

    /// How late, by event time, records may come. Ids are remembered for `within` and this; a record that is later can't
    /// be told from a duplicate, and is dropped and counted. Default: `within`.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// How long an id is remembered.
    fn retention_ms(self) -> i64 {
        self.within_ms.saturating_add(self.grace_ms)
    }

    /// The event times (first, last; ms) of records that make one at this time a duplicate.
    fn around(self, timestamp_ms: i64) -> (i64, i64) {
        let reach = self.within_ms.saturating_sub(1);
        (timestamp_ms.saturating_sub(reach), timestamp_ms.saturating_add(reach))
    }
}

impl From<Duration> for DuplicatesWithin {
    fn from(within: Duration) -> Self {
        DuplicatesWithin::of(within)
    }
}

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Keeps the first record of each key and drops the others that are less than `within` of event time away from a
    /// record that was kept, before or after it.
    ///
    /// Records may come out of order: one is compared with what was kept, whatever the order. What is later than the grace
    /// behind the operator's stream time (the highest event time it has seen) is dropped and counted, because its
    /// duplicates may be forgotten; so what passes is never a duplicate. Duplicates are not counted as dropped. Null keys
    /// are dropped and counted. If keys may have changed, the stream goes through a repartition topic first.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("clicks").drop_duplicates(MINUTE, "seen").to("visits"))
    ///     .pipe("clicks", [("a", 1, at(0)), ("a", 2, at(59_999)), ("b", 3, at(7)), ("a", 4, at(60_000))])
    ///     .gives("visits", [("a", 1, at(0)), ("b", 3, at(7)), ("a", 4, at(60_000))]);
    /// ```
    ///
    /// The store is a window store of Java's format: changelog keys are the key's bytes, the event time (8 bytes) and four
    /// zeros, values one byte, 1. Rows live for `within` and the grace.
    ///
    /// For exactly-once. Under at-least-once a crash can come when the changelog has a record's key and the output does not have
    /// the record: it is read again then, and is taken for its own duplicate.
    ///
    /// Not in Java (KIP-655 proposes `distinct`).
    pub fn drop_duplicates(
        &self,
        within: impl Into<DuplicatesWithin>,
        materialized: impl Into<Materialized<K, bool>>,
    ) -> KStream<K, V>
    where
        K: DefaultSerde + Clone,
        V: DefaultSerde,
    {
        let mut materialized = materialized.into();
        materialized.key = materialized.key.or_else(|| self.key.clone());
        self.drop_duplicates_by(within, |key: &K, _| key.clone(), materialized)
    }

    /// As [`drop_duplicates`](Self::drop_duplicates), by an id that `id` makes of key and value. Ids are compared within a
    /// partition: records of one id must have one key. A null id is dropped and counted.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let payments = b.stream::<String, String>("payments");
    ///     payments.drop_duplicates_by(HOUR, |_account, payment| payment[..2].to_owned(), "payments-seen").to("once")
    /// })
    /// .pipe("payments", [("a", "p1 5 EUR", at(0)), ("a", "p2 5 EUR", at(1)), ("a", "p1 5 EUR again", at(2))])
    /// .gives("once", [("a", "p1 5 EUR", at(0)), ("a", "p2 5 EUR", at(1))]);
    /// ```
    pub fn drop_duplicates_by<I: DefaultSerde>(
        &self,
        within: impl Into<DuplicatesWithin>,
        id: impl Fn(&K, &V) -> I + Send + Sync + 'static,
        materialized: impl Into<Materialized<I, bool>>,
    ) -> KStream<K, V>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        let (within, materialized) = (within.into(), materialized.into());
        let store = self.builder.with(|graph| {
            if within.within_ms < 1 {
                graph.found("duplicates must be looked for within at least 1 ms");
            }
            let prefix = Step::DropDuplicates.prefix();
            graph.names.store(prefix, materialized.name.as_deref())
        });
        let key = self.key.clone().unwrap_or_else(K::shared);
        let value = self.value.clone().unwrap_or_else(V::shared);
        let stream = self.for_join(Some(&store), key, value);
        let parts = Ids {
            store: store.as_str().into(),
            clock: format!("~{store}").into(),
            serde: materialized.key.clone().unwrap_or_else(I::shared),
            within,
            id: Arc::new(id),
        };
        let shape = Shape::Window {
            ends: WindowEnds::Size(within.within_ms),
            retention_ms: within.retention_ms(),
            bucket_ms: None,
        };
        // Each record asks for a range of times, which a cache has to be written for.
        let materialized = materialized.caching(false);
        let times = (Arc::clone(&parts.serde), materialized.value.resolve(None));
        let definition = StateStore::of(&store, times.0, times.1, shape, &materialized).definition();
        let clock = Arc::clone(&parts.clock);
        let node = self.builder.with(|graph| {
            let name = graph.names.node(Step::DropDuplicates, None);
            let kind = Processor::with_store(parts.factory::<K, V>(), definition, [clock]);
            graph.add(name, &[stream.node], kind)
        });
        stream.at(node, Keys::Kept(stream.key.clone()), stream.value.clone())
    }
}

/// What the node is made of.
struct Ids<I, F> {
    store: Arc<str>,
    clock: Arc<str>,
    serde: SharedSerde<I>,
    within: DuplicatesWithin,
    id: Arc<F>,
}

impl<I: 'static, F> Ids<I, F> {
    fn factory<K: 'static, V: 'static>(self) -> Arc<dyn NodeFactory>
    where
        F: Fn(&K, &V) -> I + Send + Sync + 'static,
    {
        Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let store = builder.store::<WindowStore<I, bool>>(&self.store)?;
            let (time, retention_ms) = (builder.context().operator_time(&self.clock), self.within.retention_ms());
            store.keep_from(move |cx| Some(cx.observed(time).saturating_sub(retention_ms).saturating_add(1)));
            let node = DropDuplicates {
                name: builder.name(),
                children: builder.children::<K, V>()?,
                store,
                time,
                serde: Arc::clone(&self.serde),
                within: self.within,
                id: Arc::clone(&self.id),
            };
            Ok(AnyNode::new::<K, V>(Rc::new(node)))
        })
    }
}

struct DropDuplicates<K, V, I: 'static, F> {
    name: Arc<str>,
    children: Children<K, V>,
    /// The ids that were kept, by event time.
    store: Rc<WindowStore<I, bool>>,
    time: OperatorTime,
    serde: SharedSerde<I>,
    within: DuplicatesWithin,
    id: Arc<F>,
}

impl<K, V, I: 'static, F: Fn(&K, &V) -> I> Downstream<K, V> for DropDuplicates<K, V, I, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let Some(id) = cx.call_user(&self.name, || (self.id)(record.key, record.value))? else {
            return Ok(());
        };
        let time_ms = record.timestamp_ms;
        let is_null = self.serde.is_null(&id);
        // A null moves no time: it is as if it were not there.
        if is_null || time_ms < cx.observe(self.time, time_ms).saturating_sub(self.within.grace_ms) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let (from_ms, to_ms) = self.within.around(time_ms);
        let kept = self.store.fetch_key(cx, &id, from_ms, to_ms, Direction::Forward)?;
        if !kept.is_empty() {
            return Ok(());
        }
        let window = Window::of_size(time_ms, self.within.within_ms);
        self.store.update_window(cx, &id, window, record, |_, _| {
            Ok(Some(Some(ValueAndTimestamp {
                value: true,
                timestamp_ms: time_ms,
            })))
        })?;
        self.children.forward(cx, record)
    }
}
