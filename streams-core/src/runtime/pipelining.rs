//! Whether the next epoch may be processed beside a commit (design rule 1.11). The thread hears how a call of the commit
//! ended, and makes the next one, only between records. A commit has a few calls, so records that take a good part of the
//! transaction's time keep the transaction open until the broker ends it. After that, and where such records are seen, a
//! commit is waited for; and the more often it was wrong to stop waiting, the longer it is waited.

/// A record may take this part of the transaction's time: a commit waits for three of them, and for the broker.
const PART: i64 = 4;
/// Commits without a slow record before nothing is waited for again, the first time.
const FIRST_PAUSE: u32 = 8;
/// The most of them.
const LONGEST_PAUSE: u32 = 1_024;

/// What was seen of the time that records take. Times are milliseconds.
#[derive(Debug, Default)]
pub(super) struct Pipelining {
    /// When the records in hand were begun, until the time is told again.
    since_ms: Option<i64>,
    /// The longest that the thread heard nothing since the last commit.
    longest_ms: i64,
    /// Commits that are still waited for.
    pause: u32,
    /// How many that will be after the next time-out.
    next_pause: u32,
}

impl Pipelining {
    /// Records were processed, from this time on.
    pub(super) fn processed(&mut self, began_ms: i64) {
        self.since_ms.get_or_insert(began_ms);
    }

    /// The time is told: the records are done.
    pub(super) fn told(&mut self, now_ms: i64) {
        if let Some(since_ms) = self.since_ms.take() {
            self.longest_ms = self.longest_ms.max(now_ms - since_ms);
        }
    }

    /// Whether records that take as long as those seen may be processed beside a commit.
    pub(super) fn may(&self, transaction_timeout_ms: i64) -> bool {
        self.pause == 0 && self.fits(transaction_timeout_ms)
    }

    fn fits(&self, transaction_timeout_ms: i64) -> bool {
        self.longest_ms <= transaction_timeout_ms / PART
    }

    /// A transaction ran out of its time.
    pub(super) fn timed_out(&mut self) {
        self.next_pause = self.next_pause.saturating_mul(2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.pause = self.next_pause;
    }

    /// An epoch is committed.
    pub(super) fn committed(&mut self, transaction_timeout_ms: i64) {
        if self.fits(transaction_timeout_ms) {
            self.pause = self.pause.saturating_sub(1);
        } else {
            self.pause = self.next_pause.max(FIRST_PAUSE);
        }
        self.longest_ms = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Pipelining;

    const TIMEOUT_MS: i64 = 10_000;

    fn record(pipelining: &mut Pipelining, took_ms: i64) {
        pipelining.processed(1_000);
        pipelining.told(1_000 + took_ms);
    }

    /// Commits with such records until nothing is waited for again.
    fn commits_until_free(pipelining: &mut Pipelining, took_ms: i64) -> u32 {
        let mut commits = 0;
        while !pipelining.may(TIMEOUT_MS) {
            record(pipelining, took_ms);
            pipelining.committed(TIMEOUT_MS);
            commits += 1;
            assert!(commits < 10_000, "never");
        }
        commits
    }

    #[test]
    fn rule_1_11_a_record_that_takes_a_good_part_of_the_transaction_is_seen_before_it_does_harm() {
        let mut pipelining = Pipelining::default();
        record(&mut pipelining, 2_500);
        assert!(pipelining.may(TIMEOUT_MS));
        record(&mut pipelining, 2_501);
        assert!(!pipelining.may(TIMEOUT_MS));
        pipelining.committed(TIMEOUT_MS);
        assert!(!pipelining.may(TIMEOUT_MS), "the next may be as slow");
        assert_eq!(commits_until_free(&mut pipelining, 10), 8);
    }

    #[test]
    fn rule_1_11_each_time_out_makes_it_wait_twice_as_long_up_to_a_bound() {
        let mut pipelining = Pipelining::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pipelining.timed_out();
            pauses.push(commits_until_free(&mut pipelining, 10));
        }
        assert_eq!(pauses, [8, 16, 32, 64, 128, 256, 512, 1_024, 1_024]);
    }

    #[test]
    fn a_time_that_is_told_without_a_record_says_nothing() {
        let mut pipelining = Pipelining::default();
        pipelining.told(1_000_000);
        assert!(pipelining.may(TIMEOUT_MS));
    }
}
