//! Foreign-key joins between tables (`SubscriptionWrapperSerde`, `SubscriptionResponseWrapperSerde`,
//! `CombinedKeySchema`).

use super::io::{CodecError, Reader, invalid, length_i32};

/// The high bit of the first byte says that there is no hash.
const NO_HASH: u8 = 0x80;

/// What the right side is asked to do with a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Forget the subscription and answer nothing.
    DeleteKeyNoPropagate,
    /// Forget the subscription and answer with null.
    DeleteKeyAndPropagate,
    /// Keep the subscription and answer, with null if there is no such foreign value.
    PropagateNullIfNoForeignValue,
    /// Keep the subscription and answer only if there is such a foreign value.
    PropagateOnlyIfForeignValue,
}

impl Instruction {
    fn byte(self) -> u8 {
        match self {
            Instruction::DeleteKeyNoPropagate => 0,
            Instruction::DeleteKeyAndPropagate => 1,
            Instruction::PropagateNullIfNoForeignValue => 2,
            Instruction::PropagateOnlyIfForeignValue => 3,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Instruction::DeleteKeyNoPropagate,
            1 => Instruction::DeleteKeyAndPropagate,
            2 => Instruction::PropagateNullIfNoForeignValue,
            3 => Instruction::PropagateOnlyIfForeignValue,
            _ => return None,
        })
    }
}

/// A subscription of a left row to a foreign key: the value on the registration topic (whose key is the foreign key)
/// and in the subscription store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// The hash of the left value, see [`hash128`](crate::murmur3::hash128); `None` for a null value.
    pub hash: Option<[u8; 16]>,
    /// What to do.
    pub instruction: Instruction,
    /// The left row's serialized key.
    pub primary_key: &'a [u8],
    /// The left row's partition, to which the answer goes; `None` only in the old version 0.
    pub primary_partition: Option<i32>,
}

impl<'a> Subscription<'a> {
    const WHAT: &'static str = "foreign-key subscription";

    /// Appends `version ++ instruction ++ hash ++ primary key`, and with a partition (version 1) that.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_version(u8::from(self.primary_partition.is_some()), self.hash, out);
        out.push(self.instruction.byte());
        out.extend_from_slice(self.hash.as_ref().map_or(&[], |hash| hash));
        out.extend_from_slice(self.primary_key);
        if let Some(partition) = self.primary_partition {
            out.extend_from_slice(&partition.to_be_bytes());
        }
    }

    /// Reads version 0 or 1.
    ///
    /// # Errors
    /// When version or instruction is unknown or the bytes end early.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(Self::WHAT, bytes);
        let first = reader.u8()?;
        let code = reader.u8()?;
        let instruction =
            Instruction::from_byte(code).ok_or_else(|| invalid(Self::WHAT, format!("instruction {code}")))?;
        let hash = take_hash(first, &mut reader)?;
        let rest = reader.rest();
        let (primary_key, primary_partition) = match first & !NO_HASH {
            0 => (rest, None),
            1 => rest
                .split_last_chunk()
                .map(|(key, partition)| (key, Some(i32::from_be_bytes(*partition))))
                .ok_or(CodecError::Truncated {
                    what: Self::WHAT,
                    needed: 4,
                    left: rest.len(),
                })?,
            version => {
                return Err(invalid(
                    Self::WHAT,
                    format!("version {version}, which is not known here"),
                ));
            }
        };
        Ok(Subscription {
            hash,
            instruction,
            primary_key,
            primary_partition,
        })
    }
}

/// The answer to a subscription: the value on the response topic, whose key is the left row's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionResponse<'a> {
    /// The hash that came with the subscription. An answer to a left value that has changed meanwhile is dropped.
    pub hash: Option<[u8; 16]>,
    /// The foreign value; `None` = there is none. On the wire a value of no bytes is the same.
    pub foreign_value: Option<&'a [u8]>,
}

impl<'a> SubscriptionResponse<'a> {
    const WHAT: &'static str = "foreign-key response";

    /// Appends `version 0 ++ hash ++ foreign value`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_version(0, self.hash, out);
        out.extend_from_slice(self.hash.as_ref().map_or(&[], |hash| hash));
        out.extend_from_slice(self.foreign_value.unwrap_or_default());
    }

    /// Reads version 0, the only one.
    ///
    /// # Errors
    /// When the version is unknown or the bytes end early.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(Self::WHAT, bytes);
        let first = reader.u8()?;
        if first & !NO_HASH != 0 {
            return Err(invalid(
                Self::WHAT,
                format!("version {}, which is not known here", first & !NO_HASH),
            ));
        }
        let hash = take_hash(first, &mut reader)?;
        Ok(SubscriptionResponse {
            hash,
            foreign_value: Some(reader.rest()).filter(|value| !value.is_empty()),
        })
    }
}

fn put_version(version: u8, hash: Option<[u8; 16]>, out: &mut Vec<u8>) {
    out.push(if hash.is_some() { version } else { version | NO_HASH });
}

fn take_hash(first: u8, reader: &mut Reader<'_>) -> Result<Option<[u8; 16]>, CodecError> {
    if first & NO_HASH != 0 {
        Ok(None)
    } else {
        reader.array().map(Some)
    }
}

/// The key of the subscription store: `foreign key length4 ++ foreign key ++ primary key`.
///
/// # Errors
/// When the foreign key is longer than 2^31−1 bytes.
pub fn combined_key(foreign_key: &[u8], primary_key: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut out = combined_key_prefix(foreign_key)?;
    out.extend_from_slice(primary_key);
    Ok(out)
}

/// What all keys of the subscription store with this foreign key begin with.
///
/// # Errors
/// When the foreign key is longer than 2^31−1 bytes.
pub fn combined_key_prefix(foreign_key: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut out = length_i32("combined key", foreign_key.len())?.to_be_bytes().to_vec();
    out.extend_from_slice(foreign_key);
    Ok(out)
}

/// The foreign and the primary key of a combined key.
///
/// # Errors
/// When the bytes end early.
pub fn split_combined_key(bytes: &[u8]) -> Result<(&[u8], &[u8]), CodecError> {
    let mut reader = Reader::new("combined key", bytes);
    let length = reader.i32()?;
    let foreign_key = reader.bytes(reader.length(length)?)?;
    Ok((foreign_key, reader.rest()))
}
