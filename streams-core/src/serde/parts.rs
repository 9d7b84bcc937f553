//! Parts of a key, and of an aggregate that is put together from them (two-phase aggregation).

use std::collections::BTreeMap;

use super::primitives::{convert_error, null_of};
use super::{Serde, SerdeError};

/// One of several parts of a thing, by its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part<T> {
    /// What it is a part of, or what it holds.
    pub of: T,
    /// Its number, from 0.
    pub number: u32,
}

/// Parts of keys: the key's bytes, then the part's number (4 bytes, big-endian). Null if the key is.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartOfKey<S>(
    /// The serde of the key.
    pub S,
);

impl<K, S: Serde<K>> Serde<Part<K>> for PartOfKey<S> {
    fn serialize(&self, topic: &str, value: &Part<K>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let present = self.0.serialize(topic, &value.of, out)?;
        if present {
            out.extend_from_slice(&value.number.to_be_bytes());
        }
        Ok(present)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Part<K>, SerdeError> {
        let parts = bytes.ok_or_else(null_of::<Part<K>>)?.split_last_chunk();
        let (key, number) = parts
            .ok_or_else(|| convert_error::<Part<K>>("a part of a key ends with the 4 bytes of the part's number"))?;
        Ok(Part {
            of: self.0.deserialize(topic, Some(key))?,
            number: u32::from_be_bytes(*number),
        })
    }

    fn is_null(&self, value: &Part<K>) -> bool {
        self.0.is_null(&value.of)
    }

    fn format(&self) -> String {
        format!("part-of({})", self.0.format())
    }
}

/// Parts of values, which may be gone: the part's number (4 bytes, big-endian), then the value's bytes behind a 1, or a 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartOfValue<S>(
    /// The serde of the value.
    pub S,
);

impl<V, S: Serde<V>> Serde<Part<Option<V>>> for PartOfValue<S> {
    fn serialize(&self, topic: &str, value: &Part<Option<V>>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        out.extend_from_slice(&value.number.to_be_bytes());
        let mark = out.len();
        out.push(0);
        if let Some(value) = &value.of {
            let present = self.0.serialize(topic, value, out)?;
            if let Some(byte) = out.get_mut(mark) {
                *byte = u8::from(present);
            }
        }
        Ok(true)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Part<Option<V>>, SerdeError> {
        let parts = bytes.ok_or_else(null_of::<Part<V>>)?.split_first_chunk::<5>();
        let wrong = || convert_error::<Part<V>>("a part begins with the 4 bytes of its number, and a 0 or a 1");
        let ([number @ .., present], value) = parts.ok_or_else(wrong)?;
        let of = match (present, value) {
            (0, []) => None,
            (1, value) => Some(self.0.deserialize(topic, Some(value))?),
            _ => return Err(wrong()),
        };
        Ok(Part {
            of,
            number: u32::from_be_bytes(*number),
        })
    }

    fn format(&self) -> String {
        format!("part({})", self.0.format())
    }
}

/// The parts that a thing is put together from, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts<V>(
    /// The parts.
    pub BTreeMap<u32, V>,
);

/// Parts together: for each, by ascending number, its number, the length of its bytes (4 bytes each, big-endian) and its
/// bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartsList<S>(
    /// The serde of the values.
    pub S,
);

impl<V, S: Serde<V>> Serde<Parts<V>> for PartsList<S> {
    fn serialize(&self, topic: &str, value: &Parts<V>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        for (number, value) in &value.0 {
            out.extend_from_slice(&number.to_be_bytes());
            let (before, length_at) = (out.len() + 4, out.len());
            out.extend_from_slice(&[0; 4]);
            self.0.serialize(topic, value, out)?;
            let length = u32::try_from(out.len().saturating_sub(before))
                .map_err(|_| convert_error::<Parts<V>>("a part has more than 4 GiB"))?;
            if let Some(bytes) = out.get_mut(length_at..before) {
                bytes.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(true)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Parts<V>, SerdeError> {
        let mut rest = bytes.ok_or_else(null_of::<Parts<V>>)?;
        let cut_off = || convert_error::<Parts<V>>("a list of parts ends within one");
        let mut parts = BTreeMap::new();
        while !rest.is_empty() {
            let (number, after) = rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
            let (length, after) = after.split_first_chunk::<4>().ok_or_else(cut_off)?;
            let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| cut_off())?;
            let (value, after) = after.split_at_checked(length).ok_or_else(cut_off)?;
            parts.insert(u32::from_be_bytes(*number), self.0.deserialize(topic, Some(value))?);
            rest = after;
        }
        Ok(Parts(parts))
    }

    fn format(&self) -> String {
        format!("parts({})", self.0.format())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::serde::{Long, Utf8};

    fn bytes<T: 'static>(serde: &dyn Serde<T>, value: &T) -> Vec<u8> {
        let mut out = b"before".to_vec();
        assert!(serde.serialize("topic", value, &mut out).unwrap());
        out.split_off(6)
    }

    #[test]
    fn parts_are_read_back_from_the_bytes_that_are_stated() {
        let key = Part {
            of: "ann".to_owned(),
            number: 258,
        };
        assert_eq!(bytes(&PartOfKey(Utf8), &key), b"ann\0\0\x01\x02");
        assert_eq!(
            PartOfKey(Utf8).deserialize("topic", Some(b"ann\0\0\x01\x02")).unwrap(),
            key
        );
        for (value, written) in [(None, &b"\0\0\0\x07\0"[..]), (Some("x".to_owned()), b"\0\0\0\x07\x01x")] {
            let part = Part { of: value, number: 7 };
            assert_eq!(bytes(&PartOfValue(Utf8), &part), written);
            assert_eq!(PartOfValue(Utf8).deserialize("topic", Some(written)).unwrap(), part);
        }
        let parts = Parts([(1, "b".to_owned()), (0, String::new())].into());
        let written = b"\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01b";
        assert_eq!(bytes(&PartsList(Utf8), &parts), written);
        assert_eq!(PartsList(Utf8).deserialize("topic", Some(written)).unwrap(), parts);
    }

    #[test]
    fn bytes_that_are_cut_off_are_refused() {
        let written = bytes(&PartsList(Long), &Parts([(0, 1_i64), (3, -1)].into()));
        for length in (1..written.len()).filter(|length| *length != 16) {
            let cut = written.get(..length);
            assert!(PartsList(Long).deserialize("topic", cut).is_err(), "{length}");
        }
        assert!(PartOfKey(Long).deserialize("topic", Some(&[0; 3])).is_err());
        assert!(PartOfValue(Long).deserialize("topic", Some(&[0, 0, 0, 0, 2])).is_err());
        assert!(
            PartOfValue(Long)
                .deserialize("topic", Some(&[0, 0, 0, 0, 0, 1]))
                .is_err()
        );
    }
}
