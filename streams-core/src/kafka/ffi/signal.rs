//! Waking a thread when a librdkafka queue gets its first element.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A thread waits here until any of its queues has something.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    woken: bool,
    interrupted: bool,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Queue,
    Interrupt,
    Time,
}

impl Waker {
    pub(crate) fn wake(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).woken = true;
        self.changed.notify_one();
    }

    /// Ends the running wait, or else the next one.
    pub(crate) fn interrupt(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).interrupted = true;
        self.changed.notify_one();
    }

    /// Waits until woken or interrupted, at most `timeout_ms`, and forgets what ended the wait.
    pub(crate) fn wait(&self, timeout_ms: u64) -> Woken {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut State| !state.woken && !state.interrupted;
        let wait = self
            .changed
            .wait_timeout_while(state, Duration::from_millis(timeout_ms), waiting);
        let (mut state, _) = wait.unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *state) {
            State { interrupted: true, .. } => Woken::Interrupt,
            State { woken: true, .. } => Woken::Queue,
            State { .. } => Woken::Time,
        }
    }
}

/// Says that one queue is not empty. Raised by librdkafka's threads when the queue goes from empty to not empty.
#[derive(Debug)]
pub(crate) struct Signal {
    ready: AtomicBool,
    waker: Arc<Waker>,
}

impl Signal {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        // Ready from the start: the queue may have had elements before the signal was put in place.
        Signal {
            ready: AtomicBool::new(true),
            waker,
        }
    }

    pub(crate) fn raise(&self) {
        self.ready.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Marks the queue as not empty without waking anybody: its reader stopped before the end.
    pub(crate) fn keep(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether there is something to read; lowered *before* reading, so that no element is missed.
    pub(crate) fn take(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && self.ready.swap(false, Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_before_the_wait_is_not_lost() {
        let waker = Arc::new(Waker::default());
        let signal = Signal::new(Arc::clone(&waker));
        assert!(signal.take() && !signal.take());
        signal.raise();
        assert_eq!(waker.wait(0), Woken::Queue, "woken before the wait");
        assert_eq!(waker.wait(0), Woken::Time, "only once");
        assert!(signal.take());
        waker.interrupt();
        assert_eq!(waker.wait(60_000), Woken::Interrupt);
    }
}
