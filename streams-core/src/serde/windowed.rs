//! Windowed keys on topics (`TimeWindowedSerializer`, `SessionWindowedSerializer`).

use super::primitives::{convert_error, null_of};
use super::{DefaultSerde, Serde, SerdeError};
use crate::stores::WindowEnds;
use crate::windowed::{Window, Windowed};

/// Keys in time windows: the key's bytes, then the window's start (8 bytes, ms since the Unix epoch).
///
/// The end is not written, so a reader needs the window's size; without one (the default, which is also the default serde of
/// `Windowed<K>`) it reads an open end, `i64::MAX`, as Java does. The serde that a windowed aggregation hands to its table
/// knows the size.
///
/// ```
/// use streams_core::serde::{DefaultSerde, Serde, TimeWindowed, Utf8};
/// use streams_core::{Window, Windowed};
/// let bytes = b"ann\x00\x00\x00\x00\x00\x00\xea\x60";
/// let sized: Windowed<String> = TimeWindowed::of_size(Utf8, 60_000).deserialize("counts", Some(bytes))?;
/// assert_eq!(sized.window, Window::new(60_000, 120_000));
/// let open = Windowed::<String>::shared().deserialize("counts", Some(bytes))?;
/// assert_eq!(open.window, Window::new(60_000, i64::MAX));
/// # Ok::<(), streams_core::SerdeError>(())
/// ```
///
/// Java counterpart: `WindowedSerdes.timeWindowedSerdeFrom`.
#[derive(Clone, Copy, Debug)]
pub struct TimeWindowed<S> {
    inner: S,
    /// `None` = not known.
    ends: Option<WindowEnds>,
}

impl<S> TimeWindowed<S> {
    /// Keys of `inner` in windows of a size (ms).
    pub fn of_size(inner: S, size_ms: i64) -> Self {
        Self::with_ends(inner, WindowEnds::Size(size_ms))
    }

    /// Keys of `inner` in windows whose ends are found like this.
    pub fn with_ends(inner: S, ends: WindowEnds) -> Self {
        TimeWindowed {
            inner,
            ends: Some(ends),
        }
    }
}

impl<S: Default> Default for TimeWindowed<S> {
    /// A window size that is not known: ends are read as `i64::MAX`.
    fn default() -> Self {
        TimeWindowed {
            inner: S::default(),
            ends: None,
        }
    }
}

impl<K, S: Serde<K>> Serde<Windowed<K>> for TimeWindowed<S> {
    fn serialize(&self, topic: &str, value: &Windowed<K>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let present = self.inner.serialize(topic, &value.key, out)?;
        if present {
            out.extend_from_slice(&value.window.start_ms.to_be_bytes());
        }
        Ok(present)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Windowed<K>, SerdeError> {
        let (key, start) = bytes
            .ok_or_else(null_of::<Windowed<K>>)?
            .split_last_chunk()
            .ok_or_else(|| {
                convert_error::<Windowed<K>>("a key in a time window ends with the 8 bytes of the window's start")
            })?;
        let key = self.inner.deserialize(topic, Some(key))?;
        let start_ms = i64::from_be_bytes(*start);
        let open = Window::new(start_ms, i64::MAX);
        Ok(Windowed::new(key, self.ends.map_or(open, |ends| ends.window(start_ms))))
    }

    fn is_null(&self, value: &Windowed<K>) -> bool {
        self.inner.is_null(&value.key)
    }

    fn partition_bytes<'b>(&self, serialized: &'b [u8]) -> &'b [u8] {
        serialized
            .split_last_chunk::<8>()
            .map_or(serialized, |(key, _)| self.inner.partition_bytes(key))
    }

    fn format(&self) -> String {
        format!("time-windowed({})", self.inner.format())
    }
}

/// Keys in session windows: the key's bytes, then the session's end and its start (8 bytes each, ms).
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionWindowed<S>(
    /// The serde of the key.
    pub S,
);

impl<K, S: Serde<K>> Serde<Windowed<K>> for SessionWindowed<S> {
    fn serialize(&self, topic: &str, value: &Windowed<K>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let present = self.0.serialize(topic, &value.key, out)?;
        if present {
            out.extend_from_slice(&value.window.end_ms.to_be_bytes());
            out.extend_from_slice(&value.window.start_ms.to_be_bytes());
        }
        Ok(present)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Windowed<K>, SerdeError> {
        let (key, end, start) = bytes
            .ok_or_else(null_of::<Windowed<K>>)?
            .split_last_chunk()
            .and_then(|(rest, start)| rest.split_last_chunk().map(|(key, end)| (key, end, start)))
            .ok_or_else(|| {
                convert_error::<Windowed<K>>("a key in a session window ends with the 16 bytes of its end and start")
            })?;
        let key = self.0.deserialize(topic, Some(key))?;
        Ok(Windowed::new(
            key,
            Window::new(i64::from_be_bytes(*start), i64::from_be_bytes(*end)),
        ))
    }

    fn is_null(&self, value: &Windowed<K>) -> bool {
        self.0.is_null(&value.key)
    }

    fn partition_bytes<'b>(&self, serialized: &'b [u8]) -> &'b [u8] {
        serialized
            .split_last_chunk::<16>()
            .map_or(serialized, |(key, _)| self.0.partition_bytes(key))
    }

    fn format(&self) -> String {
        format!("session-windowed({})", self.0.format())
    }
}

/// Time windows of unknown size: what a bare `Windowed<K>` is written as. Keys of session windows need
/// [`SessionWindowed`], which loses nothing; the DSL passes the right one on from the aggregation.
impl<K: DefaultSerde> DefaultSerde for Windowed<K> {
    type Serde = TimeWindowed<K::Serde>;
}
