//! The metrics by name: what there is, in which unit, with which labels. A pure table; the shell publishes it through the
//! `metrics` facade, and the application chooses the recorder (before `KafkaStreams::start`, or everything goes nowhere).
//! The library installs none.
//!
//! **Names** follow from Kafka Streams' JMX names: `kafka_streams_`, the group without `stream-` and `-metrics`, the
//! metric's name, hyphens as underscores. `commit-total` of `stream-thread-metrics` is `kafka_streams_thread_commit_total`.
//! Counters end in `_total`. A pair `x-avg`, `x-max` is one histogram `x`; an `x-rate` is left to whoever reads the
//! counter `x_total`. Ratios are gauges from 0 to 1.

mod describe;
mod docs;
pub mod meters;
#[cfg(any(feature = "kafka", test))]
#[cfg_attr(
    not(feature = "kafka"),
    allow(dead_code, reason = "tests call a part of what the shell calls")
)]
pub(crate) mod publish;
mod samples;
mod table;

#[cfg(test)]
mod tests;

pub use describe::describe;
pub use docs::render_documentation;
pub use samples::Samples;
pub use table::*;

/// How much is measured (`metrics.recording.level`); each level has what is below it too. Java:
/// `Sensor.RecordingLevel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordingLevel {
    /// What costs next to nothing.
    #[default]
    Info,
    /// Also what reads a clock with every record and store access.
    Debug,
    /// As `Debug`: nothing here is measured at this level alone.
    Trace,
}

impl RecordingLevel {
    /// Java's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RecordingLevel::Info => "INFO",
            RecordingLevel::Debug => "DEBUG",
            RecordingLevel::Trace => "TRACE",
        }
    }
}

/// Java's group of a metric, which also decides its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// `stream-metrics`: the instance.
    Client,
    /// `stream-thread-metrics`.
    Thread,
    /// `stream-state-updater-metrics`: restores of a thread.
    StateUpdater,
    /// `stream-task-metrics`.
    Task,
    /// `stream-processor-node-metrics`.
    Node,
    /// `stream-topic-metrics`.
    Topic,
    /// `stream-state-metrics`: a store, RocksDB's own numbers among them.
    State,
    /// `stream-record-cache-metrics`: the cache of a store.
    RecordCache,
}

impl Group {
    /// All groups, in the order of the documentation.
    pub const ALL: [Group; 8] = [
        Group::Client,
        Group::Thread,
        Group::StateUpdater,
        Group::Task,
        Group::Node,
        Group::Topic,
        Group::State,
        Group::RecordCache,
    ];

    /// Java's name.
    #[must_use]
    pub fn java(self) -> &'static str {
        match self {
            Group::Client => "stream-metrics",
            Group::Thread => "stream-thread-metrics",
            Group::StateUpdater => "stream-state-updater-metrics",
            Group::Task => "stream-task-metrics",
            Group::Node => "stream-processor-node-metrics",
            Group::Topic => "stream-topic-metrics",
            Group::State => "stream-state-metrics",
            Group::RecordCache => "stream-record-cache-metrics",
        }
    }

    /// The labels that every metric of the group has. The store's label of `State` is named after the kind of store, as in
    /// Java: `rocksdb_state_id`, `rocksdb_window_state_id`, `in_memory_state_id`, `in_memory_window_state_id`.
    #[must_use]
    pub fn labels(self) -> &'static [&'static str] {
        match self {
            Group::Client => &["client_id", "application_id"],
            Group::Thread | Group::StateUpdater => &["thread_id"],
            Group::Task => &["thread_id", "task_id"],
            Group::Node => &["thread_id", "task_id", "processor_node_id"],
            Group::Topic => &["thread_id", "task_id", "processor_node_id", "topic"],
            Group::State => &["thread_id", "task_id", "<scope>_state_id"],
            Group::RecordCache => &["thread_id", "task_id", "record_cache_id"],
        }
    }
}

/// How a metric behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at the start of the process.
    Counter,
    /// A value of now.
    Gauge,
    /// A distribution.
    Histogram,
}

/// What a metric counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Records.
    Records,
    /// Milliseconds.
    Milliseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A share from 0 to 1.
    Ratio,
    /// A number that stands for a state.
    State,
}

/// Whose metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Kafka Streams has it under this name.
    Java,
    /// Of this library alone.
    Ours,
}

/// A metric. The name here is Java's without `-avg` and `-max`, hyphens and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its group.
    pub group: Group,
    /// Java's name without `-avg`, `-max`.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it counts in.
    pub unit: Unit,
    /// Whose it is.
    pub origin: Origin,
    /// From which level on it is measured here.
    pub level: RecordingLevel,
    /// A label beside those of the group; empty = none.
    pub label: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl Metric {
    /// The name under which it is published.
    ///
    /// # Example
    /// ```
    /// assert_eq!(streams_core::metrics::COMMIT_TOTAL.published_name(), "kafka_streams_thread_commit_total");
    /// ```
    #[must_use]
    pub fn published_name(&self) -> String {
        let group = self
            .group
            .java()
            .trim_start_matches("stream-")
            .trim_end_matches("metrics");
        format!("kafka_streams_{group}{}", self.name).replace('-', "_")
    }
}
