//! The restore thread: one consumer for all jobs, each of which goes on as its records come.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tracing::Span;

use super::super::clock::Clock;
use super::super::cluster::failure_of;
use super::super::hooks;
use super::{Ordered, ProgressBoard, Wanted, failed, offsets};
use crate::error::Error;
use crate::fetch::{FetchError, FetchErrorKind, Fetched, PartitionBatch, PartitionId};
use crate::kafka::consumer::{AssignedPartition, BatchConsumer};
use crate::metrics::publish::store_restored;
use crate::restore::{self, Standstill, StandstillNews};
use crate::runtime::{FailureClass, RestoreFailure, RestoreJob, RestoreProgress, Restored};

/// Records taken from the client in one round.
const BATCH_RECORDS: usize = 10_000;
/// The longest wait for a job before the thread looks whether it has to stop.
const IDLE: Duration = Duration::from_millis(100);
/// The longest wait for records; a new job waits as long.
const WAIT_MS: u64 = 20;
/// How far one changelog of a job is.
struct Part {
    id: PartitionId,
    position: i64,
    buffered: Vec<PartitionBatch>,
    buffered_to: i64,
    records: u64,
    span: Span,
}

/// A restore that goes on.
struct Running {
    job: RestoreJob,
    task_span: Span,
    started_ns: u64,
    parts: Vec<Part>,
    standstill: Standstill,
}

pub(super) struct Worker {
    config: Vec<(String, String)>,
    thread_id: String,
    results: Sender<Restored>,
    stop: Arc<AtomicBool>,
    board: Arc<ProgressBoard>,
    wanted: Arc<Wanted>,
    consumer: Option<BatchConsumer>,
    running: Vec<Running>,
    next_id: u32,
    clock: Clock,
}

impl Worker {
    pub(super) fn new(
        config: Vec<(String, String)>,
        thread_id: String,
        results: Sender<Restored>,
        stop: Arc<AtomicBool>,
        (board, wanted): (Arc<ProgressBoard>, Arc<Wanted>),
    ) -> Self {
        Worker {
            config,
            thread_id,
            results,
            stop,
            board,
            wanted,
            consumer: None,
            running: Vec::new(),
            next_id: 0,
            clock: Clock::new(),
        }
    }

