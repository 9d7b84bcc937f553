//! How a window's end follows from its start: stores and topics hold the start alone.

use std::fmt;

use crate::windowed::Window;

/// Windows whose length is not always the same, such as days and months in a time zone.
pub trait WindowRule: fmt::Debug + Send + Sync {
    /// The end (excluded) of the window that begins at `start_ms`; both ms since the Unix epoch.
    fn end_ms(&self, start_ms: i64) -> i64;

    /// No window is longer than this, ms.
    fn longest_ms(&self) -> i64;
}

/// How the end of a window is found.
#[derive(Clone, Copy, Debug)]
pub enum WindowEnds {
    /// All windows are of one size, ms.
    Size(i64),
    /// By a rule.
    Rule(&'static dyn WindowRule),
}

impl WindowEnds {
    /// The window that begins at `start_ms` (ms since the Unix epoch).
    #[must_use]
    pub fn window(self, start_ms: i64) -> Window {
        match self {
            WindowEnds::Size(size_ms) => Window::of_size(start_ms, size_ms),
            WindowEnds::Rule(rule) => Window::new(start_ms, rule.end_ms(start_ms)),
        }
    }

    /// No window is longer than this, ms.
    #[must_use]
    pub fn longest_ms(self) -> i64 {
        match self {
            WindowEnds::Size(size_ms) => size_ms,
            WindowEnds::Rule(rule) => rule.longest_ms(),
        }
    }
}
