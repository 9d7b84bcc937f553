//! Grouped streams in windows.

use std::time::Duration;

use streams_core::stores::WindowEnds;

use super::KGroupedStream;
use super::session::SessionWindowedKStream;
use super::wall_clock::WallClock;
use crate::config::Materialized;
use crate::stores::Shape;
use crate::windows::{
    CalendarWindows, Closing, Enumerable, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, millis,
};

/// When a windowed aggregation emits its results. Java counterpart: `EmitStrategy` (KIP-825).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmitStrategy {
    /// At each update of a window; with the cache on, at each commit.
    #[default]
    OnWindowUpdate,
    /// Once a window, when it is closed and a record comes: its final result, ordered by window and key. The cache is off
    /// then. How far it has emitted is committed with the offsets, so nothing is emitted twice or left out after a
    /// restart.
    ///
    /// Different from Java: a window is emitted whenever it closes, also when stream time leaps far beyond its retention,
    /// and at once, not once a second.
    OnWindowClose,
}

/// A stream grouped by its keys and by windows. Its aggregations are tables of [`Windowed`](crate::Windowed) keys.
///
/// On a topic such a key is the key's bytes and the window's start, without its end. A reader whose serde does not know the
/// size, as the default serde of `Windowed<K>`, reads `i64::MAX` as the end, as Java does; one that does is
/// [`TimeWindowed::of_size`](crate::serdes::TimeWindowed::of_size). Inside a topology the end is known.
///
/// ```
/// use streams_dsl::prelude::*;
/// use streams_dsl::serdes::{Long, Utf8};
///
/// let builder = StreamsBuilder::new();
/// let clicks = builder.stream::<String, String>("clicks").group_by_key().windowed_by(TimeWindows::of(MINUTE));
/// clicks.count("clicks-by-minute").to_stream().to("counts");
/// let mut driver = TopologyTestDriver::new(&builder.build()?, DriverOptions::default())?;
/// TestInput::<String, String>::of("clicks").pipe(&mut driver, "ann", "home".to_owned(), 61_000)?;
///
/// // The size is in milliseconds.
/// let counts = TestOutput::with("counts", TimeWindowed::of_size(Utf8, 60_000), Long);
/// let minute = Windowed::new("ann".to_owned(), Window::new(60_000, 120_000));
/// assert_eq!(counts.read_key_value(&mut driver)?, Some((minute, 1)));
/// # Ok::<(), BoxError>(())
/// ```
///
/// Java counterpart: `TimeWindowedKStream`; of the serde `WindowedSerdes.timeWindowedSerdeFrom`.
pub struct TimeWindowedKStream<K, V> {
    pub(super) grouped: KGroupedStream<K, V>,
    pub(super) windows: WindowKind,
    pub(super) emit: EmitStrategy,
    pub(super) wall: Option<WallClock>,
}

impl<K, V> Clone for TimeWindowedKStream<K, V> {
    fn clone(&self) -> Self {
        TimeWindowedKStream {
            grouped: self.grouped.clone(),
            windows: self.windows,
            emit: self.emit,
            wall: self.wall,
        }
    }
}

/// Which windows.
#[derive(Clone, Copy)]
pub(super) enum WindowKind {
    Time(TimeWindows),
    Calendar(CalendarWindows),
    Unlimited(UnlimitedWindows),
    Sliding(SlidingWindows),
}

/// What a grouped stream can be windowed by.
pub trait WindowsOf<K, V>: sealed::Sealed {
    /// The windowed stream.
    type Windowed;

    #[doc(hidden)]
    fn window(self, grouped: &KGroupedStream<K, V>) -> Self::Windowed;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::TimeWindows {}
    impl Sealed for super::CalendarWindows {}
    impl Sealed for super::UnlimitedWindows {}
    impl Sealed for super::SlidingWindows {}
    impl Sealed for super::SessionWindows {}
}

