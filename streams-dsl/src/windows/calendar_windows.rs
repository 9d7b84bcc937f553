//! Windows that are days, weeks, months or years.

use std::time::Duration;

use streams_core::Window;
use streams_core::serde::TimeWindowed;
use streams_core::stores::WindowEnds;

use super::{Calendar, Closing, Enumerable, millis};

/// Windows that are the days, weeks, months or years of a time zone, with as many hours as these have.
///
/// A window is closed when the operator's stream time (the highest event time it has seen) reaches its end plus grace, or
/// with [`close_with`](Self::close_with) the end of the month (week, year) in which it ends, plus grace. Everything else is
/// as for [`TimeWindows`](crate::TimeWindows): late records, emission on close, `suppress`, `late`.
///
/// On topics and in changelogs a key is written as one of Java's time windows: the key's bytes and the window's start (8
/// bytes, milliseconds since the Unix epoch); in the changelog four zeros follow. The end follows from the start:
/// [`key_serde`](Self::key_serde) reads it back, `Windowed<K>` alone reads an open end.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     b.stream::<String, i64>("usage")
///         .group_by_key()
///         .windowed_by(CalendarWindows::of(Calendar::days("Europe/Berlin")))
///         .emit_strategy(EmitStrategy::OnWindowClose)
///         .reduce(|_tenant, bytes, sum| sum + bytes, "daily-bytes")
///         .to_stream()
///         .to("daily")
/// })
/// // 30 March 2025 from its first to its last moment, 23 hours, and the day after.
/// .pipe("usage", [("a", 1, at(1_743_289_200_000)), ("a", 2, at(1_743_371_999_999)), ("a", 4, at(1_743_372_000_000))])
/// .gives("daily", [(window("a", 1_743_289_200_000), 3, at(1_743_371_999_999))]);
/// ```
///
/// Not in Java.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarWindows {
    calendar: Calendar,
    grace_ms: i64,
    closes: Option<Calendar>,
}

impl CalendarWindows {
    /// These windows, without grace.
    #[must_use]
    pub fn of(calendar: Calendar) -> Self {
        CalendarWindows {
            calendar,
            grace_ms: 0,
            closes: None,
        }
    }

    /// How long after its end (or the end of what it closes with), by event time, a window takes late records.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// Keeps each window open until the end of the week, month or year in which it ends, and the grace after that.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// let days = CalendarWindows::of(Calendar::days("UTC")).close_with(Calendar::months("UTC"));
    /// run(|b| {
    ///     let daily = b.stream::<String, i64>("usage").group_by_key().windowed_by(days);
    ///     let bytes = daily.emit_strategy(EmitStrategy::OnWindowClose).reduce(|_, bytes, sum| sum + bytes, "daily-bytes");
    ///     bytes.to_stream().to("bills")
    /// })
    /// // 1 and 31 January 1970, one late record for the first day, then 1 February.
    /// .pipe("usage", [("a", 1, at(0)), ("a", 2, at(30 * 86_400_000)), ("a", 4, at(5)), ("a", 8, at(31 * 86_400_000))])
    /// .gives("bills", [(window("a", 0), 5, at(5)), (window("a", 30 * 86_400_000), 2, at(30 * 86_400_000))])
    /// .dropped(0);
    /// ```
    #[must_use]
    pub fn close_with(mut self, calendar: Calendar) -> Self {
        self.closes = Some(calendar);
        self
    }

    /// The grace in milliseconds.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// The window that holds an event time (ms since the Unix epoch).
    #[must_use]
    pub fn window_of(&self, timestamp_ms: i64) -> Window {
        self.calendar.window_of(timestamp_ms)
    }

    /// A serde of keys in these windows, which knows their ends.
    ///
    /// ```
    /// use streams_dsl::serdes::{Serde, Utf8};
    /// use streams_dsl::{Calendar, CalendarWindows, Windowed};
    /// let days = CalendarWindows::of(Calendar::days("Europe/Berlin"));
    /// let key = Windowed::new("ann".to_owned(), days.window_of(1_743_300_000_000));
    /// let mut bytes = Vec::new();
    /// days.key_serde(Utf8).serialize("daily", &key, &mut bytes)?;
    /// assert_eq!(bytes, [&b"ann"[..], &1_743_289_200_000_i64.to_be_bytes()].concat());
    /// let read: Windowed<String> = days.key_serde(Utf8).deserialize("daily", Some(&bytes))?;
    /// assert_eq!(read, key);
    /// # Ok::<(), streams_dsl::SerdeError>(())
    /// ```
    pub fn key_serde<S>(&self, key: S) -> TimeWindowed<S> {
        TimeWindowed::with_ends(key, self.ends())
    }

