//! Changelog records of suppress buffers, of whichever version of Kafka Streams: all are stored as the newest version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use streams_state::TaskState;

use crate::codec::{BufferedValue, RecordContext, SUPPRESS_VERSION_HEADER, SUPPRESS_VERSION_VALUE};
use crate::error::{Error, ProcessResult};
use crate::fetch::FetchedRecord;
use crate::runtime::ChangelogRestore;
use crate::{Headers, TaskId};

type Bytes = Box<[u8]>;

/// Reads the entries of a suppress buffer for one replay of one partition. Versions 0 and 1 (Kafka 2.1 to 2.3) do not say
/// what was emitted before an entry: then it is what the entry of the key before it says, else its own old value.
///
/// Java: `InMemoryTimeOrderedKeyValueChangeBuffer.restoreBatch`.
#[derive(Clone, Debug)]
pub struct BufferedRows {
    task: TaskId,
    /// What was emitted before the entries that were read in this replay, `None` where they were deleted. Rows on their way to
    /// disk can't be looked up.
    priors: Arc<Mutex<BTreeMap<Bytes, Option<Vec<u8>>>>>,
}

impl PartialEq for BufferedRows {
    fn eq(&self, other: &Self) -> bool {
        self.task == other.task
    }
}

impl Eq for BufferedRows {}

impl BufferedRows {
    /// The entries of one replay.
    #[must_use]
    pub fn new(task: TaskId) -> Self {
        BufferedRows {
            task,
            priors: Arc::default(),
        }
    }

    /// The stored form of a record's value; `None` deletes.
    pub(super) fn row(
        &self,
        state: &TaskState,
        changelog: &ChangelogRestore,
        key: &[u8],
        record: &FetchedRecord<'_>,
    ) -> ProcessResult<Option<Vec<u8>>> {
        let mut priors = self.priors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(value) = record.value else {
            priors.insert(key.into(), None);
            return Ok(None);
        };
        let versions = record
            .headers
            .clone()
            .filter(|(name, _)| *name == SUPPRESS_VERSION_HEADER);
        let version = versions.last().map(|(_, version)| version.unwrap_or_default());
        if version == Some(&SUPPRESS_VERSION_VALUE[..]) {
            return Ok(Some(value.to_vec()));
        }
        let corrupted = |reason: String| self.corrupted(changelog, record.offset, &reason);
        let prior = match priors.get(key) {
            Some(prior) => prior.clone(),
            None => stored_prior(state, changelog, key).map_err(corrupted)?,
        };
        let context = RecordContext {
            timestamp_ms: record.timestamp_ms,
            offset: record.offset,
            topic: changelog.topic_partition.topic.to_string(),
            partition: changelog.topic_partition.partition,
            headers: record.headers.clone().collect::<Headers>(),
        };
        let entry = BufferedValue::decode(version, value, &context, prior.as_deref());
        let entry = entry.map_err(|error| corrupted(error.to_string()))?;
        let mut stored = Vec::new();
        entry
            .encode(&mut stored)
            .map_err(|error| corrupted(error.to_string()))?;
        priors.insert(key.into(), entry.prior);
        Ok(Some(stored))
    }

    #[cold]
    fn corrupted(&self, changelog: &ChangelogRestore, offset: i64, reason: &str) -> Box<Error> {
        Box::new(Error::TaskCorrupted {
            task: self.task,
            store: changelog.name.clone(),
            reason: format!(
                "the record of {} at offset {offset} is no entry of a suppress buffer: {reason}; let the application that \
                 wrote it empty the buffer, or reset this one",
                changelog.topic_partition
            ),
        })
    }
}

