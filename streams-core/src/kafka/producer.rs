//! The producer: sends outboxes, counts delivery reports, commits and aborts.
//!
//! One thread serves librdkafka's events all the time. Without it a commit waits in slices of 100 ms and an abort
//! hangs while delivery reports are pending.

mod types;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::deadline::{Deadline, native_ms};
use super::defaults;
use super::errors::TxnError;
use super::ffi::client::{Client, Kind};
use super::ffi::error::{NativeError, code, name};
use super::ffi::list::PartitionList;
use super::ffi::produce::{EventQueue, GroupMetadata, Topic};
use super::tally::{Tally, pack};
use crate::outbox::{OutRecord, Outbox};

pub use types::{GroupIdentity, OffsetCommit, SendError};

pub use super::tally::{DeliveryFailure, MAX_FAILURES_KEPT, MAX_SLOT, Reports};

/// How long the event thread waits for an event before it looks whether it should end.
const EVENT_WAIT_MS: i32 = 100;

/// The longest single wait inside librdkafka; between slices a deadline or a failure can be noticed.
const SLICE_MS: i32 = 1_000;

/// The pause before a call that failed at once with a retriable error is made again.
const RETRY_PAUSE_MS: u64 = 10;

/// How long a send may wait for room in librdkafka's queue, if nothing else was set.
pub const DEFAULT_SEND_WAIT_MS: u64 = 60_000;

/// A transactional or merely idempotent producer, and the thread that serves its events.
///
/// With `transactional.id` set: [`init_transactions`](Self::init_transactions) once, then
/// [`begin`](Self::begin), [`send_all`](Self::send_all), [`flush`](Self::flush),
/// [`send_offsets`](Self::send_offsets), [`commit`](Self::commit), and so on. Without it: `begin` only starts a new
/// epoch of reports, and there is nothing to commit or abort.
///
/// Java counterpart: `org.apache.kafka.streams.processor.internals.StreamsProducer`.
#[derive(Debug)]
pub struct TransactionalProducer {
    topics: HashMap<Arc<str>, Topic>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    events: Arc<EventQueue>,
    epoch: AtomicU32,
    transactional: bool,
    send_wait_ms: u64,
    client: Arc<Client>,
}

#[derive(Debug, Default)]
struct Shared {
    tally: Mutex<Tally>,
    progress: Condvar,
    stop: AtomicBool,
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until reports came in, at most `timeout_ms`.
    fn wait_progress(&self, timeout_ms: u64) {
        let guard = self
            .progress
            .wait_timeout(self.tally(), Duration::from_millis(timeout_ms));
        drop(guard.unwrap_or_else(PoisonError::into_inner));
    }
}

impl TransactionalProducer {
    /// A producer with librdkafka's property names, and its event thread. See [`defaults`] for what is set otherwise.
    ///
    /// # Errors
    /// A property that librdkafka does not know or accept, or that no thread could be started.
    pub fn new(config: &[(String, String)]) -> Result<Self, TxnError> {
        const MAKING: &str = "making a producer";
        let failed = |error| TxnError::new(MAKING, error, None);
        let merged = defaults::merge(defaults::PRODUCER, config, defaults::PRODUCER_MANDATORY);
        let client = Arc::new(Client::new(Kind::Producer, &merged).map_err(failed)?);
        let events = Arc::new(EventQueue::of_producer(&client).map_err(failed)?);
        let shared = Arc::new(Shared::default());
        let for_thread = (Arc::clone(&events), Arc::clone(&shared));
        let thread = thread::Builder::new().name("kafka-events".to_owned());
        let thread = thread.spawn(move || serve(&for_thread.0, &for_thread.1));
        let thread = thread.map_err(|error| failed(NativeError::new(code::FAIL, error.to_string())))?;
        Ok(TransactionalProducer {
            topics: HashMap::new(),
            shared,
            thread: Some(thread),
            events,
            epoch: AtomicU32::new(0),
            transactional: config.iter().any(|(name, _)| name == "transactional.id"),
            send_wait_ms: DEFAULT_SEND_WAIT_MS,
            client,
        })
    }

