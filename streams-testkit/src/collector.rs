//! Reading what was committed: the other end of every test.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::error::{Error, Result};
use crate::topics::{Topics, ends, partitions_of};
use crate::wait::{Deadline, wait_until};

/// The longest wait for the end of a topic to be read.
const COLLECT_LIMIT: Duration = Duration::from_secs(120);
/// How long a reading waits for transactions that are open.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);
/// One wait for the next record.
const POLL_SLICE: Duration = Duration::from_millis(100);
/// Records that are taken in before a condition is looked at again.
const BATCH: usize = 1_000;
/// Records that a timeout error shows.
const SHOWN: usize = 5;

/// Which records of transactions a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Only committed ones, up to the last stable offset.
    #[default]
    ReadCommitted,
    /// All, aborted and undecided ones too, up to the high watermark.
    ReadUncommitted,
}

impl Isolation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read_committed",
            Self::ReadUncommitted => "read_uncommitted",
        }
    }
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its timestamp, in milliseconds since the Unix epoch; −1 if it has none.
    pub timestamp: i64,
    /// The key's bytes; `None` for null.
    pub key: Option<Vec<u8>>,
    /// The value's bytes; `None` for null (a tombstone).
    pub value: Option<Vec<u8>>,
    /// Its headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    fn read(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers
                .iter()
                .map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)))
                .collect()
        });
        Self {
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp().to_millis().unwrap_or(-1),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers,
        }
    }

    /// The key as text, for messages and comparisons: `null` for null, unreadable bytes replaced.
    pub fn key_text(&self) -> String {
        text(self.key.as_deref())
    }

    /// The value as text, for messages and comparisons: `null` for null, unreadable bytes replaced.
    pub fn value_text(&self) -> String {
        text(self.value.as_deref())
    }

    /// The value read as JSON; null values and missing fields follow from `T`.
    ///
    /// # Errors
    /// [`Error::Usage`] with topic position and text when the value is not such JSON.
    pub fn value_json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        let bytes = self.value.as_deref().unwrap_or(b"null");
        serde_json::from_slice(bytes)
            .map_err(|error| Error::Usage(format!("the value of {self} cannot be read: {error}")))
    }

    /// The first header of this name; `None` if there is none or its value is null.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let (_, value) = self.headers.iter().find(|(key, _)| key == name)?;
        value.as_deref()
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(
        || "null".to_owned(),
        |bytes| String::from_utf8_lossy(bytes).into_owned(),
    )
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            partition,
            offset,
            timestamp,
            ..
        } = self;
        write!(
            f,
            "[{partition}@{offset} t={timestamp}] {} = {}",
            self.key_text(),
            self.value_text()
        )
    }
}

/// The last value of each key, as a table would hold it: tombstones remove. Keys and values as text.
///
/// The records of one key must be in one partition, as every partitioner by key does it.
pub fn latest_by_key(records: &[Record]) -> BTreeMap<String, String> {
    let mut latest = BTreeMap::new();
    for record in records {
        match record.value {
            Some(_) => latest.insert(record.key_text(), record.value_text()),
            None => latest.remove(&record.key_text()),
        };
    }
    latest
}

/// Reads whole topics, committed records only unless told otherwise. Every call reads from the beginning, outside any group.
#[derive(Debug, Clone)]
pub struct Collector {
    bootstrap: String,
    isolation: Isolation,
}

