//! Versions over any ordered byte store: for each key the values it had, and from when to when (KIP-889).
//!
//! Java counterpart: `RocksDBVersionedStore`. The rules are Java's; the local layout is ours, and a tombstone that is the
//! newest version is kept as one, so that an older update behind it is known to be older (Java forgets it when it
//! replaces a value of the same time).

mod layout;

use std::ops::Bound;

use crate::error::StateError;
use crate::range::Direction;
use crate::store::KeyValueStore;

pub use layout::VersionLayout;
use layout::{OBSERVED, VersionKey, decode_row, encode_row, latest_key};
#[cfg(feature = "fuzzing")]
pub(crate) use layout::{fuzz_row, fuzz_row_seeds};

/// A version of a key's value. Times are milliseconds of event time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<'a> {
    /// The value; `None` = the key was deleted.
    pub value: Option<&'a [u8]>,
    /// From when it is valid, included.
    pub from_ms: i64,
    /// To when it is valid, excluded; `None` = it is the newest version.
    pub to_ms: Option<i64>,
}

/// A version that owns its value, which is never a tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    /// The value.
    pub value: Box<[u8]>,
    /// From when it is valid, included.
    pub from_ms: i64,
    /// To when it is valid, excluded; `None` = it is the newest version.
    pub to_ms: Option<i64>,
}

/// What a put did. Java: the long that `VersionedKeyValueStore.put` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionPut {
    /// It is older than the history that is kept: nothing was done (`PUT_RETURN_CODE_NOT_PUT`).
    Expired,
    /// It is the newest version of its key (`PUT_RETURN_CODE_VALID_TO_UNDEFINED`).
    Latest,
    /// It was put before a newer version, which begins at this time.
    Before(i64),
}

/// A store of versions over a [`KeyValueStore`] that holds nothing else.
#[derive(Debug)]
pub struct Versioned<S> {
    rows: S,
    layout: VersionLayout,
}

/// A version found in the history, with its local key.
struct Found {
    local_key: Vec<u8>,
    from_ms: i64,
    to_ms: i64,
    value: Option<Box<[u8]>>,
}

impl<S: KeyValueStore> Versioned<S> {
    /// Versions over `rows`.
    pub fn new(rows: S, layout: VersionLayout) -> Self {
        Self { rows, layout }
    }

