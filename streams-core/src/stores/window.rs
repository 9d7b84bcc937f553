//! What window stores have besides: updates by parts of the key, so that no windowed key is made for them, and expiry.

use std::rc::Rc;

use super::layout::{WindowLayout, state_split};
use super::managed::ValueAndTimestamp;
use super::typed::{TypedStore, Update};
use crate::error::{Error, ProcessResult};
use crate::processor::TaskContext;
use crate::{Record, Window};

/// Runs after a store was flushed.
pub(super) type AfterFlush = Rc<dyn Fn(&mut TaskContext) -> ProcessResult>;

impl<K: 'static, V: 'static> TypedStore<WindowLayout<K>, V> {
    /// As [`update`](Self::update), for `key` in the window that starts at `window.start_ms`.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn update_window<KR: ?Sized, VR: ?Sized>(
        &self,
        cx: &mut TaskContext,
        key: &K,
        window: Window,
        record: Record<'_, KR, VR>,
        change: impl FnOnce(
            &mut TaskContext,
            Option<ValueAndTimestamp<V>>,
        ) -> ProcessResult<Option<Option<ValueAndTimestamp<V>>>>,
    ) -> ProcessResult<Update<V>> {
        let encoded = self.encode_with(cx, |topic, out| {
            self.layout.encode_parts(topic, key, window.start_ms, out)
        })?;
        match encoded {
            Some(bytes) => self.update_encoded(cx, bytes, record, change),
            None => Ok(Update::NullKey),
        }
    }

    /// Drops the rows of whole time buckets in which no window starts at or after `live_from_ms` (ms since the Unix
    /// epoch), as part of the open epoch; answers how many held rows. Call it when nothing of these windows is dirty,
    /// that is [after a flush](Self::set_after_flush). Costs nothing while no further bucket has died.
    ///
    /// # Errors
    /// When the task's bytes can't be read.
    pub fn expire(&self, cx: &mut TaskContext, live_from_ms: i64) -> ProcessResult<u64> {
        let task = cx.task();
        let buckets = cx
            .state()
            .expire_windows(self.base.id, live_from_ms)
            .map_err(|source| Error::state(task, source))?;
        if buckets > 0 {
            // Nobody asks for these again; they would fill the cache and its index.
            let mut cache = self.cache.borrow_mut();
            let before = cache.charged();
            cache.forget(|key| state_split(key).1 < live_from_ms);
            self.base.budget.charge(before, cache.charged());
        }
        Ok(buckets)
    }

    /// Runs `hook` after each flush of this store, when nothing in it is dirty: the place to let rows expire.
    pub fn set_after_flush(&self, hook: impl Fn(&mut TaskContext) -> ProcessResult + 'static) {
        *self.after_flush.borrow_mut() = Some(Rc::new(hook));
    }
}
