//! Steps turned into effects, outcomes turned into progress, and failures into the one recovery there is: drop what is
//! not committed, make the nodes anew, and go through the ordinary start-up. No decision about an unknown outcome is
//! ever needed (design rule 1.7).

use super::core::StreamThreadCore;
use super::effect::{CallFailure, Effect, FailureClass, Outcome};
use super::meter::AbortReason;
use super::slot::Failing;
use super::startup::failing;
use super::step::Step;
use crate::error::{Error, ProcessResult};
use crate::processor::ProductionDecision;

const INIT: Failing = Failing::Call("init-transactions");

impl StreamThreadCore {
    pub(super) fn effect_of(&mut self, step: &Step, now_ms: i64) -> ProcessResult<Option<Effect>> {
        match step {
            Step::InitTransactions => Ok(Some(Effect::InitTransactions)),
            Step::RecreateProducer => Ok(Some(Effect::RecreateProducer)),
            Step::Abort => Ok(self.transaction_began_ms.map(|_| Effect::AbortTransaction)),
            Step::Unassign => {
                self.unassigning = std::mem::take(&mut self.to_unassign);
                let partitions = self.unassigning.clone();
                Ok((!partitions.is_empty()).then_some(Effect::Unassign { partitions }))
            }
            Step::Pause(partitions) => Ok(Some(Effect::Pause {
                partitions: partitions.clone(),
            })),
            Step::Resume(partitions) => Ok(Some(Effect::Resume {
                partitions: partitions.clone(),
            })),
            Step::HeartbeatNow => Ok(Some(Effect::HeartbeatNow)),
            Step::OpenProducer => Ok(Some(Effect::OpenProducer)),
            Step::Settle => Ok(Some(Effect::Flush { epoch: self.epoch })),
            Step::Claim => self.claim_effect(),
            Step::ReadBack => Ok(self.read_back_effect()),
            Step::Rejoin => Ok(Some(Effect::Rejoin)),
            Step::Wait { .. } => Ok(None),
            Step::Release => self.release_and_take_up().map(|()| None),
            Step::Acknowledge => Ok(Some(Effect::Acknowledge {
                tasks: self.tasks.keys().copied().collect(),
            })),
            Step::Purge => {
                self.last_purge_ms = now_ms;
                let before = std::mem::take(&mut self.purgeable).into_iter().collect();
                Ok(Some(Effect::Purge { before }))
            }
            Step::ListEnds => Ok(self.ends_effect(now_ms)),
            Step::Begin
            | Step::Send
            | Step::Flush
            | Step::SendOffsets
            | Step::Commit
            | Step::Apply
            | Step::CommitOffsets => self.commit_effect(step),
            Step::FetchCommitted | Step::ResolveReset | Step::ListChangelogs | Step::Restore(_) | Step::Assign(_) => {
                self.start_up_effect(step, now_ms)
            }
        }
    }

    pub(super) fn step_done(&mut self, step: Step, outcome: Outcome, now_ms: i64) -> ProcessResult {
        match step {
            Step::InitTransactions => {
                self.producer_ready = true;
                self.failing_since_ms.remove(&INIT);
                Ok(())
            }
            Step::Abort => {
                self.transaction_began_ms = None;
                self.totals.count_abort(self.abort_reason);
                Ok(())
            }
            Step::RecreateProducer => {
                self.transaction_began_ms = None;
                self.totals.producers += 1;
                Ok(())
            }
            Step::Unassign
            | Step::Pause(_)
            | Step::Resume(_)
            | Step::HeartbeatNow
            | Step::Acknowledge
            | Step::Purge
            | Step::Release => Ok(()),
            Step::ListEnds => {
                let Outcome::Ends(ends) = outcome else {
                    return Err(Error::bug(format!("{outcome:?} does not answer {step:?}")));
                };
                self.ends_known(&ends.into_iter().collect(), now_ms);
                Ok(())
            }
            Step::Flush if matches!(outcome, Outcome::PartlyFlushed { .. }) => {
                let Outcome::PartlyFlushed {
                    reports,
                    undelivered,
                    total,
                } = outcome
                else {
                    return Ok(());
                };
                self.partly_flushed(reports, &undelivered, total, now_ms)
            }
            Step::Begin
            | Step::Send
            | Step::Flush
            | Step::SendOffsets
            | Step::Commit
            | Step::Apply
            | Step::CommitOffsets => self.commit_step_done(&step, outcome, now_ms),
            Step::OpenProducer | Step::Settle | Step::Claim | Step::ReadBack | Step::Rejoin | Step::Wait { .. } => {
                self.plain_step_done(&step, outcome)
            }
            Step::FetchCommitted | Step::ResolveReset | Step::ListChangelogs | Step::Restore(_) | Step::Assign(_) => {
                self.start_up_step_done(&step, outcome, now_ms)
            }
        }
    }

