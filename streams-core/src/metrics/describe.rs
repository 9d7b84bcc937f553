//! What a recorder is told about the metrics besides their values.

use super::{Kind, METRICS, Metric, Unit};

/// Tells the installed recorder (of the `metrics` facade) the unit and meaning of every metric. `KafkaStreams::start` does
/// so; it is here for programs that record under these names without one.
///
/// # Example
/// ```
/// streams_core::metrics::describe();
/// ```
pub fn describe() {
    for metric in METRICS {
        let unit = match metric.unit {
            Unit::Milliseconds => Some(::metrics::Unit::Milliseconds),
            Unit::Nanoseconds => Some(::metrics::Unit::Nanoseconds),
            Unit::Bytes => Some(::metrics::Unit::Bytes),
            Unit::Count | Unit::Records | Unit::State | Unit::Ratio => None,
        };
        let (name, help) = (metric.published_name().into(), metric.help.into());
        ::metrics::with_recorder(|recorder| match metric.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
            Kind::Histogram => recorder.describe_histogram(name, unit, help),
        });
    }
}

impl Metric {
    /// Bucket bounds for a histogram of this metric, ascending, in its unit: for recorders that want them. They spread
    /// from what a fast machine does to what is certainly wrong.
    ///
    /// # Example
    /// ```
    /// assert_eq!(streams_core::metrics::COMMIT_LATENCY.buckets().first(), Some(&1.0));
    /// ```
    #[must_use]
    pub fn buckets(&self) -> &'static [f64] {
        match self.unit {
            Unit::Milliseconds => &[
                1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 3e4, 6e4, 3e5, 3.6e6,
                8.64e7,
            ],
            Unit::Nanoseconds => &[
                100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 2.5e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 1e7, 1e8, 1e9,
            ],
            Unit::Ratio => &[0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0],
            Unit::Bytes => &[256.0, 4_096.0, 65_536.0, 1_048_576.0, 16_777_216.0, 268_435_456.0],
            Unit::Count | Unit::Records | Unit::State => &[1.0, 10.0, 100.0, 500.0, 1e3, 5e3, 1e4, 5e4, 1e5, 1e6],
        }
    }
}
