//! Days, weeks, months and years in a time zone.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use streams_core::Window;
use streams_core::stores::{WindowEnds, WindowRule};

const DAY_MS: i64 = 86_400_000;

/// From here on (1 January 9999, UTC) there are no dates any more: what is left of time is one window.
const LAST_MS: i64 = 253_370_764_800_000;

/// Days, weeks, months or years as the clocks of a time zone have them. A day of the zone begins with the first moment at
/// which its clocks have reached midnight; where they are put forward it has 23 hours, where they are put back 25.
///
/// Zones are named as the IANA database names them (`Europe/Berlin`, `America/New_York`, `UTC`). The database is a part of
/// the program, so each machine and each replay finds the same windows; a new version of it comes with a new version of the
/// program. A zone that is not in it is found by `build()`.
///
/// ```
/// use streams_dsl::{Calendar, Window};
/// let berlin = Calendar::days("Europe/Berlin");
/// // 30 March 2025, when the clocks went from 2 to 3, has 23 hours.
/// let short = berlin.window_of(1_743_300_000_000);
/// assert_eq!(short, Window::new(1_743_289_200_000, 1_743_289_200_000 + 23 * 3_600_000));
/// ```
///
/// Not in Java, whose windows have one size in milliseconds.
#[derive(Clone, Copy)]
pub struct Calendar(&'static Rules);

/// Which dates begin a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

/// The rules of a zone, made once a name and unit and kept for ever, so that windows can be copied like numbers.
struct Rules {
    unit: Unit,
    name: Box<str>,
    /// `None`: there is no such zone.
    zone: Option<TimeZone>,
}

static KNOWN: Mutex<Vec<&'static Rules>> = Mutex::new(Vec::new());

impl Calendar {
    /// Days of a zone.
    #[must_use]
    pub fn days(zone: &str) -> Self {
        Self::of(Unit::Day, zone)
    }

    /// Weeks of a zone, from Monday (ISO 8601).
    #[must_use]
    pub fn weeks(zone: &str) -> Self {
        Self::of(Unit::Week, zone)
    }

    /// Months of a zone.
    #[must_use]
    pub fn months(zone: &str) -> Self {
        Self::of(Unit::Month, zone)
    }

    /// Years of a zone.
    #[must_use]
    pub fn years(zone: &str) -> Self {
        Self::of(Unit::Year, zone)
    }

    fn of(unit: Unit, name: &str) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = known.iter().find(|rules| rules.unit == unit && &*rules.name == name) {
            return Calendar(rules);
        }
        let rules: &'static Rules = Box::leak(Box::new(Rules {
            unit,
            name: name.into(),
            zone: TimeZoneDatabase::bundled().get(name).ok(),
        }));
        known.push(rules);
        Calendar(rules)
    }

    /// The day, week, month or year that holds an event time (ms since the Unix epoch), its end not included. None begins
    /// before the epoch: the first one is shorter in zones where the epoch is not midnight.
    #[must_use]
    pub fn window_of(self, timestamp_ms: i64) -> Window {
        self.0.window_of(timestamp_ms.max(0))
    }

    /// How the ends of windows follow from their starts.
    pub(crate) fn ends(self) -> WindowEnds {
        WindowEnds::Rule(self.0)
    }

    /// None is longer than this: clocks have been put back by up to a day.
    pub(crate) fn longest_ms(self) -> i64 {
        self.0.longest_ms()
    }

    /// Starts are at least so far apart.
    pub(crate) fn least_ms(self) -> i64 {
        match self.0.unit {
            Unit::Day => DAY_MS / 2,
            Unit::Week => 6 * DAY_MS,
            Unit::Month => 27 * DAY_MS,
            Unit::Year => 364 * DAY_MS,
        }
    }

    /// What is wrong with the zone, if anything.
    pub(crate) fn problem(self) -> Option<String> {
        let Rules { name, zone, .. } = self.0;
        zone.is_none().then(|| {
            format!("`{name}` is no time zone: give a name of the IANA database, such as `Europe/Berlin` or `UTC`")
        })
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Calendar {
    fn eq(&self, other: &Self) -> bool {
        self.0.unit == other.0.unit && self.0.name == other.0.name
    }
}

impl Eq for Calendar {}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}s of {}", self.unit, self.name)
    }
}