impl<K: 'static, V: 'static> WindowsOf<K, V> for TimeWindows {
    type Windowed = TimeWindowedKStream<K, V>;

    fn window(self, grouped: &KGroupedStream<K, V>) -> TimeWindowedKStream<K, V> {
        TimeWindowedKStream::of(grouped, WindowKind::Time(self), self.problem())
    }
}

impl<K: 'static, V: 'static> WindowsOf<K, V> for CalendarWindows {
    type Windowed = TimeWindowedKStream<K, V>;

    fn window(self, grouped: &KGroupedStream<K, V>) -> TimeWindowedKStream<K, V> {
        TimeWindowedKStream::of(grouped, WindowKind::Calendar(self), self.problem())
    }
}

impl<K: 'static, V: 'static> WindowsOf<K, V> for UnlimitedWindows {
    type Windowed = TimeWindowedKStream<K, V>;

    fn window(self, grouped: &KGroupedStream<K, V>) -> TimeWindowedKStream<K, V> {
        TimeWindowedKStream::of(grouped, WindowKind::Unlimited(self), self.problem())
    }
}

impl<K: 'static, V: 'static> WindowsOf<K, V> for SlidingWindows {
    type Windowed = TimeWindowedKStream<K, V>;

    fn window(self, grouped: &KGroupedStream<K, V>) -> TimeWindowedKStream<K, V> {
        TimeWindowedKStream::of(grouped, WindowKind::Sliding(self), None)
    }
}

impl<K: 'static, V: 'static> WindowsOf<K, V> for SessionWindows {
    type Windowed = SessionWindowedKStream<K, V>;

    fn window(self, grouped: &KGroupedStream<K, V>) -> SessionWindowedKStream<K, V> {
        SessionWindowedKStream::of(grouped, self)
    }
}

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Groups by windows too: by [`TimeWindows`], [`CalendarWindows`], [`UnlimitedWindows`] and [`SlidingWindows`], where each record is in
    /// every window that holds its event time, or by [`SessionWindows`], where it is in one session.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     b.stream::<String, i64>("usage")
    ///         .group_by_key()
    ///         .windowed_by(TimeWindows::of(HOUR).grace(5 * MINUTE))
    ///         .aggregate(|| 0, |_project, bytes, sum: i64| sum + bytes, "hourly-bytes")
    ///         .to_stream()
    ///         .to("usage-by-hour")
    /// })
    /// .pipe("usage", [("a", 1, at(0)), ("a", 2, at(3_600_000)), ("a", 3, at(9)), ("a", 4, at(3_900_000)), ("a", 5, at(9))])
    /// .gives("usage-by-hour", [
    ///     (window("a", 0), 1, at(0)),
    ///     (window("a", 3_600_000), 2, at(3_600_000)),
    ///     (window("a", 0), 4, at(9)),
    ///     (window("a", 3_600_000), 6, at(3_900_000)),
    /// ])
    /// .dropped(1);
    /// ```
    ///
    /// Java counterpart: `KGroupedStream.windowedBy`.
    #[must_use]
    pub fn windowed_by<W: WindowsOf<K, V>>(&self, windows: W) -> W::Windowed {
        windows.window(self)
    }
}

impl<K: 'static, V: 'static> TimeWindowedKStream<K, V> {
    fn of(grouped: &KGroupedStream<K, V>, windows: WindowKind, problem: Option<String>) -> Self {
        if let Some(problem) = problem {
            grouped.stream.builder.with(|graph| graph.found(problem));
        }
        TimeWindowedKStream {
            grouped: grouped.clone(),
            windows,
            emit: EmitStrategy::default(),
            wall: None,
        }
    }

