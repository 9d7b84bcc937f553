//! The guarantees without transactions: `at_least_once` and `at_most_once`.
//!
//! Both commit by an OffsetCommit of our own, which carries the member's id and epoch, and send with an idempotent producer.
//! No effect of a transaction is ever asked for. What differs is the order:
//!
//! | | first | then | last |
//! |---|---|---|---|
//! | at least once | process, send, all delivery reports in | apply to the stores | commit the offsets |
//! | at most once | commit the offsets: the claim | process, send, all delivery reports in | apply to the stores |
//!
//! The stores only ever hold what their changelogs hold, under every guarantee: where an epoch is given up after a part of
//! it was sent, the start-up replays that part.
//!
//! Java counterpart of at-least-once: `TaskExecutor.commitOffsetsOrTransaction`, `StreamTask.postCommit`. Java has no
//! at-most-once.

mod claim;
mod codes;
mod offsets;

use super::core::StreamThreadCore;
use super::effect::{CallFailure, FailureClass, Outcome};
use super::meter::AbortReason;
use super::recovery::stop;
use super::step::Step;
use crate::config::ProcessingGuarantee;
use crate::error::{Error, ProcessResult};
use crate::task::Applied;

use claim::Claim;
pub use codes::class_of_offset_commit;

/// A call that was refused for now is made again after so long, milliseconds.
const PAUSE_MS: i64 = 100;

/// Whether a commit names the offsets, or only lets the stores take what they can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offsets {
    /// It names them.
    Named,
    /// At least once, because memory is short: the offsets follow when they are due (design rule 2.7).
    Later,
}

/// What a core without transactions keeps between its steps.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Since when calls fail, milliseconds since the Unix epoch.
    failing_since_ms: Option<i64>,
    /// The commit on its way was refused once because of the member's epoch.
    refused_as_stale: bool,
    /// The claim on its way.
    claim: Option<Claim>,
    /// Claims made so far; each has a number of its own.
    claims: u64,
    /// A claim may still be carried out some day: nothing is processed or claimed until the group knows a new member.
    rejoining: bool,
    /// The claimed records can't be processed before others are claimed too.
    stalled: bool,
}

impl StreamThreadCore {
    pub(super) fn is_transactional(&self) -> bool {
        self.settings.guarantee == ProcessingGuarantee::ExactlyOnceV2
    }

    pub(super) fn is_at_least_once(&self) -> bool {
        self.settings.guarantee == ProcessingGuarantee::AtLeastOnce
    }

    /// Whether records are claimed before they are processed.
    pub(super) fn claims(&self) -> bool {
        self.settings.guarantee == ProcessingGuarantee::AtMostOnce
    }

    /// What is known of the input offsets when an epoch is applied.
    pub(super) fn applied(&self) -> Applied {
        match self.settings.guarantee {
            ProcessingGuarantee::ExactlyOnceV2 => Applied::Committed,
            ProcessingGuarantee::AtLeastOnce => Applied::Ahead,
            ProcessingGuarantee::AtMostOnce => Applied::Claimed,
        }
    }

    /// The first step of a producer's life.
    pub(super) fn producer_step(&self) -> Step {
        if self.is_transactional() {
            Step::InitTransactions
        } else {
            Step::OpenProducer
        }
    }

    /// Whether a step still waits for its time, or for another epoch of the member.
    pub(super) fn still_waits(&self, step: &Step, now_ms: i64) -> bool {
        match step {
            Step::Wait { until_ms, member_epoch } => {
                now_ms < *until_ms && member_epoch.is_none_or(|epoch| epoch == self.group.member_epoch)
            }
            _ => false,
        }
    }

    /// Until when the next step waits, if it does; milliseconds since the Unix epoch.
    #[must_use]
    pub fn waits_until_ms(&self, now_ms: i64) -> Option<i64> {
        let step = self.steps.front().filter(|step| self.still_waits(step, now_ms));
        match step {
            Some(Step::Wait { until_ms, .. }) => Some(*until_ms),
            _ => None,
        }
    }

