//! `flat_map_values`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Makes each value any number of values, in the order given; the key stays.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     b.stream::<String, String>("lines")
    ///         .flat_map_values(|_key, line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    ///         .to("words")
    /// })
    /// .pipe("lines", [("k", "to be", at(0))])
    /// .gives("words", [("k", "to", at(0)), ("k", "be", at(0))]);
    /// ```
    ///
    /// Java counterpart: `KStream.flatMapValues`.
    pub fn flat_map_values<V2: 'static, I>(&self, map: impl Fn(&K, &V) -> I + Send + Sync + 'static) -> KStream<K, V2>
    where
        I: IntoIterator<Item = V2> + 'static,
    {
        let map = Arc::new(map);
        let factory = factory::<K, V, K, V2, _>(move |parts| FlatMapValues {
            parts,
            map: Arc::clone(&map),
        });
        self.step(Step::FlatMapValues, factory, Keys::Kept(self.key.clone()), None)
    }
}

struct FlatMapValues<K, V2, F> {
    parts: Parts<K, V2>,
    map: Arc<F>,
}

impl<K, V, V2, I: IntoIterator<Item = V2>, F: Fn(&K, &V) -> I> Downstream<K, V> for FlatMapValues<K, V2, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let made = cx.call_user(&self.parts.name, || (self.map)(record.key, record.value).into_iter())?;
        let Some(mut made) = made else { return Ok(()) };
        // The iterator is user code too: each step of it may panic.
        while let Some(Some(value)) = cx.call_user(&self.parts.name, || made.next())? {
            self.parts.children.forward(cx, record.with_value(&value))?;
        }
        Ok(())
    }
}
