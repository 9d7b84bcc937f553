//! Typed records into and out of a test driver.

use std::collections::BTreeMap;

use super::driver::TopologyTestDriver;
use super::log::LogRecord;
use crate::error::{Error, ProcessResult};
use crate::serde::{DefaultSerde, Serde, SerdeError, SharedSerde};
use crate::{Headers, TaskId, TopicPartition};

/// One record with its types: what a test pipes in and reads. Java: `TestRecord`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRecord<K, V> {
    /// The key; a nullable one is an `Option`.
    pub key: K,
    /// The value; a nullable one is an `Option`.
    pub value: V,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The headers.
    pub headers: Headers,
}

impl<K, V> TestRecord<K, V> {
    /// A record without headers. `timestamp_ms` is event time, milliseconds since the Unix epoch.
    pub fn new(key: impl Into<K>, value: V, timestamp_ms: i64) -> Self {
        TestRecord {
            key: key.into(),
            value,
            timestamp_ms,
            headers: Headers::default(),
        }
    }
}

/// Pipes typed records into one topic. A key is taken as it converts: `"acme"` for a `String`. Nulls are those of
/// `Option`: a value of `None`, a key of `None::<String>`.
///
/// Java counterpart: `TestInputTopic`.
pub struct TestInput<K, V> {
    topic: String,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
}

impl<K: 'static, V: 'static> TestInput<K, V> {
    /// For a topic whose records have the types' default serdes.
    #[must_use]
    pub fn of(topic: &str) -> Self
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        Self::with(topic, K::shared(), V::shared())
    }

    /// For a topic and the serdes of its records.
    pub fn with(topic: &str, key: impl Serde<K>, value: impl Serde<V>) -> Self {
        TestInput {
            topic: topic.to_owned(),
            key: std::sync::Arc::new(key),
            value: std::sync::Arc::new(value),
        }
    }

    /// Pipes one record in and processes everything that follows from it. `timestamp_ms` is event time, milliseconds
    /// since the Unix epoch. Java: `pipeInput`.
    ///
    /// # Errors
    /// When there is no such topic, the record can't be written, or the topology fails.
    pub fn pipe(
        &self,
        driver: &mut TopologyTestDriver,
        key: impl Into<K>,
        value: V,
        timestamp_ms: i64,
    ) -> ProcessResult {
        self.pipe_record(driver, &TestRecord::new(key, value, timestamp_ms))
    }

    /// Pipes one record in, with its headers.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_record(&self, driver: &mut TopologyTestDriver, record: &TestRecord<K, V>) -> ProcessResult {
        let (key, value) = (self.key_bytes(&record.key)?, self.value_bytes(&record.value)?);
        driver.pipe(
            &self.topic,
            key.as_deref(),
            value.as_deref(),
            record.timestamp_ms,
            &record.headers,
        )
    }

    /// Pipes keys, values and event times (ms since the Unix epoch) in at once, as
    /// [`TopologyTestDriver::pipe_all`] does: all of them lie in the topic before the first is processed.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_all<IK: Into<K>>(
        &self,
        driver: &mut TopologyTestDriver,
        records: impl IntoIterator<Item = (IK, V, i64)>,
    ) -> ProcessResult {
        let mut written = Vec::new();
        for (key, value, timestamp_ms) in records {
            written.push((self.key_bytes(&key.into())?, self.value_bytes(&value)?, timestamp_ms));
        }
        let records = written
            .iter()
            .map(|(key, value, timestamp_ms)| (key.as_deref(), value.as_deref(), *timestamp_ms));
        driver.pipe_all(&self.topic, records)
    }

    fn key_bytes(&self, key: &K) -> ProcessResult<Option<Vec<u8>>> {
        self.written("key", |topic, out| self.key.serialize(topic, key, out))
    }

    fn value_bytes(&self, value: &V) -> ProcessResult<Option<Vec<u8>>> {
        self.written("value", |topic, out| self.value.serialize(topic, value, out))
    }

    fn written(
        &self,
        what: &'static str,
        write: impl FnOnce(&str, &mut Vec<u8>) -> Result<bool, SerdeError>,
    ) -> ProcessResult<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let present = write(&self.topic, &mut bytes).map_err(|source| Error::Serialize {
            what,
            node: "the test input".to_owned(),
            task: TaskId::new(0, 0),
            topic: self.topic.clone(),
            source,
        })?;
        Ok(present.then_some(bytes))
    }
}

/// Reads typed records of one topic: committed ones, each once, partition by partition. Reading moves on in the driver,
/// so two outputs of one topic share their position. Values that may be tombstones are read as `Option<V>`.
///
/// Also repartition topics and changelogs can be read, by their full names (`app-counts-changelog`).
///
/// Java counterpart: `TestOutputTopic`; where that throws because the topic is empty, this answers `None`.
pub struct TestOutput<K, V> {
    topic: String,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
}

