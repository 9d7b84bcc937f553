//! `aggregate_opt`: aggregates that may vanish, in windows, in sessions and of grouped tables.

use streams_core::Windowed;

use super::aggregate::AGGREGATE;
use super::session_aggregate::Functions;
use super::{KGroupedTable, SessionWindowedKStream, TimeWindowedKStream};
use crate::config::Materialized;
use crate::ktable::KTable;

impl<K: Clone + 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// As [`aggregate`](Self::aggregate), for aggregates that may vanish: `add` gets the aggregate if there is one, and
    /// with `None` deletes the row.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let grouped = b.stream::<String, i64>("in").group_by_key().windowed_by(TimeWindows::of(HOUR));
    ///     // A zero forgets what was.
    ///     grouped.aggregate_opt(|_, n, sum: Option<i64>| (*n != 0).then(|| sum.unwrap_or(0) + n), "sums").to_stream().to("out")
    /// })
    /// .pipe("in", [("a", 1, at(0)), ("a", 0, at(1)), ("a", 5, at(2))])
    /// .gives("out", [(window("a", 0), Some(1), at(0)), (window("a", 0), None, at(1)), (window("a", 0), Some(5), at(2))]);
    /// ```
    ///
    /// Java counterpart: an aggregator of `TimeWindowedKStream.aggregate` that returns null.
    pub fn aggregate_opt<A: 'static>(
        &self,
        add: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<Windowed<K>, A> {
        self.aggregate_rows(AGGREGATE, materialized.into(), add)
    }
}

impl<K: Clone + 'static, V: 'static> SessionWindowedKStream<K, V> {
    /// As [`aggregate`](Self::aggregate), for aggregates that may vanish: `add` gets the session's aggregate if there is one,
    /// `merge` two of them when sessions become one, and with `None` either deletes the session.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let visits = b.stream::<String, i64>("in").group_by_key().windowed_by(SessionWindows::of(MINUTE));
    ///     // A zero ends a visit without a result.
    ///     let add = |_: &String, n: &i64, sum: Option<i64>| (*n != 0).then(|| sum.unwrap_or(0) + n);
    ///     visits.aggregate_opt(add, |_, one, other| Some(one + other), "visits").to_stream().to("out")
    /// })
    /// .pipe("in", [("a", 1, at(0)), ("a", 0, at(10))])
    /// .gives("out", [(session("a", 0, 0), Some(1), at(0)), (session("a", 0, 0), None, at(0)), (session("a", 0, 10), None, at(10))]);
    /// ```
    ///
    /// Java counterpart: aggregators of `SessionWindowedKStream.aggregate` that return null.
    pub fn aggregate_opt<A: 'static>(
        &self,
        add: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        merge: impl Fn(&K, A, A) -> Option<A> + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<Windowed<K>, A> {
        let functions = Functions {
            add,
            merge: move |key: &K, one: Option<A>, other: A| match one {
                Some(one) => merge(key, one, other),
                None => Some(other),
            },
        };
        self.aggregate_rows(AGGREGATE, materialized.into(), functions)
    }
}

impl<K: 'static, V: 'static> KGroupedTable<K, V> {
    /// As [`aggregate`](Self::aggregate), for aggregates that may vanish: `add` gets the aggregate if there is one,
    /// `subtract` is called only if there is one, and with `None` either deletes the row.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let by_team = b.table::<String, String>("team-of").group_by(|user, team| (team.clone(), user.clone()));
    ///     // Unlike `count`, a team without members is no row.
    ///     let add = |_: &String, _: &String, count: Option<i64>| Some(count.unwrap_or(0) + 1);
    ///     by_team.aggregate_opt(add, |_, _, count| (count > 1).then(|| count - 1), "members").to_stream().to("sizes")
    /// })
    /// .pipe("team-of", [("ann", Some("red"), at(0)), ("ann", None, at(1))])
    /// .gives("sizes", [("red", Some(1), at(0)), ("red", None, at(1))]);
    /// ```
    ///
    /// Java counterpart: aggregators of `KGroupedTable.aggregate` that return null.
    pub fn aggregate_opt<A: 'static>(
        &self,
        add: impl Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        subtract: impl Fn(&K, &V, A) -> Option<A> + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<K, A> {
        self.aggregate_rows(materialized.into(), add, move |key, value, row| {
            subtract(key, value, row?)
        })
    }
}
