//! What window and session stores have besides: updates by parts of the key, so that no windowed key is made for them,
//! rows by time, and expiry.

use std::rc::Rc;

use super::layout::{Layout, WindowLayout};
use super::managed::ValueAndTimestamp;
use super::typed::{TypedStore, Update};
use crate::error::{Error, ProcessResult};
use crate::processor::TaskContext;
use crate::{Record, Window};

/// The time from which on a user needs rows.
pub(super) type LiveFrom = Rc<dyn Fn(&TaskContext) -> Option<i64>>;

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
}

impl<L: Layout, V: 'static> TypedStore<L, V> {
    /// Drops the rows of whole time buckets in which no window starts (no session ends) at or after `live_from_ms` (ms since the Unix
    /// epoch), as part of the open epoch; answers how many held rows. Call it when nothing of these windows is dirty,
    /// that is after a flush; [`keep_from`](Self::keep_from) does so. Costs nothing while no further bucket has died.
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
            cache.forget(|key| self.layout.bucket_time_ms(key).is_some_and(|time| time < live_from_ms));
            self.base.budget.charge(before, cache.charged());
        }
        Ok(buckets)
    }

    /// Says which rows a user of the store still needs: those from the time on that `live_from_ms` answers, `None` while it
    /// can't tell. After each flush, when nothing is dirty, the rows expire that no user needs.
    pub fn keep_from(&self, live_from_ms: impl Fn(&TaskContext) -> Option<i64> + 'static) {
        self.users.borrow_mut().push(Rc::new(live_from_ms));
    }

    pub(super) fn expire_unneeded(&self, cx: &mut TaskContext) -> ProcessResult {
        let live_from_ms = self.users.borrow().iter().filter_map(|user| user(cx)).min();
        match live_from_ms {
            Some(time) if time > 0 => self.expire(cx, time).map(|_| ()),
            _ => Ok(()),
        }
    }
}
