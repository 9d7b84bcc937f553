//! A replay that does not move: somebody's transaction is open (design rule 5.1), or hangs (rule 5.2).

use crate::runtime::HANGING_MS;

/// After how long without progress people are told what is waited for, milliseconds.
const STALLED_MS: i64 = 5_000;

/// How long a replay has not moved. Times are milliseconds of one clock.
///
/// ```
/// use streams_core::restore::{Standstill, StandstillNews};
/// let mut standstill = Standstill::since(1_000);
/// assert_eq!(standstill.look(2_000), None);
/// assert_eq!(standstill.look(7_000), Some(StandstillNews::Waits));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    since_ms: i64,
    told: bool,
    hanging: bool,
}

/// What is to be told of a replay that does not move; each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandstillNews {
    /// It waits for an open transaction of another producer, which the broker ends at its timeout.
    Waits,
    /// It has waited for longer than any broker keeps a transaction open: the transaction hangs.
    Hangs,
}

impl Standstill {
    /// The replay begins now.
    #[must_use]
    pub fn since(now_ms: i64) -> Self {
        Standstill {
            since_ms: now_ms,
            told: false,
            hanging: false,
        }
    }

    /// The replay moved.
    pub fn moved(&mut self, now_ms: i64) {
        *self = Standstill::since(now_ms);
    }

    /// How long it has not moved, milliseconds.
    #[must_use]
    pub fn waited_ms(&self, now_ms: i64) -> i64 {
        now_ms - self.since_ms
    }

    /// Whether it has waited for longer than any broker keeps a transaction open.
    #[must_use]
    pub fn is_hanging(&self) -> bool {
        self.hanging
    }

    /// What is to be told now.
    pub fn look(&mut self, now_ms: i64) -> Option<StandstillNews> {
        let waited_ms = self.waited_ms(now_ms);
        if waited_ms >= HANGING_MS && !self.hanging {
            (self.told, self.hanging) = (true, true);
            return Some(StandstillNews::Hangs);
        }
        if waited_ms > STALLED_MS && !self.told {
            self.told = true;
            return Some(StandstillNews::Waits);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_5_1_a_restore_that_waits_is_told_of_once() {
        let mut standstill = Standstill::since(0);
        let news: Vec<_> = (0..60).filter_map(|second| standstill.look(second * 1_000)).collect();
        assert_eq!(news, [StandstillNews::Waits]);
        assert!(!standstill.is_hanging());
    }

    #[test]
    fn rule_5_2_a_restore_that_stands_for_15_minutes_hangs_until_it_moves() {
        let mut standstill = Standstill::since(0);
        let minutes = |range: std::ops::Range<i64>| range.map(|minute| minute * 60_000);
        let news: Vec<_> = minutes(0..15).filter_map(|now_ms| standstill.look(now_ms)).collect();
        assert_eq!((news, standstill.is_hanging()), (vec![StandstillNews::Waits], false));
        let news: Vec<_> = minutes(15..60).filter_map(|now_ms| standstill.look(now_ms)).collect();
        assert_eq!((news, standstill.is_hanging()), (vec![StandstillNews::Hangs], true));
        standstill.moved(3_600_000);
        assert!(!standstill.is_hanging());
        assert_eq!(standstill.look(3_600_000 + 840_000), Some(StandstillNews::Waits));
    }
}
