//! Restores on a thread of their own: replays changelogs into tasks' states while ready tasks go on. All restores of a
//! stream thread go on side by side, so that one that waits for somebody's transaction does not hold up the others.

#[path = "restore_work.rs"]
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tracing::Span;

use crate::TaskId;
use crate::runtime::{CallFailure, FailureClass, RestoreJob, RestoreProgress, Restored};
use work::Worker;

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
    wanted: Arc<Wanted>,
    thread: Option<JoinHandle<()>>,
}

/// Whose results are still waited for, by task and lease. A restore that nobody waits for ends at once, so that the next
/// owner of its task finds the directory free.
#[derive(Default)]
struct Wanted(Mutex<BTreeSet<(TaskId, u64)>>);

impl Wanted {
    fn set(&self) -> MutexGuard<'_, BTreeSet<(TaskId, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, task: TaskId, lease: u64) -> bool {
        self.set().contains(&(task, lease))
    }
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
            wanted: Arc::default(),
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
        self.wanted.set().insert((job.task, job.incarnation));
        let task = tracing::info_span!("task", task_id = %job.task);
        if self.jobs.is_none() {
            let (jobs, queue) = channel();
            let worker = Worker::new(
                self.config.clone(),
                self.thread_id.clone(),
                self.results_in.clone(),
                Arc::clone(&self.stop),
                (Arc::clone(&self.progress), Arc::clone(&self.wanted)),
            );
            let thread = std::thread::Builder::new().name(self.name.clone());
            self.thread = thread.spawn(move || worker.run(&queue)).ok();
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
        self.wanted.set().remove(&(restored.task, restored.incarnation));
        self.progress.done(restored.task);
        Some(restored)
    }

    /// Ends the restores that `waited_for` does not confirm any more; each still gives its state back.
    pub(super) fn keep(&self, waited_for: impl Fn(TaskId, u64) -> bool) {
        if self.jobs.is_some() {
            self.wanted.set().retain(|(task, lease)| waited_for(*task, *lease));
        }
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
