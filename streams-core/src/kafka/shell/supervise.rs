//! Follows the stream threads: the instance runs when all of them do, replaces one that failed when the application says
//! so, and ends when they have ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::cleaner::Cleaner;
use super::clock::Clock;
use super::instance::{Inner, lock};
use super::launch::Launcher;
use super::state::State;
use super::thread::ThreadEvent;
use crate::error::Error;
use crate::metrics::publish::ClientMetrics;
use crate::runtime::{CoreStatus, Reaction};

/// How often the metrics of the instance are published at least.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// The longest wait while a thread is to be replaced: the instance may be closed meanwhile.
const REPLACE_LOOK: Duration = Duration::from_millis(50);

/// The supervisor of an instance.
pub(super) struct Supervisor {
    inner: Arc<Inner>,
    launcher: Launcher,
    metrics: ClientMetrics,
    clock: Clock,
    failed: u64,
    /// When threads are to be replaced, by number, milliseconds since the Unix epoch.
    replacements: BTreeMap<usize, i64>,
}

impl Supervisor {
    pub(super) fn new(launcher: Launcher, metrics: ClientMetrics) -> Self {
        Supervisor {
            inner: Arc::clone(&launcher.inner),
            launcher,
            metrics,
            clock: Clock::new(),
            failed: 0,
            replacements: BTreeMap::new(),
        }
    }

