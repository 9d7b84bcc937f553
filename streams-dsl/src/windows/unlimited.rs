//! Windows without an end.

use streams_core::Window;

use super::{Closing, Enumerable};

/// One window a key, from a start on, that never closes. Records before the start are in no window; they are left alone
/// and not counted, as in Java.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     let visits = b.stream::<String, i64>("visits").group_by_key();
///     visits.windowed_by(UnlimitedWindows::from_ms(100)).count("since-launch").to_stream().to("counts")
/// })
/// .pipe("visits", [("a", 1, at(99)), ("a", 1, at(100)), ("a", 1, at(5_000)), ("a", 1, at(100))])
/// .gives("counts", [
///     (window("a", 100), 1, at(100)),
///     (window("a", 100), 2, at(5_000)),
///     (window("a", 100), 3, at(5_000)),
/// ])
/// .dropped(0);
/// ```
///
/// Java counterpart: `UnlimitedWindows`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnlimitedWindows {
    start_ms: i64,
}

impl UnlimitedWindows {
    /// From the Unix epoch on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From an event time on, milliseconds since the Unix epoch. Java: `startOn`.
    #[must_use]
    pub fn from_ms(start_ms: i64) -> Self {
        UnlimitedWindows { start_ms }
    }

    /// What is wrong with the start, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        (self.start_ms < 0).then(|| format!("windows can't start before the epoch, at {} ms", self.start_ms))
    }
}

impl Enumerable for UnlimitedWindows {
    fn try_each<E>(&self, timestamp_ms: i64, mut each: impl FnMut(Window) -> Result<(), E>) -> Result<(), E> {
        if timestamp_ms < self.start_ms {
            return Ok(());
        }
        each(Window::new(self.start_ms, i64::MAX))
    }

    fn closing(&self) -> Closing {
        Closing {
            lag_ms: i64::MAX,
            end_is_inside: true,
            calendar: None,
        }
    }

    fn size_ms(&self) -> i64 {
        i64::MAX
    }

    fn advance_ms(&self) -> i64 {
        i64::MAX
    }
}
