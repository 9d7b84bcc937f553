//! Replaying a changelog into a store: pure, a batch at a time. Who fetches the batches is the shell's business.
//!
//! Java counterpart: `StoreChangelogReader` with `RecordConverters`.

mod buffered;
mod rows;
mod side_by_side;
mod standstill;

use streams_state::{StateError, StoreMetadata, TaskState};

use crate::error::{Error, ProcessResult};
use crate::fetch::{FetchedRecord, PartitionBatch};
use crate::runtime::ChangelogRestore;

pub use buffered::BufferedRows;
pub use rows::SourceRows;
pub use side_by_side::{EndedRestore, SideBySide};
pub use standstill::{Standstill, StandstillNews};

/// Begins a replay: a restore from zero marks and empties the store first, unless it goes on with one that was interrupted.
///
/// # Errors
/// When the store can't be written.
pub fn begin(state: &mut TaskState, changelog: &ChangelogRestore) -> ProcessResult {
    if changelog.from_zero && !changelog.resumed {
        let begun = state.begin_full_restore(changelog.store);
        return begun.map_err(|error| failed(state, error));
    }
    Ok(())
}

/// Applies fetched batches of the changelog, in the order of their offsets, and the position behind them; answers how many
/// rows they had.
///
/// # Errors
/// When the store can't be written, or a row can't be read and its handler answers `Fail`.
pub fn apply(
    state: &mut TaskState,
    changelog: &ChangelogRestore,
    batches: &[PartitionBatch],
    position: i64,
) -> ProcessResult<u64> {
    let position = stand(changelog, position);
    let records = batches
        .iter()
        .flat_map(PartitionBatch::iter)
        .filter(|record| record.offset < position && record.key.is_some());
    if state.is_versioned(changelog.store) {
        return apply_versions(state, changelog, records, position);
    }
    if let Some(ttl_ms) = state.default_ttl_ms(changelog.store) {
        return apply_expiring(state, changelog, records, (position, ttl_ms));
    }
    let mut rows: Vec<(&[u8], Option<Vec<u8>>)> = Vec::new();
    for record in records {
        let time_ms = match &changelog.rows {
            Some(rows) => rows.event_time(changelog, &record)?,
            None => Some(record.timestamp_ms),
        };
        if let (Some(time_ms), Some(key)) = (time_ms, record.key) {
            let stored = match &changelog.buffered {
                Some(buffered) => buffered.row(state, changelog, key, &record)?,
                None => stored_value(changelog.timestamped, time_ms, record.value),
            };
            rows.push((key, stored));
        }
    }
    let metadata = under_way(changelog, position);
    let changes = rows.iter().map(|(key, value)| (*key, value.as_deref()));
    let applied = state.restore(changelog.store, changes, metadata);
    applied.map_err(|error| failed(state, error))?;
    Ok(rows.len() as u64)
}

/// What the store's metadata is at a position, as long as the replay is not done.
fn under_way(changelog: &ChangelogRestore, position: i64) -> StoreMetadata {
    StoreMetadata {
        position,
        applied_at_ms: changelog.meanwhile_ms,
        ..changelog.metadata
    }
}

/// A versioned store's records are versions: the key, when it begins, the value or a tombstone.
fn apply_versions<'r>(
    state: &mut TaskState,
    changelog: &ChangelogRestore,
    records: impl Iterator<Item = FetchedRecord<'r>>,
    position: i64,
) -> ProcessResult<u64> {
    let mut versions: Vec<(&[u8], i64, Option<&[u8]>)> = Vec::new();
    for record in records {
        let time_ms = match &changelog.rows {
            Some(rows) => rows.event_time(changelog, &record)?,
            None => Some(record.timestamp_ms),
        };
        if let (Some(time_ms), Some(key)) = (time_ms, record.key) {
            versions.push((key, time_ms, record.value));
        }
    }
    let metadata = under_way(changelog, position);
    let rows = versions.len() as u64;
    let applied = state.restore_versions(changelog.store, versions, metadata);
    applied.map_err(|error| failed(state, error))?;
    Ok(rows)
}

