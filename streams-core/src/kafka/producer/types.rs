//! What a producer is given, and what it answers when it refuses a record.

use crate::kafka::errors::TxnErrorClass;

/// Who commits offsets: the pair of the last membership event that the committing thread has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupIdentity {
    /// The group.
    pub group_id: String,
    /// The member's id. Empty together with epoch -1 commits without any fencing.
    pub member_id: String,
    /// The member's epoch (streams and KIP-848 groups) or generation (classic groups).
    pub member_epoch: i32,
    /// The static member's instance id, if it has one.
    pub instance_id: Option<String>,
}

/// An offset to commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommit {
    /// The topic.
    pub topic: String,
    /// The partition number.
    pub partition: i32,
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the record before it; -1 = unknown.
    pub leader_epoch: i32,
    /// Text kept with the offset; empty = none. Brokers limit it to 4096 bytes by default.
    pub metadata: String,
}

/// A record that librdkafka did not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {index} of the outbox, for {topic}-{partition}, cannot be sent: {message} ({name})")]
pub struct SendError {
    /// The record's index in its outbox. Those before it were taken, it and those behind it were not.
    pub index: usize,
    /// The topic.
    pub topic: String,
    /// The partition asked for; -1 = any.
    pub partition: i32,
    /// librdkafka's error number.
    pub code: i32,
    /// The number's name, such as `MSG_SIZE_TOO_LARGE`.
    pub name: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// What it means for the producer and its transaction.
    pub class: TxnErrorClass,
}