    /// Works until it is told to stop, or nobody hands out jobs any more.
    pub(super) fn run(mut self, jobs: &Receiver<Ordered>) {
        while !self.stop.load(Ordering::Relaxed) {
            if self.running.is_empty() {
                match jobs.recv_timeout(IDLE) {
                    Ok(job) => self.start(job),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            while let Ok(job) = jobs.try_recv() {
                self.start(job);
            }
            self.round();
        }
        while let Some(running) = self.running.pop() {
            self.end(
                running,
                Some(failed(FailureClass::Retriable, "STOPPED", "the instance is closing").into()),
            );
        }
    }

    fn start(&mut self, (job, task_span): Ordered) {
        let _task = task_span.clone().entered();
        let parts = job.changelogs.iter().map(|changelog| {
            self.next_id = self.next_id.wrapping_add(1);
            Part {
                id: PartitionId(self.next_id),
                position: changelog.from,
                buffered: Vec::new(),
                buffered_to: changelog.from,
                records: 0,
                span: tracing::info_span!(
                    "restore",
                    store = changelog.name,
                    topic = &*changelog.topic_partition.topic,
                    partition = changelog.topic_partition.partition
                ),
            }
        });
        let mut running = Running {
            parts: parts.collect(),
            job,
            task_span,
            started_ns: Clock::now_ns(),
            standstill: Standstill::since(self.clock.now_ms()),
        };
        match self.begin(&mut running) {
            Ok(()) => self.running.push(running),
            Err(failure) => self.end(running, Some(failure)),
        }
    }

    fn begin(&mut self, running: &mut Running) -> Result<(), RestoreFailure> {
        let mut assigned = Vec::new();
        let RestoreJob {
            state,
            changelogs,
            incarnation,
            ..
        } = &mut running.job;
        for (part, changelog) in running.parts.iter().zip(&*changelogs) {
            restore::begin(state, changelog)?;
            assigned.push(AssignedPartition {
                topic: changelog.topic_partition.topic.to_string(),
                partition: changelog.topic_partition.partition,
                start_offset: changelog.from,
                id: part.id,
                incarnation: *incarnation,
            });
        }
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            none => none.insert(BatchConsumer::new(&self.config).map_err(|error| failure_of(&error))?),
        };
        consumer.know(assigned.iter().map(|part| part.topic.as_str()));
        consumer
            .incremental_assign(&assigned)
            .map_err(|error| failure_of(&error))?;
        Ok(())
    }

    fn round(&mut self) {
        let Some(consumer) = &mut self.consumer else { return };
        let mut fetched = Vec::new();
        if let Err(error) = consumer.fetch(BATCH_RECORDS, WAIT_MS, &mut fetched) {
            return self.fail_all(&error);
        }
        let mut failures = BTreeMap::new();
        for item in fetched {
            self.take(item, &mut failures);
        }
        let now_ms = self.clock.now_ms();
        for number in (0..self.running.len()).rev() {
            let Some(running) = self.running.get_mut(number) else {
                continue;
            };
            let failure = match failures.remove(&running.job.task) {
                Some(failure) => Some(failure),
                None if !self.wanted.has(&running.job) => {
                    Some(failed(FailureClass::Retriable, "NOT_WANTED", "the task was given away or lost").into())
                }
                // A panic must reach the stream thread, or it would wait for ever.
                None => match catch_unwind(AssertUnwindSafe(|| running.apply(now_ms))) {
                    Ok(applied) => applied.err(),
                    Err(panic) => Some(Error::bug(crate::processor::panic_message(&*panic)).into()),
                },
            };
            self.board.set(running.job.task, running.progress());
            if failure.is_some() || running.is_done() {
                let running = self.running.swap_remove(number);
                self.end(running, failure);
            }
        }
    }

    fn take(&mut self, item: Fetched, failures: &mut BTreeMap<crate::TaskId, RestoreFailure>) {
        let fatal = |error: &FetchError| {
            matches!(
                error.kind,
                FetchErrorKind::TopicAuthorization | FetchErrorKind::Authentication | FetchErrorKind::Fatal
            )
        };
        match item {
            Fetched::Records(batch) => {
                let last = batch.len().checked_sub(1).map(|last| batch.offset(last));
                if let (Some((_, part)), Some(last)) = (self.part(batch.partition), last) {
                    part.buffered_to = last + 1;
                    part.buffered.push(batch);
                }
            }
            Fetched::Eof { partition, offset, .. } => {
                if let Some((_, part)) = self.part(partition) {
                    part.buffered_to = part.buffered_to.max(offset);
                }
            }
            Fetched::Error(error) => {
                let class = if fatal(&error) {
                    FailureClass::Stop
                } else {
                    FailureClass::Retriable
                };
                let failure = || failed(class, "FETCH", &error.to_string()).into();
                match error.partition {
                    Some((partition, _)) => {
                        if let Some((task, _)) = self.part(partition) {
                            failures.insert(task, failure());
                        }
                    }
                    None if fatal(&error) => {
                        failures.extend(self.running.iter().map(|running| (running.job.task, failure())));
                    }
                    None => tracing::debug!(%error, "the restore consumer met an error; it goes on by itself"),
                }
            }
        }
    }

    fn part(&mut self, id: PartitionId) -> Option<(crate::TaskId, &mut Part)> {
        self.running.iter_mut().find_map(|running| {
            let task = running.job.task;
            let part = running.parts.iter_mut().find(|part| part.id == id)?;
            Some((task, part))
        })
    }

    /// The consumer is of no use any more: the next job gets a new one.
    fn fail_all(&mut self, error: &crate::kafka::errors::ClientError) {
        self.consumer = None;
        for running in std::mem::take(&mut self.running) {
            self.end(running, Some(failure_of(error).into()));
        }
    }

    /// Gives the state back with the result.
    fn end(&mut self, mut running: Running, failure: Option<RestoreFailure>) {
        let task_span = running.task_span.clone();
        let _task = task_span.enter();
        let failure = failure.or_else(|| running.finish(&self.thread_id).err());
        if failure.is_some() {
            running.keep();
        }
        let ids: Vec<PartitionId> = running.parts.iter().map(|part| part.id).collect();
        if let Some(consumer) = &mut self.consumer {
            if let Err(error) = consumer.incremental_unassign(&ids) {
                tracing::debug!(%error, "the restore consumer is made anew");
                self.consumer = None;
                // What others have fetched so far is applied; they begin again behind it.
                for other in std::mem::take(&mut self.running) {
                    self.end(other, Some(failure_of(&error).into()));
                }
            }
        }
        let RestoreJob {
            task,
            incarnation,
            state,
            changelogs,
        } = running.job;
        let records = changelogs.into_iter().zip(&running.parts);
        // Nobody listening means that the stream thread is gone.
        let _ = self.results.send(Restored {
            task,
            incarnation,
            state,
            records: records
                .map(|(changelog, part)| (changelog.name, part.records))
                .collect(),
            failure,
        });
    }
}

impl Running {
    fn is_done(&self) -> bool {
        let mut parts = self.parts.iter().zip(&self.job.changelogs);
        parts.all(|(part, changelog)| part.position >= changelog.to)
    }

