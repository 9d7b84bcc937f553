//! Keys of session stores (`SessionKeySchema`, `PrefixedSessionKeySchemas`): the end comes before the start.

use super::io::{CodecError, invalid};

const WHAT: &str = "session key";

/// A session store's key: the key's bytes and the session's first and last time (ms since the Unix epoch). The same
/// bytes are the key of the changelog record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionKey<'a> {
    /// The serialized key.
    pub key: &'a [u8],
    /// The session's first time, ms.
    pub start_ms: i64,
    /// The session's last time, ms.
    pub end_ms: i64,
}

impl<'a> SessionKey<'a> {
    /// Appends `key ++ end8 ++ start8`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key);
        out.extend_from_slice(&self.end_ms.to_be_bytes());
        out.extend_from_slice(&self.start_ms.to_be_bytes());
    }

    /// Appends the time-first form of an emit-final store: `00 ++ end8 ++ start8 ++ key`.
    pub fn encode_time_first(&self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.end_ms.to_be_bytes());
        out.extend_from_slice(&self.start_ms.to_be_bytes());
        out.extend_from_slice(self.key);
    }

    /// Appends the index form of an emit-final store: `01 ++ key ++ end8 ++ start8`.
    pub fn encode_key_first(&self, out: &mut Vec<u8>) {
        out.push(1);
        self.encode(out);
    }

    /// Reads `key ++ end8 ++ start8`.
    ///
    /// # Errors
    /// When there are fewer than 16 bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let (rest, start) = bytes.split_last_chunk().ok_or_else(too_short)?;
        let (key, end) = rest.split_last_chunk().ok_or_else(too_short)?;
        Ok(SessionKey {
            key,
            start_ms: i64::from_be_bytes(*start),
            end_ms: i64::from_be_bytes(*end),
        })
    }

    /// Reads the time-first form.
    ///
    /// # Errors
    /// When there are fewer than 17 bytes or the first one is not 0.
    pub fn decode_time_first(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let rest = bytes
            .strip_prefix(&[0])
            .ok_or_else(|| invalid(WHAT, "the time-first form begins with 0"))?;
        let (end, rest) = rest.split_first_chunk().ok_or_else(too_short)?;
        let (start, key) = rest.split_first_chunk().ok_or_else(too_short)?;
        Ok(SessionKey {
            key,
            start_ms: i64::from_be_bytes(*start),
            end_ms: i64::from_be_bytes(*end),
        })
    }

    /// Reads the index form.
    ///
    /// # Errors
    /// When there are fewer than 17 bytes or the first one is not 1.
    pub fn decode_key_first(bytes: &'a [u8]) -> Result<Self, CodecError> {
        Self::decode(
            bytes
                .strip_prefix(&[1])
                .ok_or_else(|| invalid(WHAT, "the index form begins with 1"))?,
        )
    }
}

fn too_short() -> CodecError {
    invalid(
        WHAT,
        "it has 8 bytes of session end and 8 of session start, and is shorter",
    )
}

/// The least store key of a key's sessions that end at or after a time (ms) (`lowerRangeFixedSize`). Times before 0
/// count as 0.
#[must_use]
pub fn session_lower_bound(key: &[u8], earliest_end_ms: i64) -> Vec<u8> {
    bound(SessionKey {
        key,
        start_ms: 0,
        end_ms: earliest_end_ms.max(0),
    })
}

/// The greatest store key of a key's sessions that start at or before a time (ms) (`upperRangeFixedSize`).
#[must_use]
pub fn session_upper_bound(key: &[u8], latest_start_ms: i64) -> Vec<u8> {
    bound(SessionKey {
        key,
        start_ms: latest_start_ms,
        end_ms: i64::MAX,
    })
}

fn bound(key: SessionKey<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.key.len() + 16);
    key.encode(&mut out);
    out
}
