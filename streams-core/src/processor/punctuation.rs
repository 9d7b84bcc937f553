//! Punctuations: user code that runs by stream time or by wall clock, between records.
//!
//! Java counterpart: `processor.internals.PunctuationQueue` and `PunctuationSchedule`.

use std::rc::Rc;

use super::TaskContext;
use crate::error::ProcessResult;

/// By which clock a punctuation is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PunctuationType {
    /// The task's stream time: the highest event time taken from its inputs.
    StreamTime,
    /// The machine's clock.
    WallClockTime,
}

/// Names a schedule within its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PunctuatorId(pub(crate) u32);

pub(crate) type Callback = Rc<dyn Fn(&mut TaskContext, PunctuatorId, i64) -> ProcessResult>;

/// When schedules are due next, by name: wall clock or stream time, milliseconds.
pub(crate) type Schedules = Vec<(u32, i64)>;

struct Schedule {
    id: PunctuatorId,
    kind: PunctuationType,
    interval_ms: i64,
    next_ms: i64,
    callback: Callback,
}

/// The schedules of one task.
#[derive(Default)]
pub(crate) struct PunctuationQueue {
    schedules: Vec<Schedule>,
    made: u32,
}

impl PunctuationQueue {
    /// Adds a schedule. Stream time starts at 0, so that the first record fires it; wall clock one interval from now.
    pub(crate) fn add(
        &mut self,
        kind: PunctuationType,
        interval_ms: i64,
        now_ms: i64,
        callback: Callback,
    ) -> PunctuatorId {
        let next_ms = match kind {
            PunctuationType::StreamTime => 0,
            PunctuationType::WallClockTime => now_ms.saturating_add(interval_ms.max(1)),
        };
        self.add_at(kind, next_ms, interval_ms, callback)
    }

    /// Adds a schedule that fires at a start and whole intervals after it; `time_ms` is the clock's time, and what lies
    /// before it is over (KIP-1146).
    pub(crate) fn add_from(
        &mut self,
        kind: PunctuationType,
        (start_ms, interval_ms): (i64, i64),
        time_ms: i64,
        callback: Callback,
    ) -> PunctuatorId {
        let interval_ms = interval_ms.max(1);
        let behind_ms = time_ms.saturating_sub(start_ms).max(0);
        let passed = behind_ms / interval_ms + i64::from(behind_ms % interval_ms > 0);
        let next_ms = start_ms.saturating_add(passed.saturating_mul(interval_ms));
        self.add_at(kind, next_ms, interval_ms, callback)
    }

    fn add_at(&mut self, kind: PunctuationType, next_ms: i64, interval_ms: i64, callback: Callback) -> PunctuatorId {
        let id = PunctuatorId(self.made);
        self.made = self.made.wrapping_add(1);
        let interval_ms = interval_ms.max(1);
        self.schedules.push(Schedule {
            id,
            kind,
            interval_ms,
            next_ms,
            callback,
        });
        id
    }

