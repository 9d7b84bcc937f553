//! Grouped streams in sessions: `count`, `reduce`, `aggregate`.

use std::sync::Arc;
use std::time::Duration;

use streams_core::Windowed;

use super::KGroupedStream;
use super::aggregate::AGGREGATE;
use super::count::COUNT;
use super::reduce::REDUCE;
use super::session_aggregate::{Functions, Parts, factory};
use super::store::{Names, Seed, some_unless_null};
use super::wall_clock::WallClock;
use super::windowed::EmitStrategy;
use crate::config::Materialized;
use crate::ktable::KTable;
use crate::stores::Shape;
use crate::windows::{SessionWindows, millis};

/// A stream grouped by its keys and by sessions. Java counterpart: `SessionWindowedKStream`.
pub struct SessionWindowedKStream<K, V> {
    pub(super) grouped: KGroupedStream<K, V>,
    windows: SessionWindows,
    emit: EmitStrategy,
    pub(super) wall: Option<WallClock>,
}

impl<K, V> Clone for SessionWindowedKStream<K, V> {
    fn clone(&self) -> Self {
        SessionWindowedKStream {
            grouped: self.grouped.clone(),
            windows: self.windows,
            emit: self.emit,
            wall: self.wall,
        }
    }
}

impl<K: 'static, V: 'static> SessionWindowedKStream<K, V> {
    pub(super) fn of(grouped: &KGroupedStream<K, V>, windows: SessionWindows) -> Self {
        if let Some(problem) = windows.problem() {
            grouped.stream.builder.with(|graph| graph.found(problem));
        }
        SessionWindowedKStream {
            grouped: grouped.clone(),
            windows,
            emit: EmitStrategy::default(),
            wall: None,
        }
    }

    /// When results are emitted. On close, a session is emitted once and deletes of merged sessions are not.
    /// Java counterpart: `SessionWindowedKStream.emitStrategy`.
    #[must_use]
    pub fn emit_strategy(mut self, emit: EmitStrategy) -> Self {
        self.emit = emit;
        self
    }
}

/// The store: rows are kept for gap + grace after their session's end, or longer if that is asked for; and what is wrong
/// with the retention, if anything.
pub(super) fn shape(windows: SessionWindows, retention: Option<Duration>) -> (Shape, Option<String>) {
    let needed_ms = windows.gap_ms().saturating_add(windows.grace_ms());
    let retention_ms = retention.map_or(needed_ms, millis);
    let too_short = (retention_ms < needed_ms).then(|| {
        format!(
            "the retention of {retention_ms} ms is too short: sessions with a gap of {} ms and their grace need {needed_ms} ms",
            windows.gap_ms()
        )
    });
    (Shape::Session { retention_ms }, too_short)
}

impl<K: Clone + 'static, V: 'static> SessionWindowedKStream<K, V> {
    /// Counts the records of each session. Records with a null key are dropped; null values count, as in Java.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let clicks = b.stream::<String, i64>("clicks").group_by_key();
    ///     clicks.windowed_by(SessionWindows::of(10 * SECOND)).count("visits").to_stream().to("visits-by-user")
    /// })
    /// .pipe("clicks", [("ann", 1, at(0)), ("ann", 2, at(9_000)), ("ann", 3, at(19_001))])
    /// .gives("visits-by-user", [
    ///     (session("ann", 0, 0), Some(1), at(0)),
    ///     (session("ann", 0, 0), None, at(0)),
    ///     (session("ann", 0, 9_000), Some(2), at(9_000)),
    ///     (session("ann", 19_001, 19_001), Some(1), at(19_001)),
    /// ]);
    /// ```
    ///
    /// Java counterpart: `SessionWindowedKStream.count`.
    pub fn count(&self, materialized: impl Into<Materialized<K, i64>>) -> KTable<Windowed<K>, i64> {
        let functions = Functions {
            add: |_: &K, _: &V, count: Option<i64>| Some(count.unwrap_or(0) + 1),
            merge: |_: &K, one: Option<i64>, other: i64| Some(one.unwrap_or(0) + other),
        };
        self.aggregate_rows(COUNT, materialized.into(), functions)
    }

