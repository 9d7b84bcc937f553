//! Errors, named for the decision they force, with the place where it happened.

use streams_state::StateError;

use crate::serde::SerdeError;
use crate::{TaskId, TopicPartition};

/// A boxed error of user code or of a client.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What every step of processing answers. The error is boxed so that the happy path stays one word wide.
pub type ProcessResult<T = ()> = Result<T, Box<Error>>;

/// Why a stream thread can't go on as it was. The variant tells what has to happen next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another member owns the task now, or our identity was fenced: drop uncommitted work, rejoin.
    #[error("tasks were taken over by another member: {reason}")]
    TaskMigrated {
        /// What told so.
        reason: String,
    },
    /// State and log disagree: stop and explain; nothing is deleted without being asked.
    #[error("state of task {task}, store {store} does not match its log: {reason}")]
    TaskCorrupted {
        /// The task.
        task: TaskId,
        /// The store.
        store: String,
        /// What disagrees, with the offsets, and what can be done.
        reason: String,
    },
    /// A key or value can't be read and the deserialization handler answered `Fail`.
    #[error("cannot read the {what} of {topic_partition} at offset {offset}: {source}")]
    Deserialize {
        /// `key` or `value`.
        what: &'static str,
        /// Where the record lies.
        topic_partition: TopicPartition,
        /// Its offset.
        offset: i64,
        /// What the serde said.
        source: SerdeError,
    },
    /// A key or value can't be written and the production handler answered `Fail`.
    #[error("node {node} of task {task} cannot write the {what} for topic {topic}: {source}")]
    Serialize {
        /// `key` or `value`.
        what: &'static str,
        /// The node.
        node: String,
        /// The task.
        task: TaskId,
        /// The topic.
        topic: String,
        /// What the serde said.
        source: SerdeError,
    },
    /// User code failed or panicked, and the processing handler answered `Fail`.
    #[error("node {node} of task {task} failed at {place}: {message}")]
    Processing {
        /// The node.
        node: String,
        /// The task.
        task: TaskId,
        /// In what.
        place: FailurePlace,
        /// What the code said, or its panic message.
        message: String,
    },
    /// A record's timestamp is negative or its extractor failed, and the extractor's policy is to fail.
    #[error("no usable timestamp in {topic_partition} at offset {offset}: {message}")]
    Timestamp {
        /// Where the record lies.
        topic_partition: TopicPartition,
        /// Its offset.
        offset: i64,
        /// What the extractor said.
        message: String,
    },
    /// The broker or the client refused a record for good.
    #[error(
        "a record for {topic_partition} was refused ({code}): {message}{}",
        grant(&["Write", "Describe"], Some(&topic_partition.topic), code, message)
    )]
    Produce {
        /// Where it was to go.
        topic_partition: TopicPartition,
        /// The client's error name.
        code: String,
        /// The client's text and what to do.
        message: String,
    },
    /// A call to Kafka failed for good.
    #[error(
        "{what} failed ({code}): {message}{}",
        grant(&["Describe", "Read", "Write"], None, code, message)
    )]
    Kafka {
        /// What was tried.
        what: String,
        /// The client's error name.
        code: String,
        /// The client's text and what to do.
        message: String,
    },
    /// A wait reached its bound.
    #[error("{what} did not end within {waited_ms} ms ({setting} bounds it)")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long, in milliseconds.
        waited_ms: i64,
        /// The setting that bounds it.
        setting: &'static str,
    },
    /// Topics are missing, have unfit partition counts, or may not be used.
    #[error("{message}")]
    Topics {
        /// Names, numbers and what to do.
        message: String,
    },
    /// The group refused this member for good.
    #[error("the group refused this member: {message}")]
    Membership {
        /// What the coordinator said and what to do.
        message: String,
    },
    /// The state directory or a store failed.
    #[error("state of {task}: {source}")]
    State {
        /// The task, or `this process`.
        task: String,
        /// What failed.
        source: StateError,
    },
    /// The topology can't be built or run.
    #[error(transparent)]
    Topology(#[from] crate::topology::TopologyError),
    /// The configuration can't be used.
    #[error("{message}")]
    Config {
        /// Every finding, one a line.
        message: String,
    },
    /// The same failure came again and again although the thread was replaced each time.
    #[error(
        "replacing the stream thread does not help, it failed {times} times: {source}; mend the record's cause, or let a handler pass it"
    )]
    Repeated {
        /// How often.
        times: u32,
        /// The failure, with the record where one is known.
        source: Box<Error>,
    },
    /// A broken invariant: it must never reach a commit, so the thread aborts its transaction and stops.
    #[error("internal error, nothing was committed: {what}")]
    Bug {
        /// Which invariant.
        what: String,
    },
}

