//! Session keys: the changelog's bytes are Java's, the local layout is ours.
//!
//! Changelog key: `key ++ end (8) ++ start (8)`, big-endian; the end comes first (`SessionKeySchema`). Local key: the same
//! behind an 8-byte big-endian time bucket, `end / segment interval`, so that a bucket of old rows is one range of keys.

use super::window_key::BUCKET;

/// Bytes behind the key in a changelog key.
pub const SUFFIX: usize = 16;

/// The parts of a session key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey<'a> {
    /// The serialized key.
    pub key: &'a [u8],
    /// The session's first time, milliseconds of event time.
    pub start_ms: i64,
    /// The session's last time, milliseconds of event time.
    pub end_ms: i64,
}

impl<'a> SessionKey<'a> {
    /// Reads a changelog key; `None` if it is too short.
    ///
    /// ```
    /// use streams_state::codec::session_key::SessionKey;
    /// let bytes = SessionKey { key: b"k", start_ms: 1, end_ms: 2 }.to_changelog_key();
    /// assert_eq!(bytes, b"k\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01");
    /// assert_eq!(SessionKey::from_changelog_key(&bytes).unwrap().end_ms, 2);
    /// ```
    #[must_use]
    pub fn from_changelog_key(bytes: &'a [u8]) -> Option<Self> {
        let (rest, start) = bytes.split_last_chunk::<8>()?;
        let (key, end) = rest.split_last_chunk::<8>()?;
        Some(Self {
            key,
            start_ms: i64::from_be_bytes(*start),
            end_ms: i64::from_be_bytes(*end),
        })
    }

    /// Reads a local key: its bucket and its parts.
    #[must_use]
    pub fn from_local_key(bytes: &'a [u8]) -> Option<(u64, Self)> {
        let (bucket, rest) = bytes.split_first_chunk::<BUCKET>()?;
        Some((u64::from_be_bytes(*bucket), Self::from_changelog_key(rest)?))
    }

    /// The bytes of the changelog.
    #[must_use]
    pub fn to_changelog_key(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.key.len() + SUFFIX);
        self.push_to(&mut bytes);
        bytes
    }

    /// The bytes of the local store.
    #[must_use]
    pub fn to_local_key(&self, bucket: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BUCKET + self.key.len() + SUFFIX);
        bytes.extend_from_slice(&bucket.to_be_bytes());
        self.push_to(&mut bytes);
        bytes
    }

    fn push_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.key);
        bytes.extend_from_slice(&self.end_ms.to_be_bytes());
        bytes.extend_from_slice(&self.start_ms.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    #[test]
    fn local_key_is_the_bucket_before_the_changelog_key() {
        let key = SessionKey {
            key: b"user-1",
            start_ms: 1_700_000_000_123,
            end_ms: 1_700_000_000_999,
        };
        let local = key.to_local_key(7);
        assert_eq!(local.get(BUCKET..).unwrap(), key.to_changelog_key());
        assert_eq!(SessionKey::from_local_key(&local).unwrap(), (7, key));
    }

    #[test]
    fn short_keys_are_refused() {
        assert_eq!(SessionKey::from_changelog_key(&[0; 15]), None);
        assert_eq!(SessionKey::from_local_key(&[0; 23]), None);
    }
}
