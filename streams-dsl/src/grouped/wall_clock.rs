//! Windows that close by the wall clock: `close_when_idle`, `close_by_wall_clock`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use streams_core::processor::{NodeBuilder, PunctuationType, TaskContext};
use streams_core::{Headers, ProcessResult};

use super::emission::{Ends, OpenClocks};
use super::session::SessionWindowedKStream;
use super::windowed::{EmitStrategy, TimeWindowedKStream};
use crate::graph::Graph;
use crate::windows::{Closing, millis};

/// How far behind the wall clock an operator's stream time may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WallClock {
    lag_ms: i64,
    /// Only while no record came for as long.
    when_idle: bool,
}

/// The wall clock when the last record came to an operator.
#[derive(Default)]
pub(super) struct LastRecord(Cell<i64>);

impl LastRecord {
    /// One comes now.
    pub(super) fn note(&self, cx: &TaskContext) {
        self.0.set(cx.now_ms());
    }
}

/// An operator that emits windows when they are closed.
pub(super) trait EmitsClosed {
    /// Emits the windows that end between two times, both included, each once, with these headers.
    fn emit(&self, cx: &mut TaskContext, ends: Ends, headers: &Headers) -> ProcessResult;

    /// When the last record came.
    fn last_record(&self) -> &LastRecord;
}

impl<K: 'static, V: 'static> TimeWindowedKStream<K, V> {
    /// Closes windows although no record comes that would: while none has come to the aggregation of a task for `idle` of
    /// wall-clock time, its stream time is at least the wall clock less `idle`. So the last results of a source that falls
    /// silent come out, `idle` after they are due. Takes [`EmitStrategy::OnWindowClose`].
    ///
    /// That a window was closed is decided once: the operator's time is committed with the offsets, in the transaction of the
    /// results. A crash before it takes back both, after it neither is done again, and records that come late for a window
    /// closed so are late for good, also after a restart or on another machine. (Under at-least-once a crash can repeat
    /// results, as everywhere.) What is read again by a reset of the group meets another wall clock, and may be late where
    /// it was not before. For event times that are close to the wall clock; while a backlog is read, nothing is idle.
    ///
    /// The wall clock is looked at every quarter of `idle`, at least every 10 seconds, at most ten times a second.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let minutes = b.stream::<String, i64>("usage").group_by_key().windowed_by(TimeWindows::of(MINUTE));
    ///     let final_counts = minutes.emit_strategy(EmitStrategy::OnWindowClose).close_when_idle(10 * SECOND).count("counts");
    ///     final_counts.to_stream().to("counts-by-minute")
    /// })
    /// .advance(5_000) // the wall clock is at 5 s, and so is the record
    /// .pipe("usage", [("a", 1, at(5_000))])
    /// .advance(64_000)
    /// .gives("counts-by-minute", [] as [(Windowed<&str>, i64, At); 0])
    /// .advance(1_000) // at 70 s the minute has been over for 10 s
    /// .gives("counts-by-minute", [(window("a", 0), 1, at(5_000))]);
    /// ```
    ///
    /// Not in Java.
    #[must_use]
    pub fn close_when_idle(mut self, idle: Duration) -> Self {
        self.wall = Some(WallClock::of(idle, true));
        self
    }

    /// As [`close_when_idle`](Self::close_when_idle), whether records come or not: stream time is at least the wall clock less
    /// `lag`. A record that is later than that (and the grace) is late, however many came before it, so a backlog from
    /// before `lag` is late as a whole.
    #[must_use]
    pub fn close_by_wall_clock(mut self, lag: Duration) -> Self {
        self.wall = Some(WallClock::of(lag, false));
        self
    }
}

impl<K: 'static, V: 'static> SessionWindowedKStream<K, V> {
    /// Closes sessions although no record comes that would; see [`TimeWindowedKStream::close_when_idle`].
    #[must_use]
    pub fn close_when_idle(mut self, idle: Duration) -> Self {
        self.wall = Some(WallClock::of(idle, true));
        self
    }

    /// Closes sessions by the wall clock; see [`TimeWindowedKStream::close_by_wall_clock`].
    #[must_use]
    pub fn close_by_wall_clock(mut self, lag: Duration) -> Self {
        self.wall = Some(WallClock::of(lag, false));
        self
    }
}

impl WallClock {
    fn of(lag: Duration, when_idle: bool) -> Self {
        WallClock {
            lag_ms: millis(lag),
            when_idle,
        }
    }

    /// Notes what is wrong: only what is emitted on close can be closed so.
    pub(super) fn check(wall: Option<WallClock>, emit: EmitStrategy, graph: &mut Graph) {
        if wall.is_some() && emit != EmitStrategy::OnWindowClose {
            graph.found(
                "windows that close by the wall clock must be emitted on close: use `EmitStrategy::OnWindowClose`",
            );
        }
    }

    /// Lets an operator look at the wall clock.
    pub(super) fn watch<N: EmitsClosed + 'static>(
        wall: Option<WallClock>,
        builder: &mut NodeBuilder<'_>,
        node: &Rc<N>,
        clocks: OpenClocks,
        closing: Closing,
    ) {
        let Some(wall) = wall else { return };
        let node = Rc::clone(node);
        builder.on_init(move |cx| {
            // Nobody knows when the last one came in the life before: it is waited for anew.
            node.last_record().note(cx);
            let interval_ms = (wall.lag_ms / 4).clamp(100, 10_000);
            cx.schedule(PunctuationType::WallClockTime, interval_ms, move |cx, _, now_ms| {
                wall.close(cx, now_ms, &*node, clocks, closing)
            });
            Ok(())
        });
    }

    /// Moves the operator's time on and emits what is closed then. Both are committed together: the time in the metadata of
    /// the offsets, which an epoch with a punctuation names in any case.
    fn close(
        self,
        cx: &mut TaskContext,
        now_ms: i64,
        node: &impl EmitsClosed,
        clocks: OpenClocks,
        closing: Closing,
    ) -> ProcessResult {
        let idle_ms = now_ms.saturating_sub(node.last_record().0.get());
        let time_ms = now_ms.saturating_sub(self.lag_ms);
        // Before the first record there is nothing to close, and no time to be late for.
        let observed = cx.observed(clocks.observed);
        if observed < 0 || time_ms <= observed || (self.when_idle && idle_ms < self.lag_ms) {
            return Ok(());
        }
        cx.observe(clocks.observed, time_ms);
        match clocks.take_closed(cx, closing) {
            Some(ends) => node.emit(cx, ends, Headers::empty()),
            None => Ok(()),
        }
    }
}
