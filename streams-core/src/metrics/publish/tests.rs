#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ::metrics::{HistogramFn, Key, KeyName, Metadata, Recorder, SharedString};

use super::client::ClientMetrics;
use super::*;
use crate::TaskId;
use crate::metrics::meters::{Direction, Recording, StoreOp, TaskMeters};
use crate::metrics::{METRICS, table};
use crate::processor::TaskCounters;
use crate::runtime::{AbortReason, CommitSample, CoreStatus, CoreTotals, RestoreProgress, TaskPhase, TaskStatus};

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
        overlay_bytes: 0,
        outbox_bytes: 0,
        queue_bytes: 0,
        settled: true,
    }
}

const SECOND_NS: u64 = 1_000_000_000;

fn published(rounds: impl FnOnce(&mut ThreadMetrics)) -> Seen {
    published_at(RecordingLevel::Info, rounds)
}

fn published_at(level: RecordingLevel, rounds: impl FnOnce(&mut ThreadMetrics)) -> Seen {
    let seen = Seen::default();
    ::metrics::with_local_recorder(&seen, || rounds(&mut ThreadMetrics::new(level, "t-1", 1_000, 0)));
    seen
}

fn publish(metrics: &mut ThreadMetrics, status: &CoreStatus) {
    let gone = |_| status.counters;
    metrics.publish(status, [].into_iter(), &BTreeMap::new(), gone, SECOND_NS);
}

