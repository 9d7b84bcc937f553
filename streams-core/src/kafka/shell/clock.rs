//! The wall clock as the core is told it: it follows the machine's clock at the start and never goes back.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock in milliseconds since the Unix epoch, monotonic within the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    base_ms: i64,
}

#[allow(clippy::disallowed_methods, reason = "the shell is where time comes from")]
impl Clock {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Clock {
            started: Instant::now(),
            base_ms: i64::try_from(since.as_millis()).unwrap_or(0),
        }
    }

    /// Nanoseconds since some moment before every call; the same for all threads.
    pub(crate) fn now_ns() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.base_ms + i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0)
    }
}

/// How long something takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch(Instant);

#[allow(clippy::disallowed_methods, reason = "the shell is where time comes from")]
impl Watch {
    pub(super) fn start() -> Self {
        Watch(Instant::now())
    }

    pub(super) fn elapsed_us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
