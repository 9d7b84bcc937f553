//! When the next heartbeat is due.
//!
//! A coordinator answers a heartbeat in about a millisecond and has no objection to more of them than its interval says.
//! It tells a member about new or revoked tasks only in an answer, so in unsettled times we ask often: first tasks come
//! after 0.3–3 s where the interval alone makes it 5 s (measured against a 4.4 broker).

use crate::java_hash::JavaHash;

/// Between heartbeats while joining, while the group is not ready, and until the first tasks come.
const WAITING_MS: i64 = 100;
/// For so long; a spare member or a missing topic may make it wait for ever.
const WAITING_FOR_MS: i64 = 30_000;
/// Between heartbeats after that.
const WAITING_LONG_MS: i64 = 1_000;
/// Between heartbeats after the epoch changed or a commit was refused.
const SETTLING_MS: i64 = 200;
/// For so long.
const SETTLING_FOR_MS: i64 = 10_000;
/// First pause after a failure; doubles with every further one.
const BACKOFF_MS: i64 = 100;
/// Longest pause after a failure.
const BACKOFF_MAX_MS: i64 = 2_000;
/// Interval before a coordinator has said one (its default).
const DEFAULT_INTERVAL_MS: i64 = 5_000;
/// Failing for so long is worth a report.
const REPORT_AFTER_MS: i64 = 10_000;
/// Between such reports.
const REPORT_EVERY_MS: i64 = 30_000;

#[derive(Debug)]
pub(super) struct Cadence {
    next_at_ms: i64,
    /// What the coordinator wants.
    interval_ms: i64,
    /// What the user wants at most.
    max_ms: i64,
    waiting_since_ms: Option<i64>,
    settling_until_ms: i64,
    failures: u32,
    failing_since_ms: Option<i64>,
    reported_at_ms: Option<i64>,
    /// Spreads the members of a group that all fail at one moment, 0–49 ms.
    spread_ms: i64,
}

impl Cadence {
    pub(super) fn new(max_ms: Option<i64>, member_id: &str, now_ms: i64) -> Self {
        Self {
            next_at_ms: now_ms,
            interval_ms: DEFAULT_INTERVAL_MS,
            max_ms: max_ms.unwrap_or(i64::MAX),
            waiting_since_ms: Some(now_ms),
            settling_until_ms: now_ms,
            failures: 0,
            failing_since_ms: None,
            reported_at_ms: None,
            spread_ms: i64::from(member_id.java_hash().rem_euclid(50)),
        }
    }

    pub(super) fn next_at_ms(&self) -> i64 {
        self.next_at_ms
    }

    /// Whether the last try succeeded.
    pub(super) fn calm(&self) -> bool {
        self.failures == 0
    }

    /// The next heartbeat is due now.
    pub(super) fn at_once(&mut self, now_ms: i64) {
        // Not while backing off: a coordinator that is loading or gone must not be asked in a busy loop.
        if self.calm() {
            self.next_at_ms = now_ms;
        }
    }

    /// The next heartbeat is due now and more will be soon: a commit was refused.
    pub(super) fn hurry(&mut self, now_ms: i64) {
        self.settling_until_ms = now_ms + SETTLING_FOR_MS;
        self.at_once(now_ms);
    }

    /// The member joins anew.
    pub(super) fn restart(&mut self, now_ms: i64) {
        self.waiting_since_ms = Some(now_ms);
        self.at_once(now_ms);
    }

    /// A heartbeat succeeded. `waiting`: not ready, or no tasks since the join.
    pub(super) fn succeeded(&mut self, now_ms: i64, interval_ms: i64, waiting: bool, epoch_changed: bool) {
        self.failures = 0;
        self.failing_since_ms = None;
        self.reported_at_ms = None;
        if interval_ms > 0 {
            self.interval_ms = interval_ms;
        }
        if epoch_changed {
            self.settling_until_ms = now_ms + SETTLING_FOR_MS;
        }
        if !waiting {
            self.waiting_since_ms = None;
        } else if self.waiting_since_ms.is_none() {
            self.waiting_since_ms = Some(now_ms);
        }
        self.next_at_ms = now_ms + self.pause_ms(now_ms);
    }

