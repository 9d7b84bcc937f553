//! A stream joined with itself on one store (optimization `single.store.self.join`).
//!
//! Java counterpart: `KStreamKStreamSelfJoin`.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::codec::JoinSide;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::JoinWindowStore;
use streams_core::{ProcessResult, Record};

use crate::windows::JoinWindows;

/// What two records of one stream give.
pub(super) type CombineSame<K, V, V2> = dyn Fn(&K, &V, &V) -> Option<V2> + Send + Sync;

/// What the node is made of.
pub(super) struct SelfJoin<K, V, V2> {
    pub(super) windows: JoinWindows,
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) store: Arc<str>,
    pub(super) clock: Arc<str>,
    pub(super) combine: Arc<CombineSame<K, V, V2>>,
}

impl<K: 'static, V: 'static, V2: 'static> SelfJoin<K, V, V2> {
    pub(super) fn factory(self) -> Arc<dyn NodeFactory> {
        Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let store = builder.store::<JoinWindowStore<K, V>>(&self.store)?;
            store.start(builder.context(), &self.clock);
            Ok(AnyNode::new::<K, V>(Rc::new(SelfJoinNode {
                name: builder.name(),
                children: builder.children::<K, V2>()?,
                windows: self.windows,
                key: Arc::clone(&self.key),
                value: Arc::clone(&self.value),
                store,
                combine: Arc::clone(&self.combine),
            })))
        })
    }
}

struct SelfJoinNode<K, V, V2> {
    name: Arc<str>,
    children: Children<K, V2>,
    windows: JoinWindows,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    store: Rc<JoinWindowStore<K, V>>,
    combine: Arc<CombineSame<K, V, V2>>,
}

impl<K: 'static, V: 'static, V2: 'static> Downstream<K, V> for SelfJoinNode<K, V, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if self.key.is_null(record.key) || self.value.is_null(record.value) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let (from_ms, to_ms) = self.windows.partners_of(JoinSide::Left, record.timestamp_ms);
        let mut partners = self.store.fetch(cx, record.key, from_ms, to_ms)?;
        while let Some((time, partner)) = partners.next(cx)? {
            self.emit(cx, record, time, |join| join(record.key, record.value, &partner))?;
        }
        // A second pass, so that the order is that of a join on two stores: the record as the right one, and with itself
        // where its time has its place.
        let (from_ms, to_ms) = self.windows.partners_of(JoinSide::Right, record.timestamp_ms);
        let mut partners = self.store.fetch(cx, record.key, from_ms, to_ms)?;
        let mut with_itself = false;
        while let Some((time, partner)) = partners.next(cx)? {
            if time > record.timestamp_ms && !with_itself {
                with_itself = true;
                self.emit_with_itself(cx, record)?;
            }
            self.emit(cx, record, time, |join| join(record.key, &partner, record.value))?;
        }
        if with_itself {
            return Ok(());
        }
        self.emit_with_itself(cx, record)
    }
}

impl<K: 'static, V: 'static, V2: 'static> SelfJoinNode<K, V, V2> {
    fn emit(
        &self,
        cx: &mut TaskContext,
        record: Record<'_, K, V>,
        partner_ms: i64,
        join: impl FnOnce(&CombineSame<K, V, V2>) -> Option<V2>,
    ) -> ProcessResult {
        let joined = cx.call_user(&self.name, || join(&*self.combine))?;
        match joined.flatten() {
            Some(joined) => {
                let time = record.timestamp_ms.max(partner_ms);
                self.children
                    .forward(cx, record.with_value(&joined).with_timestamp(time))
            }
            None => Ok(()),
        }
    }

    /// With itself only if equal times meet and the store would still show it: as on two stores.
    fn emit_with_itself(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        if !self.windows.hold_equal_times() || !self.store.sees(cx, record.timestamp_ms) {
            return Ok(());
        }
        self.emit(cx, record, record.timestamp_ms, |join| {
            join(record.key, record.value, record.value)
        })
    }
}