    pub(super) fn step_failed(&mut self, step: Step, failure: CallFailure, now_ms: i64) -> ProcessResult {
        tracing::debug!(?step, code = failure.code, message = failure.message, class = ?failure.class, "a step failed");
        if step == Step::Unassign {
            self.to_unassign.append(&mut self.unassigning);
        }
        if let Step::Assign(id) = step {
            self.not_assigned(id);
            return self.start_up_failed(failing(&step), failure, now_ms);
        }
        if step.is_start_up() {
            return self.start_up_failed(failing(&step), failure, now_ms);
        }
        if self.is_transactional() && step.is_in_background() && self.closed.is_none() {
            return self.orphan_failed(&step, failure, now_ms);
        }
        if matches!(
            step,
            Step::Purge | Step::HeartbeatNow | Step::Pause(_) | Step::Resume(_) | Step::ListEnds
        ) {
            tracing::warn!(
                ?step,
                code = failure.code,
                message = failure.message,
                "a step failed and is left out"
            );
            return Ok(());
        }
        if !self.is_transactional() {
            return self.plain_step_failed(step, failure, now_ms);
        }
        self.look_at_transaction_time(now_ms);
        match failure.class {
            FailureClass::Retriable if self.may_retry(&step, now_ms) => {
                self.retries += 1;
                self.steps.push_front(step);
                Ok(())
            }
            FailureClass::Stop => Err(stop(&step, failure)),
            _ if step == Step::InitTransactions => Err(stop(&step, failure)),
            // Nothing began, so there is nothing that an abort could end.
            FailureClass::Abortable if !matches!(step, Step::Abort | Step::Begin) => {
                tracing::warn!(
                    ?step,
                    code = failure.code,
                    message = failure.message,
                    epoch = self.epoch,
                    "the transaction is aborted; its records are processed again"
                );
                self.abort_and_rebuild(AbortReason::Refused);
                Ok(())
            }
            FailureClass::StaleMember if step != Step::Abort => {
                tracing::info!(
                    code = failure.code,
                    epoch = self.epoch,
                    "the transaction is aborted: the group no longer knows this member or its epoch"
                );
                self.abort_and_rebuild(AbortReason::StaleMember);
                // A fenced member would otherwise learn it only at its next heartbeat.
                self.steps.push_back(Step::HeartbeatNow);
                Ok(())
            }
            FailureClass::Fenced => self.fenced(failure, now_ms),
            FailureClass::Fatal
            | FailureClass::Retriable
            | FailureClass::Abortable
            | FailureClass::StaleMember
            | FailureClass::Unknown => {
                /// A producer that is given up so often, one after the other, will not come right.
                const MOST_GIVEN_UP: u32 = 100;
                self.given_up += 1;
                if self.given_up > MOST_GIVEN_UP {
                    return Err(stop(&step, failure));
                }
                tracing::warn!(
                    ?step,
                    code = failure.code,
                    message = failure.message,
                    epoch = self.epoch,
                    "the producer is made anew; what it had not committed is processed again"
                );
                self.recreate_and_rebuild();
                Ok(())
            }
        }
    }

    /// A transaction that fails after its time has run out has failed because of that: the next has fewer records (design
    /// rule 1.11).
    fn look_at_transaction_time(&mut self, now_ms: i64) {
        let timeout_ms = self.settings.transaction_timeout_ms;
        let Some(open_ms) = self.transaction_began_ms.map(|began_ms| now_ms - began_ms) else {
            return;
        };
        if open_ms < timeout_ms || self.transaction_overran {
            return;
        }
        self.transaction_overran = true;
        self.totals.transaction_timeouts += 1;
        let (records, next) = self.epoch_size.timed_out();
        self.pipelining.timed_out();
        tracing::warn!(
            open_ms,
            timeout_ms,
            records,
            next,
            "the transaction was open for longer than transaction.timeout.ms: its records are processed again, in smaller transactions; raise transaction.timeout.ms if records take that long"
        );
    }

    /// A call of a commit whose epoch was dropped while it was on its way (the tasks were lost, or have to be made anew):
    /// nobody waits for it. An abort is planned already; where that can't settle the transaction, a new producer does.
    fn orphan_failed(&mut self, step: &Step, failure: CallFailure, now_ms: i64) -> ProcessResult {
        let abort_settles = match failure.class {
            FailureClass::Stop => return Err(stop(step, failure)),
            FailureClass::Abortable | FailureClass::StaleMember => true,
            // Only the commit itself may be called again, and its outcome is unknown.
            FailureClass::Retriable => *step != Step::Commit,
            FailureClass::Fenced => {
                self.look_for_a_duel(&failure, now_ms)?;
                false
            }
            FailureClass::Fatal | FailureClass::Unknown => false,
        };
        if !abort_settles {
            self.steps.retain(|step| *step != Step::Abort);
            self.steps.push_front(Step::RecreateProducer);
            self.producer_ready = false;
        }
        Ok(())
    }