#[test]
fn counters_are_told_the_difference_since_the_last_round() {
    let seen = published(|metrics| {
        for processed in [30, 30, 50] {
            publish(metrics, &status(processed, 2, TaskPhase::Running));
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
}

#[test]
fn each_commit_is_one_sample_of_latency_and_records() {
    let seen = published(|metrics| {
        let commits = [
            CommitSample {
                took_ms: 4,
                open_ms: 90,
                records: 100,
            },
            CommitSample {
                took_ms: 9,
                open_ms: 95,
                records: 1,
            },
        ];
        let status = status(0, 0, TaskPhase::Running);
        metrics.publish(&status, commits.into_iter(), &BTreeMap::new(), |_| status.counters, 1);
    });
    assert_eq!(seen.samples("kafka_streams_thread_transaction_latency"), [90.0, 95.0]);
    assert_eq!(seen.samples("kafka_streams_thread_commit_latency"), [4.0, 9.0]);
    assert_eq!(seen.samples("kafka_streams_thread_transaction_records"), [100.0, 1.0]);
}

#[test]
fn ratios_are_shares_of_the_round() {
    let seen = published(|metrics| {
        metrics.polled(SECOND_NS / 2, 10);
        metrics.chunk(SECOND_NS / 4, 10);
        metrics.processed(SECOND_NS / 4, 10);
        metrics.effects(SECOND_NS / 10);
        publish(metrics, &status(0, 0, TaskPhase::Running));
    });
    assert!((seen.gauge("kafka_streams_thread_poll_ratio{thread_id=t-1}") - 0.5).abs() < 1e-9);
    assert!((seen.gauge("kafka_streams_thread_process_ratio{thread_id=t-1}") - 0.25).abs() < 1e-9);
    assert_eq!(seen.samples("kafka_streams_thread_poll_records"), [10.0]);
    assert_eq!(
        seen.samples("kafka_streams_thread_process_latency"),
        [25.0],
        "milliseconds a record"
    );
    assert_eq!(
        seen.counter("kafka_streams_thread_blocked_time_ns_total{thread_id=t-1}"),
        SECOND_NS * 6 / 10
    );
}

#[test]
fn restored_records_of_two_restores_add_up_and_the_rest_is_a_gauge() {
    let seen = published(|metrics| {
        // The second restore begins when the first is among the task's counts.
        for (ended, restored, remaining) in [(0, 40, 60), (0, 100, 0), (100, 0, 0), (100, 5, 10)] {
            let progress = BTreeMap::from([(
                TASK,
                RestoreProgress {
                    restored,
                    remaining,
                    hanging: false,
                },
            )]);
            let mut status = status(0, 0, TaskPhase::Restoring);
            status.tasks[0].counters.restored_records = ended;
            metrics.publish(&status, [].into_iter(), &progress, |_| status.counters, 1);
        }
    });
    let labels = "{thread_id=t-1,task_id=0_1}";
    assert_eq!(seen.counter(&format!("kafka_streams_task_restore_total{labels}")), 105);
    assert!((seen.gauge(&format!("kafka_streams_task_restore_remaining_records_total{labels}")) - 10.0).abs() < 1e-9);
    assert!((seen.gauge("kafka_streams_state_updater_active_restoring_tasks{thread_id=t-1}") - 1.0).abs() < 1e-9);
}

#[test]
fn a_task_that_left_shows_its_last_counts_and_nothing_buffered_and_is_told_no_more() {
    let left = |counters| CoreStatus {
        tasks: Vec::new(),
        counters,
        ..status(9, 0, TaskPhase::Running)
    };
    let counted = |processed_records| TaskCounters {
        processed_records,
        ..TaskCounters::default()
    };
    let total = "kafka_streams_task_process_total{thread_id=t-1,task_id=0_1}";
    let seen = Seen::default();
    ::metrics::with_local_recorder(&seen, || {
        let mut metrics = ThreadMetrics::new(RecordingLevel::Info, "t-1", 0, 0);
        publish(&mut metrics, &status(5, 0, TaskPhase::Running));
        // Processed after the last look, before it was given away.
        publish(&mut metrics, &left(counted(9)));
        assert_eq!(seen.counter(total), 9);
        publish(&mut metrics, &left(counted(99)));
        assert_eq!(seen.counter(total), 9, "nobody tells a series of a task that is gone");
        // As if the recorder had dropped what it was not told for long; then the task comes back.
        seen.numbers.lock().unwrap().remove(total);
        publish(&mut metrics, &status(12, 0, TaskPhase::Running));
        assert_eq!(seen.counter(total), 3, "only what is new since");
        publish(&mut metrics, &left(counted(12)));
    });
    assert!(
        seen.gauge("kafka_streams_task_active_buffer_count{thread_id=t-1,task_id=0_1}")
            .abs()
            < 1e-9
    );
}

#[test]
fn aborts_are_counted_by_their_reasons() {
    let seen = published(|metrics| {
        let mut status = status(0, 0, TaskPhase::Running);
        status.totals.producers = 3;
        status.totals.producers_fenced = 1;
        publish(metrics, &status);
    });
    let replaced =
        |reason: &str| format!("kafka_streams_thread_producer_replaced_total{{thread_id=t-1,reason={reason}}}");
    assert_eq!(
        (seen.counter(&replaced("fenced")), seen.counter(&replaced("failed"))),
        (1, 2)
    );
    for reason in AbortReason::ALL {
        let name = format!(
            "kafka_streams_thread_transaction_abort_total{{thread_id=t-1,reason={}}}",
            reason.name()
        );
        assert_eq!(
            seen.counter(&name),
            0,
            "there from the start, so that a rate sees the first one"
        );
    }
}

#[test]
fn the_phases_of_a_start_follow_each_other_and_only_the_first_start_counts() {
    let seen = published(|metrics| {
        for (phase, at_ms) in [
            (Phase::Restore, 1),
            (Phase::Join, 300),
            (Phase::FirstRecord, 400),
            (Phase::Restore, 1_000),
            (Phase::FirstRecord, 1_500),
            (Phase::Join, 9_000),
            (Phase::FirstRecord, 9_000),
        ] {
            metrics.start_up(phase, at_ms * 1_000_000);
        }
        metrics.step("init-transactions", 40_000_000);
        metrics.step("init-transactions", 90_000_000);
        publish(metrics, &status(0, 0, TaskPhase::Running));
    });
    let told = |phase: &str| {
        seen.gauge(&format!(
            "kafka_streams_thread_startup_latency{{thread_id=t-1,phase={phase}}}"
        ))
    };
    let phases = ["join", "restore", "first-record", "init"].map(told);
    assert!(
        phases
            .iter()
            .zip([300.0, 700.0, 500.0, 40.0])
            .all(|(told, wanted)| (told - wanted).abs() < 1e-6),
        "{phases:?}"
    );
    assert_eq!(
        seen.samples("kafka_streams_thread_transaction_step_latency"),
        [40.0, 90.0]
    );
}

fn meters(level: RecordingLevel) -> std::rc::Rc<TaskMeters> {
    let meters = TaskMeters::new(Recording {
        level,
        clock_ns: Some(|| 5),
    });
    meters.busy_ns.set(300);
    meters.node("SOURCE").records.set(4);
    meters.node("SOURCE").e2e_ms.note(70);
    meters.topic("SOURCE", "usage", Direction::Consumed).count(4, 25);
    meters.topic("SINK", "invoices", Direction::Produced).count(1, 0);
    let store = meters.store("daily", "rocksdb-window");
    store.done(StoreOp::Put, store.start());
    store.lookups.set(10);
    store.hits.set(4);
    meters.punctuations_ns.note(2_000_000);
    meters
}

#[test]
fn meters_show_under_javas_labels() {
    let seen = published(|metrics| {
        let status = status(4, 0, TaskPhase::Running);
        let meters = meters(RecordingLevel::Info);
        let state = &streams_state::TaskState::in_memory("0_1", Vec::new()).unwrap();
        for _ in 0..2 {
            publish(metrics, &status);
            let sight = Some(TaskSight { state, cache_bytes: 0 });
            metrics.publish_meters([(TASK, &*meters, sight)].into_iter(), SECOND_NS, true);
        }
    });
    let task = "thread_id=t-1,task_id=0_1";
    for (name, value) in [
        ("processor_node_process_total{TASK,processor_node_id=SOURCE}", 4),
        (
            "topic_records_consumed_total{TASK,processor_node_id=SOURCE,topic=usage}",
            4,
        ),
        (
            "topic_bytes_consumed_total{TASK,processor_node_id=SOURCE,topic=usage}",
            4 * 50,
        ),
        (
            "topic_records_produced_total{TASK,processor_node_id=SINK,topic=invoices}",
            1,
        ),
    ] {
        assert_eq!(
            seen.counter(&format!("kafka_streams_{}", name.replace("TASK", task))),
            value,
            "{name}"
        );
    }
    assert_eq!(seen.samples("kafka_streams_processor_node_record_e2e_latency"), [70.0]);
    assert_eq!(seen.samples("kafka_streams_thread_punctuate_latency"), [2.0]);
    let hits = seen.gauge(&format!(
        "kafka_streams_record_cache_hit_ratio{{{task},record_cache_id=daily}}"
    ));
    assert!((hits - 0.4).abs() < 1e-9, "{hits}");
    let names: Vec<String> = seen.numbers.lock().unwrap().keys().cloned().collect();
    assert!(!names.iter().any(|name| name.contains("put_total")), "{names:?}");
}

#[test]
fn stores_are_timed_from_debug_on_under_their_scope() {
    let seen = published_at(RecordingLevel::Debug, |metrics| {
        publish(metrics, &status(4, 0, TaskPhase::Running));
        metrics.publish_meters(
            [(TASK, &*meters(RecordingLevel::Debug), None)].into_iter(),
            SECOND_NS,
            true,
        );
    });
    let labels = "{thread_id=t-1,task_id=0_1,rocksdb_window_state_id=daily}";
    assert_eq!(seen.counter(&format!("kafka_streams_state_put_total{labels}")), 1);
    assert_eq!(seen.samples("kafka_streams_state_put_latency"), [0.0]);
}

#[test]
fn an_in_memory_store_shows_its_rows_and_what_is_not_committed() {
    let specs = vec![streams_state::StoreSpec::key_value("rows").in_memory()];
    let mut state = streams_state::TaskState::in_memory("0_1", specs).unwrap();
    let id = state.store_id("rows").unwrap();
    state.put(id, b"key", Some(b"value")).unwrap();
    let meters = TaskMeters::default();
    meters.store("rows", "in-memory");
    let seen = published(|metrics| {
        publish(metrics, &status(0, 0, TaskPhase::Running));
        let sight = TaskSight {
            state: &state,
            cache_bytes: 77,
        };
        metrics.publish_meters([(TASK, &meters, Some(sight))].into_iter(), SECOND_NS, true);
    });
    let store = "{thread_id=t-1,task_id=0_1,in_memory_state_id=rows}";
    assert!((seen.gauge(&format!("kafka_streams_state_num_keys{store}")) - 1.0).abs() < 1e-9);
    assert!(seen.gauge(&format!("kafka_streams_state_uncommitted_bytes{store}")) >= 8.0);
    let cached = "kafka_streams_task_cache_size_bytes_total{thread_id=t-1,task_id=0_1}";
    assert!((seen.gauge(cached) - 77.0).abs() < 1e-9);
}

#[test]
fn every_property_of_rocksdb_is_in_the_table() {
    for name in streams_state::PROPERTY_NAMES {
        let metric = super::stores::property_metric(name).unwrap_or_else(|| panic!("{name}"));
        assert!(METRICS.contains(metric) && metric.kind == crate::metrics::Kind::Gauge);
    }
    assert_eq!(
        table::ESTIMATE_NUM_KEYS.published_name(),
        "kafka_streams_state_estimate_num_keys"
    );
}

#[test]
fn the_instance_shows_its_memory_by_part() {
    let seen = Seen::default();
    ::metrics::with_local_recorder(&seen, || {
        let mut metrics = ClientMetrics::new(RecordingLevel::Info, "c", "app");
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
