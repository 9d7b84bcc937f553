//! Waking a thread when a librdkafka queue gets its first element.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A thread waits here until any of its queues has something.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Waker {
    pub(crate) fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    /// Waits until woken, at most `timeout_ms`. Returns whether it was woken, and forgets it.
    pub(crate) fn wait(&self, timeout_ms: u64) -> bool {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.changed.wait_timeout_while(woken, Duration::from_millis(timeout_ms), |woken| !*woken);
        let (mut woken, _) = wait.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *woken)
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
        Signal { ready: AtomicBool::new(true), waker }
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
        assert!(waker.wait(0), "woken before the wait");
        assert!(!waker.wait(0), "only once");
        assert!(signal.take());
    }
}