    /// Runs until the last thread has ended and none is to be replaced.
    pub(super) fn run(mut self, reports: &Receiver<ThreadEvent>) {
        let mut cleaner = Cleaner::new(self.inner.config.state_cleanup_delay_ms);
        loop {
            self.inner.publish(&mut self.metrics, self.failed);
            if self.replace() {
                break;
            }
            let wait = if self.replacements.is_empty() {
                PUBLISH_EVERY
            } else {
                REPLACE_LOOK
            };
            match reports.recv_timeout(wait) {
                Ok(event) => {
                    if self.take(event) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => cleaner.clean(&self.inner),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.end();
    }

    /// Takes what a thread says; answers whether that was the last of all.
    fn take(&mut self, event: ThreadEvent) -> bool {
        match event {
            ThreadEvent::State { thread, state } => {
                self.inner.thread_state(thread, state);
                false
            }
            ThreadEvent::ShutdownApplication { detail } => {
                self.inner.fail(Error::Membership {
                    message: format!("a member asked the whole application to stop: {detail}"),
                });
                false
            }
            ThreadEvent::Ended { thread, reaction } => {
                match reaction {
                    None => {}
                    Some(Reaction::Replace { after_ms, .. }) if thread > 0 && self.inner.is_open() => {
                        self.failed += 1;
                        self.replacements.insert(thread, self.clock.now_ms() + after_ms);
                    }
                    // The global thread is not replaced, as in Java.
                    Some(
                        Reaction::Replace { error, .. }
                        | Reaction::ShutdownClient(error)
                        | Reaction::ShutdownApplication(error),
                    ) => {
                        self.failed += u64::from(thread > 0);
                        self.inner.fail(*error);
                    }
                }
                self.inner.thread_ended(thread, self.replacements.contains_key(&thread))
            }
        }
    }

    /// Starts the threads whose time has come; none when the instance stops. Answers whether all is over.
    fn replace(&mut self) -> bool {
        if self.replacements.is_empty() {
            return false;
        }
        if !self.inner.is_open() {
            let given_up = std::mem::take(&mut self.replacements);
            let mut last = false;
            for thread in given_up.into_keys() {
                last = self.inner.thread_ended(thread, false);
            }
            return last;
        }
        let now_ms = self.clock.now_ms();
        let due: Vec<usize> = self
            .replacements
            .iter()
            .filter(|(_, at_ms)| **at_ms <= now_ms)
            .map(|(thread, _)| *thread)
            .collect();
        for thread in due {
            self.replacements.remove(&thread);
            match self.launcher.start(thread) {
                Ok(handle) => {
                    tracing::info!(thread, "another stream thread takes the place of the one that failed");
                    let mut running = lock(&self.inner.running);
                    if let Some(slot) = thread.checked_sub(1).and_then(|at| running.threads.get_mut(at)) {
                        *slot = handle;
                    }
                    drop(running);
                    if !self.inner.is_open() {
                        // Closed meanwhile: this one did not exist yet when the others were told to stop.
                        self.inner.stop_threads();
                    }
                }
                Err(error) => {
                    self.inner.fail(*error);
                    if self.inner.thread_ended(thread, false) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn end(self) {
        let Supervisor {
            inner,
            launcher,
            mut metrics,
            failed,
            ..
        } = self;
        let mut running = lock(&inner.running);
        let (global, directory) = (running.global.take(), running.directory.take());
        drop(running);
        drop((global, directory, launcher));
        if !inner.become_state(State::NotRunning) {
            inner.become_state(State::Error);
        }
        inner.publish(&mut metrics, failed);
    }
}

impl Inner {
    /// Whether it neither stops nor has stopped.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.state.borrow(), State::Rebalancing | State::Running)
    }

    fn publish(&self, metrics: &mut ClientMetrics, failed: u64) {
        let running = lock(&self.running);
        let alive = running.threads.iter().filter(|thread| !thread.ended).count();
        let directory = running.directory.clone();
        let statuses: Vec<_> = running
            .threads
            .iter()
            .filter(|thread| !thread.ended)
            .filter_map(|thread| thread.shared.status())
            .collect();
        drop(running);
        if let Some(directory) = &directory {
            let of_threads = |of: fn(&CoreStatus) -> usize| statuses.iter().map(of).sum::<usize>() as u64;
            let mut in_use = directory.memory_in_use();
            in_use.extend([
                ("caches", of_threads(|status| status.cache_bytes)),
                ("overlays", of_threads(|status| status.overlay_bytes)),
                ("outbox", of_threads(|status| status.outbox_bytes)),
                ("input-queues", of_threads(|status| status.queue_bytes)),
            ]);
            let mut limits = directory.memory().parts().to_vec();
            limits.push(("total", directory.memory().total()));
            metrics.memory(&in_use, &limits);
        }
        let set_aside = directory.map_or(0, |directory| directory.set_aside_total());
        metrics.publish(self.state.borrow().number(), alive, failed, set_aside);
    }

    fn thread_state(&self, number: usize, state: State) {
        let all_run = {
            let mut running = lock(&self.running);
            if let Some(thread) = number.checked_sub(1).and_then(|at| running.threads.get_mut(at)) {
                thread.state = state;
            }
            let runs = |thread: &super::instance::ThreadHandle| thread.ended || thread.state == State::Running;
            running.threads.iter().all(|thread| runs(thread) && !thread.replacing)
        };
        self.become_state(if all_run { State::Running } else { State::Rebalancing });
    }

    fn fail(&self, error: Error) {
        lock(&self.error).get_or_insert(Arc::new(error));
        self.become_state(State::PendingError);
        self.stop_threads();
    }

    /// Notes the end of a thread; answers whether it was the last and none is to be replaced.
    fn thread_ended(&self, number: usize, replacing: bool) -> bool {
        let mut running = lock(&self.running);
        let mut handle = None;
        if let Some(thread) = number.checked_sub(1).and_then(|at| running.threads.get_mut(at)) {
            thread.ended = true;
            thread.replacing = replacing;
            handle = thread.thread.take();
        }
        let last = running.threads.iter().all(|thread| thread.ended && !thread.replacing);
        drop(running);
        if let Some(handle) = handle {
            let _ = handle.join();
        }
        if replacing {
            self.become_state(State::Rebalancing);
        }
        last
    }

    pub(super) fn stop_threads(&self) {
        for thread in &lock(&self.running).threads {
            thread.shared.stop.store(true, Ordering::Relaxed);
        }
    }
}
