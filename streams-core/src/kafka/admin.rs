//! The admin client: topics, their settings and ids, offsets of logs, deletion of records.
//!
//! Every call is bounded; an answer that did not come is an error, never an empty result.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::deadline::native_ms;
use super::errors::{CREATE_TOPICS, ClientError, ClientErrorKind, DELETE_RECORDS, DELETE_TOPICS, DESCRIBE_CONFIGS};
use super::ffi::admin as native;
use super::ffi::client::{Client, Kind};
use super::ffi::error::{NativeError, check};
use super::ffi::list::PartitionList;
use crate::TopicPartition;

/// A topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// The topic's name.
    pub name: String,
    /// How many partitions; -1 = the broker's default.
    pub partitions: i32,
    /// How many replicas; -1 = the broker's default.
    pub replication_factor: i32,
    /// Settings such as `cleanup.policy`.
    pub configs: Vec<(String, String)>,
}

/// What a broker says about a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    /// The topic's id, which changes when it is deleted and made again; all zero from brokers before 2.8.
    pub topic_id: [u8; 16],
    /// How many partitions it has.
    pub partitions: i32,
    /// Whether it is one of Kafka's own topics.
    pub internal: bool,
}

/// The value of one setting of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    /// The value; `None` when the broker hides it.
    pub value: Option<String>,
    /// Whether it is a default, not set on the topic itself.
    pub is_default: bool,
}

/// What may be done with a topic. Numbers: `org.apache.kafka.common.acl.AclOperation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicOperation {
    /// Fetching its records.
    Read = 3,
    /// Writing records.
    Write = 4,
    /// Looking at it.
    Describe = 8,
}

/// Which offset of a log to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first offset that is still there.
    Earliest,
    /// The end: the high watermark for read-uncommitted, the last stable offset for read-committed.
    Latest,
    /// The first record with at least this timestamp (ms since the Unix epoch).
    Timestamp(i64),
}

/// Whose end of log is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Up to the high watermark, open transactions included.
    ReadUncommitted,
    /// Up to the last stable offset.
    ReadCommitted,
}

/// A listed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; -1 when no record has the timestamp asked for.
    pub offset: i64,
    /// The leader epoch; -1 when unknown.
    pub leader_epoch: i32,
}

/// Talks to the cluster about topics. Clones share one connection.
///
/// Java counterpart: `org.apache.kafka.clients.admin.Admin`, as far as Kafka Streams uses it.
#[derive(Clone, Debug)]
pub struct AdminClient(Arc<Client>);

impl AdminClient {
    /// An admin client with librdkafka's property names.
    ///
    /// # Errors
    /// A property that librdkafka does not know or accept.
    pub fn new(config: &[(String, String)]) -> Result<Self, ClientError> {
        let client = Client::new(Kind::Admin, config);
        client
            .map(|client| AdminClient(Arc::new(client)))
            .map_err(|e| ClientError::new("making an admin client", "", e))
    }

    /// Creates topics and waits until the controller has them; the answer has one result per topic.
    ///
    /// # Errors
    /// That the request as a whole failed or timed out (then topics may exist: ask again).
    pub fn create_topics(
        &self,
        specs: &[TopicSpec],
        timeout_ms: u64,
    ) -> Result<Vec<(String, Result<(), ClientError>)>, ClientError> {
        if specs.is_empty() {
            return Ok(Vec::new());
        }
        let specs: Vec<_> = specs
            .iter()
            .map(|spec| native::TopicSpec {
                name: &spec.name,
                partitions: spec.partitions,
                replication_factor: spec.replication_factor,
                configs: &spec.configs,
            })
            .collect();
        let created = native::create_topics(&self.0, &specs, native_ms(timeout_ms));
        created
            .map(|results| per_item(CREATE_TOPICS, results))
            .map_err(|e| ClientError::new(CREATE_TOPICS, "", e))
    }

