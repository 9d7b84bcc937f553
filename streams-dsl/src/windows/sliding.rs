//! Sliding windows.

use std::time::Duration;

use super::{Closing, millis};

/// Windows of one length that slide over the records of a key: for each set of records that lie within `difference` of
/// each other there is one. A record at `t` ends a window `[t - difference, t]`, both ends included, and begins one at
/// `t + 1` if records follow; no window starts before the epoch, so early records share `[0, difference]`.
///
/// A window is closed when the operator's stream time (the highest event time it has seen) is more than grace ahead of
/// its end; a record whose last possible window is closed is dropped and counted.
///
/// ```
/// use streams_dsl::{MINUTE, SlidingWindows};
/// let last_ten_minutes = SlidingWindows::of(10 * MINUTE).grace(MINUTE);
/// assert_eq!(last_ten_minutes.difference_ms(), 600_000);
/// ```
///
/// Java counterpart: `SlidingWindows`, whose `ofTimeDifferenceWithNoGrace` this `of` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindows {
    difference_ms: i64,
    grace_ms: i64,
}

impl SlidingWindows {
    /// Windows of records at most so far apart, in whole milliseconds, without grace.
    #[must_use]
    pub fn of(difference: Duration) -> Self {
        SlidingWindows {
            difference_ms: millis(difference),
            grace_ms: 0,
        }
    }

    /// How long after its end, by event time, a window takes late records.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// The difference in milliseconds.
    #[must_use]
    pub fn difference_ms(&self) -> i64 {
        self.difference_ms
    }

    /// The grace in milliseconds.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// When windows are closed: the end is in the window.
    pub(crate) fn closing(&self) -> Closing {
        Closing {
            lag_ms: self.grace_ms,
            end_is_inside: true,
            calendar: None,
        }
    }
}
