//! The metrics of an instance.

use ::metrics::Gauge;

use super::{Labels, Total, float, float_of};
use crate::metrics::{RecordingLevel, table};

/// The metrics of one instance.
pub(crate) struct ClientMetrics {
    labels: Labels,
    state: Gauge,
    alive: Gauge,
    failed: Total,
    set_aside: Total,
}

impl ClientMetrics {
    pub(crate) fn new(level: RecordingLevel, client_id: &str, application_id: &str) -> Self {
        let labels = Labels::new(level, &[("client_id", client_id), ("application_id", application_id)]);
        ClientMetrics {
            state: labels.gauge(&table::CLIENT_STATE),
            alive: labels.gauge(&table::ALIVE_STREAM_THREADS),
            failed: Total::new(&labels, &table::FAILED_STREAM_THREADS),
            set_aside: Total::new(&labels, &table::STATE_SET_ASIDE_TOTAL),
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
                self.labels.and("part", part).gauge(metric).set(float(*bytes));
            }
        }
    }
}
