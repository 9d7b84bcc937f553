//! Nullable values.

use super::{DefaultSerde, Serde, SerdeError};

/// `Option<T>`: `None` is Kafka's null, `Some` is what the inner serde makes of it.
///
/// ```
/// use streams_core::serde::{DefaultSerde, OptionSerde, Long, Serde};
/// let serde = OptionSerde(Long);
/// assert_eq!(serde.deserialize("topic", None)?, None);
/// assert!(serde.is_null(&None));
/// # Ok::<(), streams_core::SerdeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionSerde<S>(
    /// The serde of what is there.
    pub S,
);

impl<T, S: Serde<T>> Serde<Option<T>> for OptionSerde<S> {
    fn serialize(&self, topic: &str, value: &Option<T>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        value
            .as_ref()
            .map_or(Ok(false), |value| self.0.serialize(topic, value, out))
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Option<T>, SerdeError> {
        bytes.map(|bytes| self.0.deserialize(topic, Some(bytes))).transpose()
    }

    fn deserialize_into(&self, topic: &str, bytes: Option<&[u8]>, into: &mut Option<T>) -> Result<(), SerdeError> {
        match (bytes, into) {
            (Some(_), Some(value)) => self.0.deserialize_into(topic, bytes, value),
            (_, into) => {
                *into = self.deserialize(topic, bytes)?;
                Ok(())
            }
        }
    }

    fn is_null(&self, value: &Option<T>) -> bool {
        value.as_ref().is_none_or(|value| self.0.is_null(value))
    }

    fn partition_bytes<'b>(&self, serialized: &'b [u8]) -> &'b [u8] {
        self.0.partition_bytes(serialized)
    }

    fn list_element_size(&self) -> Option<usize> {
        self.0.list_element_size()
    }

    fn format(&self) -> String {
        self.0.format()
    }
}

impl<T: DefaultSerde> DefaultSerde for Option<T> {
    type Serde = OptionSerde<T::Serde>;
}
