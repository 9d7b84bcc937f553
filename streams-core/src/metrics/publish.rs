//! Publishes what a core counts through the `metrics` facade: differences since the last round, never record by record.
//! Without a recorder all this is a few no-ops.

use std::collections::BTreeMap;

use ::metrics::{Counter, Gauge, Histogram, Label};

use super::{Metric, table};
use crate::TaskId;
use crate::processor::TaskCounters;
use crate::runtime::{CommitSample, CoreStatus, RestoreProgress, TaskPhase};

/// Counters of a thread and where their totals stand.
const THREAD_TOTALS: [(Metric, fn(&CoreStatus) -> u64); 12] = [
    (table::COMMIT_TOTAL, |status| status.totals.commits),
    (table::TRANSACTION_ABORT_TOTAL, |status| status.totals.aborts),
    (table::PRODUCER_REPLACED_TOTAL, |status| status.totals.producers),
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

/// Counters of a task and where their totals stand.
const TASK_TOTALS: [(Metric, fn(&TaskCounters) -> u64); 8] = [
    (table::TASK_PROCESS_TOTAL, |counters| counters.processed_records),
    (table::TASK_PUNCTUATE_TOTAL, |counters| counters.punctuations),
    (table::ENFORCED_PROCESSING_TOTAL, |counters| {
        counters.enforced_processing
    }),
    (table::DROPPED_RECORDS_TOTAL, |counters| counters.dropped_records),
    (table::UNPARTITIONED_RECORDS_TOTAL, |counters| {
        counters.unpartitioned_records
    }),
    (table::RECORDS_PRODUCED_TOTAL, |counters| counters.produced_records),
    (table::CHANGELOG_RECORDS_TOTAL, |counters| counters.changelog_records),
    (table::DEAD_LETTERS_TOTAL, |counters| counters.dead_letters),
];

/// What one thread, task or instance is called.
#[derive(Clone)]
struct Labels(Vec<Label>);

impl Labels {
    fn counter(&self, metric: &Metric) -> Counter {
        ::metrics::counter!(metric.published_name(), self.0.clone())
    }

    fn gauge(&self, metric: &Metric) -> Gauge {
        ::metrics::gauge!(metric.published_name(), self.0.clone())
    }

    fn histogram(&self, metric: &Metric) -> Histogram {
        ::metrics::histogram!(metric.published_name(), self.0.clone())
    }

    fn and(&self, name: &'static str, value: String) -> Labels {
        let mut labels = self.0.clone();
        labels.push(Label::new(name, value));
        Labels(labels)
    }
}

/// A counter and the total that it was told already.
struct Total {
    counter: Counter,
    told: u64,
}

impl Total {
    fn new(counter: Counter) -> Self {
        Total { counter, told: 0 }
    }

    /// Counts up to a total, which never falls.
    fn reach(&mut self, total: u64) {
        if total > self.told {
            self.counter.increment(total - self.told);
            self.told = total;
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a gauge is a double; beyond 2^53 it is only rounded"
)]
fn float(value: u64) -> f64 {
    value as f64
}

fn float_of(value: usize) -> f64 {
    float(u64::try_from(value).unwrap_or(u64::MAX))
}

fn millis(value_ms: i64) -> f64 {
    float(u64::try_from(value_ms).unwrap_or(0))
}

/// How a thread spent its time since it was last looked at, milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoopTimes {
    pub(crate) polling_ms: i64,
    pub(crate) processing_ms: i64,
    pub(crate) effects_ms: i64,
}

impl LoopTimes {
    fn shares(self, elapsed_ms: i64) -> [f64; 3] {
        let share = |part_ms: i64| {
            if elapsed_ms > 0 {
                (millis(part_ms) / millis(elapsed_ms)).min(1.0)
            } else {
                0.0
            }
        };
        [
            share(self.polling_ms),
            share(self.processing_ms),
            share(self.effects_ms),
        ]
    }
}

/// The metrics of one stream thread.
pub(crate) struct ThreadMetrics {
    labels: Labels,
    tasks: BTreeMap<TaskId, TaskMetrics>,
    totals: Vec<(Total, fn(&CoreStatus) -> u64)>,
    polls: Counter,
    poll_latency: Histogram,
    poll_records: Histogram,
    process_records: Histogram,
    commit_latency: Histogram,
    transaction_records: Histogram,
    ratios: [Gauge; 3],
    restoring: Gauge,
    cache_bytes: Gauge,
    hanging: Gauge,
    state: Gauge,
    times: LoopTimes,
}

impl ThreadMetrics {
    pub(crate) fn new(thread_id: &str) -> Self {
        let labels = Labels(vec![Label::new("thread_id", thread_id.to_owned())]);
        ThreadMetrics {
            tasks: BTreeMap::new(),
            totals: THREAD_TOTALS
                .iter()
                .map(|(metric, of)| (Total::new(labels.counter(metric)), *of))
                .collect(),
            polls: labels.counter(&table::POLL_TOTAL),
            poll_latency: labels.histogram(&table::POLL_LATENCY),
            poll_records: labels.histogram(&table::POLL_RECORDS),
            process_records: labels.histogram(&table::PROCESS_RECORDS),
            commit_latency: labels.histogram(&table::COMMIT_LATENCY),
            transaction_records: labels.histogram(&table::TRANSACTION_RECORDS),
            ratios: [table::POLL_RATIO, table::PROCESS_RATIO, table::COMMIT_RATIO].map(|metric| labels.gauge(&metric)),
            restoring: labels.gauge(&table::ACTIVE_RESTORING_TASKS),
            cache_bytes: labels.gauge(&table::RECORD_CACHE_BYTES),
            hanging: labels.gauge(&table::HANGING_TRANSACTIONS),
            state: labels.gauge(&table::THREAD_STATE),
            times: LoopTimes::default(),
            labels,
        }
    }

    /// A poll that took `took_ms` gave `records`.
    pub(crate) fn polled(&mut self, took_ms: i64, records: usize) {
        self.times.polling_ms += took_ms;
        self.polls.increment(1);
        self.poll_latency.record(millis(took_ms));
        if records > 0 {
            self.poll_records.record(float_of(records));
        }
    }

    /// A round of processing.
    pub(crate) fn processed(&mut self, took_ms: i64, records: usize) {
        self.times.processing_ms += took_ms;
        if records > 0 {
            self.process_records.record(float_of(records));
        }
    }

    /// A round of effects: commits, start-up calls, sends.
    pub(crate) fn effects(&mut self, took_ms: i64) {
        self.times.effects_ms += took_ms;
    }

    /// What happened in the last `elapsed_ms`.
    pub(crate) fn publish(
        &mut self,
        status: &CoreStatus,
        commits: impl Iterator<Item = CommitSample>,
        restores: &BTreeMap<TaskId, RestoreProgress>,
        elapsed_ms: i64,
    ) {
        for (total, of) in &mut self.totals {
            total.reach(of(status));
        }
        for commit in commits {
            self.commit_latency.record(millis(commit.took_ms));
            self.transaction_records.record(float(commit.records));
        }
        for (gauge, share) in self
            .ratios
            .iter()
            .zip(std::mem::take(&mut self.times).shares(elapsed_ms))
        {
            gauge.set(share);
        }
        self.restoring.set(float_of(
            status
                .tasks
                .iter()
                .filter(|task| task.phase == TaskPhase::Restoring)
                .count(),
        ));
        self.cache_bytes.set(float_of(status.cache_bytes));
        let held = restores.values().filter(|progress| progress.hanging).count();
        self.hanging.set(float_of(status.hanging.len() + held));
        self.publish_tasks(status, restores);
    }

    fn publish_tasks(&mut self, status: &CoreStatus, restores: &BTreeMap<TaskId, RestoreProgress>) {
        for (id, gone) in &self.tasks {
            if !status.tasks.iter().any(|task| task.id == *id) {
                gone.buffered.set(0.0);
                gone.remaining.set(0.0);
            }
        }
        for task in &status.tasks {
            let metrics = self
                .tasks
                .entry(task.id)
                .or_insert_with(|| TaskMetrics::new(&self.labels, task.id));
            for (total, of) in &mut metrics.totals {
                total.reach(of(&task.counters));
            }
            metrics.buffered.set(float_of(task.buffered));
            metrics.restoring(restores.get(&task.id).copied().unwrap_or_default());
        }
    }

    /// The thread's state, as its number.
    pub(crate) fn state(&self, number: u8) {
        self.state.set(f64::from(number));
    }
}

struct TaskMetrics {
    totals: Vec<(Total, fn(&TaskCounters) -> u64)>,
    restored: Counter,
    restore: RestoreProgress,
    remaining: Gauge,
    buffered: Gauge,
}

impl TaskMetrics {
    fn new(thread: &Labels, id: TaskId) -> Self {
        let labels = thread.and("task_id", id.to_string());
        TaskMetrics {
            totals: TASK_TOTALS
                .iter()
                .map(|(metric, of)| (Total::new(labels.counter(metric)), *of))
                .collect(),
            restored: labels.counter(&table::RESTORE_TOTAL),
            restore: RestoreProgress::default(),
            remaining: labels.gauge(&table::RESTORE_REMAINING_RECORDS_TOTAL),
            buffered: labels.gauge(&table::ACTIVE_BUFFER_COUNT),
        }
    }

    /// Restores of one task follow each other: a smaller number is a new one's.
    fn restoring(&mut self, now: RestoreProgress) {
        let before = if now.restored < self.restore.restored {
            0
        } else {
            self.restore.restored
        };
        self.restored.increment(now.restored - before);
        self.remaining.set(float(now.remaining));
        self.restore = now;
    }
}

/// The metrics of one instance.
pub(crate) struct ClientMetrics {
    labels: Labels,
    state: Gauge,
    alive: Gauge,
    failed: Total,
    set_aside: Total,
}

impl ClientMetrics {
    pub(crate) fn new(client_id: &str, application_id: &str) -> Self {
        let labels = Labels(vec![
            Label::new("client_id", client_id.to_owned()),
            Label::new("application_id", application_id.to_owned()),
        ]);
        ClientMetrics {
            state: labels.gauge(&table::CLIENT_STATE),
            alive: labels.gauge(&table::ALIVE_STREAM_THREADS),
            failed: Total::new(labels.counter(&table::FAILED_STREAM_THREADS)),
            set_aside: Total::new(labels.counter(&table::STATE_SET_ASIDE_TOTAL)),
            labels,
        }
    }

    pub(crate) fn publish(&mut self, state: u8, alive_threads: usize, failed_threads: u64, set_aside: u64) {
        self.state.set(f64::from(state));
        self.alive.set(float_of(alive_threads));
        self.failed.reach(failed_threads);
        self.set_aside.reach(set_aside);
    }

    /// Bytes by part, in use and allowed.
    pub(crate) fn memory(&self, in_use: &[(&'static str, u64)], limits: &[(&'static str, u64)]) {
        for (metric, parts) in [(&table::MEMORY_BYTES, in_use), (&table::MEMORY_LIMIT_BYTES, limits)] {
            for (part, bytes) in parts {
                self.labels
                    .and("part", (*part).to_owned())
                    .gauge(metric)
                    .set(float(*bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests;
