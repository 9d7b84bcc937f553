//! Reading the stored form of values.

use std::sync::Arc;

use super::managed::ValueAndTimestamp;
use crate::TaskId;
use crate::error::{Error, ProcessResult};
use crate::serde::{Serde, SerdeError, SharedSerde};

/// Reads stored values apart from their store: for lists of rows that outlive the look-up.
pub(super) struct Decoder<V> {
    pub(super) value: SharedSerde<V>,
    pub(super) topic: Arc<str>,
    pub(super) store: Arc<str>,
    pub(super) task: TaskId,
    pub(super) timestamped: bool,
    /// The time of rows that have none of their own, ms since the Unix epoch.
    pub(super) timestamp_ms: i64,
}

impl<V: 'static> Decoder<V> {
    pub(super) fn decode(&self, bytes: &[u8]) -> ProcessResult<ValueAndTimestamp<V>> {
        read_stored_value(&*self.value, &self.topic, self.timestamped, self.timestamp_ms, bytes)
            .map_err(|source| self.unreadable(&source))
    }

    pub(super) fn unreadable(&self, source: &SerdeError) -> Box<Error> {
        unreadable(self.task, &self.store, source)
    }
}

/// `ts8 ++ value` in a timestamped store; a plain one has the context's time.
pub(crate) fn read_stored_value<V: 'static>(
    serde: &dyn Serde<V>,
    topic: &str,
    timestamped: bool,
    context_ms: i64,
    bytes: &[u8],
) -> Result<ValueAndTimestamp<V>, SerdeError> {
    let (timestamp_ms, bytes) = match (timestamped, bytes.split_first_chunk::<8>()) {
        (true, Some((time, rest))) => (i64::from_be_bytes(*time), rest),
        (true, None) => (-1, bytes),
        (false, _) => (context_ms, bytes),
    };
    let value = serde.deserialize(topic, Some(bytes))?;
    Ok(ValueAndTimestamp { value, timestamp_ms })
}

/// A stored row that is not of its type.
pub(super) fn unreadable(task: TaskId, store: &str, source: &SerdeError) -> Box<Error> {
    let reason = format!(
        "a stored row can't be read ({source}): the serde or the type changed under existing state; go back to the old one, or let the store be rebuilt under another name"
    );
    Box::new(Error::TaskCorrupted {
        task,
        store: store.to_owned(),
        reason,
    })
}
