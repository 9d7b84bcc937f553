//! The fetched but unprocessed records of one input partition, with the position that a commit would name.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::TopicPartition;
use crate::fetch::{PartitionBatch, PartitionId};
use crate::metrics::meters::{NodeMeter, TopicMeter};

enum Element {
    Records(Rc<PartitionBatch>, usize),
    Eof(i64),
}

/// The next record of a queue: its run, and which one of it.
pub(crate) type Head<'q> = (&'q Rc<PartitionBatch>, usize);

/// The queue of one input partition.
pub(crate) struct PartitionQueue {
    pub(crate) topic_partition: TopicPartition,
    pub(crate) id: PartitionId,
    /// Which source node reads it.
    pub(crate) source: usize,
    /// What the source node measures, and what it takes from this topic.
    pub(crate) meters: (Rc<NodeMeter>, Rc<TopicMeter>),
    elements: VecDeque<Element>,
    buffered: usize,
    buffered_bytes: usize,
    next_offset: i64,
    leader_epoch: i32,
    drained: bool,
    /// Event time of the head, once the source node told it.
    pub(crate) head_timestamp_ms: Option<i64>,
    /// The highest event time seen in the partition; -1 before the first record.
    pub(crate) partition_time_ms: i64,
    /// What the group holds: the offset of the last commit known to have succeeded, with its metadata.
    pub(crate) committed: Option<i64>,
    /// At most once: how many of the waiting records are claimed. `None` = no claim is needed.
    claimed: Option<usize>,
}

impl PartitionQueue {
    /// An empty queue that starts at `start_offset`.
    pub(crate) fn new(
        topic_partition: TopicPartition,
        id: PartitionId,
        source: usize,
        start_offset: i64,
        meters: (Rc<NodeMeter>, Rc<TopicMeter>),
    ) -> Self {
        PartitionQueue {
            topic_partition,
            id,
            source,
            meters,
            elements: VecDeque::new(),
            buffered: 0,
            buffered_bytes: 0,
            next_offset: start_offset,
            leader_epoch: -1,
            drained: false,
            head_timestamp_ms: None,
            partition_time_ms: -1,
            committed: None,
            claimed: None,
        }
    }

    /// A queue of a source that nobody measures.
    #[cfg(test)]
    pub(crate) fn unmetered(topic_partition: TopicPartition, id: PartitionId, start_offset: i64) -> Self {
        use crate::metrics::meters::{Direction, TaskMeters};
        let meters = TaskMeters::default();
        let meters = (
            meters.node("source"),
            meters.topic("source", &topic_partition.topic, Direction::Consumed),
        );
        PartitionQueue::new(topic_partition, id, 0, start_offset, meters)
    }

    /// Adds a fetched run behind what is there.
    pub(crate) fn push_records(&mut self, batch: PartitionBatch) {
        if !batch.is_empty() {
            self.buffered += batch.len();
            self.buffered_bytes += batch.heap_bytes();
            self.drained = false;
            self.elements.push_back(Element::Records(Rc::new(batch), 0));
        }
    }

    /// Adds an end-of-partition mark behind what is there: it becomes the position only when everything before it was
    /// processed (design rule 1.8).
    pub(crate) fn push_eof(&mut self, offset: i64) {
        self.elements.push_back(Element::Eof(offset));
        self.pass_marks();
    }