    /// Applies what has come.
    fn apply(&mut self, now_ms: i64) -> Result<(), RestoreFailure> {
        let task_span = self.task_span.clone();
        let _task = task_span.enter();
        for (part, changelog) in self.parts.iter_mut().zip(&self.job.changelogs) {
            if part.position >= changelog.to {
                // It is done. A source topic goes on with records that are not the restore's.
                part.buffered.clear();
            } else if part.buffered_to > part.position {
                let _restore = part.span.enter();
                let to = part.buffered_to;
                part.records += restore::apply(&mut self.job.state, changelog, &part.buffered, to)?;
                part.buffered.clear();
                part.position = to;
                self.standstill.moved(now_ms);
                hooks::reach("during-restore");
            }
        }
        self.look_at_standstill(now_ms);
        Ok(())
    }

    /// The high watermark is known, the last stable offset stands still: somebody's transaction is open (design rule 5.1),
    /// or hangs (rule 5.2).
    fn look_at_standstill(&mut self, now_ms: i64) {
        let Some(news) = self.standstill.look(now_ms) else {
            return;
        };
        let waited_ms = self.standstill.waited_ms(now_ms);
        for (part, changelog) in self.parts.iter().zip(&self.job.changelogs) {
            if part.position >= changelog.to {
                continue;
            }
            let (task, changelog_name, at) = (self.job.task, &changelog.name, &changelog.topic_partition);
            let (offset, target) = (part.position, changelog.to);
            if news == StandstillNews::Hangs {
                tracing::error!(
                    task_id = %task, store = changelog_name, topic = &*at.topic, partition = at.partition, offset, target, waited_ms,
                    "the restore waits for an open transaction of another producer, and no broker keeps one open for so long: find it with kafka-transactions.sh find-hanging and abort it"
                );
            } else {
                tracing::warn!(
                    task_id = %task, store = changelog_name, topic = &*at.topic, partition = at.partition, offset, target,
                    "the restore waits for an open transaction of another producer; the broker ends it at its transaction timeout"
                );
            }
        }
    }

    fn progress(&self) -> RestoreProgress {
        let parts = self.parts.iter().zip(&self.job.changelogs);
        RestoreProgress {
            restored: self.parts.iter().map(|part| part.records).sum(),
            remaining: parts
                .map(|(part, changelog)| offsets(part.position, changelog.to))
                .sum(),
            hanging: self.standstill.is_hanging(),
        }
    }

    /// The restore ends before it is done: what has been read need not be read again.
    fn keep(&mut self) {
        for changelog in &self.job.changelogs {
            if let Err(error) = restore::keep(&mut self.job.state, changelog) {
                tracing::warn!(task_id = %self.job.task, store = changelog.name, %error, "what was restored could not be kept; it is read again");
            }
        }
    }

    /// The stores are restored, and how long that took is told under their names. Stores of a task are restored together, so
    /// it is counted from the job's begin.
    fn finish(&mut self, thread_id: &str) -> Result<(), RestoreFailure> {
        for (part, changelog) in self.parts.iter().zip(&self.job.changelogs) {
            let _restore = part.span.enter();
            restore::finish(&mut self.job.state, changelog, part.position)?;
            let scope = crate::task::scope_of(&self.job.state, changelog.store);
            let took_ns = Clock::now_ns() - self.started_ns;
            store_restored(thread_id, self.job.task, scope, &changelog.name, took_ns);
            tracing::info!(
                task_id = %self.job.task, store = changelog.name, restored = part.records, to = part.position,
                "store is restored"
            );
        }
        Ok(())
    }
}
