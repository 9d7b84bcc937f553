//! Which record a task takes next: the one with the smallest event time, and whether it may take one at all.
//!
//! Java counterpart: `processor.internals.PartitionGroup` (`readyToProcess`, KIP-695).

use super::queue::PartitionQueue;

/// Whether a task may process now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Every input has a record, or waiting is over.
    Ready,
    /// As `Ready`, but an input without records was waited for in vain (`enforced-processing`).
    Enforced,
    /// Nothing to process.
    Empty,
    /// An input may still deliver older records; wait at most until this time (ms since the Unix epoch), if there is one.
    Waiting(Option<i64>),
}

/// Decides by `max.task.idle.ms`: -1 never waits; otherwise an empty input whose broker may still hold records is waited
/// for without limit, and a drained one for `max_idle_ms` after it was first seen drained.
#[derive(Debug, Default)]
pub(crate) struct IdleClock {
    idle_since_ms: Option<i64>,
}

impl IdleClock {
    pub(crate) fn readiness(&mut self, queues: &[PartitionQueue], max_idle_ms: i64, now_ms: i64) -> Readiness {
        if queues.iter().all(|queue| queue.ready() == 0) {
            return Readiness::Empty;
        }
        let empty = || queues.iter().filter(|queue| queue.ready() == 0);
        if empty().next().is_none() {
            self.idle_since_ms = None;
            return Readiness::Ready;
        }
        if max_idle_ms < 0 {
            return Readiness::Ready;
        }
        if !empty().all(PartitionQueue::is_drained) {
            return Readiness::Waiting(None);
        }
        let until_ms = self.idle_since_ms.get_or_insert(now_ms).saturating_add(max_idle_ms);
        match now_ms >= until_ms {
            true if max_idle_ms == 0 => Readiness::Ready,
            true => Readiness::Enforced,
            false => Readiness::Waiting(Some(until_ms)),
        }
    }
}

/// The queue whose head has the smallest event time; among equal ones the first, so that the choice is the same on
/// every replay.
pub(crate) fn smallest_head(queues: &[PartitionQueue]) -> Option<usize> {
    let heads = queues
        .iter()
        .enumerate()
        .filter_map(|(at, queue)| queue.head_timestamp_ms.map(|time| (time, at)));
    heads.min().map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::TopicPartition;
    use crate::fetch::{PartitionBatch, PartitionId};

    fn queues(records: [&[i64]; 2]) -> Vec<PartitionQueue> {
        let make = |(at, times): (usize, &&[i64])| {
            let id = PartitionId(u32::try_from(at).unwrap());
            let mut queue = PartitionQueue::unmetered(TopicPartition::new("in", 0), id, 0);
            let mut batch = PartitionBatch::new(id, 1);
            for (offset, time) in times.iter().enumerate() {
                assert!(batch.push(
                    i64::try_from(offset).unwrap(),
                    *time,
                    -1,
                    None,
                    None,
                    std::iter::empty::<(&str, _)>()
                ));
            }
            queue.push_records(batch);
            queue.head_timestamp_ms = times.first().copied();
            queue
        };
        records.iter().enumerate().map(make).collect()
    }

    #[test]
    fn the_smallest_event_time_goes_first_and_ties_go_to_the_first_partition() {
        assert_eq!(smallest_head(&queues([&[7], &[5]])), Some(1));
        assert_eq!(smallest_head(&queues([&[5], &[5]])), Some(0));
        assert_eq!(smallest_head(&queues([&[], &[]])), None);
    }

    #[test]
    fn an_input_that_may_still_deliver_is_waited_for_without_limit() {
        let mut clock = IdleClock::default();
        let mut queues = queues([&[5], &[]]);
        assert_eq!(clock.readiness(&queues, 0, 1_000), Readiness::Waiting(None));
        queues[1].push_eof(0);
        assert_eq!(clock.readiness(&queues, 0, 1_000), Readiness::Ready);
    }

    #[test]
    fn a_drained_input_is_waited_for_as_long_as_max_task_idle_says() {
        let mut clock = IdleClock::default();
        let mut queues = queues([&[5], &[]]);
        queues[1].push_eof(0);
        assert_eq!(clock.readiness(&queues, 100, 1_000), Readiness::Waiting(Some(1_100)));
        assert_eq!(clock.readiness(&queues, 100, 1_099), Readiness::Waiting(Some(1_100)));
        assert_eq!(clock.readiness(&queues, 100, 1_100), Readiness::Enforced);
        assert_eq!(clock.readiness(&queues, -1, 0), Readiness::Ready);
    }
}
