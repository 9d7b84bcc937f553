//! Topics of a broker: create, delete, describe, offsets.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::collector::Isolation;
use crate::error::{Error, Result};
use crate::produce::{NewRecord, produce};
use crate::wait::{Deadline, block_on, poll};

/// The limit of each request and of each wait for its effect.
pub(crate) const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Helpers for the topics of one broker. Each call uses a connection of its own, so a broker may be restarted in between.
#[derive(Debug, Clone)]
pub struct Topics {
    bootstrap: String,
}

impl Topics {
    /// Helpers for the broker at `bootstrap` (`host:port`).
    pub fn new(bootstrap: impl Into<String>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
        }
    }

    /// Creates a topic with one replica and returns when every partition has a leader.
    /// `configs` are topic configs such as `("cleanup.policy", "compact")`.
    ///
    /// # Errors
    /// [`Error::Client`] if it exists or a config is refused; [`Error::Timeout`] after 30 s without a leader.
    pub fn create(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Result<()> {
        let what = || format!("create topic {name}");
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        let topic = configs.iter().fold(topic, |topic, (key, value)| topic.set(key, value));
        let admin = self.admin()?;
        let results = answer(&what(), admin.create_topics([&topic], &options()))?;
        for result in results {
            result.map_err(|(_, code)| Error::client(what())(KafkaError::AdminOp(code)))?;
        }
        self.await_leaders(name, partitions)
    }

    /// Deletes a topic and returns when the broker no longer lists it.
    ///
    /// # Errors
    /// [`Error::Client`] if it does not exist; [`Error::Timeout`] after 30 s.
    pub fn delete(&self, name: &str) -> Result<()> {
        let what = || format!("delete topic {name}");
        let admin = self.admin()?;
        let results = answer(&what(), admin.delete_topics(&[name], &options()))?;
        for result in results {
            result.map_err(|(_, code)| Error::client(what())(KafkaError::AdminOp(code)))?;
        }
        crate::wait_until(&format!("the end of topic {name}"), REQUEST_LIMIT, || {
            Ok(!self.list()?.iter().any(|listed| listed == name))
        })
    }

    /// The names of all topics, internal ones too, sorted.
    ///
    /// # Errors
    /// [`Error::Client`].
    pub fn list(&self) -> Result<Vec<String>> {
        let metadata = self
            .reader(Isolation::ReadUncommitted)?
            .fetch_metadata(None, REQUEST_LIMIT)
            .map_err(Error::client("list the topics"))?;
        let mut names: Vec<_> = metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// The number of partitions.
    ///
    /// # Errors
    /// [`Error::Client`] if there is no such topic.
    pub fn partitions(&self, topic: &str) -> Result<i32> {
        partitions_of(&self.reader(Isolation::ReadUncommitted)?, topic)
    }

    /// All configs of a topic, with the broker's defaults where the topic has none of its own.
    ///
    /// # Errors
    /// [`Error::Client`] if there is no such topic.
    pub fn configs(&self, topic: &str) -> Result<BTreeMap<String, String>> {
        let what = || format!("describe topic {topic}");
        let admin = self.admin()?;
        let resource = ResourceSpecifier::Topic(topic);
        let results = answer(&what(), admin.describe_configs([&resource], &options()))?;
        let mut configs = BTreeMap::new();
        for result in results {
            let found = result.map_err(|code| Error::client(what())(KafkaError::AdminOp(code)))?;
            configs.extend(
                found
                    .entries
                    .into_iter()
                    .filter_map(|entry| Some((entry.name, entry.value?))),
            );
        }
        Ok(configs)
    }

    /// The offset after the last record of each partition (the high watermark; transaction markers and open transactions count).
    ///
    /// # Errors
    /// [`Error::Client`] if there is no such topic.
    pub fn end_offsets(&self, topic: &str) -> Result<BTreeMap<i32, i64>> {
        ends(&self.reader(Isolation::ReadUncommitted)?, topic)
    }

    /// The last stable offset of each partition: the first offset of an open transaction, else the high watermark.
    ///
    /// # Errors
    /// [`Error::Client`] if there is no such topic.
    pub fn last_stable_offsets(&self, topic: &str) -> Result<BTreeMap<i32, i64>> {
        ends(&self.reader(Isolation::ReadCommitted)?, topic)
    }

    /// The offsets a group has committed for a topic; partitions without one are missing in the answer. Waits (30 s at
    /// most) while the group's coordinator loads and while a transaction that commits offsets is being decided.
    ///
    /// # Errors
    /// [`Error::Client`].
    pub fn committed_offsets(&self, group: &str, topic: &str) -> Result<BTreeMap<i32, i64>> {
        let what = || format!("fetch the offsets of group {group} for topic {topic}");
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", group)
            .create()
            .map_err(Error::client(what()))?;
        let mut asked = TopicPartitionList::new();
        for partition in 0..partitions_of(&consumer, topic)? {
            asked.add_partition(topic, partition);
        }
        let deadline = Deadline::after(REQUEST_LIMIT);
        let found = poll(deadline, || {
            let limit = deadline.remaining().max(Duration::from_secs(1));
            match consumer.committed_offsets(asked.clone(), limit) {
                Err(error) if is_settling(&error) && !deadline.expired() => Ok(None),
                answer => answer.map(Some).map_err(Error::client(what())),
            }
        })?;
        let found = found.ok_or_else(|| Error::Timeout {
            waiting_for: format!("the coordinator of group {group}"),
            waited: REQUEST_LIMIT,
            seen: "it was not ready".to_owned(),
        })?;
        Ok(found
            .elements()
            .iter()
            .filter_map(|element| match element.offset() {
                Offset::Offset(offset) => Some((element.partition(), offset)),
                _ => None,
            })
            .collect())
    }

    /// Writes records and returns, in their order, the partition and offset of each. Records without a partition go
    /// where Java's default partitioner sends them (murmur2 of the key; a random partition without a key).
    ///
    /// # Errors
    /// [`Error::Client`] with the first record that was not written.
    pub fn produce(&self, topic: &str, records: impl IntoIterator<Item = NewRecord>) -> Result<Vec<(i32, i64)>> {
        produce(&self.bootstrap, topic, records)
    }

    fn await_leaders(&self, topic: &str, partitions: i32) -> Result<()> {
        let reader = self.reader(Isolation::ReadUncommitted)?;
        let ready = poll(Deadline::after(REQUEST_LIMIT), || {
            let metadata = reader
                .fetch_metadata(Some(topic), REQUEST_LIMIT)
                .map_err(Error::client(format!("look up topic {topic}")))?;
            let led = metadata
                .topics()
                .iter()
                .flat_map(|topic| topic.partitions())
                .filter(|partition| partition.error().is_none() && partition.leader() >= 0)
                .count();
            Ok((i32::try_from(led) == Ok(partitions)).then_some(()))
        })?;
        ready.ok_or_else(|| Error::Timeout {
            waiting_for: format!("a leader for each partition of {topic}"),
            waited: REQUEST_LIMIT,
            seen: "some have none".to_owned(),
        })
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    fn admin(&self) -> Result<AdminClient<DefaultClientContext>> {
        self.config().create().map_err(Error::client("make an admin client"))
    }

    fn reader(&self, isolation: Isolation) -> Result<BaseConsumer> {
        self.config()
            .set("isolation.level", isolation.name())
            .create()
            .map_err(Error::client("make a consumer"))
    }
}

/// Waits for the answer of the admin client, which is a future.
fn answer<T>(what: &str, future: impl Future<Output = Result<T, KafkaError>>) -> Result<T> {
    // The client gives up by itself first, with the better message.
    let limit = REQUEST_LIMIT + Duration::from_secs(5);
    block_on(future, Deadline::after(limit))
        .ok_or_else(|| Error::Timeout {
            waiting_for: format!("the answer to: {what}"),
            waited: limit,
            seen: "there was none".to_owned(),
        })?
        .map_err(Error::client(what))
}

/// The coordinator's topic is being made or loaded (first use, after a restart), or a transaction is being decided.
pub(crate) fn is_settling(error: &KafkaError) -> bool {
    use rdkafka::types::RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::NotCoordinator
                | Code::CoordinatorLoadInProgress
                | Code::CoordinatorNotAvailable
                | Code::UnstableOffsetCommit
        )
    )
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(REQUEST_LIMIT))
        .operation_timeout(Some(REQUEST_LIMIT))
}

pub(crate) fn partitions_of(consumer: &BaseConsumer, topic: &str) -> Result<i32> {
    let what = || format!("look up topic {topic}");
    let metadata = consumer
        .fetch_metadata(Some(topic), REQUEST_LIMIT)
        .map_err(Error::client(what()))?;
    let found = metadata.topics().iter().find(|candidate| candidate.name() == topic);
    match found {
        Some(found) if found.error().is_none() && !found.partitions().is_empty() => {
            Ok(i32::try_from(found.partitions().len()).unwrap_or(i32::MAX))
        }
        _ => Err(Error::client(what())(KafkaError::MetadataFetch(
            rdkafka::types::RDKafkaErrorCode::UnknownTopicOrPartition,
        ))),
    }
}

/// The ends as the consumer's isolation level sees them.
pub(crate) fn ends(consumer: &BaseConsumer, topic: &str) -> Result<BTreeMap<i32, i64>> {
    (0..partitions_of(consumer, topic)?)
        .map(|partition| {
            let (_, end) = consumer
                .fetch_watermarks(topic, partition, REQUEST_LIMIT)
                .map_err(Error::client(format!("find the end of {topic}-{partition}")))?;
            Ok((partition, end))
        })
        .collect()
}
