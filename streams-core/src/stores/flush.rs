//! Flushing: every dirty entry once into the task's bytes and the changelog, and once to the listener.

use std::rc::Rc;

use super::cache::Held;
use super::layout::Layout;
use super::typed::TypedStore;
use crate::error::{Error, ProcessResult};
use crate::processor::{RecordContext, TaskContext};
use crate::{Change, Headers, Record};

impl<L: Layout, V: 'static> TypedStore<L, V> {
    /// Writes and forwards the dirty entries, in dirtying order. The list is taken first and no entry is borrowed while
    /// it is forwarded, so whatever happens downstream may use this store.
    pub(super) fn flush_dirty(&self, cx: &mut TaskContext) -> ProcessResult {
        if !self.cache.borrow().is_dirty() {
            return Ok(());
        }
        let outer = cx.current.clone();
        self.cache.borrow_mut().begin_flush();
        loop {
            let next = self.cache.borrow_mut().next_to_flush();
            let Some(at) = next else { break };
            self.flush_entry(cx, at)?;
        }
        cx.current = outer;
        self.cache.borrow_mut().forget_serialized();
        Ok(())
    }

    fn flush_entry(&self, cx: &mut TaskContext, at: u32) -> ProcessResult {
        let mut key = std::mem::take(&mut *self.key_buffer.borrow_mut());
        key.clear();
        let taken = {
            let mut cache = self.cache.borrow_mut();
            let Some(slot) = cache.slot_mut(at) else {
                return Err(Error::bug("a dirty cache slot is gone"));
            };
            let Some(context) = slot.context.take() else {
                return Ok(());
            };
            slot.unserialized = false;
            key.extend_from_slice(&slot.key);
            (slot.held.take(), slot.old.take(), context, slot.existed)
        };
        let (held, old, context, existed) = taken;
        cx.current = context;
        let held = match self.write_entry(cx, &key, &held, (at, existed))? {
            true => self.forward(cx, &key, held, old.as_deref())?,
            false => held,
        };
        if let Some(slot) = self.cache.borrow_mut().slot_mut(at) {
            // A node downstream may have read or written the row meanwhile: then its value is the newer one.
            if matches!(slot.held, Held::Out) {
                slot.held = held;
            }
        }
        *self.key_buffer.borrow_mut() = key;
        Ok(())
    }

    /// Puts an entry into the task's bytes and the changelog; false if it is a delete of a row that is not there, which
    /// is neither written nor forwarded.
    fn write_entry(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        held: &Held<V>,
        (at, existed): (u32, bool),
    ) -> ProcessResult<bool> {
        let timestamp_ms = cx.current.timestamp_ms;
        match held {
            Held::Value(value, time) => {
                let len = self.store(cx, key, Some((value, *time)))?;
                self.recharge(at, len);
                let headers = cx.current.headers.clone();
                self.log(cx, key, Some(value), *time, &headers)?;
                Ok(true)
            }
            Held::Absent => {
                if existed {
                    self.store(cx, key, None)?;
                    let headers = cx.current.headers.clone();
                    self.log(cx, key, None, timestamp_ms, &headers)?;
                } else {
                    // A scan may have written the row, and the delete after it is still to be written.
                    self.layout
                        .write(&mut cx.state, self.base.id, key, None)
                        .map_err(|e| Error::state(cx.task(), e))?;
                }
                Ok(existed)
            }
            Held::Out => Err(Error::bug(format!(
                "store {}: a dirty value is lent out",
                self.base.name
            ))),
        }
    }

    fn forward(&self, cx: &mut TaskContext, key: &[u8], held: Held<V>, old: Option<&[u8]>) -> ProcessResult<Held<V>> {
        let listener = self.listener.borrow().as_ref().map(Rc::clone);
        let Some(listener) = listener else { return Ok(held) };
        let typed_key = self
            .layout
            .decode(&self.base.topic, key)
            .map_err(|source| self.unreadable(cx, &source))?;
        let old = old
            .map(|bytes| self.decode_value(cx, bytes))
            .transpose()?
            .map(|old| old.value);
        let (new, time) = match held {
            Held::Value(value, time) => (Some(value), Some(time)),
            Held::Absent | Held::Out => (None, None),
        };
        let RecordContext {
            timestamp_ms, headers, ..
        } = cx.current.clone();
        let change = Change::new(new, old);
        let record = Record {
            key: &typed_key,
            value: &change,
            timestamp_ms: time.unwrap_or(timestamp_ms),
            headers: &headers,
        };
        listener.flushed(cx, record)?;
        Ok(change
            .new
            .map_or(Held::Absent, |value| Held::Value(value, time.unwrap_or(timestamp_ms))))
    }

    /// Puts the dirty entries into the task's bytes without logging or forwarding them, so that a scan sees them.
    pub(super) fn serialize_dirty(&self, cx: &mut TaskContext) -> ProcessResult {
        let unserialized = self.cache.borrow_mut().take_unserialized();
        for at in unserialized {
            let mut cache = self.cache.borrow_mut();
            let Some(slot) = cache.slot_mut(at) else { continue };
            if !std::mem::take(&mut slot.unserialized) {
                continue;
            }
            let value = match &slot.held {
                Held::Value(value, time) => Some((value, *time)),
                Held::Absent | Held::Out => None,
            };
            self.store(cx, &slot.key, value)?;
        }
        Ok(())
    }

    /// Writes a row into the task's bytes; answers the stored length.
    pub(super) fn store(&self, cx: &mut TaskContext, key: &[u8], value: Option<(&V, i64)>) -> ProcessResult<usize> {
        let mut buffer = std::mem::take(&mut *self.value_buffer.borrow_mut());
        buffer.clear();
        let bytes = match value {
            Some((value, time)) => self
                .encode_value(cx, value, time, &mut buffer)?
                .then_some(buffer.as_slice()),
            None => None,
        };
        let (task, len) = (cx.task(), bytes.map_or(0, <[u8]>::len));
        let result = self.layout.write(&mut cx.state, self.base.id, key, bytes);
        *self.value_buffer.borrow_mut() = buffer;
        result.map(|()| len).map_err(|source| Error::state(task, source))
    }

    /// Logs a row: the plain value, with the event time as the record's timestamp.
    pub(super) fn log(
        &self,
        cx: &mut TaskContext,
        key: &[u8],
        value: Option<&V>,
        timestamp_ms: i64,
        headers: &Headers,
    ) -> ProcessResult {
        let Some(changelog) = &self.base.changelog else {
            return Ok(());
        };
        let mut buffer = std::mem::take(&mut *self.value_buffer.borrow_mut());
        buffer.clear();
        let present = match value {
            Some(value) => self
                .value_serde
                .serialize(&self.base.topic, value, &mut buffer)
                .map_err(|e| self.base.unwritable(cx, "value", e))?,
            None => false,
        };
        let key_len = buffer.len();
        buffer.extend_from_slice(key);
        buffer.extend_from_slice(self.layout.changelog_suffix());
        let (value, key) = buffer.split_at(key_len);
        let headers = if self.logs_headers { headers } else { Headers::empty() };
        let result = changelog.log(cx, key, present.then_some(value), timestamp_ms, headers);
        *self.value_buffer.borrow_mut() = buffer;
        result
    }

    pub(super) fn recharge(&self, at: u32, len: usize) {
        let mut cache = self.cache.borrow_mut();
        let before = cache.charged();
        cache.recharge(at, len);
        self.base.budget.charge(before, cache.charged());
    }
}
