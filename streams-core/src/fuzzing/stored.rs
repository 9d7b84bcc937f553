//! What lies in stores, and what a restore makes of a changelog's records.

use std::sync::Arc;

use streams_state::{StoreMetadata, StoreSpec, TaskState};

use super::{Target, law, read_back};
use crate::codec::{
    Instruction, JoinSide, ListEncoding, SessionKey, Subscription, WindowKey, combined_key, decode_list,
    decode_side_value, decode_timestamped, encode_list, encode_side_value, encode_timestamped, split_combined_key,
};
use crate::fetch::{PartitionBatch, PartitionId};
use crate::restore;
use crate::runtime::ChangelogRestore;
use crate::serde::{Serde, Utf8};
use crate::stores::{DIES_AT_HEADER, Layout, SessionLayout, read_stored_value};
use crate::{TaskId, TopicPartition, Window, Windowed};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "changelog_records",
        check: changelog_records,
        seeds: changelog_records_seeds,
    },
    Target {
        name: "stored_value",
        check: stored_value,
        seeds: stored_value_seeds,
    },
    Target {
        name: "session_store_key",
        check: session_store_key,
        seeds: session_store_key_seeds,
    },
    Target {
        name: "unmatched_list",
        check: unmatched_list,
        seeds: unmatched_list_seeds,
    },
    Target {
        name: "subscription_row",
        check: subscription_row,
        seeds: subscription_row_seeds,
    },
];

/// A length of one byte and as many bytes, 255 = null, and what follows; as many as there are, if there are fewer.
fn piece(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    if *length == 255 {
        return Some((None, rest));
    }
    let (piece, rest) = rest.split_at_checked(usize::from(*length)).unwrap_or((rest, &[]));
    Some((Some(piece), rest))
}

/// The opposite of `piece`.
fn sized(bytes: Option<&[u8]>) -> Vec<u8> {
    let length = bytes.map_or(255, |bytes| u8::try_from(bytes.len()).unwrap_or(254));
    std::iter::once(length)
        .chain(bytes.unwrap_or_default().iter().copied())
        .collect()
}