    pub(crate) fn cancel(&mut self, id: PunctuatorId) {
        self.schedules.retain(|schedule| schedule.id != id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.schedules.is_empty()
    }

    /// When the next wall-clock punctuation is due.
    pub(crate) fn next_wall_clock_ms(&self) -> Option<i64> {
        let wall = self
            .schedules
            .iter()
            .filter(|schedule| schedule.kind == PunctuationType::WallClockTime);
        wall.map(|schedule| schedule.next_ms).min()
    }

    /// The earliest schedule that is due at `time_ms`, moved on to its next time. Missed intervals are not caught up.
    pub(crate) fn take_due(&mut self, kind: PunctuationType, time_ms: i64) -> Option<(PunctuatorId, Callback)> {
        let due = self
            .schedules
            .iter_mut()
            .filter(|s| s.kind == kind && s.next_ms <= time_ms);
        let schedule = due.min_by_key(|schedule| schedule.next_ms)?;
        let mut next_ms = schedule.next_ms.saturating_add(schedule.interval_ms);
        if next_ms <= time_ms {
            let missed = (time_ms - schedule.next_ms) / schedule.interval_ms;
            next_ms = schedule
                .next_ms
                .saturating_add((missed + 1).saturating_mul(schedule.interval_ms));
        }
        schedule.next_ms = next_ms;
        Some((schedule.id, Rc::clone(&schedule.callback)))
    }

    /// The next times of all schedules: what a commit keeps.
    pub(crate) fn next_times(&self) -> Schedules {
        let next = |schedule: &Schedule| (schedule.id.0, schedule.next_ms);
        self.schedules.iter().map(next).collect()
    }

    /// Puts schedules back to the times of the last commit, after an abort made the nodes anew: a punctuation whose work
    /// was aborted has to run again, and one whose work is committed must not. Schedules have the same names again,
    /// because `init` makes them in the same order; those that were made or cancelled later are left alone.
    pub(crate) fn reset_to(&mut self, committed: &Schedules) {
        for schedule in &mut self.schedules {
            let Some((_, next_ms)) = committed.iter().find(|(id, _)| *id == schedule.id.0) else {
                continue;
            };
            schedule.next_ms = match schedule.kind {
                PunctuationType::WallClockTime => schedule.next_ms.min(*next_ms),
                PunctuationType::StreamTime => schedule.next_ms.max(*next_ms),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn callback() -> Callback {
        Rc::new(|_, _, _| Ok(()))
    }

    #[test]
    fn stream_time_fires_with_the_first_record_and_does_not_catch_up() {
        let mut queue = PunctuationQueue::default();
        queue.add(PunctuationType::StreamTime, 100, 0, callback());
        assert!(queue.take_due(PunctuationType::StreamTime, 1_000).is_some());
        assert!(queue.take_due(PunctuationType::StreamTime, 1_000).is_none());
        assert_eq!(queue.next_times(), [(0, 1_100)]);
    }

    #[test]
    fn wall_clock_fires_one_interval_after_its_making() {
        let mut queue = PunctuationQueue::default();
        queue.add(PunctuationType::WallClockTime, 100, 1_000, callback());
        assert!(queue.take_due(PunctuationType::WallClockTime, 1_099).is_none());
        assert!(queue.take_due(PunctuationType::WallClockTime, 1_100).is_some());
        assert_eq!(queue.next_wall_clock_ms(), Some(1_200));
    }

    #[test]
    fn an_anchored_schedule_fires_at_its_start_and_whole_intervals_after_it() {
        let next = |start_ms, time_ms| {
            let mut queue = PunctuationQueue::default();
            queue.add_from(PunctuationType::WallClockTime, (start_ms, 100), time_ms, callback());
            queue.next_wall_clock_ms().unwrap()
        };
        assert_eq!(next(1_030, 500), 1_030);
        assert_eq!(next(1_030, 1_030), 1_030);
        assert_eq!(next(1_030, 1_031), 1_130);
        assert_eq!(next(30, 1_030), 1_030);
        assert_eq!(next(30, -1), 30);
    }

    #[test]
    fn an_abort_puts_wall_clock_schedules_back_so_that_their_work_is_done_again() {
        let mut queue = PunctuationQueue::default();
        queue.add(PunctuationType::WallClockTime, 3_600_000, 0, callback());
        let committed = queue.next_times();
        queue.take_due(PunctuationType::WallClockTime, 3_600_000).unwrap();
        let mut rebuilt = PunctuationQueue::default();
        rebuilt.add(PunctuationType::WallClockTime, 3_600_000, 3_600_001, callback());
        rebuilt.reset_to(&committed);
        assert!(rebuilt.take_due(PunctuationType::WallClockTime, 3_600_002).is_some());
    }

    #[test]
    fn rule_1_3_an_abort_does_not_fire_a_stream_time_punctuation_whose_work_is_committed() {
        let mut queue = PunctuationQueue::default();
        queue.add(PunctuationType::StreamTime, 100, 0, callback());
        queue.take_due(PunctuationType::StreamTime, 1_000).unwrap();
        let committed = queue.next_times();
        let mut rebuilt = PunctuationQueue::default();
        rebuilt.add(PunctuationType::StreamTime, 100, 0, callback());
        rebuilt.reset_to(&committed);
        assert!(rebuilt.take_due(PunctuationType::StreamTime, 1_050).is_none());
        assert!(rebuilt.take_due(PunctuationType::StreamTime, 1_100).is_some());
    }

    #[test]
    fn rule_1_3_a_cancelled_schedule_does_not_lend_its_time_to_the_next_one() {
        let mut queue = PunctuationQueue::default();
        let first = queue.add(PunctuationType::WallClockTime, 50, 0, callback());
        queue.add(PunctuationType::WallClockTime, 3_600_000, 0, callback());
        queue.cancel(first);
        let committed = queue.next_times();
        let mut rebuilt = PunctuationQueue::default();
        rebuilt.add(PunctuationType::WallClockTime, 50, 3_599_999, callback());
        rebuilt.add(PunctuationType::WallClockTime, 3_600_000, 3_599_999, callback());
        rebuilt.reset_to(&committed);
        assert_eq!(rebuilt.next_times(), [(0, 3_600_049), (1, 3_600_000)]);
    }

    #[test]
    fn a_cancelled_schedule_never_fires() {
        let mut queue = PunctuationQueue::default();
        let id = queue.add(PunctuationType::StreamTime, 1, 0, callback());
        queue.cancel(id);
        assert!(queue.is_empty());
        assert!(queue.take_due(PunctuationType::StreamTime, i64::MAX).is_none());
    }
}
