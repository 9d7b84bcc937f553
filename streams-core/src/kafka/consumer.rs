//! The consumer: explicit assignments, batches grouped by partition, offsets of groups and logs.
//!
//! It never subscribes, stores offsets or commits: membership and positions belong to the runtime.

mod offsets;
mod slot;

use std::fmt;
use std::sync::Arc;

use super::deadline::Deadline;
use super::defaults;
use super::errors::{ClientError, fetch_error_kind};
use super::ffi::client::{Client, Kind};
use super::ffi::consume::{MessageBuffer, SignalledQueue};
use super::ffi::error::{NativeError, code};
use super::ffi::list::PartitionList;
use super::ffi::produce::Topic;
use super::ffi::signal::{Signal, Waker, Woken};
use crate::fetch::{FetchError, Fetched, PartitionId};

pub use offsets::CommittedOffset;
use slot::{Slot, fetch_error};

/// The most messages taken from a queue in one call, so the most records in one [`PartitionBatch`](crate::fetch::PartitionBatch).
pub const MAX_BATCH_RECORDS: usize = 4096;

/// A partition to read, from an offset given explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedPartition {
    /// The topic.
    pub topic: String,
    /// The partition number.
    pub partition: i32,
    /// The first offset to read, ≥ 0. Resetting a missing or refused offset is the caller's decision.
    pub start_offset: i64,
    /// The number under which records, marks and errors of this partition are handed out.
    pub id: PartitionId,
    /// The incarnation that is handed out with them.
    pub incarnation: u64,
}

/// Reads assigned partitions in batches.
///
/// Records of a partition come in the order of its log, and an end-of-partition mark comes behind the records before
/// it. What was fetched under an assignment that has been replaced is never handed out.
///
/// Java counterpart: the consumer of `org.apache.kafka.streams.processor.internals.StreamThread`.
pub struct BatchConsumer {
    client: Arc<Client>,
    events: SignalledQueue,
    slots: Vec<Slot>,
    next: usize,
    waker: Arc<Waker>,
    buffer: MessageBuffer,
    group_id: String,
    /// Handles of the topics that were named, by name.
    known: Vec<(String, Topic)>,
}

impl fmt::Debug for BatchConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchConsumer")
            .field("group_id", &self.group_id)
            .field("assigned", &self.slots.len())
            .finish_non_exhaustive()
    }
}

impl BatchConsumer {
    /// A consumer with librdkafka's property names. `group.id` is required, also for a consumer that never looks at a
    /// group's offsets: librdkafka assigns partitions only with one. See [`defaults`] for what is set otherwise.
    ///
    /// # Errors
    /// A property that librdkafka does not know or accept.
    pub fn new(config: &[(String, String)]) -> Result<Self, ClientError> {
        const MAKING: &str = "making a consumer";
        let group_id = config
            .iter()
            .rev()
            .find(|(name, _)| name == "group.id")
            .map(|(_, value)| value.clone());
        let group_id = group_id.ok_or_else(|| ClientError::invalid(MAKING, "", "group.id is not set"))?;
        let failed = |error| ClientError::new(MAKING, &group_id, error);
        let merged = defaults::merge(defaults::CONSUMER, config, defaults::CONSUMER_MANDATORY);
        let client = Arc::new(Client::new(Kind::Consumer, &merged).map_err(failed)?);
        client.poll_set_consumer().map_err(failed)?;
        let waker = Arc::new(Waker::default());
        let events = SignalledQueue::of_consumer(&client, Signal::new(Arc::clone(&waker))).map_err(failed)?;
        let buffer = MessageBuffer::new(MAX_BATCH_RECORDS);
        Ok(BatchConsumer {
            client,
            events,
            slots: Vec::new(),
            next: 0,
            waker,
            buffer,
            group_id,
            known: Vec::new(),
        })
    }

