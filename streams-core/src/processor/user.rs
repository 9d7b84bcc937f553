//! The border to user code: closures may fail or panic, and both are processing errors of their node.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Decision, TaskContext};
use crate::error::{BoxError, Error, ProcessResult};

impl TaskContext {
    /// Calls user code of the node `node`. `Ok(None)` means: it failed and the processing handler answered `Resume`,
    /// so the record ends at this node (what it did before stays, as in Java).
    ///
    /// # Errors
    /// When it failed and the handler answered `Fail`.
    #[inline]
    pub fn call_user<R>(&mut self, node: &str, code: impl FnOnce() -> R) -> ProcessResult<Option<R>> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => Ok(Some(result)),
            Err(panic) => self
                .user_code_failed(node, panic_message(&*panic).into())
                .map(|()| None),
        }
    }

    /// As [`call_user`](Self::call_user), for user code that answers with a `Result` of its own.
    ///
    /// # Errors
    /// When it failed and the handler answered `Fail`.
    #[inline]
    pub fn try_user<R>(&mut self, node: &str, code: impl FnOnce() -> Result<R, BoxError>) -> ProcessResult<Option<R>> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(Ok(result)) => Ok(Some(result)),
            Ok(Err(error)) => self.user_code_failed(node, error).map(|()| None),
            Err(panic) => self
                .user_code_failed(node, panic_message(&*panic).into())
                .map(|()| None),
        }
    }

    /// Asks the processing handler what a failure of a node means; `Ok` = go on without the record.
    ///
    /// # Errors
    /// When the handler answered `Fail`.
    #[cold]
    pub fn user_code_failed(&mut self, node: &str, error: BoxError) -> ProcessResult {
        if self.note_bad_record("ProcessingException", &error.to_string()) {
            self.counters.dropped_records += 1;
            return Ok(());
        }
        let handlers = std::sync::Arc::clone(self.handlers());
        let response = handlers.processing.handle(&self.error_context(Some(node)), &*error);
        self.send_dead_letters(&response, "ProcessingException", &error.to_string())?;
        match response.decision {
            Decision::Resume => {
                self.counters.dropped_records += 1;
                Ok(())
            }
            Decision::Fail => Err(Box::new(Error::Processing {
                node: node.to_owned(),
                task: self.task(),
                place: self.place(),
                message: error.to_string(),
            })),
        }
    }
}

/// Calls user code where no context is at hand (inside a store's read); give the result to
/// [`TaskContext::try_user`] afterwards.
///
/// # Errors
/// The panic's message, if it panicked.
pub fn catch_user<R>(code: impl FnOnce() -> R) -> Result<R, BoxError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| panic_message(&*panic).into())
}

/// The text of a panic, for people.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(
        || "a panic without a message".to_owned(),
        |text| format!("panicked: {text}"),
    )
}
