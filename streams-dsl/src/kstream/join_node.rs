//! The nodes of a join of two streams: one that stores the records of a side, one that looks for their partners.
//!
//! Java counterpart: `KStreamJoinWindow`, `KStreamKStreamJoin` with its sides.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::codec::JoinSide;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, OperatorTime, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{JoinWindowStore, Unmatched, UnmatchedStore};
use streams_core::{BoxError, ProcessResult, Record};

use crate::windows::JoinWindows;

/// What two records give; `None` on a side: no partner. A result of `None`: nothing follows.
pub(super) type Combine<K, V, VO, V2> = dyn Fn(&K, Option<&V>, Option<&VO>) -> Option<V2> + Send + Sync;

/// What a record without a partner gives, by its side and its value's bytes.
pub(super) type CombineBytes<K, V2> = dyn Fn(&K, JoinSide, &[u8]) -> Result<Option<V2>, BoxError> + Send + Sync;

/// Makes the node that hands records to the join and then stores them, so that none meets itself.
pub(super) fn windowed<K: 'static, V: 'static>(store: Arc<str>, clock: Arc<str>) -> Arc<dyn NodeFactory> {
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = builder.children::<K, V>()?;
        let store = builder.store::<JoinWindowStore<K, V>>(&store)?;
        store.start(builder.context(), &clock);
        Ok(AnyNode::new::<K, V>(Rc::new(StoreAfter { children, store })))
    })
}

struct StoreAfter<K, V> {
    children: Children<K, V>,
    store: Rc<JoinWindowStore<K, V>>,
}

impl<K: 'static, V: 'static> Downstream<K, V> for StoreAfter<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        self.children.forward(cx, record)?;
        self.store.put(cx, record)
    }
}

/// What a side needs of the store of records without a partner.
pub(super) struct Waiting<K, V2> {
    pub(super) store: Arc<str>,
    /// The key of the clock of both sides.
    pub(super) clock: Arc<str>,
    pub(super) emit: Arc<CombineBytes<K, V2>>,
}

impl<K, V2> Clone for Waiting<K, V2> {
    fn clone(&self) -> Self {
        Waiting {
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            emit: Arc::clone(&self.emit),
        }
    }
}

/// Everything a side's factory is made of; `V` is the side's own value type.
pub(super) struct Side<K, V, VO, V2> {
    pub(super) side: JoinSide,
    pub(super) windows: JoinWindows,
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) other_store: Arc<str>,
    pub(super) other_clock: Arc<str>,
    /// Combines the side's own value, first, with a partner's.
    pub(super) combine: Arc<Combine<K, V, VO, V2>>,
    /// Records of this side without a partner are emitted.
    pub(super) keeps: bool,
    pub(super) waiting: Option<Waiting<K, V2>>,
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> Side<K, V, VO, V2> {
    pub(super) fn factory(self) -> Arc<dyn NodeFactory> {
        Arc::new(move |builder: &mut NodeBuilder<'_>| {
            let other = builder.store::<JoinWindowStore<K, VO>>(&self.other_store)?;
            other.start(builder.context(), &self.other_clock);
            let waiting = match &self.waiting {
                None => None,
                Some(waiting) => Some(OpenWaiting {
                    store: builder.store::<UnmatchedStore<K>>(&waiting.store)?,
                    clock: builder.context().operator_time(&waiting.clock),
                    emit: Arc::clone(&waiting.emit),
                }),
            };
            Ok(AnyNode::new::<K, V>(Rc::new(JoinNode {
                name: builder.name(),
                children: builder.children::<K, V2>()?,
                side: self.side,
                windows: self.windows,
                key: Arc::clone(&self.key),
                value: Arc::clone(&self.value),
                other,
                combine: Arc::clone(&self.combine),
                keeps: self.keeps,
                waiting,
            })))
        })
    }
}

struct OpenWaiting<K, V2> {
    store: Rc<UnmatchedStore<K>>,
    clock: OperatorTime,
    emit: Arc<CombineBytes<K, V2>>,
}

