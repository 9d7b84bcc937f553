//! The decoders of bytes from outside, by name, for the fuzz targets in `fuzz/` and the test that runs the same without a
//! fuzzer. Not a part of the interface: behind the feature `fuzzing`.

mod timed;

use crate::codec::metadata::{MetadataRow, StoredLayout};
use crate::codec::session_key::SessionKey;
use crate::codec::window_key::WindowKey;
use crate::directory::fuzzing as files;
use crate::metadata::StoreMetadata;
use crate::range::Direction;
use crate::spec::StoreSpec;
use crate::task::TaskState;

/// A decoder of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of the program in `fuzz/` and of the folder with its corpus.
    pub name: &'static str,
    /// Decodes. No input may make it panic, nor make room for much more than the input holds. What is decoded is encoded
    /// again where there is an encoder.
    ///
    /// The error is a law that does not hold, such as "what is decoded is encoded to the same".
    pub check: fn(&[u8]) -> Result<(), String>,
    /// Inputs that decode.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// An error unless the law holds.
///
/// # Errors
/// The law.
pub fn law(holds: bool, law: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(law.to_owned()) }
}

/// The decoders of this crate.
pub const TARGETS: &[Target] = &[
    Target {
        name: "window_key",
        check: window_key,
        seeds: window_key_seeds,
    },
    Target {
        name: "session_key",
        check: session_key,
        seeds: session_key_seeds,
    },
    Target {
        name: "task_metadata",
        check: task_metadata,
        seeds: task_metadata_seeds,
    },
    Target {
        name: "restored_rows",
        check: restored_rows,
        seeds: restored_rows_seeds,
    },
    Target {
        name: "version_row",
        check: timed::version_row,
        seeds: timed::version_row_seeds,
    },
    Target {
        name: "expiring_row",
        check: timed::expiring_row,
        seeds: timed::expiring_row_seeds,
    },
    Target {
        name: "restored_timed_rows",
        check: timed::restored_timed_rows,
        seeds: timed::restored_timed_rows_seeds,
    },
    Target {
        name: "identity_file",
        check: files::identity,
        seeds: files::identity_seeds,
    },
    Target {
        name: "format_marker",
        check: files::marker,
        seeds: files::marker_seeds,
    },
    Target {
        name: "lock_file",
        check: files::lock,
        seeds: files::lock_seeds,
    },
];

fn window_key(bytes: &[u8]) -> Result<(), String> {
    if let Some(key) = WindowKey::from_changelog_key(bytes) {
        law(
            key.to_changelog_key() == bytes,
            "a window key is written as it was read",
        )?;
    }
    match WindowKey::from_local_key(bytes) {
        Some((bucket, key)) => law(key.to_local_key(bucket) == bytes, "a local window key too"),
        None => Ok(()),
    }
}

fn window_key_seeds() -> Vec<Vec<u8>> {
    let key = WindowKey {
        key: b"key",
        start_ms: 1_700_000_000_000,
        sequence: 1,
    };
    vec![key.to_changelog_key(), key.to_local_key(7)]
}

fn session_key(bytes: &[u8]) -> Result<(), String> {
    if let Some(key) = SessionKey::from_changelog_key(bytes) {
        law(
            key.to_changelog_key() == bytes,
            "a session key is written as it was read",
        )?;
    }
    match SessionKey::from_local_key(bytes) {
        Some((bucket, key)) => law(key.to_local_key(bucket) == bytes, "a local session key too"),
        None => Ok(()),
    }
}

fn session_key_seeds() -> Vec<Vec<u8>> {
    let key = SessionKey {
        key: b"key",
        start_ms: 1_700_000_000_000,
        end_ms: 1_700_000_060_000,
    };
    vec![key.to_changelog_key(), key.to_local_key(7)]
}

