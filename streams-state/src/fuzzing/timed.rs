//! Rows with times: versions, rows that die, sessions.

use super::{law, piece, sized};
use crate::codec::session_key::SessionKey;
use crate::metadata::StoreMetadata;
use crate::range::Direction;
use crate::spec::StoreSpec;
use crate::task::TaskState;

/// The first byte is the length of the key.
pub(super) fn version_row(bytes: &[u8]) -> Result<(), String> {
    let Some((key, row)) = piece(bytes) else {
        return Ok(());
    };
    crate::versioned::fuzz_row(key, row)
}

pub(super) fn version_row_seeds() -> Vec<Vec<u8>> {
    let rows = crate::versioned::fuzz_row_seeds().into_iter();
    rows.map(|(key, row)| [sized(&key), row].concat()).collect()
}

pub(super) fn expiring_row(bytes: &[u8]) -> Result<(), String> {
    crate::expiring::fuzz_row(bytes)
}

pub(super) fn expiring_row_seeds() -> Vec<Vec<u8>> {
    vec![
        [&1_700_000_000_000_i64.to_be_bytes()[..], b"value"].concat(),
        crate::expiring::NEVER_MS.to_be_bytes().to_vec(),
    ]
}

/// A record with a time of its own.
type Timed<'a> = (&'a [u8], i64, Option<&'a [u8]>);

/// Changelog records, restored into a store of versions, one of rows that die and one of sessions: a length and a key, a
/// length and a value, where the length 255 is a null, and eight bytes of time.
pub(super) fn restored_timed_rows(bytes: &[u8]) -> Result<(), String> {
    let mut records: Vec<Timed<'_>> = Vec::new();
    let mut rest = bytes;
    while let Some((key, after)) = piece(rest) {
        let (value, after) = match after.split_first() {
            Some((255, after)) => (None, after),
            _ => piece(after).map_or((None, &[][..]), |(value, after)| (Some(value), after)),
        };
        let (time_ms, after) = match after.split_first_chunk::<8>() {
            Some((time, after)) => (i64::from_be_bytes(*time), after),
            None => (0, &[][..]),
        };
        records.push((key, time_ms, value));
        rest = after;
    }
    let specs = vec![
        StoreSpec::versioned("versions", 60_000),
        StoreSpec::expiring("dying", 60_000),
        StoreSpec::session("sessions", 60_000),
    ];
    let mut state = TaskState::in_memory("0_0", specs).map_err(|error| error.to_string())?;
    versions(&mut state, &records)?;
    dying(&mut state, &records)?;
    sessions(&mut state, &records)
}

const METADATA: StoreMetadata = StoreMetadata {
    changelog_topic_id: None,
    position: 1,
    own_commit: false,
    applied_at_ms: 0,
};

fn versions(state: &mut TaskState, records: &[Timed<'_>]) -> Result<(), String> {
    let text = |error: crate::StateError| error.to_string();
    let id = state.store_id("versions").ok_or("a store is missing")?;
    // A time that no version can have is an error, and nothing of the batch is applied.
    if state.restore_versions(id, records.iter().copied(), METADATA).is_err() {
        return Ok(());
    }
    for (key, time_ms, _) in records {
        // As every time before the Unix epoch, it is one at it.
        let time_ms = (*time_ms).max(0);
        if let Some(found) = state.version_as_of(id, key, time_ms).map_err(text)? {
            let from_ms = found.from_ms;
            law(from_ms <= time_ms, "a version is valid from its begin on")?;
            let known = records
                .iter()
                .any(|record| record.0 == *key && record.1.max(0) == from_ms);
            law(known, "a version was put")?;
        }
    }
    Ok(())
}

fn dying(state: &mut TaskState, records: &[Timed<'_>]) -> Result<(), String> {
    let text = |error: crate::StateError| error.to_string();
    let id = state.store_id("dying").ok_or("a store is missing")?;
    let rows = records
        .iter()
        .map(|(key, dies_at_ms, value)| (*key, *value, *dies_at_ms));
    if state.restore_expiring(id, rows, METADATA).is_err() {
        return Ok(());
    }
    let mut store = state.expiring(id).map_err(text)?;
    let rows = store.range(None, None, Direction::Forward).map_err(text)?;
    for row in rows {
        let (key, value, _) = row.map_err(text)?;
        let last = records.iter().rev().find(|record| *record.0 == *key);
        let last = last.and_then(|record| record.2);
        law(last == Some(&*value), "the last record of a key is its row")?;
    }
    let dead = store.dead(i64::MAX).map_err(text)?.count();
    law(dead <= records.len(), "no more rows die than there are records")
}

fn sessions(state: &mut TaskState, records: &[Timed<'_>]) -> Result<(), String> {
    let text = |error: crate::StateError| error.to_string();
    let id = state.store_id("sessions").ok_or("a store is missing")?;
    let rows = records.iter().map(|(key, _, value)| (*key, *value));
    // A session key that is none is an error, and nothing of the batch is applied.
    if state.restore(id, rows, METADATA).is_err() {
        return Ok(());
    }
    let mut rows = state.session_ended(id, i64::MIN, i64::MAX).map_err(text)?;
    let mut count = 0;
    while let Some((row, _)) = rows.next_row().map_err(text)? {
        let key = SessionKey {
            key: row.key,
            start_ms: row.start_ms,
            end_ms: row.end_ms,
        }
        .to_changelog_key();
        law(records.iter().any(|record| record.0 == key), "a session was put")?;
        count += 1;
    }
    law(count <= records.len(), "there are no more sessions than records")
}

pub(super) fn restored_timed_rows_seeds() -> Vec<Vec<u8>> {
    let record = |key: &[u8], value: Option<&[u8]>, time_ms: i64| {
        [
            sized(key),
            value.map_or(vec![255], sized),
            time_ms.to_be_bytes().to_vec(),
        ]
        .concat()
    };
    let session = SessionKey {
        key: b"k",
        start_ms: 60_000,
        end_ms: 90_000,
    }
    .to_changelog_key();
    vec![
        [
            record(b"k", Some(b"a"), 1_000),
            record(b"k", Some(b"b"), 1_050),
            record(b"k", None, 1_020),
        ]
        .concat(),
        [record(&session, Some(b"1"), 5), record(&session, None, 6)].concat(),
    ]
}
