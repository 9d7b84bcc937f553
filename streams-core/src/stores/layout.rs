//! How a typed key lies in the task's bytes and in the changelog, per kind of store.

use streams_state::{StateError, StoreId, TaskState};

use crate::codec::SessionKey;
use crate::serde::{SerdeError, SharedSerde};
use crate::stores::WindowEnds;
use crate::windowed::{Window, Windowed};

/// The bytes of a kind of store.
pub trait Layout: 'static {
    /// The typed key.
    type Key: 'static;

    /// Appends the key's identity; false = the key is null.
    ///
    /// # Errors
    /// When the key has no byte form.
    fn encode(&self, topic: &str, key: &Self::Key, out: &mut Vec<u8>) -> Result<bool, SerdeError>;

    /// Reads a key back from its identity.
    ///
    /// # Errors
    /// When the bytes are not a key.
    fn decode(&self, topic: &str, bytes: &[u8]) -> Result<Self::Key, SerdeError>;

    /// Lends the stored bytes of a key.
    ///
    /// # Errors
    /// When the storage can't be read.
    fn read(
        &self,
        state: &TaskState,
        id: StoreId,
        key: &[u8],
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError>;

    /// Stores the bytes of a key; `None` deletes.
    ///
    /// # Errors
    /// When the storage can't be written.
    fn write(&self, state: &mut TaskState, id: StoreId, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError>;

    /// The event time (ms) by which a row lies in time buckets, where it does.
    fn bucket_time_ms(&self, _key: &[u8]) -> Option<i64> {
        None
    }

    /// What follows the identity in the changelog key.
    fn changelog_suffix(&self) -> &'static [u8] {
        &[]
    }
}

/// Keys as they are.
pub struct KeyValueLayout<K> {
    serde: SharedSerde<K>,
}

impl<K> KeyValueLayout<K> {
    /// Keys by this serde.
    pub fn new(serde: SharedSerde<K>) -> Self {
        KeyValueLayout { serde }
    }

    /// The serde of the keys.
    #[must_use]
    pub fn key_serde(&self) -> &SharedSerde<K> {
        &self.serde
    }
}

impl<K: 'static> Layout for KeyValueLayout<K> {
    type Key = K;

    fn encode(&self, topic: &str, key: &K, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        self.serde.serialize(topic, key, out)
    }

    fn decode(&self, topic: &str, bytes: &[u8]) -> Result<K, SerdeError> {
        self.serde.deserialize(topic, Some(bytes))
    }

    fn read(
        &self,
        state: &TaskState,
        id: StoreId,
        key: &[u8],
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError> {
        state.get(id, key, read)
    }

    fn write(&self, state: &mut TaskState, id: StoreId, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        state.put(id, key, value)
    }
}

/// Keys and window starts: identity `key ++ start8`, in the changelog followed by a sequence number of 0
/// (`WindowKeySchema`).
pub struct WindowLayout<K> {
    serde: SharedSerde<K>,
    ends: WindowEnds,
}

impl<K: 'static> WindowLayout<K> {
    /// Windows of `size_ms` milliseconds (the size gives a window its end when its key is read back).
    pub fn new(serde: SharedSerde<K>, size_ms: i64) -> Self {
        Self::with_ends(serde, WindowEnds::Size(size_ms))
    }

    /// Windows whose ends are found like this when their keys are read back.
    pub fn with_ends(serde: SharedSerde<K>, ends: WindowEnds) -> Self {
        WindowLayout { serde, ends }
    }

    /// The serde of the keys.
    pub(super) fn key_serde(&self) -> &SharedSerde<K> {
        &self.serde
    }

    /// How long windows are at most, ms.
    pub(super) fn longest_ms(&self) -> i64 {
        self.ends.longest_ms()
    }

    /// The window that begins at `start_ms` (ms since the Unix epoch).
    pub(super) fn window(&self, start_ms: i64) -> Window {
        self.ends.window(start_ms)
    }

    /// Appends the identity of a key in the window that starts at `start_ms`; false = the key is null.
    pub(super) fn encode_parts(
        &self,
        topic: &str,
        key: &K,
        start_ms: i64,
        out: &mut Vec<u8>,
    ) -> Result<bool, SerdeError> {
        let present = self.serde.serialize(topic, key, out)?;
        out.extend_from_slice(&start_ms.to_be_bytes());
        Ok(present)
    }
}

