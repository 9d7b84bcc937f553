//! `count_windowed`: windows of so many records a key.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::{Part, PartOfValue, SharedSerde};
use streams_core::stores::{KeyValueStore, Update, ValueAndTimestamp};
use streams_core::{ProcessResult, Record};

use super::KGroupedStream;
use super::store::{Names, Seed, some_unless_null};
use crate::config::Materialized;
use crate::kstream::KStream;
use crate::names::Step;
use crate::serdes::Chosen;
use crate::stores::Shape;

const COUNT_WINDOW: Names = Names {
    step: Step::CountWindow,
    burns_if_unnamed: false,
};

/// A stream grouped by its keys and by windows of so many records.
pub struct CountWindowedKStream<K, V> {
    grouped: KGroupedStream<K, V>,
    size: u32,
}

impl<K, V> Clone for CountWindowedKStream<K, V> {
    fn clone(&self) -> Self {
        CountWindowedKStream {
            grouped: self.grouped.clone(),
            size: self.size,
        }
    }
}

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Groups by windows of `records` records of a key, in the order in which they are processed, whatever their event
    /// times. Each window gives one result, when it is full; then the next one begins. One that is never full gives none.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let samples = b.stream::<String, i64>("samples").group_by_key();
    ///     samples.count_windowed(3).reduce(|_meter, value, sum| sum + value, "sums-of-three").to("sums")
    /// })
    /// .pipe("samples", [("a", 1, at(0)), ("a", 2, at(9)), ("b", 5, at(1)), ("a", 3, at(4)), ("a", 7, at(5))])
    /// .gives("sums", [("a", 6, at(9))]);
    /// ```
    ///
    /// Not in Java.
    #[must_use]
    pub fn count_windowed(&self, records: u32) -> CountWindowedKStream<K, V> {
        if records < 1 {
            let sentence = "a window must have at least 1 record";
            self.stream.builder.with(|graph| graph.found(sentence));
        }
        CountWindowedKStream {
            grouped: self.clone(),
            size: records.max(1),
        }
    }
}

impl<K: 'static, V: 'static> CountWindowedKStream<K, V> {
    /// Combines the values of each window, as [`KGroupedStream::reduce`] does. Records with a null key or value are dropped
    /// and counted, and are in no window.
    pub fn reduce(
        &self,
        combine: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KStream<K, V>
    where
        V: Clone,
    {
        let add = move |key: &K, value: &V, sum: Option<V>| match sum {
            Some(sum) => combine(key, value, sum),
            None => value.clone(),
        };
        self.aggregate_rows(add, materialized.into().or_value_serde(&self.grouped.value))
    }

    /// Aggregates each window: `add` gets the key, the value and the aggregate so far, at first what `init` makes. Records
    /// with a null key or value are dropped and counted, and are in no window.
    ///
    /// The results are a stream: the key, the aggregate of a full window, the highest event time of its records, and the
    /// headers of its last one. The store has the window that each key fills: in the changelog, behind the key's bytes, the
    /// number of its records (4 bytes, big-endian), a 1 and the aggregate's bytes, or a 0 if that is null; a full window
    /// leaves a tombstone.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let words = b.stream::<String, String>("words").group_by_key();
    ///     let pairs = words.count_windowed(2).aggregate(String::new, |_, word, line| line + word, "pairs");
    ///     pairs.to("lines")
    /// })
    /// .pipe("words", [("k", "a", at(0)), ("k", "b", at(1)), ("k", "c", at(2)), ("k", "d", at(3))])
    /// .gives("lines", [("k", "ab", at(1)), ("k", "cd", at(3))]);
    /// ```
    pub fn aggregate<A: 'static>(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KStream<K, A> {
        let add = move |key: &K, value: &V, row: Option<A>| add(key, value, row.unwrap_or_else(&init));
        self.aggregate_rows(add, materialized.into())
    }