/// What was emitted before the entry that the state has already.
fn stored_prior(state: &TaskState, changelog: &ChangelogRestore, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let stored = state.get_vec(changelog.store, key).map_err(|error| error.to_string())?;
    let entry = stored.map(|stored| BufferedValue::decode_grace(&stored)).transpose();
    Ok(entry.map_err(|error| error.to_string())?.and_then(|entry| entry.prior))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use streams_state::{StoreMetadata, StoreSpec};

    use super::*;
    use crate::TopicPartition;
    use crate::fetch::{PartitionBatch, PartitionId};
    use crate::restore::replay_all;

    type Record<'a> = (&'a [u8], Option<&'a [u8]>, Option<&'a [u8]>);

    /// Replays records of key, value and version.
    fn replay(state: &mut TaskState, from: i64, records: &[Record<'_>]) -> ProcessResult {
        let store = state.store_id("buffer").unwrap();
        let to = from + i64::try_from(records.len()).unwrap();
        let changelog = ChangelogRestore {
            store,
            name: "buffer".to_owned(),
            topic_partition: TopicPartition::new("app-buffer-changelog", 0),
            from,
            to,
            exact_end: false,
            from_zero: from == 0,
            resumed: false,
            timestamped: false,
            rows: None,
            buffered: Some(BufferedRows::new(TaskId::new(0, 0))),
            metadata: StoreMetadata {
                changelog_topic_id: None,
                position: to,
                own_commit: false,
                applied_at_ms: 0,
            },
            meanwhile_ms: 0,
        };
        let fetch = |position: i64| {
            let mut batch = PartitionBatch::new(PartitionId(0), 0);
            for (offset, (key, value, version)) in (from..).zip(records).filter(|(offset, _)| *offset >= position) {
                let headers = version.map(|version| (SUPPRESS_VERSION_HEADER, Some(version)));
                assert!(batch.push(offset, 70, -1, Some(key), *value, headers));
            }
            (batch, to)
        };
        replay_all(state, &changelog, fetch).map(|_| ())
    }

    fn state() -> TaskState {
        TaskState::in_memory("0_0", vec![StoreSpec::key_value("buffer")]).unwrap()
    }

    fn entry(state: &TaskState, key: &[u8]) -> Option<BufferedValue> {
        let stored = state.get_vec(state.store_id("buffer").unwrap(), key).unwrap()?;
        Some(BufferedValue::decode_grace(&stored).unwrap())
    }

    /// Version 0: `time8 ++ old ++ new`.
    fn v0(time_ms: i64, old: &[u8], new: &[u8]) -> Vec<u8> {
        let sized = |value: &[u8]| [&u32::try_from(value.len()).unwrap().to_be_bytes(), value].concat();
        [&time_ms.to_be_bytes()[..], &sized(old), &sized(new)].concat()
    }

    #[test]
    fn entries_of_the_first_version_know_what_was_emitted_from_the_entry_before_them() {
        let mut state = state();
        let (first, second) = (v0(9, b"0", b"1"), v0(9, b"1", b"2"));
        replay(
            &mut state,
            0,
            &[(b"a", Some(&first), None), (b"a", Some(&second), None)],
        )
        .unwrap();
        let found = entry(&state, b"a").unwrap();
        let values = (found.prior.as_deref(), found.old.as_deref(), found.new.as_deref());
        assert_eq!(values, (Some(&b"0"[..]), Some(&b"1"[..]), Some(&b"2"[..])));
        // Its place is the changelog record's own, as there is no other.
        let place = (
            found.context.topic.as_str(),
            found.context.offset,
            found.context.timestamp_ms,
        );
        assert_eq!((found.time_ms, place), (9, ("app-buffer-changelog", 1, 70)));
    }

    #[test]
    fn what_was_emitted_is_also_known_from_rows_of_an_earlier_replay_and_forgotten_with_a_deletion() {
        let mut state = state();
        let (first, second) = (v0(9, b"0", b"1"), v0(9, b"1", b"2"));
        replay(&mut state, 0, &[(b"a", Some(&first), None), (b"b", Some(&first), None)]).unwrap();
        replay(
            &mut state,
            2,
            &[
                (b"a", Some(&second), None),
                (b"b", None, None),
                (b"b", Some(&second), None),
            ],
        )
        .unwrap();
        let prior = |key| entry(&state, key).unwrap().prior;
        assert_eq!(prior(b"a"), Some(b"0".to_vec()));
        assert_eq!(prior(b"b"), Some(b"1".to_vec()));
    }

    #[test]
    fn an_unknown_version_stops_the_task_and_says_where() {
        let refused = replay(&mut state(), 0, &[(b"a", Some(b"?"), Some(&[9]))]).unwrap_err();
        let text = refused.to_string();
        assert!(
            text.contains("app-buffer-changelog") && text.contains("offset 0"),
            "{text}"
        );
        assert!(text.contains("version [9]"), "{text}");
    }
}