    /// The highest time that was put; -1 before the first. It is a row of the store: it rolls back with the epoch and
    /// survives the process.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn observed_ms(&self) -> Result<i64, StateError> {
        let mut observed = -1;
        self.rows.get(&OBSERVED, &mut |value| {
            observed = value
                .and_then(|value| value.try_into().ok())
                .map_or(-1, i64::from_be_bytes);
        })?;
        Ok(observed)
    }

    /// The oldest time that can still be asked for and put.
    fn history_from(&self, observed_ms: i64) -> i64 {
        observed_ms.saturating_sub(self.layout.history_retention_ms)
    }

    /// Adds a version that is valid from `from_ms` (at least 0) to the begin of the next one; `None` is a tombstone. A
    /// version of the same time is replaced.
    ///
    /// # Errors
    /// A negative time, or the storage could not be read or written.
    pub fn put(&mut self, key: &[u8], from_ms: i64, value: Option<&[u8]>) -> Result<VersionPut, StateError> {
        if from_ms < 0 {
            let reason = format!("a version cannot begin at {from_ms} ms: event times below 0 are not supported");
            return Err(StateError::InvalidWindowKey {
                store: String::new(),
                reason,
            });
        }
        let observed_ms = self.observed_ms()?;
        if from_ms < self.history_from(observed_ms) {
            return Ok(VersionPut::Expired);
        }
        if from_ms > observed_ms {
            self.rows.put(&OBSERVED, Some(&from_ms.to_be_bytes()))?;
        }
        let latest_key = latest_key(key);
        let latest = self.latest_row(&latest_key)?;
        match latest {
            Some((latest_ms, _)) if from_ms < latest_ms => {
                return self.put_before(key, from_ms, value, latest_ms).map(VersionPut::Before);
            }
            Some((latest_ms, old)) if latest_ms < from_ms => {
                let local_key = self.layout.history_key(key, from_ms);
                self.rows
                    .put(&local_key, Some(&encode_row(latest_ms, old.as_deref())))?;
            }
            _ => {}
        }
        self.rows.put(&latest_key, Some(&encode_row(from_ms, value)))?;
        if value.is_none() {
            // The newest version dies with its bucket only if it is a tombstone.
            self.rows.put(&self.layout.tombstone_key(key, from_ms), Some(&[]))?;
        }
        Ok(VersionPut::Latest)
    }

    /// Puts a version into the history; answers to when it is valid.
    fn put_before(
        &mut self,
        key: &[u8],
        from_ms: i64,
        value: Option<&[u8]>,
        latest_ms: i64,
    ) -> Result<i64, StateError> {
        let row = encode_row(from_ms, value);
        let Some(next) = self.first_ending_after(key, from_ms)? else {
            // Before everything that is known.
            let local_key = self.layout.history_key(key, latest_ms);
            self.rows.put(&local_key, Some(&row))?;
            return Ok(latest_ms);
        };
        if next.from_ms > from_ms {
            let local_key = self.layout.history_key(key, next.from_ms);
            self.rows.put(&local_key, Some(&row))?;
            return Ok(next.from_ms);
        }
        if next.from_ms < from_ms {
            // Inside that version: its first part ends here now.
            let local_key = self.layout.history_key(key, from_ms);
            let first_part = encode_row(next.from_ms, next.value.as_deref());
            self.rows.put(&local_key, Some(&first_part))?;
        }
        self.rows.put(&next.local_key, Some(&row))?;
        Ok(next.to_ms)
    }

    /// Lends the newest version to `read`, called once; `None` if there is none or the key is deleted.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<Version<'_>>)) -> Result<(), StateError> {
        self.rows.get(&latest_key(key), &mut |row| {
            let version = row.and_then(decode_row).filter(|(_, value)| value.is_some());
            read(version.map(|(from_ms, value)| Version {
                value,
                from_ms,
                to_ms: None,
            }));
        })
    }

    /// The version that was valid at a time; `None` if there was none, the key was deleted then, or the time is before
    /// the history that is kept (the newest version is found all the same, if it had begun).
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn get_as_of(&mut self, key: &[u8], as_of_ms: i64) -> Result<Option<VersionRow>, StateError> {
        let Some((latest_ms, latest)) = self.latest_row(&latest_key(key))? else {
            return Ok(None);
        };
        if latest_ms <= as_of_ms {
            return Ok(latest.map(|value| VersionRow {
                value,
                from_ms: latest_ms,
                to_ms: None,
            }));
        }
        if as_of_ms < self.history_from(self.observed_ms()?) {
            return Ok(None);
        }
        let found = self.first_ending_after(key, as_of_ms)?;
        let found = found.filter(|found| found.from_ms <= as_of_ms);
        Ok(found.and_then(row_of))
    }

    /// The versions that were valid at some moment between two times, both included, by time; tombstones are left out,
    /// and so are versions that ended before the history that is kept (Java gives some of those, as long as they have not
    /// been dropped). When `to_ms` is before that history, only the newest version can be among them.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn versions(
        &mut self,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<Vec<VersionRow>, StateError> {
        let mut versions = Vec::new();
        let Some((latest_ms, latest)) = self.latest_row(&latest_key(key))? else {
            return Ok(versions);
        };
        let history_from = self.history_from(self.observed_ms()?);
        if to_ms >= history_from {
            let mut after_ms = from_ms.max(history_from.saturating_sub(1)).max(0);
            while let Some(found) = self.first_ending_after(key, after_ms)? {
                if found.from_ms > to_ms {
                    break;
                }
                after_ms = found.to_ms;
                versions.extend(row_of(found));
            }
        }
        if let (Some(value), true) = (latest, latest_ms <= to_ms) {
            versions.push(VersionRow {
                value,
                from_ms: latest_ms,
                to_ms: None,
            });
        }
        if direction == Direction::Reverse {
            versions.reverse();
        }
        Ok(versions)
    }

    /// Drops the buckets in which every version ended before `live_from_ms`, and the newest versions that are tombstones
    /// of then. What is dropped can't be seen any more in any case.
    ///
    /// # Errors
    /// The storage could not be read or written.
    pub fn expire(&mut self, live_from_ms: i64) -> Result<(), StateError> {
        let bound = self.layout.first_live_bucket(live_from_ms);
        self.drop_tombstones(bound)?;
        self.rows.delete_below(&bound.to_be_bytes())
    }

    fn drop_tombstones(&mut self, bound: u64) -> Result<(), StateError> {
        let until = bound.to_be_bytes();
        let mut rows = self
            .rows
            .range(Bound::Unbounded, Bound::Excluded(&until), Direction::Forward)?;
        let mut dead = Vec::new();
        while let Some((local_key, _)) = rows.next_row()? {
            match VersionKey::decode(local_key) {
                Some(VersionKey::Tombstone { key, from_ms }) => dead.push((key.to_vec(), from_ms)),
                Some(VersionKey::History { bucket, .. }) => rows.seek(&(bucket + 1).to_be_bytes())?,
                None => {}
            }
        }
        drop(rows);
        for (key, from_ms) in dead {
            let latest_key = latest_key(&key);
            if let Some((latest_ms, None)) = self.latest_row(&latest_key)?
                && latest_ms == from_ms
            {
                self.rows.put(&latest_key, None)?;
            }
        }
        Ok(())
    }

    /// Begin and value of the newest version.
    #[allow(clippy::type_complexity, reason = "one private answer")]
    fn latest_row(&self, latest_key: &[u8]) -> Result<Option<(i64, Option<Box<[u8]>>)>, StateError> {
        let mut latest = None;
        self.rows.get(latest_key, &mut |row| {
            latest = row
                .and_then(decode_row)
                .map(|(from_ms, value)| (from_ms, value.map(Into::into)));
        })?;
        Ok(latest)
    }

    /// The first version of the history that ends after a time. One seek for each bucket that has rows.
    fn first_ending_after(&mut self, key: &[u8], after_ms: i64) -> Result<Option<Found>, StateError> {
        let wanted_ms = after_ms.saturating_add(1);
        let mut bucket = self.layout.bucket_of(wanted_ms);
        let first = self.layout.first_in_bucket(key, bucket, wanted_ms);
        let mut rows = self
            .rows
            .range(Bound::Included(&first), Bound::Excluded(&OBSERVED), Direction::Forward)?;
        loop {
            let end = self.layout.end_of_bucket(key, bucket);
            loop {
                let Some((local_key, row)) = rows.peek()? else {
                    return Ok(None);
                };
                if local_key >= end.as_slice() {
                    break;
                }
                // Rows of longer keys may lie between those of this one.
                if let Some(VersionKey::History { key: of, to_ms, .. }) = VersionKey::decode(local_key)
                    && of == key
                {
                    let (from_ms, value) = decode_row(row).unwrap_or((to_ms, None));
                    return Ok(Some(Found {
                        local_key: local_key.to_vec(),
                        from_ms,
                        to_ms,
                        value: value.map(Into::into),
                    }));
                }
                rows.next_row()?;
            }
            let Some(next) = rows.peek()?.and_then(|(local_key, _)| local_key.first_chunk::<8>()) else {
                return Ok(None);
            };
            bucket = u64::from_be_bytes(*next).max(bucket + 1);
            let first = self.layout.first_in_bucket(key, bucket, wanted_ms);
            rows.seek(&first)?;
        }
    }
}

fn row_of(found: Found) -> Option<VersionRow> {
    found.value.map(|value| VersionRow {
        value,
        from_ms: found.from_ms,
        to_ms: Some(found.to_ms),
    })
}

#[cfg(test)]
mod tests;