/// Records of rows that die: the end stands in a header, else it follows from the record's time.
fn apply_expiring<'r>(
    state: &mut TaskState,
    changelog: &ChangelogRestore,
    records: impl Iterator<Item = FetchedRecord<'r>>,
    (position, ttl_ms): (i64, i64),
) -> ProcessResult<u64> {
    let row = |record: FetchedRecord<'r>| {
        let stored = stored_value(true, record.timestamp_ms, record.value);
        let dies_at_ms = crate::stores::dies_at(&record).unwrap_or(record.timestamp_ms.saturating_add(ttl_ms));
        Some((record.key?, stored, dies_at_ms))
    };
    let rows: Vec<_> = records.filter_map(row).collect();
    let metadata = under_way(changelog, position);
    let changes = rows
        .iter()
        .map(|(key, value, dies_at_ms)| (*key, value.as_deref(), *dies_at_ms));
    let applied = state.restore_expiring(changelog.store, changes, metadata);
    applied.map_err(|error| failed(state, error))?;
    Ok(rows.len() as u64)
}

/// Ends a replay at the position reached, which is at or behind the target (markers may stand there).
///
/// # Errors
/// When the store can't be written.
pub fn finish(state: &mut TaskState, changelog: &ChangelogRestore, position: i64) -> ProcessResult {
    let metadata = StoreMetadata {
        position: stand(changelog, position),
        ..changelog.metadata
    };
    let ended = if changelog.from_zero {
        state.finish_full_restore(changelog.store, metadata)
    } else {
        state.restore(changelog.store, [], metadata)
    };
    ended.map_err(|error| failed(state, error))
}

/// Ends a replay before it is done: what it has read is kept, and the next one goes on behind it.
///
/// # Errors
/// When the store can't be written.
pub fn keep(state: &mut TaskState, changelog: &ChangelogRestore) -> ProcessResult {
    let kept = state.keep_full_restore(changelog.store);
    kept.map_err(|error| failed(state, error))
}

/// What a replay came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Rows applied.
    pub rows: u64,
    /// Whether it reached its target. If not, an open transaction holds the log: what was read is kept, and the replay is to
    /// be tried again from the stored position.
    pub ended: bool,
}

/// A whole replay with a `fetch` that gives committed records from a position on and the position behind them. Only a
/// position at or beyond the target ends it, never an end-of-partition mark (design rule 5.3).
///
/// # Errors
/// As [`apply`].
pub fn replay_all(
    state: &mut TaskState,
    changelog: &ChangelogRestore,
    mut fetch: impl FnMut(i64) -> (PartitionBatch, i64),
) -> ProcessResult<Replayed> {
    begin(state, changelog)?;
    let (mut position, mut rows) = (changelog.from, 0);
    while position < changelog.to {
        let (batch, next) = fetch(position);
        if next <= position {
            return Ok(Replayed { rows, ended: false });
        }
        rows += apply(state, changelog, &[batch], next)?;
        position = next;
    }
    finish(state, changelog, position)?;
    Ok(Replayed { rows, ended: true })
}

/// Where a replay stands: an exact end is never passed, although more was fetched.
fn stand(changelog: &ChangelogRestore, position: i64) -> i64 {
    if changelog.exact_end {
        position.min(changelog.to.max(changelog.from))
    } else {
        position
    }
}

/// The stored form of a changelog value: in a timestamped store the record's time goes in front
/// (`RecordConverters.rawValueToTimestampedValue`).
fn stored_value(timestamped: bool, time_ms: i64, value: Option<&[u8]>) -> Option<Vec<u8>> {
    let value = value?;
    let mut stored = Vec::with_capacity(value.len() + 8);
    if timestamped {
        stored.extend_from_slice(&time_ms.to_be_bytes());
    }
    stored.extend_from_slice(value);
    Some(stored)
}

#[cold]
fn failed(state: &TaskState, source: StateError) -> Box<Error> {
    Box::new(Error::State {
        task: format!("task {}", state.task()),
        source,
    })
}
