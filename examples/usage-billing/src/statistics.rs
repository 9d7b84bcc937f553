//! Numbers of a run, as one line that the demonstration reads back.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use streams_dsl::KafkaStreams;

/// Numbers of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Departures taken from the input.
    pub taken: u64,
    /// Seconds from the first departure until now, in the end until everything was committed.
    pub seconds: f64,
    /// Seconds from the start to the first departure.
    pub first_after: f64,
    /// Committed transactions.
    pub commits: u64,
    /// Changelog records applied before processing began.
    pub restored: u64,
    /// How long commits took, milliseconds, one sample every 100 ms at most, sorted.
    pub commit_ms: Vec<i64>,
    first: Option<f64>,
}

impl Statistics {
    /// Looks at the application.
    pub(crate) fn look(&mut self, streams: &KafkaStreams, taken: &AtomicU64, started: Instant) {
        let taken = taken.load(Ordering::Relaxed);
        if taken > self.taken {
            let now = started.elapsed().as_secs_f64();
            self.first_after = *self.first.get_or_insert(now);
            self.taken = taken;
        }
        self.seconds = self.first.map_or(0.0, |first| started.elapsed().as_secs_f64() - first);
        let status: Vec<_> = streams
            .threads()
            .into_iter()
            .filter_map(|thread| thread.status)
            .collect();
        let commits = status.iter().map(|status| status.totals.commits).sum();
        self.restored = self
            .restored
            .max(status.iter().map(|status| status.totals.restored_records).sum());
        if commits > self.commits {
            self.commits = commits;
            let samples = status.iter().map(|status| status.last_commit_took_ms);
            self.commit_ms.extend(samples);
            self.commit_ms.sort_unstable();
        }
    }

    /// The commit time that `percent` of the samples do not exceed, milliseconds; 0 without samples.
    pub fn commit_percentile(&self, percent: usize) -> i64 {
        let last = self.commit_ms.len().saturating_sub(1);
        self.commit_ms.get(last * percent / 100).copied().unwrap_or(0)
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DONE departures={} seconds={:.2} first_after={:.2} commits={} commit_p50_ms={} commit_p90_ms={} restored={}",
            self.taken,
            self.seconds,
            self.first_after,
            self.commits,
            self.commit_percentile(50),
            self.commit_percentile(90),
            self.restored
        )
    }
}

/// A number of a line that [`Statistics`] printed.
pub(crate) fn field(line: &str, name: &str) -> Option<f64> {
    let word = line
        .split(' ')
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    word.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_numbers_read_back() {
        let statistics = Statistics {
            taken: 7,
            seconds: 1.5,
            commits: 3,
            commit_ms: vec![2, 4, 90],
            ..Statistics::default()
        };
        let line = statistics.to_string();
        assert_eq!(
            (field(&line, "departures"), field(&line, "seconds")),
            (Some(7.0), Some(1.5))
        );
        assert_eq!(
            (field(&line, "commit_p50_ms"), field(&line, "commit_p90_ms")),
            (Some(4.0), Some(4.0))
        );
        assert_eq!(field(&line, "nothing"), None);
    }
}
