//! User processors that can't change the key, so that nothing below them needs a repartition. Java: KIP-820.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use super::api::{ForwardFailed, Processor, ProcessorContext};
use super::{PunctuationType, PunctuatorId, TaskContext};
use crate::error::BoxError;
use crate::stores::{GlobalStore, KeyValueStore, SessionStore, TtlStore, VersionedStore, WindowStore};
use crate::topology::TopologyError;
use crate::{DefaultSerde, Headers, Record, TaskId};

/// A record whose key stays what it is: value, event time and headers can be replaced.
///
/// Only the runtime makes one, so whatever a [`FixedKeyProcessor`] forwards has the key that it was given.
/// Java counterpart: `org.apache.kafka.streams.processor.api.FixedKeyRecord`.
#[derive(Debug)]
pub struct FixedKeyRecord<'a, K: ?Sized, V: ?Sized>(Record<'a, K, V>);

impl<K: ?Sized, V: ?Sized> Clone for FixedKeyRecord<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized, V: ?Sized> Copy for FixedKeyRecord<'_, K, V> {}

impl<'a, K: ?Sized, V: ?Sized> FixedKeyRecord<'a, K, V> {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a K {
        self.0.key
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &'a V {
        self.0.value
    }

    /// Event time, milliseconds since the Unix epoch.
    #[must_use]
    pub fn timestamp_ms(&self) -> i64 {
        self.0.timestamp_ms
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &'a Headers {
        self.0.headers
    }

    /// The record as stores take it, for the time and headers of an update.
    #[must_use]
    pub fn as_record(&self) -> Record<'a, K, V> {
        self.0
    }

    /// The same record with another value.
    #[must_use]
    pub fn with_value<'b, V2: ?Sized>(self, value: &'b V2) -> FixedKeyRecord<'b, K, V2>
    where
        'a: 'b,
    {
        FixedKeyRecord(self.0.with_value(value))
    }

    /// The same record with another event time (ms since the Unix epoch).
    #[must_use]
    pub fn with_timestamp(self, timestamp_ms: i64) -> Self {
        FixedKeyRecord(self.0.with_timestamp(timestamp_ms))
    }

    /// The same record with other headers.
    #[must_use]
    pub fn with_headers<'b>(self, headers: &'b Headers) -> FixedKeyRecord<'b, K, V>
    where
        'a: 'b,
    {
        FixedKeyRecord(self.0.with_headers(headers))
    }
}

/// User code that works on records one by one and can't change their keys.
///
/// As a [`Processor`], it may keep state in stores and run on a schedule, one instance per task, made anew after an
/// aborted transaction. A punctuation has no record in hand and therefore nothing to forward, as in Java: code that
/// forwards on a schedule is a [`Processor`]. Java counterpart:
/// `org.apache.kafka.streams.processor.api.FixedKeyProcessor`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a fixed-key processor of keys `{K}` and values `{V}`",
    label = "the processors made here do not take this stream's records",
    note = "a fixed-key processor implements `FixedKeyProcessor<{K}, {V}, VOut>`: first the types of the stream, then the value it forwards"
)]
pub trait FixedKeyProcessor<K, V, VOut>: 'static {
    /// Called once before the first record, with the stores restored: look up stores, schedule punctuations.
    ///
    /// # Errors
    /// An error stops the thread.
    fn init(&mut self, _cx: &mut FixedKeyContext<'_, K, VOut>) -> Result<(), BoxError> {
        Ok(())
    }

    /// Works on one record.
    ///
    /// # Errors
    /// An error, as a panic, goes to the processing handler.
    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, K, VOut>,
        record: FixedKeyRecord<'_, K, V>,
    ) -> Result<(), BoxError>;

    /// Runs when a schedule made by this processor is due; `timestamp_ms` is stream time or wall clock.
    ///
    /// # Errors
    /// An error, as a panic, goes to the processing handler.
    fn punctuate(
        &mut self,
        _cx: &mut FixedKeyContext<'_, K, VOut>,
        _id: PunctuatorId,
        _timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        Ok(())
    }

    /// Called when the task is given away, closed, or made anew after an abort. Nothing can be written any more.
    fn close(&mut self) {}
}

/// What a [`FixedKeyProcessor`] can reach: its children, its stores, its task's times and output.
pub struct FixedKeyContext<'a, K, VOut>(ProcessorContext<'a, K, VOut>);

impl<K, VOut> Deref for FixedKeyContext<'_, K, VOut> {
    type Target = TaskContext;
    fn deref(&self) -> &TaskContext {
        &self.0
    }
}

