//! One partition's log in memory, with transactions: records, markers, last stable offset.

use std::collections::BTreeMap;

use crate::Headers;

/// A record as it lies in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its offset.
    pub offset: i64,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The key; `None` is null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is null.
    pub value: Option<Vec<u8>>,
    /// The headers.
    pub headers: Headers,
}

#[derive(Clone, Debug)]
enum Entry {
    Record(LogRecord, Option<u64>),
    Marker,
    /// Compacted away; its offset stays taken.
    Removed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Committed,
    Aborted,
}

/// A partition's log. Offsets begin at 0 and markers take one each, as on a broker.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: Vec<Entry>,
    fates: BTreeMap<u64, Fate>,
    /// The first offsets of open transactions; there are few, however long the log is.
    open: BTreeMap<u64, i64>,
    start: i64,
}

impl Log {
    /// The end of the log: the offset that the next entry gets.
    #[must_use]
    pub fn high_watermark(&self) -> i64 {
        i64::try_from(self.entries.len()).unwrap_or(i64::MAX)
    }

    /// The first offset that can be read.
    #[must_use]
    pub fn log_start(&self) -> i64 {
        self.start
    }

    /// Forgets everything below `offset`, as `DeleteRecords` does.
    pub fn delete_before(&mut self, offset: i64) {
        self.start = self.start.max(offset.min(self.high_watermark()));
    }

    /// The log with all that [`delete_before`](Self::delete_before) took, to compare with.
    #[must_use]
    pub fn with_history(&self) -> Log {
        Log {
            start: 0,
            ..self.clone()
        }
    }

    /// Loses everything from `end` on, as after the election of a replica that was behind. Call it while no transaction is
    /// open.
    pub fn truncate(&mut self, end: i64) {
        self.entries.truncate(usize::try_from(end).unwrap_or(0));
        self.start = self.start.min(self.high_watermark());
    }

    /// The first offset of the oldest open transaction, or the end.
    #[must_use]
    pub fn last_stable_offset(&self) -> i64 {
        let first = self.open.values().min();
        first.copied().unwrap_or_else(|| self.high_watermark())
    }

    /// Appends a record, under a transaction if there is one; answers its offset.
    pub fn append(&mut self, mut record: LogRecord, transaction: Option<u64>) -> i64 {
        let offset = self.high_watermark();
        record.offset = offset;
        self.entries.push(Entry::Record(record, transaction));
        if let Some(transaction) = transaction {
            self.fates.entry(transaction).or_insert(Fate::Open);
            self.open.entry(transaction).or_insert(offset);
        }
        offset
    }

    /// Ends a transaction; a log that it did not touch gets no marker.
    pub fn end(&mut self, transaction: u64, committed: bool) {
        if self.open.remove(&transaction).is_some() {
            let fate = if committed { Fate::Committed } else { Fate::Aborted };
            self.fates.insert(transaction, fate);
            self.entries.push(Entry::Marker);
        }
    }

    /// Compacts the records below `below` (and below the last stable offset), as the log cleaner does: aborted records go,
    /// of each key the last record stays, and a deletion stays only if `keep_deletions`. Answers how many went.
    pub fn compact(&mut self, below: i64, keep_deletions: bool) -> usize {
        let end = below.min(self.last_stable_offset());
        let mut latest: BTreeMap<Option<Vec<u8>>, i64> = BTreeMap::new();
        for entry in &self.entries {
            if let Entry::Record(record, transaction) = entry
                && self.is_committed(*transaction)
            {
                latest.insert(record.key.clone(), record.offset);
            }
        }
        let fates = &self.fates;
        let mut removed = 0;
        for (entry, offset) in self.entries.iter_mut().zip(0_i64..end) {
            let Entry::Record(record, transaction) = entry else {
                continue;
            };
            let fate = transaction.and_then(|transaction| fates.get(&transaction));
            let aborted = fate.is_some_and(|fate| *fate != Fate::Committed);
            let overwritten = latest.get(&record.key).is_some_and(|last| *last > offset);
            if aborted || overwritten || (record.value.is_none() && !keep_deletions) {
                *entry = Entry::Removed;
                removed += 1;
            }
        }
        removed
    }

