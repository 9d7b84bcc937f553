//! `select_key`.

use std::sync::Arc;

use streams_core::processor::{Downstream, NodeFactory, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Gives each record another key; the value stays. Grouping or joining the result sends it through a repartition
    /// topic.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("pages").select_key(|_user, page| *page).to("by-page"))
    ///     .pipe("pages", [("ann", 3, at(0))])
    ///     .gives("by-page", [(3, 3, at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.selectKey`.
    pub fn select_key<K2: 'static>(&self, select: impl Fn(&K, &V) -> K2 + Send + Sync + 'static) -> KStream<K2, V> {
        self.step(
            Step::SelectKey,
            select_key_factory(select),
            Keys::Changed,
            self.value.clone(),
        )
    }
}

pub(super) fn select_key_factory<K: 'static, V: 'static, K2: 'static>(
    select: impl Fn(&K, &V) -> K2 + Send + Sync + 'static,
) -> Arc<dyn NodeFactory> {
    let select = Arc::new(select);
    factory::<K, V, K2, V, _>(move |parts| SelectKey {
        parts,
        select: Arc::clone(&select),
    })
}

struct SelectKey<K2, V, F> {
    parts: Parts<K2, V>,
    select: Arc<F>,
}

impl<K, V, K2, F: Fn(&K, &V) -> K2> Downstream<K, V> for SelectKey<K2, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.select)(record.key, record.value))? {
            Some(key) => self.parts.children.forward(cx, record.with_key(&key)),
            None => Ok(()),
        }
    }
}