fn split(bytes: &[u8]) -> Result<(&[u8], i64), SerdeError> {
    let parts = bytes
        .split_last_chunk::<8>()
        .map(|(key, start)| (key, i64::from_be_bytes(*start)));
    parts.ok_or(SerdeError::Length {
        type_name: "a window key",
        expected: 8,
        actual: bytes.len(),
    })
}

pub(super) fn state_split(bytes: &[u8]) -> (&[u8], i64) {
    // The identity was made by `encode`, so the start is there.
    split(bytes).unwrap_or((bytes, 0))
}

impl<K: 'static> Layout for WindowLayout<K> {
    type Key = Windowed<K>;

    fn encode(&self, topic: &str, key: &Windowed<K>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        self.encode_parts(topic, &key.key, key.window.start_ms, out)
    }

    fn decode(&self, topic: &str, bytes: &[u8]) -> Result<Windowed<K>, SerdeError> {
        let (key, start_ms) = split(bytes)?;
        Ok(Windowed {
            key: self.serde.deserialize(topic, Some(key))?,
            window: self.window(start_ms),
        })
    }

    fn read(
        &self,
        state: &TaskState,
        id: StoreId,
        key: &[u8],
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError> {
        let (key, start_ms) = state_split(key);
        state.window_fetch(id, key, start_ms, read)
    }

    fn write(&self, state: &mut TaskState, id: StoreId, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        let (key, start_ms) = state_split(key);
        state.window_put(id, key, start_ms, value).map(|_| ())
    }

    fn bucket_time_ms(&self, key: &[u8]) -> Option<i64> {
        Some(state_split(key).1)
    }

    fn changelog_suffix(&self) -> &'static [u8] {
        &[0; 4]
    }
}

/// Keys and sessions: identity `key ++ end8 ++ start8`, also in the changelog (`SessionKeySchema`).
pub struct SessionLayout<K> {
    serde: SharedSerde<K>,
}

impl<K: 'static> SessionLayout<K> {
    /// Keys by this serde.
    pub fn new(serde: SharedSerde<K>) -> Self {
        SessionLayout { serde }
    }

    /// The serde of the keys.
    pub(super) fn key_serde(&self) -> &SharedSerde<K> {
        &self.serde
    }
}

impl<K: 'static> Layout for SessionLayout<K> {
    type Key = Windowed<K>;

    fn encode(&self, topic: &str, key: &Windowed<K>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let present = self.serde.serialize(topic, &key.key, out)?;
        out.extend_from_slice(&key.window.end_ms.to_be_bytes());
        out.extend_from_slice(&key.window.start_ms.to_be_bytes());
        Ok(present)
    }

    fn decode(&self, topic: &str, bytes: &[u8]) -> Result<Windowed<K>, SerdeError> {
        let parts = SessionKey::from_changelog_key(bytes).ok_or(SerdeError::Length {
            type_name: "a session key",
            expected: 16,
            actual: bytes.len(),
        })?;
        Ok(Windowed {
            key: self.serde.deserialize(topic, Some(parts.key))?,
            window: Window {
                start_ms: parts.start_ms,
                end_ms: parts.end_ms,
            },
        })
    }

    fn read(
        &self,
        state: &TaskState,
        id: StoreId,
        key: &[u8],
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError> {
        let parts = session_of(key);
        state.session_fetch(id, parts.key, parts.start_ms, parts.end_ms, read)
    }

    fn write(&self, state: &mut TaskState, id: StoreId, key: &[u8], value: Option<&[u8]>) -> Result<(), StateError> {
        let parts = session_of(key);
        state.session_put(id, parts.key, parts.start_ms, parts.end_ms, value)
    }

    fn bucket_time_ms(&self, key: &[u8]) -> Option<i64> {
        Some(session_of(key).end_ms)
    }
}

pub(super) fn session_of(bytes: &[u8]) -> SessionKey<'_> {
    // The identity was made by `encode`, so the times are there.
    SessionKey::from_changelog_key(bytes).unwrap_or(SessionKey {
        key: bytes,
        start_ms: 0,
        end_ms: 0,
    })
}
