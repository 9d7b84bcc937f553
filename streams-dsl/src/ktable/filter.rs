//! `filter` and `filter_not` of tables.

use std::sync::Arc;

use super::KTable;
use super::derived::Rules;
use crate::config::Materialized;
use crate::names::Step;

const RULES: Rules = Rules {
    step: Step::TableFilter,
    skip_absent: true,
};

impl<K: 'static, V: Clone + 'static> KTable<K, V> {
    /// The rows for which `keep` is true. A row that stops being kept is deleted downstream.
    ///
    /// `keep` is not asked about deletes. Where this table's rows are stored, no delete is sent for a row that was not
    /// there before; otherwise it is, as in Java.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.table::<String, i64>("balances").filter(|_account, cents| *cents < 0).to_stream().to("overdrawn"))
    ///     .pipe("balances", [("a", -5, at(0)), ("a", 5, at(1))])
    ///     .gives("overdrawn", [("a", Some(-5), at(0)), ("a", None, at(1))]);
    /// ```
    pub fn filter(&self, keep: impl Fn(&K, &V) -> bool + Send + Sync + 'static) -> KTable<K, V> {
        let materialized = Materialized::none(Arc::clone(&self.key), Arc::clone(&self.value));
        self.filter_with(keep, materialized)
    }

    /// As [`filter`](Self::filter); the result is stored if `materialized` has a name.
    pub fn filter_with(
        &self,
        keep: impl Fn(&K, &V) -> bool + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V> {
        let materialized = materialized.into();
        let value = materialized.value.resolve(Some(&self.value));
        self.derive(RULES, value, &materialized, move |key, value| {
            keep(key, value).then(|| value.clone())
        })
    }

    /// The rows for which `drop` is false.
    pub fn filter_not(&self, drop: impl Fn(&K, &V) -> bool + Send + Sync + 'static) -> KTable<K, V> {
        self.filter(move |key, value| !drop(key, value))
    }

    /// As [`filter_not`](Self::filter_not); the result is stored if `materialized` has a name.
    pub fn filter_not_with(
        &self,
        drop: impl Fn(&K, &V) -> bool + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<K, V> {
        self.filter_with(move |key, value| !drop(key, value), materialized)
    }
}
