//! `filter` and `filter_not`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// The records for which `keep` is true. Nulls are asked about as all others.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("usage").filter(|_tenant, bytes| *bytes > 0).to("billable"))
    ///     .pipe("usage", [("a", 7, at(0)), ("b", 0, at(1))])
    ///     .gives("billable", [("a", 7, at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.filter`.
    pub fn filter(&self, keep: impl Fn(&K, &V) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        let keep = Arc::new(keep);
        let factory = factory::<K, V, K, V, _>(move |parts| Filter {
            parts,
            keep: Arc::clone(&keep),
        });
        self.step(Step::Filter, factory, Keys::Kept(self.key.clone()), self.value.clone())
    }

    /// The records for which `drop` is false.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("usage").filter_not(|_tenant, bytes| *bytes > 0).to("idle"))
    ///     .pipe("usage", [("a", 7, at(0)), ("b", 0, at(1))])
    ///     .gives("idle", [("b", 0, at(1))]);
    /// ```
    ///
    /// Java counterpart: `KStream.filterNot`.
    pub fn filter_not(&self, drop: impl Fn(&K, &V) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        self.filter(move |key, value| !drop(key, value))
    }
}

struct Filter<K, V, F> {
    parts: Parts<K, V>,
    keep: Arc<F>,
}

impl<K, V, F: Fn(&K, &V) -> bool> Downstream<K, V> for Filter<K, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.keep)(record.key, record.value))? {
            Some(true) => self.parts.children.forward(cx, record),
            Some(false) | None => Ok(()),
        }
    }
}
