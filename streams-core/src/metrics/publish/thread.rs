//! The metrics of a stream thread.

use std::collections::BTreeMap;

use ::metrics::{Counter, Gauge, Histogram};

use super::task::TaskMetrics;
use super::{Labels, TaskSight, Total, float, float_of, millis};
use crate::TaskId;
use crate::metrics::meters::TaskMeters;
use crate::metrics::{Metric, RecordingLevel, table};
use crate::processor::TaskCounters;
use crate::runtime::{AbortReason, CommitSample, CoreStatus, RestoreProgress, TaskPhase};

/// Counters of a thread and where their totals stand.
const TOTALS: [(Metric, fn(&CoreStatus) -> u64); 10] = [
    (table::COMMIT_TOTAL, |status| status.totals.commits),
    (table::TASK_CREATED_TOTAL, |status| status.totals.tasks_created),
    (table::TASK_CLOSED_TOTAL, |status| status.totals.tasks_closed),
    (table::REFUSED_RECORDS_TOTAL, |status| status.totals.dropped_at_send),
    (table::OUTDATED_RECORDS_TOTAL, |status| status.totals.outdated_records),
    (table::TRANSACTION_TIMEOUT_TOTAL, |status| {
        status.totals.transaction_timeouts
    }),
    (table::STREAM_TIME_LAG_TOTAL, |status| status.totals.lagging_tasks),
    (table::RESTORE_RECORDS_TOTAL, |status| status.totals.restored_records),
    (table::PROCESS_TOTAL, |status| status.counters.processed_records),
    (table::PUNCTUATE_TOTAL, |status| status.counters.punctuations),
];

/// Steps of a transaction, as they are labelled: names of effects.
const TRANSACTION_STEPS: [&str; 8] = [
    "init-transactions",
    "begin",
    "send",
    "flush",
    "send-offsets",
    "commit",
    "apply",
    "abort",
];

/// Nanoseconds as milliseconds.
pub(super) const MS: f64 = 1e-6;

/// How a thread spent its time since it was last looked at, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct LoopTimes {
    polling_ns: u64,
    processing_ns: u64,
    effects_ns: u64,
}

/// A part of a thread's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Until the group gave tasks.
    Join,
    /// From then until all of them ran.
    Restore,
    /// From then until a record was processed.
    FirstRecord,
}

/// When the phases of a thread's start ended, nanoseconds of its clock.
struct StartUp {
    labels: Labels,
    began_ns: u64,
    next: Option<Phase>,
    initialized: bool,
    told: Vec<(Gauge, f64)>,
}

impl StartUp {
    fn tell(&mut self, phase: &str, took_ns: u64) {
        let gauge = self.labels.and("phase", phase).gauge(&table::STARTUP_LATENCY);
        self.told.push((gauge, float(took_ns) * MS));
    }

    /// The phase ends now, if it is the one that runs.
    fn ended(&mut self, phase: Phase, now_ns: u64) {
        if self.next != Some(phase) {
            return;
        }
        let (name, next) = match phase {
            Phase::Join => ("join", Some(Phase::Restore)),
            Phase::Restore => ("restore", Some(Phase::FirstRecord)),
            Phase::FirstRecord => ("first-record", None),
        };
        self.tell(name, now_ns.saturating_sub(self.began_ns));
        (self.began_ns, self.next) = (now_ns, next);
    }
}

