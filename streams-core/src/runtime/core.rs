//! The core of a stream thread: what it owns, what it is told, what comes next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use super::effect::{Effect, GroupIdentity, Outcome};
use super::epoch_size::EpochSize;
use super::hanging::HangingWatch;
use super::meter::AbortReason;
use super::pipelining::Pipelining;
use super::plain::Plain;
use super::settings::{CoreParts, RuntimeSettings, StateOpener};
use super::slot::{ClosedEpoch, Failing, Owned, Slot};
use super::status::CoreTotals;
use super::step::Step;
use super::uncaught::guarded;
use crate::error::{Error, ProcessResult};
use crate::fetch::PartitionId;
use crate::metrics::meters::TaskMeters;
use crate::outbox::Outbox;
use crate::processor::{ErrorHandlers, TaskCounters};
use crate::stores::{CacheBudget, GlobalStores};
use crate::task::{Task, TaskEpoch};
use crate::topics::Topics;
use crate::topology::{Topology, TopologyPlan};
use crate::{TaskId, TopicPartition};

/// The core of one stream thread.
pub struct StreamThreadCore {
    pub(super) settings: RuntimeSettings,
    pub(super) topology: Arc<Topology>,
    pub(super) plan: Arc<TopologyPlan>,
    pub(super) topics: Arc<Topics>,
    pub(super) handlers: Arc<ErrorHandlers>,
    pub(super) globals: Arc<GlobalStores>,
    pub(super) opener: Box<dyn StateOpener>,
    pub(super) budget: Rc<CacheBudget>,
    pub(super) tasks: BTreeMap<TaskId, Slot>,
    pub(super) partitions: BTreeMap<PartitionId, Owned>,
    /// Partitions that are given up and still fetched. Kept apart from the steps, which a recovery may clear.
    pub(super) to_unassign: Vec<PartitionId>,
    /// Those of them that the shell is about to give up.
    pub(super) unassigning: Vec<PartitionId>,
    pub(super) next_partition: u32,
    pub(super) next_slot: u32,
    pub(super) first_slots: BTreeMap<TaskId, u32>,
    pub(super) incarnation: u64,
    pub(super) group: GroupIdentity,
    pub(super) wanted: Option<BTreeSet<TaskId>>,
    pub(super) steps: VecDeque<Step>,
    pub(super) in_flight: Option<Step>,
    pub(super) producer_ready: bool,
    /// The producer has other settings now: a new one takes its place when nothing is uncommitted.
    pub(super) renew_producer: bool,
    pub(super) epoch: u32,
    pub(super) transaction_began_ms: Option<i64>,
    /// The open transaction ran out of its time, and that is counted.
    pub(super) transaction_overran: bool,
    pub(super) closed: Option<ClosedEpoch>,
    /// Tasks' parts of an epoch that was given up with its commit on its way: it may be committed all the same.
    pub(super) undecided: BTreeMap<TaskId, TaskEpoch>,
    /// What the guarantees without transactions need to know.
    pub(super) plain: Plain,
    pub(super) commit_now: bool,
    pub(super) last_commit_ms: i64,
    pub(super) last_commit_took_ms: i64,
    pub(super) last_purge_ms: i64,
    pub(super) purgeable: BTreeMap<TopicPartition, i64>,
    pub(super) start_up_after_ms: i64,
    /// What of the start-ups fails, and since when, until it succeeds or gets on.
    pub(super) failing_since_ms: BTreeMap<Failing, i64>,
    pub(super) retries: u32,
    /// Producers that were given up, one after the other, without a commit in between.
    pub(super) given_up: u32,
    pub(super) fenced_at_ms: Option<i64>,
    pub(super) reset_next: BTreeMap<TopicPartition, i64>,
    pub(super) fetched_records: usize,
    pub(super) totals: CoreTotals,
    pub(super) commits: super::meter::CommitLog,
    pub(super) epoch_size: EpochSize,
    pub(super) pipelining: Pipelining,
    pub(super) hanging: HangingWatch,
    /// What tasks counted before they ended or were made anew; as many as tasks that were ever here.
    pub(super) retired: BTreeMap<TaskId, TaskCounters>,
    /// What tasks measure; as many as tasks that were ever here.
    pub(super) meters: BTreeMap<TaskId, Rc<TaskMeters>>,
    /// Why the next abort is.
    pub(super) abort_reason: AbortReason,
    /// Tasks about whose late stream time people were told.
    pub(super) lagging: BTreeSet<TaskId>,
}

