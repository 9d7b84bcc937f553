//! Reading and writing the pieces that layouts are made of.

/// Why bytes are not what a layout says, or a value does not fit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The bytes end too early.
    #[error("{what}: {needed} bytes are needed where {left} are left")]
    Truncated {
        /// The layout that was read.
        what: &'static str,
        /// How many bytes the next piece takes.
        needed: usize,
        /// How many there were.
        left: usize,
    },
    /// A piece has a value that the layout does not allow.
    #[error("{what}: {message}")]
    Invalid {
        /// The layout that was read or written.
        what: &'static str,
        /// What is wrong.
        message: String,
    },
}

pub(super) fn invalid(what: &'static str, message: impl Into<String>) -> CodecError {
    CodecError::Invalid {
        what,
        message: message.into(),
    }
}

/// Takes pieces from the front of bytes; every length is checked against what is left.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, what }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], CodecError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(CodecError::Truncated {
            what: self.what,
            needed: count,
            left: self.rest.len(),
        })?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(CodecError::Truncated {
            what: self.what,
            needed: N,
            left: self.rest.len(),
        })?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, CodecError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn i32(&mut self) -> Result<i32, CodecError> {
        self.array().map(i32::from_be_bytes)
    }

    /// The next four bytes, which stay.
    pub(super) fn peek_i32(&self) -> Result<i32, CodecError> {
        let mut ahead = *self;
        ahead.i32()
    }

    pub(super) fn i64(&mut self) -> Result<i64, CodecError> {
        self.array().map(i64::from_be_bytes)
    }

    /// A zig-zag LEB128 of at most 32 bits.
    pub(super) fn varint(&mut self) -> Result<i32, CodecError> {
        let mut raw: u32 = 0;
        for shift in [0u32, 7, 14, 21, 28] {
            let byte = self.u8()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            raw |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()));
            }
        }
        Err(invalid(self.what, "a varint is longer than 32 bits"))
    }

    /// A count or length: not negative.
    pub(super) fn length(&self, value: i32) -> Result<usize, CodecError> {
        usize::try_from(value).map_err(|_| invalid(self.what, format!("a length of {value}")))
    }

    /// Four bytes of length, −1 for null, and that many bytes.
    pub(super) fn nullable(&mut self) -> Result<Option<&'a [u8]>, CodecError> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.bytes(self.length(length)?).map(Some),
        }
    }

    /// Four bytes of length and that many bytes of UTF-8.
    pub(super) fn text(&mut self) -> Result<&'a str, CodecError> {
        let length = self.i32()?;
        self.utf8(self.length(length)?)
    }

    pub(super) fn utf8(&mut self, length: usize) -> Result<&'a str, CodecError> {
        std::str::from_utf8(self.bytes(length)?).map_err(|cause| invalid(self.what, cause.to_string()))
    }

    /// Everything that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many elements to make room for: as many as claimed, but no more than could be there.
    pub(super) fn capacity(&self, claimed: usize, least_bytes_each: usize) -> usize {
        claimed.min(self.rest.len() / least_bytes_each.max(1))
    }

    /// Fails if anything is left.
    pub(super) fn end(&self) -> Result<(), CodecError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(invalid(self.what, format!("{} bytes are left over", self.rest.len())))
    }
}

/// Appends a zig-zag LEB128.
pub(super) fn put_varint(value: i32, out: &mut Vec<u8>) {
    let mut raw = ((value << 1) ^ (value >> 31)).cast_unsigned();
    while raw > 0x7f {
        out.push((raw & 0x7f) as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

/// A length as the wire's 32 signed bits.
pub(super) fn length_i32(what: &'static str, length: usize) -> Result<i32, CodecError> {
    i32::try_from(length).map_err(|_| invalid(what, format!("{length} are too many, the format ends at 2^31-1")))
}

/// Appends four bytes of length, −1 for null, and the bytes.
pub(super) fn put_nullable(what: &'static str, bytes: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let Some(bytes) = bytes else {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    };
    out.extend_from_slice(&length_i32(what, bytes.len())?.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_kafkas() {
        for (value, bytes) in [(5, &[0x0a][..]), (200, &[0x90, 0x03]), (-1, &[0x01]), (0, &[0x00])] {
            let mut out = Vec::new();
            put_varint(value, &mut out);
            assert_eq!(out, bytes);
        }
        for value in [i32::MIN, i32::MAX, -64, 63, 64, 8191, 8192] {
            let mut out = Vec::new();
            put_varint(value, &mut out);
            assert_eq!(Reader::new("varint", &out).varint(), Ok(value));
        }
    }

    #[test]
    fn a_varint_beyond_32_bits_is_refused() {
        assert!(Reader::new("varint", &[0xff, 0xff, 0xff, 0xff, 0x1f]).varint().is_err());
        assert!(Reader::new("varint", &[0xff; 9]).varint().is_err());
    }
}