impl Rules {
    fn window_of(&self, timestamp_ms: i64) -> Window {
        let dates = self.dates_of(timestamp_ms);
        let Some((start_ms, end_ms)) = dates.filter(|_| timestamp_ms < LAST_MS) else {
            return Window::new(LAST_MS, i64::MAX);
        };
        Window::new(start_ms.max(0), end_ms.min(LAST_MS))
    }

    /// Begin and end. The local date is a good guess; where clocks were changed around midnight the moments decide, so that
    /// every time is in exactly one window.
    fn dates_of(&self, timestamp_ms: i64) -> Option<(i64, i64)> {
        let zone = self.zone.as_ref()?;
        let begins = |date: Date| -> Option<i64> {
            let midnight = zone.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
            Some(midnight.as_millisecond())
        };
        let local = zone.to_datetime(Timestamp::from_millisecond(timestamp_ms).ok()?);
        let mut date = self.unit.first(local.date())?;
        if timestamp_ms < begins(date)? {
            date = self.unit.first(date.yesterday().ok()?)?;
        }
        let mut next = self.unit.next(date)?;
        while begins(next)? <= timestamp_ms {
            date = next;
            next = self.unit.next(date)?;
        }
        Some((begins(date)?, begins(next)?))
    }
}

impl Unit {
    /// The first date of the window of a date.
    fn first(self, date: Date) -> Option<Date> {
        match self {
            Unit::Day => Some(date),
            Unit::Week => {
                let back = i64::from(date.weekday().to_monday_zero_offset());
                date.checked_sub(jiff::Span::new().try_days(back).ok()?).ok()
            }
            Unit::Month => Some(date.first_of_month()),
            Unit::Year => Some(date.first_of_year()),
        }
    }

    /// The first date of the window after the one that begins with a date.
    fn next(self, date: Date) -> Option<Date> {
        let span = jiff::Span::new();
        let span = match self {
            Unit::Day => span.try_days(1),
            Unit::Week => span.try_weeks(1),
            Unit::Month => span.try_months(1),
            Unit::Year => span.try_years(1),
        };
        date.checked_add(span.ok()?).ok()
    }
}

impl WindowRule for Rules {
    fn end_ms(&self, start_ms: i64) -> i64 {
        self.window_of(start_ms.max(0)).end_ms
    }

