//! `flat_map`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Makes each record any number of keys and values, in the order given. The iterator
    /// is driven while they go on. The keys may be others, so grouping or joining the result sends it through a repartition topic.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     b.stream::<String, String>("orders")
    ///         .flat_map(|order, items| items.split(',').map(|item| (item.to_owned(), order.clone())).collect::<Vec<_>>())
    ///         .to("orders-by-item")
    /// })
    /// .pipe("orders", [("o1", "tea,cup", at(0))])
    /// .gives("orders-by-item", [("tea", "o1", at(0)), ("cup", "o1", at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.flatMap`.
    pub fn flat_map<K2: 'static, V2: 'static, I>(
        &self,
        map: impl Fn(&K, &V) -> I + Send + Sync + 'static,
    ) -> KStream<K2, V2>
    where
        I: IntoIterator<Item = (K2, V2)> + 'static,
    {
        let map = Arc::new(map);
        let factory = factory::<K, V, K2, V2, _>(move |parts| FlatMap {
            parts,
            map: Arc::clone(&map),
        });
        self.step(Step::FlatMap, factory, Keys::Changed, None)
    }
}

struct FlatMap<K2, V2, F> {
    parts: Parts<K2, V2>,
    map: Arc<F>,
}

impl<K, V, K2, V2, I: IntoIterator<Item = (K2, V2)>, F: Fn(&K, &V) -> I> Downstream<K, V> for FlatMap<K2, V2, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let made = cx.call_user(&self.parts.name, || (self.map)(record.key, record.value).into_iter())?;
        let Some(mut made) = made else { return Ok(()) };
        // The iterator is user code too: each step of it may panic.
        while let Some(Some((key, value))) = cx.call_user(&self.parts.name, || made.next())? {
            self.parts
                .children
                .forward(cx, record.with_key(&key).with_value(&value))?;
        }
        Ok(())
    }
}
