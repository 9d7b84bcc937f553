//! Replaying a changelog into a store: pure, a batch at a time. Who fetches the batches is the shell's business.
//!
//! Java counterpart: `StoreChangelogReader` with `RecordConverters`.

use streams_state::{StateError, StoreMetadata, TaskState};

use crate::runtime::ChangelogRestore;

/// A record of a changelog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogRecord {
    /// Its offset.
    pub offset: i64,
    /// The store's key; a record without one is skipped.
    pub key: Option<Vec<u8>>,
    /// The plain value; `None` deletes.
    pub value: Option<Vec<u8>>,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
}

/// Begins a replay: a restore from zero marks and empties the store first.
///
/// # Errors
/// When the store can't be written.
pub fn begin(state: &mut TaskState, changelog: &ChangelogRestore) -> Result<(), StateError> {
    if changelog.from_zero {
        state.begin_full_restore(changelog.store)
    } else {
        Ok(())
    }
}

/// Applies a batch, in the order of its offsets, and the position behind it; answers how many rows it had.
///
/// # Errors
/// When the store can't be written.
pub fn apply(
    state: &mut TaskState,
    changelog: &ChangelogRestore,
    records: &[ChangelogRecord],
    position: i64,
) -> Result<u64, StateError> {
    let position = stand(changelog, position);
    let records: Vec<&ChangelogRecord> = records.iter().filter(|record| record.offset < position).collect();
    let stored: Vec<Option<Vec<u8>>> = records
        .iter()
        .map(|record| stored_value(changelog.timestamped, record))
        .collect();
    let rows = records
        .iter()
        .zip(&stored)
        .filter_map(|(record, value)| Some((record.key.as_deref()?, value.as_deref())));
    state.restore(
        changelog.store,
        rows,
        StoreMetadata {
            position,
            ..changelog.metadata
        },
    )?;
    Ok(records.iter().filter(|record| record.key.is_some()).count() as u64)
}

/// Ends a replay at the position reached, which is at or behind the target (markers may stand there).
///
/// # Errors
/// When the store can't be written.
pub fn finish(state: &mut TaskState, changelog: &ChangelogRestore, position: i64) -> Result<(), StateError> {
    let metadata = StoreMetadata {
        position: stand(changelog, position),
        ..changelog.metadata
    };
    if changelog.from_zero {
        return state.finish_full_restore(changelog.store, metadata);
    }
    state.restore(changelog.store, [], metadata)
}

/// A whole replay with a `fetch` that gives committed records from a position on and the position behind them. Only a
/// position at or beyond the target ends it, never an end-of-partition mark (design rule 5.3).
///
/// # Errors
/// When the store can't be written.
pub fn replay_all(
    state: &mut TaskState,
    changelog: &ChangelogRestore,
    mut fetch: impl FnMut(i64) -> (Vec<ChangelogRecord>, i64),
) -> Result<u64, StateError> {
    begin(state, changelog)?;
    let (mut position, mut rows) = (changelog.from, 0);
    while position < changelog.to {
        let (records, next) = fetch(position);
        if next <= position {
            break;
        }
        rows += apply(state, changelog, &records, next)?;
        position = next;
    }
    finish(state, changelog, position)?;
    Ok(rows)
}

/// Where a replay stands: an exact end is never passed, although more was fetched.
fn stand(changelog: &ChangelogRestore, position: i64) -> i64 {
    if changelog.exact_end {
        position.min(changelog.to.max(changelog.from))
    } else {
        position
    }
}

/// The stored form of a changelog value: in a timestamped store the record's timestamp goes in front
/// (`RecordConverters.rawValueToTimestampedValue`).
fn stored_value(timestamped: bool, record: &ChangelogRecord) -> Option<Vec<u8>> {
    let value = record.value.as_deref()?;
    let mut stored = Vec::with_capacity(value.len() + 8);
    if timestamped {
        stored.extend_from_slice(&record.timestamp_ms.to_be_bytes());
    }
    stored.extend_from_slice(value);
    Some(stored)
}
