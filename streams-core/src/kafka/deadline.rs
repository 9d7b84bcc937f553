//! Time limits of blocking calls. The shell's only look at a clock here.

use std::time::{Duration, Instant};

/// A point in time by which a call has to return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    #[allow(
        clippy::disallowed_methods,
        reason = "the shell bounds blocking calls by the monotonic clock"
    )]
    fn now() -> Instant {
        Instant::now()
    }

    /// In `timeout_ms` milliseconds.
    pub(crate) fn after_ms(timeout_ms: u64) -> Self {
        let now = Self::now();
        // A timeout beyond what the clock can express is as good as a year.
        Deadline(
            now.checked_add(Duration::from_millis(timeout_ms))
                .unwrap_or(now + Duration::from_secs(31_536_000)),
        )
    }

    /// Milliseconds left, rounded up so that a wait never ends early; 0 when passed.
    pub(crate) fn remaining_ms(self) -> u64 {
        let left = self.0.saturating_duration_since(Self::now());
        u64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
    }

    /// The smaller of what is left and `slice_ms`, as librdkafka takes it.
    pub(crate) fn slice_ms(self, slice_ms: i32) -> i32 {
        i32::try_from(self.remaining_ms()).unwrap_or(i32::MAX).min(slice_ms)
    }

    pub(crate) fn has_passed(self) -> bool {
        self.remaining_ms() == 0
    }
}

/// A timeout as librdkafka takes it: an `i32`, and never negative, which would mean "for ever".
pub(crate) fn native_ms(timeout_ms: u64) -> i32 {
    i32::try_from(timeout_ms).unwrap_or(i32::MAX)
}
