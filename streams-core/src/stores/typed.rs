//! A typed store with a write-back cache. Updates happen in place: take the value, call, put it back on success.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::cache::{Cache, Held};
use super::decode::{Decoder, read_stored_value, unreadable};
use super::layout::Layout;
use super::managed::{FlushListener, ManagedStore, StoreBuilder, ValueAndTimestamp};
use super::window::LiveFrom;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::StoreOp;
use crate::processor::TaskContext;
use crate::serde::{SerdeError, SharedSerde};
use crate::{Change, Record};

/// What an update did.
#[derive(Debug)]
pub enum Update<V> {
    /// The key is null: nothing was done.
    NullKey,
    /// The update's code failed and its handler let it pass: the row is as before.
    Skipped,
    /// The change is in the cache and will be forwarded by the flush.
    Deferred,
    /// The change is written; forward it now, with this event time (ms since the Unix epoch).
    Changed(Change<V>, i64),
}

/// How a store behaves.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Whether values stay in the thread's cache until a flush (`withCachingEnabled`).
    pub caching: bool,
    /// Whether event times are stored with the values (all stores of the DSL but sessions).
    pub timestamped: bool,
}

/// A store of typed keys and values in one task. Shared by all nodes connected to it.
pub struct TypedStore<L: Layout, V> {
    pub(super) layout: L,
    pub(super) value_serde: SharedSerde<V>,
    pub(super) base: StoreBuilder,
    pub(super) options: StoreOptions,
    /// Changelog records carry the headers of the update.
    pub(super) logs_headers: bool,
    pub(super) cache: RefCell<Cache<V>>,
    pub(super) listener: RefCell<Option<Rc<dyn FlushListener<L::Key, V>>>>,
    pub(super) send_old: Cell<bool>,
    pub(super) users: RefCell<Vec<LiveFrom>>,
    pub(super) key_buffer: RefCell<Vec<u8>>,
    pub(super) value_buffer: RefCell<Vec<u8>>,
}

