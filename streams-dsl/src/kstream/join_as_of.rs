//! `join_as_of`: each record with the latest one of another stream at its own time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use streams_core::ProcessResult;
use streams_core::processor::{NodeBuilder, TaskContext};
use streams_core::serde::{DefaultSerde, SharedSerde};

use super::KStream;
use crate::config::{Joined, Materialized};
use crate::ktable::{KTable, TableView, View};
use crate::windows::millis;

/// How far back an as-of join looks: the store of the other stream's values, their history, and how old a value may be.
///
/// ```
/// use streams_dsl::{AsOf, HOUR, MINUTE, SECOND};
/// let last_quote = AsOf::stored_in("quotes", HOUR).at_most(5 * MINUTE).grace(2 * SECOND);
/// # let _ = last_quote;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsOf {
    store: String,
    history: Duration,
    at_most: Option<Duration>,
    grace: Option<Duration>,
}

impl AsOf {
    /// Values are kept in the versioned store of this name, and are found for `history` of event time behind the newest
    /// one, of whatever key. A value that is nobody's newest and older than that is gone.
    #[must_use]
    pub fn stored_in(store: &str, history: Duration) -> Self {
        AsOf {
            store: store.to_owned(),
            history,
            at_most: None,
            grace: None,
        }
    }

    /// A value that is older than this, seen from the record that asks, does not count. Default: any age.
    #[must_use]
    pub fn at_most(mut self, age: Duration) -> Self {
        self.at_most = Some(age);
        self
    }

    /// Keeps records back for so long, by event time, so that values which come late are found; at most the history. See
    /// [`Joined::grace`].
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }
}

impl<K: DefaultSerde, V: DefaultSerde> KStream<K, V> {
    /// Joins each record with the latest value of its key in `right` at or before its own event time: the price when the
    /// order was placed, not the one when it was processed. Records without one give nothing.
    ///
    /// A value counts from its event time to that of the next one of its key, also when it comes out of order; a null value
    /// of `right` ends the last one. Of values with one time the last to come counts. A value that comes after a record
    /// that should have found it is not found, unless the record waits by [`AsOf::grace`]. Null keys of both sides, and
    /// null values of this stream, are dropped and counted. Event time and headers are this stream's.
    ///
    /// Both sides must have equal partition counts; a side whose keys may have changed goes through a repartition topic
    /// first.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (orders, quotes) = (b.stream::<String, i64>("orders"), b.stream::<String, i64>("quotes"));
    ///     let worth = orders.join_as_of(&quotes, |_share, count, price| count * price, AsOf::stored_in("quotes", HOUR));
    ///     worth.to("worth")
    /// })
    /// .pipe("quotes", [("x", 5, at(10)), ("x", 7, at(20))])
    /// .pipe("orders", [("x", 2, at(19)), ("x", 2, at(20)), ("x", 2, at(9)), ("y", 2, at(20))])
    /// .gives("worth", [("x", 10, at(19)), ("x", 14, at(20))]);
    /// ```
    ///
    /// The store is a versioned one with Java's changelog (KIP-889): keys as they are, the values with their event times, and
    /// a null for a null. The join's node is `NAME-join`, what waits for the grace is in `NAME-join-Buffer`.
    ///
    /// Not in Java, where a versioned table (KIP-914) is joined in the same way.
    pub fn join_as_of<VR: DefaultSerde + Clone, V2: 'static>(
        &self,
        right: &KStream<K, VR>,
        join: impl Fn(&K, &V, &VR) -> V2 + Send + Sync + 'static,
        as_of: AsOf,
    ) -> KStream<K, V2> {
        let (table, joined) = self.as_of(right, &as_of);
        self.join_table_with(&table, join, joined)
    }

    /// As [`join_as_of`](Self::join_as_of), but records without a value are joined with `None`; a null key has none.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (orders, quotes) = (b.stream::<String, i64>("orders"), b.stream::<String, i64>("quotes"));
    ///     let recent = AsOf::stored_in("quotes", HOUR).at_most(10 * MILLISECOND);
    ///     orders.left_join_as_of(&quotes, |_, count, price| count * price.copied().unwrap_or(1), recent).to("worth")
    /// })
    /// .pipe("quotes", [("x", 5, at(10))])
    /// .pipe("orders", [("x", 2, at(20)), ("x", 2, at(21))])
    /// .gives("worth", [("x", 10, at(20)), ("x", 2, at(21))]);
    /// ```
    pub fn left_join_as_of<VR: DefaultSerde + Clone, V2: 'static>(
        &self,
        right: &KStream<K, VR>,
        join: impl Fn(&K, &V, Option<&VR>) -> V2 + Send + Sync + 'static,
        as_of: AsOf,
    ) -> KStream<K, V2> {
        let (table, joined) = self.as_of(right, &as_of);
        self.left_join_table_with(&table, join, joined)
    }

    /// The other stream's values with their history, as a table; and how this stream is joined with it.
    fn as_of<VR: DefaultSerde + Clone>(&self, right: &KStream<K, VR>, as_of: &AsOf) -> (KTable<K, VR>, Joined<K, V>) {
        let AsOf { store, history, .. } = as_of;
        if let Some(grace) = as_of.grace.filter(|grace| grace > history) {
            let (grace_ms, history_ms) = (millis(grace), millis(*history));
            let sentence =
                format!("`{store}`: records wait for {grace_ms} ms, so its history can't be {history_ms} ms");
            self.builder.with(|graph| graph.found(sentence));
        }
        let key: SharedSerde<K> = right.key.clone().unwrap_or_else(K::shared);
        let value: SharedSerde<VR> = right.value.clone().unwrap_or_else(VR::shared);
        let nulls = Arc::clone(&value);
        let updates = right.map_values(move |_, value: &VR| (!nulls.is_null(value)).then(|| value.clone()));
        let stored = Materialized::none(key, value).with_name(store).versioned(*history);
        let table: KTable<K, VR> = updates.to_table(stored);
        let table = match as_of.at_most {
            Some(age) => KTable {
                view: not_older_than(&table.view, millis(age)),
                ..table
            },
            None => table,
        };
        let joined = Joined::default().with_name(&format!("{store}-join"));
        (
            table,
            match as_of.grace {
                Some(grace) => joined.grace(grace),
                None => joined,
            },
        )
    }
}

/// The same rows; looked at as of a time, those that are older than `age_ms` then are not there.
fn not_older_than<K: 'static, V: 'static>(view: &View<K, V>, age_ms: i64) -> View<K, V> {
    let open = Arc::clone(&view.open);
    let open = move |builder: &mut NodeBuilder<'_>| {
        let rows = open(builder)?;
        let recent: Rc<dyn TableView<K, V>> = Rc::new(Recent { rows, age_ms });
        Ok(recent)
    };
    View {
        open: Arc::new(open),
        ..view.clone()
    }
}

struct Recent<K, V> {
    rows: Rc<dyn TableView<K, V>>,
    age_ms: i64,
}

impl<K, V> TableView<K, V> for Recent<K, V> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V, i64)>)) -> ProcessResult {
        self.rows.read(cx, key, read)
    }

    fn read_as_of(
        &self,
        cx: &mut TaskContext,
        key: &K,
        as_of_ms: i64,
        read: &mut dyn FnMut(Option<(&V, i64)>),
    ) -> ProcessResult {
        self.rows.read_as_of(cx, key, as_of_ms, &mut |row| {
            read(row.filter(|(_, from_ms)| as_of_ms.saturating_sub(*from_ms) <= self.age_ms));
        })
    }
}