    /// How long a send may wait for room in librdkafka's queue before it fails; milliseconds.
    #[must_use]
    pub fn with_send_wait_ms(mut self, send_wait_ms: u64) -> Self {
        self.send_wait_ms = send_wait_ms;
        self
    }

    /// Takes over the transactional id: fences older producers of it and settles their open transaction. Nothing that
    /// depends on committed data may be read before this has returned.
    ///
    /// # Errors
    /// `Retriable` when the time was not enough (call it again), else what the broker refused.
    pub fn init_transactions(&self, timeout_ms: u64) -> Result<(), TxnError> {
        self.whole("init_transactions", timeout_ms, |timeout_ms| {
            self.client.init_transactions(timeout_ms)
        })
    }

    /// Begins a transaction (where there is a transactional id) and a new epoch of reports, whose number it returns.
    ///
    /// # Errors
    /// That the producer can't: not initialized, another transaction open, fatal.
    pub fn begin(&self) -> Result<u32, TxnError> {
        if self.transactional {
            self.client
                .begin_transaction()
                .map_err(|error| self.failed("begin_transaction", error))?;
        }
        Ok(self.epoch.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The number of the current epoch; 0 before the first [`begin`](Self::begin).
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Hands all records of the outbox to librdkafka, which copies them, and returns how many. The outbox keeps them.
    /// A full queue is waited for, up to the send wait. A timestamp of 0 is sent as 1: in librdkafka's interface 0 means
    /// "now".
    ///
    /// # Errors
    /// The first record that was not taken; those before it were.
    pub fn send_all(&mut self, outbox: &Outbox) -> Result<usize, SendError> {
        self.send_from(outbox, 0)
    }

    /// As [`send_all`](Self::send_all), beginning with the record at index `first`: to go on behind a record that was
    /// refused and is to be left out.
    ///
    /// # Errors
    /// As there.
    pub fn send_from(&mut self, outbox: &Outbox, first: usize) -> Result<usize, SendError> {
        self.open_topics(outbox)?;
        let names = outbox.topic_names();
        let topics: Vec<Option<&Topic>> = names.iter().map(|name| self.topics.get(name)).collect();
        let epoch = self.epoch();
        let mut sent = 0;
        for record in outbox.iter_from(first) {
            let index = record.topic as usize;
            let taken = match topics.get(index).copied().flatten() {
                Some(topic) => self.produce(topic, &record, epoch),
                None => Err(NativeError::new(
                    code::UNKNOWN_TOPIC,
                    "the outbox has no topic with this index",
                )),
            };
            taken.map_err(|error| {
                let topic = names.get(index).map(ToString::to_string).unwrap_or_default();
                self.send_error(first + sent, topic, record.partition, error)
            })?;
            sent += 1;
        }
        Ok(sent)
    }

    /// Waits until every record was acknowledged or failed, and its report was counted.
    ///
    /// # Errors
    /// `Retriable` when the time was not enough. Failed deliveries are not errors of this call: see
    /// [`reports`](Self::reports).
    pub fn flush(&self, timeout_ms: u64) -> Result<(), TxnError> {
        self.in_slices("flush", timeout_ms, |slice_ms| {
            let flushed = self.client.flush(slice_ms);
            flushed.map_err(|error| NativeError {
                retriable: error.code == code::TIMED_OUT,
                ..error
            })
        })
    }

    /// What became of an epoch's records so far; complete after [`flush`](Self::flush). Nothing for aborted epochs.
    #[must_use]
    pub fn reports(&self, epoch: u32) -> Reports {
        self.shared.tally().get(epoch)
    }

    /// Adds input offsets to the transaction. A transaction without any offset carries no fencing by the group, so
    /// every task that did anything has to be in it, unchanged if need be.
    ///
    /// # Errors
    /// `Abortable` with [`AbortAndRejoin`](super::errors::Reaction::AbortAndRejoin) when the group does not know this
    /// member or epoch; `Fatal` when fenced; `Retriable` to be repeated with the same arguments.
    pub fn send_offsets(
        &self,
        offsets: &[OffsetCommit],
        group: &GroupIdentity,
        timeout_ms: u64,
    ) -> Result<(), TxnError> {
        const SENDING: &str = "send_offsets_to_transaction";
        let failed = |error| self.failed(SENDING, error);
        let mut list = PartitionList::with_capacity(offsets.len()).map_err(failed)?;
        for commit in offsets {
            let OffsetCommit {
                topic,
                partition,
                offset,
                leader_epoch,
                metadata,
            } = commit;
            list.add_commit(&self.client, topic, *partition, *offset, *leader_epoch, metadata)
                .map_err(failed)?;
        }
        let GroupIdentity {
            group_id,
            member_id,
            member_epoch,
            instance_id,
        } = group;
        let group = GroupMetadata::new(group_id, *member_epoch, member_id, instance_id.as_deref()).map_err(failed)?;
        self.whole(SENDING, timeout_ms, |timeout_ms| {
            self.client.send_offsets(&list, &group, timeout_ms)
        })
    }

    /// Commits the transaction. Records still on their way are waited for first.
    ///
    /// # Errors
    /// `Retriable` when the time was not enough: the commit goes on in the background, only this call may be made again
    /// and the outcome is unknown until it returns. Otherwise see [`TxnError::reaction`].
    pub fn commit(&self, timeout_ms: u64) -> Result<(), TxnError> {
        self.whole("commit_transaction", timeout_ms, |timeout_ms| {
            self.client.commit_transaction(timeout_ms)
        })
    }

    /// Aborts the transaction: gives up what is still queued, and forgets the epoch's reports, also those that come
    /// late.
    ///
    /// # Errors
    /// `Retriable` when the time was not enough (only this call may be made again), else the producer must be replaced.
    pub fn abort(&self, timeout_ms: u64) -> Result<(), TxnError> {
        self.shared.tally().drop_through(self.epoch());
        if !self.transactional {
            return Ok(());
        }
        self.whole("abort_transaction", timeout_ms, |timeout_ms| {
            self.client.abort_transaction(timeout_ms)
        })
    }

    /// The error that made this producer unusable, if there is one.
    #[must_use]
    pub fn fatal_error(&self) -> Option<TxnError> {
        let fatal = self.client.fatal_error()?;
        let error = NativeError {
            fatal: true,
            ..NativeError::new(fatal.0, fatal.1.clone())
        };
        Some(TxnError::new("producing", error, Some(fatal)))
    }

    /// How many records and requests are on their way.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.client.outstanding()
    }

    /// The latest statistics as JSON, once each, if `statistics.interval.ms` is set.
    #[must_use]
    pub fn take_statistics(&self) -> Option<String> {
        self.client.take_statistics()
    }

    fn open_topics(&mut self, outbox: &Outbox) -> Result<(), SendError> {
        for name in outbox.topic_names() {
            if !self.topics.contains_key(name) {
                let topic = Topic::new(&self.client, name);
                let topic = topic.map_err(|error| self.send_error(0, name.to_string(), -1, error))?;
                self.topics.insert(Arc::clone(name), topic);
            }
        }
        Ok(())
    }

    fn produce(&self, topic: &Topic, record: &OutRecord<'_>, epoch: u32) -> Result<(), NativeError> {
        if record.slot > MAX_SLOT {
            return Err(NativeError::new(
                code::INVALID_ARG,
                format!("slot {} is above {MAX_SLOT}", record.slot),
            ));
        }
        let opaque = pack(epoch, record.slot);
        match topic.produce(record, opaque) {
            Err(error) if error.code == code::QUEUE_FULL => self.produce_when_room(topic, record, opaque),
            taken => taken,
        }
    }

    /// Waits for the event thread to make room and tries again, up to the send wait.
    fn produce_when_room(&self, topic: &Topic, record: &OutRecord<'_>, opaque: u64) -> Result<(), NativeError> {
        let deadline = Deadline::after_ms(self.send_wait_ms);
        loop {
            self.shared.wait_progress(RETRY_PAUSE_MS.min(deadline.remaining_ms()));
            match topic.produce(record, opaque) {
                Err(error) if error.code == code::QUEUE_FULL && !deadline.has_passed() => {}
                Err(error) if error.code == code::QUEUE_FULL => {
                    let waited_ms = self.send_wait_ms;
                    let message =
                        format!("the producer's queue stayed full for {waited_ms} ms: is the broker reachable?");
                    return Err(NativeError {
                        retriable: true,
                        ..NativeError::new(code::QUEUE_FULL, message)
                    });
                }
                taken => return taken,
            }
        }
    }

    fn send_error(&self, index: usize, topic: String, partition: i32, error: NativeError) -> SendError {
        let TxnError {
            code, message, class, ..
        } = self.failed("produce", error);
        SendError {
            index,
            topic,
            partition,
            code,
            name: name(code),
            message,
            class,
        }
    }

    fn in_slices(
        &self,
        call: &'static str,
        timeout_ms: u64,
        once: impl Fn(i32) -> Result<(), NativeError>,
    ) -> Result<(), TxnError> {
        let deadline = Deadline::after_ms(timeout_ms);
        self.until(call, deadline, || once(deadline.slice_ms(SLICE_MS)))
    }

    /// Not in slices: a call that ran into its timeout leaves its request behind, so each gets all the time left.
    fn whole(
        &self,
        call: &'static str,
        timeout_ms: u64,
        once: impl Fn(i32) -> Result<(), NativeError>,
    ) -> Result<(), TxnError> {
        let deadline = Deadline::after_ms(timeout_ms);
        self.until(call, deadline, || once(native_ms(deadline.remaining_ms())))
    }

    /// Makes a call again while its error is retriable and time is left.
    fn until(
        &self,
        call: &'static str,
        deadline: Deadline,
        once: impl Fn() -> Result<(), NativeError>,
    ) -> Result<(), TxnError> {
        loop {
            match once() {
                Ok(()) => return Ok(()),
                Err(error) if error.retriable && !error.abortable && !error.fatal && !deadline.has_passed() => {
                    if error.code != code::TIMED_OUT {
                        self.shared.wait_progress(RETRY_PAUSE_MS);
                    }
                }
                Err(error) => return Err(self.failed(call, error)),
            }
        }
    }

    fn failed(&self, call: &'static str, error: NativeError) -> TxnError {
        TxnError::new(call, error, self.client.fatal_error())
    }
}

impl Drop for TransactionalProducer {
    /// Gives up what was not sent, ends the event thread and destroys the client, in bounded time.
    fn drop(&mut self) {
        if let Err(error) = self.client.purge() {
            tracing::debug!(code = error.code, "purging a producer that is closed failed");
        }
        self.shared.stop.store(true, Ordering::Release);
        self.events.interrupt();
        if let Some(thread) = self.thread.take() {
            // It ends within one event wait at the latest; a panic there was reported by its own hook.
            let _ = thread.join();
        }
        self.topics.clear();
    }
}

/// The event thread: counts delivery reports, and serves callbacks on the way.
fn serve(queue: &EventQueue, shared: &Shared) {
    while !shared.stop.load(Ordering::Acquire) {
        let Some(mut event) = queue.poll(EVENT_WAIT_MS) else {
            continue;
        };
        let mut tally = shared.tally();
        event.for_each(|delivery| tally.count(delivery));
        drop(tally);
        drop(event); // only now librdkafka takes these records for done
        shared.progress.notify_all();
    }
}
