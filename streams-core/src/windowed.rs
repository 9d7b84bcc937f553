//! Windows and windowed keys.

use std::fmt;

/// A stretch of event time, milliseconds since the Unix epoch.
///
/// For time windows the end is exclusive, for session windows it is the time of the session's last record, as in
/// Java (`TimeWindow`, `SessionWindow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window {
    /// The first millisecond, inclusive.
    pub start_ms: i64,
    /// The end; see the type for whether it is inclusive.
    pub end_ms: i64,
}

impl Window {
    /// The window between two times (ms since the Unix epoch).
    #[must_use]
    pub fn new(start_ms: i64, end_ms: i64) -> Self {
        Window { start_ms, end_ms }
    }

    /// The time window of a size (ms) that starts at `start_ms`; an end beyond the last possible time is that time
    /// (`WindowKeySchema.timeWindowForSize`).
    #[must_use]
    pub fn of_size(start_ms: i64, size_ms: i64) -> Self {
        Window {
            start_ms,
            end_ms: start_ms.saturating_add(size_ms),
        }
    }
}

/// A key within a window: what a windowed aggregation is keyed by.
///
/// Read from a topic by its default serde its window has no end (`i64::MAX`), because topics hold the start alone:
/// [`TimeWindowed::of_size`](crate::serde::TimeWindowed::of_size) knows the end,
/// [`SessionWindowed`](crate::serde::SessionWindowed) reads the keys of session windows.
///
/// ```
/// use streams_core::windowed::{Window, Windowed};
/// assert_eq!(Windowed::new("carrier", Window::new(0, 60_000)).to_string(), "[carrier@0/60000]");
/// ```
///
/// Java counterpart: `org.apache.kafka.streams.kstream.Windowed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Windowed<K> {
    /// The key.
    pub key: K,
    /// The window.
    pub window: Window,
}

impl<K> Windowed<K> {
    /// A key within a window.
    pub fn new(key: K, window: Window) -> Self {
        Windowed { key, window }
    }
}

impl<K: fmt::Display> fmt::Display for Windowed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}@{}/{}]", self.key, self.window.start_ms, self.window.end_ms)
    }
}
