//! At most once: records are claimed by a commit of their offsets, and processed only after it is known to have succeeded
//! (design rule 7).
//!
//! A claim names exactly the records about to be processed, and the next one is made when their outputs are delivered and
//! their state is applied: a crash loses one claim at most. No record is processed twice, because a claim that succeeded is
//! never made again, and nobody reads below a committed offset.
//!
//! A claim whose outcome is unknown is read back. It has a number in its metadata that no other claim has: when the group
//! holds it, the claim was carried out while this member owned the task, so nobody else has claimed these records or will.
//! When the group holds something else, the claim may still be on its way, and could set the offset back under a later one.
//! Then this member leaves and joins under another id; what it sent is refused from then on.

use super::PAUSE_MS;
use super::offsets::wait;
use crate::TopicPartition;
use crate::error::ProcessResult;
use crate::fetch::PartitionId;
use crate::runtime::core::StreamThreadCore;
use crate::runtime::effect::{CallFailure, Effect, FailureClass};
use crate::runtime::recovery::stop;
use crate::runtime::slot::Slot;
use crate::runtime::step::Step;
use crate::task::{CommittedOffset, Task};

/// Offsets on their way to the group.
#[derive(Debug)]
pub(super) struct Claim {
    offsets: Vec<(PartitionId, CommittedOffset)>,
}

impl StreamThreadCore {
    /// At most once: whether claimed records wait to be processed. A thread that gives its tasks away processes them first.
    #[must_use]
    pub fn has_claimed(&self) -> bool {
        self.claims() && !self.plain.stalled && self.running().any(Task::has_claimed)
    }

    /// Whether nothing may be processed now: a claim of the member that we are no more may still be on its way.
    pub(in crate::runtime) fn is_rejoining(&self) -> bool {
        self.plain.rejoining
    }

    /// `done` records were processed. Where claimed ones wait all the same, they wait for others (`max.task.idle.ms`).
    pub(in crate::runtime) fn note_progress(&mut self, done: usize) {
        self.plain.stalled = done == 0;
    }

    /// The epoch of a claim is closed as soon as the claim is used up and there is more to claim. Otherwise as under the
    /// other guarantees.
    pub(in crate::runtime) fn is_claimed_epoch_due(&self, now_ms: i64) -> bool {
        let touched = self.running().any(Task::is_touched);
        let next = || self.running().any(Task::has_unclaimed);
        touched && (self.is_full() || (!self.has_claimed() && (next() || self.is_commit_due_by_time(now_ms))))
    }

    /// Whether to claim: there is something to claim, and all that was claimed before is processed and applied.
    pub(in crate::runtime) fn is_claim_due(&self, now_ms: i64) -> bool {
        if !self.claims() || self.plain.rejoining || self.closed.is_some() || self.has_claimed() {
            return false;
        }
        let touched = self.running().any(Task::is_touched);
        // Positions that only passed markers ride along at the interval, so that the lag reaches 0.
        let markers = || {
            now_ms - self.last_commit_ms >= self.settings.commit_interval_ms.max(1_000)
                && self.running().any(Task::has_passed_markers)
        };
        !touched && (self.running().any(Task::has_unclaimed) || markers())
    }

    /// The claim of what waits now, within the bounds of the queues.
    pub(in crate::runtime) fn claim_effect(&mut self) -> ProcessResult<Option<Effect>> {
        let (most, number) = (self.settings.buffered_records_per_partition, self.claim_number());
        let mut offsets = Vec::new();
        for task in self.running() {
            offsets.extend(task.claimable(most, number)?);
        }
        if offsets.is_empty() {
            return Ok(None);
        }
        let effect = Effect::CommitOffsets {
            offsets: offsets.iter().map(|(_, offset)| offset.clone()).collect(),
            group: self.group.clone(),
        };
        self.plain.claim = Some(Claim { offsets });
        Ok(Some(effect))
    }

    /// A number that no other claim has, of this member or of another: the member's id is random.
    fn claim_number(&mut self) -> i64 {
        self.plain.claims = self.plain.claims.wrapping_add(1);
        let id = self.group.member_id.as_bytes().iter();
        // FNV-1a, 64 bits.
        let bytes = id.chain(&self.plain.claims.to_be_bytes()).copied().collect::<Vec<u8>>();
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        i64::from_ne_bytes(hash.to_ne_bytes())
    }

