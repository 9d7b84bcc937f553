//! The commit: close the epoch, send, flush, name the offsets, commit, apply. Each is one step, so a test can stop
//! after any of them.

use super::core::StreamThreadCore;
use super::effect::{Effect, Outcome};
use super::meter::CommitSample;
use super::plain::Offsets;
use super::slot::{ClosedEpoch, Slot};
use super::step::Step;
use crate::error::{Error, ProcessResult};
use crate::task::{CommittedOffset, Task};

impl StreamThreadCore {
    /// Whether a commit is due: asked for, at the interval, out of memory, or (adaptive) with the input drained.
    /// Transaction markers alone never make one due (design rule 10).
    pub(super) fn is_commit_due(&self, now_ms: i64) -> bool {
        if self.claims() {
            return self.is_claimed_epoch_due(now_ms);
        }
        let touched = self.running().any(Task::is_touched) || self.transaction_began_ms.is_some();
        if !touched {
            // Positions that only passed markers ride along at the interval, so that the lag reaches 0.
            let markers = self.running().any(Task::has_passed_markers);
            return markers && now_ms - self.last_commit_ms >= self.settings.commit_interval_ms.max(1_000);
        }
        self.is_full() || self.is_commit_due_by_time(now_ms)
    }

    /// Whether a commit is due for another reason than that memory is short.
    pub(super) fn is_commit_due_by_time(&self, now_ms: i64) -> bool {
        let since_ms = now_ms - self.last_commit_ms;
        self.commit_now
            || since_ms >= self.settings.commit_interval_ms
            || (self.settings.commit_adaptive && self.is_caught_up() && since_ms >= self.adaptive_pause_ms())
    }

    /// When the next commit is due if nothing more comes.
    pub(super) fn next_commit_ms(&self, now_ms: i64) -> i64 {
        if self.commit_now {
            return now_ms;
        }
        // However much the last fetch brought: the next one, which waits until then, tells whether there is more.
        let after_ms = if self.settings.commit_adaptive && self.buffered() == 0 {
            self.adaptive_pause_ms().min(self.settings.commit_interval_ms)
        } else {
            self.settings.commit_interval_ms
        };
        self.last_commit_ms.saturating_add(after_ms)
    }

    /// Adaptive commits keep a distance, so that a trickle of records does not become a flood of transactions.
    fn adaptive_pause_ms(&self) -> i64 {
        const LEAST_MS: i64 = 10;
        const TIMES_THE_LAST: i64 = 4;
        (self.last_commit_took_ms * TIMES_THE_LAST).max(LEAST_MS)
    }

    /// Whether all that had arrived is processed. Not whether the log ends here: records that come one by one, each
    /// before the last was committed, would wait for the interval for ever. A fetch that brings much means a backlog;
    /// then throughput counts, and the interval holds.
    fn is_caught_up(&self) -> bool {
        const FEW_RECORDS: usize = 1_000;
        self.fetched_records <= FEW_RECORDS && self.buffered() == 0
    }

    /// Whether what is uncommitted has taken all the memory there is for it.
    pub(super) fn is_full(&self) -> bool {
        let overlays: usize = self.running().map(Task::overlay_bytes).sum();
        overlays + self.outbox_bytes() >= self.settings.max_uncommitted_bytes
    }

    /// Closes the epoch and plans its steps.
    pub(super) fn plan_commit(&mut self, now_ms: i64, offsets: Offsets) -> ProcessResult {
        self.look_at_lag(now_ms);
        let span = tracing::info_span!("commit", epoch = self.epoch);
        let _commit = span.clone().entered();
        let mut closed = ClosedEpoch {
            started_ms: now_ms,
            span: Some(span),
            ..ClosedEpoch::default()
        };
        for (id, slot) in &mut self.tasks {
            if let Slot::Running(task) = slot {
                if task.is_touched() || task.has_passed_markers() {
                    closed.tasks.push((*id, task.close_epoch()?));
                }
            }
        }
        self.commit_now = false;
        if closed.tasks.is_empty() && self.transaction_began_ms.is_none() {
            return Ok(());
        }
        self.closed = Some(closed);
        self.epoch_size.closed();
        self.plan_send();
        if !self.is_transactional() {
            self.plan_plain_commit(offsets);
            return Ok(());
        }
        if self.transaction_began_ms.is_none() && self.steps.is_empty() {
            self.steps.push_back(Step::Begin);
        }
        self.steps
            .extend([Step::Flush, Step::SendOffsets, Step::Commit, Step::Apply]);
        Ok(())
    }

