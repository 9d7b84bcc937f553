//! Session stores of a task. Times are milliseconds of event time.

use super::{StoreView, TaskState};
use crate::codec::session_key::SessionKey;
use crate::error::StateError;
use crate::session::{SessionIter, Sessions};
use crate::spec::StoreId;
use crate::store::{KeyValueStore, SessionStore};

impl TaskState {
    /// A session store as an object, for code that is written against [`SessionStore`].
    ///
    /// # Errors
    /// Unknown store, or not a session store.
    pub fn sessions(&mut self, id: StoreId) -> Result<Sessions<StoreView<'_>>, StateError> {
        let layout = self.shape.session(id)?;
        Ok(Sessions::new(self.view(id)?, layout))
    }

    /// Sets the value of a session, in the open epoch; `None` deletes it.
    ///
    /// # Errors
    /// Unknown store, not a session store, or impossible times.
    pub fn session_put(
        &mut self,
        id: StoreId,
        key: &[u8],
        start_ms: i64,
        end_ms: i64,
        value: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let written = self.sessions(id)?.put(key, start_ms, end_ms, value);
        written.map_err(|error| match error {
            StateError::InvalidWindowKey { reason, .. } => {
                let store = self.shape.store(id).map(|(spec, _)| spec.name.clone());
                StateError::InvalidWindowKey {
                    store: store.unwrap_or_default(),
                    reason,
                }
            }
            other => other,
        })
    }

    /// Lends the value of a session to `read`, called once.
    ///
    /// # Errors
    /// Unknown store, not a session store, or the storage could not be read.
    pub fn session_fetch(
        &self,
        id: StoreId,
        key: &[u8],
        start_ms: i64,
        end_ms: i64,
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError> {
        let layout = self.shape.session(id)?;
        let local = layout.local_key(&SessionKey { key, start_ms, end_ms });
        self.store(id)?.overlay.get(&local, read)
    }

    /// The sessions of a key that end at or after `from_end_ms` and start at or before `to_start_ms`, by their end.
    ///
    /// # Errors
    /// As [`TaskState::session_fetch`].
    pub fn session_find(
        &mut self,
        id: StoreId,
        key: &[u8],
        from_end_ms: i64,
        to_start_ms: i64,
    ) -> Result<SessionIter, StateError> {
        self.sessions(id)?.find(key, from_end_ms, to_start_ms)
    }

    /// The sessions of all keys that end between two times, both included; ordered by time bucket, then key, end and
    /// start.
    ///
    /// # Errors
    /// As [`TaskState::session_fetch`].
    pub fn session_ended(&mut self, id: StoreId, from_end_ms: i64, to_end_ms: i64) -> Result<SessionIter, StateError> {
        self.sessions(id)?.ended(from_end_ms, to_end_ms)
    }
}