/// The metrics of one stream thread.
pub(crate) struct ThreadMetrics {
    labels: Labels,
    tasks: BTreeMap<TaskId, TaskMetrics>,
    totals: Vec<(Total, fn(&CoreStatus) -> u64)>,
    aborts: Vec<(Total, AbortReason)>,
    producers: [Total; 2],
    polls: Counter,
    poll_latency: Histogram,
    poll_records: Histogram,
    process_latency: Histogram,
    process_records: Histogram,
    punctuate_latency: Histogram,
    commit_latency: Histogram,
    transaction_latency: Histogram,
    transaction_records: Histogram,
    steps: Vec<(&'static str, Histogram)>,
    ratios: [Gauge; 4],
    blocked: Counter,
    restoring: Gauge,
    hanging: Gauge,
    state: (Gauge, u8),
    started: (Gauge, f64),
    times: LoopTimes,
    start_up: StartUp,
}

impl ThreadMetrics {
    /// `now_ms` is the wall clock (ms since the Unix epoch), `now_ns` the clock of the latencies.
    pub(crate) fn new(level: RecordingLevel, thread_id: &str, now_ms: i64, now_ns: u64) -> Self {
        let labels = Labels::new(level, &[("thread_id", thread_id)]);
        let started = labels.gauge(&table::THREAD_START_TIME);
        let labelled = |name: &'static str, value: &str, metric| Total::new(&labels.and(name, value), metric);
        let abort = |reason: AbortReason| {
            let total = labelled("reason", reason.name(), &table::TRANSACTION_ABORT_TOTAL);
            (total, reason)
        };
        let replaced = |reason| labelled("reason", reason, &table::PRODUCER_REPLACED_TOTAL);
        let step = |step| {
            let histogram = labels.and("step", step).histogram(&table::TRANSACTION_STEP_LATENCY);
            (step, histogram)
        };
        let ratios = [
            table::POLL_RATIO,
            table::PROCESS_RATIO,
            table::COMMIT_RATIO,
            table::PUNCTUATE_RATIO,
        ];
        ThreadMetrics {
            tasks: BTreeMap::new(),
            totals: TOTALS
                .iter()
                .map(|(metric, of)| (Total::new(&labels, metric), *of))
                .collect(),
            aborts: AbortReason::ALL.map(abort).into(),
            producers: ["fenced", "failed"].map(replaced),
            polls: labels.counter(&table::POLL_TOTAL),
            poll_latency: labels.histogram(&table::POLL_LATENCY),
            poll_records: labels.histogram(&table::POLL_RECORDS),
            process_latency: labels.histogram(&table::PROCESS_LATENCY),
            process_records: labels.histogram(&table::PROCESS_RECORDS),
            punctuate_latency: labels.histogram(&table::PUNCTUATE_LATENCY),
            commit_latency: labels.histogram(&table::COMMIT_LATENCY),
            transaction_latency: labels.histogram(&table::TRANSACTION_LATENCY),
            transaction_records: labels.histogram(&table::TRANSACTION_RECORDS),
            steps: TRANSACTION_STEPS.map(step).into(),
            ratios: ratios.map(|metric| labels.gauge(&metric)),
            blocked: labels.counter(&table::BLOCKED_TIME_TOTAL),
            restoring: labels.gauge(&table::ACTIVE_RESTORING_TASKS),
            hanging: labels.gauge(&table::HANGING_TRANSACTIONS),
            state: (labels.gauge(&table::THREAD_STATE), 0),
            times: LoopTimes::default(),
            start_up: StartUp {
                labels: labels.clone(),
                began_ns: now_ns,
                next: Some(Phase::Join),
                initialized: false,
                told: Vec::new(),
            },
            started: (started, float(u64::try_from(now_ms).unwrap_or(0))),
            labels,
        }
    }

    /// A poll that took `took_ns` gave `records`.
    pub(crate) fn polled(&mut self, took_ns: u64, records: usize) {
        self.times.polling_ns += took_ns;
        self.polls.increment(1);
        self.poll_latency.record(float(took_ns) * MS);
        if records > 0 {
            self.poll_records.record(float_of(records));
        }
    }

    /// Records that were processed between two looks at the clock.
    pub(crate) fn chunk(&mut self, took_ns: u64, records: usize) {
        if records > 0 {
            self.process_latency.record(float(took_ns) * MS / float_of(records));
        }
    }

    /// A round of processing, all its chunks.
    pub(crate) fn processed(&mut self, took_ns: u64, records: usize) {
        self.times.processing_ns += took_ns;
        if records > 0 {
            self.process_records.record(float_of(records));
        }
    }

    /// An effect, by its name; those of a transaction are measured.
    pub(crate) fn step(&mut self, step: &str, took_ns: u64) {
        if let Some((_, histogram)) = self.steps.iter().find(|(name, _)| *name == step) {
            histogram.record(float(took_ns) * MS);
        }
        if step == "init-transactions" && !self.start_up.initialized {
            self.start_up.initialized = true;
            self.start_up.tell("init", took_ns);
        }
    }

    /// A round of effects: commits, start-up calls, sends.
    pub(crate) fn effects(&mut self, took_ns: u64) {
        self.times.effects_ns += took_ns;
    }

