//! Windows: what they hold, and when each kind is closed. "Closed" is one function per kind, shared by aggregation,
//! emission, suppression, joins and expiry.

mod join;
mod session;
mod sliding;
mod time;
mod unlimited;

use std::time::Duration;

use streams_core::Window;

pub use join::JoinWindows;
pub use session::SessionWindows;
pub use sliding::SlidingWindows;
pub use time::TimeWindows;
pub use unlimited::UnlimitedWindows;

/// One millisecond. Multiply for others: `5 * MINUTE`.
pub const MILLISECOND: Duration = Duration::from_millis(1);
/// One second.
pub const SECOND: Duration = Duration::from_secs(1);
/// One minute.
pub const MINUTE: Duration = Duration::from_secs(60);
/// One hour.
pub const HOUR: Duration = Duration::from_secs(3_600);
/// Twenty-four hours.
pub const DAY: Duration = Duration::from_secs(86_400);

/// Milliseconds; more than `i64` can hold is the most it can.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// When windows of a kind are closed, by their end and the stream time (ms since the Unix epoch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    /// How long a window takes records after its end: grace, and the gap of sessions.
    pub(crate) lag_ms: i64,
    /// Whether the end itself is in the window (sessions, sliding windows).
    pub(crate) end_is_inside: bool,
}

impl Closing {
    /// The close time: windows with an end before it are closed; where the end is outside, so are those that end at it.
    pub(crate) fn close_time_ms(self, stream_time_ms: i64) -> i64 {
        stream_time_ms.saturating_sub(self.lag_ms)
    }

    /// Windows with an end up to this one, included, are closed.
    pub(crate) fn last_closed_end_ms(self, stream_time_ms: i64) -> i64 {
        self.last_closed_end_at(self.close_time_ms(stream_time_ms))
    }

    /// As [`last_closed_end_ms`](Self::last_closed_end_ms), for a close time.
    pub(crate) fn last_closed_end_at(self, close_time_ms: i64) -> i64 {
        close_time_ms.saturating_sub(i64::from(self.end_is_inside))
    }

    /// Of two tables that are joined: when the windows of both are closed (`GraphGraceSearchUtil`).
    pub(crate) fn later(one: Option<Closing>, other: Option<Closing>) -> Option<Closing> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Closing {
                lag_ms: one.lag_ms.max(other.lag_ms),
                end_is_inside: one.end_is_inside || other.end_is_inside,
            }),
            (one, other) => one.or(other),
        }
    }

    /// Whether a window with this end is closed.
    pub(crate) fn is_closed(self, end_ms: i64, stream_time_ms: i64) -> bool {
        end_ms <= self.last_closed_end_ms(stream_time_ms)
    }
}

/// Windows that follow from a time alone.
pub(crate) trait Enumerable: Copy + Send + Sync + 'static {
    /// Visits the windows that hold a time, by ascending start, up to the first failure.
    fn try_each<E>(&self, timestamp_ms: i64, each: impl FnMut(Window) -> Result<(), E>) -> Result<(), E>;

    /// When they are closed.
    fn closing(&self) -> Closing;

    /// How long they are.
    fn size_ms(&self) -> i64;

    /// How far apart their starts are.
    fn advance_ms(&self) -> i64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_closed_when_no_record_in_time_can_reach_it() {
        let ten = Duration::from_millis(10);
        let time = TimeWindows::of(ten).grace(Duration::from_millis(5)).closing();
        assert!(!time.is_closed(10, 14) && time.is_closed(10, 15));
        let sliding = SlidingWindows::of(ten).grace(Duration::from_millis(5)).closing();
        assert!(!sliding.is_closed(10, 15) && sliding.is_closed(10, 16));
        let session = SessionWindows::of(ten).grace(Duration::from_millis(5)).closing();
        assert!(!session.is_closed(10, 25) && session.is_closed(10, 26));
        let unlimited = UnlimitedWindows::new().closing();
        assert!(!unlimited.is_closed(i64::MAX, i64::MAX));
    }
}