/// The first byte is the length of the key.
fn task_metadata(bytes: &[u8]) -> Result<(), String> {
    let Some((key, value)) = piece(bytes) else {
        return Ok(());
    };
    let Some(row) = MetadataRow::decode(key, value) else {
        return Ok(());
    };
    let (key, value) = (row.key(), row.value());
    law(
        MetadataRow::decode(&key, &value) == Some(row),
        "a row of the metadata is read back as it was",
    )
}

fn task_metadata_seeds() -> Vec<Vec<u8>> {
    let metadata = StoreMetadata {
        changelog_topic_id: Some([9; 16]),
        position: 41,
        own_commit: true,
        applied_at_ms: 1_000,
    };
    let window = StoredLayout::Window {
        segment_interval_ms: 60_000,
    };
    let rows = [
        MetadataRow::Store("counts", metadata),
        MetadataRow::FromZero("counts", None),
        MetadataRow::FromZero("counts", Some(metadata)),
        MetadataRow::Layout("counts", window),
        MetadataRow::Input("topic", 3, 5),
        MetadataRow::OperatorTime("hourly-bill", -1),
        MetadataRow::AppliedAt(8),
    ];
    let seed = |row: MetadataRow<'_>| sized(&row.key()).into_iter().chain(row.value()).collect();
    rows.map(seed).into()
}

/// Changelog records, restored into a key-value store and a window store: a length and a key, then a length and a value,
/// where the length 255 is a null.
fn restored_rows(bytes: &[u8]) -> Result<(), String> {
    let mut records = Vec::new();
    let mut rest = bytes;
    while let Some((key, after)) = piece(rest) {
        let (value, after) = match after.split_first() {
            Some((255, after)) => (None, after),
            _ => piece(after).map_or((None, &[][..]), |(value, after)| (Some(value), after)),
        };
        records.push((key, value));
        rest = after;
    }
    let specs = vec![
        StoreSpec::key_value("rows"),
        StoreSpec::window("windows", 60_000, false),
    ];
    let mut state = TaskState::in_memory("0_0", specs).map_err(|error| error.to_string())?;
    let metadata = StoreMetadata {
        changelog_topic_id: None,
        position: 1,
        own_commit: false,
        applied_at_ms: 0,
    };
    for name in ["rows", "windows"] {
        let Some(id) = state.store_id(name) else {
            return Err("a store is missing".to_owned());
        };
        // A window key that is none is an error, and nothing of the batch is applied.
        if state.restore(id, records.iter().copied(), metadata).is_err() {
            continue;
        }
        if name == "rows" {
            let last = records
                .iter()
                .rev()
                .find(|(key, _)| Some(*key) == records.first().map(|(key, _)| *key));
            if let Some((key, value)) = last {
                let stored = state.get_vec(id, key).map_err(|error| error.to_string())?;
                law(stored.as_deref() == *value, "the last record of a key is its row")?;
            }
        } else {
            let rows = state.window_fetch_all(id, i64::MIN, i64::MAX, Direction::Forward);
            let mut rows = rows.map_err(|error| error.to_string())?;
            let mut count = 0;
            while rows.next_row().map_err(|error| error.to_string())?.is_some() {
                count += 1;
            }
            law(count <= records.len(), "there are no more rows than records")?;
        }
    }
    Ok(())
}

fn restored_rows_seeds() -> Vec<Vec<u8>> {
    let window = WindowKey {
        key: b"k",
        start_ms: 60_000,
        sequence: 0,
    };
    let record = |key: &[u8], value: Option<&[u8]>| [sized(key), value.map_or(vec![255], sized)].concat();
    let key = window.to_changelog_key();
    vec![
        [record(b"a", Some(b"1")), record(b"b", Some(b"")), record(b"a", None)].concat(),
        [record(&key, Some(b"1")), record(&key, Some(b"2"))].concat(),
    ]
}

/// A length of one byte and as many bytes, and what follows; as many as there are, if there are fewer.
fn piece(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    Some(rest.split_at_checked(usize::from(*length)).unwrap_or((rest, &[])))
}

/// The opposite of `piece`, for fewer than 255 bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap_or(254);
    std::iter::once(length).chain(bytes.iter().copied()).collect()
}
