//! Windows: what they hold, and when each kind is closed. "Closed" is one function per kind, shared by aggregation,
//! emission, suppression, joins and expiry.

mod calendar;
mod calendar_windows;
mod join;
mod session;
mod sliding;
mod time;
mod unlimited;

use std::time::Duration;

use streams_core::Window;

pub use calendar::Calendar;
pub use calendar_windows::CalendarWindows;
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
    /// Whether windows stay open until the end of the day, month … in which they end.
    pub(crate) calendar: Option<Calendar>,
}

impl Closing {
    /// The close time: windows with an end before it are closed; where the end is outside, so are those that end at it.
    pub(crate) fn close_time_ms(self, stream_time_ms: i64) -> i64 {
        let time_ms = stream_time_ms.saturating_sub(self.lag_ms);
        match self.calendar {
            Some(calendar) if time_ms >= 0 => calendar.window_of(time_ms).start_ms,
            Some(_) | None => time_ms,
        }
    }

    /// How long after its end a window is closed at the latest.
    pub(crate) fn longest_lag_ms(self) -> i64 {
        let longest = self.calendar.map_or(0, Calendar::longest_ms);
        self.lag_ms.saturating_add(longest)
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
            (Some(one), Some(other)) => {
                let lag_ms = one.lag_ms.max(other.lag_ms);
                // Of two calendars one is waited for to its end, and the other for as long as it can take.
                let (calendar, more_ms) = match (one.calendar, other.calendar) {
                    (Some(one), Some(other)) if one != other => (Some(one), other.longest_ms()),
                    (one, other) => (one.or(other), 0),
                };
                Some(Closing {
                    lag_ms: lag_ms.saturating_add(more_ms),
                    end_is_inside: one.end_is_inside || other.end_is_inside,
                    calendar,
                })
            }
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

    /// How long they are; of calendars: at most.
    fn size_ms(&self) -> i64;

    /// How far apart their starts are; of calendars: at least.
    fn advance_ms(&self) -> i64;

    /// The starts (first, last; ms) of the windows whose ends lie between two times, both included; `None` if no end does.
    fn starts_of(&self, first_end_ms: i64, last_end_ms: i64) -> Option<(i64, i64)> {
        let (size_ms, advance_ms) = (self.size_ms(), self.advance_ms());
        let from_ms = first_end_ms.saturating_sub(size_ms).max(0);
        let to_ms = last_end_ms.saturating_sub(size_ms);
        (to_ms >= from_ms && to_ms / advance_ms * advance_ms >= from_ms).then_some((from_ms, to_ms))
    }
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
