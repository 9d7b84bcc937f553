//! `reduce`, plain and in windows.

use streams_core::Windowed;
use streams_core::serde::SharedSerde;

use super::store::{Names, some_unless_null};
use super::{KGroupedStream, TimeWindowedKStream};
use crate::config::Materialized;
use crate::ktable::KTable;
use crate::names::Step;

pub(super) const REDUCE: Names = Names {
    step: Step::Reduce,
    burns_if_unnamed: false,
};

impl<K: 'static, V: Clone + 'static> KGroupedStream<K, V> {
    /// Combines the values of each key: the first is kept as it is, then `combine` gets the key, the new value and the
    /// result so far. A null result (`None` of an `Option`) deletes the row. Records with a null key or value are dropped
    /// and counted.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("bids").group_by_key().reduce(|_item, bid, best| best.max(*bid), "best-bids").to_stream().to("out"))
    ///     .pipe("bids", [("cup", 5, at(0)), ("cup", 3, at(1))])
    ///     .gives("out", [("cup", 5, at(0)), ("cup", 5, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KGroupedStream.reduce`.
    pub fn reduce(
        &self,
        combine: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V> {
        let materialized = materialized.into().or_value_serde(&self.value);
        let combine = reducer(combine, materialized.value.resolve(None));
        self.aggregate_rows(REDUCE, materialized, combine)
    }
}

impl<K: Clone + 'static, V: Clone + 'static> TimeWindowedKStream<K, V> {
    /// Combines the values of each key and window, as [`KGroupedStream::reduce`] does. Records with a null key are
    /// dropped and counted.
    ///
    /// Java counterpart: `TimeWindowedKStream.reduce`.
    pub fn reduce(
        &self,
        combine: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<Windowed<K>, V> {
        let materialized = materialized.into().or_value_serde(&self.grouped.value);
        let combine = reducer(combine, materialized.value.resolve(None));
        self.aggregate_rows(REDUCE, materialized, combine)
    }
}

fn reducer<K, V: Clone + 'static>(
    combine: impl Fn(&K, &V, V) -> V,
    serde: SharedSerde<V>,
) -> impl Fn(&K, &V, Option<V>) -> Option<V> {
    move |key, value, row| {
        let reduced = match row {
            Some(row) => combine(key, value, row),
            None => value.clone(),
        };
        some_unless_null(&*serde, reduced)
    }
}
