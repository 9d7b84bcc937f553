//! One assigned partition: its queue, and how what lies in it is handed out.

use super::{AssignedPartition, MAX_BATCH_RECORDS};
use crate::fetch::{FetchError, FetchErrorKind, Fetched, PartitionBatch, PartitionId};
use crate::kafka::errors::fetch_error_kind;
use crate::kafka::ffi::consume::{MessageBuffer, MessageRef, SignalledQueue};
use crate::kafka::ffi::error::{code, describe};

/// An assigned partition and its queue.
pub(super) struct Slot {
    pub(super) partition: AssignedPartition,
    pub(super) queue: SignalledQueue,
    pub(super) paused: bool,
}

impl Slot {
    /// Takes up to `max` messages and hands them out as runs of records with marks and errors between them.
    pub(super) fn read(&self, buffer: &mut MessageBuffer, max: usize, out: &mut Vec<Fetched>) -> usize {
        let max = max.min(MAX_BATCH_RECORDS);
        let messages = self.queue.take(buffer, max);
        if messages.len() == max {
            self.queue.signal().keep(); // there may be more
        }
        let (id, incarnation) = (self.partition.id, self.partition.incarnation);
        let bytes = messages
            .iter()
            .map(|message| length(message.key()) + length(message.value()))
            .sum();
        let mut run = PartitionBatch::with_capacity(id, incarnation, messages.len(), bytes);
        let mut records = 0;
        for message in messages.iter() {
            match message.code() {
                code::NO_ERROR if message.offset() >= self.partition.start_offset => {
                    records += 1;
                    if !append(&mut run, &message) {
                        hand_out(&mut run, out);
                        if !append(&mut run, &message) {
                            out.push(Fetched::Error(unreadable(self, &message)));
                        }
                    }
                }
                // Below the start: can only be left over from an assignment before this one.
                code::NO_ERROR => {}
                code::PARTITION_EOF => {
                    hand_out(&mut run, out);
                    out.push(Fetched::Eof {
                        partition: id,
                        incarnation,
                        offset: message.offset(),
                    });
                }
                _ => {
                    hand_out(&mut run, out);
                    out.push(Fetched::Error(fetch_error(Some((id, incarnation)), &message)));
                }
            }
        }
        hand_out(&mut run, out);
        records
    }
}

fn length(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(0, <[u8]>::len)
}

fn append(run: &mut PartitionBatch, message: &MessageRef<'_>) -> bool {
    let (offset, timestamp_ms, leader_epoch) = (message.offset(), message.timestamp_ms(), message.leader_epoch());
    run.push_named(
        offset,
        timestamp_ms,
        leader_epoch,
        message.key(),
        message.value(),
        message.headers(),
    )
}

/// Moves the run's records to `out` and leaves an empty run.
fn hand_out(run: &mut PartitionBatch, out: &mut Vec<Fetched>) {
    if !run.is_empty() {
        let empty = PartitionBatch::new(run.partition, run.incarnation);
        out.push(Fetched::Records(std::mem::replace(run, empty)));
    }
}

pub(super) fn fetch_error(partition: Option<(PartitionId, u64)>, message: &MessageRef<'_>) -> FetchError {
    let kind = fetch_error_kind(message.code(), message.offset());
    FetchError {
        partition,
        kind,
        message: message.error_text(),
    }
}

/// A record that does not fit into memory structures although Kafka let it through (2 GiB of headers).
fn unreadable(slot: &Slot, message: &MessageRef<'_>) -> FetchError {
    let partition = &slot.partition;
    FetchError {
        partition: Some((partition.id, partition.incarnation)),
        kind: FetchErrorKind::Other(code::MSG_SIZE_TOO_LARGE),
        message: format!(
            "{} ({}-{} at offset {})",
            describe(code::MSG_SIZE_TOO_LARGE),
            partition.topic,
            partition.partition,
            message.offset()
        ),
    }
}