    fn longest_ms(&self) -> i64 {
        match self.unit {
            Unit::Day => 2 * DAY_MS,
            Unit::Week => 8 * DAY_MS,
            Unit::Month => 32 * DAY_MS,
            Unit::Year => 367 * DAY_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    fn hours(calendar: Calendar, time: &str) -> i64 {
        let window = calendar.window_of(ms(time));
        (window.end_ms - window.start_ms) / HOUR_MS
    }

    #[test]
    fn days_have_23_and_25_hours_where_the_clocks_change() {
        let berlin = Calendar::days("Europe/Berlin");
        assert_eq!(hours(berlin, "2025-03-29T12:00:00Z"), 24);
        assert_eq!(hours(berlin, "2025-03-30T12:00:00Z"), 23);
        assert_eq!(hours(berlin, "2025-10-26T12:00:00Z"), 25);
        let new_york = Calendar::days("America/New_York");
        assert_eq!(hours(new_york, "2025-03-09T12:00:00Z"), 23);
        assert_eq!(hours(new_york, "2025-11-02T12:00:00Z"), 25);
        let kathmandu = Calendar::days("Asia/Kathmandu").window_of(ms("2025-01-01T18:15:00Z"));
        assert_eq!(
            kathmandu.start_ms,
            ms("2025-01-01T18:15:00Z"),
            "five hours and three quarters before UTC"
        );
    }

    #[test]
    fn months_weeks_and_years_begin_at_midnight_of_the_zone() {
        let window = Calendar::months("Europe/Berlin").window_of(ms("2025-03-15T00:00:00Z"));
        assert_eq!(
            window,
            Window::new(ms("2025-02-28T23:00:00Z"), ms("2025-03-31T22:00:00Z"))
        );
        let window = Calendar::weeks("Europe/Berlin").window_of(ms("2025-03-30T21:59:59Z"));
        assert_eq!(
            window,
            Window::new(ms("2025-03-23T23:00:00Z"), ms("2025-03-30T22:00:00Z"))
        );
        let window = Calendar::years("UTC").window_of(ms("2024-02-29T00:00:00Z"));
        assert_eq!(
            window,
            Window::new(ms("2024-01-01T00:00:00Z"), ms("2025-01-01T00:00:00Z"))
        );
    }

    #[test]
    fn a_date_that_a_zone_left_out_has_no_window() {
        // Samoa went from 29 to 31 December 2011.
        let apia = Calendar::days("Pacific/Apia");
        let before = apia.window_of(ms("2011-12-30T09:59:59Z"));
        let after = apia.window_of(ms("2011-12-30T10:00:00Z"));
        assert_eq!(
            (before.end_ms, after.start_ms),
            (ms("2011-12-30T10:00:00Z"), ms("2011-12-30T10:00:00Z"))
        );
        assert_eq!(after.end_ms - after.start_ms, 24 * HOUR_MS);
    }

    /// Zones whose clocks change at midnight, by half an hour, by hours; some of them all at once.
    const ZONES: [&str; 12] = [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/Sao_Paulo",
        "America/Havana",
        "Asia/Beirut",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Pacific/Kiritimati",
        "Antarctica/Casey",
        "Africa/Cairo",
    ];

    #[test]
    fn every_time_is_in_exactly_one_window_and_windows_leave_no_gap() {
        for zone in ZONES {
            for calendar in [
                Calendar::days(zone),
                Calendar::weeks(zone),
                Calendar::months(zone),
                Calendar::years(zone),
            ] {
                assert_eq!(calendar.problem(), None);
                assert_eq!(calendar.window_of(0).start_ms, 0);
                let mut window = calendar.window_of(ms("1994-12-01T00:00:00Z"));
                while window.end_ms < ms("2026-01-01T00:00:00Z") {
                    let last = window.end_ms - 1;
                    let middle = window.start_ms + (window.end_ms - window.start_ms) / 2;
                    for time in [window.start_ms, middle, last] {
                        assert_eq!(calendar.window_of(time), window, "{calendar:?} {time}");
                    }
                    let length = window.end_ms - window.start_ms;
                    assert!(length <= calendar.longest_ms(), "{calendar:?} {window:?}");
                    assert!(length >= calendar.least_ms(), "{calendar:?} {window:?}");
                    let next = calendar.window_of(window.end_ms);
                    assert_eq!(next.start_ms, window.end_ms, "{calendar:?}");
                    window = next;
                }
            }
        }
    }

    #[test]
    fn the_ends_of_time_are_in_windows() {
        let days = Calendar::days("America/New_York");
        assert_eq!(days.window_of(-1), days.window_of(0));
        assert_eq!(days.window_of(i64::MAX), Window::new(LAST_MS, i64::MAX));
        let before = days.window_of(LAST_MS - 1);
        assert_eq!((before.end_ms, days.window_of(before.start_ms)), (LAST_MS, before));
    }

    #[test]
    fn an_unknown_zone_is_told_and_names_are_kept_once() {
        let problem = Calendar::days("Europe/Atlantis").problem().unwrap();
        assert!(problem.contains("`Europe/Atlantis` is no time zone"), "{problem}");
        assert_eq!(Calendar::days("UTC"), Calendar::days("UTC"));
        assert_ne!(Calendar::days("UTC"), Calendar::months("UTC"));
        assert!(std::ptr::eq(Calendar::days("UTC").0, Calendar::days("UTC").0));
    }
}
