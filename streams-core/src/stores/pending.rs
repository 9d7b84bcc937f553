//! Windows that are to be emitted when they are closed, of kinds whose closing can't be told by their starts alone
//! (sliding windows, sessions).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use streams_state::StateError;

use super::layout::{Layout, SessionLayout, WindowLayout};
use super::managed::ValueAndTimestamp;
use super::typed::TypedStore;
use crate::error::{Error, ProcessResult};
use crate::processor::TaskContext;
use crate::{Window, Windowed};

/// A layout of keys in windows.
pub trait InWindows<K>: Layout<Key = Windowed<K>> {
    /// The key's bytes and the window of an identity.
    fn parts<'b>(&self, identity: &'b [u8]) -> (&'b [u8], Window);

    /// The identity of a key's bytes in a window.
    fn identity(&self, key: &[u8], window: Window) -> Vec<u8>;

    /// Visits the stored windows that end at `first_end_ms` (ms since the Unix epoch) or later.
    ///
    /// # Errors
    /// When the storage can't be read.
    fn visit(
        &self,
        cx: &mut TaskContext,
        id: streams_state::StoreId,
        first_end_ms: i64,
        visit: &mut dyn FnMut(&[u8], Window),
    ) -> Result<(), StateError>;
}

impl<K: 'static> InWindows<K> for WindowLayout<K> {
    fn parts<'b>(&self, identity: &'b [u8]) -> (&'b [u8], Window) {
        let (key, start_ms) = super::layout::state_split(identity);
        (key, self.window(start_ms))
    }

    fn identity(&self, key: &[u8], window: Window) -> Vec<u8> {
        [key, &window.start_ms.to_be_bytes()].concat()
    }

    fn visit(
        &self,
        cx: &mut TaskContext,
        id: streams_state::StoreId,
        first_end_ms: i64,
        visit: &mut dyn FnMut(&[u8], Window),
    ) -> Result<(), StateError> {
        let from_ms = first_end_ms.saturating_sub(self.longest_ms()).max(0);
        let mut rows = cx
            .state()
            .window_fetch_all(id, from_ms, i64::MAX - 1, streams_state::Direction::Forward)?;
        while let Some((row, _)) = rows.next_row()? {
            let window = self.window(row.start_ms);
            if window.end_ms >= first_end_ms {
                visit(row.key, window);
            }
        }
        Ok(())
    }
}

impl<K: 'static> InWindows<K> for SessionLayout<K> {
    fn parts<'b>(&self, identity: &'b [u8]) -> (&'b [u8], Window) {
        let session = super::layout::session_of(identity);
        (session.key, Window::new(session.start_ms, session.end_ms))
    }

    fn identity(&self, key: &[u8], window: Window) -> Vec<u8> {
        [key, &window.end_ms.to_be_bytes(), &window.start_ms.to_be_bytes()].concat()
    }

    fn visit(
        &self,
        cx: &mut TaskContext,
        id: streams_state::StoreId,
        first_end_ms: i64,
        visit: &mut dyn FnMut(&[u8], Window),
    ) -> Result<(), StateError> {
        let mut rows = cx.state().session_ended(id, first_end_ms, i64::MAX)?;
        while let Some((row, _)) = rows.next_row()? {
            visit(row.key, Window::new(row.start_ms, row.end_ms));
        }
        Ok(())
    }
}

/// The windows of a store that were not emitted yet, ordered as they are emitted: by end, start and key. Learned from the
/// store when a task starts; about 80 bytes a window.
pub struct PendingWindows<L: Layout, V> {
    store: Rc<TypedStore<L, V>>,
    windows: RefCell<BTreeSet<(i64, i64, Box<[u8]>)>>,
}

impl<K: 'static, L: InWindows<K>, V: 'static> PendingWindows<L, V>
where
    L: Layout<Key = Windowed<K>>,
{
    /// The windows of a store, which must not be cached.
    #[must_use]
    pub fn new(store: Rc<TypedStore<L, V>>) -> Self {
        PendingWindows {
            store,
            windows: RefCell::default(),
        }
    }

    /// Learns the windows that end at `first_end_ms` (ms since the Unix epoch) or later; to be called once, before the first
    /// record.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn load(&self, cx: &mut TaskContext, first_end_ms: i64) -> ProcessResult {
        let (task, mut windows) = (cx.task(), self.windows.borrow_mut());
        let mut add = |key: &[u8], window: Window| {
            windows.insert((window.end_ms, window.start_ms, key.into()));
        };
        self.store
            .layout
            .visit(cx, self.store.base.id, first_end_ms, &mut add)
            .map_err(|source| Error::state(task, source))
    }

    /// Notes that a window has a row, or has none any more.
    ///
    /// # Errors
    /// When the key has no byte form.
    pub fn note(&self, cx: &TaskContext, key: &Windowed<K>, exists: bool) -> ProcessResult {
        let Some(identity) = self.store.encode(cx, key)? else {
            return Ok(());
        };
        let (bytes, window) = self.store.layout.parts(&identity);
        let entry = (window.end_ms, window.start_ms, bytes.into());
        let mut windows = self.windows.borrow_mut();
        match exists {
            true => windows.insert(entry),
            false => windows.remove(&entry),
        };
        *self.store.key_buffer.borrow_mut() = identity;
        Ok(())
    }

    /// Takes the first window, by end, start and key, with its row, if it ends up to `last_end_ms` (ms since the Unix
    /// epoch).
    ///
    /// # Errors
    /// When its row can't be read.
    pub fn take_first(
        &self,
        cx: &mut TaskContext,
        last_end_ms: i64,
    ) -> ProcessResult<Option<(Windowed<K>, ValueAndTimestamp<V>)>> {
        while let Some((end_ms, start_ms, key)) = self.take_entry(last_end_ms) {
            let identity = self.store.layout.identity(&key, Window::new(start_ms, end_ms));
            let row = self
                .store
                .read_stored(cx, &identity, |store, cx, bytes| store.decode_value(cx, bytes))?;
            let Some(row) = row else { continue };
            let key = self.store.layout.decode(&self.store.base.topic, &identity);
            let key = key.map_err(|source| self.store.unreadable(cx, &source))?;
            return Ok(Some((key, row)));
        }
        Ok(None)
    }

    fn take_entry(&self, last_end_ms: i64) -> Option<(i64, i64, Box<[u8]>)> {
        let mut windows = self.windows.borrow_mut();
        if windows.first()?.0 > last_end_ms {
            return None;
        }
        windows.pop_first()
    }
}
