//! `map_values` of tables.

use std::sync::Arc;

use streams_core::serde::{DefaultSerde, SharedSerde};

use super::KTable;
use super::derived::Rules;
use crate::config::Materialized;
use crate::names::Step;

const RULES: Rules = Rules {
    step: Step::TableMapValues,
    skip_absent: false,
};

impl<K: 'static, V: 'static> KTable<K, V> {
    /// Each row's value made another one. Deletes stay deletes, and a result that is null (`None` of an `Option`) is one.
    ///
    /// The result is not stored: a look-up (a join) computes it anew.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.table::<String, i64>("cents").map_values(|_account, cents| cents / 100).to_stream().to("euros"))
    ///     .pipe("cents", [("a", Some(250), at(0)), ("a", None, at(1))])
    ///     .gives("euros", [("a", Some(2), at(0)), ("a", None, at(1))]);
    /// ```
    pub fn map_values<V2: DefaultSerde + Clone>(
        &self,
        map: impl Fn(&K, &V) -> V2 + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        self.map_values_with(map, Materialized::unnamed())
    }

    /// As [`map_values`](Self::map_values); the result is stored if `materialized` has a name.
    pub fn map_values_with<V2: Clone + 'static>(
        &self,
        map: impl Fn(&K, &V) -> V2 + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2> {
        let materialized = materialized.into();
        let serde = materialized.value.resolve(None);
        let nulls = Arc::clone(&serde);
        self.derive(RULES, serde, &materialized, move |key, value| {
            let mapped = map(key, value);
            (!nulls.is_null(&mapped)).then_some(mapped)
        })
    }

    /// Each row's value made another one, or with `None` no row.
    pub fn filter_map_values<V2: DefaultSerde + Clone>(
        &self,
        map: impl Fn(&K, &V) -> Option<V2> + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        let materialized = Materialized::unnamed();
        self.derive(RULES, materialized.value.resolve(None), &materialized, map)
    }

    /// As [`filter_map_values`](Self::filter_map_values), of values by this serde.
    pub(crate) fn filter_map_values_with<V2: Clone + 'static>(
        &self,
        map: impl Fn(&K, &V) -> Option<V2> + Send + Sync + 'static,
        value: SharedSerde<V2>,
    ) -> KTable<K, V2> {
        let materialized = Materialized::none(Arc::clone(&self.key), Arc::clone(&value));
        self.derive(RULES, value, &materialized, map)
    }
}
