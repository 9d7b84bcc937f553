//! `map_values_with_id`: values that carry the identity of their event.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{BoxError, EventId, ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// As [`map_values`](Self::map_values), with the identity of the record that is in hand: equal on every replay, and
    /// no other record's. Call it before the first step that changes keys, because a record in a repartition topic has
    /// an identity of its own.
    ///
    /// Null keys and values reach `map`. A record that a punctuation made has no identity: that is a failure of the step
    /// and goes to the processing handler.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("payments").map_values_with_id(|_account, cents, id| format!("{id}: {cents}")).to("ledger"))
    ///     .pipe("payments", [("a", 5, at(0)), ("a", 5, at(0))])
    ///     .gives("ledger", [("a", "payments-0@0: 5", at(0)), ("a", "payments-0@1: 5", at(0))]);
    /// ```
    ///
    /// Not in Java, where `FixedKeyProcessorContext.recordMetadata` has the parts.
    pub fn map_values_with_id<V2: 'static>(
        &self,
        map: impl Fn(&K, &V, &EventId) -> V2 + Send + Sync + 'static,
    ) -> KStream<K, V2> {
        let map = Arc::new(map);
        let factory = factory::<K, V, K, V2, _>(move |parts| MapWithId {
            parts,
            map: Arc::clone(&map),
        });
        self.step(Step::MapValues, factory, Keys::Kept(self.key.clone()), None)
    }
}

struct MapWithId<K, V2, F> {
    parts: Parts<K, V2>,
    map: Arc<F>,
}

impl<K, V, V2, F: Fn(&K, &V, &EventId) -> V2> Downstream<K, V> for MapWithId<K, V2, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let id = EventId::of_record(cx.record_context());
        let made = cx.try_user(&self.parts.name, || {
            let id = id.ok_or_else(|| {
                BoxError::from("a record that a punctuation made has no event id: take the id before, or make one")
            })?;
            Ok((self.map)(record.key, record.value, &id))
        })?;
        match made {
            Some(value) => self.parts.children.forward(cx, record.with_value(&value)),
            None => Ok(()),
        }
    }
}
