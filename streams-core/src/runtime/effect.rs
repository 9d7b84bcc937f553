//! What the core asks of its shell, and what the shell answers.

use std::collections::BTreeMap;

use streams_state::{ChangelogFacts, StoreId, StoreMetadata, TaskState};

use crate::error::Error;
use crate::fetch::PartitionId;
use crate::restore::{BufferedRows, SourceRows};
use crate::task::CommittedOffset;
use crate::{TaskId, TopicPartition};

/// The identity a commit is fenced by: the pair of the last membership event that the thread has applied.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GroupIdentity {
    /// The member's id.
    pub member_id: String,
    /// The member's epoch (or generation).
    pub member_epoch: i32,
}

/// A partition to be fetched from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// Where to start.
    pub start_offset: i64,
    /// The number that its records carry.
    pub id: PartitionId,
    /// The incarnation that its records carry.
    pub incarnation: u64,
}

/// Where a partition without a committed offset starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetTo {
    /// At the oldest record.
    Earliest,
    /// At the end.
    Latest,
}

/// One changelog partition to be replayed into a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogRestore {
    /// The store.
    pub store: StoreId,
    /// The store's name.
    pub name: String,
    /// The changelog partition.
    pub topic_partition: TopicPartition,
    /// The first offset to read.
    pub from: i64,
    /// The consumer's position that ends the restore (never a record count, never an EOF).
    pub to: i64,
    /// Whether nothing at or beyond `to` may be applied: a source topic that serves as the changelog goes on with records
    /// that are not processed yet (design rule 2.3).
    pub exact_end: bool,
    /// Whether the store is emptied first and marked until it is done.
    pub from_zero: bool,
    /// Whether a restore from zero goes on that was interrupted: then nothing is emptied.
    pub resumed: bool,
    /// Whether the record's timestamp is stored in front of the value.
    pub timestamped: bool,
    /// How a source topic's records are read as rows; `None` for a changelog of our own, where each is one.
    pub rows: Option<SourceRows>,
    /// How entries of a suppress buffer are read; `None` for every other store.
    pub buffered: Option<BufferedRows>,
    /// What the store's metadata is once it is done, with the position reached filled in.
    pub metadata: StoreMetadata,
    /// `applied_at_ms` until it is done. A replay that is interrupted is as old as the state that it began with: deletions
    /// that it has not read yet may be gone from the log some day (design rule 2.4).
    pub meanwhile_ms: i64,
}

/// The restore of one task. The state is lent to the restorer and comes back with the result.
pub struct RestoreJob {
    /// The task.
    pub task: TaskId,
    /// The lease: results of an older incarnation are not used.
    pub incarnation: u64,
    /// The task's state.
    pub state: TaskState,
    /// What to replay.
    pub changelogs: Vec<ChangelogRestore>,
}

impl std::fmt::Debug for RestoreJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestoreJob")
            .field("task", &self.task)
            .field("changelogs", &self.changelogs)
            .finish_non_exhaustive()
    }
}

/// The end of a restore.
pub struct Restored {
    /// The task.
    pub task: TaskId,
    /// The lease it ran under.
    pub incarnation: u64,
    /// The task's state.
    pub state: TaskState,
    /// Records applied, per store.
    pub records: BTreeMap<String, u64>,
    /// Why it did not end well.
    pub failure: Option<RestoreFailure>,
}

/// Why a restore did not end well.
#[derive(Debug)]
pub enum RestoreFailure {
    /// A call to Kafka failed; whether it is tried again depends on its class.
    Call(CallFailure),
    /// State can't be written, or a row can't be read: the thread can't go on.
    Fatal(Box<Error>),
}

impl From<CallFailure> for RestoreFailure {
    fn from(failure: CallFailure) -> Self {
        RestoreFailure::Call(failure)
    }
}

impl From<Box<Error>> for RestoreFailure {
    fn from(error: Box<Error>) -> Self {
        RestoreFailure::Fatal(error)
    }
}