    /// Deletes topics; the answer has one result per topic.
    ///
    /// # Errors
    /// That the request as a whole failed or timed out.
    pub fn delete_topics(
        &self,
        topics: &[&str],
        timeout_ms: u64,
    ) -> Result<Vec<(String, Result<(), ClientError>)>, ClientError> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let deleted = native::delete_topics(&self.0, topics, native_ms(timeout_ms));
        deleted
            .map(|results| per_item(DELETE_TOPICS, results))
            .map_err(|e| ClientError::new(DELETE_TOPICS, "", e))
    }

    /// Partition counts and ids of topics, one result per topic; a missing topic is
    /// [`UnknownTopic`](super::errors::ClientErrorKind::UnknownTopic), and asking never creates one.
    ///
    /// # Errors
    /// That the request as a whole failed or timed out.
    pub fn describe_topics(
        &self,
        topics: &[&str],
        timeout_ms: u64,
    ) -> Result<Vec<(String, Result<TopicDescription, ClientError>)>, ClientError> {
        describe_topics(&self.0, topics, timeout_ms)
    }

    /// Those of the topics with which this client may not do the operation, also where it may not even look at the topic.
    /// Topics that do not exist are left out.
    ///
    /// # Errors
    /// That the request as a whole failed or timed out.
    pub fn forbidden(
        &self,
        operation: TopicOperation,
        topics: &[&str],
        timeout_ms: u64,
    ) -> Result<Vec<String>, ClientError> {
        const DESCRIBING: &str = "looking for the permissions on topic";
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let described = native::describe_topics(&self.0, topics, true, native_ms(timeout_ms));
        let described = described.map_err(|error| ClientError::new(DESCRIBING, topics.join(", "), error))?;
        let forbidden = |(name, topic): native::PerItem<native::DescribedTopic>| match topic {
            Ok(topic) => (!topic.authorized.contains(&(operation as i32))).then_some(name),
            Err(error) => {
                let denied = ClientError::new(DESCRIBING, "", error).kind;
                matches!(denied, ClientErrorKind::Denied(_)).then_some(name)
            }
        };
        Ok(described.into_iter().filter_map(forbidden).collect())
    }

    /// The settings of a topic by name.
    ///
    /// # Errors
    /// That the topic is missing or may not be looked at, or that the request failed or timed out.
    pub fn describe_configs(&self, topic: &str, timeout_ms: u64) -> Result<BTreeMap<String, TopicConfig>, ClientError> {
        let mut settings = BTreeMap::new();
        for (_, described) in self.describe_configs_of(&[topic], timeout_ms)? {
            settings.extend(described?);
        }
        Ok(settings)
    }

    /// The settings of topics by name, in one question; one result per topic.
    ///
    /// # Errors
    /// That the request as a whole failed or timed out.
    pub fn describe_configs_of(
        &self,
        topics: &[&str],
        timeout_ms: u64,
    ) -> Result<Vec<(String, Result<BTreeMap<String, TopicConfig>, ClientError>)>, ClientError> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error| ClientError::new(DESCRIBE_CONFIGS, topics.join(", "), error);
        let described = native::describe_topic_configs(&self.0, topics, native_ms(timeout_ms)).map_err(failed)?;
        let setting = |entry: native::ConfigEntry| {
            let config = TopicConfig {
                value: entry.value,
                is_default: entry.is_default,
            };
            (entry.name, config)
        };
        let of_topic = |(topic, entries): native::PerItem<Vec<native::ConfigEntry>>| {
            let entries = entries.map(|entries| entries.into_iter().map(setting).collect());
            (topic, entries)
        };
        Ok(per_item(
            DESCRIBE_CONFIGS,
            described.into_iter().map(of_topic).collect(),
        ))
    }

    /// Deletes the records below the given offsets; the answer has the new log start of each partition.
    ///
    /// # Errors
    /// That the request as a whole failed or timed out.
    pub fn delete_records(
        &self,
        before: &[(TopicPartition, i64)],
        timeout_ms: u64,
    ) -> Result<Vec<(TopicPartition, Result<i64, ClientError>)>, ClientError> {
        if before.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error| ClientError::new(DELETE_RECORDS, "", error);
        let mut list = PartitionList::with_capacity(before.len()).map_err(failed)?;
        for (partition, offset) in before {
            list.add(&partition.topic, partition.partition, *offset, -1)
                .map_err(failed)?;
        }
        let deleted = native::delete_records(&self.0, &list, native_ms(timeout_ms)).map_err(failed)?;
        let result = |entry: super::ffi::list::ListEntry| {
            let partition = TopicPartition::new(entry.topic, entry.partition);
            let start = check(entry.code).map(|()| entry.offset);
            let start = start.map_err(|error| ClientError::new(DELETE_RECORDS, partition.to_string(), error));
            (partition, start)
        };
        Ok(deleted.into_iter().map(result).collect())
    }

    /// Lists offsets of logs. What a restore has to reach is [`OffsetSpec::Latest`] with
    /// [`Isolation::ReadUncommitted`].
    ///
    /// # Errors
    /// That the request failed or timed out, also for one partition alone: an answer is complete or an error.
    pub fn list_offsets(
        &self,
        partitions: &[TopicPartition],
        which: OffsetSpec,
        isolation: Isolation,
        timeout_ms: u64,
    ) -> Result<Vec<(TopicPartition, ListedOffset)>, ClientError> {
        list_offsets(&self.0, partitions, which, isolation, timeout_ms)
    }

    /// Names and partition counts of all topics that may be seen.
    ///
    /// # Errors
    /// That the request failed or timed out.
    pub fn list_topics(&self, timeout_ms: u64) -> Result<Vec<(String, i32)>, ClientError> {
        self.0
            .list_topics(native_ms(timeout_ms))
            .map_err(|error| ClientError::new("listing topics", "", error))
    }
}

