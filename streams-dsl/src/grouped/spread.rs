//! `spread_over`: aggregation in two phases, so that one key can be worked on by several tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::serde::{Part, PartOfKey, PartOfValue, Parts, PartsList, SharedSerde};
use streams_core::{ProcessResult, Record};

use super::KGroupedStream;
use super::store::some_unless_null;
use crate::config::{Grouped, Materialized};
use crate::kstream::{KStream, Keys};
use crate::ktable::KTable;
use crate::names::Step;
use crate::node;
use crate::serdes::Chosen;

/// A grouped stream whose keys are spread: each is aggregated in parts, in several tasks, and the parts are merged.
pub struct SpreadKGroupedStream<K, V> {
    grouped: KGroupedStream<K, V>,
    parts: u32,
}

impl<K, V> Clone for SpreadKGroupedStream<K, V> {
    fn clone(&self) -> Self {
        SpreadKGroupedStream {
            grouped: self.grouped.clone(),
            parts: self.parts,
        }
    }
}

impl<K: Clone + 'static, V: 'static> KGroupedStream<K, V> {
    /// Spreads each key over so many parts, for streams in which a few keys have most of the records: a key's records are
    /// aggregated in parts, which lie in as many partitions as the repartition topic has for them, and the parts are merged
    /// to the aggregate. A part sends at most one update of a key for each commit (while the cache is on), so the merging
    /// task sees `parts` updates where it would have seen every record.
    ///
    /// A record's part is its offset modulo `parts`: the same at every replay, and even. The order among records of one key
    /// is kept within a part only, so the aggregate must not depend on it.
    ///
    /// It costs a repartition more: worth it for hot keys, and for no others. State and topics, for a store `NAME`:
    /// - `NAME-parts-repartition`: keys are the key's bytes and the part's number (4 bytes); values as they are;
    /// - store `NAME-parts` with its changelog: the same keys, an aggregate each;
    /// - `NAME-repartition`: keys as they are; values are the part's number (4 bytes), a 1 and the aggregate's bytes, or a 0;
    /// - store `NAME` with its changelog: keys as they are; values are all parts, each as number (4 bytes), length (4 bytes),
    ///   bytes. A row is as large as its parts together.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let clicks = b.stream::<String, i64>("clicks").group_by_key();
    ///     clicks.spread_over(8).count("clicks-by-page").to_stream().to("counts")
    /// })
    /// .pipe("clicks", [("home", 1, at(0)), ("home", 1, at(5)), ("home", 1, at(3))])
    /// .gives("counts", [("home", 1, at(0)), ("home", 2, at(5)), ("home", 3, at(5))]);
    /// ```
    ///
    /// Not in Java, where it is written by hand with a salted key.
    #[must_use]
    pub fn spread_over(&self, parts: u32) -> SpreadKGroupedStream<K, V> {
        if parts < 1 {
            self.stream
                .builder
                .with(|graph| graph.found("keys must be spread over at least 1 part"));
        }
        SpreadKGroupedStream {
            grouped: self.clone(),
            parts: parts.max(1),
        }
    }
}

impl<K: Clone + 'static, V: 'static> SpreadKGroupedStream<K, V> {
    /// Counts the records of each key. Records with a null key or value are dropped and counted.
    pub fn count(&self, materialized: impl Into<Materialized<K, i64>>) -> KTable<K, i64> {
        let add = |_: &K, _: &V, count: Option<i64>| Some(count.unwrap_or(0) + 1);
        self.aggregate_rows(add, |_, one, other| one + other, materialized.into())
    }

    /// Combines the values of each key: `combine` gets the key, a value and the combination so far. It also combines the
    /// parts, so it must be associative and commutative. Records with a null key or value are dropped and counted.
    pub fn reduce(
        &self,
        combine: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V>
    where
        V: Clone,
    {
        let materialized = materialized.into().or_value_serde(&self.grouped.value);
        let combine = Arc::new(combine);
        let merge = Arc::clone(&combine);
        let add = move |key: &K, value: &V, sum: Option<V>| {
            Some(match sum {
                Some(sum) => combine(key, value, sum),
                None => value.clone(),
            })
        };
        self.aggregate_rows(add, move |key, one, other| merge(key, &other, one), materialized)
    }

    /// Keeps an aggregate for each key: `add` adds a value to a part, at first to what `init` makes, and `merge` makes one
    /// aggregate of two parts; a null aggregate (`None` of an `Option`) removes its part. The result must not depend on
    /// the order of records, nor on how they are divided. Records with a null key or value are dropped and counted.
    ///
    /// The row's event time is the highest of its parts'.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let bids = b.stream::<String, i64>("bids").group_by_key().spread_over(2);
    ///     let best = bids.aggregate(|| i64::MIN, |_item, bid, best| best.max(*bid), |_item, one, other| one.max(other), "best-bids");
    ///     best.to_stream().to("best")
    /// })
    /// .pipe("bids", [("cup", 5, at(0)), ("cup", 3, at(1)), ("cup", 9, at(2))])
    /// .gives("best", [("cup", 5, at(0)), ("cup", 5, at(1)), ("cup", 9, at(2))]);
    /// ```
    pub fn aggregate<A: Clone + 'static>(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        merge: impl Fn(&K, A, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<K, A> {
        let materialized = materialized.into();
        let nulls = materialized.value.resolve(None);
        let add = move |key: &K, value: &V, part: Option<A>| {
            some_unless_null(&*nulls, add(key, value, part.unwrap_or_else(&init)))
        };
        self.aggregate_rows(add, merge, materialized)
    }

