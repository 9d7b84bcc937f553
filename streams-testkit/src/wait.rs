//! Bounded waiting: the one place of this crate that reads the clock and sleeps.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Time between two looks at a condition that cannot wake us (a port, a file, a child process).
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The end of a bounded wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    started: Instant,
    limit: Duration,
}

impl Deadline {
    /// A wait of at most `limit` that begins now.
    #[allow(clippy::disallowed_methods)] // waiting for real processes and sockets needs the real clock
    pub(crate) fn after(limit: Duration) -> Self {
        Self {
            started: Instant::now(),
            limit,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    pub(crate) fn expired(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The time for one blocking call: what is left, but at most `slice`.
    pub(crate) fn slice(&self, slice: Duration) -> Duration {
        self.remaining().min(slice)
    }
}

/// Sleeps. Only for polling conditions and for the random moments of a kill loop.
#[allow(clippy::disallowed_methods)] // the polling loops of a test kit; nothing takes a sleep as proof that something happened
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Calls `look` until it gives a value; `None` when `deadline` has passed. Looks at least once.
pub(crate) fn poll<T>(deadline: Deadline, mut look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        if deadline.expired() {
            return Ok(None);
        }
        pause(deadline.slice(POLL_INTERVAL));
    }
}

/// Waits until `condition` holds, looking every 20 ms.
///
/// `what` names the condition in the error. For the contents of a topic use
/// [`Collector::wait_until`](crate::Collector::wait_until), which reports what it saw.
///
/// # Errors
/// [`Error::Timeout`] when `timeout` has passed; whatever `condition` returns as an error ends the wait at once.
///
/// # Example
/// ```
/// # use std::time::Duration;
/// let mut looks = 0;
/// streams_testkit::wait_until("the third look", Duration::from_secs(5), || {
///     looks += 1;
///     Ok(looks == 3)
/// })?;
/// # Ok::<(), streams_testkit::Error>(())
/// ```
pub fn wait_until(what: &str, timeout: Duration, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    poll(Deadline::after(timeout), || Ok(condition()?.then_some(())))?.ok_or_else(|| Error::Timeout {
        waiting_for: what.to_owned(),
        waited: timeout,
        seen: "the condition never held".to_owned(),
    })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, at most until `deadline`: the admin client is asynchronous, a test is not.
pub(crate) fn block_on<F: Future>(future: F, deadline: Deadline) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        if deadline.expired() {
            return None;
        }
        std::thread::park_timeout(deadline.remaining());
    }
}