    /// A step of a core without transactions failed. Start-up steps and those that may be left out are not among them.
    pub(super) fn plain_step_failed(&mut self, step: Step, failure: CallFailure, now_ms: i64) -> ProcessResult {
        match step {
            Step::CommitOffsets => self.offsets_refused(failure, now_ms),
            Step::Claim => self.claim_refused(failure, now_ms),
            Step::ReadBack => self.read_back_failed(failure, now_ms),
            _ => self.producer_failed(&step, failure, now_ms),
        }
    }

    /// A call of the producer failed.
    fn producer_failed(&mut self, step: &Step, failure: CallFailure, now_ms: i64) -> ProcessResult {
        match failure.class {
            FailureClass::Stop => return Err(stop(step, failure)),
            FailureClass::Retriable if self.may_try_again(now_ms) => {
                // It waits for the brokers itself.
                self.steps.push_front(step.clone());
                return Ok(());
            }
            _ if *step == Step::OpenProducer => return Err(stop(step, failure)),
            _ => {}
        }
        if self.closed.is_none() && matches!(step, Step::Flush | Step::Settle) {
            // Of an epoch that was given up: there is nothing left to be read again for it.
            self.settle_failed(&failure);
            return Ok(());
        }
        tracing::warn!(
            ?step,
            code = failure.code,
            message = failure.message,
            epoch = self.epoch,
            "what was processed since the last commit is given up; reading goes on at the committed offsets"
        );
        match failure.class {
            FailureClass::Abortable => self.abort_and_rebuild(AbortReason::Refused),
            _ => self.recreate_and_rebuild(),
        }
        Ok(())
    }

    /// What was sent did not settle: where that is not only some record's failure, a new producer ends it.
    fn settle_failed(&mut self, failure: &CallFailure) {
        if failure.class == FailureClass::Abortable {
            return;
        }
        tracing::warn!(
            code = failure.code,
            message = failure.message,
            "the producer is made anew"
        );
        self.steps.retain(|step| *step != Step::Settle);
        self.steps.push_front(Step::RecreateProducer);
        self.producer_ready = false;
    }

    /// Whether a call that failed may be made again: for `task.timeout.ms` from its first failure on.
    fn may_try_again(&mut self, now_ms: i64) -> bool {
        let since_ms = *self.plain.failing_since_ms.get_or_insert(now_ms);
        now_ms - since_ms < self.settings.task_timeout_ms
    }

    fn waited_too_long(&self, what: &str, failure: &CallFailure, now_ms: i64) -> Box<Error> {
        Box::new(Error::Timeout {
            what: format!("{what} ({}: {})", failure.code, failure.message),
            waited_ms: now_ms - self.plain.failing_since_ms.unwrap_or(now_ms),
            setting: "task.timeout.ms",
        })
    }

    /// A call succeeded: what failed before it has passed.
    pub(super) fn plain_call_succeeded(&mut self, step: &Step) {
        if step.is_of_commit() || matches!(step, Step::Claim | Step::ReadBack | Step::Settle) {
            self.plain.failing_since_ms = None;
        }
    }

    /// Every task is lost: what was on its way is nobody's.
    pub(super) fn plain_lost(&mut self) {
        self.plain = Plain {
            claims: self.plain.claims,
            ..Plain::default()
        };
    }

    /// What is not applied is given up. A claim on its way is given up with it: its records may be lost, and are not read
    /// again, since whoever goes on begins at the committed offset.
    pub(super) fn plain_dropped(&mut self) {
        self.plain = Plain {
            claims: self.plain.claims,
            rejoining: self.plain.rejoining,
            ..Plain::default()
        };
    }

    pub(super) fn plain_step_done(&mut self, step: &Step, outcome: Outcome) -> ProcessResult {
        match (step, outcome) {
            (Step::OpenProducer, Outcome::Done) => self.producer_ready = true,
            (Step::Claim, Outcome::Done) => return self.claim_succeeded(),
            (Step::ReadBack, Outcome::Committed(offsets)) => return self.read_back(&offsets),
            (Step::Rejoin, Outcome::Done) | (Step::Settle, _) => {}
            (step, outcome) => return Err(Error::bug(format!("{outcome:?} does not answer {step:?}"))),
        }
        Ok(())
    }
}