    /// The first offset whose record is at or after `timestamp_ms`, among what can be read; the end if there is none.
    #[must_use]
    pub fn offset_of_time(&self, timestamp_ms: i64) -> i64 {
        let found = self.entries.iter().find_map(|entry| match entry {
            Entry::Record(record, _) if record.timestamp_ms >= timestamp_ms && record.offset >= self.start => {
                Some(record.offset)
            }
            _ => None,
        });
        found.unwrap_or_else(|| self.high_watermark())
    }

    fn is_committed(&self, transaction: Option<u64>) -> bool {
        let fate = transaction.and_then(|transaction| self.fates.get(&transaction));
        fate.is_none_or(|fate| *fate == Fate::Committed)
    }

    /// Up to `max` committed records from `from` on, and the position behind what was looked at: past markers and
    /// aborted records, never past the last stable offset.
    #[must_use]
    pub fn read_committed(&self, from: i64, max: usize) -> (Vec<LogRecord>, i64) {
        let mut records = Vec::new();
        let mut position = from.max(self.start);
        let end = self.last_stable_offset();
        while position < end && records.len() < max {
            let Some(entry) = usize::try_from(position).ok().and_then(|at| self.entries.get(at)) else {
                break;
            };
            if let Entry::Record(record, transaction) = entry {
                if self.is_committed(*transaction) {
                    records.push(record.clone());
                }
            }
            position += 1;
        }
        (records, position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: &str) -> LogRecord {
        LogRecord {
            offset: 0,
            timestamp_ms: 0,
            key: None,
            value: Some(value.as_bytes().to_vec()),
            headers: Headers::default(),
        }
    }

    #[test]
    fn an_open_transaction_holds_the_last_stable_offset() {
        let mut log = Log::default();
        log.append(record("a"), None);
        log.append(record("b"), Some(1));
        log.append(record("c"), None);
        assert_eq!((log.last_stable_offset(), log.high_watermark()), (1, 3));
        assert_eq!(log.read_committed(0, 10).0.len(), 1);
        log.end(1, true);
        let (records, position) = log.read_committed(0, 10);
        assert_eq!((records.len(), position, log.high_watermark()), (3, 4, 4));
    }

    #[test]
    fn compaction_keeps_the_last_record_of_each_key_and_every_offset() {
        let keyed = |key: &str, value: Option<&str>| LogRecord {
            key: Some(key.as_bytes().to_vec()),
            value: value.map(|value| value.as_bytes().to_vec()),
            ..record("")
        };
        let mut log = Log::default();
        for (key, value) in [("a", Some("1")), ("b", Some("1")), ("a", Some("2")), ("b", None)] {
            log.append(keyed(key, value), None);
        }
        log.append(keyed("a", Some("aborted")), Some(1));
        log.end(1, false);
        log.append(keyed("a", Some("open")), Some(2));
        assert_eq!(log.compact(i64::MAX, true), 3);
        assert_eq!((log.high_watermark(), log.last_stable_offset()), (7, 6));
        let offsets = |log: &Log| log.read_committed(0, 10).0.iter().map(|r| r.offset).collect::<Vec<_>>();
        assert_eq!(offsets(&log), [2, 3]);
        assert_eq!(log.compact(i64::MAX, false), 1);
        assert_eq!(offsets(&log), [2]);
    }

    #[test]
    fn what_was_deleted_is_still_history_and_what_was_truncated_is_not() {
        let mut log = Log::default();
        for value in ["a", "b", "c"] {
            log.append(record(value), None);
        }
        log.delete_before(2);
        assert_eq!(log.read_committed(0, 10).0.len(), 1);
        assert_eq!(log.with_history().read_committed(0, 10).0.len(), 3);
        log.truncate(1);
        assert_eq!((log.log_start(), log.high_watermark()), (1, 1));
        assert_eq!(log.with_history().read_committed(0, 10).0.len(), 1);
    }

    #[test]
    fn aborted_records_are_passed_over_and_the_position_moves_past_their_marker() {
        let mut log = Log::default();
        log.append(record("a"), Some(1));
        log.end(1, false);
        assert_eq!(log.read_committed(0, 10), (Vec::new(), 2));
    }
}