impl Collector {
    /// A reader of the broker at `bootstrap` (`host:port`).
    pub fn new(bootstrap: impl Into<String>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            isolation: Isolation::ReadCommitted,
        }
    }

    /// Which records of transactions are seen.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// All records of a topic up to the last stable offset of this moment (read-uncommitted: the high watermark), sorted by partition and offset.
    /// The broker answers a commit before the records of the transaction can be read: such transactions are waited for, and
    /// so is any other that is open, for up to 3 s.
    ///
    /// # Errors
    /// [`Error::Client`] if there is no such topic; [`Error::Timeout`] if the end was not reached in 120 s.
    pub fn collect(&self, topic: &str) -> Result<Vec<Record>> {
        let mut reading = Reading::open(self, topic)?;
        if self.isolation == Isolation::ReadCommitted {
            reading.settle(&self.bootstrap)?;
        }
        reading.read_to_end(Deadline::after(COLLECT_LIMIT))?;
        Ok(reading.sorted())
    }

    /// Reads on until `predicate` holds for the records read so far, and returns those, sorted by partition and offset.
    /// The predicate gets them in the order of arrival: only within a partition is that the order of the topic.
    ///
    /// # Errors
    /// [`Error::Timeout`] after `timeout`, with the number of records seen and the last ones; [`Error::Client`].
    pub fn wait_until(
        &self,
        topic: &str,
        timeout: Duration,
        mut predicate: impl FnMut(&[Record]) -> bool,
    ) -> Result<Vec<Record>> {
        let deadline = Deadline::after(timeout);
        let mut reading = Reading::open(self, topic)?;
        while !predicate(&reading.records) {
            if deadline.expired() {
                return Err(Error::Timeout {
                    waiting_for: format!("a condition on the records of {topic}"),
                    waited: timeout,
                    seen: seen(&reading.records),
                });
            }
            reading.some(deadline)?;
        }
        Ok(reading.sorted())
    }

    /// [`wait_until`](Self::wait_until) there are at least `count` records.
    ///
    /// # Errors
    /// As `wait_until`.
    pub fn wait_for_count(&self, topic: &str, count: usize, timeout: Duration) -> Result<Vec<Record>> {
        self.wait_until(topic, timeout, |records| records.len() >= count)
    }
}

/// One pass over a topic.
struct Reading<'a> {
    topic: &'a str,
    consumer: BaseConsumer,
    /// Where each unfinished partition ends for [`read_to_end`](Self::read_to_end).
    open: BTreeMap<i32, i64>,
    records: Vec<Record>,
}

impl<'a> Reading<'a> {
    fn open(collector: &Collector, topic: &'a str) -> Result<Self> {
        let what = || format!("read topic {topic}");
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &collector.bootstrap)
            // librdkafka wants one; without commits the group never exists on the broker.
            .set("group.id", "streams-testkit-collector")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", collector.isolation.name())
            .set("fetch.wait.max.ms", "50")
            .create()
            .map_err(Error::client(what()))?;
        let open = ends(&consumer, topic)?;
        let mut assignment = TopicPartitionList::new();
        for partition in 0..partitions_of(&consumer, topic)? {
            assignment
                .add_partition_offset(topic, partition, Offset::Beginning)
                .map_err(Error::client(what()))?;
        }
        consumer.assign(&assignment).map_err(Error::client(what()))?;
        Ok(Self {
            topic,
            consumer,
            open,
            records: Vec::new(),
        })
    }

    /// Waits until everything below the high watermark is decided, so that a transaction which was just committed is read.
    fn settle(&mut self, bootstrap: &str) -> Result<()> {
        let high_watermarks = Topics::new(bootstrap).end_offsets(self.topic)?;
        let settled = wait_until("the end of all transactions", SETTLE_LIMIT, || {
            self.open = ends(&self.consumer, self.topic)?;
            let is_below = |(partition, end): (&i32, &i64)| self.open.get(partition).is_some_and(|open| open < end);
            Ok(!high_watermarks.iter().any(is_below))
        });
        match settled {
            Err(Error::Timeout { .. }) => Ok(()), // one is open on purpose
            other => other,
        }
    }

    /// Reads each partition to the end it had at the start. The end is reached with the record before it or, when
    /// markers or aborted records stand there, with the client's end-of-partition event.
    fn read_to_end(&mut self, deadline: Deadline) -> Result<()> {
        let ends = self.open.clone();
        while !self.open.is_empty() {
            if deadline.expired() {
                return Err(Error::Timeout {
                    waiting_for: format!("the end of topic {}", self.topic),
                    waited: COLLECT_LIMIT,
                    seen: format!(
                        "partitions {:?} were not read to their ends; {}",
                        self.open.keys(),
                        seen(&self.records)
                    ),
                });
            }
            self.next(deadline)?;
        }
        let before_end = |record: &Record| ends.get(&record.partition).is_some_and(|end| record.offset < *end);
        self.records.retain(before_end);
        Ok(())
    }

    /// Takes in what is there, a batch at most; waits a moment when there is nothing.
    fn some(&mut self, deadline: Deadline) -> Result<()> {
        for _ in 0..BATCH {
            if !self.next(deadline)? {
                break;
            }
        }
        Ok(())
    }

    /// The next record or event; false if nothing came.
    fn next(&mut self, deadline: Deadline) -> Result<bool> {
        match self.consumer.poll(deadline.slice(POLL_SLICE)) {
            None => Ok(false),
            Some(Ok(message)) => {
                let record = Record::read(&message);
                let is_last = |end: &i64| record.offset + 1 >= *end;
                if self.open.get(&record.partition).is_some_and(is_last) {
                    self.open.remove(&record.partition);
                }
                self.records.push(record);
                Ok(true)
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                self.open.remove(&partition);
                Ok(false)
            }
            // The client reconnects by itself; the deadline bounds it.
            Some(Err(KafkaError::MessageConsumption(code))) if is_transport(code) => Ok(false),
            Some(Err(error)) => Err(Error::client(format!("read topic {}", self.topic))(error)),
        }
    }

    fn sorted(mut self) -> Vec<Record> {
        self.records.sort_by_key(|record| (record.partition, record.offset));
        self.records
    }
}

