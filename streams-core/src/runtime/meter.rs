//! What a core measures besides its totals: its last commits, what tasks counted before they were made anew, and stream
//! times that lag behind the wall clock. The shell reads it; nothing here decides anything.

use std::collections::VecDeque;
use std::rc::Rc;

use super::core::StreamThreadCore;
use crate::TaskId;
use crate::metrics::meters::TaskMeters;
#[cfg(any(feature = "kafka", test))]
use crate::metrics::publish::TaskSight;
use crate::processor::TaskCounters;
use crate::topology::ChangelogPlan;

/// Commits that are kept for the next look; the oldest give way.
const KEPT_COMMITS: usize = 256;

/// One committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitSample {
    /// From closing the epoch until it was applied, milliseconds.
    pub took_ms: i64,
    /// From the begin of the transaction until it was committed, milliseconds.
    pub open_ms: i64,
    /// Records in the transaction: outputs, changelogs and dead letters.
    pub records: u64,
}

/// Why a transaction was aborted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbortReason {
    /// A call of the transaction failed in a way that leaves only an abort.
    #[default]
    Refused,
    /// The group no longer knows this member or its epoch.
    StaleMember,
    /// The group took every task.
    TasksLost,
    /// A record could not be delivered.
    Undelivered,
    /// A position lay outside its log.
    OutOfRange,
}

impl AbortReason {
    /// All of them.
    pub const ALL: [AbortReason; 5] = [
        AbortReason::Refused,
        AbortReason::StaleMember,
        AbortReason::TasksLost,
        AbortReason::Undelivered,
        AbortReason::OutOfRange,
    ];

    /// Its label in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AbortReason::Refused => "refused",
            AbortReason::StaleMember => "stale-member",
            AbortReason::TasksLost => "tasks-lost",
            AbortReason::Undelivered => "undelivered",
            AbortReason::OutOfRange => "out-of-range",
        }
    }
}

impl super::CoreTotals {
    /// Transactions aborted for this reason.
    #[must_use]
    pub fn aborts_by(&self, reason: AbortReason) -> u64 {
        self.aborts_by.get(reason as usize).copied().unwrap_or(0)
    }

    pub(super) fn count_abort(&mut self, reason: AbortReason) {
        self.aborts += 1;
        if let Some(count) = self.aborts_by.get_mut(reason as usize) {
            *count += 1;
        }
    }
}

/// How far the restore of a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreProgress {
    /// Changelog records applied so far.
    pub restored: u64,
    /// Offsets that are still to be read; transaction markers count.
    pub remaining: u64,
    /// It stands still for 15 minutes: another producer's transaction was never ended (design rule 5.2).
    pub hanging: bool,
}

/// The last commits, until somebody takes them.
#[derive(Debug, Default)]
pub(super) struct CommitLog(VecDeque<CommitSample>);

impl CommitLog {
    pub(super) fn note(&mut self, sample: CommitSample) {
        if self.0.len() == KEPT_COMMITS {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }
}

impl StreamThreadCore {
    /// The commits since the last call, oldest first; the last 256 if it was long ago.
    pub fn take_commits(&mut self) -> impl Iterator<Item = CommitSample> + '_ {
        self.commits.0.drain(..)
    }

    /// A task ends, or is made anew from its factories: what it counted is kept.
    pub(super) fn retire(&mut self, task: TaskId, counters: TaskCounters) {
        self.retired.entry(task).or_default().add(counters);
    }

    /// The meters of a task, which outlive it.
    pub(super) fn meters_of(&mut self, task: TaskId) -> Rc<TaskMeters> {
        let recording = self.settings.recording;
        Rc::clone(self.meters.entry(task).or_insert_with(|| TaskMeters::new(recording)))
    }

    /// The meters of every task that was ever here; a running one also shows its state and cached bytes.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn meters(&self) -> impl Iterator<Item = (TaskId, &TaskMeters, Option<TaskSight<'_>>)> {
        self.meters.iter().map(|(id, meters)| {
            let running = match self.tasks.get(id) {
                Some(super::slot::Slot::Running(task)) => Some(TaskSight {
                    state: task.state(),
                    cache_bytes: task.cached_bytes(),
                }),
                _ => None,
            };
            (*id, &**meters, running)
        })
    }

    /// What a task counted in its ended lives on this thread.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn counters_of_gone(&self, task: TaskId) -> TaskCounters {
        self.counters_of(task, TaskCounters::default())
    }

    /// What a task counted on this thread, its earlier lives included.
    pub(super) fn counters_of(&self, task: TaskId, now: TaskCounters) -> TaskCounters {
        let mut counters = self.retired.get(&task).copied().unwrap_or_default();
        counters.add(now);
        counters
    }

    /// What all tasks counted on this thread.
    pub(super) fn all_counters(&self) -> TaskCounters {
        let mut all = TaskCounters::default();
        for counters in self
            .retired
            .values()
            .copied()
            .chain(self.running().map(crate::task::Task::counters))
        {
            all.add(counters);
        }
        all
    }

    /// Warns, once for each task, when its stream time lags behind the wall clock by more than one of its changelogs is
    /// kept: the broker deletes by record time, so such a changelog is empty when a restore needs it. That is so for old
    /// input, which gets no newer while it waits.
    pub(super) fn look_at_lag(&mut self, now_ms: i64) {
        let late = self
            .running()
            .filter(|task| task.stream_time_ms() >= 0 && !self.lagging.contains(&task.id()));
        let late = late.map(|task| (task.id(), now_ms.saturating_sub(task.stream_time_ms())));
        let found: Vec<_> = late
            .filter_map(|(id, lag_ms)| {
                self.outlived(id, lag_ms)
                    .map(|changelog| (id, lag_ms, changelog.clone()))
            })
            .collect();
        for (id, lag_ms, changelog) in found {
            self.lagging.insert(id);
            self.totals.lagging_tasks += 1;
            let retention_ms = retention_ms(&changelog).unwrap_or(-1);
            tracing::warn!(
                task_id = %id, store = &*changelog.store, changelog = &*changelog.topic.name, lag_ms, retention_ms,
                "the records are older than their changelog keeps records: the broker may delete the changelog, and a lost store could not be restored; for input of the past give the store the topic config retention.ms=-1"
            );
        }
    }

    /// The first changelog of a task that keeps records for less than `lag_ms`.
    fn outlived(&self, task: TaskId, lag_ms: i64) -> Option<&ChangelogPlan> {
        let changelogs = &self.plan.subtopology(task.subtopology)?.changelogs;
        changelogs.iter().find(|changelog| {
            !changelog.source_topic && retention_ms(changelog).is_some_and(|kept_ms| lag_ms > kept_ms)
        })
    }
}

/// How long the broker keeps a changelog's records by their time; `None` = for ever.
fn retention_ms(changelog: &ChangelogPlan) -> Option<i64> {
    let configs = &changelog.topic.configs;
    let deletes = configs
        .get("cleanup.policy")
        .is_some_and(|policy| policy.contains("delete"));
    let kept: i64 = configs.get("retention.ms")?.parse().ok()?;
    (deletes && kept >= 0).then_some(kept)
}