    /// The span of the commit in progress; none without one.
    pub(super) fn commit_span(&self) -> tracing::Span {
        let span = self.closed.as_ref().and_then(|closed| closed.span.clone());
        span.unwrap_or_else(tracing::Span::none)
    }

    /// Whether enough waits to be sent before the epoch closes. Not right behind a commit: the broker answers a commit
    /// before it has written the markers, refuses a transaction that begins until then (`CONCURRENT_TRANSACTIONS`), and
    /// librdkafka asks again only after 20 ms.
    ///
    /// Without transactions nothing has to be begun, and the client itself makes batches (`linger.ms`): nothing waits.
    pub(super) fn is_send_due(&self, now_ms: i64) -> bool {
        if !self.is_transactional() {
            return self.outbox_bytes() > 0;
        }
        /// How long the markers take on a quiet broker.
        const MARKERS_MS: i64 = 6;
        let begins_too_early = self.transaction_began_ms.is_none() && now_ms - self.last_commit_ms < MARKERS_MS;
        !begins_too_early && self.outbox_bytes() >= self.settings.send_bytes
    }

    /// Plans sending the outboxes. The transaction, if there are any, begins when something is first sent, so that slow user
    /// code does not run inside an open one (design rule 1.11).
    pub(super) fn plan_send(&mut self) {
        if self.outbox_bytes() == 0 && self.outboxes().next().is_none() {
            return;
        }
        if self.is_transactional() && self.transaction_began_ms.is_none() {
            self.steps.push_back(Step::Begin);
        }
        self.steps.push_back(Step::Send);
    }

    pub(super) fn commit_effect(&mut self, step: &Step) -> ProcessResult<Option<Effect>> {
        let epoch = self.epoch;
        Ok(Some(match step {
            Step::Begin => Effect::BeginTransaction,
            Step::Send => Effect::Send { epoch },
            Step::Flush => Effect::Flush { epoch },
            Step::CommitOffsets => Effect::CommitOffsets {
                offsets: self.closed_offsets()?,
                group: self.group.clone(),
            },
            Step::SendOffsets => {
                let offsets = self.closed_offsets()?;
                if offsets.is_empty() {
                    return Err(Error::bug(
                        "a transaction would commit without offsets, that is without fencing",
                    ));
                }
                Effect::SendOffsets {
                    epoch,
                    offsets,
                    group: self.group.clone(),
                }
            }
            Step::Commit => Effect::CommitTransaction { epoch },
            Step::Apply => Effect::Apply { epoch },
            _ => return Err(Error::bug(format!("{step:?} is no step of a commit"))),
        }))
    }

    fn closed_offsets(&self) -> ProcessResult<Vec<CommittedOffset>> {
        let closed = self
            .closed
            .as_ref()
            .ok_or_else(|| Error::bug("offsets of an epoch that is not closed"))?;
        let offsets = closed.tasks.iter().flat_map(|(_, task)| task.offsets.iter().cloned());
        Ok(offsets.collect())
    }

    pub(super) fn commit_step_done(&mut self, step: &Step, outcome: Outcome, now_ms: i64) -> ProcessResult {
        match (step, outcome) {
            (Step::Begin, Outcome::Done) => self.transaction_began_ms = Some(now_ms),
            (Step::Flush, Outcome::Flushed(reports)) => {
                if let Some(closed) = &mut self.closed {
                    closed.reports = reports;
                }
            }
            (Step::Commit, Outcome::Done) => {
                let began_ms = self.transaction_began_ms.take();
                if let (Some(closed), Some(began_ms)) = (&mut self.closed, began_ms) {
                    closed.open_ms = now_ms - began_ms;
                }
                self.totals.commits += 1;
                self.given_up = 0;
                self.note_purgeable();
                self.given_up_and_committed();
            }
            (Step::Apply, Outcome::Done) if self.closed.as_ref().is_some_and(|closed| closed.offsets_follow) => {}
            (Step::Apply, Outcome::Done) => self.epoch_ended(now_ms),
            (Step::CommitOffsets, Outcome::Done) => self.offsets_committed(now_ms),
            (Step::Send | Step::SendOffsets, Outcome::Done) => {}
            (step, outcome) => return Err(Error::bug(format!("{outcome:?} does not answer {step:?}"))),
        }
        Ok(())
    }