/// What user code was called for when it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailurePlace {
    /// A record of an input.
    Record {
        /// Where it lies.
        topic_partition: TopicPartition,
        /// Its offset.
        offset: i64,
    },
    /// A punctuation.
    Punctuation {
        /// Stream time or wall clock, milliseconds since the Unix epoch.
        time_ms: i64,
    },
    /// The processor's `init`.
    Init,
}

impl std::fmt::Display for FailurePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FailurePlace::Record {
                topic_partition,
                offset,
            } => write!(f, "{topic_partition} at offset {offset}"),
            FailurePlace::Punctuation { time_ms } => write!(f, "a punctuation at {time_ms} ms"),
            FailurePlace::Init => f.write_str("its init"),
        }
    }
}

impl Error {
    /// The input record that was in hand, where it is known.
    ///
    /// ```
    /// use streams_core::{Error, TopicPartition};
    /// let error = Error::Timestamp { topic_partition: TopicPartition::new("in", 0), offset: 7, message: String::new() };
    /// assert_eq!(error.record(), Some((&TopicPartition::new("in", 0), 7)));
    /// ```
    #[must_use]
    pub fn record(&self) -> Option<(&TopicPartition, i64)> {
        match self {
            Error::Deserialize {
                topic_partition,
                offset,
                ..
            }
            | Error::Timestamp {
                topic_partition,
                offset,
                ..
            }
            | Error::Processing {
                place:
                    FailurePlace::Record {
                        topic_partition,
                        offset,
                    },
                ..
            } => Some((topic_partition, *offset)),
            Error::Repeated { source, .. } => source.record(),
            _ => None,
        }
    }

    /// A broken invariant.
    pub(crate) fn bug(what: impl Into<String>) -> Box<Error> {
        Box::new(Error::Bug { what: what.into() })
    }

    /// A store's failure, with its task.
    pub(crate) fn state(task: TaskId, source: StateError) -> Box<Error> {
        Box::new(Error::State {
            task: format!("task {task}"),
            source,
        })
    }
}

/// The permission that a refusal is about, and what to type, unless the message has it already. `on_topic` is what the call
/// needs of the topic.
fn grant(on_topic: &[&str], topic: Option<&str>, code: &str, message: &str) -> String {
    let named = message.contains("; grant ");
    match code {
        _ if named => String::new(),
        "TOPIC_AUTHORIZATION_FAILED" => {
            let on = format!("{} on the topic", listed(on_topic));
            grant_text(&on, on_topic, &format!("--topic {}", topic.unwrap_or("TOPIC")))
        }
        "GROUP_AUTHORIZATION_FAILED" => grant_text(
            "Read on the consumer group (the application id)",
            &["Read"],
            "--group APPLICATION_ID",
        ),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" => grant_text(
            "Write and Describe on the transactional ids (prefix: the application id)",
            &["Write", "Describe"],
            "--resource-pattern-type prefixed --transactional-id APPLICATION_ID-",
        ),
        "CLUSTER_AUTHORIZATION_FAILED" => {
            grant_text("IdempotentWrite on the cluster", &["IdempotentWrite"], "--cluster")
        }
        _ => String::new(),
    }
}

fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Names a permission and what to type for it: `; grant …`.
pub(crate) fn grant_text(permission: &str, operations: &[&str], resource: &str) -> String {
    let operations: String = operations
        .iter()
        .map(|operation| format!(" --operation {operation}"))
        .collect();
    format!(
        "; grant {permission} to the principal of this client: kafka-acls.sh --bootstrap-server SERVER --add \
         --allow-principal User:NAME{operations} {resource}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_want_of_a_permission_names_it() {
        for (code, permission) in [
            ("TOPIC_AUTHORIZATION_FAILED", "Describe, Read and Write on the topic"),
            ("GROUP_AUTHORIZATION_FAILED", "Read on the consumer group"),
            (
                "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
                "Write and Describe on the transactional ids",
            ),
            ("CLUSTER_AUTHORIZATION_FAILED", "IdempotentWrite on the cluster"),
        ] {
            let (what, code) = ("Commit".to_owned(), code.to_owned());
            let message = "refused".to_owned();
            let text = Error::Kafka { what, code, message }.to_string();
            assert!(text.contains(permission), "{text}");
        }
        let text = Error::Produce {
            topic_partition: TopicPartition::new("out", 1),
            code: "TOPIC_AUTHORIZATION_FAILED".to_owned(),
            message: "refused".to_owned(),
        }
        .to_string();
        assert!(text.contains("out-1") && text.contains("; grant Write"), "{text}");
    }

    #[test]
    fn a_permission_that_is_named_already_is_not_named_twice() {
        let text = Error::Kafka {
            what: "Commit".to_owned(),
            code: "TOPIC_AUTHORIZATION_FAILED".to_owned(),
            message: "creating topic t: refused; grant Create on the topic".to_owned(),
        }
        .to_string();
        assert_eq!(text.matches("grant").count(), 1, "{text}");
    }
}
