//! Writing test records, with and without transactions.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext};

use crate::error::{Error, Result};
use crate::topics::REQUEST_LIMIT;
use crate::wait::{Deadline, poll};

/// A record to write.
///
/// # Example
/// ```
/// use streams_testkit::NewRecord;
/// let record = NewRecord::new("tenant-1", "17").at(1_000).header("trace", "abc").partition(0);
/// let tombstone = NewRecord::tombstone("tenant-1");
/// # let _ = (record, tombstone);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewRecord {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp: Option<i64>,
    partition: Option<i32>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl NewRecord {
    /// A record with key and value; [`tombstone`](Self::tombstone) and [`keyless`](Self::keyless) make the others.
    pub fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self {
            key: Some(key.into()),
            value: Some(value.into()),
            ..Self::default()
        }
    }

    /// A record with a null key.
    pub fn keyless(value: impl Into<Vec<u8>>) -> Self {
        Self {
            value: Some(value.into()),
            ..Self::default()
        }
    }

    /// A record with a null value.
    pub fn tombstone(key: impl Into<Vec<u8>>) -> Self {
        Self {
            key: Some(key.into()),
            ..Self::default()
        }
    }

    /// Sets the timestamp, in milliseconds since the Unix epoch; the time of sending unless given.
    #[must_use]
    pub fn at(mut self, timestamp_ms: i64) -> Self {
        self.timestamp = Some(timestamp_ms);
        self
    }

    /// Names the partition; the key decides unless given.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Appends a header; names may repeat.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Appends a header with a null value.
    #[must_use]
    pub fn null_header(mut self, name: impl Into<String>) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    /// For the client; `index` comes back with the delivery report.
    fn to_send<'a>(&'a self, topic: &'a str, index: usize) -> BaseRecord<'a, Vec<u8>, Vec<u8>, usize> {
        let mut base = BaseRecord::with_opaque_to(topic, index);
        base.key = self.key.as_ref();
        base.payload = self.value.as_ref();
        base.timestamp = self.timestamp;
        base.partition = self.partition;
        if !self.headers.is_empty() {
            let headers = OwnedHeaders::new_with_capacity(self.headers.len());
            base.headers = Some(self.headers.iter().fold(headers, |all, (key, value)| {
                all.insert(Header {
                    key,
                    value: value.as_ref(),
                })
            }));
        }
        base
    }
}

/// The index of a record, and where it went.
type Report = (usize, Result<(i32, i64), KafkaError>);

/// Collects the delivery report of each record by its index.
#[derive(Default)]
struct Reports(Mutex<Vec<Report>>);

impl Reports {
    fn lock(&self) -> MutexGuard<'_, Vec<Report>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, index: usize) {
        let report = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        self.lock().push((index, report));
    }
}

type TestProducer = ThreadedProducer<Reports>;

fn producer(bootstrap: &str, transactional_id: Option<&str>) -> Result<TestProducer> {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("enable.idempotence", "true")
        .set("linger.ms", "2")
        .set("message.timeout.ms", REQUEST_LIMIT.as_millis().to_string())
        // Java's choice of partition, which the library uses too.
        .set("partitioner", "murmur2_random");
    if let Some(id) = transactional_id {
        config
            .set("transactional.id", id)
            .set("transaction.timeout.ms", "60000");
    }
    config
        .create_with_context(Reports::default())
        .map_err(Error::client("make a producer"))
}

pub(crate) fn produce(
    bootstrap: &str,
    topic: &str,
    records: impl IntoIterator<Item = NewRecord>,
) -> Result<Vec<(i32, i64)>> {
    let producer = producer(bootstrap, None)?;
    send_all(&producer, topic, records)
}

fn send_all(
    producer: &TestProducer,
    topic: &str,
    records: impl IntoIterator<Item = NewRecord>,
) -> Result<Vec<(i32, i64)>> {
    let what = |index: usize| format!("write record {index} (counted from 0) to topic {topic}");
    let mut sent = 0;
    for record in records {
        send(producer, topic, &record, sent).map_err(Error::client(what(sent)))?;
        sent += 1;
    }
    producer
        .flush(REQUEST_LIMIT)
        .map_err(Error::client(format!("write to topic {topic}")))?;
    let mut reports = std::mem::take(&mut *producer.context().lock());
    reports.sort_by_key(|(index, _)| *index);
    if reports.len() != sent {
        return Err(Error::Timeout {
            waiting_for: format!("the delivery reports of {sent} records to topic {topic}"),
            waited: REQUEST_LIMIT,
            seen: format!("only {} came", reports.len()),
        });
    }
    reports
        .into_iter()
        .map(|(index, report)| report.map_err(Error::client(what(index))))
        .collect()
}

/// Waits while the client's queue is full.
fn send(producer: &TestProducer, topic: &str, record: &NewRecord, index: usize) -> Result<(), KafkaError> {
    let full = || KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
    let outcome = poll(Deadline::after(REQUEST_LIMIT), || {
        match producer.send(record.to_send(topic, index)) {
            Err((error, _)) if error == full() => Ok(None),
            Err((error, _)) => Ok(Some(Err(error))),
            Ok(()) => Ok(Some(Ok(()))),
        }
    });
    match outcome {
        Ok(Some(sent)) => sent,
        _ => Err(full()),
    }
}

/// An open transaction of a test's own producer, for what a topology must tolerate in its inputs: aborted records, and
/// transactions that stay open. Dropping it leaves the transaction open on the broker until its timeout of 60 s, as a crash would.
pub struct Transaction {
    producer: TestProducer,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Transaction {
    /// Starts a transaction; an older producer with the same id is fenced, its open transaction aborted.
    ///
    /// # Errors
    /// [`Error::Client`].
    pub fn begin(bootstrap: &str, transactional_id: &str) -> Result<Self> {
        let what = || format!("begin a transaction as {transactional_id}");
        let producer = producer(bootstrap, Some(transactional_id))?;
        producer
            .init_transactions(REQUEST_LIMIT)
            .map_err(Error::client(what()))?;
        producer.begin_transaction().map_err(Error::client(what()))?;
        Ok(Self { producer })
    }

    /// Writes records inside the transaction and waits until they are on the broker.
    ///
    /// # Errors
    /// [`Error::Client`] with the first record that was not written.
    pub fn send(&self, topic: &str, records: impl IntoIterator<Item = NewRecord>) -> Result<Vec<(i32, i64)>> {
        send_all(&self.producer, topic, records)
    }

    /// Commits: read-committed consumers see the records from now on.
    ///
    /// # Errors
    /// [`Error::Client`], for example when another producer with the same id has started.
    pub fn commit(self) -> Result<()> {
        self.producer
            .commit_transaction(REQUEST_LIMIT)
            .map_err(Error::client("commit the transaction"))
    }

    /// Aborts: read-committed consumers never see the records.
    ///
    /// # Errors
    /// [`Error::Client`].
    pub fn abort(self) -> Result<()> {
        self.producer
            .abort_transaction(REQUEST_LIMIT)
            .map_err(Error::client("abort the transaction"))
    }
}
