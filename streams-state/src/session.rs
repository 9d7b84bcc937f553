//! Sessions over any ordered byte store: rows in time buckets by the session's end, read bucket by bucket.

use std::ops::Bound;

use crate::codec::session_key::SessionKey;
use crate::codec::window_key::bucket_of;
use crate::error::StateError;
use crate::range::{Direction, RangeIter};
use crate::store::{KeyValueStore, SessionStore};

/// How a session store lays out its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLayout {
    /// Width of a bucket, milliseconds, at least 1.
    pub segment_interval_ms: i64,
}

impl SessionLayout {
    /// The local key of a session.
    #[must_use]
    pub fn local_key(&self, session: &SessionKey<'_>) -> Vec<u8> {
        session.to_local_key(bucket_of(session.end_ms, self.segment_interval_ms))
    }
}

/// Which sessions are wanted.
#[derive(Debug, Clone)]
pub(crate) struct SessionSlice {
    /// Of this key alone.
    pub(crate) key: Option<Vec<u8>>,
    /// Ends from here on, inclusive.
    pub(crate) from_end_ms: i64,
    /// Ends up to here, inclusive.
    pub(crate) to_end_ms: i64,
    /// Starts up to here, inclusive.
    pub(crate) to_start_ms: i64,
}

impl SessionSlice {
    /// The sessions of a key that end from a time on and start up to one.
    pub(crate) fn of_key(key: &[u8], from_end_ms: i64, to_start_ms: i64) -> Self {
        SessionSlice {
            key: Some(key.to_vec()),
            from_end_ms: from_end_ms.max(0),
            to_end_ms: i64::MAX,
            to_start_ms,
        }
    }

    fn wants(&self, session: &SessionKey<'_>) -> bool {
        self.key.as_deref().is_none_or(|key| key == session.key)
            && (self.from_end_ms..=self.to_end_ms).contains(&session.end_ms)
            && session.start_ms <= self.to_start_ms
    }

    /// The first bytes behind the bucket that can be wanted.
    fn first(&self) -> Vec<u8> {
        let first = |key| SessionKey {
            key,
            start_ms: 0,
            end_ms: self.from_end_ms,
        };
        self.key
            .as_deref()
            .map(|key| first(key).to_changelog_key())
            .unwrap_or_default()
    }

    /// The last bytes behind the bucket that can be wanted; `None`: any.
    fn last(&self) -> Option<Vec<u8>> {
        let last = |key| SessionKey {
            key,
            start_ms: i64::MAX,
            end_ms: self.to_end_ms,
        };
        self.key.as_deref().map(|key| last(key).to_changelog_key())
    }

    /// The local rows that hold everything wanted.
    pub(crate) fn bounds(&self, layout: &SessionLayout) -> (Vec<u8>, Vec<u8>) {
        let first = bucketed(bucket_of(self.from_end_ms, layout.segment_interval_ms), &self.first());
        let last = bucket_of(self.to_end_ms.max(0), layout.segment_interval_ms).saturating_add(1);
        (first, last.to_be_bytes().to_vec())
    }
}

fn bucketed(bucket: u64, inside: &[u8]) -> Vec<u8> {
    let mut bytes = bucket.to_be_bytes().to_vec();
    bytes.extend_from_slice(inside);
    bytes
}

/// A [`SessionStore`] over a [`KeyValueStore`].
#[derive(Debug)]
pub struct Sessions<S> {
    rows: S,
    layout: SessionLayout,
}

impl<S: KeyValueStore> Sessions<S> {
    /// Sessions over `rows`, which must hold nothing but rows of this layout.
    pub fn new(rows: S, layout: SessionLayout) -> Self {
        Self { rows, layout }
    }

    fn slice(&mut self, slice: SessionSlice) -> Result<SessionIter, StateError> {
        let (lower, upper) = slice.bounds(&self.layout);
        let rows = self
            .rows
            .range(Bound::Included(&lower), Bound::Excluded(&upper), Direction::Forward)?;
        Ok(SessionIter::new(rows, slice))
    }
}