/// For the error of a wait that ended in vain.
fn seen(records: &[Record]) -> String {
    if records.is_empty() {
        return "saw no record".to_owned();
    }
    let newest = records.iter().rev().take(SHOWN);
    let shown: String = newest.map(|record| format!("\n  {record}")).collect();
    format!("saw {} records, the newest first:{shown}", records.len())
}

fn is_transport(code: rdkafka::types::RDKafkaErrorCode) -> bool {
    use rdkafka::types::RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::BrokerTransportFailure | Code::AllBrokersDown | Code::Resolve | Code::OperationTimedOut
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn record(offset: i64, key: &str, value: Option<&str>) -> Record {
        Record {
            partition: 0,
            offset,
            timestamp: 5,
            key: Some(key.into()),
            value: value.map(Into::into),
            headers: vec![("h".to_owned(), None), ("h".to_owned(), Some(vec![1]))],
        }
    }

    #[test]
    fn a_tombstone_removes_its_key_from_the_latest_values() {
        let records = [
            record(0, "a", Some("1")),
            record(1, "b", Some("2")),
            record(2, "a", Some("3")),
            record(3, "b", None),
        ];
        let latest = latest_by_key(&records);
        assert_eq!(
            latest.into_iter().collect::<Vec<_>>(),
            [("a".to_owned(), "3".to_owned())]
        );
    }

    #[test]
    fn a_value_that_is_no_json_is_named_by_its_position() {
        assert_eq!(record(0, "k", Some("[1,2]")).value_json::<Vec<i32>>().unwrap(), [1, 2]);
        assert_eq!(record(0, "k", None).value_json::<Option<i32>>().unwrap(), None);
        let error = record(7, "k", Some("{")).value_json::<Vec<i32>>().unwrap_err();
        assert!(error.to_string().contains("[0@7 t=5] k = {"), "{error}");
    }

    #[test]
    fn a_wait_in_vain_shows_the_newest_records() {
        assert_eq!(seen(&[]), "saw no record");
        let records: Vec<_> = (0..7).map(|i| record(i, "k", Some("v"))).collect();
        let text = seen(&records);
        assert!(
            text.starts_with("saw 7 records, the newest first:\n  [0@6 t=5] k = v\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1 + SHOWN);
    }
}
