//! What a group has not committed yet: when an application is done.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::error::{Error, Result};
use crate::topics::{REQUEST_LIMIT, is_settling, partitions_of};
use crate::wait::{Deadline, POLL_INTERVAL, poll};

/// Up to so many offsets behind the end, it is looked whether they are records at all.
const MARKERS: i64 = 64;
const POLL_SLICE: Duration = Duration::from_millis(100);

/// Tells what of its inputs a group has not committed yet, over one connection that is kept.
///
/// # Example
/// ```no_run
/// # use streams_testkit::Backlog;
/// let mut backlog = Backlog::open("localhost:9092", "billing", ["usage", "billing-by-tail-repartition"])?;
/// while backlog.remaining()? > 0 { /* … */ }
/// # Ok::<(), streams_testkit::Error>(())
/// ```
pub struct Backlog {
    consumer: BaseConsumer,
    partitions: Vec<(String, i32)>,
}

impl std::fmt::Debug for Backlog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backlog")
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

impl Backlog {
    /// For a group and all topics that it reads, its repartition topics too. Topics that were made just now may not be
    /// known everywhere yet: they are waited for, 30 s at most.
    ///
    /// # Errors
    /// [`Error::Client`] if one of the topics does not exist.
    pub fn open<T: AsRef<str>>(bootstrap: &str, group: &str, topics: impl IntoIterator<Item = T>) -> Result<Self> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", "read_committed")
            .set("fetch.wait.max.ms", "20")
            .create()
            .map_err(Error::client(format!("look at group {group}")))?;
        let mut partitions = Vec::new();
        for topic in topics {
            let count = settled(|| partitions_of(&consumer, topic.as_ref()))?;
            partitions.extend((0..count).map(|partition| (topic.as_ref().to_owned(), partition)));
        }
        Ok(Self { consumer, partitions })
    }

    /// How many records the group has not committed, as far as can be told from offsets: an upper bound, but 0 exactly
    /// if everything is committed. Transaction markers and aborted records behind the committed offset do not count.
    ///
    /// An application that was found with nothing left stays so until somebody writes to its inputs: the committed
    /// offsets are asked first and the ends after them, so records that it wrote to its own inputs meanwhile count.
    ///
    /// # Errors
    /// [`Error::Client`].
    pub fn remaining(&mut self) -> Result<i64> {
        let committed = self.committed()?;
        let mut remaining = 0;
        let mut close = Vec::new();
        for (topic, partition) in &self.partitions {
            let (start, end) = settled(|| {
                let ends = self.consumer.fetch_watermarks(topic, *partition, REQUEST_LIMIT);
                ends.map_err(Error::client(format!("find the end of {topic}-{partition}")))
            })?;
            // Nothing committed: from the log's start.
            let from = committed.get(&(topic.clone(), *partition)).copied().unwrap_or(start);
            let behind = (end - from).max(0);
            remaining += behind;
            if behind > 0 {
                close.push((topic.clone(), *partition, from));
            }
        }
        if remaining == 0 || remaining > MARKERS {
            return Ok(remaining);
        }
        let records = self.records_behind(&close)?;
        Ok(if records { remaining } else { 0 })
    }

    fn committed(&self) -> Result<BTreeMap<(String, i32), i64>> {
        let mut asked = TopicPartitionList::new();
        for (topic, partition) in &self.partitions {
            asked.add_partition(topic, *partition);
        }
        let deadline = Deadline::after(REQUEST_LIMIT);
        let found = poll(deadline, || {
            match self
                .consumer
                .committed_offsets(asked.clone(), deadline.remaining().max(POLL_INTERVAL))
            {
                Err(error) if is_settling(&error) => Ok(None),
                answer => answer.map(Some).map_err(Error::client("fetch the committed offsets")),
            }
        })?;
        let found = found.ok_or_else(|| Error::Timeout {
            waiting_for: "the coordinator of the group".to_owned(),
            waited: REQUEST_LIMIT,
            seen: "it was not ready".to_owned(),
        })?;
        let offsets = found
            .elements()
            .into_iter()
            .filter_map(|element| match element.offset() {
                Offset::Offset(offset) => Some(((element.topic().to_owned(), element.partition()), offset)),
                _ => None,
            });
        Ok(offsets.collect())
    }

    /// Reads the partitions from there until a record or all ends.
    fn records_behind(&self, from: &[(String, i32, i64)]) -> Result<bool> {
        let what = || "read what is not committed".to_owned();
        let mut assignment = TopicPartitionList::new();
        for (topic, partition, offset) in from {
            let added = assignment.add_partition_offset(topic, *partition, Offset::Offset(*offset));
            added.map_err(Error::client(what()))?;
        }
        self.consumer.assign(&assignment).map_err(Error::client(what()))?;
        let deadline = Deadline::after(REQUEST_LIMIT);
        let mut ends = 0;
        let mut found = false;
        while !found && ends < from.len() && !deadline.expired() {
            match self.consumer.poll(POLL_SLICE) {
                None => {}
                Some(Ok(_)) => found = true,
                Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
                Some(Err(error)) => return Err(Error::client(what())(error)),
            }
        }
        self.consumer.unassign().map_err(Error::client(what()))?;
        // An end that was not reached in time may hide a record.
        Ok(found || ends < from.len())
    }
}

/// Calls until the answer is no passing one of a topic that was made, or lost its leader, just now.
fn settled<T>(call: impl Fn() -> Result<T>) -> Result<T> {
    let deadline = Deadline::after(REQUEST_LIMIT);
    let answer = poll(deadline, || match call() {
        Err(Error::Client { source, .. }) if is_passing(&source) && !deadline.expired() => Ok(None),
        answer => answer.map(Some),
    })?;
    answer.ok_or_else(|| Error::Timeout {
        waiting_for: "the leaders of the group's topics".to_owned(),
        waited: REQUEST_LIMIT,
        seen: "some have none".to_owned(),
    })
}

fn is_passing(error: &KafkaError) -> bool {
    use rdkafka::types::RDKafkaErrorCode as Code;
    let code = match error {
        KafkaError::MetadataFetch(code) => Some(*code),
        other => other.rdkafka_error_code(),
    };
    matches!(
        code,
        Some(
            Code::NotLeaderForPartition
                | Code::LeaderNotAvailable
                | Code::UnknownTopicOrPartition
                | Code::UnknownPartition
        )
    )
}
