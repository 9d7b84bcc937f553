//! Windows of stream–stream joins.

use std::time::Duration;

use streams_core::codec::JoinSide;
use streams_core::stores::CloseTimes;

use super::millis;

/// Which records of two streams meet: a left record at `t` meets the right ones of its key from `t - before` to
/// `t + after`, both included; so a right record at `t` meets the left ones from `t - after` to `t + before`.
///
/// A record's window is closed when the join's stream time (the highest event time of both streams) is more than `after`
/// (of a left record; `before` of a right one) plus grace ahead of it: then no partner in time can come any more, and
/// a left or outer join emits the record without one.
///
/// ```
/// use streams_dsl::{JoinWindows, MINUTE, SECOND};
/// let within_ten_minutes = JoinWindows::of(10 * MINUTE).grace(30 * SECOND);
/// let paid_after_order = JoinWindows::of(10 * MINUTE).before(0 * SECOND);
/// assert_eq!(within_ten_minutes.size_ms(), 1_200_000);
/// assert_eq!(paid_after_order.size_ms(), 600_000);
/// ```
///
/// Java counterpart: `JoinWindows`, whose `ofTimeDifferenceWithNoGrace` this `of` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinWindows {
    before_ms: i64,
    after_ms: i64,
    grace_ms: i64,
}

impl JoinWindows {
    /// Records at most so far apart, in whole milliseconds, without grace.
    #[must_use]
    pub fn of(difference: Duration) -> Self {
        JoinWindows {
            before_ms: millis(difference),
            after_ms: millis(difference),
            grace_ms: 0,
        }
    }

    /// How much earlier than the left record the right one may be.
    #[must_use]
    pub fn before(mut self, difference: Duration) -> Self {
        self.before_ms = millis(difference);
        self
    }

    /// How much later than the left record the right one may be.
    #[must_use]
    pub fn after(mut self, difference: Duration) -> Self {
        self.after_ms = millis(difference);
        self
    }

    /// How long, by event time, partners may come late.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// `before + after` in milliseconds.
    #[must_use]
    pub fn size_ms(&self) -> i64 {
        self.before_ms.saturating_add(self.after_ms)
    }

    /// The grace in milliseconds.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// How long a record of either side may still meet a partner: `before + after + grace`.
    pub(crate) fn retention_ms(&self) -> i64 {
        self.size_ms().saturating_add(self.grace_ms)
    }

    /// The times (first, last; ms) of the partners of a record of `side`. None is before the epoch.
    pub(crate) fn partners_of(&self, side: JoinSide, timestamp_ms: i64) -> (i64, i64) {
        let (back, ahead) = match side {
            JoinSide::Left => (self.before_ms, self.after_ms),
            JoinSide::Right => (self.after_ms, self.before_ms),
        };
        (
            timestamp_ms.saturating_sub(back).max(0),
            timestamp_ms.saturating_add(ahead).max(0),
        )
    }

    /// The close times at a stream time: records of a side that are older are closed. One rule for what is emitted at
    /// once and what is emitted later.
    pub(crate) fn close_times(&self, stream_time_ms: i64) -> CloseTimes {
        let graced = stream_time_ms.saturating_sub(self.grace_ms);
        CloseTimes {
            left_ms: graced.saturating_sub(self.after_ms),
            right_ms: graced.saturating_sub(self.before_ms),
        }
    }

    /// Whether a record's window is closed at a stream time.
    pub(crate) fn is_closed(&self, side: JoinSide, timestamp_ms: i64, stream_time_ms: i64) -> bool {
        let close = self.close_times(stream_time_ms);
        match side {
            JoinSide::Left => timestamp_ms < close.left_ms,
            JoinSide::Right => timestamp_ms < close.right_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    fn windows() -> JoinWindows {
        JoinWindows::of(Duration::ZERO)
            .before(10 * MILLISECOND)
            .after(100 * MILLISECOND)
            .grace(5 * MILLISECOND)
    }

    #[test]
    fn two_records_find_each_other_from_both_sides_or_from_none() {
        let windows = windows();
        for (left, right) in (0..300)
            .step_by(7)
            .flat_map(|l| (0..300).step_by(3).map(move |r| (l, r)))
        {
            let (from, to) = windows.partners_of(JoinSide::Left, left);
            let (back_from, back_to) = windows.partners_of(JoinSide::Right, right);
            assert_eq!(
                (from..=to).contains(&right),
                (back_from..=back_to).contains(&left),
                "{left} {right}"
            );
        }
    }

    #[test]
    fn a_record_is_closed_exactly_when_no_partner_in_time_can_come() {
        let windows = windows();
        // A partner at the far end of the window, and late by all of the grace, comes at this stream time.
        assert!(!windows.is_closed(JoinSide::Left, 50, 50 + 100 + 5));
        assert!(windows.is_closed(JoinSide::Left, 50, 50 + 100 + 6));
        assert!(!windows.is_closed(JoinSide::Right, 50, 50 + 10 + 5));
        assert!(windows.is_closed(JoinSide::Right, 50, 50 + 10 + 6));
    }
}
