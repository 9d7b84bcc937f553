//! Counting delivery reports by epoch.
//!
//! An epoch is what one transaction sends. Reports of an aborted epoch never count: its records will not be visible,
//! and offsets acknowledged in it must not become a store's position.

use std::collections::VecDeque;

use super::errors::{Reaction, delivery_reaction};
use super::ffi::error::name;
use super::ffi::produce::Delivery;

/// How many failures of an epoch are kept with their texts; further ones are only counted.
pub const MAX_FAILURES_KEPT: usize = 64;

/// Slots are small dense numbers; a larger one would make a table of this many entries per epoch.
pub const MAX_SLOT: u32 = 1 << 20;

/// How many finished epochs are kept for somebody to ask; the oldest goes first.
const MAX_EPOCHS: usize = 16;

/// What became of the records of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// How many records were acknowledged.
    pub acked: u64,
    /// How many were refused or gave up.
    pub failed_total: u64,
    /// The first [`MAX_FAILURES_KEPT`] of them.
    pub failed: Vec<DeliveryFailure>,
    highest: Vec<i64>,
}

/// A record that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record for {topic}-{partition} was not delivered: {message} ({name})")]
pub struct DeliveryFailure {
    /// The topic.
    pub topic: String,
    /// The partition; -1 when none was chosen yet.
    pub partition: i32,
    /// librdkafka's error number.
    pub code: i32,
    /// The number's name, such as `MSG_SIZE_TOO_LARGE`.
    pub name: String,
    /// The broker's words, or the description of the number.
    pub message: String,
    /// The record's slot.
    pub slot: u32,
}

impl DeliveryFailure {
    /// What this failure forces us to do.
    #[must_use]
    pub fn reaction(&self) -> Reaction {
        delivery_reaction(self.code)
    }
}

impl Reports {
    /// The highest acknowledged offset of a slot; `None` when nothing of it was acknowledged, or only without an offset
    /// (an idempotent retry that the broker had already).
    #[must_use]
    pub fn highest(&self, slot: u32) -> Option<i64> {
        self.highest.get(slot as usize).copied().filter(|offset| *offset >= 0)
    }

    /// All slots with an acknowledged offset, in ascending order.
    pub fn slots(&self) -> impl Iterator<Item = (u32, i64)> {
        (0u32..)
            .zip(&self.highest)
            .filter(|(_, offset)| **offset >= 0)
            .map(|(slot, offset)| (slot, *offset))
    }

    fn count(&mut self, slot: u32, delivery: &Delivery<'_>) {
        match delivery_reaction(delivery.code) {
            Reaction::Ignore if delivery.code != 0 => {}
            Reaction::Ignore => self.acknowledge(slot, delivery.offset),
            _ => {
                self.failed_total += 1;
                if self.failed.len() < MAX_FAILURES_KEPT {
                    self.failed.push(DeliveryFailure {
                        topic: delivery.topic(),
                        partition: delivery.partition,
                        code: delivery.code,
                        name: name(delivery.code),
                        message: delivery.error_text(),
                        slot,
                    });
                }
            }
        }
    }

    fn acknowledge(&mut self, slot: u32, offset: i64) {
        self.acked += 1;
        if slot == 0 || slot > MAX_SLOT {
            return;
        }
        let index = slot as usize;
        if self.highest.len() <= index {
            self.highest.resize(index + 1, -1);
        }
        if let Some(highest) = self.highest.get_mut(index) {
            *highest = offset.max(*highest);
        }
    }
}

/// The reports of the epochs that still matter.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    epochs: VecDeque<(u32, Reports)>,
    /// Reports of epochs below this one are dropped.
    first_valid: u32,
}

impl Tally {
    pub(crate) fn count(&mut self, delivery: &Delivery<'_>) {
        let (epoch, slot) = unpack(delivery.opaque);
        if let Some(reports) = self.reports(epoch) {
            reports.count(slot, delivery);
        }
    }

    /// Forgets everything up to and including `epoch`, also what still comes in.
    pub(crate) fn drop_through(&mut self, epoch: u32) {
        self.first_valid = self.first_valid.max(epoch.saturating_add(1));
        self.epochs.retain(|(known, _)| *known > epoch);
    }

    /// The reports of an epoch so far.
    pub(crate) fn get(&self, epoch: u32) -> Reports {
        let found = self.epochs.iter().find(|(known, _)| *known == epoch);
        found.map(|(_, reports)| reports.clone()).unwrap_or_default()
    }

    fn reports(&mut self, epoch: u32) -> Option<&mut Reports> {
        if epoch < self.first_valid {
            return None;
        }
        let known = self.epochs.iter().rposition(|(known, _)| *known == epoch);
        let index = known.unwrap_or_else(|| {
            if self.epochs.len() == MAX_EPOCHS {
                self.epochs.pop_front();
            }
            self.epochs.push_back((epoch, Reports::default()));
            self.epochs.len() - 1
        });
        self.epochs.get_mut(index).map(|(_, reports)| reports)
    }
}

/// Epoch and slot as the opaque number of a record.
pub(crate) fn pack(epoch: u32, slot: u32) -> u64 {
    (u64::from(epoch) << 32) | u64::from(slot)
}

fn unpack(opaque: u64) -> (u32, u32) {
    ((opaque >> 32) as u32, opaque as u32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn epoch_and_slot_survive_packing() {
        for pair in [(0, 0), (1, 2), (u32::MAX, 7), (7, u32::MAX)] {
            assert_eq!(unpack(pack(pair.0, pair.1)), pair);
        }
    }

    #[test]
    fn the_highest_offset_per_slot_counts_and_slot_zero_is_only_counted() {
        let mut reports = Reports::default();
        for (slot, offset) in [(2, 10), (2, 12), (2, 11), (0, 99), (5, 0), (3, -1)] {
            reports.acknowledge(slot, offset);
        }
        assert_eq!(reports.acked, 6);
        assert_eq!(reports.slots().collect::<Vec<_>>(), [(2, 12), (5, 0)]);
        assert_eq!(
            (reports.highest(0), reports.highest(3), reports.highest(77)),
            (None, None, None)
        );
    }

    #[test]
    fn rule_2_1_reports_of_an_aborted_epoch_are_dropped_also_late_ones() {
        let mut tally = Tally::default();
        tally.reports(3).unwrap().acknowledge(1, 5);
        tally.drop_through(3);
        assert_eq!(tally.get(3), Reports::default());
        assert!(tally.reports(3).is_none() && tally.reports(2).is_none());
        assert!(tally.reports(4).is_some());
    }

    #[test]
    fn only_the_latest_epochs_are_kept() {
        let mut tally = Tally::default();
        for epoch in 0..100 {
            tally.reports(epoch).unwrap().acknowledge(0, 1);
        }
        assert_eq!(tally.epochs.len(), MAX_EPOCHS);
        assert_eq!((tally.get(99).acked, tally.get(0).acked), (1, 0));
    }
}
