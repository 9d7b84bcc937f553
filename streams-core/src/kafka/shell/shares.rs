//! What each stream thread may use of the instance's memory: an equal part, which changes when threads come and go.

use std::sync::atomic::{AtomicUsize, Ordering};

use streams_state::MemoryBudget;

/// The least that a thread may hold uncommitted, bytes: one large record must fit.
const LEAST_UNCOMMITTED: usize = 1 << 20;

/// How many stream threads share the memory. Java: `KafkaStreams.resizeThreadCache`.
#[derive(Debug)]
pub(super) struct Shares(AtomicUsize);

/// A stream thread's part, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) cache_bytes: usize,
    pub(super) uncommitted_bytes: usize,
}

impl Shares {
    pub(super) fn new(threads: usize) -> Self {
        Shares(AtomicUsize::new(threads))
    }

    pub(super) fn set_threads(&self, threads: usize) {
        self.0.store(threads, Ordering::Relaxed);
    }

    /// A thread's part now. Without threads it is the whole, for the one that comes next.
    pub(super) fn of(&self, memory: &MemoryBudget) -> Share {
        let threads = self.0.load(Ordering::Relaxed).max(1);
        let share = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX) / threads;
        Share {
            cache_bytes: share(memory.caches()),
            uncommitted_bytes: share(memory.overlay_limit()).max(LEAST_UNCOMMITTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_threads_are_the_whole_whatever_their_number() {
        let memory = MemoryBudget::of(1 << 30).with_caches(100 << 20);
        let shares = Shares::new(1);
        for threads in [1, 2, 4, 5] {
            shares.set_threads(threads);
            assert_eq!(shares.of(&memory).cache_bytes * threads, 100 << 20);
        }
        shares.set_threads(0);
        assert_eq!(shares.of(&memory).cache_bytes, 100 << 20);
        shares.set_threads(1_000_000);
        assert_eq!(shares.of(&memory).uncommitted_bytes, 1 << 20);
    }
}
