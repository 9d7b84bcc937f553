//! `count`, plain and in windows.

use streams_core::Windowed;

use super::store::Names;
use super::{KGroupedStream, TimeWindowedKStream};
use crate::config::Materialized;
use crate::ktable::KTable;
use crate::names::Step;

pub(super) const COUNT: Names = Names {
    step: Step::Aggregate,
    burns_if_unnamed: true,
};

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Counts the records of each key. Records with a null key or value are dropped and counted as dropped.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("visits").group_by_key().count("visits-by-user").to_stream().to("counts"))
    ///     .pipe("visits", [("ann", 3, at(0)), ("ann", 4, at(1))])
    ///     .gives("counts", [("ann", 1, at(0)), ("ann", 2, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KGroupedStream.count`.
    pub fn count(&self, materialized: impl Into<Materialized<K, i64>>) -> KTable<K, i64> {
        self.aggregate_rows(COUNT, materialized.into(), |_, _, count| Some(count.unwrap_or(0) + 1))
    }
}

impl<K: Clone + 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// Counts the records of each key and window. Records with a null key are dropped; null values count, except in sliding
    /// windows, as in Java.
    ///
    /// Java counterpart: `TimeWindowedKStream.count`.
    pub fn count(&self, materialized: impl Into<Materialized<K, i64>>) -> KTable<Windowed<K>, i64> {
        self.aggregate_rows(COUNT, materialized.into(), |_, _, count| Some(count.unwrap_or(0) + 1))
    }
}