pub(super) fn describe_topics(
    client: &Client,
    topics: &[&str],
    timeout_ms: u64,
) -> Result<Vec<(String, Result<TopicDescription, ClientError>)>, ClientError> {
    const DESCRIBING: &str = "describing topic";
    if topics.is_empty() {
        return Ok(Vec::new());
    }
    let described = native::describe_topics(client, topics, false, native_ms(timeout_ms));
    let described = described.map_err(|error| ClientError::new(DESCRIBING, topics.join(", "), error))?;
    let convert = |(name, topic): native::PerItem<native::DescribedTopic>| {
        let topic = topic.map(|topic| TopicDescription {
            topic_id: topic.topic_id,
            partitions: topic.partitions,
            internal: topic.internal,
        });
        (name, topic)
    };
    Ok(per_item(DESCRIBING, described.into_iter().map(convert).collect()))
}

pub(super) fn list_offsets(
    client: &Client,
    partitions: &[TopicPartition],
    which: OffsetSpec,
    isolation: Isolation,
    timeout_ms: u64,
) -> Result<Vec<(TopicPartition, ListedOffset)>, ClientError> {
    const LISTING: &str = "listing offsets of";
    if partitions.is_empty() {
        return Ok(Vec::new());
    }
    let all = || {
        partitions
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let failed = |error| ClientError::new(LISTING, all(), error);
    let spec = match which {
        OffsetSpec::Earliest => -2,
        OffsetSpec::Latest => -1,
        OffsetSpec::Timestamp(timestamp_ms) => timestamp_ms.max(0),
    };
    let mut list = PartitionList::with_capacity(partitions.len()).map_err(failed)?;
    for partition in partitions {
        list.add(&partition.topic, partition.partition, spec, -1)
            .map_err(failed)?;
    }
    let committed = isolation == Isolation::ReadCommitted;
    let mut listed = BTreeMap::new();
    for entry in native::list_offsets(client, &list, committed, native_ms(timeout_ms)).map_err(failed)? {
        let partition = TopicPartition::new(entry.topic, entry.partition);
        check(entry.code).map_err(|error| ClientError::new(LISTING, partition.to_string(), error))?;
        listed.insert(
            partition,
            ListedOffset {
                offset: entry.offset,
                leader_epoch: entry.leader_epoch,
            },
        );
    }
    let found = |partition: &TopicPartition| {
        let missing = || ClientError::invalid(LISTING, partition.to_string(), "the broker's answer leaves it out");
        listed
            .get(partition)
            .map(|offset| (partition.clone(), *offset))
            .ok_or_else(missing)
    };
    partitions.iter().map(found).collect()
}

fn per_item<T>(operation: &'static str, results: Vec<native::PerItem<T>>) -> Vec<(String, Result<T, ClientError>)> {
    let convert = |(name, result): (String, Result<T, NativeError>)| {
        let result = result.map_err(|error| ClientError::new(operation, name.clone(), error));
        (name, result)
    };
    results.into_iter().map(convert).collect()
}
