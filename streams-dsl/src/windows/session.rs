//! Session windows.

use std::time::Duration;

use super::{Closing, millis};

/// Sessions: records of a key that follow each other within a gap of inactivity are one session, from the first record's
/// event time to the last one's, both included. A record that lies within the gap of several sessions makes them one.
///
/// A session is closed when the operator's stream time (the highest event time it has seen) is more than gap plus grace
/// ahead of its end; a record that would be a session of its own and closed at once is dropped and counted.
///
/// ```
/// use streams_dsl::{MINUTE, SessionWindows};
/// let visits = SessionWindows::of(30 * MINUTE).grace(5 * MINUTE);
/// assert_eq!(visits.gap_ms(), 1_800_000);
/// ```
///
/// Java counterpart: `SessionWindows`, whose `ofInactivityGapWithNoGrace` this `of` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionWindows {
    gap_ms: i64,
    grace_ms: i64,
}

impl SessionWindows {
    /// Sessions that end after so much inactivity, in whole milliseconds, without grace.
    #[must_use]
    pub fn of(gap: Duration) -> Self {
        SessionWindows {
            gap_ms: millis(gap),
            grace_ms: 0,
        }
    }

    /// How long, by event time, a session takes late records after the gap.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// The gap in milliseconds.
    #[must_use]
    pub fn gap_ms(&self) -> i64 {
        self.gap_ms
    }

    /// The grace in milliseconds.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// When sessions are closed: by their last record's time, as long as another one could still follow it.
    pub(crate) fn closing(&self) -> Closing {
        Closing {
            lag_ms: self.gap_ms.saturating_add(self.grace_ms),
            end_is_inside: true,
            calendar: None,
        }
    }

    /// What is wrong with the gap, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        (self.gap_ms < 1).then(|| "the gap of sessions must be at least 1 ms".to_owned())
    }
}