    pub(crate) fn ends(&self) -> WindowEnds {
        self.calendar.ends()
    }

    /// When windows are closed.
    pub(crate) fn closing(&self) -> Closing {
        Closing {
            lag_ms: self.grace_ms,
            end_is_inside: false,
            calendar: self.closes,
        }
    }

    /// What is wrong with the zones, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        self.calendar
            .problem()
            .or_else(|| self.closes.and_then(Calendar::problem))
    }
}

impl Enumerable for CalendarWindows {
    fn try_each<E>(&self, timestamp_ms: i64, mut each: impl FnMut(Window) -> Result<(), E>) -> Result<(), E> {
        each(self.window_of(timestamp_ms))
    }

    fn closing(&self) -> Closing {
        self.closing()
    }

    fn size_ms(&self) -> i64 {
        self.calendar.longest_ms()
    }

    fn advance_ms(&self) -> i64 {
        self.calendar.least_ms()
    }

    fn starts_of(&self, first_end_ms: i64, last_end_ms: i64) -> Option<(i64, i64)> {
        // The first one ends at the earliest boundary from there on, the last one where the window of that time begins.
        let first = self.window_of(first_end_ms.saturating_sub(1));
        let last_ends_ms = self.window_of(last_end_ms).start_ms;
        let last = self.window_of(last_ends_ms.saturating_sub(1));
        (first.end_ms <= last_ends_ms && last_ends_ms > 0).then_some((first.start_ms, last.start_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DAY, HOUR};

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn the_windows_that_end_between_two_times_are_found_by_their_starts() {
        let windows = CalendarWindows::of(Calendar::days("UTC"));
        assert_eq!(windows.starts_of(0, DAY_MS - 1), None);
        assert_eq!(windows.starts_of(0, DAY_MS), Some((0, 0)));
        assert_eq!(windows.starts_of(DAY_MS, DAY_MS), Some((0, 0)));
        assert_eq!(windows.starts_of(DAY_MS + 1, 2 * DAY_MS - 1), None);
        assert_eq!(windows.starts_of(DAY_MS + 1, 3 * DAY_MS), Some((DAY_MS, 2 * DAY_MS)));
    }

    #[test]
    fn a_window_closes_with_the_month_in_which_it_ends_and_the_grace() {
        let month_end = 31 * DAY_MS;
        let days = CalendarWindows::of(Calendar::days("UTC")).close_with(Calendar::months("UTC"));
        let closing = days.grace(2 * HOUR).closing();
        let grace_ms = 2 * 3_600_000;
        for end_ms in [DAY_MS, 30 * DAY_MS, month_end] {
            assert!(!closing.is_closed(end_ms, month_end + grace_ms - 1), "{end_ms}");
            assert!(closing.is_closed(end_ms, month_end + grace_ms), "{end_ms}");
        }
        assert!(!closing.is_closed(month_end + DAY_MS, month_end + grace_ms + 10 * DAY_MS));
        assert!(closing.longest_lag_ms() >= month_end + grace_ms);
    }

    #[test]
    fn hours_close_with_the_day_too() {
        let hours = crate::TimeWindows::of(HOUR)
            .close_with(Calendar::days("UTC"))
            .grace(DAY);
        let closing = hours.closing();
        assert!(!closing.is_closed(3_600_000, 2 * DAY_MS - 1));
        assert!(closing.is_closed(3_600_000, 2 * DAY_MS));
        let wrong = crate::TimeWindows::of(HOUR).close_with(Calendar::days("Nowhere"));
        assert!(wrong.problem().is_some());
    }

    #[test]
    fn two_calendars_are_both_waited_for() {
        let closing = |zone| {
            CalendarWindows::of(Calendar::days("UTC"))
                .close_with(Calendar::months(zone))
                .closing()
        };
        let (one, other) = (closing("Pacific/Apia"), closing("America/New_York"));
        let both = Closing::later(Some(one), Some(other));
        let Some(both) = both else {
            return assert!(both.is_some());
        };
        for time in (0..200 * DAY_MS).step_by(7_200_000) {
            let end = both.last_closed_end_ms(time);
            assert!(
                end <= one.last_closed_end_ms(time) && end <= other.last_closed_end_ms(time),
                "{time}"
            );
        }
    }
}
