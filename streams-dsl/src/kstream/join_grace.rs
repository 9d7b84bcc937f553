//! The grace period of a join with a versioned table: records wait in a buffer for late updates (KIP-923).
//!
//! Java counterpart: `KStreamKTableJoinProcessor`, `RocksDBTimeOrderedKeyValueBuffer`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use streams_core::codec::{BufferedValue, RecordContext as BufferedContext};
use streams_core::processor::{AnyNode, Downstream, NodeBuilder, OperatorTime, RecordContext, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::KeyValueStore;
use streams_core::topology::{StoreDefinition, TopologyError};
use streams_core::{BoxError, ProcessResult, Record};
use streams_state::Direction;

use super::join_table::TableJoin;
use crate::stores::Stores;

/// Buffered records by `00 ++ time8 ++ key ++ sequence number4`, with the bytes of Java's changelog.
type Buffer = KeyValueStore<Vec<u8>, Vec<u8>>;

/// How long records wait, and how they are written.
pub(super) struct Grace<K, V> {
    pub(super) grace_ms: i64,
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
}

/// The name of the store in which the records of a join's node wait.
pub(super) fn buffer_name(node: &str) -> String {
    format!("{node}-Buffer")
}

/// That store. As in Java its rows carry no time of their own.
pub(super) fn buffer(name: &str) -> StoreDefinition {
    Stores::key_value::<Vec<u8>, Vec<u8>>(name).without_times().definition()
}

/// Under which key the highest event time that was buffered is kept; the mark keeps it apart from Java's entries.
pub(super) fn clock(buffer: &str) -> Arc<str> {
    format!("~{buffer}").into()
}

impl<K: 'static, V: 'static> Grace<K, V> {
    /// The node that lets records wait before `join`.
    pub(super) fn before<VT: 'static, V2: 'static>(
        &self,
        builder: &mut NodeBuilder<'_>,
        buffer: &str,
        join: TableJoin<K, V, VT, V2>,
    ) -> Result<AnyNode, TopologyError> {
        let name = builder.name();
        let time = builder.context().operator_time(&clock(buffer));
        let buffer = builder.store::<Buffer>(buffer)?;
        let node = GraceJoin {
            name,
            buffer,
            time,
            grace_ms: self.grace_ms,
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            sequence: Cell::new(0),
            due_ms: Cell::new(i64::MIN),
            join,
        };
        Ok(AnyNode::new::<K, V>(Rc::new(node)))
    }
}

struct GraceJoin<K, V, VT, V2> {
    name: Arc<str>,
    buffer: Rc<Buffer>,
    /// The highest event time that was buffered.
    time: OperatorTime,
    grace_ms: i64,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    sequence: Cell<u32>,
    /// No buffered record is older than this.
    due_ms: Cell<i64>,
    join: TableJoin<K, V, VT, V2>,
}

impl<K: 'static, V: 'static, VT: 'static, V2: 'static> Downstream<K, V> for GraceJoin<K, V, VT, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let late = record.timestamp_ms < cx.observed(self.time).saturating_sub(self.grace_ms);
        // A null value is dropped by the join, a null key finds nothing however long it waits.
        if late || self.key.is_null(record.key) || self.value.is_null(record.value) {
            return self.join.process(cx, record);
        }
        let observed_ms = cx.observe(self.time, record.timestamp_ms);
        self.keep(cx, record)?;
        self.let_go(cx, observed_ms.saturating_sub(self.grace_ms))
    }
}

impl<K: 'static, V: 'static, VT: 'static, V2: 'static> GraceJoin<K, V, VT, V2> {
    fn keep(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let Some((mut key, row)) = self.encode(cx, record)? else {
            return Ok(());
        };
        let sequence = self.next_sequence(cx, &key)?;
        key.extend_from_slice(&sequence.to_be_bytes());
        // Java sets no timestamp, so its producer takes the clock's.
        let now = Record::new(&(), &(), cx.now_ms());
        self.buffer.put(cx, &key, Some(row), now)?;
        self.due_ms.set(self.due_ms.get().min(record.timestamp_ms));
        Ok(())
    }