    fn aggregate_rows<A: Clone + 'static>(
        &self,
        add: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        merge: impl Fn(&K, A, A) -> A + Send + Sync + 'static,
        materialized: Materialized<K, A>,
    ) -> KTable<K, A> {
        let key = self.grouped.store_key(&materialized);
        let value = materialized.value.resolve(None);
        let builder = &self.grouped.stream.builder;
        let name = builder.with(|graph| {
            graph
                .names
                .store(Step::Aggregate.prefix(), materialized.name.as_deref())
        });
        let part_name = format!("{name}-parts");

        let part_key: SharedSerde<Part<K>> = Arc::new(PartOfKey(Arc::clone(&key)));
        let grouped = Grouped::with(Arc::clone(&part_key), Arc::clone(&self.grouped.value)).with_name(&part_name);
        let add = move |part: &Part<K>, value: &V, row: Option<A>| add(&part.of, value, row);
        let store = stored_as(part_name, part_key, Arc::clone(&value), &materialized);
        let parts = self.salted(&key).group_by_key_with(grouped).aggregate_opt(add, store);

        let updates = parts.to_stream().map(|part: &Part<K>, value: &Option<A>| {
            let update = Part {
                of: value.clone(),
                number: part.number,
            };
            (part.of.clone(), update)
        });
        let grouped = Grouped::with(Arc::clone(&key), PartOfValue(Arc::clone(&value))).with_name(&name);
        let list: SharedSerde<Parts<A>> = Arc::new(PartsList(Arc::clone(&value)));
        let store = stored_as(name, Arc::clone(&key), list, &materialized);
        let rows = updates.group_by_key_with(grouped).aggregate_opt(with_part, store);
        let total = move |key: &K, parts: &Parts<A>| {
            let parts = parts.0.values().cloned();
            parts.reduce(|one, other| merge(key, one, other))
        };
        rows.filter_map_values_with(total, value)
    }

    /// The records by parts of their keys. A null key is dropped and counted here, where all its parts would be null.
    fn salted(&self, key: &SharedSerde<K>) -> KStream<Part<K>, V> {
        let (parts, key) = (i64::from(self.parts), Arc::clone(key));
        let factory = node::factory::<K, V, Part<K>, V, _>(move |node| Salt {
            node,
            key: Arc::clone(&key),
            parts,
        });
        let stream = &self.grouped.stream;
        stream.step(
            Step::SelectKey,
            factory,
            Keys::Changed,
            Some(Arc::clone(&self.grouped.value)),
        )
    }
}

/// A store like the one that was asked for, for other rows.
fn stored_as<K, A, K2, A2>(
    name: String,
    key: SharedSerde<K2>,
    value: SharedSerde<A2>,
    like: &Materialized<K, A>,
) -> Materialized<K2, A2> {
    Materialized {
        name: Some(name),
        key: Some(key),
        value: Chosen::Given(value),
        explicit: true,
        store: like.store.clone(),
        retention: None,
        history: None,
    }
}

/// The parts after an update of one of them; none are no row.
fn with_part<K, A: Clone>(_: &K, update: &Part<Option<A>>, parts: Option<Parts<A>>) -> Option<Parts<A>> {
    let mut parts = parts.map_or_else(BTreeMap::new, |parts| parts.0);
    match &update.of {
        Some(value) => parts.insert(update.number, value.clone()),
        None => parts.remove(&update.number),
    };
    (!parts.is_empty()).then_some(Parts(parts))
}

struct Salt<K, V> {
    node: node::Parts<Part<K>, V>,
    key: SharedSerde<K>,
    parts: i64,
}

impl<K: Clone + 'static, V> Downstream<K, V> for Salt<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.key.is_null(record.key) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        // What a punctuation made has the offset -1.
        let number = cx.record_context().offset.rem_euclid(self.parts);
        let key = Part {
            of: record.key.clone(),
            number: u32::try_from(number).unwrap_or(0),
        };
        self.node.children.forward(cx, record.with_key(&key))
    }
}
