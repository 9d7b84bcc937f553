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

    /// The right record must be later than the left one, by at least `difference` (and by at most
    /// [`after`](Self::after)). Java: `before` with a negative duration.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let (sent, opened) = (b.stream::<String, i64>("sent"), b.stream::<String, i64>("opened"));
    ///     let not_at_once = JoinWindows::of(HOUR).later_by_at_least(MINUTE);
    ///     sent.join(&opened, |_mail, sent, opened| sent + opened, not_at_once).to("read")
    /// })
    /// .pipe("sent", [("m1", 1, at(0)), ("m2", 2, at(0))])
    /// .pipe("opened", [("m1", 10, at(59_999)), ("m2", 20, at(60_000))])
    /// .gives("read", [("m2", 22, at(60_000))]);
    /// ```
    #[must_use]
    pub fn later_by_at_least(mut self, difference: Duration) -> Self {
        self.before_ms = millis(difference).saturating_neg();
        self
    }

    /// The right record must be earlier than the left one, by at least `difference` (and by at most
    /// [`before`](Self::before)). Java: `after` with a negative duration.
    #[must_use]
    pub fn earlier_by_at_least(mut self, difference: Duration) -> Self {
        self.after_ms = millis(difference).saturating_neg();
        self
    }

    /// How long, by event time, partners may come late.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace_ms = millis(grace);
        self
    }

    /// `before + after` in milliseconds; what one of them demands is subtracted.
    #[must_use]
    pub fn size_ms(&self) -> i64 {
        self.before_ms.saturating_add(self.after_ms)
    }

    /// The grace in milliseconds.
    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// How long a record of either side may still meet a partner: `before + after + grace`, as in Java. Where a side must be
    /// later by some time, the other one's records are needed for longer than that (Java loses these pairs).
    pub(crate) fn retention_ms(&self) -> i64 {
        let reach_ms = self.size_ms().max(self.before_ms).max(self.after_ms);
        reach_ms.saturating_add(self.grace_ms)
    }

    /// Whether two records of one time meet.
    pub(crate) fn hold_equal_times(&self) -> bool {
        self.before_ms >= 0 && self.after_ms >= 0
    }

    /// What is wrong with the bounds, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        (self.size_ms() < 0).then(|| {
            format!(
                "join windows that begin {} ms after a record and end {} ms after it hold nothing: let the far bound reach \
                 beyond what is demanded at least",
                self.before_ms.saturating_neg(),
                self.after_ms
            )
        })
    }

    /// The times (first, last; ms) of the partners of a record of `side`; there are none where the last is before the first.
    /// None is before the epoch.
    pub(crate) fn partners_of(&self, side: JoinSide, timestamp_ms: i64) -> (i64, i64) {
        let (back, ahead) = match side {
            JoinSide::Left => (self.before_ms, self.after_ms),
            JoinSide::Right => (self.after_ms, self.before_ms),
        };
        (
            timestamp_ms.saturating_sub(back).max(0),
            timestamp_ms.saturating_add(ahead),
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
        let later = windows().later_by_at_least(20 * MILLISECOND);
        let earlier = windows().before(90 * MILLISECOND).earlier_by_at_least(20 * MILLISECOND);
        for windows in [windows(), later, earlier] {
            for (left, right) in (0..300)
                .step_by(7)
                .flat_map(|l| (0..300).step_by(3).map(move |r| (l, r)))
            {
                let (from, to) = windows.partners_of(JoinSide::Left, left);
                let (back_from, back_to) = windows.partners_of(JoinSide::Right, right);
                let meet = (from..=to).contains(&right);
                assert_eq!(meet, (back_from..=back_to).contains(&left), "{left} {right}");
                let distance = right - left;
                assert_eq!(
                    meet,
                    distance >= -windows.before_ms && distance <= windows.after_ms,
                    "{left} {right}"
                );
            }
        }
    }

    #[test]
    fn a_record_is_kept_as_long_as_a_partner_can_come() {
        let later = JoinWindows::of(100 * MILLISECOND)
            .later_by_at_least(80 * MILLISECOND)
            .grace(5 * MILLISECOND);
        assert_eq!((later.size_ms(), later.retention_ms()), (20, 105));
        assert_eq!(windows().retention_ms(), 115);
    }

    #[test]
    fn bounds_that_hold_nothing_are_found() {
        let windows = JoinWindows::of(10 * MILLISECOND);
        assert!(windows.later_by_at_least(11 * MILLISECOND).problem().is_some());
        assert_eq!(windows.later_by_at_least(10 * MILLISECOND).problem(), None);
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