    fn pause_ms(&self, now_ms: i64) -> i64 {
        let steady = self.interval_ms.min(self.max_ms);
        let wanted = match self.waiting_since_ms {
            Some(since) if now_ms < since + WAITING_FOR_MS => WAITING_MS,
            _ if now_ms < self.settling_until_ms => SETTLING_MS,
            Some(_) => WAITING_LONG_MS,
            None => steady,
        };
        wanted.min(steady)
    }

    /// A try failed; the next one comes after a growing, bounded pause.
    pub(super) fn failed(&mut self, now_ms: i64) {
        let doubled = BACKOFF_MS << self.failures.min(10);
        self.failures = self.failures.saturating_add(1);
        self.failing_since_ms.get_or_insert(now_ms);
        self.next_at_ms = now_ms + doubled.min(BACKOFF_MAX_MS) + self.spread_ms;
    }

    /// The broker wants silence until then.
    pub(super) fn throttle(&mut self, now_ms: i64, throttle_ms: i64) {
        self.next_at_ms = self.next_at_ms.max(now_ms.saturating_add(throttle_ms));
    }

    /// How long everything has failed, when that is due to be reported.
    pub(super) fn failing_to_report(&mut self, now_ms: i64) -> Option<i64> {
        let failing_ms = now_ms - self.failing_since_ms?;
        let due = match self.reported_at_ms {
            None => failing_ms >= REPORT_AFTER_MS,
            Some(at) => now_ms - at >= REPORT_EVERY_MS,
        };
        if due {
            self.reported_at_ms = Some(now_ms);
        }
        due.then_some(failing_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pause after a success at `now_ms`.
    fn pause(cadence: &mut Cadence, now_ms: i64, waiting: bool, epoch_changed: bool) -> i64 {
        cadence.succeeded(now_ms, 5_000, waiting, epoch_changed);
        cadence.next_at_ms() - now_ms
    }

    #[test]
    fn asks_often_until_tasks_come_and_for_a_while_after_an_epoch_change() {
        let mut cadence = Cadence::new(None, "m", 0);
        assert_eq!(cadence.next_at_ms(), 0);
        assert_eq!(pause(&mut cadence, 10, true, true), WAITING_MS);
        assert_eq!(pause(&mut cadence, 1_000, false, false), SETTLING_MS);
        assert_eq!(pause(&mut cadence, 10_010, false, false), 5_000);
    }

    #[test]
    fn a_spare_member_becomes_slower_and_never_silent() {
        let mut cadence = Cadence::new(None, "m", 0);
        assert_eq!(pause(&mut cadence, 29_999, true, false), WAITING_MS);
        assert_eq!(pause(&mut cadence, 30_000, true, false), WAITING_LONG_MS);
    }

    #[test]
    fn the_users_maximum_bounds_the_steady_pause() {
        let mut cadence = Cadence::new(Some(150), "m", 0);
        assert_eq!(pause(&mut cadence, 0, false, false), 150);
        assert_eq!(pause(&mut cadence, 0, false, true), 150);
        cadence.hurry(70);
        assert_eq!(cadence.next_at_ms(), 70);
    }

    #[test]
    fn failures_back_off_within_bounds_and_nothing_jumps_the_queue() {
        let mut cadence = Cadence::new(None, "m", 0);
        let mut now = 0;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            cadence.failed(now);
            cadence.hurry(now);
            pauses.push(cadence.next_at_ms() - now - cadence.spread_ms);
            now = cadence.next_at_ms();
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]);
        assert_eq!(cadence.failing_to_report(9_999), None);
        assert_eq!(cadence.failing_to_report(10_000), Some(10_000));
        assert_eq!(cadence.failing_to_report(39_999), None);
        assert_eq!(cadence.failing_to_report(40_000), Some(40_000));
        cadence.succeeded(41_000, 5_000, false, false);
        assert_eq!(cadence.failing_to_report(90_000), None);
    }
}
