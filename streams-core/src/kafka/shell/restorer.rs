//! Restores on a thread of their own: replays changelogs into a task's state while ready tasks go on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::Span;

use super::clock::Clock;
use super::hooks;
use crate::TaskId;
use crate::fetch::{FetchErrorKind, Fetched, PartitionBatch, PartitionId};
use crate::kafka::consumer::{AssignedPartition, BatchConsumer};
use crate::metrics::publish::store_restored;
use crate::restore;
use crate::runtime::{
    CallFailure, ChangelogRestore, FailureClass, RestoreFailure, RestoreJob, RestoreProgress, Restored,
};

/// Records handed to a store in one batch.
const BATCH_RECORDS: usize = 10_000;
/// The longest wait for records before the job looks whether it has to stop.
const WAIT_MS: u64 = 100;
/// After how long without progress people are told what is waited for.
const STALLED_MS: i64 = 5_000;

/// The restore thread of one stream thread; started with the first job.
pub(super) struct Restorer {
    config: Vec<(String, String)>,
    name: String,
    /// The stream thread's name in metrics.
    thread_id: String,
    jobs: Option<Sender<Ordered>>,
    results: Receiver<Restored>,
    results_in: Sender<Restored>,
    stop: Arc<AtomicBool>,
    progress: Arc<ProgressBoard>,
    thread: Option<JoinHandle<()>>,
}

/// A job, and the span of its task.
type Ordered = (RestoreJob, Span);

/// How far the restores are, by task; an entry goes with its result.
#[derive(Default)]
struct ProgressBoard(Mutex<BTreeMap<TaskId, RestoreProgress>>);

impl ProgressBoard {
    fn set(&self, task: TaskId, progress: RestoreProgress) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(task, progress);
    }

    fn all(&self) -> BTreeMap<TaskId, RestoreProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn done(&self, task: TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&task);
    }
}