    /// A phase of the thread's start ends now, if it has not ended before.
    pub(crate) fn start_up(&mut self, phase: Phase, now_ns: u64) {
        self.start_up.ended(phase, now_ns);
    }

    /// What happened in the last `elapsed_ns`. `gone` tells the counters of a task that is no longer among those of
    /// `status`.
    pub(crate) fn publish(
        &mut self,
        status: &CoreStatus,
        commits: impl Iterator<Item = CommitSample>,
        restores: &BTreeMap<TaskId, RestoreProgress>,
        gone: impl Fn(TaskId) -> TaskCounters,
        elapsed_ns: u64,
    ) {
        for (total, of) in &mut self.totals {
            total.reach(of(status));
        }
        for (total, reason) in &mut self.aborts {
            total.reach(status.totals.aborts_by(*reason));
        }
        let fenced = status.totals.producers_fenced;
        for (total, count) in self
            .producers
            .iter_mut()
            .zip([fenced, status.totals.producers - fenced])
        {
            total.reach(count);
        }
        for commit in commits {
            self.commit_latency.record(millis(commit.took_ms));
            self.transaction_latency.record(millis(commit.open_ms));
            self.transaction_records.record(float(commit.records));
        }
        self.publish_times(elapsed_ns);
        let restoring = |task: &&crate::runtime::TaskStatus| task.phase == TaskPhase::Restoring;
        self.restoring
            .set(float_of(status.tasks.iter().filter(restoring).count()));
        let held = restores.values().filter(|progress| progress.hanging).count();
        self.hanging.set(float_of(status.hanging.len() + held));
        for (id, metrics) in &mut self.tasks {
            if !status.tasks.iter().any(|task| task.id == *id) {
                metrics.leave(&gone(*id));
            }
        }
        for task in &status.tasks {
            let labels = &self.labels;
            let metrics = self
                .tasks
                .entry(task.id)
                .or_insert_with(|| TaskMetrics::new(labels, task.id));
            metrics.publish(task, restores.get(&task.id).copied().unwrap_or_default());
        }
    }

    fn publish_times(&mut self, elapsed_ns: u64) {
        let times = std::mem::take(&mut self.times);
        let share = |part_ns: u64| match elapsed_ns {
            0 => 0.0,
            _ => (float(part_ns) / float(elapsed_ns)).min(1.0),
        };
        let parts = [times.polling_ns, times.processing_ns, times.effects_ns];
        for (gauge, part) in self.ratios.iter().zip(parts) {
            gauge.set(share(part));
        }
        self.blocked.increment(times.polling_ns + times.effects_ns);
        self.polls.increment(0);
        self.state.0.set(f64::from(self.state.1));
        for (gauge, value) in self.start_up.told.iter().chain([&self.started]) {
            gauge.set(*value);
        }
    }

    /// What the tasks' meters show. Call it after [`publish`](Self::publish); `deep`: also what costs a question to the
    /// storage.
    pub(crate) fn publish_meters<'a>(
        &mut self,
        meters: impl Iterator<Item = (TaskId, &'a TaskMeters, Option<TaskSight<'a>>)>,
        elapsed_ns: u64,
        deep: bool,
    ) {
        let meters: Vec<_> = meters.collect();
        let busy_before: u64 = self.tasks.values().map(|task| task.busy_told()).sum();
        let busy: u64 = meters.iter().map(|(_, meters, _)| meters.busy_ns.get()).sum();
        let busy_ns = busy.saturating_sub(busy_before);
        let mut punctuating_ns = 0;
        for (id, meters, sight) in &meters {
            let Some(task) = self.tasks.get_mut(id) else { continue };
            punctuating_ns += task.punctuating(meters, &self.punctuate_latency);
            task.publish_meters(meters, sight.as_ref(), busy_ns, deep);
        }
        if let ([.., gauge], true) = (&self.ratios, elapsed_ns > 0) {
            gauge.set((float(punctuating_ns) / float(elapsed_ns)).min(1.0));
        }
    }

    /// The thread's state, as its number.
    pub(crate) fn state(&mut self, number: u8) {
        self.state.1 = number;
        self.state.0.set(f64::from(number));
    }
}
