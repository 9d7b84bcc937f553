//! Processes and their stream threads: what is lost in a crash. The loop of a thread is that of the shipped shell.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use streams_core::TopicPartition;
use streams_core::membership::member::Member;
use streams_core::membership::{MembershipCommand, MembershipEvent, TaskGate};
use streams_core::outbox::ANY_PARTITION;
use streams_core::runtime::{FailureLog, GlobalCore, Reports, StreamThreadCore, Undelivered};
use streams_core::stores::GlobalStores;
use streams_core::test_driver::{
    LogRecord, MemoryBroker, MemoryConsumer, ProducerSession, TransactionError, any_partition, log_record,
};
use streams_state::MemoryDisk;

use super::ends::SIMULATED;
use super::restorer::Restorer;
use crate::Seeded;

/// Names a stream thread in one life of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) instance: usize,
    pub(super) life: u32,
    pub(super) thread: usize,
    /// How often the thread was replaced in this life.
    pub(super) turn: u32,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "i{}t{}.{}", self.instance, self.thread, self.life)?;
        match self.turn {
            0 => Ok(()),
            turn => write!(f, ".{turn}"),
        }
    }
}

/// A machine: its disk and identity outlive the processes on it.
pub(super) struct Instance {
    pub(super) number: usize,
    pub(super) life: u32,
    pub(super) disk: MemoryDisk,
    /// Of the identity, which is new when the disk is.
    pub(super) identity: u32,
    /// The identity of another, which somebody copied.
    pub(super) borrowed: Option<String>,
    pub(super) up: bool,
    pub(super) stopping: bool,
    pub(super) start_planned: bool,
    /// It starts no earlier.
    pub(super) starts_after_ms: i64,
    pub(super) paused_until_ms: i64,
    pub(super) threads_stalled_until_ms: i64,
    /// How far its clock is off, ms.
    pub(super) clock_offset_ms: i64,
    pub(super) disk_is_full: bool,
    /// Writes of it fail now and then.
    pub(super) writes_fail: bool,
    /// It was full or failed at some time in this life: what fails may have begun then.
    pub(super) disk_was_bad: bool,
    /// Until then every write takes long.
    pub(super) disk_slow_until_ms: i64,
    pub(super) global: Option<GlobalRun>,
    pub(super) globals: Arc<GlobalStores>,
    /// `None` while a thread is being driven, and after its end.
    pub(super) threads: Vec<Option<Box<Thread>>>,
    /// Threads that have ended and will be replaced.
    pub(super) replacing: BTreeSet<usize>,
    /// What failed in this life.
    pub(super) failures: FailureLog,
}

impl Instance {
    pub(super) fn new(number: usize) -> Self {
        Instance {
            number,
            life: 0,
            disk: MemoryDisk::default(),
            identity: 0,
            borrowed: None,
            up: false,
            stopping: false,
            start_planned: false,
            starts_after_ms: 0,
            paused_until_ms: 0,
            threads_stalled_until_ms: 0,
            clock_offset_ms: 0,
            disk_is_full: false,
            writes_fail: false,
            disk_was_bad: false,
            disk_slow_until_ms: 0,
            global: None,
            globals: Arc::default(),
            threads: Vec::new(),
            replacing: BTreeSet::new(),
            failures: FailureLog::default(),
        }
    }

    pub(super) fn process_id(&self) -> String {
        let own = || format!("p{}-{}", self.number, self.identity);
        self.borrowed.clone().unwrap_or_else(own)
    }
}

/// The global task of a process.
pub(super) struct GlobalRun {
    pub(super) core: GlobalCore,
    pub(super) consumer: MemoryConsumer,
}

/// Where a thread is in its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Start,
    EffectsBeforeFetch,
    Fetch,
    Process,
    EffectsAfterFetch,
}

/// A stream thread: its core, its clients, its membership.
pub(super) struct Thread {
    pub(super) key: Key,
    pub(super) core: StreamThreadCore,
    pub(super) consumer: MemoryConsumer,
    pub(super) producer: Producer,
    pub(super) member: Member,
    pub(super) beating: bool,
    /// Commands for the membership, taken between two requests, as from the shell's mailbox.
    pub(super) commands: Vec<MembershipCommand>,
    pub(super) alive_at_ms: i64,
    pub(super) beat_token: u64,
    pub(super) member_ended: bool,
    pub(super) events: VecDeque<MembershipEvent>,
    /// An event that can't be applied yet.
    pub(super) waiting: Option<(MembershipEvent, i64)>,
    pub(super) assignment: u64,
    pub(super) place: Place,
    pub(super) round_token: u64,
    pub(super) wakes_at_ms: i64,
    pub(super) call: Option<u64>,
    /// It waits for the answer and does nothing else.
    pub(super) blocked: bool,
    /// The call of a commit that has ended while the thread went on.
    pub(super) answered: Option<u64>,
    pub(super) restorer: Restorer,
    pub(super) gate: TaskGate,
    /// Records processed between two looks at the clock.
    pub(super) chunk: usize,
    /// How long this round has processed, ms.
    pub(super) processing_ms: i64,
    /// It is in user code until then.
    pub(super) busy_until_ms: i64,
    pub(super) closing: bool,
    /// The last commit may take until then, ms of its clock.
    pub(super) closing_until_ms: i64,
    /// It can't go on; after what time another takes its place, if one does.
    pub(super) dying: Option<Option<i64>>,
    pub(super) leaving: bool,
}

