//! Tumbling and hopping windows.

use std::time::Duration;

use streams_core::Window;

use super::{Calendar, Closing, Enumerable, millis};

/// Windows of one size, aligned to the Unix epoch: tumbling (each begins where the last ends) or, with
/// [`advance_by`](TimeWindows::advance_by), hopping. A window holds the times from its start up to its end, which is
/// not in it.
///
/// A window is closed when the operator's stream time (the highest event time it has seen) reaches its end plus grace;
/// records for a closed window are dropped and counted in `dropped-records-total`.
///
/// ```
/// use streams_dsl::{HOUR, MINUTE, TimeWindows};
/// let hourly = TimeWindows::of(HOUR).grace(5 * MINUTE);
/// let sliding_hour = TimeWindows::of(HOUR).advance_by(10 * MINUTE);
/// assert_eq!(hourly.windows_of(3_600_000).map(|w| w.start_ms).collect::<Vec<_>>(), [3_600_000]);
/// assert_eq!(sliding_hour.windows_of(3_600_000).count(), 6);
/// ```
///
/// Java counterpart: `TimeWindows`, whose `ofSizeWithNoGrace` this `of` is (Java's deprecated `of` had 24 hours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindows {
    size_ms: i64,
    advance_ms: i64,
    grace_ms: i64,
    closes: Option<Calendar>,
}

impl TimeWindows {
    /// Tumbling windows of this size, in whole milliseconds, without grace.
    #[must_use]
    pub fn of(size: Duration) -> Self {
        TimeWindows {
            size_ms: millis(size),
            advance_ms: millis(size),
            grace_ms: 0,
            closes: None,
        }
    }

    /// Hopping windows: one begins every `advance`, which is at most the size.
    #[must_use]
    pub fn advance_by(mut self, advance: Duration) -> Self {
        self.advance_ms = millis(advance);
        self
    }

    /// How long after its end, by event time, a window takes late records.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// Keeps each window open until the end of the day, week, month or year in which it ends, and the grace after that:
    /// books are closed by the calendar, and what is known until then is in them.
    ///
    /// ```
    /// use streams_dsl::{Calendar, DAY, HOUR, TimeWindows};
    /// // Hours, which take late records until the third of the next month, Berlin time.
    /// let hourly = TimeWindows::of(HOUR).close_with(Calendar::months("Europe/Berlin")).grace(2 * DAY);
    /// assert_eq!(hourly.grace_ms(), 2 * 86_400_000);
    /// ```
    ///
    /// Not in Java.
    #[must_use]
    pub fn close_with(mut self, calendar: Calendar) -> Self {
        self.closes = Some(calendar);
        self
    }

    /// The size in milliseconds.
    #[must_use]
    pub fn size_ms(&self) -> i64 {
        self.size_ms
    }

    /// The grace in milliseconds.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// The windows that hold an event time (ms since the Unix epoch), by ascending start. None starts before the epoch.
    pub fn windows_of(&self, timestamp_ms: i64) -> impl Iterator<Item = Window> + use<> {
        let (size_ms, advance_ms) = (self.size_ms.max(1), self.advance_ms.max(1));
        let first = timestamp_ms.saturating_sub(size_ms).saturating_add(advance_ms).max(0) / advance_ms * advance_ms;
        let starts = std::iter::successors(Some(first), move |start| start.checked_add(advance_ms));
        starts
            .take_while(move |start| *start <= timestamp_ms)
            .map(move |start| Window::of_size(start, size_ms))
    }

    /// When windows are closed, and records for them late: one rule for aggregation, emission, suppression and expiry.
    pub(crate) fn closing(&self) -> Closing {
        Closing {
            lag_ms: self.grace_ms,
            end_is_inside: false,
            calendar: self.closes,
        }
    }

    /// What is wrong with the sizes, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(problem) = self.closes.and_then(Calendar::problem) {
            return Some(problem);
        }
        if self.size_ms < 1 {
            return Some("a window's size must be at least 1 ms".to_owned());
        }
        let advance = self.advance_ms;
        let fits = (1..=self.size_ms).contains(&advance);
        (!fits).then(|| {
            format!(
                "windows of {} ms must advance by 1 ms to their size, not by {advance} ms",
                self.size_ms
            )
        })
    }
}

impl Enumerable for TimeWindows {
    fn try_each<E>(&self, timestamp_ms: i64, each: impl FnMut(Window) -> Result<(), E>) -> Result<(), E> {
        self.windows_of(timestamp_ms).try_for_each(each)
    }

    fn closing(&self) -> Closing {
        self.closing()
    }

    fn size_ms(&self) -> i64 {
        self.size_ms
    }

    fn advance_ms(&self) -> i64 {
        self.advance_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUR, MILLISECOND, SECOND};

    fn starts(windows: TimeWindows, time: i64) -> Vec<i64> {
        windows.windows_of(time).map(|window| window.start_ms).collect()
    }

    #[test]
    fn hopping_windows_are_aligned_to_the_epoch_and_never_start_before_it() {
        let windows = TimeWindows::of(10 * MILLISECOND).advance_by(5 * MILLISECOND);
        assert_eq!(starts(windows, 3), [0]);
        assert_eq!(starts(windows, 7), [0, 5]);
        assert_eq!(starts(windows, 10), [5, 10]);
    }

    #[test]
    fn a_time_at_the_boundary_is_in_the_later_tumbling_window() {
        let windows = TimeWindows::of(10 * MILLISECOND);
        assert_eq!((starts(windows, 9), starts(windows, 10)), (vec![0], vec![10]));
    }

    #[test]
    fn an_advance_that_does_not_divide_the_size_leaves_no_gap() {
        let windows = TimeWindows::of(10 * MILLISECOND).advance_by(4 * MILLISECOND);
        for time in 0..100 {
            let expected: Vec<i64> = (0..=time).filter(|start| start % 4 == 0 && time < start + 10).collect();
            assert_eq!(starts(windows, time), expected, "{time}");
        }
    }

    #[test]
    fn impossible_sizes_are_found() {
        assert!(TimeWindows::of(Duration::ZERO).problem().is_some());
        assert!(TimeWindows::of(SECOND).advance_by(2 * SECOND).problem().is_some());
        assert_eq!(TimeWindows::of(SECOND).advance_by(SECOND).problem(), None);
    }

    #[test]
    fn the_last_possible_time_is_in_a_window() {
        assert_eq!(TimeWindows::of(HOUR).windows_of(i64::MAX).count(), 1);
    }
}
