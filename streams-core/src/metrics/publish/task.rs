//! The metrics of a task: its own, its nodes', topics', stores'.

use ::metrics::{Gauge, Histogram};
use streams_state::TaskState;

use super::stores::StoreMetrics;
use super::thread::MS;
use super::{Labels, Total, float, float_of, hand_over};
use crate::TaskId;
use crate::metrics::meters::{Direction, NodeMeter, StoreMeter, TaskMeters, TopicMeter};
use crate::metrics::{Metric, table};
use crate::processor::TaskCounters;
use crate::runtime::{RestoreProgress, TaskStatus};

/// Counters of a task and where their totals stand.
const TOTALS: [(Metric, fn(&TaskCounters) -> u64); 8] = [
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

/// A running task, as far as metrics look at it.
pub(crate) struct TaskSight<'a> {
    pub(crate) state: &'a TaskState,
    pub(crate) cache_bytes: usize,
}

pub(super) struct TaskMetrics {
    labels: Labels,
    /// It is no longer this thread's.
    away: bool,
    totals: Vec<(Total, fn(&TaskCounters) -> u64)>,
    restored: Total,
    remaining: Gauge,
    buffered: Gauge,
    cache_bytes: Gauge,
    busy: Gauge,
    process_latency: Histogram,
    punctuate_latency: Histogram,
    lateness: Histogram,
    busy_told_ns: u64,
    punctuating_told_ns: u64,
    nodes: Vec<NodeMetrics>,
    topics: Vec<TopicMetrics>,
    stores: Vec<StoreMetrics>,
}

impl TaskMetrics {
    pub(super) fn new(thread: &Labels, id: TaskId) -> Self {
        let labels = thread.and("task_id", &id.to_string());
        TaskMetrics {
            away: false,
            totals: TOTALS
                .iter()
                .map(|(metric, of)| (Total::new(&labels, metric), *of))
                .collect(),
            restored: Total::new(&labels, &table::RESTORE_TOTAL),
            remaining: labels.gauge(&table::RESTORE_REMAINING_RECORDS_TOTAL),
            buffered: labels.gauge(&table::ACTIVE_BUFFER_COUNT),
            cache_bytes: labels.gauge(&table::CACHE_SIZE_BYTES_TOTAL),
            busy: labels.gauge(&table::ACTIVE_PROCESS_RATIO),
            process_latency: labels.histogram(&table::TASK_PROCESS_LATENCY),
            punctuate_latency: labels.histogram(&table::TASK_PUNCTUATE_LATENCY),
            lateness: labels.histogram(&table::RECORD_LATENESS),
            busy_told_ns: 0,
            punctuating_told_ns: 0,
            nodes: Vec::new(),
            topics: Vec::new(),
            stores: Vec::new(),
            labels,
        }
    }

    pub(super) fn publish(&mut self, task: &TaskStatus, restore: RestoreProgress) {
        if std::mem::take(&mut self.away) {
            self.again();
        }
        self.count(&task.counters, restore.restored);
        self.remaining.set(float(restore.remaining));
        self.buffered.set(float_of(task.buffered));
    }

    fn count(&mut self, counters: &TaskCounters, restoring: u64) {
        for (total, of) in &mut self.totals {
            total.reach(of(counters));
        }
        self.restored.reach(counters.restored_records + restoring);
    }

    /// The task is gone: its last counts, and nothing of now any more. Afterwards the series are told nothing.
    pub(super) fn leave(&mut self, counters: &TaskCounters) {
        if std::mem::replace(&mut self.away, true) {
            return;
        }
        self.count(counters, 0);
        for gauge in [&self.remaining, &self.buffered, &self.cache_bytes, &self.busy] {
            gauge.set(0.0);
        }
        self.stores.iter_mut().for_each(StoreMetrics::leave);
    }

    /// It came back, and the recorder may have dropped its series meanwhile.
    fn again(&mut self) {
        let labels = &self.labels;
        self.totals.iter_mut().for_each(|(total, _)| total.again(labels));
        self.restored.again(labels);
        let fresh = [
            (&mut self.remaining, table::RESTORE_REMAINING_RECORDS_TOTAL),
            (&mut self.buffered, table::ACTIVE_BUFFER_COUNT),
            (&mut self.cache_bytes, table::CACHE_SIZE_BYTES_TOTAL),
            (&mut self.busy, table::ACTIVE_PROCESS_RATIO),
        ];
        for (gauge, metric) in fresh {
            *gauge = labels.gauge(&metric);
        }
        for node in &mut self.nodes {
            let totals = [&mut node.records, &mut node.suppressed, &mut node.finals];
            for total in totals.into_iter().flatten() {
                total.again(&node.labels);
            }
        }
        for topic in &mut self.topics {
            topic.records.again(&topic.labels);
            topic.bytes.again(&topic.labels);
        }
        self.stores.iter_mut().for_each(StoreMetrics::again);
    }

    pub(super) fn busy_told(&self) -> u64 {
        self.busy_told_ns
    }

