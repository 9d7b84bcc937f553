//! Grouped streams in time windows.

use crate::config::Materialized;
use crate::stores::WindowSizes;
use crate::windows::{TimeWindows, millis};

use super::KGroupedStream;

/// A stream grouped by its keys and by time windows. Its aggregations are tables of [`Windowed`](crate::Windowed) keys.
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
    pub(super) windows: TimeWindows,
}

impl<K: 'static, V: 'static> KGroupedStream<K, V> {
    /// Groups by time windows too: each record is in every window that holds its event time.
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
    /// Java counterpart: `KGroupedStream.windowedBy(Windows)`.
    #[must_use]
    pub fn windowed_by(&self, windows: TimeWindows) -> TimeWindowedKStream<K, V> {
        if let Some(problem) = windows.problem() {
            self.stream.builder.with(|graph| graph.found(problem));
        }
        TimeWindowedKStream {
            grouped: self.clone(),
            windows,
        }
    }
}

impl<K: 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// The sizes of the store: rows are kept for size + grace, or longer if that is asked for.
    pub(super) fn store_sizes<A>(&self, materialized: &Materialized<K, A>) -> WindowSizes {
        let size_ms = self.windows.size_ms();
        let needed_ms = size_ms.saturating_add(self.windows.grace_ms());
        let retention_ms = materialized.retention.map_or(needed_ms, millis);
        if retention_ms < needed_ms {
            let sentence = format!(
                "the retention of {retention_ms} ms is too short: windows of {size_ms} ms with their grace need {needed_ms} ms"
            );
            self.grouped.stream.builder.with(|graph| graph.found(sentence));
        }
        WindowSizes { size_ms, retention_ms }
    }
}
