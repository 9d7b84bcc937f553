//! What the stream thread has to say to the heartbeat thread. Bounded by its form: one place for each kind of command.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::OffsetCommitFailure;
use super::clock::Clock;
use crate::membership::MembershipCommand;
use crate::membership::codec::offset_commit::{CommittedTopic, OffsetCommitRequest};

#[derive(Debug)]
pub(super) struct Mailbox {
    clock: Clock,
    /// When the stream thread looped last. Not part of the identity of commits, so it may be shared.
    alive_at_ms: AtomicI64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    owned: Option<MembershipCommand>,
    heartbeat_now: Option<MembershipCommand>,
    leave: Option<MembershipCommand>,
    rejoin: Option<MembershipCommand>,
    /// An offset commit that is to be made, with its number.
    commit: Option<(u64, OffsetCommitRequest)>,
    /// The end of the last one that was made.
    committed: Option<(u64, Result<Vec<CommittedTopic>, OffsetCommitFailure>)>,
    commits: u64,
    /// The stream thread has dropped its end.
    closed: bool,
    /// The heartbeat thread has ended.
    ended: bool,
}

impl State {
    fn calls(&self) -> bool {
        self.closed
            || self.owned.is_some()
            || self.heartbeat_now.is_some()
            || self.leave.is_some()
            || self.rejoin.is_some()
            || self.commit.is_some()
    }
}

impl Mailbox {
    pub(super) fn new(clock: Clock) -> Self {
        let alive_at_ms = AtomicI64::new(clock.now_ms());
        Self {
            clock,
            alive_at_ms,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    pub(super) fn stamp_alive(&self) {
        self.alive_at_ms.store(self.clock.now_ms(), Ordering::Relaxed);
    }

    pub(super) fn put(&self, command: MembershipCommand) {
        let mut state = self.lock();
        match command {
            MembershipCommand::Owned { .. } => state.owned = Some(command),
            MembershipCommand::HeartbeatNow => state.heartbeat_now = Some(command),
            MembershipCommand::Leave { .. } => state.leave = Some(command),
            MembershipCommand::Rejoin { .. } => state.rejoin = Some(command),
            MembershipCommand::Alive { .. } => {}
        }
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// The waiting commands, sign of life first; `None` when the stream thread has dropped its end.
    pub(super) fn take(&self) -> Option<Vec<MembershipCommand>> {
        let at_ms = self.alive_at_ms.load(Ordering::Relaxed);
        let mut state = self.lock();
        // A leave that was commanded is carried out even when the sender is gone by now.
        let leave = state.leave.take();
        if state.closed && leave.is_none() {
            return None;
        }
        let rest = [
            state.owned.take(),
            state.heartbeat_now.take(),
            state.rejoin.take(),
            leave,
        ];
        Some(
            std::iter::once(MembershipCommand::Alive { at_ms })
                .chain(rest.into_iter().flatten())
                .collect(),
        )
    }

    /// Lets the heartbeat thread make an offset commit and waits for its end, for `timeout` at most.
    pub(super) fn commit(
        &self,
        request: OffsetCommitRequest,
        timeout: Duration,
    ) -> Result<Vec<CommittedTopic>, OffsetCommitFailure> {
        let mut state = self.lock();
        if state.ended || state.closed {
            return Err(OffsetCommitFailure::NotSent("the membership has ended".to_owned()));
        }
        state.commits += 1;
        let number = state.commits;
        state.commit = Some((number, request));
        state.committed = None;
        self.changed.notify_all();
        let waits = |state: &mut State| !state.ended && state.committed.is_none();
        let waited = self.changed.wait_timeout_while(state, timeout, waits);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match (state.committed.take(), state.commit.take()) {
            (Some((of, result)), _) if of == number => result,
            (_, Some(_)) => Err(OffsetCommitFailure::NotSent(
                "the connection to the group was busy for too long".to_owned(),
            )),
            _ => Err(OffsetCommitFailure::Unknown(
                "the group did not answer in time".to_owned(),
            )),
        }
    }

    /// The offset commit that is to be made now.
    pub(super) fn take_commit(&self) -> Option<(u64, OffsetCommitRequest)> {
        self.lock().commit.take()
    }

    /// How an offset commit ended. Nobody may wait for it any more; then a newer one has another number.
    pub(super) fn put_committed(&self, number: u64, result: Result<Vec<CommittedTopic>, OffsetCommitFailure>) {
        let mut state = self.lock();
        if state.commits == number {
            state.committed = Some((number, result));
        }
        self.changed.notify_all();
    }

    /// Waits until `until_ms` or until there is something to take.
    pub(super) fn wait_call(&self, until_ms: i64) {
        let timeout = u64::try_from(until_ms - self.clock.now_ms()).unwrap_or(0);
        drop(
            self.changed
                .wait_timeout_while(self.lock(), Duration::from_millis(timeout), |state| !state.calls()),
        );
    }

    /// Waits until the heartbeat thread has ended; says whether it has.
    pub(super) fn wait_ended(&self, timeout: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), timeout, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// The state is whole after a panic too: each change is one assignment.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