impl StreamThreadCore {
    /// A core without tasks.
    #[must_use]
    pub fn new(parts: CoreParts, now_ms: i64) -> Self {
        let CoreParts {
            settings,
            topology,
            plan,
            topics,
            handlers,
            globals,
            opener,
        } = parts;
        StreamThreadCore {
            budget: CacheBudget::new(settings.cache_bytes),
            settings,
            topology,
            plan,
            topics,
            handlers,
            globals,
            opener,
            tasks: BTreeMap::new(),
            partitions: BTreeMap::new(),
            to_unassign: Vec::new(),
            unassigning: Vec::new(),
            next_partition: 0,
            next_slot: 1,
            first_slots: BTreeMap::new(),
            incarnation: 1,
            group: GroupIdentity::default(),
            wanted: None,
            steps: VecDeque::new(),
            in_flight: None,
            producer_ready: false,
            renew_producer: false,
            epoch: 1,
            transaction_began_ms: None,
            transaction_overran: false,
            closed: None,
            undecided: BTreeMap::new(),
            plain: Plain::default(),
            commit_now: false,
            last_commit_ms: now_ms,
            last_commit_took_ms: 0,
            last_purge_ms: now_ms,
            purgeable: BTreeMap::new(),
            start_up_after_ms: 0,
            failing_since_ms: BTreeMap::new(),
            retries: 0,
            given_up: 0,
            fenced_at_ms: None,
            reset_next: BTreeMap::new(),
            fetched_records: usize::MAX,
            totals: CoreTotals::default(),
            commits: super::meter::CommitLog::default(),
            epoch_size: EpochSize::default(),
            pipelining: Pipelining::default(),
            hanging: HangingWatch::default(),
            retired: BTreeMap::new(),
            meters: BTreeMap::new(),
            abort_reason: AbortReason::default(),
            lagging: BTreeSet::new(),
        }
    }

    /// Gives the thread another part of the instance's memory: other stream threads came or went. Bytes of its caches and
    /// of what it may hold uncommitted; a cache that is larger shrinks when its task runs next. Java: `resizeCache`.
    pub fn set_memory(&mut self, cache_bytes: usize, max_uncommitted_bytes: usize) {
        self.budget.set_max_bytes(cache_bytes);
        self.settings.cache_bytes = cache_bytes;
        self.settings.max_uncommitted_bytes = max_uncommitted_bytes;
    }

    /// Processes up to `budget` records over all tasks, in task order, and runs what is due by the wall clock
    /// (`now_ms`, milliseconds since the Unix epoch). Answers how many records were processed.
    ///
    /// # Errors
    /// When user code failed for good, or state can't be used.
    pub fn process(&mut self, now_ms: i64, budget: usize) -> ProcessResult<usize> {
        self.pipelining.told(now_ms);
        let closing = self.closed.is_some() && !self.is_committing();
        if closing || self.commit_blocks_processing() || self.waits_for_commit() || self.is_rejoining() {
            return Ok(0);
        }
        let budget = budget.min(self.epoch_size.room());
        let mut done = 0;
        for slot in self.tasks.values_mut() {
            if let Slot::Running(task) = slot {
                let started = self.settings.recording.now_ns();
                done += guarded(task, |task| {
                    let done = task.process(now_ms, budget.saturating_sub(done))?;
                    task.punctuate_wall_clock(now_ms)?;
                    Ok(done)
                })?;
                if let Some(took_ns) = self.settings.recording.since_ns(started) {
                    let busy_ns = &task.meters().busy_ns;
                    busy_ns.set(busy_ns.get() + took_ns);
                }
                if task.commit_requested() {
                    self.commit_now = true;
                }
            }
        }
        if done > 0 {
            self.pipelining.processed(now_ms);
        }
        self.note_progress(done);
        if self.epoch_size.processed(done) {
            self.commit_now = true;
        }
        Ok(done)
    }

