//! A table's update on a repartition topic (`ChangedSerializer`, `ChangedDeserializer`). The last byte says what
//! there is: 0 old, 1 new, 2 `varint(new length) ++ new ++ old`; 3, 4, 5 the same with an is-latest byte before it,
//! which Java 4.3 and 4.4 read but do not write, and so do we.

use super::io::{CodecError, Reader, invalid, length_i32, put_varint};

const WHAT: &str = "table change";

/// A change as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeBytes<'a> {
    /// The new value; `None` = deleted, or not in this record.
    pub new: Option<&'a [u8]>,
    /// The old value; `None` = absent, or not in this record.
    pub old: Option<&'a [u8]>,
    /// False only if the writer said that a newer version exists.
    pub is_latest: bool,
}

/// Appends the byte form of a change.
///
/// # Errors
/// When both are null (there is nothing to tell), or the new value is longer than 2^31−1 bytes.
pub fn encode_change(new: Option<&[u8]>, old: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let flag = match (new, old) {
        (None, None) => {
            return Err(invalid(
                WHAT,
                "neither an old nor a new value: a change without either is not sent",
            ));
        }
        (None, Some(_)) => 0,
        (Some(_), None) => 1,
        (Some(new), Some(_)) => {
            put_varint(length_i32(WHAT, new.len())?, out);
            2
        }
    };
    out.extend_from_slice(new.unwrap_or_default());
    out.extend_from_slice(old.unwrap_or_default());
    out.push(flag);
    Ok(())
}

/// Reads a change.
///
/// # Errors
/// When the flag is unknown or the bytes end early.
pub fn decode_change(bytes: &[u8]) -> Result<ChangeBytes<'_>, CodecError> {
    let (flag, mut body) = bytes.split_last().ok_or_else(|| invalid(WHAT, "no bytes"))?;
    let mut is_latest = true;
    if *flag >= 3 {
        let (latest, rest) = body
            .split_last()
            .ok_or_else(|| invalid(WHAT, "the is-latest byte is missing"))?;
        is_latest = *latest == 1;
        body = rest;
    }
    let (new, old) = match flag {
        0 | 3 => (None, Some(body)),
        1 | 4 => (Some(body), None),
        2 | 5 => {
            let mut reader = Reader::new(WHAT, body);
            let length = reader.varint()?;
            let new = reader.bytes(reader.length(length)?)?;
            (Some(new), Some(reader.rest()))
        }
        _ => {
            return Err(invalid(
                WHAT,
                format!("flag {flag}; a newer version may have written it"),
            ));
        }
    };
    Ok(ChangeBytes { new, old, is_latest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_that_java_reads_but_does_not_write_are_read() {
        let change = |new, old, is_latest| Ok(ChangeBytes { new, old, is_latest });
        assert_eq!(decode_change(b"o\x00\x03"), change(None, Some(&b"o"[..]), false));
        assert_eq!(decode_change(b"n\x01\x04"), change(Some(&b"n"[..]), None, true));
        assert_eq!(
            decode_change(b"\x02no\x00\x05"),
            change(Some(&b"n"[..]), Some(&b"o"[..]), false)
        );
    }

    #[test]
    fn a_change_of_nothing_and_an_unknown_flag_are_refused() {
        assert!(encode_change(None, None, &mut Vec::new()).is_err());
        assert!(decode_change(b"x\x06").is_err());
        assert!(decode_change(b"").is_err());
        assert!(decode_change(b"\x03").is_err());
        assert!(decode_change(b"\x0ano\x02").is_err());
    }
}
