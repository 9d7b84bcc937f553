#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ::metrics::{HistogramFn, Key, KeyName, Metadata, Recorder, SharedString};

use super::*;
use crate::runtime::{CoreTotals, TaskStatus};

/// Everything that was published, by name and labels.
#[derive(Default)]
struct Seen {
    numbers: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    samples: Mutex<BTreeMap<String, Arc<Samples>>>,
}

#[derive(Default)]
struct Samples(Mutex<Vec<f64>>);

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl Seen {
    fn number(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(self.numbers.lock().unwrap().entry(name).or_default())
    }

    fn counter(&self, name: &str) -> u64 {
        self.numbers
            .lock()
            .unwrap()
            .get(name)
            .unwrap_or_else(|| panic!("no {name}"))
            .load(Ordering::Relaxed)
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.counter(name))
    }

    fn samples(&self, name: &str) -> Vec<f64> {
        self.samples
            .lock()
            .unwrap()
            .get(name)
            .unwrap()
            .0
            .lock()
            .unwrap()
            .clone()
    }
}

impl Recorder for Seen {
    fn describe_counter(&self, _: KeyName, _: Option<::metrics::Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<::metrics::Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<::metrics::Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.number(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.number(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::clone(
            self.samples.lock().unwrap().entry(key.name().to_owned()).or_default(),
        ))
    }
}

const TASK: TaskId = TaskId {
    subtopology: 0,
    partition: 1,
};

fn status(processed_records: u64, dropped_records: u64, phase: TaskPhase) -> CoreStatus {
    let counters = TaskCounters {
        processed_records,
        dropped_records,
        ..TaskCounters::default()
    };
    let task = TaskStatus {
        id: TASK,
        phase,
        counters,
        buffered: 7,
        stream_time_ms: 5,
    };
    CoreStatus {
        hanging: Vec::new(),
        most_records: None,
        tasks: vec![task],
        totals: CoreTotals {
            commits: processed_records / 10,
            ..CoreTotals::default()
        },
        counters,
        last_commit_took_ms: 3,
        cache_bytes: 1_000,
        settled: true,
    }
}

fn published(rounds: impl FnOnce(&mut ThreadMetrics)) -> Seen {
    let seen = Seen::default();
    ::metrics::with_local_recorder(&seen, || rounds(&mut ThreadMetrics::new("t-1")));
    seen
}

#[test]
fn counters_are_told_the_difference_since_the_last_round() {
    let seen = published(|metrics| {
        for processed in [30, 30, 50] {
            metrics.publish(
                &status(processed, 2, TaskPhase::Running),
                [].into_iter(),
                &BTreeMap::new(),
                100,
            );
        }
    });
    assert_eq!(seen.counter("kafka_streams_thread_process_total{thread_id=t-1}"), 50);
    assert_eq!(seen.counter("kafka_streams_thread_commit_total{thread_id=t-1}"), 5);
    assert_eq!(
        seen.counter("kafka_streams_task_process_total{thread_id=t-1,task_id=0_1}"),
        50
    );
    assert_eq!(
        seen.counter("kafka_streams_task_dropped_records_total{thread_id=t-1,task_id=0_1}"),
        2
    );
    assert!((seen.gauge("kafka_streams_record_cache_size_bytes{thread_id=t-1}") - 1_000.0).abs() < 1e-9);
}

#[test]
fn each_commit_is_one_sample_of_latency_and_records() {
    let seen = published(|metrics| {
        let commits = [
            CommitSample {
                took_ms: 4,
                records: 100,
            },
            CommitSample { took_ms: 9, records: 1 },
        ];
        metrics.publish(
            &status(0, 0, TaskPhase::Running),
            commits.into_iter(),
            &BTreeMap::new(),
            100,
        );
    });
    assert_eq!(seen.samples("kafka_streams_thread_commit_latency"), [4.0, 9.0]);
    assert_eq!(seen.samples("kafka_streams_thread_transaction_records"), [100.0, 1.0]);
}

#[test]
fn ratios_are_shares_of_the_round() {
    let seen = published(|metrics| {
        metrics.polled(50, 10);
        metrics.processed(25, 10);
        metrics.effects(10);
        metrics.publish(&status(0, 0, TaskPhase::Running), [].into_iter(), &BTreeMap::new(), 100);
    });
    assert!((seen.gauge("kafka_streams_thread_poll_ratio{thread_id=t-1}") - 0.5).abs() < 1e-9);
    assert!((seen.gauge("kafka_streams_thread_process_ratio{thread_id=t-1}") - 0.25).abs() < 1e-9);
    assert_eq!(seen.samples("kafka_streams_thread_poll_records"), [10.0]);
}

#[test]
fn restored_records_of_two_restores_add_up_and_the_rest_is_a_gauge() {
    let seen = published(|metrics| {
        for (restored, remaining) in [(40, 60), (100, 0), (5, 10)] {
            let progress = BTreeMap::from([(
                TASK,
                RestoreProgress {
                    restored,
                    remaining,
                    hanging: false,
                },
            )]);
            metrics.publish(&status(0, 0, TaskPhase::Restoring), [].into_iter(), &progress, 100);
        }
    });
    let labels = "{thread_id=t-1,task_id=0_1}";
    assert_eq!(seen.counter(&format!("kafka_streams_task_restore_total{labels}")), 105);
    assert!((seen.gauge(&format!("kafka_streams_task_restore_remaining_records_total{labels}")) - 10.0).abs() < 1e-9);
    assert!((seen.gauge("kafka_streams_state_updater_active_restoring_tasks{thread_id=t-1}") - 1.0).abs() < 1e-9);
}

#[test]
fn a_task_that_left_shows_nothing_buffered() {
    let seen = published(|metrics| {
        metrics.publish(&status(1, 0, TaskPhase::Running), [].into_iter(), &BTreeMap::new(), 100);
        let left = CoreStatus {
            tasks: Vec::new(),
            ..status(1, 0, TaskPhase::Running)
        };
        metrics.publish(&left, [].into_iter(), &BTreeMap::new(), 100);
    });
    assert!(
        seen.gauge("kafka_streams_task_active_buffer_count{thread_id=t-1,task_id=0_1}")
            .abs()
            < 1e-9
    );
}

#[test]
fn the_instance_shows_its_memory_by_part() {
    let seen = Seen::default();
    ::metrics::with_local_recorder(&seen, || {
        let mut metrics = ClientMetrics::new("c", "app");
        metrics.publish(2, 3, 1, 0);
        metrics.memory(&[("memtables", 5)], &[("storage", 50)]);
    });
    let labels = "client_id=c,application_id=app";
    assert_eq!(
        seen.counter(&format!("kafka_streams_failed_stream_threads{{{labels}}}")),
        1
    );
    assert!((seen.gauge(&format!("kafka_streams_memory_bytes{{{labels},part=memtables}}")) - 5.0).abs() < 1e-9);
    assert!((seen.gauge(&format!("kafka_streams_memory_limit_bytes{{{labels},part=storage}}")) - 50.0).abs() < 1e-9);
}
