//! Keys of window stores (`WindowKeySchema`, `PrefixedWindowKeySchemas`).

use super::io::{CodecError, invalid};

const WHAT: &str = "window key";

/// A window store's key: the key's bytes, the window's start (ms since the Unix epoch), a sequence number that tells
/// duplicates apart (0 where there are none). The same bytes are the key of the changelog record.
///
/// ```
/// use streams_core::codec::WindowKey;
/// let mut bytes = Vec::new();
/// WindowKey { key: b"a", start_ms: 1, sequence: 2 }.encode(&mut bytes);
/// assert_eq!(WindowKey::decode(&bytes)?, WindowKey { key: b"a", start_ms: 1, sequence: 2 });
/// # Ok::<(), streams_core::codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowKey<'a> {
    /// The serialized key.
    pub key: &'a [u8],
    /// The window's start, milliseconds since the Unix epoch.
    pub start_ms: i64,
    /// Which of several records of one key and start; 0 where duplicates are not kept.
    pub sequence: i32,
}

impl<'a> WindowKey<'a> {
    /// Appends `key ++ start8 ++ sequence4`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key);
        out.extend_from_slice(&self.start_ms.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
    }

    /// Appends the time-first form of an emit-final store: `00 ++ start8 ++ key ++ sequence4`.
    pub fn encode_time_first(&self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.start_ms.to_be_bytes());
        out.extend_from_slice(self.key);
        out.extend_from_slice(&self.sequence.to_be_bytes());
    }

    /// Appends the index form of an emit-final store: `01 ++ key ++ start8 ++ sequence4`.
    pub fn encode_key_first(&self, out: &mut Vec<u8>) {
        out.push(1);
        self.encode(out);
    }

    /// Reads `key ++ start8 ++ sequence4`.
    ///
    /// # Errors
    /// When there are fewer than 12 bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let (rest, sequence) = bytes.split_last_chunk().ok_or_else(too_short)?;
        let (key, start) = rest.split_last_chunk().ok_or_else(too_short)?;
        Ok(WindowKey {
            key,
            start_ms: i64::from_be_bytes(*start),
            sequence: i32::from_be_bytes(*sequence),
        })
    }

    /// Reads the time-first form.
    ///
    /// # Errors
    /// When there are fewer than 13 bytes or the first one is not 0.
    pub fn decode_time_first(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let rest = bytes
            .strip_prefix(&[0])
            .ok_or_else(|| invalid(WHAT, "the time-first form begins with 0"))?;
        let (start, rest) = rest.split_first_chunk().ok_or_else(too_short)?;
        let (key, sequence) = rest.split_last_chunk().ok_or_else(too_short)?;
        Ok(WindowKey {
            key,
            start_ms: i64::from_be_bytes(*start),
            sequence: i32::from_be_bytes(*sequence),
        })
    }

    /// Reads the index form.
    ///
    /// # Errors
    /// When there are fewer than 13 bytes or the first one is not 1.
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
        "it ends with 8 bytes of window start and 4 of sequence number, and is shorter",
    )
}

/// The sequence number after this one: it stays positive and wraps to 0. The first of a new store is 1.
#[must_use]
pub fn next_sequence(sequence: i32) -> i32 {
    sequence.wrapping_add(1) & i32::MAX
}

/// The least store key of one key from a time (ms) on (`lowerRangeFixedSize`). Times before 0 count as 0.
#[must_use]
pub fn window_lower_bound(key: &[u8], from_ms: i64) -> Vec<u8> {
    bound(key, from_ms.max(0), 0)
}

/// The greatest store key of one key up to a time (ms), inclusive (`upperRangeFixedSize`).
#[must_use]
pub fn window_upper_bound(key: &[u8], to_ms: i64) -> Vec<u8> {
    bound(key, to_ms, i32::MAX)
}

/// A lower bound of all store keys whose key is `key` or greater (`lowerRange`).
#[must_use]
pub fn window_lower_range(key: &[u8]) -> Vec<u8> {
    bound(key, 0, 0)
}

/// An upper bound of all store keys whose key is `key` or less and whose start is at most `to_ms` (`upperRange`,
/// `OrderedBytes.upperRange`): keys are not of one length, so the suffix may compare with bytes of a longer key.
#[must_use]
pub fn window_upper_range(key: &[u8], to_ms: i64) -> Vec<u8> {
    let suffix = bound(&[], to_ms, i32::MAX);
    let first = suffix.first().copied().unwrap_or_default();
    let kept = match first {
        0 => key.len(),
        // The first byte of the key always stays; the rest as long as it is not less than the suffix's first byte.
        _ => key.iter().skip(1).take_while(|byte| **byte >= first).count() + key.len().min(1),
    };
    let mut out: Vec<u8> = key.iter().copied().take(kept).collect();
    out.extend_from_slice(&suffix);
    out
}

fn bound(key: &[u8], time_ms: i64, sequence: i32) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 12);
    WindowKey {
        key,
        start_ms: time_ms,
        sequence,
    }
    .encode(&mut out);
    out
}
