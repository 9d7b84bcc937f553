//! The application's answer to the end of a stream thread, asked on the dying thread, as in Java.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::runtime::{FailureLog, Reaction, StreamThreadExceptionResponse};

/// Answers errors that end a stream thread; called on that thread. Java: `StreamsUncaughtExceptionHandler` (KIP-671).
pub type UncaughtExceptionHandler = Box<dyn Fn(&Error) -> StreamThreadExceptionResponse + Send + Sync>;

/// The handler and what failed so far in this client.
#[derive(Default)]
pub(super) struct Uncaught {
    handler: Mutex<Option<UncaughtExceptionHandler>>,
    log: Mutex<FailureLog>,
}

impl Uncaught {
    pub(super) fn set(&self, handler: UncaughtExceptionHandler) {
        *self.handler.lock().unwrap_or_else(PoisonError::into_inner) = Some(handler);
    }

    /// What has to be done about the end of a thread; without a handler the client stops.
    pub(super) fn react(&self, thread: usize, error: Box<Error>, now_ms: i64) -> Reaction {
        let answer = {
            let handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
            let ask = || handler.as_ref().map(|handler| handler(&error)).unwrap_or_default();
            catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|panic| {
                let message = crate::processor::panic_message(&*panic);
                tracing::error!(
                    message,
                    "the uncaught-exception handler itself failed: the client stops"
                );
                StreamThreadExceptionResponse::ShutdownClient
            })
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let reaction = log.react(thread, error, answer, now_ms);
        match &reaction {
            Reaction::Replace { after_ms, error } => {
                tracing::error!(%error, after_ms, "the stream thread ends; another takes its place");
            }
            Reaction::ShutdownClient(error) => {
                tracing::error!(%error, ?answer, "the stream thread ends; the client stops");
            }
            Reaction::ShutdownApplication(error) => {
                tracing::error!(%error, "the stream thread ends; the whole application is asked to stop");
            }
        }
        reaction
    }
}