    /// Combines the values of each session, as [`KGroupedStream::reduce`] does; sessions that become one are combined too,
    /// the earlier ones first. Records with a null key are dropped and counted.
    ///
    /// Java counterpart: `SessionWindowedKStream.reduce`.
    pub fn reduce(
        &self,
        combine: impl Fn(&K, &V, V) -> V + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, V>>,
    ) -> KTable<Windowed<K>, V>
    where
        V: Clone,
    {
        let materialized = materialized.into().or_value_serde(&self.grouped.value);
        let nulls = materialized.value.resolve(None);
        let unless_null = Arc::clone(&nulls);
        let (combine, merge) = {
            let combine = Arc::new(combine);
            (Arc::clone(&combine), combine)
        };
        let functions = Functions {
            add: move |key: &K, value: &V, row: Option<V>| {
                let reduced = match row {
                    Some(row) => combine(key, value, row),
                    None => value.clone(),
                };
                some_unless_null(&*nulls, reduced)
            },
            merge: move |key: &K, one: Option<V>, other: V| {
                let merged = match one {
                    Some(one) => merge(key, &other, one),
                    None => other,
                };
                some_unless_null(&*unless_null, merged)
            },
        };
        self.aggregate_rows(REDUCE, materialized, functions)
    }

    /// Keeps an aggregate for each session: `add` gets the key, the value and the aggregate so far (by value, at first what
    /// `init` makes); `merge` gets the key and two aggregates when sessions become one, that of the later session last.
    /// A null aggregate (`None` of an `Option`) deletes the row.
    ///
    /// A new record starts from `init`, takes in the sessions within the gap by their time, and is added at last. When a
    /// session grows, its old row is deleted, downstream too, and one for the longer session made. Its event time is its
    /// end, its headers are empty (with the cache on: those of its last record), as in Java.
    ///
    /// A record is late when its session, after merging, is closed: when the operator's stream time is more than gap and
    /// grace ahead of its end. It is dropped and counted. Stream time survives restarts and moves of the task.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let bytes = b.stream::<String, i64>("bytes").group_by_key();
    ///     bytes
    ///         .windowed_by(SessionWindows::of(10 * MILLISECOND).grace(90 * MILLISECOND))
    ///         .emit_strategy(EmitStrategy::OnWindowClose)
    ///         .aggregate(|| 0, |_user, bytes, sum: i64| sum + bytes, |_user, one, other| one + other, "sums")
    ///         .to_stream()
    ///         .to("sums")
    /// })
    /// .pipe("bytes", [("a", 1, at(0)), ("a", 2, at(20)), ("a", 4, at(10)), ("b", 8, at(121))])
    /// .gives("sums", [(session("a", 0, 20), 7, at(20))]);
    /// ```
    ///
    /// Different from Java: a session is kept until it is closed and emitted, whatever the store's retention.
    /// Java counterpart: `SessionWindowedKStream.aggregate`.
    pub fn aggregate<A: 'static>(
        &self,
        init: impl Fn() -> A + Send + Sync + 'static,
        add: impl Fn(&K, &V, A) -> A + Send + Sync + 'static,
        merge: impl Fn(&K, A, A) -> A + Send + Sync + 'static,
        materialized: impl Into<Materialized<K, A>>,
    ) -> KTable<Windowed<K>, A> {
        let materialized = materialized.into();
        let nulls = materialized.value.resolve(None);
        let unless_null = Arc::clone(&nulls);
        let init = Arc::new(init);
        let start = Arc::clone(&init);
        let functions = Functions {
            add: move |key: &K, value: &V, row: Option<A>| {
                some_unless_null(&*nulls, add(key, value, row.unwrap_or_else(|| init())))
            },
            merge: move |key: &K, one: Option<A>, other: A| {
                some_unless_null(&*unless_null, merge(key, one.unwrap_or_else(|| start()), other))
            },
        };
        self.aggregate_rows(AGGREGATE, materialized, functions)
    }

    pub(super) fn aggregate_rows<A: 'static, F, M>(
        &self,
        names: Names,
        materialized: Materialized<K, A>,
        functions: Functions<F, M>,
    ) -> KTable<Windowed<K>, A>
    where
        F: Fn(&K, &V, Option<A>) -> Option<A> + Send + Sync + 'static,
        M: Fn(&K, Option<A>, A) -> Option<A> + Send + Sync + 'static,
    {
        let on_close = self.emit == EmitStrategy::OnWindowClose;
        let materialized = match on_close {
            true => materialized.caching(false),
            false => materialized,
        };
        let serde = materialized.value.resolve(None);
        let (shape, too_short) = shape(self.windows, materialized.retention);
        let builder = &self.grouped.stream.builder;
        builder.with(|graph| WallClock::check(self.wall, self.emit, graph));
        if let Some(problem) = too_short {
            builder.with(|graph| graph.found(problem));
        }
        let parts = Parts {
            key: self.grouped.store_key(&materialized),
            windows: self.windows,
            retention_ms: shape.retention_ms(),
            functions: Arc::new(functions),
            wall: self.wall,
        };
        let make = |seed: Seed| factory::<K, V, A, F, M>(seed, parts);
        let added = self
            .grouped
            .add(names, &materialized, Arc::clone(&serde), (shape, on_close), make);
        self.grouped
            .session_table(added, &materialized, serde, self.windows.closing())
    }
}