    /// Hands over how long punctuations took, also to the thread's histogram; answers how long all took since the last
    /// call, ns.
    pub(super) fn punctuating(&mut self, meters: &TaskMeters, of_thread: &Histogram) -> u64 {
        let task = &self.punctuate_latency;
        meters.punctuations_ns.take(|took_ns| {
            task.record(float(took_ns));
            of_thread.record(float(took_ns) * MS);
        });
        let all_ns = meters.punctuating_ns.get();
        all_ns - std::mem::replace(&mut self.punctuating_told_ns, all_ns).min(all_ns)
    }

    /// `busy_ns`: how long the thread was busy with all its tasks since the last call.
    pub(super) fn publish_meters(
        &mut self,
        meters: &TaskMeters,
        sight: Option<&TaskSight<'_>>,
        busy_ns: u64,
        deep: bool,
    ) {
        let own_ns = meters.busy_ns.get();
        let spent_ns = own_ns.saturating_sub(std::mem::replace(&mut self.busy_told_ns, own_ns));
        hand_over(&meters.records_ns, &self.process_latency, 1.0);
        hand_over(&meters.lateness_ms, &self.lateness, 1.0);
        let labels = &self.labels;
        let make = |meter: &NodeMeter| NodeMetrics::new(labels, meter);
        for (meter, metrics) in paired(&meters.nodes(), &mut self.nodes, make) {
            metrics.publish(meter, self.away);
        }
        let make = |meter: &TopicMeter| TopicMetrics::new(labels, meter);
        for (meter, metrics) in paired(&meters.topics(), &mut self.topics, make) {
            if !self.away || meter.records.get() > metrics.records.told {
                metrics.records.reach(meter.records.get());
                metrics.bytes.reach(meter.bytes.get());
            }
        }
        let make = |meter: &StoreMeter| StoreMetrics::new(labels, meter);
        for (meter, metrics) in paired(&meters.stores(), &mut self.stores, make) {
            metrics.publish(meter, sight.map(|sight| sight.state), deep);
        }
        if self.away {
            return;
        }
        if busy_ns > 0 {
            self.busy.set((float(spent_ns) / float(busy_ns)).min(1.0));
        } else {
            self.busy.set(0.0);
        }
        self.cache_bytes
            .set(float_of(sight.map_or(0, |sight| sight.cache_bytes)));
    }
}

/// Each meter with what publishes it. Meters are only ever added at the end, and so is the list.
fn paired<'a, M, T>(
    meters: &'a [std::rc::Rc<M>],
    list: &'a mut Vec<T>,
    make: impl Fn(&M) -> T,
) -> impl Iterator<Item = (&'a M, &'a mut T)> {
    let known = list.len();
    list.extend(meters.iter().skip(known).map(|meter| make(meter)));
    meters.iter().map(|meter| &**meter).zip(list.iter_mut())
}

struct NodeMetrics {
    labels: Labels,
    /// Only sources count records (Java counts calls of source nodes alone).
    records: Option<Total>,
    latency: Histogram,
    suppressed: Option<Total>,
    finals: Option<Total>,
    finals_latency: Option<Histogram>,
}

impl NodeMetrics {
    fn new(task: &Labels, meter: &NodeMeter) -> Self {
        let labels = task.and("processor_node_id", &meter.node);
        NodeMetrics {
            records: None,
            latency: labels.histogram(&table::RECORD_E2E_LATENCY),
            suppressed: None,
            finals: None,
            finals_latency: None,
            labels,
        }
    }

    fn publish(&mut self, meter: &NodeMeter, away: bool) {
        hand_over(&meter.e2e_ms, &self.latency, 1.0);
        let labels = &self.labels;
        let reach = |known: &mut Option<Total>, metric: &Metric, now: u64| {
            let told = known.as_ref().map_or(0, |total| total.told);
            if now > told || (now > 0 && !away) {
                known.get_or_insert_with(|| Total::new(labels, metric)).reach(now);
            }
        };
        reach(&mut self.records, &table::NODE_PROCESS_TOTAL, meter.records.get());
        reach(
            &mut self.suppressed,
            &table::SUPPRESSION_EMIT_TOTAL,
            meter.suppressed.get(),
        );
        reach(&mut self.finals, &table::FINAL_EMIT_TOTAL, meter.finals.get());
        if meter.finals_ns.count() > 0 {
            let latency = || labels.histogram(&table::FINAL_EMIT_LATENCY);
            hand_over(&meter.finals_ns, self.finals_latency.get_or_insert_with(latency), MS);
        }
    }
}

struct TopicMetrics {
    labels: Labels,
    records: Total,
    bytes: Total,
}

impl TopicMetrics {
    fn new(task: &Labels, meter: &TopicMeter) -> Self {
        let labels = task.and("processor_node_id", &meter.node).and("topic", &meter.topic);
        let (records, bytes) = match meter.direction {
            Direction::Consumed => (table::RECORDS_CONSUMED_TOTAL, table::BYTES_CONSUMED_TOTAL),
            Direction::Produced => (table::TOPIC_RECORDS_PRODUCED_TOTAL, table::BYTES_PRODUCED_TOTAL),
        };
        TopicMetrics {
            records: Total::new(&labels, &records),
            bytes: Total::new(&labels, &bytes),
            labels,
        }
    }
}
