//! `map_values`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Makes each value another one; the key stays.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("cents").map_values(|_account, cents| cents / 100).to("euros"))
    ///     .pipe("cents", [("a", 250, at(5))])
    ///     .gives("euros", [("a", 2, at(5))]);
    /// ```
    ///
    /// Java counterpart: `KStream.mapValues`.
    pub fn map_values<V2: 'static>(&self, map: impl Fn(&K, &V) -> V2 + Send + Sync + 'static) -> KStream<K, V2> {
        let map = Arc::new(map);
        let factory = factory::<K, V, K, V2, _>(move |parts| MapValues {
            parts,
            map: Arc::clone(&map),
        });
        self.step(Step::MapValues, factory, Keys::Kept(self.key.clone()), None)
    }
}

struct MapValues<K, V2, F> {
    parts: Parts<K, V2>,
    map: Arc<F>,
}

impl<K, V, V2, F: Fn(&K, &V) -> V2> Downstream<K, V> for MapValues<K, V2, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.map)(record.key, record.value))? {
            Some(value) => self.parts.children.forward(cx, record.with_value(&value)),
            None => Ok(()),
        }
    }
}
