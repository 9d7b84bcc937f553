//! Where a record came from.

use std::rc::Rc;
use std::sync::Arc;

use crate::fetch::PartitionBatch;
use crate::{Headers, TopicPartition};

/// Where the record in hand came from.
#[derive(Clone, Debug)]
pub struct RecordContext {
    /// The topic; empty in a punctuation.
    pub topic: Arc<str>,
    /// The partition; -1 in a punctuation.
    pub partition: i32,
    /// The offset; -1 in a punctuation.
    pub offset: i64,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The headers of the source record.
    pub headers: Headers,
    pub(super) raw: Option<(Rc<PartitionBatch>, usize)>,
}

impl RecordContext {
    /// Becomes the place of a source record. Mostly it is the next one of the same run; then no name is touched and
    /// nothing is counted up or down.
    pub(crate) fn move_to_record(
        &mut self,
        at: &TopicPartition,
        batch: &Rc<PartitionBatch>,
        index: usize,
        timestamp_ms: i64,
    ) {
        if !Arc::ptr_eq(&self.topic, &at.topic) {
            self.topic = Arc::clone(&at.topic);
        }
        self.partition = at.partition;
        self.offset = batch.offset(index);
        self.timestamp_ms = timestamp_ms;
        let headers = batch.headers(index);
        if !(self.headers.is_empty() && headers.is_empty()) {
            self.headers = headers.collect();
        }
        match &mut self.raw {
            Some((held, at)) if Rc::ptr_eq(held, batch) => *at = index,
            raw => *raw = Some((Rc::clone(batch), index)),
        }
    }

    /// The same place without the record's bytes, for entries that live on in a cache.
    pub(crate) fn without_raw(&self) -> Self {
        RecordContext {
            topic: Arc::clone(&self.topic),
            headers: self.headers.clone(),
            raw: None,
            ..*self
        }
    }

    /// Becomes the place of a newer record with these times and headers. The topic is mostly the same one, and then its
    /// name is not touched.
    pub(crate) fn move_to(&mut self, newer: &RecordContext, timestamp_ms: i64, headers: &Headers) {
        if !Arc::ptr_eq(&self.topic, &newer.topic) {
            self.topic = Arc::clone(&newer.topic);
        }
        self.partition = newer.partition;
        self.offset = newer.offset;
        self.timestamp_ms = timestamp_ms;
        if !(self.headers.is_empty() && headers.is_empty()) {
            self.headers = headers.clone();
        }
    }

    /// The place of a record that was kept aside, when it goes on. Its bytes are not known any more.
    #[must_use]
    pub fn of_kept(topic: Arc<str>, partition: i32, offset: i64, timestamp_ms: i64, headers: Headers) -> Self {
        RecordContext {
            topic,
            partition,
            offset,
            timestamp_ms,
            headers,
            raw: None,
        }
    }

    pub(crate) fn of_punctuation(timestamp_ms: i64) -> Self {
        let headers = Headers::default();
        RecordContext {
            topic: Arc::from(""),
            partition: -1,
            offset: -1,
            timestamp_ms,
            headers,
            raw: None,
        }
    }
}
