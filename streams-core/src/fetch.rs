//! What a consumer hands to the tasks: runs of records of one partition, end-of-partition marks and errors.
//!
//! Plain values without a client behind them, so that the test driver and a simulator can make them too.

pub use crate::packed_headers::HeaderIter;

use crate::packed_headers;

/// The number the runtime gave a partition when it assigned it; every fetched thing carries it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u32);

/// One run of consecutive fetched records of one partition. Keys, values and headers lie in one buffer.
///
/// # Example
/// ```
/// use streams_core::fetch::{PartitionBatch, PartitionId};
/// let mut batch = PartitionBatch::new(PartitionId(0), 1);
/// assert!(batch.push(41, 1_700_000_000_000, 3, Some(b"key"), None, [("trace", Some(&b"x"[..]))]));
/// assert_eq!((batch.len(), batch.offset(0)), (1, 41));
/// assert_eq!((batch.key(0), batch.value(0)), (Some(&b"key"[..]), None));
/// ```
#[derive(Clone, Debug)]
pub struct PartitionBatch {
    /// The partition, as numbered at its assignment.
    pub partition: PartitionId,
    /// The incarnation given at the assignment; a batch of an older one must not be processed.
    pub incarnation: u64,
    arena: Vec<u8>,
    entries: Vec<Entry>,
}

const NULL: u32 = u32::MAX;

/// A batch takes no more records when its buffer would pass this many bytes.
pub const MAX_BATCH_BYTES: usize = 1 << 30;

#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: i64,
    timestamp_ms: i64,
    start: u32,
    key_len: u32,
    value_len: u32,
    headers_len: u32,
    leader_epoch: i32,
}

/// One record of a [`PartitionBatch`], borrowed from it.
#[derive(Clone, Debug)]
pub struct FetchedRecord<'a> {
    /// The record's offset in its partition.
    pub offset: i64,
    /// The record's timestamp, milliseconds since the Unix epoch; -1 when the broker sent none.
    pub timestamp_ms: i64,
    /// The leader epoch of the record's batch; -1 when unknown.
    pub leader_epoch: i32,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: HeaderIter<'a>,
}

impl PartitionBatch {
    /// An empty batch.
    #[must_use]
    pub fn new(partition: PartitionId, incarnation: u64) -> Self {
        Self::with_capacity(partition, incarnation, 0, 0)
    }

    /// An empty batch with room for `records` records of together `bytes` bytes.
    #[must_use]
    pub fn with_capacity(partition: PartitionId, incarnation: u64, records: usize, bytes: usize) -> Self {
        let (arena, entries) = (Vec::with_capacity(bytes), Vec::with_capacity(records));
        PartitionBatch {
            partition,
            incarnation,
            arena,
            entries,
        }
    }

