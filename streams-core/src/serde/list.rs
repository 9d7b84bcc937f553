//! Lists (`ListSerializer`, `ListDeserializer`).

use super::primitives::{convert_error, null_of};
use super::{Serde, SerdeError};
use crate::codec::{ListEncoding, decode_list, encode_list};

/// A list of what the inner serde reads, in Java's list format.
///
/// Elements of fixed size (short, integer, long, float, double, UUID) are packed, others carry their length; nulls
/// are kept, so a list that may have some is a `Vec<Option<T>>` with an [`OptionSerde`](super::OptionSerde).
///
/// ```
/// use streams_core::serde::{List, Serde, Utf8};
/// let mut bytes = Vec::new();
/// List(Utf8).serialize("topic", &vec!["a".to_owned()], &mut bytes)?;
/// assert_eq!(bytes, [1, 0, 0, 0, 1, 0, 0, 0, 1, b'a']);
/// # Ok::<(), streams_core::SerdeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct List<S>(
    /// The serde of one element.
    pub S,
);

impl<S> List<S> {
    fn encoding<T>(&self) -> ListEncoding
    where
        S: Serde<T>,
    {
        self.0
            .list_element_size()
            .map_or(ListEncoding::Variable, ListEncoding::Fixed)
    }
}

impl<T, S: Serde<T>> Serde<Vec<T>> for List<S> {
    fn serialize(&self, topic: &str, value: &Vec<T>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        // One buffer for all elements; the ranges say which is which, and which is null.
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(value.len());
        for element in value {
            let present = self.0.serialize(topic, element, &mut bytes)?;
            ends.push((bytes.len(), present));
        }
        let mut start = 0;
        let elements = ends.iter().map(|&(end, present)| {
            let element = bytes.get(start..end).filter(|_| present);
            start = end;
            element
        });
        encode_list(self.encoding(), elements, out).map_err(convert_error::<Vec<T>>)?;
        Ok(true)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Vec<T>, SerdeError> {
        let elements =
            decode_list(self.encoding(), bytes.ok_or_else(null_of::<Vec<T>>)?).map_err(convert_error::<Vec<T>>)?;
        elements
            .into_iter()
            .map(|element| self.0.deserialize(topic, element))
            .collect()
    }

    fn format(&self) -> String {
        format!("list({})", self.0.format())
    }
}
