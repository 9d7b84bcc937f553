//! What session stores have besides: the sessions of a key.

use super::layout::SessionLayout;
use super::typed::TypedStore;
use crate::Window;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::StoreOp;
use crate::processor::TaskContext;

impl<K: 'static, V: 'static> TypedStore<SessionLayout<K>, V> {
    /// The sessions of a key that end at or after `from_end_ms` and start at or before `to_start_ms` (ms since the Unix
    /// epoch), by their end. A null key has none. Java: `findSessions`.
    ///
    /// # Errors
    /// When rows can't be read.
    pub fn find(
        &self,
        cx: &mut TaskContext,
        key: &K,
        from_end_ms: i64,
        to_start_ms: i64,
    ) -> ProcessResult<Vec<(Window, V)>> {
        let started = self.base.meter.start();
        self.serialize_dirty(cx)?;
        let encoded = self.encode_with(cx, |topic, out| self.layout.key_serde().serialize(topic, key, out))?;
        let Some(bytes) = encoded else { return Ok(Vec::new()) };
        let task = cx.task();
        let rows = cx
            .state()
            .session_find(self.base.id, &bytes, from_end_ms, to_start_ms)
            .map_err(|source| Error::state(task, source));
        *self.key_buffer.borrow_mut() = bytes;
        let mut rows = rows?;
        let mut found = Vec::new();
        while let Some((session, value)) = rows.next_row().map_err(|source| Error::state(task, source))? {
            let window = Window::new(session.start_ms, session.end_ms);
            found.push((window, self.decode_value(cx, value)?.value));
        }
        self.base.meter.done(StoreOp::Fetch, started);
        Ok(found)
    }
}
