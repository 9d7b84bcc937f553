//! OffsetCommit v9: commits with the member's identity outside transactions.
//!
//! librdkafka cannot do it for a member of a streams group: it sends an empty member id and is refused. Version 9 is the
//! lowest that brokers accept from such a member and the highest that names topics (10 has topic ids).
//!
//! Source: `OffsetCommitRequest.json`, `OffsetCommitResponse.json`, KIP-848.

use super::Request;
use super::wire::{Reader, Wire, WireError, Writer};

/// The only version of this codec.
pub const VERSION: i16 = 9;

/// Commits offsets of several topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCommitRequest {
    /// The group.
    pub group_id: String,
    /// Epoch of the member.
    pub member_epoch: i32,
    /// The member.
    pub member_id: String,
    /// Static identity; null for dynamic members.
    pub instance_id: Option<String>,
    /// The offsets.
    pub topics: Vec<CommitTopic>,
}

/// Offsets of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitTopic {
    /// The topic.
    pub name: String,
    /// Its partitions.
    pub partitions: Vec<CommitPartition>,
}

/// The offset of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitPartition {
    /// The partition.
    pub partition: i32,
    /// The next offset to read.
    pub offset: i64,
    /// Leader epoch of the last record read; -1 when unknown.
    pub leader_epoch: i32,
    /// Metadata, at most 4096 bytes by the broker's default.
    pub metadata: Option<String>,
}

/// Result for a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommittedTopic {
    /// The topic.
    pub name: String,
    /// Error code of each partition, 0 for success.
    pub partitions: Vec<CommittedPartition>,
}

/// Result for a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommittedPartition {
    /// The partition.
    pub partition: i32,
    /// 0, or why it was refused: 113 the epoch is old, 25 the member is unknown.
    pub error_code: i16,
}

impl Request for OffsetCommitRequest {
    type Response = Vec<CommittedTopic>;
    const API_KEY: i16 = 8;

    fn write(&self, _version: i16, out: &mut Writer) {
        out.string(&self.group_id);
        out.i32(self.member_epoch);
        out.string(&self.member_id);
        out.opt_string(self.instance_id.as_deref());
        out.list(&self.topics);
        out.no_tags();
    }

    fn read_response(_version: i16, bytes: &mut Reader<'_>) -> Result<Vec<CommittedTopic>, WireError> {
        let _throttle_time_ms = bytes.i32()?;
        let topics = bytes.list()?;
        bytes.skip_tags()?;
        Ok(topics)
    }
}

impl Wire for CommitTopic {
    fn write(&self, out: &mut Writer) {
        out.string(&self.name);
        out.list(&self.partitions);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let topic = Self {
            name: bytes.string()?,
            partitions: bytes.list()?,
        };
        bytes.skip_tags()?;
        Ok(topic)
    }
}

impl Wire for CommitPartition {
    fn write(&self, out: &mut Writer) {
        out.i32(self.partition);
        out.i64(self.offset);
        out.i32(self.leader_epoch);
        out.opt_string(self.metadata.as_deref());
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let partition = Self {
            partition: bytes.i32()?,
            offset: bytes.i64()?,
            leader_epoch: bytes.i32()?,
            metadata: bytes.opt_string()?,
        };
        bytes.skip_tags()?;
        Ok(partition)
    }
}

impl Wire for CommittedTopic {
    fn write(&self, out: &mut Writer) {
        out.string(&self.name);
        out.list(&self.partitions);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let topic = Self {
            name: bytes.string()?,
            partitions: bytes.list()?,
        };
        bytes.skip_tags()?;
        Ok(topic)
    }
}

impl Wire for CommittedPartition {
    fn write(&self, out: &mut Writer) {
        out.i32(self.partition);
        out.i16(self.error_code);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let partition = Self {
            partition: bytes.i32()?,
            error_code: bytes.i16()?,
        };
        bytes.skip_tags()?;
        Ok(partition)
    }
}