    /// How many records wait.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered
    }

    /// From now on a record may be processed only once it is [claimed](Self::claim) (design rule 7).
    pub(crate) fn claim_first(&mut self) {
        self.claimed = Some(0);
    }

    /// How many of the waiting records may be processed.
    pub(crate) fn ready(&self) -> usize {
        self.claimed.unwrap_or(self.buffered)
    }

    /// What a claim of up to `most` waiting records would commit: the position behind them. `None` if that is committed.
    pub(crate) fn claimable(&self, most: usize) -> Option<i64> {
        let mut left = most;
        let mut behind = self.next_offset;
        for element in &self.elements {
            match element {
                Element::Records(batch, index) => {
                    let waiting = batch.len() - *index;
                    if waiting > left {
                        let next = batch.offset(index + left);
                        return (self.committed != Some(next)).then_some(next);
                    }
                    left -= waiting;
                    behind = batch.offset(batch.len() - 1) + 1;
                }
                Element::Eof(offset) => behind = behind.max(*offset),
            }
        }
        (self.committed != Some(behind)).then_some(behind)
    }

    /// The group holds `offset` now, by our own commit: the waiting records below it may be processed.
    pub(crate) fn claim(&mut self, offset: i64) {
        let below = |element: &Element| match element {
            Element::Records(batch, index) => (*index..batch.len())
                .take_while(|at| batch.offset(*at) < offset)
                .count(),
            Element::Eof(_) => 0,
        };
        self.claimed = Some(self.elements.iter().map(below).sum());
        self.committed = Some(offset);
    }

    /// The bytes of batches that are not whole processed.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buffered_bytes
    }

    /// Whether all that the broker had to give was processed.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained && self.buffered == 0
    }

    /// The next record.
    pub(crate) fn head(&self) -> Option<Head<'_>> {
        match self.elements.front() {
            Some(Element::Records(batch, index)) => Some((batch, *index)),
            _ => None,
        }
    }

    /// Takes the next record off: it counts as processed from now on.
    pub(crate) fn pop(&mut self) {
        if let Some(Element::Records(batch, index)) = self.elements.front_mut() {
            self.next_offset = batch.offset(*index) + 1;
            self.leader_epoch = batch.leader_epoch(*index);
            *index += 1;
            self.buffered -= 1;
            if let Some(claimed) = &mut self.claimed {
                *claimed = claimed.saturating_sub(1);
            }
            self.head_timestamp_ms = None;
            if *index >= batch.len() {
                self.buffered_bytes -= batch.heap_bytes();
                self.elements.pop_front();
            }
            self.pass_marks();
        }
    }

    fn pass_marks(&mut self) {
        while let Some(Element::Eof(offset)) = self.elements.front() {
            self.next_offset = self.next_offset.max(*offset);
            self.drained = true;
            self.elements.pop_front();
        }
    }

    /// What a commit names: the head's offset if there is one, else the position behind what was processed and the
    /// transaction markers passed. Never beyond an unprocessed record.
    pub(crate) fn position(&self) -> i64 {
        match self.elements.front() {
            Some(Element::Records(batch, index)) => batch.offset(*index),
            _ => self.next_offset,
        }
    }

    /// The leader epoch of the last processed record; -1 when unknown.
    pub(crate) fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn batch(offsets: std::ops::Range<i64>) -> PartitionBatch {
        let mut batch = PartitionBatch::new(PartitionId(0), 1);
        for offset in offsets {
            assert!(batch.push(offset, 0, 4, None, Some(b"v"), std::iter::empty::<(&str, _)>()));
        }
        batch
    }

    fn queue(start: i64) -> PartitionQueue {
        PartitionQueue::unmetered(TopicPartition::new("in", 0), PartitionId(0), start)
    }

    #[test]
    fn rule_1_8_an_eof_behind_unprocessed_records_never_moves_the_position_past_them() {
        let mut queue = queue(10);
        queue.push_records(batch(10..60));
        queue.push_eof(61);
        for _ in 10..31 {
            queue.pop();
        }
        assert_eq!(queue.position(), 31);
        assert!(!queue.is_drained());
        for _ in 31..60 {
            queue.pop();
        }
        assert_eq!((queue.position(), queue.is_drained()), (61, true));
    }

    #[test]
    fn rule_7_a_claim_names_what_lies_behind_the_records_about_to_be_processed_and_frees_only_them() {
        let mut queue = queue(10);
        queue.claim_first();
        queue.push_records(batch(10..13));
        queue.push_records(batch(20..23));
        assert_eq!((queue.ready(), queue.claimable(2)), (0, Some(12)));
        assert_eq!((queue.claimable(3), queue.claimable(4)), (Some(20), Some(21)));
        assert_eq!(queue.claimable(100), Some(23));
        queue.claim(21);
        assert_eq!((queue.ready(), queue.claimable(4)), (4, None));
        // What comes later is not part of it.
        queue.push_records(batch(23..25));
        for left in (0..4).rev() {
            queue.pop();
            assert_eq!(queue.ready(), left);
        }
        assert_eq!((queue.position(), queue.buffered()), (21, 4));
        assert_eq!(queue.claimable(100), Some(25));
    }

    #[test]
    fn rule_7_a_claim_passes_the_marks_behind_its_records() {
        let mut queue = queue(10);
        queue.claim_first();
        queue.push_records(batch(10..12));
        queue.push_eof(13);
        assert_eq!((queue.claimable(1), queue.claimable(2)), (Some(11), Some(13)));
        queue.claim(13);
        assert_eq!((queue.ready(), queue.claimable(2)), (2, None));
    }

    #[test]
    fn compacted_gaps_are_skipped_by_naming_the_head() {
        let mut queue = queue(0);
        queue.push_records(batch(3..5));
        assert_eq!(queue.position(), 3);
        queue.pop();
        queue.push_records(batch(9..10));
        queue.pop();
        assert_eq!(queue.position(), 9);
        assert_eq!(queue.leader_epoch(), 4);
    }

    #[test]
    fn an_empty_queue_is_not_drained_before_its_first_eof() {
        let mut queue = queue(7);
        assert!(!queue.is_drained());
        queue.push_eof(7);
        assert!(queue.is_drained());
        queue.push_records(batch(7..8));
        assert!(!queue.is_drained());
        queue.pop();
        assert!(
            !queue.is_drained(),
            "the record after the EOF was processed, but more may follow"
        );
    }
}