struct JoinNode<K, V, VO, V2> {
    name: Arc<str>,
    children: Children<K, V2>,
    side: JoinSide,
    windows: JoinWindows,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    other: Rc<JoinWindowStore<K, VO>>,
    combine: Arc<Combine<K, V, VO, V2>>,
    keeps: bool,
    waiting: Option<OpenWaiting<K, V2>>,
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> Downstream<K, V> for JoinNode<K, V, VO, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        // Stream time is that of both streams, and moves with every record, also with one that can't be joined.
        let stream_time = self
            .waiting
            .as_ref()
            .map(|waiting| cx.observe(waiting.clock, record.timestamp_ms));
        let (null_key, null_value) = (self.key.is_null(record.key), self.value.is_null(record.value));
        if self.keeps && null_key && !null_value {
            return self.emit_alone(cx, record);
        }
        if null_key || null_value {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        if let (Some(waiting), Some(time)) = (&self.waiting, stream_time) {
            // Only a record that is not late can have closed windows.
            if record.timestamp_ms == time {
                self.emit_closed(cx, waiting, time, record)?;
            }
        }
        let Some(matched) = self.join(cx, record)? else {
            return Ok(());
        };
        match (&self.waiting, stream_time) {
            (Some(waiting), Some(time)) if self.keeps && !matched => self.keep(cx, waiting, time, record),
            _ => Ok(()),
        }
    }
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> JoinNode<K, V, VO, V2> {
    /// Joins a record with its partners, by their time; answers whether there were any, `None` after a failure that its
    /// handler let pass.
    fn join(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult<Option<bool>> {
        let (from_ms, to_ms) = self.windows.partners_of(self.side, record.timestamp_ms);
        let mut partners = self.other.fetch(cx, record.key, from_ms, to_ms)?;
        let mut matched = false;
        while let Some((timestamp_ms, partner)) = partners.next(cx)? {
            matched = true;
            if let Some(waiting) = &self.waiting {
                waiting
                    .store
                    .remove(cx, opposite(self.side), record.key, timestamp_ms)?;
            }
            let joined = cx.call_user(&self.name, || {
                (self.combine)(record.key, Some(record.value), Some(&partner))
            })?;
            let Some(joined) = joined else { return Ok(None) };
            if let Some(joined) = joined {
                let time = record.timestamp_ms.max(timestamp_ms);
                self.children
                    .forward(cx, record.with_value(&joined).with_timestamp(time))?;
            }
        }
        Ok(Some(matched))
    }

    /// A record without a partner: emitted at once when its window is closed, else it waits.
    fn keep(
        &self,
        cx: &mut TaskContext,
        waiting: &OpenWaiting<K, V2>,
        stream_time_ms: i64,
        record: Record<'_, K, V>,
    ) -> ProcessResult {
        if self.windows.is_closed(self.side, record.timestamp_ms, stream_time_ms) {
            return self.emit_alone(cx, record);
        }
        let mut value = Vec::new();
        let written = self.value.serialize(waiting.store.topic(), record.value, &mut value);
        match cx.try_user(&self.name, || written.map_err(BoxError::from))? {
            Some(true) => waiting
                .store
                .add(cx, self.side, record.key, &value, record.timestamp_ms),
            Some(false) | None => Ok(()),
        }
    }

    fn emit_alone(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let joined = cx.call_user(&self.name, || (self.combine)(record.key, Some(record.value), None))?;
        match joined.flatten() {
            Some(joined) => self.children.forward(cx, record.with_value(&joined)),
            None => Ok(()),
        }
    }

    /// Emits the records of both sides whose window is closed, with their own key and time and the headers of the record
    /// that closed it, as Java does.
    fn emit_closed(
        &self,
        cx: &mut TaskContext,
        waiting: &OpenWaiting<K, V2>,
        stream_time_ms: i64,
        record: Record<'_, K, V>,
    ) -> ProcessResult {
        let close = self.windows.close_times(stream_time_ms);
        for unmatched in waiting.store.closed(cx, close)? {
            self.emit_unmatched(cx, waiting, &unmatched, record)?;
            waiting.store.settle(cx, &unmatched)?;
        }
        Ok(())
    }

    fn emit_unmatched(
        &self,
        cx: &mut TaskContext,
        waiting: &OpenWaiting<K, V2>,
        unmatched: &Unmatched<K>,
        record: Record<'_, K, V>,
    ) -> ProcessResult {
        for value in &unmatched.values {
            let joined = cx.try_user(&self.name, || (waiting.emit)(&unmatched.key, unmatched.side, value))?;
            if let Some(Some(joined)) = joined {
                let record = record.with_key(&unmatched.key).with_value(&joined);
                self.children
                    .forward(cx, record.with_timestamp(unmatched.timestamp_ms))?;
            }
        }
        Ok(())
    }
}

fn opposite(side: JoinSide) -> JoinSide {
    match side {
        JoinSide::Left => JoinSide::Right,
        JoinSide::Right => JoinSide::Left,
    }
}