    /// Key without its sequence number, and row; `None` if they can't be written and the handler let that pass.
    #[allow(clippy::type_complexity, reason = "one private answer")]
    fn encode(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult<Option<(Vec<u8>, Vec<u8>)>> {
        let context = cx.record_context();
        let context = BufferedContext {
            timestamp_ms: record.timestamp_ms,
            offset: context.offset,
            topic: context.topic.to_string(),
            partition: context.partition,
            headers: record.headers.clone(),
        };
        cx.try_user(&self.name, || {
            let mut key = vec![0];
            key.extend_from_slice(&record.timestamp_ms.to_be_bytes());
            self.key.serialize(&self.name, record.key, &mut key)?;
            let mut value = Vec::new();
            self.value.serialize(&self.name, record.value, &mut value)?;
            let buffered = BufferedValue {
                context,
                prior: None,
                old: None,
                new: Some(value),
                time_ms: 0,
            };
            let mut row = Vec::new();
            buffered.encode(&mut row)?;
            Ok((key, row))
        })
    }

    /// The next number, greater than those of the records with the same time and key: Java begins anew with the process,
    /// and overwrites.
    fn next_sequence(&self, cx: &mut TaskContext, key: &[u8]) -> ProcessResult<u32> {
        let mut last = self.sequence.get();
        for row in self.buffer.prefix_scan(cx, key)? {
            let (found, _) = row?;
            if let (Some((of, sequence)), true) = (found.split_last_chunk::<4>(), found.len() == key.len() + 4) {
                last = last.max(if of == key { u32::from_be_bytes(*sequence) } else { 0 });
            }
        }
        let next = last.wrapping_add(1) & 0x7fff_ffff;
        self.sequence.set(next);
        Ok(next)
    }

    /// Joins what is at most as new as `until_ms`, by time, then key, then arrival.
    fn let_go(&self, cx: &mut TaskContext, until_ms: i64) -> ProcessResult {
        if until_ms < self.due_ms.get().max(0) {
            return Ok(());
        }
        let mut upper = vec![0];
        upper.extend_from_slice(&until_ms.saturating_add(1).to_be_bytes());
        let rows = self.buffer.range(cx, None, Some(&upper), Direction::Forward)?;
        for row in rows {
            let (key, row) = row?;
            let read = cx.try_user(&self.name, || self.decode(&key, &row.value))?;
            if let Some((typed, value, context)) = read {
                self.join_kept(cx, &typed, &value, context)?;
            }
            let now = Record::new(&(), &(), cx.now_ms());
            self.buffer.put(cx, &key, None, now)?;
        }
        self.due_ms.set(until_ms.saturating_add(1));
        Ok(())
    }

    fn join_kept(&self, cx: &mut TaskContext, key: &K, value: &V, context: BufferedContext) -> ProcessResult {
        let (timestamp_ms, headers) = (context.timestamp_ms, context.headers);
        let place = RecordContext::of_kept(
            context.topic.into(),
            context.partition,
            context.offset,
            timestamp_ms,
            headers.clone(),
        );
        let outer = cx.exchange_record_context(place);
        let record = Record {
            key,
            value,
            timestamp_ms,
            headers: &headers,
        };
        let joined = self.join.process(cx, record);
        if joined.is_ok() {
            cx.exchange_record_context(outer);
        }
        joined
    }

    fn decode(&self, key: &[u8], row: &[u8]) -> Result<(K, V, BufferedContext), BoxError> {
        let inner = key
            .get(9..key.len().saturating_sub(4))
            .ok_or("a buffered record has no key")?;
        let buffered = BufferedValue::decode_grace(row)?;
        let typed = self.key.deserialize(&self.name, Some(inner))?;
        let value = self.value.deserialize(&self.name, buffered.new.as_deref())?;
        Ok((typed, value, buffered.context))
    }
}

#[cfg(test)]
mod tests;
