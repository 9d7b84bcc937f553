//! Global stores: every instance has all rows; filled by one global task, read by every stream thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_state::StateReader;

use super::ValueAndTimestamp;
use crate::error::{Error, ProcessResult};
use crate::processor::TaskContext;
use crate::serde::SharedSerde;

/// The global stores of an application, readable from every thread. What is read is what was last applied; as in Java
/// there is no order between a global store's updates and a stream's records.
#[derive(Clone, Debug, Default)]
pub struct GlobalStores {
    readers: BTreeMap<Arc<str>, StateReader>,
}

impl GlobalStores {
    /// Global stores by name, each with a reader of the state it lies in.
    #[must_use]
    pub fn new(readers: BTreeMap<Arc<str>, StateReader>) -> Self {
        GlobalStores { readers }
    }

    pub(crate) fn reader(&self, store: &str) -> Option<&StateReader> {
        self.readers.get(store)
    }
}

/// A global key-value store, typed, to look up rows.
pub struct GlobalStore<K, V> {
    name: Arc<str>,
    reader: StateReader,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
}

impl<K: 'static, V: 'static> GlobalStore<K, V> {
    pub(crate) fn new(name: Arc<str>, reader: StateReader, key: SharedSerde<K>, value: SharedSerde<V>) -> Self {
        GlobalStore {
            name,
            reader,
            key,
            value,
        }
    }

    /// A row with its event time (ms since the Unix epoch); `None` if there is none, or the key is null.
    ///
    /// # Errors
    /// When the row can't be read.
    pub fn get(&self, cx: &TaskContext, key: &K) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        let task = cx.task();
        let corrupted = |reason: String| {
            Box::new(Error::TaskCorrupted {
                task,
                store: self.name.to_string(),
                reason,
            })
        };
        let mut bytes = Vec::new();
        let present = self
            .key
            .serialize(&self.name, key, &mut bytes)
            .map_err(|error| corrupted(error.to_string()))?;
        if !present {
            return Ok(None);
        }
        let snapshot = self.reader.snapshot().map_err(|source| Error::state(task, source))?;
        let Some(id) = snapshot.store_id(&self.name) else {
            return Ok(None);
        };
        let mut row = None;
        let mut read = |stored: Option<&[u8]>| {
            row = stored.and_then(<[u8]>::split_first_chunk::<8>).map(|(time, value)| {
                let value = self.value.deserialize(&self.name, Some(value))?;
                Ok(ValueAndTimestamp {
                    value,
                    timestamp_ms: i64::from_be_bytes(*time),
                })
            });
        };
        snapshot
            .get(id, &bytes, &mut read)
            .map_err(|source| Error::state(task, source))?;
        row.transpose()
            .map_err(|error: crate::SerdeError| corrupted(error.to_string()))
    }
}
