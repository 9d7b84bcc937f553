//! What a consumer can be asked about offsets and topics.

use super::BatchConsumer;
use crate::TopicPartition;
use crate::kafka::admin::{self, Isolation, ListedOffset, OffsetSpec};
use crate::kafka::deadline::native_ms;
use crate::kafka::errors::ClientError;
use crate::kafka::ffi::error::check;
use crate::kafka::ffi::list::PartitionList;

/// An offset committed by a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch committed with it; -1 = none.
    pub leader_epoch: i32,
    /// The metadata committed with it; empty = none.
    pub metadata: String,
}

impl BatchConsumer {
    /// The offsets this consumer's group has committed; `None` where there is none.
    ///
    /// Under `isolation.level=read_committed` these are stable: while a transaction of another producer still has
    /// offsets pending the call waits, up to `timeout_ms`.
    ///
    /// # Errors
    /// [`TimedOut`](crate::kafka::errors::ClientErrorKind::TimedOut) means that the offsets are not known, never that there
    /// are none. An error of one partition fails the whole call.
    pub fn committed(
        &self,
        partitions: &[TopicPartition],
        timeout_ms: u64,
    ) -> Result<Vec<(TopicPartition, Option<CommittedOffset>)>, ClientError> {
        const READING: &str = "reading committed offsets of";
        let failed = |error| ClientError::new(READING, format!("group {}", self.group_id), error);
        let mut list = PartitionList::with_capacity(partitions.len()).map_err(failed)?;
        for partition in partitions {
            list.add(&partition.topic, partition.partition, -1, -1)
                .map_err(failed)?;
        }
        self.client
            .committed(&mut list, native_ms(timeout_ms))
            .map_err(failed)?;
        let mut offsets = Vec::with_capacity(partitions.len());
        for (partition, entry) in partitions.iter().zip(list.entries()) {
            let subject = || format!("group {}, partition {partition}", self.group_id);
            check(entry.code).map_err(|error| ClientError::new(READING, subject(), error))?;
            let committed = (entry.offset >= 0).then(|| CommittedOffset {
                offset: entry.offset,
                leader_epoch: entry.leader_epoch,
                metadata: entry.metadata.unwrap_or_default(),
            });
            offsets.push((partition.clone(), committed));
        }
        Ok(offsets)
    }

    /// Lists offsets of logs; see [`AdminClient::list_offsets`](crate::kafka::admin::AdminClient::list_offsets).
    ///
    /// # Errors
    /// As there.
    pub fn list_offsets(
        &self,
        partitions: &[TopicPartition],
        which: OffsetSpec,
        isolation: Isolation,
        timeout_ms: u64,
    ) -> Result<Vec<(TopicPartition, ListedOffset)>, ClientError> {
        admin::list_offsets(&self.client, partitions, which, isolation, timeout_ms)
    }

    /// Describes topics; see [`AdminClient::describe_topics`](crate::kafka::admin::AdminClient::describe_topics).
    ///
    /// # Errors
    /// As there.
    pub fn metadata(
        &self,
        topics: &[&str],
        timeout_ms: u64,
    ) -> Result<Vec<(String, Result<admin::TopicDescription, ClientError>)>, ClientError> {
        admin::describe_topics(&self.client, topics, timeout_ms)
    }
}
