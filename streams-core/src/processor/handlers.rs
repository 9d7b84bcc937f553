//! What to do with records that can't be read, processed or written, and dead letters (KIP-1033, KIP-1034).

use std::error::Error as StdError;
use std::sync::Arc;

use super::TaskContext;
use crate::error::ProcessResult;
use crate::serde::SerdeError;
use crate::{Headers, TaskId};

/// Whether to go on after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Drop the record at the place of its failure, count it, go on. What it did before stays.
    Resume,
    /// Stop: the transaction is aborted and the uncaught-exception answer decides.
    Fail,
}

/// Whether to go on after a record could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductionDecision {
    /// Drop the record, count it, go on.
    Resume,
    /// Stop.
    Fail,
    /// Abort the transaction and process its input again; only for failures that may pass.
    Retry,
}

/// A record for a dead-letter topic, sent in the same transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The topic; it must exist.
    pub topic: Arc<str>,
    /// The key; `None` is null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is null.
    pub value: Option<Vec<u8>>,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
    /// The headers.
    pub headers: Headers,
}

/// A handler's answer.
#[derive(Clone, Debug)]
pub struct HandlerResponse<D = Decision> {
    /// Whether to go on.
    pub decision: D,
    /// Own dead letters; `None` = the usual one if `errors.dead.letter.queue.topic.name` is set.
    pub dead_letters: Option<Vec<DeadLetter>>,
}

impl<D> From<D> for HandlerResponse<D> {
    fn from(decision: D) -> Self {
        HandlerResponse {
            decision,
            dead_letters: None,
        }
    }
}

/// Where a failure happened. Raw bytes are those of the source record; none in a punctuation.
#[derive(Clone, Debug)]
pub struct ErrorContext {
    /// The source topic; empty in a punctuation.
    pub topic: Arc<str>,
    /// The source partition; -1 in a punctuation.
    pub partition: i32,
    /// The source offset; -1 in a punctuation.
    pub offset: i64,
    /// The headers of the source record.
    pub headers: Headers,
    /// The node, where there is one.
    pub node: Option<String>,
    /// The task.
    pub task: TaskId,
    /// Event time of the source record, milliseconds since the Unix epoch; punctuation time in a punctuation.
    pub timestamp_ms: i64,
    /// The source record's key bytes.
    pub source_key: Option<Vec<u8>>,
    /// The source record's value bytes.
    pub source_value: Option<Vec<u8>>,
}

