//! The outbox: what the tasks want to send, as one growing buffer per poll. No allocation per record.
//!
//! Nothing in it was sent yet, so it can be cut back to a mark (a record whose effects are undone) or thrown away
//! (an aborted epoch). Its bound is soft and belongs to the caller: it is checked between records, never inside one.

use std::sync::Arc;

use hashbrown::HashMap;

pub use crate::packed_headers::HeaderIter;

use crate::packed_headers;

/// Let the client's partitioner choose (murmur2 of the key, random without one).
pub const ANY_PARTITION: i32 = -1;

const NULL: u32 = u32::MAX;

/// Records waiting to be sent, in the order in which they were written.
///
/// # Example
/// ```
/// use streams_core::outbox::Outbox;
/// let mut outbox = Outbox::default();
/// let invoices = outbox.topic("invoices");
/// let mark = outbox.mark();
/// outbox.push(invoices, 2, 1_700_000_000_000, Some(b"tenant"), Some(b"12.50"), [], 0)?;
/// assert_eq!((outbox.len(), outbox.bytes()), (1, 11));
/// outbox.truncate(mark);
/// assert!(outbox.is_empty());
/// # Ok::<(), streams_core::outbox::RecordTooLarge>(())
/// ```
#[derive(Debug, Default)]
pub struct Outbox {
    topics: Vec<Arc<str>>,
    indexes: HashMap<Arc<str>, u32>,
    arena: Vec<u8>,
    entries: Vec<OutEntry>,
}

#[derive(Clone, Copy, Debug)]
struct OutEntry {
    start: usize,
    timestamp_ms: i64,
    topic: u32,
    partition: i32,
    slot: u32,
    key_len: u32,
    value_len: u32,
    headers_len: u32,
}

/// A place in an [`Outbox`] to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxMark {
    entries: usize,
    bytes: usize,
}

/// A key, value or set of headers longer than Kafka's own limit of 2 GiB.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record for topic {topic} is larger than Kafka can carry (2147483647 bytes per field): make it smaller")]
pub struct RecordTooLarge {
    /// The topic the record was meant for.
    pub topic: String,
}

/// One record of an [`Outbox`], borrowed from it.
#[derive(Clone, Debug)]
pub struct OutRecord<'a> {
    /// The topic's index in [`Outbox::topic_names`].
    pub topic: u32,
    /// The partition, or [`ANY_PARTITION`].
    pub partition: i32,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: HeaderIter<'a>,
    /// Under which number acknowledged offsets are reported (a store's changelog partition); 0 = not asked for.
    pub slot: u32,
}

impl Outbox {
    /// The index of a topic in this outbox; a new name gets the next one. Indexes stay valid for the outbox's life.
    pub fn topic(&mut self, name: &str) -> u32 {
        if let Some(index) = self.indexes.get(name) {
            return *index;
        }
        let name: Arc<str> = name.into();
        // One topic more than u32::MAX can't be: each has a name of its own in memory.
        let index = u32::try_from(self.topics.len()).unwrap_or(u32::MAX);
        self.topics.push(Arc::clone(&name));
        self.indexes.insert(name, index);
        index
    }

    /// The topics known so far, by index.
    #[must_use]
    pub fn topic_names(&self) -> &[Arc<str>] {
        &self.topics
    }