    /// A task whose revocation is on its way gets no new work; what it has claimed it finishes.
    fn commit_blocks_processing(&self) -> bool {
        self.wanted.is_some() && !self.has_claimed()
    }

    /// Whether a closed epoch, all of it sent, is on its way through the broker. The next one is processed meanwhile, on top
    /// of the frozen overlays; its outputs stay in the outbox.
    fn is_committing(&self) -> bool {
        self.in_flight.as_ref().is_some_and(Step::is_in_background)
    }

    /// Whether nothing can be processed until the commit in flight has ended: tasks are to be given away, or the epoch that
    /// was begun meanwhile has taken all the memory there is for it. A shell that does not carry effects out at once waits
    /// for the outcome then.
    #[must_use]
    pub fn waits_for_commit(&self) -> bool {
        /// How much may wait to be sent behind a commit, in sendings. A copy at full speed is bound by the broker: more
        /// would only be held in memory (measured: three times the memory, half as much CPU again, no faster).
        const SENDINGS: usize = 8;
        let much = || self.outbox_bytes() >= self.settings.send_bytes.saturating_mul(SENDINGS);
        // The thread would hear of the call's end only after a slow record, and the transaction would be open for so long
        // (design rule 1.11).
        let slow = !self.pipelining.may(self.settings.transaction_timeout_ms) || self.epoch_size.limit().is_some();
        let waits = self.wanted.is_some() || self.claims() || (self.is_transactional() && slow);
        self.is_committing() && (waits || self.is_full() || much())
    }

    /// The next thing the shell has to do; `None` = nothing now. The outcome must be told before the next call, and for
    /// all but the calls of a commit (flush, send offsets, commit) at once: while these are on their way, records may be
    /// [accepted](Self::accept) and [processed](Self::process).
    ///
    /// # Errors
    /// When the thread can't go on.
    pub fn next_effect(&mut self, now_ms: i64) -> ProcessResult<Option<Effect>> {
        self.pipelining.told(now_ms);
        if self.in_flight.is_some() {
            return Ok(None);
        }
        loop {
            if self.steps.is_empty() {
                self.plan_steps(now_ms)?;
            }
            let Some(step) = self.steps.pop_front() else {
                return Ok(None);
            };
            if self.still_waits(&step, now_ms) {
                self.steps.push_front(step);
                return Ok(None);
            }
            if let Some(effect) = self.effect_of(&step, now_ms)? {
                if !matches!(effect, Effect::Restore(_)) {
                    self.in_flight = Some(step);
                }
                return Ok(Some(effect));
            }
        }
    }

    /// Tells how the last effect ended.
    ///
    /// # Errors
    /// When the thread can't go on.
    pub fn on_outcome(&mut self, outcome: Outcome, now_ms: i64) -> ProcessResult {
        self.pipelining.told(now_ms);
        let Some(step) = self.in_flight.take() else {
            return Err(Error::bug("an outcome without an effect"));
        };
        let span = match step.is_of_commit() {
            true => self.commit_span(),
            false => tracing::Span::none(),
        };
        let _commit = span.enter();
        match outcome {
            Outcome::Failed(failure) => self.step_failed(step, failure, now_ms),
            outcome => {
                self.retries = 0;
                self.plain_call_succeeded(&step);
                self.step_done(step, outcome, now_ms)
            }
        }
    }