impl<K, VOut> DerefMut for FixedKeyContext<'_, K, VOut> {
    fn deref_mut(&mut self) -> &mut TaskContext {
        &mut self.0
    }
}

impl<K, VOut> FixedKeyContext<'_, K, VOut> {
    /// Hands a record to all children; returns when they are done.
    ///
    /// # Errors
    /// When a child failed for good; pass it on with `?`.
    pub fn forward(&mut self, record: FixedKeyRecord<'_, K, VOut>) -> Result<(), ForwardFailed> {
        self.0.forward(record.0)
    }

    /// Hands a record to the child of this name alone; returns when it is done.
    ///
    /// # Errors
    /// When there is no child of this name, or it failed for good; pass it on with `?`.
    pub fn forward_to(&mut self, child: &str, record: FixedKeyRecord<'_, K, VOut>) -> Result<(), BoxError> {
        self.0.forward_to(child, record.0)
    }

    /// The store of this name, as the type it was defined with.
    ///
    /// # Errors
    /// When the processor is not connected to it, or it is of another type.
    pub fn store<S: 'static>(&self, name: &str) -> Result<Rc<S>, TopologyError> {
        self.0.store(name)
    }

    /// A key-value store; values carry the event time of their last update.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn key_value_store<KS: 'static, VS: 'static>(
        &self,
        name: &str,
    ) -> Result<Rc<KeyValueStore<KS, VS>>, TopologyError> {
        self.store(name)
    }

    /// A store whose rows die.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn ttl_store<KS: 'static, VS: 'static>(&self, name: &str) -> Result<Rc<TtlStore<KS, VS>>, TopologyError> {
        self.store(name)
    }

    /// A versioned store.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn versioned_store<KS: 'static, VS: 'static>(
        &self,
        name: &str,
    ) -> Result<Rc<VersionedStore<KS, VS>>, TopologyError> {
        self.store(name)
    }

    /// A window store.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn window_store<KS: 'static, VS: 'static>(&self, name: &str) -> Result<Rc<WindowStore<KS, VS>>, TopologyError> {
        self.store(name)
    }

    /// A session store.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn session_store<KS: 'static, VS: 'static>(
        &self,
        name: &str,
    ) -> Result<Rc<SessionStore<KS, VS>>, TopologyError> {
        self.store(name)
    }

    /// A global store, to look up rows by the types' default serdes. No connection is needed.
    ///
    /// # Errors
    /// When there is no global store of this name.
    pub fn global_store<KS: DefaultSerde, VS: DefaultSerde>(
        &self,
        name: &str,
    ) -> Result<GlobalStore<KS, VS>, TopologyError> {
        self.0.global_store(name)
    }

    /// As [`schedule_every`](Self::schedule_every), but only at `start_ms` (milliseconds since the Unix epoch of that clock)
    /// and whole intervals after it.
    pub fn schedule_from(&mut self, start_ms: i64, interval: Duration, kind: PunctuationType) -> PunctuatorId {
        self.0.schedule_from(start_ms, interval, kind)
    }

    /// Runs [`FixedKeyProcessor::punctuate`] every `interval`. Schedules are not persisted; make them in `init`.
    pub fn schedule_every(&mut self, interval: Duration, kind: PunctuationType) -> PunctuatorId {
        self.0.schedule_every(interval, kind)
    }

    /// The task. Java: `taskId`.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        self.0.task_id()
    }
}

/// Runs a [`FixedKeyProcessor`] as a [`Processor`] of equal key types in and out.
pub struct FixedKey<P>(pub P);

impl<P, K: 'static, V: 'static, VOut: 'static> Processor<K, V, K, VOut> for FixedKey<P>
where
    P: FixedKeyProcessor<K, V, VOut>,
{
    fn init(&mut self, cx: &mut ProcessorContext<'_, K, VOut>) -> Result<(), BoxError> {
        self.0.init(&mut FixedKeyContext(cx.reborrow()))
    }

    fn process(&mut self, cx: &mut ProcessorContext<'_, K, VOut>, record: Record<'_, K, V>) -> Result<(), BoxError> {
        self.0
            .process(&mut FixedKeyContext(cx.reborrow()), FixedKeyRecord(record))
    }

    fn punctuate(
        &mut self,
        cx: &mut ProcessorContext<'_, K, VOut>,
        id: PunctuatorId,
        timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        self.0.punctuate(&mut FixedKeyContext(cx.reborrow()), id, timestamp_ms)
    }

    fn close(&mut self) {
        self.0.close();
    }
}