impl<S: KeyValueStore> SessionStore for Sessions<S> {
    fn put(&mut self, key: &[u8], start_ms: i64, end_ms: i64, value: Option<&[u8]>) -> Result<(), StateError> {
        let session = SessionKey { key, start_ms, end_ms };
        if start_ms < 0 || end_ms < start_ms {
            let reason = format!("a session cannot reach from {start_ms} to {end_ms} ms");
            return Err(StateError::InvalidWindowKey {
                store: String::new(),
                reason,
            });
        }
        self.rows.put(&self.layout.local_key(&session), value)
    }

    fn fetch(
        &self,
        key: &[u8],
        start_ms: i64,
        end_ms: i64,
        read: &mut dyn FnMut(Option<&[u8]>),
    ) -> Result<(), StateError> {
        let session = SessionKey { key, start_ms, end_ms };
        self.rows.get(&self.layout.local_key(&session), read)
    }

    fn find(&mut self, key: &[u8], from_end_ms: i64, to_start_ms: i64) -> Result<SessionIter, StateError> {
        self.slice(SessionSlice::of_key(key, from_end_ms, to_start_ms))
    }

    fn ended(&mut self, from_end_ms: i64, to_end_ms: i64) -> Result<SessionIter, StateError> {
        self.slice(SessionSlice {
            key: None,
            from_end_ms: from_end_ms.max(0),
            to_end_ms,
            to_start_ms: i64::MAX,
        })
    }
}

/// A row of a session store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The serialized key.
    pub key: Box<[u8]>,
    /// The session's first time, milliseconds of event time.
    pub start_ms: i64,
    /// The session's last time, milliseconds of event time.
    pub end_ms: i64,
    /// The value.
    pub value: Box<[u8]>,
}

/// Rows of a session store, as it was when the iterator was made; ordered by bucket, then key, end and start.
#[derive(Debug)]
pub struct SessionIter {
    rows: RangeIter,
    slice: SessionSlice,
    first: Vec<u8>,
    last: Option<Vec<u8>>,
    done: bool,
}

impl SessionIter {
    pub(crate) fn new(rows: RangeIter, slice: SessionSlice) -> Self {
        let done = slice.to_end_ms < slice.from_end_ms;
        Self {
            rows,
            first: slice.first(),
            last: slice.last(),
            slice,
            done,
        }
    }

    /// The next row, lent until the next call.
    ///
    /// # Errors
    /// The storage could not be read.
    pub fn next_row(&mut self) -> Result<Option<(SessionKey<'_>, &[u8])>, StateError> {
        if !self.find()? {
            return Ok(None);
        }
        let row = self.rows.next_row()?;
        Ok(row.and_then(|(key, value)| Some((SessionKey::from_local_key(key)?.1, value))))
    }

    /// Stops before the next row that is wanted; false if there is none.
    fn find(&mut self) -> Result<bool, StateError> {
        while !self.done {
            let Some((key, _)) = self.rows.peek()? else { break };
            // A key too short for a session can only come from a store of another layout: skipped.
            let Some((bucket, session)) = SessionKey::from_local_key(key) else {
                self.rows.next_row()?;
                continue;
            };
            let inside = key.get(8..).unwrap_or_default();
            if inside < self.first.as_slice() {
                self.rows.seek(&bucketed(bucket, &self.first))?;
            } else if self.last.as_ref().is_some_and(|last| inside > last.as_slice()) {
                self.rows.seek(&bucketed(bucket.saturating_add(1), &self.first))?;
            } else if self.slice.wants(&session) {
                return Ok(true);
            } else {
                self.rows.next_row()?;
            }
        }
        self.done = true;
        Ok(false)
    }
}

impl Iterator for SessionIter {
    type Item = Result<SessionRow, StateError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_row().map(|row| {
            row.map(|(session, value)| SessionRow {
                key: session.key.into(),
                start_ms: session.start_ms,
                end_ms: session.end_ms,
                value: value.into(),
            })
        });
        if row.is_err() {
            self.done = true;
        }
        row.transpose()
    }
}

#[cfg(test)]
mod tests;
