//! The time that a membership runs by.

use std::time::Instant;

/// Milliseconds since the membership started; never goes back, and knows nothing of the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the shell reads the clock, the core is told the time"
    )]
    pub(super) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(super) fn now_ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}
