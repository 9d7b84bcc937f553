//! What a stream thread shows of itself: its state, status, restores and metrics.

use super::{StreamThread, ThreadEvent};
use crate::kafka::shell::clock::Clock;
use crate::kafka::shell::state::State;
use crate::metrics::publish::Phase;

/// How often the thread's status is published, milliseconds.
const PUBLISH_MS: i64 = 100;
/// How often the storage is asked about itself for metrics, milliseconds.
const DEEP_MS: i64 = 10_000;

impl StreamThread {
    pub(super) fn publish(&mut self) {
        let now_ms = self.clock.now_ms();
        let settled = self.core.status_settled();
        if now_ms - self.published_ms < PUBLISH_MS && (settled == (self.state == State::Running)) {
            return;
        }
        self.publish_at(now_ms);
        self.look_at_share();
        let running = settled && self.gate.is_open(now_ms);
        if running {
            self.metrics.start_up(Phase::Restore, Clock::now_ns());
        }
        self.tell(if running { State::Running } else { State::Rebalancing });
    }

    /// Takes another part of the memory when threads came or went.
    fn look_at_share(&mut self) {
        let share = self.shares.of(&self.memory);
        if share != self.share {
            tracing::info!(
                cache_bytes = share.cache_bytes,
                uncommitted_bytes = share.uncommitted_bytes,
                "the number of stream threads changed, and so did this thread's part of the memory"
            );
            self.core.set_memory(share.cache_bytes, share.uncommitted_bytes);
            self.share = share;
        }
    }

    pub(super) fn publish_at(&mut self, now_ms: i64) {
        let (status, restores) = (self.core.status(), self.clients.restorer.progress());
        let now_ns = Clock::now_ns();
        let elapsed_ns = now_ns - std::mem::replace(&mut self.published_ns, now_ns);
        let commits: Vec<_> = self.core.take_commits().collect();
        let core = &self.core;
        let gone = |task| core.counters_of_gone(task);
        self.metrics
            .publish(&status, commits.into_iter(), &restores, gone, elapsed_ns);
        let deep = now_ms - self.deep_ms >= DEEP_MS;
        if deep {
            self.deep_ms = now_ms;
        }
        self.metrics.publish_meters(core.meters(), elapsed_ns, deep);
        self.published_ms = now_ms;
        self.shared.set(status, restores);
    }

    pub(super) fn tell(&mut self, state: State) {
        if self.state != state {
            self.state = state;
            self.metrics.state(state.number());
            let _ = self.report.send(ThreadEvent::State {
                thread: self.number,
                state,
            });
        }
    }
}
