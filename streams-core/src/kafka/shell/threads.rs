//! Stream threads that come and go while the instance runs (KIP-663).

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::clock::Clock;
use super::instance::{Inner, ThreadHandle, lock};
use super::state::State;
use super::supervise::Supervisor;
use super::thread::{Removal, ThreadEvent};
use crate::error::{Error, ProcessResult};

impl Inner {
    /// Asks the supervisor for one more thread.
    pub(super) fn add_thread(&self) -> ProcessResult<Option<String>> {
        self.refuse_in_listener()?;
        let (answer, answered) = channel();
        self.order(ThreadEvent::Add { answer });
        // An instance that has ended answers nothing.
        answered.recv().unwrap_or(Ok(None))
    }

    /// Asks the supervisor to end one thread, and waits for that unless it is the calling thread itself.
    pub(super) fn remove_thread(&self, timeout: Duration) -> ProcessResult<Option<String>> {
        self.refuse_in_listener()?;
        let caller = std::thread::current().name().map(str::to_owned);
        let (answer, answered) = channel();
        let clock = Clock::new();
        let end_ms = clock
            .now_ms()
            .saturating_add(i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX));
        self.order(ThreadEvent::Remove {
            caller: caller.clone(),
            answer,
        });
        let name = match answered.recv() {
            Ok(Removal::Told(name)) => name,
            _ => return Ok(None),
        };
        if caller.as_deref() == Some(&name) {
            return Ok(Some(name));
        }
        let left_ms = u64::try_from(end_ms.saturating_sub(clock.now_ms())).unwrap_or(0);
        match answered.recv_timeout(Duration::from_millis(left_ms)) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => Ok(Some(name)),
            Err(RecvTimeoutError::Timeout) => Err(Box::new(Error::Timeout {
                what: name,
                waited_ms: i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX),
                setting: "the timeout of remove_stream_thread",
            })),
        }
    }

    /// The supervisor calls the state listener, and can't carry out an order while it is in there.
    fn refuse_in_listener(&self) -> ProcessResult {
        let running = lock(&self.running);
        let supervisor = running.supervisor.as_ref().map(|handle| handle.thread().id());
        if supervisor == Some(std::thread::current().id()) {
            return Err(Box::new(Error::Config {
                message: "a state listener can't add or remove stream threads, because the instance waits for its \
                          return: do it on another thread"
                    .to_owned(),
            }));
        }
        Ok(())
    }

    fn order(&self, order: ThreadEvent) {
        if let Some(orders) = &lock(&self.running).orders {
            // Nobody listens once the instance has ended: the answer's channel closes with the order.
            let _ = orders.send(order);
        }
    }

    /// Stream threads that work or are about to be replaced.
    pub(super) fn live_threads(&self) -> usize {
        let counts = |thread: &&ThreadHandle| !thread.leaving && (!thread.ended || thread.replacing);
        lock(&self.running).threads.values().filter(counts).count()
    }
}

impl Supervisor {
    /// One more thread, under the smallest number that is free, as in Java.
    pub(super) fn add(&mut self) -> ProcessResult<Option<String>> {
        if !self.inner.is_open() {
            tracing::warn!(state = %*self.inner.state.borrow(), "no stream thread is added");
            return Ok(None);
        }
        let number = {
            let running = lock(&self.inner.running);
            (1..).find(|number| !running.threads.contains_key(number)).unwrap_or(1)
        };
        let live = self.inner.live_threads();
        self.inner.shares.set_threads(live + 1);
        let handle = self
            .launcher
            .start(number)
            .inspect_err(|_| self.inner.shares.set_threads(live))?;
        let name = handle.name.clone();
        tracing::info!(thread = number, live = live + 1, "a stream thread is added");
        lock(&self.inner.running).threads.insert(number, handle);
        self.inner.become_state(State::Rebalancing);
        if !self.inner.is_open() {
            // Closed meanwhile: this one did not exist yet when the others were told to stop.
            self.inner.stop_threads();
            return Ok(None);
        }
        Ok(Some(name))
    }

    /// Ends the thread with the highest number that is not the caller's, so that the numbers that stay are those that a
    /// restart has; the caller's only when there is no other. Java says of none which it is.
    pub(super) fn remove(&mut self, caller: Option<&str>, answer: Sender<Removal>) {
        let chosen = if self.inner.is_open() {
            self.choose(caller)
        } else {
            None
        };
        let Some((number, name, ended)) = chosen else {
            tracing::warn!(state = %*self.inner.state.borrow(), "no stream thread is removed");
            let _ = answer.send(Removal::NoThread);
            return;
        };
        self.inner.shares.set_threads(self.inner.live_threads());
        tracing::info!(thread = number, name, "a stream thread is removed");
        let _ = answer.send(Removal::Told(name));
        if ended {
            // It has failed, and is not replaced after all.
            self.replacements.remove(&number);
            lock(&self.inner.running).threads.remove(&number);
            let _ = answer.send(Removal::Gone);
            self.inner.look_at_threads();
        } else {
            self.removals.insert(number, answer);
        }
    }

    /// Tells a thread to end; answers its number, its name, and whether it had ended already and waits for its replacement.
    fn choose(&self, caller: Option<&str>) -> Option<(usize, String, bool)> {
        let mut running = lock(&self.inner.running);
        let stays = |thread: &ThreadHandle| thread.leaving || Some(&*thread.name) == caller;
        let others = running.threads.iter().rev().find(|(_, thread)| !stays(thread));
        let own = || running.threads.iter().find(|(_, thread)| !thread.leaving);
        let number = others.or_else(own).map(|(number, _)| *number)?;
        let thread = running.threads.get_mut(&number)?;
        thread.leaving = true;
        thread.shared.stop.store(true, Ordering::Relaxed);
        Some((number, thread.name.clone(), thread.ended))
    }

    /// A thread that was to be removed has ended.
    pub(super) fn removed(&mut self, number: usize) {
        let handle = lock(&self.inner.running).threads.remove(&number);
        if let Some(thread) = handle.and_then(|handle| handle.thread) {
            let _ = thread.join();
        }
        self.inner.look_at_threads();
        if let Some(answer) = self.removals.remove(&number) {
            let _ = answer.send(Removal::Gone);
        }
    }
}