/// Records of a changelog, replayed into a store of each kind: key, value, eight bytes of time, and what the header with the
/// end of a row's life holds.
fn changelog_records(bytes: &[u8]) -> Result<(), String> {
    let (mut batch, mut records, mut rest) = (PartitionBatch::new(PartitionId(0), 0), 0, bytes);
    while let Some((key, after)) = piece(rest) {
        let (value, after) = piece(after).unwrap_or((None, &[]));
        let (time_ms, after) = match after.split_first_chunk::<8>() {
            Some((time, after)) => (i64::from_be_bytes(*time), after),
            None => (0, &[][..]),
        };
        let (dies_at, after) = piece(after).unwrap_or((None, &[]));
        let header = dies_at.map(|dies_at| (DIES_AT_HEADER, Some(dies_at)));
        if batch.push(records, time_ms, -1, key, value, header) {
            records += 1;
        }
        rest = after;
    }
    let specs = [
        StoreSpec::key_value("rows"),
        StoreSpec::key_value("buffer"),
        StoreSpec::window("windows", 60_000, false),
        StoreSpec::session("sessions", 60_000),
        StoreSpec::versioned("versions", 60_000),
        StoreSpec::expiring("dying", 60_000),
    ];
    for spec in specs {
        let name = spec.name.clone();
        let mut state = TaskState::in_memory("0_0", vec![spec]).map_err(|error| error.to_string())?;
        let store = state.store_id(&name).ok_or("a store is missing")?;
        let is_buffer = name == "buffer";
        let changelog = ChangelogRestore {
            store,
            topic_partition: TopicPartition::new(format!("app-{name}-changelog"), 0),
            name,
            from: 0,
            to: records,
            exact_end: false,
            from_zero: true,
            resumed: false,
            timestamped: true,
            rows: None,
            // As entries of the first version, whose records have no header.
            buffered: is_buffer.then(|| restore::BufferedRows::new(TaskId::new(0, 0))),
            metadata: StoreMetadata {
                changelog_topic_id: None,
                position: 0,
                own_commit: false,
                applied_at_ms: 0,
            },
            meanwhile_ms: 0,
        };
        restore::begin(&mut state, &changelog).map_err(|error| error.to_string())?;
        // A key that the store can't have is an error, and nothing of the batch is applied.
        let applied = restore::apply(&mut state, &changelog, std::slice::from_ref(&batch), records);
        if let Ok(rows) = applied {
            law(rows <= records.unsigned_abs(), "there are no more rows than records")?;
            restore::finish(&mut state, &changelog, records).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn changelog_records_seeds() -> Vec<Vec<u8>> {
    let record = |key: &[u8], value: Option<&[u8]>, time_ms: i64, dies_at: Option<&[u8]>| {
        [
            sized(Some(key)),
            sized(value),
            time_ms.to_be_bytes().to_vec(),
            sized(dies_at),
        ]
        .concat()
    };
    let window = WindowKey {
        key: b"k",
        start_ms: 60_000,
        sequence: 0,
    };
    let session = SessionKey {
        key: b"k",
        start_ms: 60_000,
        end_ms: 90_000,
    };
    vec![
        [
            record(b"k", Some(b"a"), 1_000, None),
            record(b"k", None, 1_020, None),
            record(b"k", Some(b"b"), 1_010, Some(&9_i64.to_be_bytes())),
        ]
        .concat(),
        record(&window.to_changelog_key(), Some(b"1"), 5, None),
        record(&session.to_changelog_key(), Some(b"1"), 5, Some(b"short")),
    ]
}

/// A value with its time in front, and one without.
fn stored_value(bytes: &[u8]) -> Result<(), String> {
    for timestamped in [true, false] {
        let Ok(read) = read_stored_value::<String>(&Utf8, "topic", timestamped, 7, bytes) else {
            continue;
        };
        let mut again = Vec::new();
        if timestamped && bytes.len() >= 8 {
            again.extend_from_slice(&read.timestamp_ms.to_be_bytes());
        }
        Utf8.serialize("topic", &read.value, &mut again)
            .map_err(|error| error.to_string())?;
        law(again == bytes, "a stored value is written as it was read")?;
    }
    Ok(())
}

fn stored_value_seeds() -> Vec<Vec<u8>> {
    let mut stored = Vec::new();
    encode_timestamped(1_700_000_000_000, b"value", &mut stored);
    vec![stored, b"short".to_vec()]
}

fn session_layout() -> SessionLayout<String> {
    SessionLayout::new(Arc::new(Utf8))
}

fn session_store_key(bytes: &[u8]) -> Result<(), String> {
    match session_layout().decode("topic", bytes) {
        Ok(key) => {
            let mut again = Vec::new();
            let written = session_layout().encode("topic", &key, &mut again);
            law(
                written.is_ok() && again == bytes,
                "a session store's key is written as it was read",
            )
        }
        Err(_) => Ok(()),
    }
}

fn session_store_key_seeds() -> Vec<Vec<u8>> {
    let key = Windowed::new("key".to_owned(), Window::new(60_000, 90_000));
    let mut seed = Vec::new();
    let written = session_layout().encode("topic", &key, &mut seed);
    written.into_iter().map(|_| std::mem::take(&mut seed)).collect()
}

/// The values of one key, side and time that wait for a partner.
fn unmatched_list(bytes: &[u8]) -> Result<(), String> {
    let read = |bytes: &[u8]| -> Option<Vec<Option<(JoinSide, Vec<u8>)>>> {
        let element = |element: Option<&[u8]>| match element {
            Some(element) => decode_side_value(element).map(|(side, value)| Some((side, value.to_vec()))),
            None => Ok(None),
        };
        let elements = decode_list(ListEncoding::Variable, bytes).ok()?;
        elements.into_iter().map(element).collect::<Result<_, _>>().ok()
    };
    read_back(read(bytes), |values| {
        let encoded = values.iter().map(|value| {
            value.as_ref().map(|(side, value)| {
                let mut element = Vec::new();
                encode_side_value(*side, value, &mut element);
                element
            })
        });
        let encoded: Vec<Option<Vec<u8>>> = encoded.collect();
        let mut list = Vec::new();
        encode_list(ListEncoding::Variable, encoded.iter().map(Option::as_deref), &mut list).ok()?;
        read(&list)
    })
}

fn unmatched_list_seeds() -> Vec<Vec<u8>> {
    let element = |side, value: &[u8]| {
        let mut element = Vec::new();
        encode_side_value(side, value, &mut element);
        element
    };
    let (left, right) = (element(JoinSide::Left, b"1"), element(JoinSide::Right, b""));
    let mut list = Vec::new();
    let written = encode_list(ListEncoding::Variable, [Some(&*left), Some(&*right)], &mut list);
    written.into_iter().map(|()| std::mem::take(&mut list)).collect()
}

/// A row of a foreign-key join's subscriptions: both keys, and behind eight bytes of time the subscription. The first byte
/// is the length of the key.
fn subscription_row(bytes: &[u8]) -> Result<(), String> {
    let Some((Some(key), row)) = piece(bytes) else {
        return Ok(());
    };
    if let Ok((foreign, primary)) = split_combined_key(key) {
        law(
            combined_key(foreign, primary).is_ok_and(|again| again == key),
            "a combined key is written as it was read",
        )?;
    }
    let Ok((time_ms, value)) = decode_timestamped(row) else {
        return Ok(());
    };
    let Ok(subscription) = Subscription::decode(value) else {
        return Ok(());
    };
    let (mut again, mut stored) = (Vec::new(), Vec::new());
    subscription.encode(&mut again);
    encode_timestamped(time_ms, &again, &mut stored);
    let read = decode_timestamped(&stored).map(|(time_ms, value)| (time_ms, Subscription::decode(value)));
    law(
        matches!(read, Ok((time, Ok(read))) if time == time_ms && read == subscription),
        "a subscription's row is read back as it was",
    )
}

fn subscription_row_seeds() -> Vec<Vec<u8>> {
    let subscription = Subscription {
        hash: Some([7; 16]),
        instruction: Instruction::PropagateNullIfNoForeignValue,
        primary_key: b"primary",
        primary_partition: Some(3),
    };
    let (mut value, mut row) = (Vec::new(), Vec::new());
    subscription.encode(&mut value);
    encode_timestamped(1_700_000_000_000, &value, &mut row);
    let key = combined_key(b"foreign", b"primary");
    key.into_iter()
        .map(|key| [sized(Some(&key)), row.clone()].concat())
        .collect()
}