    /// Decides what is due, in order of urgency.
    fn plan_steps(&mut self, now_ms: i64) -> ProcessResult {
        if !self.to_unassign.is_empty() {
            self.steps.push_back(Step::Unassign);
        } else if !self.producer_ready {
            self.renew_producer = false;
            self.steps.push_back(self.producer_step());
        } else if self.may_renew_producer() {
            self.renew_producer = false;
            self.producer_ready = false;
            self.steps.push_back(Step::RecreateProducer);
        } else if self.wanted.is_some() {
            if !self.has_claimed() {
                self.plan_reassignment(now_ms)?;
            }
        } else if self.is_commit_due(now_ms) {
            self.plan_commit(now_ms, self.offsets_due(now_ms))?;
        } else if let Some(step) = self.next_start_up_step(now_ms) {
            self.steps.push_back(step);
        } else if self.is_purge_due(now_ms) {
            self.steps.push_back(Step::Purge);
        } else if self.is_look_due(now_ms) {
            self.steps.push_back(Step::ListEnds);
        } else if self.is_send_due(now_ms) {
            self.plan_send();
        } else if self.is_claim_due(now_ms) {
            self.steps.push_back(Step::Claim);
        } else {
            self.plan_backpressure();
        }
        Ok(())
    }

    /// Every non-empty outbox, with the epoch that delivery reports must carry. The shell sends them and then calls
    /// [`outboxes_sent`](Self::outboxes_sent).
    pub fn outboxes(&self) -> impl Iterator<Item = &Outbox> {
        self.running().map(Task::outbox).filter(|outbox| !outbox.is_empty())
    }

    /// The outboxes were handed to the producer.
    pub fn outboxes_sent(&mut self) {
        for slot in self.tasks.values_mut() {
            if let Slot::Running(task) = slot {
                task.outbox_sent();
            }
        }
    }

    pub(super) fn outbox_bytes(&self) -> usize {
        self.running().map(|task| task.outbox().bytes()).sum()
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter_map(|slot| match slot {
            Slot::Running(task) => Some(&**task),
            _ => None,
        })
    }

    /// When the next wall-clock punctuation is due (ms since the Unix epoch).
    #[must_use]
    pub fn next_wall_clock_ms(&self) -> Option<i64> {
        self.running().filter_map(Task::next_wall_clock_ms).min()
    }

    /// Records that wait in all queues.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.running().map(Task::buffered).sum()
    }

    /// Asks for a commit at the next chance, for example before a shutdown.
    pub fn request_commit(&mut self) {
        self.commit_now = true;
    }

    /// Asks for a new producer in place of this one, whose settings have changed, as soon as nothing that was sent is
    /// uncommitted.
    pub fn renew_producer(&mut self) {
        self.renew_producer = true;
    }

    fn may_renew_producer(&self) -> bool {
        let sent = self.closed.is_some() || self.transaction_began_ms.is_some();
        self.renew_producer && !sent && (self.is_transactional() || !self.has_uncommitted())
    }

    /// Whether anything is processed but not committed.
    #[must_use]
    pub fn has_uncommitted(&self) -> bool {
        self.closed.is_some() || self.transaction_began_ms.is_some() || self.running().any(|task| task.is_touched())
    }

    /// A running task's stores and context, for the test driver.
    pub fn task_parts(
        &mut self,
        task: TaskId,
    ) -> Option<(&crate::stores::TaskStores, &mut crate::processor::TaskContext)> {
        match self.tasks.get_mut(&task) {
            Some(Slot::Running(task)) => Some(task.parts()),
            _ => None,
        }
    }

    /// Whether every wanted task runs and no change of tasks is on its way.
    #[must_use]
    pub fn status_settled(&self) -> bool {
        self.wanted.is_none() && self.tasks.values().all(|slot| matches!(slot, Slot::Running(_)))
    }

    /// Whether no step is planned or in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.steps.is_empty() && self.in_flight.is_none()
    }

    /// The identity that commits carry now.
    #[must_use]
    pub fn group(&self) -> &GroupIdentity {
        &self.group
    }

    /// When something is due next without new records: a commit or a punctuation (ms since the Unix epoch).
    #[must_use]
    pub fn next_deadline_ms(&self, now_ms: i64) -> Option<i64> {
        if let Some(until_ms) = self.waits_until_ms(now_ms) {
            return Some(until_ms);
        }
        // While a commit is on its way the next one is not due; its end wakes the thread.
        let due = self.has_uncommitted() && !self.is_committing();
        let commit_ms = due.then(|| self.next_commit_ms(now_ms));
        [commit_ms, self.next_wall_clock_ms()].into_iter().flatten().min()
    }
}