    /// Appends a record; `timestamp_ms` is milliseconds since the Unix epoch, `None` is a null key or value.
    ///
    /// Returns false, and keeps the batch as it was, when the batch would grow past [`MAX_BATCH_BYTES`]; an empty
    /// batch takes any record Kafka can carry.
    #[must_use]
    pub fn push<'h>(
        &mut self,
        offset: i64,
        timestamp_ms: i64,
        leader_epoch: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
    ) -> bool {
        self.push_named(offset, timestamp_ms, leader_epoch, key, value, headers)
    }

    /// As [`push`](Self::push), for header names that may be owned (a client repairs names that are not UTF-8).
    #[must_use]
    pub(crate) fn push_named<'h, N: AsRef<str>>(
        &mut self,
        offset: i64,
        timestamp_ms: i64,
        leader_epoch: i32,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (N, Option<&'h [u8]>)>,
    ) -> bool {
        let (key_bytes, value_bytes) = (key.unwrap_or_default(), value.unwrap_or_default());
        let start = self.arena.len();
        if !self.entries.is_empty() && start + key_bytes.len() + value_bytes.len() > MAX_BATCH_BYTES {
            return false;
        }
        self.arena.extend_from_slice(key_bytes);
        self.arena.extend_from_slice(value_bytes);
        let headers_start = self.arena.len();
        let fits = headers
            .into_iter()
            .all(|(name, value)| packed_headers::append(&mut self.arena, name.as_ref(), value));
        let lengths = (
            fits.then(|| u32::try_from(start).ok()).flatten(),
            key.map_or(Some(NULL), packed_headers::length),
            value.map_or(Some(NULL), packed_headers::length),
            u32::try_from(self.arena.len() - headers_start).ok(),
        );
        let (Some(start), Some(key_len), Some(value_len), Some(headers_len)) = lengths else {
            self.arena.truncate(start);
            return false;
        };
        self.entries.push(Entry {
            offset,
            timestamp_ms,
            start,
            key_len,
            value_len,
            headers_len,
            leader_epoch,
        });
        true
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The whole record at `index`, counted from 0 in the order of offsets.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<FetchedRecord<'_>> {
        self.entries.get(index).map(|entry| self.view(entry))
    }

    /// All records, in the order of offsets.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FetchedRecord<'_>> {
        self.entries.iter().map(|entry| self.view(entry))
    }

    /// The offset of the record at `index`; -1 beyond the end.
    #[must_use]
    pub fn offset(&self, index: usize) -> i64 {
        self.entries.get(index).map_or(-1, |entry| entry.offset)
    }

    /// The timestamp of the record at `index`, milliseconds since the Unix epoch; -1 beyond the end.
    #[must_use]
    pub fn timestamp_ms(&self, index: usize) -> i64 {
        self.entries.get(index).map_or(-1, |entry| entry.timestamp_ms)
    }

    /// The leader epoch of the record at `index`; -1 when unknown or beyond the end.
    #[must_use]
    pub fn leader_epoch(&self, index: usize) -> i32 {
        self.entries.get(index).map_or(-1, |entry| entry.leader_epoch)
    }

    /// The key of the record at `index`; `None` for null, and beyond the end.
    #[must_use]
    pub fn key(&self, index: usize) -> Option<&[u8]> {
        self.entries.get(index).and_then(|entry| self.key_of(entry))
    }

    /// The value of the record at `index`; `None` for null, and beyond the end.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        self.entries.get(index).and_then(|entry| self.value_of(entry))
    }

    /// The headers of the record at `index`, in order; none beyond the end.
    #[must_use]
    pub fn headers(&self, index: usize) -> HeaderIter<'_> {
        self.entries
            .get(index)
            .map_or_else(HeaderIter::default, |entry| self.headers_of(entry))
    }

    /// The memory this batch holds, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.arena.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    fn view(&self, entry: &Entry) -> FetchedRecord<'_> {
        FetchedRecord {
            offset: entry.offset,
            timestamp_ms: entry.timestamp_ms,
            leader_epoch: entry.leader_epoch,
            key: self.key_of(entry),
            value: self.value_of(entry),
            headers: self.headers_of(entry),
        }
    }

    fn key_of(&self, entry: &Entry) -> Option<&[u8]> {
        self.slice(entry.start as usize, entry.key_len)
    }

    fn value_of(&self, entry: &Entry) -> Option<&[u8]> {
        self.slice(entry.start as usize + stored(entry.key_len), entry.value_len)
    }

    fn headers_of(&self, entry: &Entry) -> HeaderIter<'_> {
        let start = entry.start as usize + stored(entry.key_len) + stored(entry.value_len);
        HeaderIter::new(self.slice(start, entry.headers_len).unwrap_or_default())
    }

    fn slice(&self, start: usize, len: u32) -> Option<&[u8]> {
        if len == NULL {
            None
        } else {
            self.arena.get(start..start + len as usize)
        }
    }
}

fn stored(len: u32) -> usize {
    if len == NULL { 0 } else { len as usize }
}