    /// Appends a record. `partition` may be [`ANY_PARTITION`]; `timestamp_ms` is milliseconds since the Unix epoch;
    /// `None` is a null key or value; `slot` is the number under which acknowledged offsets are reported, 0 = none.
    ///
    /// # Errors
    /// [`RecordTooLarge`] when a field is longer than Kafka can carry; the outbox is then as before.
    #[allow(
        clippy::too_many_arguments,
        reason = "a record has this many parts, and a struct would be built per record"
    )]
    pub fn push<'h>(
        &mut self,
        topic: u32,
        partition: i32,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
        slot: u32,
    ) -> Result<(), RecordTooLarge> {
        let start = self.arena.len();
        self.arena.extend_from_slice(key.unwrap_or_default());
        self.arena.extend_from_slice(value.unwrap_or_default());
        let headers_start = self.arena.len();
        let fits = headers
            .into_iter()
            .all(|(name, value)| packed_headers::append(&mut self.arena, name, value));
        let lengths = (
            key.map_or(Some(NULL), packed_headers::length),
            value.map_or(Some(NULL), packed_headers::length),
            fits.then(|| u32::try_from(self.arena.len() - headers_start).ok())
                .flatten(),
        );
        let (Some(key_len), Some(value_len), Some(headers_len)) = lengths else {
            self.arena.truncate(start);
            let topic = self
                .topics
                .get(topic as usize)
                .map(ToString::to_string)
                .unwrap_or_default();
            return Err(RecordTooLarge { topic });
        };
        self.entries.push(OutEntry {
            start,
            timestamp_ms,
            topic,
            partition,
            slot,
            key_len,
            value_len,
            headers_len,
        });
        Ok(())
    }

    /// How many records are waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of the waiting records: keys, values and packed headers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arena.len()
    }

    /// The memory held, in bytes; it stays after [`clear`](Self::clear).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.arena.capacity() + self.entries.capacity() * size_of::<OutEntry>()
    }

    /// The place to go back to in order to undo everything pushed from now on.
    #[must_use]
    pub fn mark(&self) -> OutboxMark {
        OutboxMark {
            entries: self.entries.len(),
            bytes: self.arena.len(),
        }
    }

    /// The record pushed last.
    pub(crate) fn last(&self) -> Option<OutRecord<'_>> {
        self.entries.last().map(|entry| self.view(entry))
    }

    /// The bytes pushed since `mark`.
    pub(crate) fn bytes_since(&self, mark: OutboxMark) -> usize {
        self.arena.len().saturating_sub(mark.bytes)
    }

    /// Drops everything pushed since `mark`. A mark from before the last [`clear`](Self::clear) changes nothing.
    pub fn truncate(&mut self, mark: OutboxMark) {
        if mark.entries < self.entries.len() {
            self.entries.truncate(mark.entries);
            self.arena.truncate(mark.bytes);
        }
    }

    /// Drops all records and keeps the memory and the topic indexes.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.arena.clear();
    }

    /// Gives memory above `max_bytes` back; for use after a burst, when the outbox is empty.
    pub fn shrink(&mut self, max_bytes: usize) {
        if self.heap_bytes() > max_bytes {
            self.arena.shrink_to(max_bytes / 2);
            self.entries.shrink_to(max_bytes / 2 / size_of::<OutEntry>());
        }
    }

    /// The waiting records from `first` on, in the order in which they were pushed.
    pub fn iter_from(&self, first: usize) -> impl ExactSizeIterator<Item = OutRecord<'_>> {
        self.entries
            .get(first..)
            .unwrap_or_default()
            .iter()
            .map(|entry| self.view(entry))
    }

    /// The waiting records, in the order in which they were pushed.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OutRecord<'_>> {
        self.iter_from(0)
    }

    fn view(&self, entry: &OutEntry) -> OutRecord<'_> {
        let value_start = entry.start + stored(entry.key_len);
        let headers_start = value_start + stored(entry.value_len);
        OutRecord {
            topic: entry.topic,
            partition: entry.partition,
            timestamp_ms: entry.timestamp_ms,
            key: self.slice(entry.start, entry.key_len),
            value: self.slice(value_start, entry.value_len),
            headers: HeaderIter::new(self.slice(headers_start, entry.headers_len).unwrap_or_default()),
            slot: entry.slot,
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn values(outbox: &Outbox) -> Vec<Option<Vec<u8>>> {
        outbox.iter().map(|record| record.value.map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn records_come_back_as_they_were_pushed() {
        let mut outbox = Outbox::default();
        let (a, b) = (outbox.topic("a"), outbox.topic("b"));
        outbox
            .push(a, 0, 5, None, Some(b"x"), [("h", None), ("h", Some(&b"2"[..]))], 9)
            .unwrap();
        outbox.push(b, ANY_PARTITION, 6, Some(b""), None, [], 0).unwrap();
        let all: Vec<_> = outbox.iter().collect();
        assert_eq!(
            (all[0].topic, all[0].partition, all[0].timestamp_ms, all[0].slot),
            (a, 0, 5, 9)
        );
        assert_eq!((all[0].key, all[0].value), (None, Some(&b"x"[..])));
        assert_eq!(
            all[0].headers.clone().collect::<Vec<_>>(),
            [("h", None), ("h", Some(&b"2"[..]))]
        );
        assert_eq!((all[1].topic, all[1].key, all[1].value), (b, Some(&b""[..]), None));
    }

    #[test]
    fn truncate_undoes_what_came_after_the_mark() {
        let mut outbox = Outbox::default();
        let topic = outbox.topic("t");
        outbox.push(topic, 0, 0, None, Some(b"keep"), [], 0).unwrap();
        let mark = outbox.mark();
        outbox.push(topic, 0, 0, None, Some(b"drop"), [("h", None)], 0).unwrap();
        outbox.truncate(mark);
        outbox.push(topic, 0, 0, None, Some(b"next"), [], 0).unwrap();
        assert_eq!(values(&outbox), [Some(b"keep".to_vec()), Some(b"next".to_vec())]);
    }

    #[test]
    fn clear_keeps_memory_and_topic_indexes() {
        let mut outbox = Outbox::default();
        let topic = outbox.topic("t");
        outbox.push(topic, 0, 0, None, Some(&[1; 1000]), [], 0).unwrap();
        let held = outbox.heap_bytes();
        outbox.clear();
        assert_eq!((outbox.len(), outbox.bytes(), outbox.heap_bytes()), (0, 0, held));
        assert_eq!(outbox.topic("t"), topic);
        outbox.shrink(0);
        assert_eq!(outbox.heap_bytes(), 0);
    }
}
