//! Updates of a table on a repartition topic (`ChangedSerializer`, `ChangedDeserializer`).

use super::primitives::{convert_error, null_of};
use super::{Serde, SerdeError};
use crate::Change;
use crate::codec::{decode_change, encode_change};

/// The old and new value of a table's update as one record value. A change without either cannot be written:
/// there is nothing to tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeSerde<S>(
    /// The serde of the table's values.
    pub S,
);

impl<V, S: Serde<V>> Serde<Change<V>> for ChangeSerde<S> {
    fn serialize(&self, topic: &str, value: &Change<V>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let new = to_bytes(&self.0, topic, value.new.as_ref())?;
        let old = to_bytes(&self.0, topic, value.old.as_ref())?;
        encode_change(new.as_deref(), old.as_deref(), out).map_err(convert_error::<Change<V>>)?;
        Ok(true)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Change<V>, SerdeError> {
        let change = decode_change(bytes.ok_or_else(null_of::<Change<V>>)?).map_err(convert_error::<Change<V>>)?;
        let read = |bytes: Option<&[u8]>| bytes.map(|bytes| self.0.deserialize(topic, Some(bytes))).transpose();
        Ok(Change {
            new: read(change.new)?,
            old: read(change.old)?,
            is_latest: change.is_latest,
        })
    }

    fn format(&self) -> String {
        format!("change({})", self.0.format())
    }
}

fn to_bytes<V>(serde: &impl Serde<V>, topic: &str, value: Option<&V>) -> Result<Option<Vec<u8>>, SerdeError> {
    let mut bytes = Vec::new();
    let present = value.map_or(Ok(false), |value| serde.serialize(topic, value, &mut bytes))?;
    Ok(present.then_some(bytes))
}
