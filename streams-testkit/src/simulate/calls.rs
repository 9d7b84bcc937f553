//! Requests to the brokers on their way: when they arrive, what they do there, when the answer comes.

use streams_core::TopicPartition;
use streams_core::runtime::{CallFailure, CommittedOffset, FailureClass, GroupIdentity, Outcome, Reports, ResetTo};
use streams_core::test_driver::{ProducerSession, TransactionError};

use super::fates::{Fate, RequestKind};
use super::process::Key;

/// A request, with all that it carries.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Init {
        transactional_id: String,
    },
    Committed(Vec<TopicPartition>),
    Resolve(Vec<(TopicPartition, ResetTo)>),
    Changelogs(Vec<TopicPartition>),
    Ends(Vec<TopicPartition>),
    Flush {
        epoch: u32,
    },
    SendOffsets {
        session: ProducerSession,
        offsets: Vec<CommittedOffset>,
        group: GroupIdentity,
    },
    End {
        session: ProducerSession,
        committed: bool,
    },
    /// An OffsetCommit, outside of transactions.
    Offsets {
        offsets: Vec<CommittedOffset>,
        group: GroupIdentity,
    },
    Purge(Vec<(TopicPartition, i64)>),
}

impl Request {
    pub(super) fn kind(&self) -> RequestKind {
        match self {
            Request::Init { .. } => RequestKind::Init,
            Request::Committed(_) | Request::Resolve(_) | Request::Changelogs(_) | Request::Ends(_) => {
                RequestKind::Question
            }
            Request::Flush { .. } => RequestKind::Flush,
            Request::SendOffsets { .. } => RequestKind::SendOffsets,
            Request::Offsets { .. } => RequestKind::Offsets,
            Request::End { committed: true, .. } => RequestKind::Commit,
            Request::End { .. } => RequestKind::Abort,
            Request::Purge(_) => RequestKind::Purge,
        }
    }

    /// For how long the client waits for the answer, ms.
    pub(super) fn slice_ms(&self) -> i64 {
        match self {
            Request::Init { .. } => 30_000,
            Request::Committed(_) => 500,
            Request::Resolve(_) | Request::Changelogs(_) | Request::Ends(_) | Request::Purge(_) => 10_000,
            Request::Flush { .. } | Request::SendOffsets { .. } | Request::Offsets { .. } | Request::End { .. } => {
                2_000
            }
        }
    }

    /// Whether it goes to the group's or the transaction's coordinator.
    pub(super) fn needs_coordinator(&self) -> bool {
        !matches!(
            self,
            Request::Resolve(_) | Request::Changelogs(_) | Request::Ends(_) | Request::Purge(_)
        )
    }
}

/// How a request ended at the brokers.
#[derive(Debug)]
pub(super) enum Served {
    /// Ask again: markers of the last transaction are still being written, or offsets are not stable.
    NotNow,
    Session(ProducerSession),
    Outcome(Outcome),
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) from: Key,
    pub(super) request: Request,
    pub(super) fate: Fate,
    /// When the client gives up.
    pub(super) until_ms: i64,
    /// A paused or dead process had sent it already.
    pub(super) on_the_wire: bool,
    /// The brokers get to it only then.
    pub(super) not_before_ms: i64,
    pub(super) answer: Option<Served>,
}

pub(super) fn failure(class: FailureClass, code: &str) -> CallFailure {
    CallFailure {
        class,
        code: code.to_owned(),
        message: format!("simulated: {code}"),
    }
}

pub(super) fn failed(class: FailureClass, code: &str) -> Outcome {
    Outcome::Failed(failure(class, code))
}

pub(super) fn timed_out() -> Outcome {
    failed(FailureClass::Retriable, "_TIMED_OUT")
}

/// There was no answer: a call outside of transactions may have been carried out, or be some day.
pub(super) fn unanswered(request: &Request) -> Outcome {
    match request {
        Request::Offsets { .. } => failed(FailureClass::Unknown, "REQUEST_TIMED_OUT"),
        _ => timed_out(),
    }
}

/// What librdkafka makes of a transaction error.
pub(super) fn ended(result: Result<(), TransactionError>) -> Served {
    match result {
        Ok(()) => Served::Outcome(Outcome::Done),
        Err(TransactionError::Busy) => Served::NotNow,
        Err(TransactionError::Fenced) => Served::Outcome(failed(FailureClass::Fenced, "_FENCED")),
        Err(TransactionError::NotOpen) => Served::Outcome(failed(FailureClass::Fatal, "INVALID_TXN_STATE")),
    }
}

pub(super) fn flushed(reports: Reports) -> Served {
    Served::Outcome(Outcome::Flushed(reports))
}