    pub(super) fn claim_succeeded(&mut self) -> ProcessResult {
        let Some(claim) = self.plain.claim.take() else {
            return Ok(()); // the tasks were lost meanwhile: its records are lost with them
        };
        self.totals.commits += 1;
        self.plain.stalled = false;
        for (partition, committed) in claim.offsets {
            let Some(owned) = self.partitions.get(&partition) else {
                continue;
            };
            if self.plan.reads_repartition(&committed.topic_partition.topic) {
                self.purgeable.insert(committed.topic_partition, committed.offset);
            }
            if let Some(Slot::Running(task)) = self.tasks.get_mut(&owned.task) {
                task.claim(partition, committed.offset)?;
            }
        }
        Ok(())
    }

    pub(super) fn claim_refused(&mut self, failure: CallFailure, now_ms: i64) -> ProcessResult {
        if self.plain.claim.is_none() {
            match failure.class {
                FailureClass::Stop => return Err(stop(&Step::Claim, failure)),
                // Nobody waits for it, and yet it may be carried out some day.
                FailureClass::Unknown => self.join_anew(),
                _ => {}
            }
            return Ok(());
        }
        if failure.class == FailureClass::Stop {
            return Err(stop(&Step::Claim, failure));
        }
        if !self.may_try_again(now_ms) {
            return Err(self.waited_too_long("claiming records", &failure, now_ms));
        }
        tracing::info!(code = failure.code, message = failure.message, class = ?failure.class, "a claim did not succeed");
        match failure.class {
            // Not carried out, and nothing of it is on its way: another claim is made in its place.
            FailureClass::Retriable => {
                self.plain.claim = None;
                self.steps.push_front(wait(now_ms + PAUSE_MS, None));
            }
            FailureClass::StaleMember => {
                self.plain.claim = None;
                self.ask_for_epoch(now_ms);
            }
            _ => self.steps.push_front(Step::ReadBack),
        }
        Ok(())
    }

    /// Asks for what the group holds where the claim should be.
    pub(in crate::runtime) fn read_back_effect(&self) -> Option<Effect> {
        let claim = self.plain.claim.as_ref()?;
        let partitions = claim.offsets.iter().map(|(_, offset)| offset.topic_partition.clone());
        Some(Effect::FetchCommitted {
            partitions: partitions.collect(),
        })
    }

    pub(super) fn read_back(&mut self, found: &[(TopicPartition, Option<(i64, String)>)]) -> ProcessResult {
        let Some(claim) = &self.plain.claim else {
            return Ok(());
        };
        let holds = |(_, claimed): &(PartitionId, CommittedOffset)| {
            found.iter().any(|(topic_partition, committed)| {
                let same =
                    |(offset, metadata): &(i64, String)| *offset == claimed.offset && *metadata == claimed.metadata;
                *topic_partition == claimed.topic_partition && committed.as_ref().is_some_and(same)
            })
        };
        if claim.offsets.iter().all(holds) {
            tracing::info!("the claim whose answer was lost was carried out");
            return self.claim_succeeded();
        }
        tracing::warn!(
            "a claim was not carried out, or not yet: this member leaves the group and joins it anew, so that it never is"
        );
        self.join_anew();
        Ok(())
    }

    fn join_anew(&mut self) {
        self.plain.claim = None;
        self.plain.rejoining = true;
        self.steps.push_front(Step::Rejoin);
    }

    pub(super) fn read_back_failed(&mut self, failure: CallFailure, now_ms: i64) -> ProcessResult {
        if self.plain.claim.is_none() {
            return Ok(());
        }
        if failure.class != FailureClass::Retriable {
            return Err(stop(&Step::ReadBack, failure));
        }
        if !self.may_try_again(now_ms) {
            return Err(self.waited_too_long("reading a claim back", &failure, now_ms));
        }
        self.steps.push_front(Step::ReadBack);
        self.steps.push_front(wait(now_ms + PAUSE_MS, None));
        Ok(())
    }
}
