//! What can happen to a request.

use streams_core::runtime::FailureClass;

/// A request to the brokers, by what can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Init,
    Question,
    Purge,
    Flush,
    SendOffsets,
    /// An OffsetCommit outside of transactions.
    Offsets,
    Commit,
    Abort,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is carried out and answered.
    Served,
    /// It never arrives; the caller's time is up.
    Lost,
    /// It is carried out, and the answer never arrives.
    AnswerLost,
    /// It is carried out twice.
    Doubled,
    /// It is not carried out and fails so.
    Refused(FailureClass),
    /// It is carried out and still fails so.
    DoneButFailed(FailureClass),
    /// It fails so, and is carried out later.
    Late(FailureClass),
}

/// How many kinds of fates there are, which a run has or has not.
pub(super) const FATE_KINDS: usize = 6;

impl Fate {
    pub(super) fn name(self) -> &'static str {
        match self {
            Fate::Served => "served",
            Fate::Lost => "request lost",
            Fate::AnswerLost => "answer lost",
            Fate::Doubled => "request doubled",
            Fate::Refused(_) => "request refused",
            Fate::DoneButFailed(_) => "done but reported as failed",
            Fate::Late(_) => "failed and carried out late",
        }
    }
}

/// The fates that a request can meet with librdkafka, with the number of their kind.
pub(super) fn possible(kind: RequestKind) -> &'static [(usize, Fate)] {
    use FailureClass::{Abortable, Fatal, Retriable, Unknown};
    const LOST: (usize, Fate) = (0, Fate::Lost);
    const ANSWER: (usize, Fate) = (1, Fate::AnswerLost);
    const TWICE: (usize, Fate) = (2, Fate::Doubled);
    match kind {
        RequestKind::Init => &[LOST, ANSWER, TWICE],
        RequestKind::Question | RequestKind::Purge => &[LOST, ANSWER],
        RequestKind::Flush => &[LOST, (3, Fate::Refused(Abortable)), (3, Fate::Refused(Fatal))],
        RequestKind::SendOffsets => &[
            LOST,
            ANSWER,
            TWICE,
            (3, Fate::Refused(Abortable)),
            (3, Fate::Refused(Fatal)),
            (4, Fate::DoneButFailed(Abortable)),
            (4, Fate::DoneButFailed(Fatal)),
            (5, Fate::Late(Fatal)),
        ],
        RequestKind::Offsets => &[
            LOST,
            ANSWER,
            (3, Fate::Refused(Retriable)),
            (4, Fate::DoneButFailed(Unknown)),
            (5, Fate::Late(Unknown)),
        ],
        RequestKind::Commit => &[
            LOST,
            ANSWER,
            TWICE,
            (3, Fate::Refused(Abortable)),
            (3, Fate::Refused(Fatal)),
            (4, Fate::DoneButFailed(Fatal)),
            (5, Fate::Late(Fatal)),
        ],
        RequestKind::Abort => &[
            LOST,
            ANSWER,
            TWICE,
            (3, Fate::Refused(Fatal)),
            (4, Fate::DoneButFailed(Fatal)),
            (5, Fate::Late(Fatal)),
        ],
    }
}