/// Something that the shell has to do. One at a time; the next is given when the outcome was told. A restore alone runs
/// beside the others and is answered by [`StreamThreadCore::on_restored`](super::StreamThreadCore::on_restored).
#[derive(Debug)]
pub enum Effect {
    /// Settle what an earlier producer of our transactional id left. Nothing is read before this returned.
    InitTransactions,
    /// Make a producer without transactions, if there is none.
    OpenProducer,
    /// Read the group's committed offsets, waiting for pending transactions (require-stable).
    FetchCommitted {
        /// The partitions.
        partitions: Vec<TopicPartition>,
    },
    /// Find where partitions without a committed offset start.
    ResolveReset {
        /// The partitions and where they start.
        partitions: Vec<(TopicPartition, ResetTo)>,
    },
    /// List the changelogs' starts and (uncommitted) ends, topic ids and policies.
    ListChangelogs {
        /// The partitions.
        partitions: Vec<TopicPartition>,
    },
    /// List the (uncommitted) ends of inputs that stand still for long.
    ListEnds {
        /// The partitions.
        partitions: Vec<TopicPartition>,
    },
    /// Start a restore; it is not waited for.
    Restore(RestoreJob),
    /// Fetch these partitions too.
    Assign {
        /// The partitions.
        partitions: Vec<Assignment>,
    },
    /// Fetch these partitions no more.
    Unassign {
        /// Their numbers.
        partitions: Vec<PartitionId>,
    },
    /// Stop fetching until resumed: their queues are full.
    Pause {
        /// Their numbers.
        partitions: Vec<PartitionId>,
    },
    /// Fetch again.
    Resume {
        /// Their numbers.
        partitions: Vec<PartitionId>,
    },
    /// Begin a transaction.
    BeginTransaction,
    /// Hand every task's outbox to the producer ([`StreamThreadCore::outboxes`](super::StreamThreadCore::outboxes)).
    Send {
        /// The epoch that the delivery reports carry.
        epoch: u32,
    },
    /// Wait until every record of the epoch is acknowledged.
    Flush {
        /// The epoch.
        epoch: u32,
    },
    /// Add the offsets to the transaction.
    SendOffsets {
        /// The epoch.
        epoch: u32,
        /// The offsets.
        offsets: Vec<CommittedOffset>,
        /// By what the commit is fenced.
        group: GroupIdentity,
    },
    /// Commit the transaction.
    CommitTransaction {
        /// The epoch.
        epoch: u32,
    },
    /// Abort the transaction.
    AbortTransaction,
    /// Without transactions: commit these offsets by an OffsetCommit of our own, which carries the member's identity. All
    /// of them are committed when it succeeds.
    CommitOffsets {
        /// The offsets.
        offsets: Vec<CommittedOffset>,
        /// By what the commit is fenced.
        group: GroupIdentity,
    },
    /// Leave the group and join it under a member id that nobody had before: a request of the old member that is still on
    /// its way must not count. [`on_lost`](super::StreamThreadCore::on_lost) follows.
    Rejoin,
    /// Destroy the producer; `InitTransactions` (with the same transactional id) or `OpenProducer` follows.
    RecreateProducer,
    /// Write the committed epoch into the stores ([`StreamThreadCore::apply`](super::StreamThreadCore::apply)).
    Apply {
        /// The epoch.
        epoch: u32,
    },
    /// Tell the group which tasks this thread owns now.
    Acknowledge {
        /// The tasks.
        tasks: Vec<TaskId>,
    },
    /// Ask the group at once whether this member is still what it believes to be.
    HeartbeatNow,
    /// Delete repartition records below offsets whose commit is known to have succeeded. Failures are only logged.
    Purge {
        /// The first offset to keep, per partition.
        before: Vec<(TopicPartition, i64)>,
    },
}

impl Effect {
    /// What it is called in logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Effect::InitTransactions => "init-transactions",
            Effect::OpenProducer => "open-producer",
            Effect::FetchCommitted { .. } => "fetch-committed",
            Effect::ResolveReset { .. } => "resolve-reset",
            Effect::ListChangelogs { .. } => "list-changelogs",
            Effect::ListEnds { .. } => "list-ends",
            Effect::Restore(_) => "restore",
            Effect::Assign { .. } => "assign",
            Effect::Unassign { .. } => "unassign",
            Effect::Pause { .. } => "pause",
            Effect::Resume { .. } => "resume",
            Effect::BeginTransaction => "begin",
            Effect::Send { .. } => "send",
            Effect::Flush { .. } => "flush",
            Effect::SendOffsets { .. } => "send-offsets",
            Effect::CommitTransaction { .. } => "commit",
            Effect::AbortTransaction => "abort",
            Effect::CommitOffsets { .. } => "commit-offsets",
            Effect::Rejoin => "rejoin",
            Effect::RecreateProducer => "recreate-producer",
            Effect::Apply { .. } => "apply",
            Effect::Acknowledge { .. } => "acknowledge",
            Effect::HeartbeatNow => "heartbeat",
            Effect::Purge { .. } => "purge",
        }
    }
}

/// What a failed call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The same call may be made again.
    Retriable,
    /// The transaction has to be aborted.
    Abortable,
    /// The commit was refused because this member or its epoch is no longer the group's.
    StaleMember,
    /// The producer must be destroyed; the outcome of its transaction is unknown.
    Fatal,
    /// As `Fatal`: another producer has our transactional id, or our transaction timed out.
    Fenced,
    /// Whether the call was carried out is not known: there was no answer, or one that leaves it open. Only of calls
    /// outside transactions; the outcome of a transaction is never asked for.
    Unknown,
    /// Nothing helps: stop.
    Stop,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// What it means.
    pub class: FailureClass,
    /// The client's error name.
    pub code: String,
    /// The client's text.
    pub message: String,
}

/// Acknowledged changelog offsets of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// The highest acknowledged offset by slot.
    pub highest: BTreeMap<u32, i64>,
    /// Records acknowledged.
    pub acknowledged: u64,
}

/// A record that was not delivered, outside of transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// Where it was to go.
    pub topic_partition: TopicPartition,
    /// The client's error name.
    pub code: String,
    /// The client's text.
    pub message: String,
    /// Whether the same record may be taken another time.
    pub retriable: bool,
    /// Whether it is a record of a changelog.
    pub changelog: bool,
}

/// How an effect ended.
#[derive(Debug)]
pub enum Outcome {
    /// It is done.
    Done,
    /// Answer to `FetchCommitted`: offset and metadata text, `None` = nothing committed.
    Committed(Vec<(TopicPartition, Option<(i64, String)>)>),
    /// Answer to `ResolveReset`.
    Started(Vec<(TopicPartition, i64)>),
    /// Answer to `ListChangelogs`.
    Changelogs(Vec<(TopicPartition, ChangelogFacts)>),
    /// Answer to `ListEnds`.
    Ends(Vec<(TopicPartition, i64)>),
    /// Answer to `Flush`.
    Flushed(Reports),
    /// Answer to `Flush` outside of transactions, when records were not delivered.
    PartlyFlushed {
        /// What was acknowledged.
        reports: Reports,
        /// The first of those that were not delivered.
        undelivered: Vec<Undelivered>,
        /// How many there are in all.
        total: u64,
    },
    /// It failed.
    Failed(CallFailure),
}