    /// The epoch was given up while its commit was on its way, and it is committed: what its punctuations did must not be
    /// done again (design rule 1.3).
    fn given_up_and_committed(&mut self) {
        for (id, epoch) in std::mem::take(&mut self.undecided) {
            if let Some(Slot::Waiting { schedules, .. }) = self.tasks.get_mut(&id) {
                *schedules = epoch.schedules;
            }
        }
    }

    /// The closed epoch is applied, and committed where that comes last.
    pub(super) fn epoch_ended(&mut self, now_ms: i64) {
        let closed = self.closed.take().unwrap_or_else(|| ClosedEpoch {
            started_ms: now_ms,
            ..ClosedEpoch::default()
        });
        self.epoch_size.committed();
        self.pipelining.committed(self.settings.transaction_timeout_ms);
        self.transaction_overran = false;
        let epoch = self.epoch;
        self.epoch = epoch.wrapping_add(1).max(1);
        if self.is_at_least_once() && !closed.offsets_follow {
            return; // applied because memory was short; its commit comes when it is due
        }
        self.last_commit_ms = now_ms;
        self.last_commit_took_ms = now_ms - closed.started_ms;
        let records = closed.reports.acknowledged;
        self.commits.note(CommitSample {
            took_ms: self.last_commit_took_ms,
            open_ms: closed.open_ms,
            records,
        });
        tracing::debug!(
            epoch,
            tasks = closed.tasks.len(),
            records,
            took_ms = self.last_commit_took_ms,
            "committed"
        );
    }

    /// Carries out [`Effect::Apply`]: the closed epoch goes into the stores, one batch per task. A store that can't be
    /// written (disk full) is only behind, since the changelog is written: its task is closed, opened again after a
    /// pause and replays the tail (design rule 1.10).
    ///
    /// # Errors
    /// When no epoch is closed.
    pub fn apply(&mut self, now_ms: i64) -> ProcessResult {
        const REOPEN_AFTER_MS: i64 = 1_000;
        let span = self.commit_span();
        let _commit = span.enter();
        let Some(closed) = &self.closed else {
            return Err(Error::bug("nothing to apply"));
        };
        let acked = |slot: u32| closed.reports.highest.get(&slot).copied();
        let applied = self.applied();
        let mut failed = Vec::new();
        for (id, epoch) in &closed.tasks {
            if let Some(Slot::Running(task)) = self.tasks.get_mut(id) {
                if let Err(error) = task.apply(epoch, now_ms, &acked, applied) {
                    tracing::error!(task_id = %id, %error, "an epoch whose changelog is written could not be written to the local store; it will be replayed from the changelog");
                    failed.push((*id, epoch.schedules.clone()));
                }
            }
        }
        for (id, schedules) in failed {
            self.forget_partitions(id);
            let old = self.tasks.insert(id, Slot::Waiting { state: None, schedules });
            if let Some(Slot::Running(task)) = old {
                self.retire(id, task.counters());
            }
            self.start_up_after_ms = now_ms + REOPEN_AFTER_MS;
        }
        Ok(())
    }

    /// Notes up to where repartition topics may be purged: only commits known to have succeeded count (rule 1.14).
    pub(super) fn note_purgeable(&mut self) {
        let Some(closed) = &self.closed else { return };
        for offset in closed.tasks.iter().flat_map(|(_, task)| &task.offsets) {
            if self.plan.reads_repartition(&offset.topic_partition.topic) {
                self.purgeable.insert(offset.topic_partition.clone(), offset.offset);
            }
        }
    }

    pub(super) fn is_purge_due(&self, now_ms: i64) -> bool {
        !self.purgeable.is_empty() && now_ms - self.last_purge_ms >= self.settings.purge_interval_ms
    }

    /// Pauses partitions whose queues could not be drained, resumes the ones that were.
    pub(super) fn plan_backpressure(&mut self) {
        let full: Vec<_> = self.running().flat_map(Task::full_partitions).collect();
        let (mut pause, mut resume) = (Vec::new(), Vec::new());
        for (id, owned) in &mut self.partitions {
            let is_full = full.contains(id);
            if is_full != owned.paused {
                owned.paused = is_full;
                if is_full { pause.push(*id) } else { resume.push(*id) }
            }
        }
        if !pause.is_empty() {
            self.steps.push_back(Step::Pause(pause));
        }
        if !resume.is_empty() {
            self.steps.push_back(Step::Resume(resume));
        }
    }
}
