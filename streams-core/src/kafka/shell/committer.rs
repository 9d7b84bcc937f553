//! The committer: a thread that makes the calls of a commit, which block for as long as the broker takes, so that the
//! stream thread goes on with the next epoch meanwhile.
//!
//! The producer goes to this thread with the call and comes back with its result: it is never in two hands.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::Clock;
use super::offsets;
use crate::error::{Error, ProcessResult};
use crate::kafka::consumer::WakeHandle;
use crate::kafka::errors::TxnError;
use crate::kafka::group::OffsetCommitter;
use crate::kafka::producer::{GroupIdentity, OffsetCommit, TransactionalProducer};
use crate::membership::codec::offset_commit::OffsetCommitRequest;
use crate::runtime::CallFailure;

/// One slice of a call that may be made again, milliseconds.
pub(super) const SLICE_MS: u64 = 2_000;
/// A call returns within its slice, milliseconds; what comes on top is the machine's.
pub(super) const CALL_BOUND_MS: u64 = SLICE_MS * 5;

/// A call that waits for the broker.
pub(super) enum CommitCall {
    /// Wait for every delivery report.
    Flush,
    /// Add the offsets to the transaction.
    SendOffsets(Vec<OffsetCommit>, GroupIdentity),
    /// Commit the transaction.
    Commit,
    /// Commit offsets outside of transactions, on the group's own connection.
    Offsets(OffsetCommitter, OffsetCommitRequest),
}

/// Why a call did not succeed.
pub(super) enum CallError {
    /// The producer's.
    Producer(TxnError),
    /// The group's.
    Group(CallFailure),
}

impl CommitCall {
    /// The name of the effect that it carries out.
    pub(super) fn name(&self) -> &'static str {
        match self {
            CommitCall::Flush => "flush",
            CommitCall::SendOffsets(..) => "send-offsets",
            CommitCall::Commit => "commit",
            CommitCall::Offsets(..) => "commit-offsets",
        }
    }

    fn make(&self, producer: &TransactionalProducer) -> Result<(), CallError> {
        let done = match self {
            CommitCall::Flush => producer.flush(SLICE_MS),
            CommitCall::SendOffsets(offsets, group) => producer.send_offsets(offsets, group, SLICE_MS),
            CommitCall::Commit => producer.commit(SLICE_MS),
            CommitCall::Offsets(group, request) => {
                let answer = group.commit(request.clone(), Duration::from_millis(SLICE_MS));
                return offsets::result_of(answer).map_err(CallError::Group);
            }
        };
        done.map_err(CallError::Producer)
    }
}

/// A call that has returned.
pub(super) struct Finished {
    pub(super) producer: TransactionalProducer,
    pub(super) call: CommitCall,
    pub(super) result: Result<(), CallError>,
    /// How long the call took.
    pub(super) took_ns: u64,
}

/// Makes one call at a time on a thread of its own.
pub(super) struct Committer {
    calls: Option<Sender<(TransactionalProducer, CommitCall)>>,
    finished: Receiver<Finished>,
    busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread. `wake` ends the stream thread's wait for records when a call has returned.
    pub(super) fn start(name: &str, wake: WakeHandle) -> ProcessResult<Self> {
        let (calls, incoming) = mpsc::channel::<(TransactionalProducer, CommitCall)>();
        let (outgoing, finished) = mpsc::channel();
        let work = move || {
            while let Ok((producer, call)) = incoming.recv() {
                let started_ns = Clock::now_ns();
                let result = call.make(&producer);
                let finished = Finished {
                    producer,
                    call,
                    result,
                    took_ns: Clock::now_ns() - started_ns,
                };
                if outgoing.send(finished).is_err() {
                    return;
                }
                wake.wake();
            }
        };
        let thread = std::thread::Builder::new().name(format!("{name}-commit")).spawn(work);
        let thread = thread.map_err(|error| Error::bug(format!("the commit thread can't be started: {error}")))?;
        Ok(Committer {
            calls: Some(calls),
            finished,
            busy: false,
            thread: Some(thread),
        })
    }

    /// Hands over a call. The producer comes back with its result.
    pub(super) fn submit(&mut self, producer: TransactionalProducer, call: CommitCall) -> ProcessResult {
        let calls = self.calls.as_ref();
        self.busy = calls.is_some_and(|calls| calls.send((producer, call)).is_ok());
        if self.busy { Ok(()) } else { Err(ended()) }
    }

    /// Whether a call is on its way.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    /// The call that has returned, if one has.
    pub(super) fn try_finished(&mut self) -> ProcessResult<Option<Finished>> {
        if !self.busy {
            return Ok(None);
        }
        match self.finished.try_recv() {
            Ok(finished) => {
                self.busy = false;
                Ok(Some(finished))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(ended()),
        }
    }

    /// Waits for the call that is on its way, up to `timeout_ms`.
    pub(super) fn wait_finished(&mut self, timeout_ms: u64) -> ProcessResult<Option<Finished>> {
        if !self.busy {
            return Ok(None);
        }
        match self.finished.recv_timeout(Duration::from_millis(timeout_ms)) {
            Ok(finished) => {
                self.busy = false;
                Ok(Some(finished))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }

    /// The producer back, whatever its call came to; `None` when there is none out, or it does not come in time.
    pub(super) fn take_back(&mut self) -> Option<TransactionalProducer> {
        self.wait_finished(CALL_BOUND_MS)
            .ok()
            .flatten()
            .map(|finished| finished.producer)
    }
}

impl Drop for Committer {
    /// Ends the thread; a call that is on its way returns within its slice.
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by its own hook.
            let _ = thread.join();
        }
    }
}

fn ended() -> Box<Error> {
    Error::bug("the commit thread has ended")
}
