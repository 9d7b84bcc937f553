//! Removes dormant state.

use super::clock::Clock;
use super::instance::{Inner, lock};
use super::state::State;

/// Removes state of tasks that are elsewhere now, `state.cleanup.delay.ms` after it was last used, while the instance runs.
pub(super) struct Cleaner {
    clock: Clock,
    delay_ms: i64,
    next_ms: i64,
}

impl Cleaner {
    /// The first time is one delay after the start: the tasks of the last run may well come back.
    pub(super) fn new(delay_ms: i64) -> Self {
        let clock = Clock::new();
        let delay_ms = delay_ms.max(1);
        Cleaner {
            clock,
            delay_ms,
            next_ms: clock.now_ms().saturating_add(delay_ms),
        }
    }

    pub(super) fn clean(&mut self, inner: &Inner) {
        let now_ms = self.clock.now_ms();
        if now_ms < self.next_ms || *inner.state.borrow() != State::Running {
            return;
        }
        self.next_ms = now_ms.saturating_add(self.delay_ms);
        let directory = lock(&inner.running).directory.clone();
        if let Some(Err(error)) = directory.map(|directory| directory.clean_up(now_ms, self.delay_ms)) {
            tracing::warn!(%error, "state of tasks that are elsewhere could not be removed");
        }
    }
}
