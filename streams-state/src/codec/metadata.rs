//! Rows of the metadata family. Keys are one letter and a name; values are big-endian numbers.
//!
//! | key | value |
//! |---|---|
//! | `s` store | version 1, flags (1: own commit, 2: topic id follows), position 8, applied at 8, topic id 16 |
//! | `z` store | the store is being restored from zero; empty, or as `s`: how far its rows are in files |
//! | `l` store | kind (1 key-value, 2 window, 3 session, 4 versioned, 5 expiring), bucket width 8 |
//! | `i` topic `\0` partition 4 | next offset 8 |
//! | `o` operator | time 8 |
//! | `t` | wall-clock time of the task's last apply 8 |

#![cfg_attr(not(feature = "rocksdb"), allow(dead_code))]

use crate::metadata::StoreMetadata;
use crate::spec::StoreKind;

const VERSION: u8 = 1;
const OWN_COMMIT: u8 = 1;
const HAS_TOPIC_ID: u8 = 2;

/// A row of the metadata family.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MetadataRow<'a> {
    Store(&'a str, StoreMetadata),
    FromZero(&'a str, Option<StoreMetadata>),
    Layout(&'a str, StoredLayout),
    Input(&'a str, i32, i64),
    OperatorTime(&'a str, i64),
    AppliedAt(i64),
}

/// The layout that a store on disk was created with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredLayout {
    KeyValue,
    Window { segment_interval_ms: i64 },
    Session { segment_interval_ms: i64 },
    Versioned { segment_interval_ms: i64 },
    Expiring,
}

impl StoredLayout {
    pub(crate) fn of(kind: StoreKind) -> Self {
        match kind {
            StoreKind::KeyValue => Self::KeyValue,
            StoreKind::Window {
                segment_interval_ms, ..
            } => Self::Window { segment_interval_ms },
            StoreKind::Session {
                segment_interval_ms, ..
            } => Self::Session { segment_interval_ms },
            StoreKind::Versioned {
                segment_interval_ms, ..
            } => Self::Versioned { segment_interval_ms },
            StoreKind::Expiring { .. } => Self::Expiring,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::KeyValue => "key-value",
            Self::Window { .. } => "window",
            Self::Session { .. } => "session",
            Self::Versioned { .. } => "versioned",
            Self::Expiring => "expiring",
        }
    }
}

impl MetadataRow<'_> {
    pub(crate) fn key(&self) -> Vec<u8> {
        let named = |letter: u8, name: &str| {
            let mut key = vec![letter];
            key.extend_from_slice(name.as_bytes());
            key
        };
        match self {
            Self::Store(store, _) => named(b's', store),
            Self::FromZero(store, _) => named(b'z', store),
            Self::Layout(store, _) => named(b'l', store),
            Self::Input(topic, partition, _) => {
                let mut key = named(b'i', topic);
                key.push(0);
                key.extend_from_slice(&partition.to_be_bytes());
                key
            }
            Self::OperatorTime(operator, _) => named(b'o', operator),
            Self::AppliedAt(_) => vec![b't'],
        }
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        match self {
            Self::Store(_, metadata) => encode_store(metadata),
            Self::FromZero(_, progress) => progress.as_ref().map(encode_store).unwrap_or_default(),
            Self::Layout(_, StoredLayout::KeyValue) => [&[1_u8][..], &0_i64.to_be_bytes()].concat(),
            Self::Layout(_, StoredLayout::Window { segment_interval_ms }) => {
                [&[2_u8][..], &segment_interval_ms.to_be_bytes()].concat()
            }
            Self::Layout(_, StoredLayout::Session { segment_interval_ms }) => {
                [&[3_u8][..], &segment_interval_ms.to_be_bytes()].concat()
            }
            Self::Layout(_, StoredLayout::Versioned { segment_interval_ms }) => {
                [&[4_u8][..], &segment_interval_ms.to_be_bytes()].concat()
            }
            Self::Layout(_, StoredLayout::Expiring) => [&[5_u8][..], &0_i64.to_be_bytes()].concat(),
            Self::Input(_, _, number) | Self::OperatorTime(_, number) | Self::AppliedAt(number) => {
                number.to_be_bytes().to_vec()
            }
        }
    }
}

impl<'a> MetadataRow<'a> {
    /// Reads a row; `None` if it is none of ours.
    pub(crate) fn decode(key: &'a [u8], value: &[u8]) -> Option<Self> {
        let (letter, rest) = key.split_first()?;
        let number = || Some(i64::from_be_bytes(value.try_into().ok()?));
        let name = || std::str::from_utf8(rest).ok();
        match letter {
            b's' => Some(Self::Store(name()?, decode_store(value)?)),
            b'z' if value.is_empty() => Some(Self::FromZero(name()?, None)),
            b'z' => Some(Self::FromZero(name()?, Some(decode_store(value)?))),
            b'l' => Some(Self::Layout(name()?, decode_layout(value)?)),
            b'i' => {
                let (topic, partition) = rest.split_at_checked(rest.len().checked_sub(5)?)?;
                let partition = i32::from_be_bytes(partition.get(1..)?.try_into().ok()?);
                Some(Self::Input(std::str::from_utf8(topic).ok()?, partition, number()?))
            }
            b'o' => Some(Self::OperatorTime(name()?, number()?)),
            b't' => Some(Self::AppliedAt(number()?)),
            _ => None,
        }
    }
}

fn encode_store(metadata: &StoreMetadata) -> Vec<u8> {
    let mut flags = if metadata.own_commit { OWN_COMMIT } else { 0 };
    if metadata.changelog_topic_id.is_some() {
        flags |= HAS_TOPIC_ID;
    }
    let mut value = vec![VERSION, flags];
    value.extend_from_slice(&metadata.position.to_be_bytes());
    value.extend_from_slice(&metadata.applied_at_ms.to_be_bytes());
    value.extend_from_slice(metadata.changelog_topic_id.as_ref().map_or(&[], |id| id.as_slice()));
    value
}

fn decode_store(value: &[u8]) -> Option<StoreMetadata> {
    let ([VERSION, flags], rest) = value.split_first_chunk::<2>()? else {
        return None;
    };
    let (position, rest) = rest.split_first_chunk::<8>()?;
    let (applied_at, rest) = rest.split_first_chunk::<8>()?;
    let changelog_topic_id = match flags & HAS_TOPIC_ID {
        0 => None,
        _ => Some(rest.try_into().ok()?),
    };
    Some(StoreMetadata {
        changelog_topic_id,
        position: i64::from_be_bytes(*position),
        own_commit: flags & OWN_COMMIT != 0,
        applied_at_ms: i64::from_be_bytes(*applied_at),
    })
}

fn decode_layout(value: &[u8]) -> Option<StoredLayout> {
    let (kind, width) = value.split_first()?;
    let segment_interval_ms = i64::from_be_bytes(width.try_into().ok()?);
    match kind {
        1 => Some(StoredLayout::KeyValue),
        2 => Some(StoredLayout::Window { segment_interval_ms }),
        4 => Some(StoredLayout::Versioned { segment_interval_ms }),
        5 => Some(StoredLayout::Expiring),
        3 => Some(StoredLayout::Session { segment_interval_ms }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    fn metadata(changelog_topic_id: Option<[u8; 16]>) -> StoreMetadata {
        StoreMetadata {
            changelog_topic_id,
            position: 0x0102,
            own_commit: true,
            applied_at_ms: 7,
        }
    }

    #[test]
    fn every_row_is_read_back() {
        let rows = [
            MetadataRow::Store("counts", metadata(None)),
            MetadataRow::Store("counts", metadata(Some([9; 16]))),
            MetadataRow::FromZero("counts", None),
            MetadataRow::FromZero(
                "counts",
                Some(StoreMetadata {
                    changelog_topic_id: Some([7; 16]),
                    position: 41,
                    own_commit: false,
                    applied_at_ms: 1_000,
                }),
            ),
            MetadataRow::Layout("counts", StoredLayout::KeyValue),
            MetadataRow::Layout(
                "counts",
                StoredLayout::Window {
                    segment_interval_ms: 60_000,
                },
            ),
            MetadataRow::Input("topic", 0x0100_00ff, 5),
            MetadataRow::OperatorTime("agg", -1),
            MetadataRow::AppliedAt(8),
        ];
        for row in rows {
            let (key, value) = (row.key(), row.value());
            assert_eq!(MetadataRow::decode(&key, &value), Some(row));
        }
    }

    #[test]
    fn the_bytes_of_a_store_row_are_fixed() {
        let row = MetadataRow::Store("c", metadata(Some([9; 16])));
        assert_eq!(row.key(), b"sc");
        let mut expected = vec![1, 3, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7];
        expected.extend([9; 16]);
        assert_eq!(row.value(), expected);
    }

    #[test]
    fn a_row_of_a_newer_version_is_not_guessed_at() {
        let mut value = MetadataRow::Store("c", metadata(None)).value();
        *value.first_mut().unwrap() = 2;
        assert_eq!(MetadataRow::decode(b"sc", &value), None);
        assert_eq!(MetadataRow::decode(b"?", b""), None);
    }
}