/// A record on its way to the broker.
#[derive(Clone)]
pub(super) struct Queued {
    pub(super) topic_partition: TopicPartition,
    pub(super) record: LogRecord,
    slot: u32,
    epoch: u32,
}

/// The producer: it sends in the background, in order within a partition.
pub(super) struct Producer {
    pub(super) transactional_id: String,
    pub(super) session: Option<ProducerSession>,
    /// It is open and has no transactions.
    pub(super) plain: bool,
    pub(super) queue: VecDeque<Queued>,
    reports: Reports,
    reports_of: u32,
    pub(super) fenced: bool,
}

impl Producer {
    pub(super) fn new(transactional_id: String) -> Self {
        Producer {
            transactional_id,
            session: None,
            plain: false,
            queue: VecDeque::new(),
            reports: Reports::default(),
            reports_of: 0,
            fenced: false,
        }
    }

    /// Takes all that the core has to send.
    pub(super) fn take(
        &mut self,
        core: &mut StreamThreadCore,
        broker: &MemoryBroker,
        epoch: u32,
    ) -> Result<(), String> {
        for outbox in core.outboxes() {
            for record in outbox.iter() {
                let topic = outbox.topic_names().get(record.topic as usize).map_or("", |name| name);
                let partition = match record.partition {
                    ANY_PARTITION => any_partition(record.key, broker.partitions(topic)),
                    partition => partition,
                };
                let topic_partition = TopicPartition::new(topic, partition);
                if broker.log(&topic_partition).is_none() {
                    return Err(format!("{topic_partition} does not exist"));
                }
                self.queue.push_back(Queued {
                    topic_partition,
                    record: log_record(&record),
                    slot: record.slot,
                    epoch,
                });
            }
        }
        core.outboxes_sent();
        Ok(())
    }

    /// Delivers one record of the queue: the first of the partition of the record at `which`.
    pub(super) fn deliver(
        &mut self,
        which: usize,
        broker: &mut MemoryBroker,
        now_ms: i64,
    ) -> Result<(), TransactionError> {
        if self.session.is_none() && !self.plain {
            return Err(TransactionError::Fenced);
        }
        let Some(partition) = self.queue.get(which).map(|queued| queued.topic_partition.clone()) else {
            return Ok(());
        };
        let first = self
            .queue
            .iter()
            .position(|queued| queued.topic_partition == partition)
            .unwrap_or(0);
        let Some(queued) = self.queue.get(first) else {
            return Ok(());
        };
        let (at, record) = (&queued.topic_partition, queued.record.clone());
        let offset = match &self.session {
            Some(session) => broker.send(session, at, record, now_ms)?,
            None => broker.log_mut(at).map(|log| log.append(record, None)),
        };
        let (slot, epoch) = (queued.slot, queued.epoch);
        self.queue.remove(first);
        if self.reports_of != epoch {
            self.reports_of = epoch;
            self.reports = Reports::default();
        }
        self.reports.acknowledged += 1;
        if let (Some(offset), 1..) = (offset, slot) {
            self.reports.highest.insert(slot, offset);
        }
        Ok(())
    }

    pub(super) fn deliver_some(
        &mut self,
        rng: &mut Seeded,
        broker: &mut MemoryBroker,
        now_ms: i64,
        most: u64,
    ) -> Result<(), TransactionError> {
        for _ in 0..most.min(self.queue.len() as u64) {
            let which = usize::try_from(rng.below(self.queue.len() as u64)).unwrap_or(0);
            self.deliver(which, broker, now_ms)?;
        }
        Ok(())
    }

    pub(super) fn reports(&self, epoch: u32) -> Reports {
        if self.reports_of == epoch {
            self.reports.clone()
        } else {
            Reports::default()
        }
    }

    /// Without transactions: the first record and all of its partition behind it are refused for good.
    pub(super) fn refuse_first(&mut self) -> Vec<Undelivered> {
        let Some(first) = self.queue.front().map(|queued| queued.topic_partition.clone()) else {
            return Vec::new();
        };
        let (refused, kept): (VecDeque<Queued>, _) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|queued| queued.topic_partition == first);
        self.queue = kept;
        let undelivered = refused.into_iter().map(|queued| Undelivered {
            topic_partition: queued.topic_partition,
            code: "_MSG_TIMED_OUT".to_owned(),
            message: SIMULATED.to_owned(),
            retriable: true,
            changelog: queued.slot > 0,
        });
        undelivered.collect()
    }

    /// What is not sent yet is dropped; answers what was perhaps on the wire.
    pub(super) fn purge(&mut self) -> Vec<Queued> {
        self.queue.drain(..).collect()
    }
}