impl<L: Layout, V: 'static> TypedStore<L, V> {
    /// A store of the task, still without a listener.
    pub fn new(base: StoreBuilder, layout: L, value_serde: SharedSerde<V>, options: StoreOptions) -> Self {
        let caching = options.caching && base.budget.max_bytes() > 0;
        TypedStore {
            layout,
            value_serde,
            base,
            options: StoreOptions { caching, ..options },
            logs_headers: false,
            cache: RefCell::default(),
            listener: RefCell::default(),
            send_old: Cell::new(false),
            users: RefCell::default(),
            key_buffer: RefCell::default(),
            value_buffer: RefCell::default(),
        }
    }

    /// The same store; its changelog records carry the headers of the update, as those of Java's stores with headers do.
    #[must_use]
    pub fn logging_headers(mut self) -> Self {
        self.logs_headers = true;
        self
    }

    /// The store's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.base.name
    }

    /// Whether updates are cached; then they reach the listener at the flush.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.options.caching
    }

    /// Sets who takes the flushed changes, and whether it needs old values.
    pub fn set_listener(&self, listener: Rc<dyn FlushListener<L::Key, V>>, send_old: bool) {
        *self.listener.borrow_mut() = Some(listener);
        self.send_old.set(send_old);
    }

    /// Asks for old values in changes.
    pub fn enable_send_old(&self) {
        self.send_old.set(true);
    }

    /// Replaces a row by what `change` makes of it. `change` gets the row (`None`: there is none) and answers the new
    /// one (`None`: delete it), or `Ok(None)` when it failed and its handler let that pass. It must not use this store.
    /// `record` gives the event time and headers of the update.
    ///
    /// # Errors
    /// When the row can't be read or written, or `change` failed for good.
    pub fn update<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &L::Key,
        record: Record<'_, KR, VR>,
        change: impl FnOnce(
            &mut TaskContext,
            Option<ValueAndTimestamp<V>>,
        ) -> ProcessResult<Option<Option<ValueAndTimestamp<V>>>>,
    ) -> ProcessResult<Update<V>> {
        match self.encode(cx, key)? {
            Some(key) => self.update_encoded(cx, key, record, change),
            None => Ok(Update::NullKey),
        }
    }

    /// Updates a row whose identity stands in the store's key buffer; gives the buffer back.
    pub(super) fn update_encoded<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: Vec<u8>,
        record: Record<'_, KR, VR>,
        change: impl FnOnce(
            &mut TaskContext,
            Option<ValueAndTimestamp<V>>,
        ) -> ProcessResult<Option<Option<ValueAndTimestamp<V>>>>,
    ) -> ProcessResult<Update<V>> {
        let result = match self.options.caching {
            true => self.update_cached(cx, &key, record, change),
            false => self.update_through(cx, &key, record, change),
        };
        *self.key_buffer.borrow_mut() = key;
        result
    }

    /// Sets a row; `None` deletes it. `record` gives event time and headers.
    ///
    /// # Errors
    /// When the row can't be read or written.
    pub fn put<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &L::Key,
        value: Option<V>,
        record: Record<'_, KR, VR>,
    ) -> ProcessResult<Update<V>> {
        let timestamp_ms = record.timestamp_ms;
        self.update(cx, key, record, |_, _| {
            Ok(Some(value.map(|value| ValueAndTimestamp { value, timestamp_ms })))
        })
    }

    fn update_cached<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        record: Record<'_, KR, VR>,
        change: impl FnOnce(
            &mut TaskContext,
            Option<ValueAndTimestamp<V>>,
        ) -> ProcessResult<Option<Option<ValueAndTimestamp<V>>>>,
    ) -> ProcessResult<Update<V>> {
        let meter = &self.base.meter;
        let started = meter.start();
        let at = self.load(cx, key)?;
        let (held, undo) = self.take_for_update(cx, at)?;
        meter.done(meter.read_op(), started);
        let before = match held {
            Held::Value(value, timestamp_ms) => Some(ValueAndTimestamp { value, timestamp_ms }),
            Held::Absent | Held::Out => None,
        };
        match change(cx, before)? {
            Some(after) => {
                let started = meter.start();
                let timestamp_ms = after.as_ref().map_or(record.timestamp_ms, |after| after.timestamp_ms);
                let mut cache = self.cache.borrow_mut();
                if let Some(slot) = cache.slot_mut(at) {
                    slot.held = after.map_or(Held::Absent, |after| Held::Value(after.value, after.timestamp_ms));
                }
                cache.mark_dirty(at, cx.record_context(), timestamp_ms, record.headers);
                meter.done(StoreOp::Put, started);
                Ok(Update::Deferred)
            }
            None => self.undo(cx, at, undo).map(|()| Update::Skipped),
        }
    }

    fn update_through<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        record: Record<'_, KR, VR>,
        change: impl FnOnce(
            &mut TaskContext,
            Option<ValueAndTimestamp<V>>,
        ) -> ProcessResult<Option<Option<ValueAndTimestamp<V>>>>,
    ) -> ProcessResult<Update<V>> {
        let meter = &self.base.meter;
        let started = meter.start();
        let mut old = None;
        let before = self.read_stored(cx, key, |this, cx, bytes| {
            if this.send_old.get() {
                old = Some(this.decode_value(cx, bytes)?.value);
            }
            this.decode_value(cx, bytes)
        })?;
        meter.done(meter.read_op(), started);
        let Some(after) = change(cx, before)? else {
            return Ok(Update::Skipped);
        };
        let started = meter.start();
        let timestamp_ms = after.as_ref().map_or(record.timestamp_ms, |after| after.timestamp_ms);
        self.store(cx, key, after.as_ref().map(|after| (&after.value, after.timestamp_ms)))?;
        let logged = after.as_ref().map(|after| &after.value);
        self.log(cx, key, logged, timestamp_ms, record.headers)?;
        meter.done(StoreOp::Put, started);
        Ok(Update::Changed(
            Change::new(after.map(|after| after.value), old),
            timestamp_ms,
        ))
    }

    /// Takes the value out of its slot for an update in place. What is needed to undo or to tell the old value is kept
    /// first: the old bytes when old values are asked for, and the dirty value's bytes while a handler could resume.
    fn take_for_update(&self, cx: &TaskContext, at: u32) -> ProcessResult<(Held<V>, Option<Vec<u8>>)> {
        let mut cache = self.cache.borrow_mut();
        let Some(slot) = cache.slot_mut(at) else {
            return Err(Error::bug("a cache slot is gone"));
        };
        let dirty = slot.context.is_some();
        if !dirty {
            slot.existed = matches!(slot.held, Held::Value(..));
        }
        let keep_old = self.send_old.get() && !dirty;
        let keep_undo = dirty && cx.may_resume();
        let mut bytes = None;
        if let (Held::Value(value, timestamp_ms), true) = (&slot.held, keep_old || keep_undo) {
            let mut out = Vec::new();
            self.encode_value(cx, value, *timestamp_ms, &mut out)?;
            bytes = Some(out);
        }
        if keep_old {
            slot.old = bytes.clone().map(Vec::into_boxed_slice);
        }
        Ok((slot.held.take(), bytes.filter(|_| keep_undo)))
    }

    fn undo(&self, cx: &TaskContext, at: u32, undo: Option<Vec<u8>>) -> ProcessResult {
        let mut cache = self.cache.borrow_mut();
        let Some(slot) = cache.slot_mut(at) else { return Ok(()) };
        match undo {
            Some(bytes) => {
                let before = self.decode_value(cx, &bytes)?;
                slot.held = Held::Value(before.value, before.timestamp_ms);
            }
            // A dirty row without kept bytes was absent; a clean one is read again from the task's bytes.
            None if slot.context.is_some() => slot.held = Held::Absent,
            None => {
                let before = cache.charged();
                cache.remove(at);
                self.base.budget.charge(before, cache.charged());
            }
        }
        Ok(())
    }

    /// The identity of a key, in the store's buffer (give it back when done); `None` for a null key.
    pub(super) fn encode(&self, cx: &TaskContext, key: &L::Key) -> ProcessResult<Option<Vec<u8>>> {
        self.encode_with(cx, |topic, out| self.layout.encode(topic, key, out))
    }

    /// As `encode`, by code that writes the identity.
    pub(super) fn encode_with(
        &self,
        cx: &TaskContext,
        encode: impl FnOnce(&str, &mut Vec<u8>) -> Result<bool, SerdeError>,
    ) -> ProcessResult<Option<Vec<u8>>> {
        let mut bytes = std::mem::take(&mut *self.key_buffer.borrow_mut());
        bytes.clear();
        let present = encode(&self.base.topic, &mut bytes).map_err(|source| self.base.unwritable(cx, "key", source))?;
        if present {
            return Ok(Some(bytes));
        }
        *self.key_buffer.borrow_mut() = bytes;
        Ok(None)
    }

    /// The stored form of a value: `ts8 ++ value` in a timestamped store (`ValueAndTimestampSerializer`).
    pub(super) fn encode_value(
        &self,
        cx: &TaskContext,
        value: &V,
        timestamp_ms: i64,
        out: &mut Vec<u8>,
    ) -> ProcessResult<bool> {
        if self.options.timestamped {
            out.extend_from_slice(&timestamp_ms.to_be_bytes());
        }
        self.value_serde
            .serialize(&self.base.topic, value, out)
            .map_err(|source| self.base.unwritable(cx, "value", source))
    }

    /// What reads the stored form of values.
    pub(super) fn decoder(&self, cx: &TaskContext) -> Decoder<V> {
        Decoder {
            value: Arc::clone(&self.value_serde),
            topic: Arc::clone(&self.base.topic),
            store: Arc::clone(&self.base.name),
            task: cx.task(),
            timestamped: self.options.timestamped,
            timestamp_ms: cx.record_context().timestamp_ms,
        }
    }

    pub(super) fn decode_value(&self, cx: &TaskContext, bytes: &[u8]) -> ProcessResult<ValueAndTimestamp<V>> {
        let context_ms = cx.record_context().timestamp_ms;
        read_stored_value(
            &*self.value_serde,
            &self.base.topic,
            self.options.timestamped,
            context_ms,
            bytes,
        )
        .map_err(|source| self.unreadable(cx, &source))
    }

    pub(super) fn unreadable(&self, cx: &TaskContext, source: &SerdeError) -> Box<Error> {
        unreadable(cx.task(), &self.base.name, source)
    }
}

impl<L: Layout, V: 'static> ManagedStore for TypedStore<L, V> {
    fn flush(&self, cx: &mut TaskContext) -> ProcessResult {
        let meter = &self.base.meter;
        let started = meter.start().filter(|_| self.is_dirty());
        self.flush_dirty(cx)?;
        meter.done(StoreOp::Flush, started);
        self.expire_unneeded(cx)
    }

    fn is_dirty(&self) -> bool {
        self.cache.borrow().is_dirty()
    }

    fn evict(&self, cx: &mut TaskContext) -> ProcessResult {
        self.flush_dirty(cx)?;
        let mut cache = self.cache.borrow_mut();
        while self.base.budget.is_over() {
            let Some(at) = cache.oldest_clean() else { break };
            let before = cache.charged();
            cache.remove(at);
            self.base.budget.charge(before, cache.charged());
        }
        Ok(())
    }

    fn cached_bytes(&self) -> usize {
        self.cache.borrow().charged()
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

impl<L: Layout, V> Drop for TypedStore<L, V> {
    fn drop(&mut self) {
        self.base.budget.charge(self.cache.borrow().charged(), 0);
    }
}
