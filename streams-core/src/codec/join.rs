//! The shared store of left and outer stream joins (`TimestampedKeyAndJoinSideSerializer`,
//! `LeftOrRightValueSerializer`): records that have found no partner yet, ordered by time.

use super::io::{CodecError, Reader, invalid};

/// Which stream of a join a record came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JoinSide {
    /// The stream that `join` was called on.
    Left,
    /// The stream that it was joined with.
    Right,
}

impl JoinSide {
    fn byte(self) -> u8 {
        match self {
            JoinSide::Left => 1,
            JoinSide::Right => 0,
        }
    }

    fn read(reader: &mut Reader<'_>, what: &'static str) -> Result<Self, CodecError> {
        match reader.u8()? {
            1 => Ok(JoinSide::Left),
            0 => Ok(JoinSide::Right),
            other => Err(invalid(what, format!("side {other} is neither 1 (left) nor 0 (right)"))),
        }
    }
}

/// A key of the shared store: `time8 ++ side1 ++ key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampedSideKey<'a> {
    /// The record's event time, ms since the Unix epoch.
    pub timestamp_ms: i64,
    /// Which side it came from.
    pub side: JoinSide,
    /// The serialized key.
    pub key: &'a [u8],
}

impl<'a> TimestampedSideKey<'a> {
    /// Appends the byte form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        out.push(self.side.byte());
        out.extend_from_slice(self.key);
    }

    /// Reads the byte form.
    ///
    /// # Errors
    /// When there are fewer than 9 bytes or the side is unknown.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new("join key", bytes);
        let timestamp_ms = reader.i64()?;
        let side = JoinSide::read(&mut reader, "join key")?;
        Ok(TimestampedSideKey {
            timestamp_ms,
            side,
            key: reader.rest(),
        })
    }
}

/// Appends an element of the shared store's list: `side1 ++ value`.
pub fn encode_side_value(side: JoinSide, value: &[u8], out: &mut Vec<u8>) {
    out.push(side.byte());
    out.extend_from_slice(value);
}

/// Reads an element of the shared store's list.
///
/// # Errors
/// When there are no bytes or the side is unknown.
pub fn decode_side_value(bytes: &[u8]) -> Result<(JoinSide, &[u8]), CodecError> {
    let mut reader = Reader::new("join value", bytes);
    Ok((JoinSide::read(&mut reader, "join value")?, reader.rest()))
}
