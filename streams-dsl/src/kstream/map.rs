//! `map`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Makes each record another key and value. The keys may be others, so grouping or joining the result sends it
    /// through a repartition topic; use [`map_values`](Self::map_values) where the key stays.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("in").map(|user, page| (*page, user.clone())).to("users-by-page"))
    ///     .pipe("in", [("ann", 3, at(0))])
    ///     .gives("users-by-page", [(3, "ann", at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.map`.
    pub fn map<K2: 'static, V2: 'static>(
        &self,
        map: impl Fn(&K, &V) -> (K2, V2) + Send + Sync + 'static,
    ) -> KStream<K2, V2> {
        let map = Arc::new(map);
        let factory = factory::<K, V, K2, V2, _>(move |parts| Map {
            parts,
            map: Arc::clone(&map),
        });
        self.step(Step::Map, factory, Keys::Changed, None)
    }
}

struct Map<K2, V2, F> {
    parts: Parts<K2, V2>,
    map: Arc<F>,
}

impl<K, V, K2, V2, F: Fn(&K, &V) -> (K2, V2)> Downstream<K, V> for Map<K2, V2, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.map)(record.key, record.value))? {
            Some((key, value)) => self
                .parts
                .children
                .forward(cx, record.with_key(&key).with_value(&value)),
            None => Ok(()),
        }
    }
}
