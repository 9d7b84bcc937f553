//! A shared serde is a serde, so that one can be put into another (`OptionSerde`, `TimeWindowed`).

use std::sync::Arc;

use super::{Serde, SerdeError};

impl<T: 'static, S: Serde<T> + ?Sized> Serde<T> for Arc<S> {
    fn serialize(&self, topic: &str, value: &T, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        (**self).serialize(topic, value, out)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<T, SerdeError> {
        (**self).deserialize(topic, bytes)
    }

    fn deserialize_into(&self, topic: &str, bytes: Option<&[u8]>, into: &mut T) -> Result<(), SerdeError> {
        (**self).deserialize_into(topic, bytes, into)
    }

    fn is_null(&self, value: &T) -> bool {
        (**self).is_null(value)
    }

    fn partition_bytes<'b>(&self, serialized: &'b [u8]) -> &'b [u8] {
        (**self).partition_bytes(serialized)
    }

    fn list_element_size(&self) -> Option<usize> {
        (**self).list_element_size()
    }

    fn format(&self) -> String {
        (**self).format()
    }
}
