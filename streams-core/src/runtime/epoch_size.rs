//! How many records an epoch may have after a transaction ran out of its time: half as many, and slowly more again (design
//! rule 1.11). Slow user code would otherwise meet the same records, and the same timeout, for ever.

/// What a commit that reached the bound adds to it: this part, at least one record.
const GROWTH: usize = 8;

/// The bound on the records of an epoch; none until a transaction ran out of its time.
#[derive(Debug, Default)]
pub(super) struct EpochSize {
    limit: Option<usize>,
    /// Where the bound goes away: as many records as an epoch had that ran out of its time.
    enough: usize,
    /// Records of the open epoch.
    records: usize,
    /// Records of the epoch that is being committed, if one is.
    closed: Option<usize>,
}

impl EpochSize {
    /// How many records the open epoch may still take.
    pub(super) fn room(&self) -> usize {
        self.limit
            .map_or(usize::MAX, |limit| limit.saturating_sub(self.records))
    }

    /// The bound, if there is one.
    pub(super) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Records were processed; answers whether the epoch is full.
    pub(super) fn processed(&mut self, records: usize) -> bool {
        self.records = self.records.saturating_add(records);
        records > 0 && self.room() == 0
    }

    /// The epoch is closed, and what is processed from now on belongs to the next.
    pub(super) fn closed(&mut self) {
        self.closed = Some(std::mem::take(&mut self.records));
    }

    /// The transaction ran out of its time, and what is not committed is given up. Answers the records that it had and that
    /// the next may have.
    pub(super) fn timed_out(&mut self) -> (usize, usize) {
        let records = self.closed.take().unwrap_or(self.records);
        let records = records.min(self.limit.unwrap_or(usize::MAX));
        let limit = (records / 2).max(1);
        self.enough = self.enough.max(records);
        self.limit = Some(limit);
        self.records = 0;
        (records, limit)
    }

    /// The closed epoch is committed: one that was full lets the next have a little more.
    pub(super) fn committed(&mut self) {
        let records = self.closed.take().unwrap_or(0);
        if let Some(limit) = self.limit.filter(|limit| records >= *limit) {
            let grown = limit + (limit / GROWTH).max(1);
            self.limit = (grown <= self.enough).then_some(grown);
            if self.limit.is_none() {
                self.enough = 0;
            }
        }
    }

    /// What is not committed is given up for another reason.
    pub(super) fn dropped(&mut self) {
        self.records = 0;
        self.closed = None;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::EpochSize;

    #[test]
    fn rule_1_11_each_timeout_halves_the_epoch_down_to_one_record() {
        let mut size = EpochSize::default();
        assert_eq!(size.room(), usize::MAX);
        assert!(!size.processed(1_000));
        let mut limits = Vec::new();
        for _ in 0..12 {
            let (_, limit) = size.timed_out();
            limits.push(limit);
            assert_eq!(size.room(), limit);
            assert!(size.processed(limit));
        }
        assert_eq!(limits, [500, 250, 125, 62, 31, 15, 7, 3, 1, 1, 1, 1]);
    }

    #[test]
    fn rule_1_11_full_epochs_that_commit_grow_it_back_until_it_is_as_it_was() {
        let mut size = EpochSize::default();
        size.processed(80);
        size.timed_out();
        let mut limits = Vec::new();
        while let Some(limit) = size.limit() {
            limits.push(limit);
            assert!(size.processed(limit));
            size.closed();
            size.committed();
        }
        assert_eq!(limits, [40, 45, 50, 56, 63, 70, 78]);
        assert_eq!(size.room(), usize::MAX);
    }

    #[test]
    fn rule_1_11_epochs_that_are_not_full_prove_nothing() {
        let mut size = EpochSize::default();
        size.processed(80);
        size.timed_out();
        for _ in 0..100 {
            size.processed(10);
            size.closed();
            size.committed();
        }
        assert_eq!(size.limit(), Some(40));
        size.processed(10);
        size.dropped();
        assert_eq!(size.room(), 40);
    }

    #[test]
    fn rule_1_11_what_is_processed_while_a_commit_is_on_its_way_counts_for_the_next_epoch() {
        let mut size = EpochSize::default();
        size.processed(80);
        size.timed_out();
        size.processed(40);
        size.closed();
        assert_eq!(size.room(), 40);
        size.processed(10);
        size.committed();
        assert_eq!((size.limit(), size.room()), (Some(45), 35));
        size.closed();
        size.processed(30);
        assert_eq!(size.timed_out(), (10, 5));
        assert_eq!(size.room(), 5);
    }
}