    fn aggregate_rows<A: 'static>(
        &self,
        add: impl Fn(&K, &V, Option<A>) -> A + Send + Sync + 'static,
        materialized: Materialized<K, A>,
    ) -> KStream<K, A> {
        let value = materialized.value.resolve(None);
        let row: SharedSerde<Part<Option<A>>> = Arc::new(PartOfValue(Arc::clone(&value)));
        let rows = Materialized {
            name: materialized.name,
            key: materialized.key,
            value: Chosen::Given(Arc::clone(&row)),
            explicit: materialized.explicit,
            store: materialized.store,
            retention: None,
            history: None,
        };
        let (size, input, nulls) = (self.size, Arc::clone(&self.grouped.value), Arc::clone(&value));
        let made = |seed: Seed| {
            Fill {
                size,
                input,
                nulls,
                add: Arc::new(add),
            }
            .factory(seed)
        };
        let added = self
            .grouped
            .add(COUNT_WINDOW, &rows, row, (Shape::KeyValue, false), made);
        KStream {
            builder: self.grouped.stream.builder.clone(),
            node: added.node,
            key: Some(self.grouped.store_key(&rows)),
            value: Some(value),
            sources: added.sources,
            key_changed: false,
        }
    }
}

/// What the node is made of.
struct Fill<V, A, F> {
    size: u32,
    input: SharedSerde<V>,
    nulls: SharedSerde<A>,
    add: Arc<F>,
}

impl<V: 'static, A: 'static, F> Fill<V, A, F> {
    fn factory<K: 'static>(self, seed: Seed) -> Arc<dyn NodeFactory>
    where
        F: Fn(&K, &V, Option<A>) -> A + Send + Sync + 'static,
    {
        Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let node = CountWindow {
                name: builder.name(),
                children: builder.children::<K, A>()?,
                store: builder.store::<KeyValueStore<K, Part<Option<A>>>>(&seed.store)?,
                size: self.size,
                input: Arc::clone(&self.input),
                nulls: Arc::clone(&self.nulls),
                add: Arc::clone(&self.add),
            };
            Ok(AnyNode::new::<K, V>(Rc::new(node)))
        })
    }
}

struct CountWindow<K: 'static, V, A: 'static, F> {
    name: Arc<str>,
    children: Children<K, A>,
    /// How many records each key's window has, and what they are together.
    store: Rc<KeyValueStore<K, Part<Option<A>>>>,
    size: u32,
    input: SharedSerde<V>,
    nulls: SharedSerde<A>,
    add: Arc<F>,
}

impl<K: 'static, V: 'static, A: 'static, F> Downstream<K, V> for CountWindow<K, V, A, F>
where
    F: Fn(&K, &V, Option<A>) -> A,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.input.is_null(record.value) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let mut full = None;
        let update = self.store.update(cx, record.key, record, |cx, before| {
            let (count, aggregate, before_ms) = match before {
                Some(row) => (row.value.number, row.value.of, row.timestamp_ms),
                None => (0, None, -1),
            };
            let timestamp_ms = before_ms.max(record.timestamp_ms);
            let added = cx.call_user(&self.name, || (self.add)(record.key, record.value, aggregate))?;
            let Some(added) = added else { return Ok(None) };
            let number = count.saturating_add(1);
            if number >= self.size {
                full = Some((added, timestamp_ms));
                return Ok(Some(None));
            }
            let of = some_unless_null(&*self.nulls, added);
            let value = Part { of, number };
            Ok(Some(Some(ValueAndTimestamp { value, timestamp_ms })))
        })?;
        match (update, full) {
            (Update::NullKey, _) => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
            // The result is known now, whenever the row is written.
            (Update::Changed(..) | Update::Deferred, Some((aggregate, time_ms))) => self
                .children
                .forward(cx, record.with_value(&aggregate).with_timestamp(time_ms)),
            (Update::Changed(..) | Update::Deferred | Update::Skipped, _) => Ok(()),
        }
    }
}
