//! Joins of two tables by a foreign key (KIP-213): `join_foreign_key`, `left_join_foreign_key`.
//!
//! A change of a left row is sent to the partition of its foreign key, where it is stored as a subscription and answered
//! with the foreign row; a change of a foreign row is told to all of its subscribers. Answers go back to the left row's
//! partition, and count only if the row is still the one that asked.

mod build;
mod foreign_table;
mod receive;
mod resolve;
mod send;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use streams_core::processor::NodeBuilder;
use streams_core::serde::DefaultSerde;
use streams_core::stores::KeyValueStore;

use super::KTable;
use crate::config::{Materialized, TableJoined};

/// Subscriptions by combined key, as bytes.
type Subscriptions = KeyValueStore<Vec<u8>, Vec<u8>>;

/// The names that serdes are told instead of a topic's, as in Java (`decoratePseudoTopic`): a schema registry keeps
/// what is written here apart from what is on the topic itself.
struct Topics {
    primary_key: String,
    foreign_key: String,
    value_hash: String,
}

impl Topics {
    fn of(builder: &mut NodeBuilder<'_>, registration: &str) -> Self {
        let topic = builder.context().topics().internal(registration);
        Topics {
            primary_key: format!("{topic}-pk"),
            foreign_key: format!("{topic}-fk"),
            value_hash: format!("{topic}-vh"),
        }
    }
}

impl<K: 'static, V: Clone + 'static> KTable<K, V> {
    /// Joins each row with the row of another table whose key stands in this one: `foreign_key` finds it (`None` = there
    /// is none, and so no result), and many rows may have the same one. An update of either side updates the result, a
    /// delete of either side deletes it.
    ///
    /// Both tables store their rows. They need not have equal partition counts: rows are sent to the partition of their
    /// foreign key through a topic `…-subscription-registration-…`, and answers come back through another one. Between
    /// the two ways there is no order, so results that were right only for a moment may be left out; the last one is
    /// always told. The result's event time is the later one of the two rows for an update of this table, and the foreign
    /// row's for an update of the other. A null result (`None` of an `Option`) deletes.
    ///
    /// Counted as dropped: rows without a foreign key, answers to rows that have changed meanwhile, updates of a
    /// versioned table that are older than its newest version. A foreign value that is written with no bytes at all (an
    /// empty string) is taken as absent, as in Java: the format can't tell them apart. Unlike Java, the delete of a
    /// foreign row that is not there tells nobody.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (orders, customers) = (b.table::<String, String>("orders"), b.table::<String, String>("customers"));
    ///     // An order's value is the id of its customer.
    ///     let named = orders.join_foreign_key(&customers, |_order, id| Some(id.clone()), |_order, id, name| format!("{id}: {name}"));
    ///     named.to_stream().to("named-orders")
    /// })
    /// .pipe("customers", [("c7", Some("Ann"), at(2))])
    /// .pipe("orders", [("o1", "c7", at(1)), ("o2", "c8", at(3))])
    /// .pipe("customers", [("c7", Some("Anne"), at(4)), ("c7", None, at(5))])
    /// .gives("named-orders", [("o1", Some("c7: Ann"), at(2)), ("o1", Some("c7: Anne"), at(4)), ("o1", None, at(5))]);
    /// ```
    ///
    /// Java counterpart: `KTable.join` with a foreign-key extractor (KIP-213).
    pub fn join_foreign_key<KO: 'static, VO: Clone + 'static, V2: DefaultSerde + Clone>(
        &self,
        other: &KTable<KO, VO>,
        foreign_key: impl Fn(&K, &V) -> Option<KO> + Send + Sync + 'static,
        join: impl Fn(&K, &V, &VO) -> V2 + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        self.join_foreign_key_with(
            other,
            foreign_key,
            join,
            TableJoined::default(),
            Materialized::unnamed(),
        )
    }

    /// As [`join_foreign_key`](Self::join_foreign_key), with names and partitioners; the result is stored if
    /// `materialized` has a name.
    pub fn join_foreign_key_with<KO: 'static, VO: Clone + 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<KO, VO>,
        foreign_key: impl Fn(&K, &V) -> Option<KO> + Send + Sync + 'static,
        join: impl Fn(&K, &V, &VO) -> V2 + Send + Sync + 'static,
        joined: TableJoined<K, KO>,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2> {
        let materialized = materialized.into();
        // An inner join has no result without a foreign row, so the node never asks for one.
        let join = move |key: &K, left: &V, right: Option<&VO>| right.map(|right| join(key, left, right));
        let (extract, combine) = (Arc::new(foreign_key), Arc::new(join));
        self.add_foreign_join(other, extract, combine, false, joined, materialized)
    }

    /// As [`join_foreign_key`](Self::join_foreign_key), but rows whose foreign row is missing, and those without a
    /// foreign key (KIP-962), are joined with `None`.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (orders, customers) = (b.table::<String, String>("orders"), b.table::<String, String>("customers"));
    ///     let id = |_: &String, id: &String| (!id.is_empty()).then(|| id.clone());
    ///     let named = orders.left_join_foreign_key(&customers, id, |_, id, name| format!("{id}: {name:?}"));
    ///     named.to_stream().to("named-orders")
    /// })
    /// .pipe("orders", [("o1", "", at(1)), ("o1", "c7", at(2))])
    /// .pipe("customers", [("c7", "Ann", at(3))])
    /// .gives("named-orders", [("o1", ": None", at(1)), ("o1", "c7: None", at(2)), ("o1", "c7: Some(\"Ann\")", at(3))]);
    /// ```
    ///
    /// Java counterpart: `KTable.leftJoin` with a foreign-key extractor.
    pub fn left_join_foreign_key<KO: 'static, VO: Clone + 'static, V2: DefaultSerde + Clone>(
        &self,
        other: &KTable<KO, VO>,
        foreign_key: impl Fn(&K, &V) -> Option<KO> + Send + Sync + 'static,
        join: impl Fn(&K, &V, Option<&VO>) -> V2 + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        self.left_join_foreign_key_with(
            other,
            foreign_key,
            join,
            TableJoined::default(),
            Materialized::unnamed(),
        )
    }

    /// As [`left_join_foreign_key`](Self::left_join_foreign_key), with names and partitioners; the result is stored if
    /// `materialized` has a name.
    pub fn left_join_foreign_key_with<KO: 'static, VO: Clone + 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<KO, VO>,
        foreign_key: impl Fn(&K, &V) -> Option<KO> + Send + Sync + 'static,
        join: impl Fn(&K, &V, Option<&VO>) -> V2 + Send + Sync + 'static,
        joined: TableJoined<K, KO>,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2> {
        let materialized = materialized.into();
        let join = move |key: &K, left: &V, right: Option<&VO>| Some(join(key, left, right));
        let (extract, combine) = (Arc::new(foreign_key), Arc::new(join));
        self.add_foreign_join(other, extract, combine, true, joined, materialized)
    }
}
