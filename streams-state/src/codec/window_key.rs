//! Window keys: the changelog's bytes are Java's, the local layout is ours.
//!
//! Changelog key: `key ++ start (8) ++ sequence number (4)`, big-endian (`WindowKeySchema`). Local key: the same behind
//! an 8-byte big-endian time bucket, `start / segment interval`, so that a bucket of old rows is one range of keys.

/// Bytes behind the key in a changelog key.
pub const SUFFIX: usize = 12;
/// Bytes of the bucket before a local key.
pub const BUCKET: usize = 8;
/// The largest sequence number (`0x7fffffff`, then Java's counter starts again at 0).
pub const MAX_SEQUENCE: u32 = i32::MAX as u32;

/// The parts of a window key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowKey<'a> {
    /// The serialized key.
    pub key: &'a [u8],
    /// Start of the window, milliseconds of event time.
    pub start_ms: i64,
    /// Sequence number; 0 unless duplicates are retained.
    pub sequence: u32,
}

impl<'a> WindowKey<'a> {
    /// Reads a changelog key; `None` if it is too short.
    ///
    /// ```
    /// use streams_state::codec::window_key::WindowKey;
    /// let bytes = WindowKey { key: b"k", start_ms: 10_000, sequence: 1 }.to_changelog_key();
    /// assert_eq!(bytes, b"k\0\0\0\0\0\0\x27\x10\0\0\0\x01");
    /// assert_eq!(WindowKey::from_changelog_key(&bytes).unwrap().start_ms, 10_000);
    /// ```
    #[must_use]
    pub fn from_changelog_key(bytes: &'a [u8]) -> Option<Self> {
        let (key, suffix) = bytes.split_at_checked(bytes.len().checked_sub(SUFFIX)?)?;
        let (start, sequence) = suffix.split_first_chunk::<8>()?;
        let start_ms = i64::from_be_bytes(*start);
        Some(Self {
            key,
            start_ms,
            sequence: u32::from_be_bytes(sequence.try_into().ok()?),
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
        bytes.extend_from_slice(&self.start_ms.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
    }
}

/// Bucket of a window start; starts below 0 share the first bucket.
#[must_use]
pub fn bucket_of(start_ms: i64, segment_interval_ms: i64) -> u64 {
    (start_ms.max(0) / segment_interval_ms.max(1)).unsigned_abs()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    #[test]
    fn local_key_is_the_bucket_before_the_changelog_key() {
        let key = WindowKey {
            key: b"user-1",
            start_ms: 1_700_000_000_123,
            sequence: 7,
        };
        let local = key.to_local_key(bucket_of(key.start_ms, 60_000));
        assert_eq!(local.get(BUCKET..).unwrap(), key.to_changelog_key());
        assert_eq!(WindowKey::from_local_key(&local).unwrap(), (28_333_333, key));
    }

    #[test]
    fn short_keys_are_refused() {
        assert_eq!(WindowKey::from_changelog_key(&[0; 11]), None);
        assert_eq!(WindowKey::from_local_key(&[0; 19]), None);
        let empty = WindowKey {
            key: &[],
            start_ms: 0,
            sequence: 0,
        };
        assert_eq!(WindowKey::from_local_key(&[0; 20]), Some((0, empty)));
    }
}