impl<K: 'static, V: 'static> TestOutput<K, V> {
    /// For a topic whose records have the types' default serdes. A windowed key is read with an open end this way: give
    /// [`with`](Self::with) a `TimeWindowed::of_size`.
    #[must_use]
    pub fn of(topic: &str) -> Self
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        Self::with(topic, K::shared(), V::shared())
    }

    /// For a topic and the serdes of its records.
    pub fn with(topic: &str, key: impl Serde<K>, value: impl Serde<V>) -> Self {
        TestOutput {
            topic: topic.to_owned(),
            key: std::sync::Arc::new(key),
            value: std::sync::Arc::new(value),
        }
    }

    /// The next record that was not read yet; `None` when there is none. Java: `readRecord`.
    ///
    /// # Errors
    /// When there is no such topic, or key or value are not of these types; the record counts as read then.
    pub fn read_record(&self, driver: &mut TopologyTestDriver) -> ProcessResult<Option<TestRecord<K, V>>> {
        if driver.broker().partitions(&self.topic).is_none() {
            return Err(driver.no_topic(&self.topic));
        }
        let next = driver.read_next(&self.topic);
        next.map(|(partition, record)| self.typed(partition, record))
            .transpose()
    }

    /// Key and value of the next record. Java: `readKeyValue`.
    ///
    /// # Errors
    /// As [`read_record`](Self::read_record).
    pub fn read_key_value(&self, driver: &mut TopologyTestDriver) -> ProcessResult<Option<(K, V)>> {
        Ok(self.read_record(driver)?.map(|record| (record.key, record.value)))
    }

    /// The value of the next record. Java: `readValue`.
    ///
    /// # Errors
    /// As [`read_record`](Self::read_record).
    pub fn read_value(&self, driver: &mut TopologyTestDriver) -> ProcessResult<Option<V>> {
        Ok(self.read_record(driver)?.map(|record| record.value))
    }

    /// All records that were not read yet. Java: `readRecordsToList`.
    ///
    /// # Errors
    /// As [`read_record`](Self::read_record).
    pub fn read_records_to_list(&self, driver: &mut TopologyTestDriver) -> ProcessResult<Vec<TestRecord<K, V>>> {
        let mut all = Vec::new();
        while let Some(record) = self.read_record(driver)? {
            all.push(record);
        }
        Ok(all)
    }

    /// Keys and values of all records that were not read yet. Java: `readKeyValuesToList`.
    ///
    /// # Errors
    /// As [`read_record`](Self::read_record).
    pub fn read_key_values_to_list(&self, driver: &mut TopologyTestDriver) -> ProcessResult<Vec<(K, V)>> {
        let records = self.read_records_to_list(driver)?.into_iter();
        Ok(records.map(|record| (record.key, record.value)).collect())
    }

    /// The last value of each key among the records that were not read yet. A tombstone is a value here, `None` of an
    /// `Option`. Java: `readKeyValuesToMap`.
    ///
    /// # Errors
    /// As [`read_record`](Self::read_record).
    pub fn read_key_values_to_map(&self, driver: &mut TopologyTestDriver) -> ProcessResult<BTreeMap<K, V>>
    where
        K: Ord,
    {
        Ok(self.read_key_values_to_list(driver)?.into_iter().collect())
    }

    /// The values of all records that were not read yet. Java: `readValuesToList`.
    ///
    /// # Errors
    /// As [`read_record`](Self::read_record).
    pub fn read_values_to_list(&self, driver: &mut TopologyTestDriver) -> ProcessResult<Vec<V>> {
        let records = self.read_records_to_list(driver)?.into_iter();
        Ok(records.map(|record| record.value).collect())
    }

    /// How many records were not read yet. Java: `getQueueSize`.
    #[must_use]
    pub fn queue_size(&self, driver: &TopologyTestDriver) -> usize {
        driver.unread(&self.topic)
    }

    /// Whether everything was read.
    #[must_use]
    pub fn is_empty(&self, driver: &TopologyTestDriver) -> bool {
        self.queue_size(driver) == 0
    }

    fn typed(&self, partition: i32, record: LogRecord) -> ProcessResult<TestRecord<K, V>> {
        let unreadable = |what: &'static str, source: SerdeError| Error::Deserialize {
            what,
            topic_partition: TopicPartition::new(&*self.topic, partition),
            offset: record.offset,
            source,
        };
        let key = self.key.deserialize(&self.topic, record.key.as_deref());
        let value = self.value.deserialize(&self.topic, record.value.as_deref());
        Ok(TestRecord {
            key: key.map_err(|source| unreadable("key", source))?,
            value: value.map_err(|source| unreadable("value", source))?,
            timestamp_ms: record.timestamp_ms,
            headers: record.headers,
        })
    }
}
