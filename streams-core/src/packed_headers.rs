//! Record headers as one run of bytes, so that a batch needs no allocation per header.
//!
//! Layout of one header: name length (u32 LE), value length (u32 LE, `u32::MAX` = null), name bytes, value bytes.
//! It never leaves the process; Kafka's own layout is librdkafka's business.

use std::iter::FusedIterator;

const NULL: u32 = u32::MAX;

/// Appends one header. Returns false, and appends nothing, when name or value is longer than Kafka's own limit
/// (`i32::MAX` bytes).
pub(crate) fn append(arena: &mut Vec<u8>, name: &str, value: Option<&[u8]>) -> bool {
    let (Some(name_len), Some(value_len)) = (length(name.as_bytes()), value.map_or(Some(NULL), length)) else {
        return false;
    };
    arena.extend_from_slice(&name_len.to_le_bytes());
    arena.extend_from_slice(&value_len.to_le_bytes());
    arena.extend_from_slice(name.as_bytes());
    arena.extend_from_slice(value.unwrap_or_default());
    true
}

/// A length that Kafka can carry: at most `i32::MAX`.
pub(crate) fn length(bytes: &[u8]) -> Option<u32> {
    i32::try_from(bytes.len()).ok().and_then(|len| u32::try_from(len).ok())
}

/// The headers of one record in their order: name and nullable value.
#[derive(Clone, Debug, Default)]
pub struct HeaderIter<'a>(&'a [u8]);

impl<'a> HeaderIter<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        HeaderIter(packed)
    }

    /// Whether there is no header left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = (&'a str, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name_len, rest) = self.0.split_first_chunk::<4>()?;
        let (value_len, rest) = rest.split_first_chunk::<4>()?;
        let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*name_len) as usize)?;
        let value_len = u32::from_le_bytes(*value_len);
        let (value, rest) = match value_len {
            NULL => (None, rest),
            len => rest
                .split_at_checked(len as usize)
                .map(|(value, rest)| (Some(value), rest))?,
        };
        let name = std::str::from_utf8(name).ok()?;
        // Last, so that what ends here has ended for good.
        self.0 = rest;
        Some((name, value))
    }
}

impl FusedIterator for HeaderIter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_empty_and_repeated_headers_come_back_in_order() {
        let mut arena = Vec::new();
        for (name, value) in [("a", Some(&b"1"[..])), ("a", None), ("", Some(&b""[..]))] {
            assert!(append(&mut arena, name, value));
        }
        let back: Vec<_> = HeaderIter::new(&arena).collect();
        assert_eq!(back, [("a", Some(&b"1"[..])), ("a", None), ("", Some(&b""[..]))]);
    }

    #[test]
    fn cut_bytes_end_the_iteration() {
        let mut arena = Vec::new();
        append(&mut arena, "name", Some(b"value"));
        for cut in 0..arena.len() {
            assert_eq!(HeaderIter::new(&arena[..cut]).count(), 0, "cut at {cut}");
        }
    }
}
