//! The metrics of a store.

use ::metrics::{Gauge, Histogram};
use streams_state::{PROPERTY_NAMES, StoreKind, TaskState};

use super::{Labels, Total, float, float_of, hand_over};
use crate::metrics::meters::{StoreMeter, StoreOp};
use crate::metrics::{Group, METRICS, Metric, table};

/// An operation's histogram and counter.
fn op_metrics(op: StoreOp) -> (Metric, Metric) {
    match op {
        StoreOp::Put => (table::PUT_LATENCY, table::PUT_TOTAL),
        StoreOp::Get => (table::GET_LATENCY, table::GET_TOTAL),
        StoreOp::Fetch => (table::FETCH_LATENCY, table::FETCH_TOTAL),
        StoreOp::Range => (table::RANGE_LATENCY, table::RANGE_TOTAL),
        StoreOp::All => (table::ALL_LATENCY, table::ALL_TOTAL),
        StoreOp::PrefixScan => (table::PREFIX_SCAN_LATENCY, table::PREFIX_SCAN_TOTAL),
        StoreOp::Flush => (table::FLUSH_LATENCY, table::FLUSH_TOTAL),
    }
}

/// The metric of a property of RocksDB.
pub(super) fn property_metric(name: &str) -> Option<&'static Metric> {
    METRICS
        .iter()
        .find(|metric| metric.group == Group::State && metric.name == name)
}

/// The store's label as Java names it: `rocksdb-window-state-id`.
fn scoped(task: &Labels, scope: &str, store: &str) -> Labels {
    task.and(format!("{scope}-state-id").replace('-', "_"), store)
}

/// Gauges of one store; they are made when they first have a value.
struct Gauges {
    of: Vec<(&'static str, Gauge)>,
}

pub(super) struct StoreMetrics {
    labels: Labels,
    cache_labels: Labels,
    ops: Vec<(StoreOp, Option<(Histogram, Total)>)>,
    open_iterators: Gauge,
    iterator_duration: Histogram,
    /// Of suppress buffers alone: bytes and keys.
    buffer: Option<(Histogram, Histogram)>,
    uncommitted: Gauge,
    gauges: Gauges,
    hit_ratio: Option<(Gauge, f64)>,
    lookups_told: u64,
    hits_told: u64,
}

impl StoreMetrics {
    pub(super) fn new(task: &Labels, meter: &StoreMeter) -> Self {
        let labels = scoped(task, meter.scope, &meter.store);
        StoreMetrics {
            cache_labels: task.and("record_cache_id", &meter.store),
            ops: StoreOp::ALL.map(|op| (op, None)).into(),
            open_iterators: labels.gauge(&table::NUM_OPEN_ITERATORS),
            iterator_duration: labels.histogram(&table::ITERATOR_DURATION),
            buffer: None,
            uncommitted: labels.gauge(&table::UNCOMMITTED_BYTES),
            gauges: Gauges { of: Vec::new() },
            hit_ratio: None,
            lookups_told: 0,
            hits_told: 0,
            labels,
        }
    }

    pub(super) fn publish(&mut self, meter: &StoreMeter, state: Option<&TaskState>, deep: bool) {
        for (op, metrics) in &mut self.ops {
            let Some(samples) = meter.op_ns(*op) else { continue };
            if samples.count() == 0 {
                continue;
            }
            let labels = &self.labels;
            let (histogram, total) = metrics.get_or_insert_with(|| {
                let (latency, count) = op_metrics(*op);
                (labels.histogram(&latency), Total::new(labels, &count))
            });
            hand_over(samples, histogram, 1.0);
            if state.is_some() || samples.count() > total.told {
                total.reach(samples.count());
            }
        }
        hand_over(&meter.iterators_ns, &self.iterator_duration, 1.0);
        if meter.buffer_count.count() > 0 {
            let labels = &self.labels;
            let (bytes, count) = self.buffer.get_or_insert_with(|| {
                let histogram = |metric| labels.histogram(metric);
                (
                    histogram(&table::SUPPRESSION_BUFFER_SIZE),
                    histogram(&table::SUPPRESSION_BUFFER_COUNT),
                )
            });
            hand_over(&meter.buffer_bytes, bytes, 1.0);
            hand_over(&meter.buffer_count, count, 1.0);
        }
        self.publish_hits(meter, state.is_some());
        let Some(state) = state else { return };
        self.open_iterators.set(float(meter.open_iterators.get()));
        let Some(id) = state.store_id(&meter.store) else { return };
        self.uncommitted.set(float_of(state.store_overlay_bytes(id)));
        if !deep {
            return;
        }
        if state.is_persistent(id) {
            for name in PROPERTY_NAMES {
                if let (Some(value), Some(metric)) = (state.property(id, name), property_metric(name)) {
                    self.gauges.set(&self.labels, metric, value);
                }
            }
        } else if state
            .specs()
            .any(|(of, spec)| of == id && spec.kind == StoreKind::KeyValue)
        {
            let rows = state.approximate_num_entries(id).unwrap_or(0);
            self.gauges.set(&self.labels, &table::NUM_KEYS, rows);
        }
    }

    fn publish_hits(&mut self, meter: &StoreMeter, lives: bool) {
        let (lookups, hits) = (meter.lookups.get(), meter.hits.get());
        let new = lookups.saturating_sub(std::mem::replace(&mut self.lookups_told, lookups));
        let found = hits.saturating_sub(std::mem::replace(&mut self.hits_told, hits));
        if new > 0 {
            let labels = &self.cache_labels;
            let known = self.hit_ratio.take();
            let gauge = known.map_or_else(|| labels.gauge(&table::HIT_RATIO), |(gauge, _)| gauge);
            self.hit_ratio = Some((gauge, float(found) / float(new)));
        }
        if let (Some((gauge, ratio)), true) = (&self.hit_ratio, lives) {
            gauge.set(*ratio);
        }
    }

    pub(super) fn leave(&mut self) {
        let gauges = self.gauges.of.iter().map(|(_, gauge)| gauge);
        let hits = self.hit_ratio.take();
        let hits = hits.iter().map(|(gauge, _)| gauge);
        for gauge in gauges.chain([&self.open_iterators, &self.uncommitted]).chain(hits) {
            gauge.set(0.0);
        }
    }

    pub(super) fn again(&mut self) {
        let labels = &self.labels;
        for (_, total) in self.ops.iter_mut().filter_map(|(_, metrics)| metrics.as_mut()) {
            total.again(labels);
        }
        self.open_iterators = labels.gauge(&table::NUM_OPEN_ITERATORS);
        self.uncommitted = labels.gauge(&table::UNCOMMITTED_BYTES);
        self.gauges.of.clear();
    }
}

impl Gauges {
    fn set(&mut self, labels: &Labels, metric: &Metric, value: u64) {
        let known = self.of.iter().find(|(name, _)| *name == metric.name);
        if let Some((_, gauge)) = known {
            gauge.set(float(value));
            return;
        }
        let gauge = labels.gauge(metric);
        gauge.set(float(value));
        self.of.push((metric.name, gauge));
    }
}

/// A restore of a store from its changelog took `took_ns`. Told by the thread that restores.
#[cfg(feature = "kafka")]
pub(crate) fn store_restored(thread_id: &str, task: crate::TaskId, scope: &str, store: &str, took_ns: u64) {
    let level = crate::metrics::RecordingLevel::Info;
    let task = Labels::new(level, &[("thread_id", thread_id), ("task_id", &task.to_string())]);
    let histogram = scoped(&task, scope, store).histogram(&table::STORE_RESTORE_LATENCY);
    histogram.record(float(took_ns));
}