    /// Whether the same call may be made again: while the broker's transaction timer can't have run out.
    fn may_retry(&mut self, step: &Step, now_ms: i64) -> bool {
        const MOST_RETRIES: u32 = 10_000;
        if *step == Step::InitTransactions {
            let since_ms = *self.failing_since_ms.entry(INIT).or_insert(now_ms);
            return now_ms - since_ms < self.settings.task_timeout_ms;
        }
        self.retries < MOST_RETRIES
            && self
                .transaction_began_ms
                .is_some_and(|began_ms| now_ms - began_ms < self.settings.transaction_timeout_ms)
    }

    /// A fenced producer: our own transaction timed out, or another process has our identity. The second time in a row
    /// within our own clock's timeout it must be another process, and two of them would fence each other for ever
    /// (design rule 1.13).
    fn fenced(&mut self, failure: CallFailure, now_ms: i64) -> ProcessResult {
        let in_time = self.look_for_a_duel(&failure, now_ms)?;
        tracing::warn!(
            code = failure.code,
            message = failure.message,
            in_time,
            "the producer was fenced and is made anew; what it had not committed is processed again"
        );
        self.recreate_and_rebuild();
        Ok(())
    }

    /// Answers whether the fence came within our own clock's timeout.
    fn look_for_a_duel(&mut self, failure: &CallFailure, now_ms: i64) -> ProcessResult<bool> {
        /// Fenced twice within this time, whatever was committed in between, means two processes of one identity.
        const DUEL_MS: i64 = 300_000;
        let in_time = self
            .transaction_began_ms
            .is_some_and(|began_ms| now_ms - began_ms < self.settings.transaction_timeout_ms);
        let lately = self.fenced_at_ms.is_some_and(|at_ms| now_ms - at_ms < DUEL_MS);
        if in_time && lately {
            let reason = format!(
                "another process uses the transactional id of this one ({}): give each process its own state.dir or process.id",
                failure.message
            );
            return Err(Box::new(Error::TaskMigrated { reason }));
        }
        if in_time {
            self.fenced_at_ms = Some(now_ms);
        }
        self.totals.producers_fenced += 1;
        Ok(in_time)
    }

    /// A record could not be delivered: the production handler decides.
    ///
    /// # Errors
    /// When it answers `Fail`; also for `Resume`, which can't be honoured once the broker refused a record of a
    /// transaction: the transaction has to be aborted.
    pub fn on_undelivered(
        &mut self,
        topic_partition: &crate::TopicPartition,
        code: &str,
        message: &str,
        retriable: bool,
    ) -> ProcessResult {
        let step = self.in_flight.take();
        if self.closed.is_none() && step != Some(Step::Send) {
            return Ok(()); // of an epoch that was dropped meanwhile; its abort is planned
        }
        let decision = self
            .handlers
            .production
            .handle_send(&topic_partition.topic, code, message, retriable);
        if decision == ProductionDecision::Retry && retriable {
            self.abort_and_rebuild(AbortReason::Undelivered);
            return Ok(());
        }
        let hint = if decision == ProductionDecision::Resume {
            " (it can't be dropped: the broker refused it inside a transaction)"
        } else {
            ""
        };
        Err(Box::new(Error::Produce {
            topic_partition: topic_partition.clone(),
            code: code.to_owned(),
            message: format!("{message}{hint}"),
        }))
    }

    /// A record that the client refused before it was sent: the production handler decides, and may let it pass.
    ///
    /// # Errors
    /// When it answers anything but `Resume`.
    pub fn may_drop(&self, topic_partition: &crate::TopicPartition, code: &str, message: &str) -> ProcessResult {
        match self
            .handlers
            .production
            .handle_send(&topic_partition.topic, code, message, false)
        {
            ProductionDecision::Resume => Ok(()),
            ProductionDecision::Fail | ProductionDecision::Retry => {
                let (topic_partition, code, message) = (topic_partition.clone(), code.to_owned(), message.to_owned());
                Err(Box::new(Error::Produce {
                    topic_partition,
                    code,
                    message,
                }))
            }
        }
    }

    /// Counts records that were let pass by the production handler.
    pub fn count_dropped(&mut self, records: u64) {
        self.totals.dropped_at_send += records;
    }

    /// Aborts the transaction and makes every task anew from its factories (design rule 1.3).
    pub(super) fn abort_and_rebuild(&mut self, reason: AbortReason) {
        self.abort_reason = reason;
        let kept = self.clear_steps();
        self.drop_uncommitted();
        self.plan_settling(kept);
    }

    pub(super) fn recreate_and_rebuild(&mut self) {
        let kept = self.clear_steps();
        self.drop_uncommitted();
        self.plan_settling(kept.and_recreate());
    }
}

pub(super) fn stop(step: &Step, failure: CallFailure) -> Box<Error> {
    Box::new(Error::Kafka {
        what: format!("{step:?}"),
        code: failure.code,
        message: failure.message,
    })
}
