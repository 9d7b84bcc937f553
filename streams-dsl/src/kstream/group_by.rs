//! `group_by_key` and `group_by`.

use std::sync::Arc;

use streams_core::serde::DefaultSerde;

use super::select_key::select_key_factory;
use super::{KStream, Keys};
use crate::config::Grouped;
use crate::grouped::KGroupedStream;
use crate::names::Step;

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Groups the records by their keys, to be counted, reduced or aggregated. If keys may have changed since the stream
    /// was read, the aggregation sends it through a repartition topic first.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("in").group_by_key().count("counts").to_stream().to("out"))
    ///     .pipe("in", [("a", 7, at(0)), ("a", 8, at(1))])
    ///     .gives("out", [("a", 1, at(0)), ("a", 2, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KStream.groupByKey`.
    pub fn group_by_key(&self) -> KGroupedStream<K, V>
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.group_by_key_with(Grouped::default())
    }

    /// As [`group_by_key`](Self::group_by_key), in a given way.
    pub fn group_by_key_with(&self, grouped: Grouped<K, V>) -> KGroupedStream<K, V> {
        KGroupedStream {
            key: grouped.key.resolve(self.key.as_ref()),
            value: grouped.value.resolve(self.value.as_ref()),
            stream: self.clone(),
            name: grouped.name,
            repartition: Arc::default(),
        }
    }

    /// Groups the records by the key that `select` makes. The aggregation sends them through a repartition topic.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("visits").group_by(|_user, page| *page).count("visits-by-page").to_stream().to("out"))
    ///     .pipe("visits", [("ann", 3, at(0)), ("bob", 3, at(1))])
    ///     .gives("out", [(3, 1, at(0)), (3, 2, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KStream.groupBy`.
    pub fn group_by<K2: DefaultSerde>(
        &self,
        select: impl Fn(&K, &V) -> K2 + Send + Sync + 'static,
    ) -> KGroupedStream<K2, V>
    where
        V: DefaultSerde,
    {
        self.group_by_with(select, Grouped::default())
    }

    /// As [`group_by`](Self::group_by), in a given way; the name is that of the key-selecting node too.
    pub fn group_by_with<K2: 'static>(
        &self,
        select: impl Fn(&K, &V) -> K2 + Send + Sync + 'static,
        grouped: Grouped<K2, V>,
    ) -> KGroupedStream<K2, V> {
        let selected = self.step(
            Step::SelectKey,
            select_key_factory(select),
            Keys::Changed,
            self.value.clone(),
        );
        let selected = match &grouped.name {
            Some(name) => selected.named(name),
            None => selected,
        };
        selected.group_by_key_with(grouped)
    }
}
