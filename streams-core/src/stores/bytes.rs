//! What stores that are no cached [`TypedStore`](super::TypedStore) are built on: serde calls with the store's errors,
//! and rows that go to the task's bytes and the changelog at once.

use std::ops::Bound;
use streams_state::{Direction, RangeIter, StateError};

use super::decode::unreadable;
use super::managed::StoreBuilder;
use crate::Headers;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::{OpenIterator, StoreOp};
use crate::processor::TaskContext;
use crate::serde::{Serde, SerdeError};

/// A store's place in its task.
pub(super) struct ByteRows {
    pub(super) base: StoreBuilder,
}

impl ByteRows {
    pub(super) fn new(base: StoreBuilder) -> Self {
        ByteRows { base }
    }

    /// The bytes of a key or value; `None` for a null.
    pub(super) fn encode<T: 'static>(
        &self,
        cx: &TaskContext,
        what: &'static str,
        serde: &dyn Serde<T>,
        value: &T,
    ) -> ProcessResult<Option<Vec<u8>>> {
        let mut out = Vec::new();
        match serde.serialize(&self.base.topic, value, &mut out) {
            Ok(present) => Ok(present.then_some(out)),
            Err(source) => Err(Box::new(Error::Serialize {
                what,
                node: self.base.name.to_string(),
                task: cx.task(),
                topic: self.base.topic.to_string(),
                source,
            })),
        }
    }

    pub(super) fn decode<T: 'static>(&self, cx: &TaskContext, serde: &dyn Serde<T>, bytes: &[u8]) -> ProcessResult<T> {
        serde
            .deserialize(&self.base.topic, Some(bytes))
            .map_err(|source| self.unreadable(cx, &source))
    }

    pub(super) fn unreadable(&self, cx: &TaskContext, source: &SerdeError) -> Box<Error> {
        unreadable(cx.task(), &self.base.name, source)
    }

    /// Bytes that are in no layout of this store.
    pub(super) fn corrupted(&self, cx: &TaskContext, reason: impl std::fmt::Display) -> Box<Error> {
        Box::new(Error::TaskCorrupted {
            task: cx.task(),
            store: self.base.name.to_string(),
            reason: reason.to_string(),
        })
    }

    /// Maps a failure of the task's bytes.
    pub(super) fn state<T>(&self, cx: &TaskContext, result: Result<T, StateError>) -> ProcessResult<T> {
        result.map_err(|source| Error::state(cx.task(), source))
    }

    pub(super) fn get(&self, cx: &TaskContext, key: &[u8]) -> ProcessResult<Option<Vec<u8>>> {
        self.timed(StoreOp::Get, || {
            self.state(cx, cx.state_ref().get_vec(self.base.id, key))
        })
    }

    /// Sets a row in the task's bytes; `None` deletes it.
    pub(super) fn put(&self, cx: &mut TaskContext, key: &[u8], value: Option<&[u8]>) -> ProcessResult {
        let started = self.base.meter.start();
        let written = cx.state().put(self.base.id, key, value);
        self.base.meter.done(StoreOp::Put, started);
        self.state(cx, written)
    }

    /// Logs a row.
    pub(super) fn log(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<&[u8]>,
        timestamp_ms: i64,
        headers: &Headers,
    ) -> ProcessResult {
        self.base.log(cx, key, value, timestamp_ms, headers)
    }

    /// Rows of a range of keys, as they are now.
    pub(super) fn range(
        &self,
        cx: &mut TaskContext,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> ProcessResult<OpenRows> {
        let started = self.base.meter.start();
        let rows = cx.state().range(self.base.id, lower, upper, direction);
        self.base.meter.done(StoreOp::Range, started);
        let rows = self.state(cx, rows)?;
        Ok(OpenRows {
            rows,
            _open: OpenIterator::new(&self.base.meter),
        })
    }

    /// Runs `work` and notes how long it took.
    pub(super) fn timed<R>(&self, op: StoreOp, work: impl FnOnce() -> R) -> R {
        let started = self.base.meter.start();
        let result = work();
        self.base.meter.done(op, started);
        result
    }
}

/// Rows that are read one by one; counted as open while they live.
pub(super) struct OpenRows {
    rows: RangeIter,
    _open: OpenIterator,
}

impl Iterator for OpenRows {
    type Item = <RangeIter as Iterator>::Item;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next()
    }
}
