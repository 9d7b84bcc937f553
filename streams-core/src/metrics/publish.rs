//! Publishes what a core counts through the `metrics` facade: differences since the last round, never record by record.
//! Without a recorder all this is a few no-ops.
//!
//! Counters and gauges of what lives are told their value every round, also when it did not change: so a recorder can tell
//! them from those of tasks that are gone, which are told nothing (the facade can't take a series back).

mod client;
mod stores;
mod task;
#[cfg(test)]
mod tests;
mod thread;

use ::metrics::{Counter, Gauge, Histogram, Label};

use super::{Metric, RecordingLevel, Samples};

#[cfg(feature = "kafka")]
pub(crate) use client::ClientMetrics;
#[cfg(feature = "kafka")]
pub(crate) use stores::store_restored;
pub(crate) use task::TaskSight;
pub(crate) use thread::{Phase, ThreadMetrics};

/// What one thread, task or instance is called, and what is measured of it.
#[derive(Clone)]
struct Labels {
    labels: Vec<Label>,
    level: RecordingLevel,
}

impl Labels {
    fn new(level: RecordingLevel, labels: &[(&'static str, &str)]) -> Self {
        let label = |(name, value): &(&'static str, &str)| Label::new(*name, (*value).to_owned());
        Labels {
            labels: labels.iter().map(label).collect(),
            level,
        }
    }

    fn counter(&self, metric: &Metric) -> Counter {
        if metric.level > self.level {
            return Counter::noop();
        }
        ::metrics::counter!(metric.published_name(), self.labels.clone())
    }

    fn gauge(&self, metric: &Metric) -> Gauge {
        if metric.level > self.level {
            return Gauge::noop();
        }
        ::metrics::gauge!(metric.published_name(), self.labels.clone())
    }

    fn histogram(&self, metric: &Metric) -> Histogram {
        if metric.level > self.level {
            return Histogram::noop();
        }
        ::metrics::histogram!(metric.published_name(), self.labels.clone())
    }

    fn and(&self, name: impl Into<std::borrow::Cow<'static, str>>, value: &str) -> Labels {
        let mut labels = self.labels.clone();
        labels.push(Label::new(name.into(), value.to_owned()));
        Labels {
            labels,
            level: self.level,
        }
    }
}

/// A counter and the total that it was told already.
struct Total {
    metric: Metric,
    counter: Counter,
    told: u64,
}

impl Total {
    fn new(labels: &Labels, metric: &Metric) -> Self {
        Total {
            metric: *metric,
            counter: labels.counter(metric),
            told: 0,
        }
    }

    /// Counts up to a total, which never falls. Tells also that nothing was added.
    fn reach(&mut self, total: u64) {
        self.counter.increment(total.saturating_sub(self.told));
        self.told = self.told.max(total);
    }

    /// Asks the recorder again, which may have dropped the series meanwhile.
    fn again(&mut self, labels: &Labels) {
        self.counter = labels.counter(&self.metric);
    }
}

/// Hands a sample over; `scale` turns its unit into the histogram's.
fn hand_over(samples: &Samples, histogram: &Histogram, scale: f64) {
    samples.take(|value| histogram.record(float(value) * scale));
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