fn offsets(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

impl Restorer {
    pub(super) fn new(config: Vec<(String, String)>, name: String, thread_id: String) -> Self {
        let (results_in, results) = channel();
        Restorer {
            config,
            name,
            thread_id,
            jobs: None,
            results,
            results_in,
            stop: Arc::default(),
            progress: Arc::default(),
            thread: None,
        }
    }

    /// Hands a job over. One that can't be started comes back as failed.
    pub(super) fn submit(&mut self, job: RestoreJob) {
        let remaining = job
            .changelogs
            .iter()
            .map(|changelog| offsets(changelog.from, changelog.to))
            .sum();
        self.progress.set(
            job.task,
            RestoreProgress {
                restored: 0,
                remaining,
                hanging: false,
            },
        );
        let task = tracing::info_span!("task", task_id = %job.task);
        if self.jobs.is_none() {
            let (jobs, queue) = channel();
            let results = self.results_in.clone();
            let worker = Worker {
                config: self.config.clone(),
                thread_id: self.thread_id.clone(),
                stop: Arc::clone(&self.stop),
                board: Arc::clone(&self.progress),
            };
            let thread = std::thread::Builder::new().name(self.name.clone());
            self.thread = thread.spawn(move || work(&worker, &queue, &results)).ok();
            self.jobs = Some(jobs);
        }
        let unsent = match &self.jobs {
            // Below the stream thread's span, although another thread enters it.
            Some(jobs) => jobs.send((job, task)).map_err(|error| error.0.0).err(),
            None => Some(job),
        };
        if let Some(job) = unsent {
            let failure = failed(
                FailureClass::Stop,
                "RESTORE_THREAD",
                "the restore thread could not be started",
            );
            // Nobody listening means that the stream thread is gone, and the job with it.
            let _ = self.results_in.send(Restored {
                task: job.task,
                incarnation: job.incarnation,
                state: job.state,
                records: BTreeMap::new(),
                failure: Some(failure.into()),
            });
        }
    }

    /// A finished job, if there is one.
    pub(super) fn try_result(&self) -> Option<Restored> {
        let restored = self.results.try_recv().ok()?;
        self.progress.done(restored.task);
        Some(restored)
    }

    /// How far the restores are that run or wait, by task.
    pub(super) fn progress(&self) -> BTreeMap<TaskId, RestoreProgress> {
        self.progress.all()
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn failed(class: FailureClass, code: &str, message: &str) -> CallFailure {
    CallFailure {
        class,
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

/// What the restore thread works with.
struct Worker {
    config: Vec<(String, String)>,
    thread_id: String,
    stop: Arc<AtomicBool>,
    board: Arc<ProgressBoard>,
}

fn work(worker: &Worker, jobs: &Receiver<Ordered>, results: &Sender<Restored>) {
    let mut consumer = None;
    while !worker.stop.load(Ordering::Relaxed) {
        let (mut job, task) = match jobs.recv_timeout(Duration::from_millis(WAIT_MS)) {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut records = BTreeMap::new();
        let _task = task.enter();
        let failure = worker.run(&mut consumer, &mut job, &mut records).err();
        let restored = Restored {
            task: job.task,
            incarnation: job.incarnation,
            state: job.state,
            records,
            failure,
        };
        if results.send(restored).is_err() {
            return;
        }
    }
}

struct Progress<'a> {
    changelog: &'a ChangelogRestore,
    position: i64,
    buffered: Vec<PartitionBatch>,
    buffered_to: i64,
    records: u64,
    span: Span,
}

impl<'a> Progress<'a> {
    fn new(changelog: &'a ChangelogRestore) -> Self {
        Progress {
            span: tracing::info_span!(
                "restore",
                store = changelog.name,
                topic = &*changelog.topic_partition.topic,
                partition = changelog.topic_partition.partition
            ),
            changelog,
            position: changelog.from,
            buffered: Vec::new(),
            buffered_to: changelog.from,
            records: 0,
        }
    }
}

impl Worker {
    fn run(
        &self,
        consumer: &mut Option<BatchConsumer>,
        job: &mut RestoreJob,
        records: &mut BTreeMap<String, u64>,
    ) -> Result<(), RestoreFailure> {
        let client = |error: crate::kafka::errors::ClientError| super::cluster::failure_of(&error);
        let consumer = match consumer {
            Some(consumer) => consumer,
            None => consumer.insert(BatchConsumer::new(&self.config).map_err(client)?),
        };
        let mut parts = Vec::new();
        for (number, changelog) in (0..).zip(&job.changelogs) {
            restore::begin(&mut job.state, changelog)?;
            parts.push(AssignedPartition {
                topic: changelog.topic_partition.topic.to_string(),
                partition: changelog.topic_partition.partition,
                start_offset: changelog.from,
                id: PartitionId(number),
                incarnation: job.incarnation,
            });
        }
        consumer.assign(&parts).map_err(client)?;
        let mut progress: Vec<Progress<'_>> = job.changelogs.iter().map(Progress::new).collect();
        let (clock, started_ns) = (Clock::new(), Clock::now_ns());
        let (mut moved_ms, mut told) = (clock.now_ms(), false);
        let mut fetched = Vec::new();
        while progress.iter().any(|part| part.position < part.changelog.to) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(failed(FailureClass::Retriable, "STOPPED", "the instance is closing").into());
            }
            consumer.fetch(BATCH_RECORDS, WAIT_MS, &mut fetched).map_err(client)?;
            if !fetched.is_empty() {
                (moved_ms, told) = (clock.now_ms(), false);
            }
            for item in fetched.drain(..) {
                take(&mut progress, item)?;
            }
            for part in &mut progress {
                if part.buffered_to > part.position {
                    let _restore = part.span.enter();
                    let (changelog, to) = (part.changelog, part.buffered_to);
                    part.records += restore::apply(&mut job.state, changelog, &part.buffered, to)?;
                    part.buffered.clear();
                    part.position = to;
                    hooks::reach("during-restore");
                }
            }
            let restored = progress.iter().map(|part| part.records).sum();
            let remaining = progress
                .iter()
                .map(|part| offsets(part.position, part.changelog.to))
                .sum();
            self.board.set(
                job.task,
                RestoreProgress {
                    restored,
                    remaining,
                    hanging: false,
                },
            );
            if clock.now_ms() - moved_ms > STALLED_MS && !told {
                told = true;
                tell_stalled(job.task, &progress);
            }
        }
        for part in progress {
            let _restore = part.span.enter();
            restore::finish(&mut job.state, part.changelog, part.position)?;
            records.insert(part.changelog.name.clone(), part.records);
            self.measure(job, part.changelog, started_ns);
            tracing::info!(task_id = %job.task, store = part.changelog.name, restored = part.records, to = part.position, "store is restored");
        }
        consumer.assign(&[]).map_err(client)?;
        Ok(())
    }

    /// The restore of a store is over: how long that took, under the store's name. Stores of a task are restored together, so
    /// it is counted from the job's begin.
    fn measure(&self, job: &RestoreJob, changelog: &ChangelogRestore, started_ns: u64) {
        let scope = crate::task::scope_of(&job.state, changelog.store);
        store_restored(
            &self.thread_id,
            job.task,
            scope,
            &changelog.name,
            Clock::now_ns() - started_ns,
        );
    }
}

/// The high watermark is known, the last stable offset stands still: somebody's transaction is open.
fn tell_stalled(task: crate::TaskId, progress: &[Progress<'_>]) {
    for part in progress.iter().filter(|part| part.position < part.changelog.to) {
        tracing::warn!(
            task_id = %task, store = part.changelog.name, changelog = %part.changelog.topic_partition, position = part.position, target = part.changelog.to,
            "the restore waits for an open transaction of another producer; the broker ends it at its transaction timeout"
        );
    }
}

fn take(progress: &mut [Progress<'_>], item: Fetched) -> Result<(), CallFailure> {
    match item {
        Fetched::Records(batch) => {
            let last = batch.len().checked_sub(1).map(|last| batch.offset(last));
            if let (Some(part), Some(last)) = (progress.get_mut(batch.partition.0 as usize), last) {
                part.buffered_to = last + 1;
                part.buffered.push(batch);
            }
        }
        Fetched::Eof { partition, offset, .. } => {
            if let Some(part) = progress.get_mut(partition.0 as usize) {
                part.buffered_to = part.buffered_to.max(offset);
            }
        }
        Fetched::Error(error)
            if matches!(
                error.kind,
                FetchErrorKind::TopicAuthorization | FetchErrorKind::Authentication | FetchErrorKind::Fatal
            ) =>
        {
            return Err(failed(FailureClass::Stop, "FETCH", &error.to_string()));
        }
        Fetched::Error(error) if error.partition.is_some() => {
            return Err(failed(FailureClass::Retriable, "FETCH", &error.to_string()));
        }
        Fetched::Error(error) => tracing::debug!(%error, "the restore consumer met an error; it goes on by itself"),
    }
    Ok(())
}
