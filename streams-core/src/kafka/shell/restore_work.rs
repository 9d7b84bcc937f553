//! The restore thread: one consumer for all restores, which go on side by side. What happens to what it fetches is the
//! core's business ([`SideBySide`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::super::clock::Clock;
use super::super::cluster::failure_of;
use super::super::hooks;
use super::{Ordered, ProgressBoard, Wanted, failed};
use crate::TaskId;
use crate::fetch::PartitionId;
use crate::kafka::consumer::{AssignedPartition, BatchConsumer};
use crate::kafka::errors::ClientError;
use crate::metrics::publish::store_restored;
use crate::restore::{EndedRestore, SideBySide};
use crate::runtime::{Assignment, CallFailure, FailureClass, Restored};

/// Records taken from the client in one round.
const BATCH_RECORDS: usize = 10_000;
/// The longest wait for a job before the thread looks whether it has to stop.
const IDLE: Duration = Duration::from_millis(100);
/// The longest wait for records; a new job waits as long.
const WAIT_MS: u64 = 20;

pub(super) struct Worker {
    config: Vec<(String, String)>,
    thread_id: String,
    results: Sender<Restored>,
    stop: Arc<AtomicBool>,
    board: Arc<ProgressBoard>,
    wanted: Arc<Wanted>,
    consumer: Option<BatchConsumer>,
    restores: SideBySide,
    /// When each began, ns.
    started_ns: BTreeMap<(TaskId, u64), u64>,
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
            restores: SideBySide::default(),
            started_ns: BTreeMap::new(),
            clock: Clock::new(),
        }
    }

    /// Works until it is told to stop, or nobody hands out jobs any more.
    pub(super) fn run(mut self, jobs: &Receiver<Ordered>) {
        while !self.stop.load(Ordering::Relaxed) {
            if self.restores.is_empty() {
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
        self.fail_all(&failed(FailureClass::Retriable, "STOPPED", "the instance is closing"));
    }

    fn start(&mut self, (job, task_span): Ordered) {
        let _task = task_span.entered();
        let lease = (job.task, job.incarnation);
        self.started_ns.insert(lease, Clock::now_ns());
        let assignments = match self.restores.start(job, self.clock.now_ms()) {
            Ok(assignments) => assignments,
            Err(ended) => return self.end(*ended),
        };
        if let Err(failure) = self.assign(assignments)
            && let Some(ended) = self.restores.fail(lease.0, lease.1, &failure)
        {
            self.end(ended);
        }
    }

    fn assign(&mut self, assignments: Vec<Assignment>) -> Result<(), CallFailure> {
        let assigned = assignments.into_iter().map(|assignment| AssignedPartition {
            topic: assignment.topic_partition.topic.to_string(),
            partition: assignment.topic_partition.partition,
            start_offset: assignment.start_offset,
            id: assignment.id,
            incarnation: assignment.incarnation,
        });
        let assigned: Vec<AssignedPartition> = assigned.collect();
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            none => none.insert(BatchConsumer::new(&self.config).map_err(|error| failure_of(&error))?),
        };
        consumer.know(assigned.iter().map(|part| part.topic.as_str()));
        consumer
            .incremental_assign(&assigned)
            .map_err(|error| failure_of(&error))
    }

    fn round(&mut self) {
        let Some(consumer) = &mut self.consumer else { return };
        let mut fetched = Vec::new();
        if let Err(error) = consumer.fetch(BATCH_RECORDS, WAIT_MS, &mut fetched) {
            return self.lose_consumer(&error);
        }
        for item in fetched {
            self.restores.take(item);
        }
        let (now_ms, wanted) = (self.clock.now_ms(), Arc::clone(&self.wanted));
        let ended = self.restores.round(
            now_ms,
            |task, lease| wanted.has(task, lease),
            || {
                hooks::reach("during-restore");
            },
        );
        for (task, progress) in self.restores.progress() {
            self.board.set(task, progress);
        }
        for ended in ended {
            self.end(ended);
        }
    }

    /// The consumer is of no use any more: the next job gets a new one. What was fetched so far is applied; the restores
    /// begin again behind it.
    fn lose_consumer(&mut self, error: &ClientError) {
        self.consumer = None;
        self.fail_all(&failure_of(error));
    }

    fn fail_all(&mut self, failure: &CallFailure) {
        for ended in self.restores.fail_all(failure) {
            self.end(ended);
        }
    }

    /// Gives the state back with the result.
    fn end(&mut self, ended: EndedRestore) {
        let task_span = ended.span.clone();
        let _task = task_span.enter();
        self.publish(&ended);
        self.unassign(&ended.partitions);
        // Nobody listening means that the stream thread is gone.
        let _ = self.results.send(ended.restored);
    }

    fn unassign(&mut self, partitions: &[PartitionId]) {
        let Some(consumer) = &mut self.consumer else { return };
        if let Err(error) = consumer.incremental_unassign(partitions) {
            tracing::debug!(%error, "the restore consumer is made anew");
            self.lose_consumer(&error);
        }
    }

    /// How long a restore took is told under the names of its stores. They are restored together, so it is counted from the
    /// job's begin.
    fn publish(&mut self, ended: &EndedRestore) {
        let restored = &ended.restored;
        let started_ns = self.started_ns.remove(&(restored.task, restored.incarnation));
        let (Some(started_ns), None) = (started_ns, &restored.failure) else {
            return;
        };
        let took_ns = Clock::now_ns() - started_ns;
        for (changelog, _) in &ended.changelogs {
            let scope = crate::task::scope_of(&restored.state, changelog.store);
            store_restored(&self.thread_id, restored.task, scope, &changelog.name, took_ns);
        }
    }
}
