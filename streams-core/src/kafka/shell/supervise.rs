//! Follows the stream threads: the instance runs when all of them do, replaces one that failed when the application says
//! so, and ends when they have ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::cleaner::Cleaner;
use super::clock::Clock;
use super::instance::{Inner, ThreadHandle, lock};
use super::launch::Launcher;
use super::state::State;
use super::thread::{Removal, ThreadEvent};
use crate::error::Error;
use crate::metrics::publish::ClientMetrics;
use crate::runtime::{CoreStatus, Reaction};

/// How often the metrics of the instance are published at least.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);
/// The longest wait while a thread is to be replaced: the instance may be closed meanwhile.
const REPLACE_LOOK: Duration = Duration::from_millis(50);

/// The supervisor of an instance.
pub(super) struct Supervisor {
    pub(super) inner: Arc<Inner>,
    pub(super) launcher: Launcher,
    metrics: ClientMetrics,
    clock: Clock,
    failed: u64,
    /// When threads are to be replaced, by number, milliseconds since the Unix epoch.
    pub(super) replacements: BTreeMap<usize, i64>,
    /// Who waits for the end of threads, by number.
    pub(super) removals: BTreeMap<usize, Sender<Removal>>,
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
            removals: BTreeMap::new(),
        }
    }

    /// Runs until the last thread has ended and none is to be replaced. An instance whose threads were all removed goes on
    /// without any, until it is closed.
    pub(super) fn run(mut self, reports: &Receiver<ThreadEvent>) {
        let mut cleaner = Cleaner::new(self.inner.config.state_cleanup_delay_ms);
        loop {
            self.inner.publish(&mut self.metrics, self.failed);
            self.replace();
            if self.inner.is_over() {
                break;
            }
            let wait = if self.replacements.is_empty() {
                PUBLISH_EVERY
            } else {
                REPLACE_LOOK
            };
            match reports.recv_timeout(wait) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => cleaner.clean(&self.inner),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.end();
    }

    /// Takes what a thread or the application says.
    fn take(&mut self, event: ThreadEvent) {
        match event {
            ThreadEvent::State { thread, state } => self.inner.thread_state(thread, state),
            ThreadEvent::ShutdownApplication { detail } => self.inner.fail(Error::Membership {
                message: format!("a member asked the whole application to stop: {detail}"),
            }),
            ThreadEvent::Ended { thread, reaction } => self.ended(thread, reaction),
            ThreadEvent::Add { answer } => {
                let added = self.add();
                let _ = answer.send(added);
            }
            ThreadEvent::Remove { caller, answer } => self.remove(caller.as_deref(), answer),
            ThreadEvent::Stopping => {}
        }
    }

    fn ended(&mut self, thread: usize, reaction: Option<Reaction>) {
        let leaving = self.inner.is_leaving(thread);
        match reaction {
            None => {}
            // It was to end anyway.
            Some(Reaction::Replace { .. }) if leaving => self.failed += 1,
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
        if leaving {
            self.removed(thread);
        } else {
            self.inner.thread_ended(thread, self.replacements.contains_key(&thread));
        }
    }

    /// Starts the threads whose time has come; none when the instance stops.
    fn replace(&mut self) {
        if self.replacements.is_empty() {
            return;
        }
        if !self.inner.is_open() {
            for thread in std::mem::take(&mut self.replacements).into_keys() {
                self.inner.thread_ended(thread, false);
            }
            return;
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
                    lock(&self.inner.running).threads.insert(thread, handle);
                    if !self.inner.is_open() {
                        // Closed meanwhile: this one did not exist yet when the others were told to stop.
                        self.inner.stop_threads();
                    }
                }
                Err(error) => {
                    self.inner.fail(*error);
                    self.inner.thread_ended(thread, false);
                }
            }
        }
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
        running.orders = None;
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
        let alive = running.threads.values().filter(|thread| !thread.ended).count();
        let directory = running.directory.clone();
        let statuses: Vec<_> = running
            .threads
            .values()
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
        if let Some(thread) = lock(&self.running).threads.get_mut(&number) {
            thread.state = state;
        }
        self.look_at_threads();
    }

    /// The instance runs when every thread does that stays.
    pub(super) fn look_at_threads(&self) {
        let runs = |thread: &ThreadHandle| thread.leaving || thread.ended || thread.state == State::Running;
        let all_run = lock(&self.running)
            .threads
            .values()
            .all(|thread| runs(thread) && !thread.replacing);
        self.become_state(if all_run { State::Running } else { State::Rebalancing });
    }

    fn is_leaving(&self, number: usize) -> bool {
        lock(&self.running)
            .threads
            .get(&number)
            .is_some_and(|thread| thread.leaving)
    }

    /// Whether every thread has ended and none is to be replaced. An instance that is open and has no thread at all waits
    /// for one to be added.
    fn is_over(&self) -> bool {
        let running = lock(&self.running);
        let ended = running.threads.values().all(|thread| thread.ended && !thread.replacing);
        ended && !(running.threads.is_empty() && self.is_open())
    }

    fn fail(&self, error: Error) {
        lock(&self.error).get_or_insert(Arc::new(error));
        self.become_state(State::PendingError);
        self.stop_threads();
    }

    /// Notes the end of a thread.
    fn thread_ended(&self, number: usize, replacing: bool) {
        let mut handle = None;
        if let Some(thread) = lock(&self.running).threads.get_mut(&number) {
            thread.ended = true;
            thread.replacing = replacing;
            handle = thread.thread.take();
        }
        if let Some(handle) = handle {
            let _ = handle.join();
        }
        if replacing {
            self.become_state(State::Rebalancing);
        }
    }

    pub(super) fn stop_threads(&self) {
        let running = lock(&self.running);
        for thread in running.threads.values() {
            thread.shared.stop.store(true, Ordering::Relaxed);
        }
        // There may be no thread whose end would tell it.
        if let Some(orders) = &running.orders {
            let _ = orders.send(ThreadEvent::Stopping);
        }
    }
}
