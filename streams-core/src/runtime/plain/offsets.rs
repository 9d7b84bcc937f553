//! At least once: the state follows its changelog, the offsets follow the state.

use super::{Offsets, PAUSE_MS};
use crate::error::{Error, ProcessResult};
use crate::processor::ProductionDecision;
use crate::runtime::core::StreamThreadCore;
use crate::runtime::effect::{CallFailure, FailureClass, Outcome, Reports, Undelivered};
use crate::runtime::meter::AbortReason;
use crate::runtime::recovery::stop;
use crate::runtime::slot::Slot;
use crate::runtime::step::Step;

/// How long a commit that was refused because of the member's epoch waits for a newer one, milliseconds.
const EPOCH_WAIT_MS: i64 = 1_000;

impl StreamThreadCore {
    /// Plans what comes after the sends of a closed epoch: all delivery reports in, then the stores, then, at least once,
    /// the offsets. A crash in between repeats records and loses none; state is ahead of the offsets then, as everywhere
    /// without transactions (design rule 2.7).
    pub(in crate::runtime) fn plan_plain_commit(&mut self, offsets: Offsets) {
        let follow = self.is_at_least_once() && offsets == Offsets::Named;
        if let Some(closed) = &mut self.closed {
            closed.offsets_follow = follow;
        }
        self.plain.refused_as_stale = false;
        self.steps.extend([Step::Flush, Step::Apply]);
        if follow {
            self.steps.push_back(Step::CommitOffsets);
        }
    }

    /// Whether the epoch is closed only because memory is short. Its offsets may wait for their time.
    pub(in crate::runtime) fn offsets_due(&self, now_ms: i64) -> Offsets {
        if self.is_at_least_once() && !self.is_commit_due_by_time(now_ms) {
            Offsets::Later
        } else {
            Offsets::Named
        }
    }

    pub(in crate::runtime) fn offsets_committed(&mut self, now_ms: i64) {
        let Some(closed) = &self.closed else {
            return; // the tasks were lost meanwhile
        };
        for (id, epoch) in &closed.tasks {
            if let Some(Slot::Running(task)) = self.tasks.get_mut(id) {
                task.offsets_committed(epoch);
            }
        }
        self.totals.commits += 1;
        self.note_purgeable();
        self.epoch_ended(now_ms);
    }

    /// The same offsets may be committed again whatever became of the first try: they are the same, and the identity that
    /// they are sent with says whether they still count. What was processed is applied already and is not given up for a
    /// refusal that passes.
    pub(super) fn offsets_refused(&mut self, failure: CallFailure, now_ms: i64) -> ProcessResult {
        if self.closed.is_none() {
            // Of an epoch that was given up while the call was on its way.
            return match failure.class {
                FailureClass::Stop => Err(stop(&Step::CommitOffsets, failure)),
                _ => Ok(()),
            };
        }
        match failure.class {
            FailureClass::Retriable | FailureClass::Unknown => {
                if !self.may_try_again(now_ms) {
                    return Err(self.waited_too_long("committing offsets", &failure, now_ms));
                }
                tracing::info!(
                    code = failure.code,
                    message = failure.message,
                    "the offsets are committed again"
                );
                self.steps.push_front(Step::CommitOffsets);
                self.steps.push_front(wait(now_ms + PAUSE_MS, None));
                Ok(())
            }
            // An older epoch than the tasks' own is refused. The one that fits may be on its way to this thread.
            FailureClass::StaleMember if !self.plain.refused_as_stale => {
                self.plain.refused_as_stale = true;
                self.steps.push_front(Step::CommitOffsets);
                self.ask_for_epoch(now_ms);
                Ok(())
            }
            FailureClass::StaleMember => {
                tracing::info!(
                    code = failure.code,
                    epoch = self.epoch,
                    "the group no longer knows this member or its epoch: reading goes on at the committed offsets, and records since then are repeated"
                );
                self.abort_and_rebuild(AbortReason::StaleMember);
                self.steps.push_back(Step::HeartbeatNow);
                Ok(())
            }
            _ => Err(stop(&Step::CommitOffsets, failure)),
        }
    }

    /// Asks the group for this member's epoch and lets the next step wait for it.
    pub(super) fn ask_for_epoch(&mut self, now_ms: i64) {
        let member_epoch = Some(self.group.member_epoch);
        self.steps.push_front(wait(now_ms + EPOCH_WAIT_MS, member_epoch));
        self.steps.push_front(Step::HeartbeatNow);
    }

    /// The flush ended, and some records were not delivered: the production handler decides. `Resume` leaves them out, which
    /// can be honoured where there is no transaction that they would spoil. A changelog record can't be left out: the store
    /// would be ahead of its changelog.
    pub(in crate::runtime) fn partly_flushed(
        &mut self,
        reports: Reports,
        undelivered: &[Undelivered],
        total: u64,
        now_ms: i64,
    ) -> ProcessResult {
        if self.closed.is_none() {
            return Ok(()); // of an epoch that was given up
        }
        let (mut again, mut fails) = (false, None);
        for failed in undelivered {
            let topic = &failed.topic_partition.topic;
            let decision = self
                .handlers
                .production
                .handle_send(topic, &failed.code, &failed.message, failed.retriable);
            match decision {
                ProductionDecision::Resume if !failed.changelog => {}
                // At most once nothing is sent twice: the records are gone, and the store goes back to its changelog.
                ProductionDecision::Resume | ProductionDecision::Retry if self.claims() => again |= failed.changelog,
                ProductionDecision::Retry if failed.retriable => again = true,
                _ => fails = fails.or(Some(failed)),
            }
        }
        // Not all of them are known, and there may be changelog records among the others.
        again |= total > undelivered.len() as u64;
        if let Some(failed) = fails {
            return Err(Box::new(Error::Produce {
                topic_partition: failed.topic_partition.clone(),
                code: failed.code.clone(),
                message: failed.message.clone(),
            }));
        }
        if self.claims() || !again {
            self.count_dropped(total);
        }
        if again {
            self.abort_and_rebuild(AbortReason::Undelivered);
            return Ok(());
        }
        self.commit_step_done(&Step::Flush, Outcome::Flushed(reports), now_ms)
    }
}

pub(super) fn wait(until_ms: i64, member_epoch: Option<i32>) -> Step {
    Step::Wait { until_ms, member_epoch }
}
