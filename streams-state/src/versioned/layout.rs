//! Where versions lie. Changelogs have Java's bytes (the key, the plain value, the version's begin as timestamp); this is
//! local only.
//!
//! | row | key | value |
//! |---|---|---|
//! | a version that has ended | bucket of its end 8, `01`, key, end 8 | begin 8, `01` and the value, or `00` |
//! | mark of a tombstone that was the newest version | bucket of its begin 8, `00`, key, begin 8 | nothing |
//! | the highest time that was put | seven bytes `ff`, `fe` | time 8 |
//! | the newest version | eight bytes `ff`, key | begin 8, `01` and the value, or `00` |
//!
//! So what dies with time lies in front, bucket by bucket, and is dropped as one range of keys.

use crate::codec::window_key::bucket_of;

/// Key of the row with the highest time that was put.
pub(super) const OBSERVED: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe];
const LATEST: [u8; 8] = [0xff; 8];
const TOMBSTONE: u8 = 0;
const HISTORY: u8 = 1;

/// How a versioned store lays out its rows, and how long it keeps them. Times are milliseconds of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionLayout {
    /// How long a version can be asked for after it has ended, and how late an update may come.
    pub history_retention_ms: i64,
    /// Width of a bucket, at least 1.
    pub segment_interval_ms: i64,
}

impl VersionLayout {
    pub(super) fn bucket_of(&self, time_ms: i64) -> u64 {
        bucket_of(time_ms, self.segment_interval_ms)
    }

    /// The first bucket that is kept when versions that end at `live_from_ms` or later are live.
    pub(crate) fn first_live_bucket(&self, live_from_ms: i64) -> u64 {
        self.bucket_of(live_from_ms)
    }

    pub(super) fn history_key(&self, key: &[u8], to_ms: i64) -> Vec<u8> {
        local_key(self.bucket_of(to_ms), HISTORY, key, to_ms)
    }

    pub(super) fn tombstone_key(&self, key: &[u8], from_ms: i64) -> Vec<u8> {
        local_key(self.bucket_of(from_ms), TOMBSTONE, key, from_ms)
    }

    /// The first key at which a version of a bucket that ends at `to_ms` or later can lie.
    pub(super) fn first_in_bucket(&self, key: &[u8], bucket: u64, to_ms: i64) -> Vec<u8> {
        local_key(bucket, HISTORY, key, to_ms.max(self.start_of(bucket)))
    }

    /// The first key behind those of a bucket's versions of `key`.
    pub(super) fn end_of_bucket(&self, key: &[u8], bucket: u64) -> Vec<u8> {
        match self.start_of(bucket).checked_add(self.segment_interval_ms) {
            Some(end_ms) => local_key(bucket, HISTORY, key, end_ms),
            None => {
                let mut last = local_key(bucket, HISTORY, key, i64::MAX);
                last.push(0);
                last
            }
        }
    }

    fn start_of(&self, bucket: u64) -> i64 {
        i64::try_from(bucket)
            .unwrap_or(i64::MAX)
            .saturating_mul(self.segment_interval_ms)
    }
}

fn local_key(bucket: u64, kind: u8, key: &[u8], time_ms: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + 17);
    bytes.extend_from_slice(&bucket.to_be_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&time_ms.to_be_bytes());
    bytes
}

pub(super) fn latest_key(key: &[u8]) -> Vec<u8> {
    [&LATEST, key].concat()
}

/// A local key of the dying part, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VersionKey<'a> {
    History { bucket: u64, key: &'a [u8], to_ms: i64 },
    Tombstone { key: &'a [u8], from_ms: i64 },
}

impl<'a> VersionKey<'a> {
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (bucket, rest) = bytes.split_first_chunk::<8>()?;
        let (kind, rest) = rest.split_first()?;
        let (key, time) = rest.split_last_chunk::<8>()?;
        let time_ms = i64::from_be_bytes(*time);
        match *kind {
            HISTORY => Some(Self::History {
                bucket: u64::from_be_bytes(*bucket),
                key,
                to_ms: time_ms,
            }),
            TOMBSTONE => Some(Self::Tombstone { key, from_ms: time_ms }),
            _ => None,
        }
    }
}

/// The stored form of a version: its begin, whether there is a value, the value.
pub(super) fn encode_row(from_ms: i64, value: Option<&[u8]>) -> Vec<u8> {
    let mut row = Vec::with_capacity(9 + value.map_or(0, <[u8]>::len));
    row.extend_from_slice(&from_ms.to_be_bytes());
    row.push(u8::from(value.is_some()));
    row.extend_from_slice(value.unwrap_or_default());
    row
}

/// Begin and value of a stored version.
pub(super) fn decode_row(row: &[u8]) -> Option<(i64, Option<&[u8]>)> {
    let (from, rest) = row.split_first_chunk::<8>()?;
    let (has_value, value) = rest.split_first()?;
    Some((i64::from_be_bytes(*from), (*has_value != 0).then_some(value)))
}

/// What a stored version may be, for the fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_row(key: &[u8], row: &[u8]) -> Result<(), String> {
    use crate::fuzzing::law;
    let again = match VersionKey::decode(key) {
        Some(VersionKey::History { bucket, key, to_ms }) => Some(local_key(bucket, HISTORY, key, to_ms)),
        // Its bucket is that of its begin, and not read.
        Some(VersionKey::Tombstone { .. }) | None => None,
    };
    law(
        again.is_none_or(|again| again == key),
        "a version's key is written as it was read",
    )?;
    match decode_row(row) {
        Some((from_ms, value)) => law(
            decode_row(&encode_row(from_ms, value)) == Some((from_ms, value)),
            "a version is read back as it was",
        ),
        None => Ok(()),
    }
}

/// Keys and rows that can be read.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz_row_seeds() -> Vec<(Vec<u8>, Vec<u8>)> {
    let layout = VersionLayout {
        history_retention_ms: 60_000,
        segment_interval_ms: 20_000,
    };
    vec![
        (
            layout.history_key(b"key", 1_700_000_000_000),
            encode_row(1_690_000_000_000, Some(b"value")),
        ),
        (layout.tombstone_key(b"key", 1_700_000_000_000), encode_row(5, None)),
    ]
}