    /// Names topics that will be assigned, so that their partitions' leaders are known by then: librdkafka asks for the
    /// metadata of a topic that it has heard of as soon as it is connected, and otherwise up to a second after the
    /// assignment. A topic that does not exist is no error; it is asked for again.
    pub fn know<'t>(&mut self, topics: impl IntoIterator<Item = &'t str>) {
        for name in topics {
            if self.known.iter().any(|(known, _)| known == name) {
                continue;
            }
            match Topic::new(&self.client, name) {
                Ok(topic) => self.known.push((name.to_owned(), topic)),
                Err(error) => tracing::debug!(topic = name, ?error, "the topic's leaders are looked for later"),
            }
        }
    }

    /// Replaces the whole assignment. Everything fetched before is dropped, also for partitions that stay: they are
    /// read again from their new start. Paused partitions are resumed.
    ///
    /// # Errors
    /// A negative start offset, or librdkafka's refusal; then nothing is assigned.
    pub fn assign(&mut self, partitions: &[AssignedPartition]) -> Result<(), ClientError> {
        let list = start_list(partitions)?;
        self.client.assign(None).map_err(|error| assign_error("", error))?;
        self.discard_slots(|_| true);
        let slots = self.new_slots(partitions)?;
        self.client
            .assign(Some(&list))
            .map_err(|error| assign_error("", error))?;
        self.slots = slots;
        Ok(())
    }

    /// Adds partitions and leaves the others as they are.
    ///
    /// # Errors
    /// A negative start offset, a partition that is assigned already, or librdkafka's refusal; then nothing is added.
    pub fn incremental_assign(&mut self, partitions: &[AssignedPartition]) -> Result<(), ClientError> {
        if partitions.is_empty() {
            return Ok(());
        }
        let known = |new: &AssignedPartition| {
            self.slots.iter().any(|slot| {
                slot.partition.id == new.id
                    || (slot.partition.partition == new.partition && slot.partition.topic == new.topic)
            })
        };
        if let Some(twice) = partitions.iter().find(|new| known(new)) {
            let subject = format!("{}-{}", twice.topic, twice.partition);
            return Err(ClientError::invalid(
                ASSIGNING,
                subject,
                "the partition or its id is assigned already",
            ));
        }
        let list = start_list(partitions)?;
        let slots = self.new_slots(partitions)?;
        self.client
            .incremental_assign(&list)
            .map_err(|error| assign_error("", error))?;
        self.slots.extend(slots);
        Ok(())
    }

    /// Takes partitions away and drops what was fetched for them; unknown ids are left out.
    ///
    /// # Errors
    /// librdkafka's refusal.
    pub fn incremental_unassign(&mut self, ids: &[PartitionId]) -> Result<(), ClientError> {
        let leaving = |slot: &Slot| ids.contains(&slot.partition.id);
        let gone: Vec<_> = self
            .slots
            .iter()
            .filter(|slot| leaving(slot))
            .map(|slot| slot.partition.clone())
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        let list = start_list(&gone)?;
        self.client
            .incremental_unassign(&list)
            .map_err(|error| assign_error("", error))?;
        self.discard_slots(leaving);
        Ok(())
    }

    /// Stops handing out records of these partitions. What librdkafka has fetched is kept, up to the limits of the
    /// partition's queue, so a pause costs nothing.
    pub fn pause(&mut self, ids: &[PartitionId]) {
        self.set_paused(ids, true);
    }

    /// Hands out records of these partitions again.
    pub fn resume(&mut self, ids: &[PartitionId]) {
        self.set_paused(ids, false);
    }

    fn set_paused(&mut self, ids: &[PartitionId], paused: bool) {
        for slot in self.slots.iter_mut().filter(|slot| ids.contains(&slot.partition.id)) {
            slot.paused = paused;
        }
    }

    /// Appends what is there to `out`, up to `max` records, waiting up to `timeout_ms` when there is nothing. Returns
    /// the number of records; end-of-partition marks and errors come beside them, so `out` may grow although it is 0.
    ///
    /// # Errors
    /// Only that the client can't go on; errors of partitions are elements of `out`.
    pub fn fetch(&mut self, max: usize, timeout_ms: u64, out: &mut Vec<Fetched>) -> Result<usize, ClientError> {
        let before = out.len();
        let deadline = Deadline::after_ms(timeout_ms);
        loop {
            self.serve_events(out);
            let records = self.sweep(max, out);
            let remaining_ms = deadline.remaining_ms();
            if out.len() > before || remaining_ms == 0 {
                return match self.client.fatal_error() {
                    Some((code, message)) if out.len() == before => {
                        let error = NativeError {
                            fatal: true,
                            ..NativeError::new(code, message)
                        };
                        Err(ClientError::new("fetching", "", error))
                    }
                    _ => Ok(records),
                };
            }
            if self.waker.wait(remaining_ms) == Woken::Interrupt {
                return Ok(records);
            }
        }
    }

    /// Ends a [`fetch`](Self::fetch) that is waiting in another thread; may be called at any time.
    #[must_use]
    pub fn wake_handle(&self) -> WakeHandle {
        WakeHandle(Arc::clone(&self.waker))
    }

    /// The latest statistics as JSON, once each, if `statistics.interval.ms` is set and [`fetch`](Self::fetch) runs.
    #[must_use]
    pub fn take_statistics(&self) -> Option<String> {
        self.client.take_statistics()
    }

    fn new_slots(&self, partitions: &[AssignedPartition]) -> Result<Vec<Slot>, ClientError> {
        let slot = |partition: &AssignedPartition| {
            let signal = Signal::new(Arc::clone(&self.waker));
            let queue = SignalledQueue::of_partition(&self.client, &partition.topic, partition.partition, signal)
                .map_err(|error| assign_error(&partition.topic, error))?;
            Ok(Slot {
                partition: partition.clone(),
                queue,
                paused: false,
            })
        };
        partitions.iter().map(slot).collect()
    }

    /// Lets go of slots whose partitions were just taken away. Their queued records are outdated now: reading the
    /// queue drops them, where otherwise they would stay in memory and count against the queue's limits.
    fn discard_slots(&mut self, leaving: impl Fn(&Slot) -> bool) {
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.slots)
            .into_iter()
            .partition(|slot| leaving(slot));
        self.slots = kept;
        for slot in gone {
            while slot.queue.take(&mut self.buffer, MAX_BATCH_RECORDS).len() == MAX_BATCH_RECORDS {}
        }
    }

    /// Errors that concern no partition; statistics and log callbacks are served on the way.
    fn serve_events(&mut self, out: &mut Vec<Fetched>) {
        if !self.events.signal().take() {
            return;
        }
        let messages = self.events.take(&mut self.buffer, MAX_BATCH_RECORDS);
        if messages.len() == MAX_BATCH_RECORDS {
            self.events.signal().keep();
        }
        for message in messages.iter().filter(|message| message.code() != code::NO_ERROR) {
            out.push(Fetched::Error(fetch_error(None, &message)));
        }
        drop(messages);
        self.take_errors(None, out);
    }

    /// Hands out the errors that came up while a queue was read, as errors of that queue's partition.
    fn take_errors(&self, partition: Option<(PartitionId, u64)>, out: &mut Vec<Fetched>) {
        for error in self.client.take_errors() {
            let kind = fetch_error_kind(error.code, -1);
            out.push(Fetched::Error(FetchError {
                partition,
                kind,
                message: error.message,
            }));
        }
    }

    /// Reads every partition that has something, each call beginning with the next one, so that none is starved.
    fn sweep(&mut self, max: usize, out: &mut Vec<Fetched>) -> usize {
        let mut records = 0;
        let count = self.slots.len();
        let first = self.next;
        self.next = if first + 1 < count { first + 1 } else { 0 };
        for index in (first..count).chain(0..first.min(count)) {
            let Some(slot) = self.slots.get(index).filter(|slot| !slot.paused) else {
                continue;
            };
            if records >= max {
                break;
            }
            if slot.queue.signal().take() {
                records += slot.read(&mut self.buffer, max - records, out);
                self.take_errors(Some((slot.partition.id, slot.partition.incarnation)), out);
            }
        }
        records
    }
}

/// Ends a waiting [`BatchConsumer::fetch`] from another thread.
#[derive(Clone, Debug)]
pub struct WakeHandle(Arc<Waker>);

impl WakeHandle {
    /// Lets the running `fetch`, or else the next one that would wait, return without waiting further.
    pub fn wake(&self) {
        self.0.interrupt();
    }
}

const ASSIGNING: &str = "assigning";

fn assign_error(subject: &str, error: NativeError) -> ClientError {
    ClientError::new(ASSIGNING, subject, error)
}

fn start_list(partitions: &[AssignedPartition]) -> Result<PartitionList, ClientError> {
    let mut list = PartitionList::with_capacity(partitions.len()).map_err(|error| assign_error("", error))?;
    for partition in partitions {
        let subject = format!("{}-{}", partition.topic, partition.partition);
        if partition.start_offset < 0 {
            let message = format!(
                "start offset {} is not an offset: resolve it first",
                partition.start_offset
            );
            return Err(ClientError::invalid(ASSIGNING, subject, message));
        }
        list.add(&partition.topic, partition.partition, partition.start_offset, -1)
            .map_err(|error| assign_error(&subject, error))?;
    }
    Ok(list)
}