/// Answers for keys and values that can't be read. Java: `DeserializationExceptionHandler`.
pub trait DeserializationHandler: Send + Sync {
    /// Decides about one record; `what` is `key` or `value`.
    fn handle(&self, context: &ErrorContext, what: &'static str, error: &SerdeError) -> HandlerResponse;
}

/// Answers for user code that failed or panicked. Java: `ProcessingExceptionHandler` (KIP-1033).
pub trait ProcessingHandler: Send + Sync {
    /// Decides about one record or punctuation.
    fn handle(&self, context: &ErrorContext, error: &(dyn StdError + Send + Sync + 'static)) -> HandlerResponse;

    /// Whether `handle` can answer `Resume`: then old values are kept while an aggregate is updated in place.
    fn may_resume(&self) -> bool {
        true
    }
}

/// Answers for records that can't be written or sent. Java: `ProductionExceptionHandler`.
pub trait ProductionHandler: Send + Sync {
    /// Decides about a key or value that has no byte form, or is too large.
    fn handle_serialization(&self, context: &ErrorContext, topic: &str, error: &SerdeError) -> HandlerResponse;

    /// Decides about a send that failed; `retriable` tells whether it may pass.
    fn handle_send(&self, topic: &str, code: &str, message: &str, retriable: bool) -> ProductionDecision;
}

/// Logs and stops. Java: `LogAndFailExceptionHandler`, `DefaultProductionExceptionHandler`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogAndFail;

/// Logs and goes on. Java: `LogAndContinueExceptionHandler`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogAndContinue;

fn log(context: &ErrorContext, what: &str, error: &(dyn StdError + 'static), decision: Decision) {
    // No key, value or header content here: only where the record lies.
    tracing::warn!(
        topic = &*context.topic, partition = context.partition, offset = context.offset, task_id = %context.task,
        node = context.node.as_deref().unwrap_or_default(), error, ?decision, "{what} failed"
    );
}

impl DeserializationHandler for LogAndFail {
    fn handle(&self, context: &ErrorContext, what: &'static str, error: &SerdeError) -> HandlerResponse {
        log(context, what, error, Decision::Fail);
        Decision::Fail.into()
    }
}

impl DeserializationHandler for LogAndContinue {
    fn handle(&self, context: &ErrorContext, what: &'static str, error: &SerdeError) -> HandlerResponse {
        log(context, what, error, Decision::Resume);
        Decision::Resume.into()
    }
}

impl ProcessingHandler for LogAndFail {
    fn handle(&self, context: &ErrorContext, error: &(dyn StdError + Send + Sync + 'static)) -> HandlerResponse {
        log(context, "processing", error, Decision::Fail);
        Decision::Fail.into()
    }

    fn may_resume(&self) -> bool {
        false
    }
}

impl ProcessingHandler for LogAndContinue {
    fn handle(&self, context: &ErrorContext, error: &(dyn StdError + Send + Sync + 'static)) -> HandlerResponse {
        log(context, "processing", error, Decision::Resume);
        Decision::Resume.into()
    }
}

impl ProductionHandler for LogAndFail {
    fn handle_serialization(&self, context: &ErrorContext, topic: &str, error: &SerdeError) -> HandlerResponse {
        log(context, &format!("writing for topic {topic}"), error, Decision::Fail);
        Decision::Fail.into()
    }

    fn handle_send(&self, topic: &str, code: &str, message: &str, retriable: bool) -> ProductionDecision {
        tracing::warn!(topic, code, message, retriable, "a record was not sent");
        if retriable {
            ProductionDecision::Retry
        } else {
            ProductionDecision::Fail
        }
    }
}

impl ProductionHandler for LogAndContinue {
    fn handle_serialization(&self, context: &ErrorContext, topic: &str, error: &SerdeError) -> HandlerResponse {
        log(context, &format!("writing for topic {topic}"), error, Decision::Resume);
        Decision::Resume.into()
    }

    fn handle_send(&self, topic: &str, code: &str, message: &str, retriable: bool) -> ProductionDecision {
        tracing::warn!(topic, code, message, retriable, "a record was not sent");
        if retriable {
            ProductionDecision::Retry
        } else {
            ProductionDecision::Resume
        }
    }
}

/// The handlers of an application, and where dead letters go.
#[derive(Clone)]
pub struct ErrorHandlers {
    /// For keys and values that can't be read.
    pub deserialization: Arc<dyn DeserializationHandler>,
    /// For user code that failed.
    pub processing: Arc<dyn ProcessingHandler>,
    /// For records that can't be written or sent.
    pub production: Arc<dyn ProductionHandler>,
    /// `errors.dead.letter.queue.topic.name`.
    pub dead_letter_topic: Option<Arc<str>>,
}

impl Default for ErrorHandlers {
    fn default() -> Self {
        ErrorHandlers {
            deserialization: Arc::new(LogAndFail),
            processing: Arc::new(LogAndFail),
            production: Arc::new(LogAndFail),
            dead_letter_topic: None,
        }
    }
}

/// The headers of a dead letter, in the order in which they are appended (KIP-1034, `ExceptionHandlerUtils`).
pub const DEAD_LETTER_HEADERS: [&str; 6] = [
    "__streams.errors.exception",
    "__streams.errors.message",
    "__streams.errors.stacktrace",
    "__streams.errors.topic",
    "__streams.errors.partition",
    "__streams.errors.offset",
];

impl TaskContext {
    /// Writes the dead letters of an answer into the outbox, that is into the transaction.
    pub(crate) fn send_dead_letters<D>(
        &mut self,
        answer: &HandlerResponse<D>,
        class: &str,
        message: &str,
    ) -> ProcessResult {
        let own;
        let letters: &[DeadLetter] = match &answer.dead_letters {
            Some(letters) => letters,
            None => match self.handlers().dead_letter_topic.clone() {
                None => return Ok(()),
                Some(topic) => {
                    own = [self.usual_dead_letter(topic, class, message)];
                    &own
                }
            },
        };
        for letter in letters {
            self.emit_dead_letter(letter)?;
            self.counters.produced_records += 1;
            self.counters.dead_letters += 1;
        }
        Ok(())
    }

    pub(super) fn usual_dead_letter(&self, topic: Arc<str>, class: &str, message: &str) -> DeadLetter {
        let context = self.error_context(None);
        let mut headers = context.headers;
        let (partition, offset) = (context.partition.to_string(), context.offset.to_string());
        let place = self.place().to_string();
        let values = [class, message, &*place, &*context.topic, &*partition, &*offset];
        for (key, value) in DEAD_LETTER_HEADERS.iter().zip(values) {
            headers.add(key, Some(value.as_bytes()));
        }
        DeadLetter {
            topic,
            key: context.source_key,
            value: context.source_value,
            timestamp_ms: context.timestamp_ms,
            headers,
        }
    }
}