/// One thing that came from the consumer. For one partition these come in the order of the log: an [`Fetched::Eof`]
/// stands behind the records before it and must not move a position past records that are not processed yet.
#[derive(Debug)]
pub enum Fetched {
    /// A run of records.
    Records(PartitionBatch),
    /// Everything a consumer with this isolation level may see now was delivered: under read-committed up to the last
    /// stable offset. Says "drained", not "end of log".
    Eof {
        /// The partition, as numbered at its assignment.
        partition: PartitionId,
        /// The incarnation given at the assignment.
        incarnation: u64,
        /// The next offset to read: past transaction markers and aborted records.
        offset: i64,
    },
    /// Something went wrong; nothing of the log was skipped.
    Error(FetchError),
}

impl Fetched {
    /// How many records it brings.
    #[must_use]
    pub fn records(&self) -> usize {
        match self {
            Fetched::Records(batch) => batch.len(),
            Fetched::Eof { .. } | Fetched::Error(_) => 0,
        }
    }
}

/// An error met while fetching, of one partition or of the whole client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fetching failed ({kind:?}): {message}")]
pub struct FetchError {
    /// The partition and its incarnation; `None` when the error concerns the client.
    pub partition: Option<(PartitionId, u64)>,
    /// What to do about it.
    pub kind: FetchErrorKind,
    /// librdkafka's description, with the broker's where there is one.
    pub message: String,
}

/// Fetch errors by the decision they force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The offset asked for is not in the log (trimmed, or beyond its end): apply the reset policy of the topic.
    OutOfRange {
        /// The offset that was refused; negative when the client did not say.
        offset: i64,
    },
    /// No permission to read the topic: needs an ACL (Read on the topic).
    TopicAuthorization,
    /// No permission on the consumer group: needs an ACL (Read on the group).
    GroupAuthorization,
    /// The topic or partition does not exist, or not any more. Comes after `topic.metadata.propagation.max.ms` (30 s),
    /// because a new topic takes its time to be known everywhere, and again at every look.
    UnknownTopic,
    /// The broker refused the credentials.
    Authentication,
    /// Connection trouble, repaired by the client itself: information, not an error.
    Transport,
    /// The client can't go on; it must be closed and made anew.
    Fatal,
    /// Anything else; the number is librdkafka's code.
    Other(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_HEADERS: [(&str, Option<&[u8]>); 0] = [];

    #[test]
    fn null_and_empty_keys_and_values_stay_different() {
        let mut batch = PartitionBatch::new(PartitionId(7), 3);
        assert!(batch.push(10, 100, 1, None, Some(b""), NO_HEADERS));
        assert!(batch.push(12, 101, 2, Some(b""), None, [("h", None)]));
        assert!(batch.push(13, -1, -1, Some(b"k"), Some(b"value"), NO_HEADERS));
        assert_eq!(batch.len(), 3);
        assert_eq!((batch.key(0), batch.value(0)), (None, Some(&b""[..])));
        assert_eq!((batch.key(1), batch.value(1)), (Some(&b""[..]), None));
        assert_eq!((batch.key(2), batch.value(2)), (Some(&b"k"[..]), Some(&b"value"[..])));
        assert_eq!(batch.headers(1).collect::<Vec<_>>(), [("h", None)]);
        assert_eq!([batch.offset(0), batch.offset(1), batch.offset(2)], [10, 12, 13]);
        assert_eq!(batch.iter().map(|r| r.timestamp_ms).collect::<Vec<_>>(), [100, 101, -1]);
        assert_eq!(batch.leader_epoch(1), 2);
    }

    #[test]
    fn beyond_the_end_there_is_nothing() {
        let batch = PartitionBatch::new(PartitionId(0), 0);
        assert!(batch.is_empty() && batch.get(0).is_none());
        assert_eq!((batch.offset(0), batch.key(0), batch.headers(0).count()), (-1, None, 0));
    }

    #[test]
    fn a_batch_can_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<PartitionBatch>();
        is_send::<Fetched>();
    }
}
