//! Joins of two tables by their keys.

use std::sync::Arc;

use streams_core::processor::NodeFactory;
use streams_core::serde::DefaultSerde;

use super::join_node::{Combine, JoinedView, side};
use super::source::TableFlags;
use super::view::View;
use super::{AskOld, KTable, merge};
use crate::config::Materialized;
use crate::graph::{Companion, Processor};
use crate::names::Step;
use crate::stores::{Shape, StateStore};
use crate::windows::Closing;

/// Which side a result needs.
#[derive(Clone, Copy)]
struct Needs {
    left: bool,
    right: bool,
}

impl<K: 'static, V: Clone + 'static> KTable<K, V> {
    /// The rows of both tables that have the same key; an update of either side updates the result, and a delete of
    /// either side deletes it. The result's event time is the later one of the two rows.
    ///
    /// Both tables store their rows, and must have equal partition counts. A null result (`None` of an `Option`) deletes.
    /// Null keys are dropped and counted. The result is not stored: a look-up (another join) computes it anew. A delete
    /// may be sent for a row that never was, as in Java.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (stock, prices) = (b.table::<String, i64>("stock"), b.table::<String, i64>("prices"));
    ///     stock.join(&prices, |_item, count, price| count * price).to_stream().to("worth")
    /// })
    /// .pipe("stock", [("tea", Some(2), at(5))])
    /// .pipe("prices", [("tea", Some(3), at(1)), ("ink", Some(9), at(6)), ("tea", None, at(7))])
    /// .gives("worth", [("tea", Some(6), at(5)), ("tea", None, at(7))]);
    /// ```
    ///
    /// Java counterpart: `KTable.join`.
    pub fn join<VO: 'static, V2: DefaultSerde + Clone>(
        &self,
        other: &KTable<K, VO>,
        join: impl Fn(&K, &V, &VO) -> V2 + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        self.join_with(other, join, Materialized::unnamed())
    }

    /// As [`join`](Self::join); the result is stored if `materialized` has a name or was
    /// made with serdes, then under a generated name.
    pub fn join_with<VO: 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<K, VO>,
        join: impl Fn(&K, &V, &VO) -> V2 + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2> {
        let needs = Needs {
            left: true,
            right: true,
        };
        let join = move |key: &K, left: Option<&V>, right: Option<&VO>| Some(join(key, left?, right?));
        self.add_join(other, needs, join, materialized.into())
    }

    /// As [`join`](Self::join), but rows without a partner in the other table are joined with `None`.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (stock, prices) = (b.table::<String, i64>("stock"), b.table::<String, i64>("prices"));
    ///     stock.left_join(&prices, |_item, count, price| count * price.unwrap_or(&1)).to_stream().to("worth")
    /// })
    /// .pipe("stock", [("tea", Some(2), at(5))])
    /// .pipe("prices", [("tea", Some(3), at(6)), ("ink", Some(9), at(7))])
    /// .gives("worth", [("tea", Some(2), at(5)), ("tea", Some(6), at(6))]);
    /// ```
    ///
    /// Java counterpart: `KTable.leftJoin`.
    pub fn left_join<VO: 'static, V2: DefaultSerde + Clone>(
        &self,
        other: &KTable<K, VO>,
        join: impl Fn(&K, &V, Option<&VO>) -> V2 + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        self.left_join_with(other, join, Materialized::unnamed())
    }

    /// As [`left_join`](Self::left_join); the result is stored if `materialized` has a name or was
    /// made with serdes, then under a generated name.
    pub fn left_join_with<VO: 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<K, VO>,
        join: impl Fn(&K, &V, Option<&VO>) -> V2 + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2> {
        let needs = Needs {
            left: true,
            right: false,
        };
        let join = move |key: &K, left: Option<&V>, right: Option<&VO>| Some(join(key, left?, right));
        self.add_join(other, needs, join, materialized.into())
    }

    /// As [`join`](Self::join), but rows of either table without a partner are joined with `None`; never both are.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (eu, us) = (b.table::<String, i64>("eu"), b.table::<String, i64>("us"));
    ///     eu.outer_join(&us, |_item, eu, us| eu.unwrap_or(&0) + us.unwrap_or(&0)).to_stream().to("all")
    /// })
    /// .pipe("us", [("tea", Some(2), at(5))])
    /// .pipe("eu", [("tea", Some(3), at(1))])
    /// .pipe("us", [("tea", None::<i64>, at(6))])
    /// .gives("all", [("tea", Some(2), at(5)), ("tea", Some(5), at(5)), ("tea", Some(3), at(6))]);
    /// ```
    ///
    /// Java counterpart: `KTable.outerJoin`.
    pub fn outer_join<VO: 'static, V2: DefaultSerde + Clone>(
        &self,
        other: &KTable<K, VO>,
        join: impl Fn(&K, Option<&V>, Option<&VO>) -> V2 + Send + Sync + 'static,
    ) -> KTable<K, V2> {
        self.outer_join_with(other, join, Materialized::unnamed())
    }

    /// As [`outer_join`](Self::outer_join); the result is stored if `materialized` has a name or was
    /// made with serdes, then under a generated name.
    pub fn outer_join_with<VO: 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<K, VO>,
        join: impl Fn(&K, Option<&V>, Option<&VO>) -> V2 + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V2>>,
    ) -> KTable<K, V2> {
        let needs = Needs {
            left: false,
            right: false,
        };
        let join = move |key: &K, left: Option<&V>, right: Option<&VO>| {
            (left.is_some() || right.is_some()).then(|| join(key, left, right))
        };
        self.add_join(other, needs, join, materialized.into())
    }

    /// Adds the two sides and the merge of their results, numbers in Java's order (`KTableImpl.doJoin`).
    fn add_join<VO: 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<K, VO>,
        needs: Needs,
        join: impl Fn(&K, Option<&V>, Option<&VO>) -> Option<V2> + Send + Sync + 'static,
        materialized: Materialized<K, V2>,
    ) -> KTable<K, V2> {
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&self.key));
        let value = materialized.value.resolve(None);
        let nulls = Arc::clone(&value);
        let join: Arc<Combine<K, V, VO, V2>> =
            Arc::new(move |key, left, right| join(key, left, right).filter(|result| !nulls.is_null(result)));
        let turned = Arc::clone(&join);
        let turned: Arc<Combine<K, VO, V, V2>> = Arc::new(move |key, right, left| turned(key, left, right));
        let flags = Arc::new(TableFlags::default());
        let this_side = side(
            &self.key,
            &other.view,
            needs.right,
            Arc::clone(&join),
            Arc::clone(&flags),
        );
        let other_side = side(&other.key, &self.view, needs.left, turned, Arc::clone(&flags));
        // Java stores a join's result whenever a `Materialized` is given, under a generated name if it has none.
        let stored = materialized.name.clone().or_else(|| {
            let explicit = materialized.explicit;
            explicit.then(|| {
                self.builder
                    .with(|graph| graph.names.store(Step::TableMerge.prefix(), None))
            })
        });
        let merge = merge::factory::<K, V2>(stored.as_deref().map(Arc::from), Arc::clone(&flags));
        let mut sources = self.sources.clone();
        sources.extend(other.sources.iter().filter(|source| !self.sources.contains(source)));
        let same_builder = self.builder.same_as(&other.builder);
        let node = self.builder.with(|graph| {
            if !same_builder {
                graph.found("tables of two builders can't be joined");
            }
            // A node of another builder means nothing here; the build fails anyway.
            let other_node = if same_builder { other.node } else { self.node };
            // What an update was before must be known where a result can vanish that never was.
            if !needs.right {
                (self.ask_old)(graph, true);
            }
            if !needs.left && same_builder {
                (other.ask_old)(graph, true);
            }
            for stored_by in self.view.stored_by.iter().chain(&other.view.stored_by) {
                graph.materialize(*stored_by);
            }
            let name = graph.names.node(Step::TableMerge, None);
            let mut add_side = |step, parent, factory: Arc<dyn NodeFactory>, stores: &[Arc<str>]| {
                let name = graph.names.node(step, None);
                graph.add(name, &[parent], Processor::using(factory, stores.to_vec()))
            };
            let this = add_side(Step::TableJoinThis, self.node, this_side, &other.view.stores);
            let that = add_side(Step::TableJoinOther, other_node, other_side, &self.view.stores);
            let kind = match &stored {
                None => Processor::stateless(merge),
                Some(store) => {
                    let store = StateStore::of(
                        store,
                        Arc::clone(&key),
                        Arc::clone(&value),
                        Shape::KeyValue,
                        &materialized,
                    );
                    Processor::with_store(merge, store.definition(), None)
                }
            };
            graph.copartitions.push(sources.clone());
            let node = graph.add(name, &[this, that], kind);
            if let Some(added) = graph.node_mut(node) {
                added.companions = vec![
                    (Companion::Node(this), "-join-this".to_owned()),
                    (Companion::Node(that), "-join-other".to_owned()),
                ];
            }
            node
        });
        let (left_old, right_old) = (Arc::clone(&self.ask_old), Arc::clone(&other.ask_old));
        let ask_old: AskOld = Arc::new(move |graph, _| {
            left_old(graph, true);
            right_old(graph, true);
            flags.send_old();
            true
        });
        let view = match stored {
            Some(store) => View::of_store(node, &store),
            None => JoinedView::of(&self.view, &other.view, join),
        };
        KTable {
            builder: self.builder.clone(),
            node,
            key,
            value,
            sources,
            view,
            ask_old,
            closing: Closing::later(self.closing, other.closing),
        }
    }
}