    /// When results are emitted. Windows without an end are never closed, so they take only `OnWindowUpdate`.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     b.stream::<String, i64>("usage")
    ///         .group_by_key()
    ///         .windowed_by(TimeWindows::of(HOUR))
    ///         .emit_strategy(EmitStrategy::OnWindowClose)
    ///         .count("hourly")
    ///         .to_stream()
    ///         .to("final-counts")
    /// })
    /// .pipe("usage", [("b", 1, at(5)), ("a", 1, at(7)), ("b", 1, at(3)), ("a", 1, at(9 * 3_600_000))])
    /// .gives("final-counts", [(window("a", 0), 1, at(7)), (window("b", 0), 2, at(5))]);
    /// ```
    ///
    /// Java counterpart: `TimeWindowedKStream.emitStrategy`.
    #[must_use]
    pub fn emit_strategy(mut self, emit: EmitStrategy) -> Self {
        if emit == EmitStrategy::OnWindowClose && matches!(self.windows, WindowKind::Unlimited(_)) {
            let sentence = "unlimited windows are never closed: they can't be emitted on close";
            self.grouped.stream.builder.with(|graph| graph.found(sentence));
        }
        self.emit = emit;
        self
    }

    /// The store, and what follows from the windows alone.
    pub(super) fn sizes(&self, retention: Option<Duration>) -> (Shape, WindowEnds, Closing) {
        let on_close = self.emit == EmitStrategy::OnWindowClose;
        let builder = &self.grouped.stream.builder;
        builder.with(|graph| WallClock::check(self.wall, self.emit, graph));
        let (shape, ends, closing, too_short) = sizes(self.windows, on_close, retention);
        if let Some(problem) = too_short {
            builder.with(|graph| graph.found(problem));
        }
        (shape, ends, closing)
    }

    /// The materialization, with the cache off where results are emitted on close.
    pub(super) fn settings<A: 'static>(&self, materialized: Materialized<K, A>) -> Materialized<K, A> {
        match self.emit {
            EmitStrategy::OnWindowUpdate => materialized,
            EmitStrategy::OnWindowClose => materialized.caching(false),
        }
    }
}

/// The store: rows are kept for size + grace (Java: sliding windows for twice the difference), or longer if that is asked
/// for. The windows' ends and closing, and what is wrong with the retention, if anything.
pub(super) fn sizes(
    windows: WindowKind,
    on_close: bool,
    retention: Option<Duration>,
) -> (Shape, WindowEnds, Closing, Option<String>) {
    let (ends, needed_ms, bucket_ms, closing) = match windows {
        WindowKind::Time(windows) => {
            let needed_ms = windows.size_ms().saturating_add(windows.closing().longest_lag_ms());
            // A bucket for each start: what closes together lies together, by key, which is the order of emission.
            let aligned = on_close.then(|| windows.advance_ms());
            (
                WindowEnds::Size(windows.size_ms()),
                needed_ms,
                aligned,
                windows.closing(),
            )
        }
        WindowKind::Calendar(windows) => {
            let needed_ms = windows.size_ms().saturating_add(windows.closing().longest_lag_ms());
            let apart = on_close.then(|| windows.advance_ms());
            (windows.ends(), needed_ms, apart, windows.closing())
        }
        WindowKind::Unlimited(windows) => {
            let size_ms = windows.size_ms();
            (WindowEnds::Size(size_ms), size_ms, None, windows.closing())
        }
        WindowKind::Sliding(windows) => {
            let twice_ms = windows.difference_ms().saturating_mul(2);
            let needed_ms = twice_ms.saturating_add(windows.grace_ms());
            (
                WindowEnds::Size(windows.difference_ms()),
                needed_ms,
                None,
                windows.closing(),
            )
        }
    };
    let retention_ms = retention.map_or(needed_ms, millis);
    let too_short = (retention_ms < needed_ms).then(|| {
        format!(
            "the retention of {retention_ms} ms is too short: windows of {} ms with their grace need {needed_ms} ms",
            ends.longest_ms()
        )
    });
    let shape = Shape::Window {
        ends,
        retention_ms,
        bucket_ms,
    };
    (shape, ends, closing, too_short)
}
