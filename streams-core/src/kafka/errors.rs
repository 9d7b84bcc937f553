//! Errors of the clients, and the one table that says what each of them forces us to do.

use super::ffi::error::{NativeError, code, name};
use crate::error::grant_text;
use crate::fetch::FetchErrorKind;

/// A failed call of a consumer or of the admin client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation} {subject}: {message} ({name}){}", kind.advice(operation, subject))]
pub struct ClientError {
    /// What was being done, such as `reading committed offsets`.
    pub operation: &'static str,
    /// The topic, partition or group it was about; empty when it concerns the client.
    pub subject: String,
    /// What to do about it.
    pub kind: ClientErrorKind,
    /// librdkafka's error number; negative ones are made by the client, others by a broker.
    pub code: i32,
    /// The number's name, such as `TOPIC_AUTHORIZATION_FAILED`.
    pub name: String,
    /// The broker's or the client's description.
    pub message: String,
}

/// Client errors by the decision they force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// A client setting or an argument is wrong.
    Invalid,
    /// No answer in time, or from a broker that just was not the right one (an election, a restart). Nothing is known,
    /// least of all that there is nothing: ask again.
    TimedOut,
    /// A permission is missing; the text names it.
    Denied(&'static str),
    /// The topic or partition does not exist.
    UnknownTopic,
    /// The topic exists already.
    TopicExists,
    /// The offset asked for is outside the log.
    OutOfRange,
    /// The credentials were refused.
    Authentication,
    /// The client can't go on; close it and make a new one.
    Fatal,
    /// Anything else.
    Other,
}

impl ClientErrorKind {
    fn of(code: i32, operation: &'static str) -> Self {
        match code {
            code::INVALID_ARG => Self::Invalid,
            code::TIMED_OUT
            | code::WAIT_COORD
            | code::TRANSPORT
            | code::ALL_BROKERS_DOWN
            | code::UNSTABLE_OFFSET_COMMIT
            | code::LEADER_NOT_AVAILABLE
            | code::NOT_LEADER
            | code::REQUEST_TIMED_OUT
            | code::NETWORK_EXCEPTION
            | code::COORDINATOR_LOADING
            | code::COORDINATOR_NOT_AVAILABLE
            | code::NOT_COORDINATOR
            | code::NOT_CONTROLLER
            | code::RESOLVE
            | code::TIMED_OUT_QUEUE
            | code::WAIT_CACHE
            | code::RETRY
            | code::OUTDATED
            | code::UNKNOWN_BROKER
            | code::BROKER_NOT_AVAILABLE
            | code::REPLICA_NOT_AVAILABLE
            | code::NOT_ENOUGH_REPLICAS
            | code::NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | code::CONCURRENT_TRANSACTIONS
            | code::KAFKA_STORAGE_ERROR
            | code::LISTENER_NOT_FOUND
            | code::FENCED_LEADER_EPOCH
            | code::UNKNOWN_LEADER_EPOCH
            | code::OFFSET_NOT_AVAILABLE
            | code::ELIGIBLE_LEADERS_NOT_AVAILABLE
            | code::THROTTLING_QUOTA_EXCEEDED => Self::TimedOut,
            code::TOPIC_AUTHORIZATION => Self::Denied(topic_permission(operation)),
            code::GROUP_AUTHORIZATION => Self::Denied(GROUP),
            code::CLUSTER_AUTHORIZATION => Self::Denied(CLUSTER),
            code::TRANSACTIONAL_ID_AUTHORIZATION => Self::Denied(TRANSACTIONAL_ID),
            code::NOENT
            | code::UNKNOWN_TOPIC
            | code::UNKNOWN_PARTITION
            | code::UNKNOWN_TOPIC_OR_PART
            | code::UNKNOWN_TOPIC_ID => Self::UnknownTopic,
            code::TOPIC_ALREADY_EXISTS => Self::TopicExists,
            code::OFFSET_OUT_OF_RANGE | code::AUTO_OFFSET_RESET | code::NO_OFFSET => Self::OutOfRange,
            code::AUTHENTICATION | code::SASL_AUTHENTICATION | code::SSL => Self::Authentication,
            code::FATAL | code::FENCED => Self::Fatal,
            _ => Self::Other,
        }
    }

    fn advice(self, operation: &'static str, subject: &str) -> String {
        match self {
            Self::Denied(permission) => {
                let (operations, resource) = match permission {
                    GROUP => (&["Read"][..], "--group APPLICATION_ID".to_owned()),
                    CLUSTER => (&["Create", "Alter"][..], "--cluster".to_owned()),
                    TRANSACTIONAL_ID => {
                        let resource = "--resource-pattern-type prefixed --transactional-id APPLICATION_ID-";
                        (&["Write", "Describe"][..], resource.to_owned())
                    }
                    _ => (topic_operations(operation), format!("--topic {}", topic_of(subject))),
                };
                grant_text(permission, operations, &resource)
            }
            Self::TimedOut => "; nothing is known, ask again".to_owned(),
            _ => String::new(),
        }
    }
}

const GROUP: &str = "Read on the consumer group";
const CLUSTER: &str = "Create or Alter on the cluster";
const TRANSACTIONAL_ID: &str = "Write and Describe on the transactional id";

/// The topic that a partition (`topic-3`) or a topic is of.
fn topic_of(subject: &str) -> &str {
    match subject.rsplit_once('-') {
        Some((topic, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => topic,
        _ => subject,
    }
}

fn topic_operations(operation: &'static str) -> &'static [&'static str] {
    match operation {
        CREATE_TOPICS => &["Create"],
        DELETE_TOPICS | DELETE_RECORDS => &["Delete"],
        DESCRIBE_CONFIGS => &["DescribeConfigs"],
        _ => &["Describe", "Read"],
    }
}

/// Which permission on a topic an operation of ours needs.
fn topic_permission(operation: &'static str) -> &'static str {
    match operation {
        CREATE_TOPICS => "Create on the topic (or on the cluster)",
        DELETE_TOPICS | DELETE_RECORDS => "Delete on the topic",
        DESCRIBE_CONFIGS => "DescribeConfigs on the topic",
        _ => "Describe and Read on the topic",
    }
}

pub(crate) const CREATE_TOPICS: &str = "creating topic";
pub(crate) const DELETE_TOPICS: &str = "deleting topic";
pub(crate) const DELETE_RECORDS: &str = "deleting records of";
pub(crate) const DESCRIBE_CONFIGS: &str = "reading the settings of topic";

impl ClientError {
    pub(crate) fn new(operation: &'static str, subject: impl Into<String>, error: NativeError) -> Self {
        let kind = if error.fatal {
            ClientErrorKind::Fatal
        } else {
            ClientErrorKind::of(error.code, operation)
        };
        let NativeError { code, message, .. } = error;
        ClientError {
            operation,
            subject: subject.into(),
            kind,
            code,
            name: name(code),
            message,
        }
    }

    pub(crate) fn invalid(operation: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        ClientError::new(operation, subject, NativeError::new(code::INVALID_ARG, message))
    }
}

/// A failed call of a producer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed ({class:?}): {message} ({name})")]
pub struct TxnError {
    /// The call, such as `commit_transaction`.
    pub call: &'static str,
    /// librdkafka's error number.
    pub code: i32,
    /// The number's name, such as `_FENCED`.
    pub name: String,
    /// librdkafka's description, often with the broker's words and the partitions.
    pub message: String,
    /// What may be done next.
    pub class: TxnErrorClass,
}

/// What librdkafka says may be done after a failed producer call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnErrorClass {
    /// The producer is of no use any more: drop it and make a new one.
    Fatal,
    /// The transaction must be aborted; the producer can go on afterwards.
    Abortable,
    /// The same call with the same arguments may be made again, and no other call before.
    Retriable,
    /// A wrong call, or an error that says nothing about the transaction.
    Other,
}

impl TxnError {
    /// `fatal` is the error that made the producer unusable, if it did: it has the code that the call only hints at.
    pub(crate) fn new(call: &'static str, error: NativeError, fatal: Option<(i32, String)>) -> Self {
        let class = match &error {
            NativeError { fatal: true, .. } => TxnErrorClass::Fatal,
            NativeError { abortable: true, .. } => TxnErrorClass::Abortable,
            NativeError { retriable: true, .. } => TxnErrorClass::Retriable,
            _ if fatal.is_some() => TxnErrorClass::Fatal,
            _ => TxnErrorClass::Other,
        };
        let (code, message) = match fatal {
            Some(fatal) if class == TxnErrorClass::Fatal => fatal,
            _ => (error.code, error.message),
        };
        TxnError {
            call,
            code,
            name: name(code),
            message,
            class,
        }
    }

    /// Whether another producer has taken over this transactional id, or the coordinator ended the transaction because
    /// it took longer than `transaction.timeout.ms`: the two look the same.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        matches!(
            self.code,
            code::FENCED | code::PRODUCER_FENCED | code::INVALID_PRODUCER_EPOCH
        )
    }

    /// What this error forces us to do.
    #[must_use]
    pub fn reaction(&self) -> Reaction {
        match self.class {
            TxnErrorClass::Fatal => match self.code {
                code::CLUSTER_AUTHORIZATION | code::TRANSACTIONAL_ID_AUTHORIZATION => Reaction::Stop,
                _ => Reaction::ReplaceProducer,
            },
            TxnErrorClass::Abortable => after_abort(self.code),
            TxnErrorClass::Retriable => Reaction::Again,
            TxnErrorClass::Other if is_out_of_step(self.code) => Reaction::ReplaceProducer,
            TxnErrorClass::Other => Reaction::Stop,
        }
    }
}

/// Whether the client says that a call does not fit what it is doing. A call that ran into its timeout leaves its request
/// behind, and when that is answered late, beside the next call, librdkafka takes the one for the other: it believes to be
/// in another state than it is. So it is after a coordinator, or the machine, was busy for long. The outcome of the
/// transaction is unknown then, and a new producer settles it (design rule 1.7).
fn is_out_of_step(code: i32) -> bool {
    matches!(code, code::STATE | code::CONFLICT | code::PREV_IN_PROGRESS)
}

/// What has to be done about a producer error: the table of the exactly-once protocol, with Java's reaction beside it.
///
/// No reaction deletes state: stores never hold uncommitted data, so what Java calls a corrupted task is a rewind here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Make the same call again until its deadline (Java: retried inside the producer).
    Again,
    /// Abort, rebuild the tasks, read again from the committed offsets (Java: `TaskCorruptedException`).
    AbortAndRewind,
    /// Abort, give all tasks of the thread up and join again: the group does not know this member or epoch any more
    /// (Java: `CommitFailedException`, so `TaskMigratedException`).
    AbortAndRejoin,
    /// Abort and stop: trying again would meet the same refusal (Java: the thread dies).
    AbortAndStop,
    /// Drop the producer, make one with the same transactional id (which settles the transaction either way), rebuild
    /// the tasks (Java: `ProducerFencedException`, so `TaskMigratedException`).
    ReplaceProducer,
    /// Stop with the error (Java: the thread dies).
    Stop,
    /// Nothing happened that matters.
    Ignore,
}

/// The reaction to an error that made the transaction abortable.
fn after_abort(code: i32) -> Reaction {
    match code {
        code::ILLEGAL_GENERATION | code::UNKNOWN_MEMBER_ID | code::STALE_MEMBER_EPOCH | code::FENCED_MEMBER_EPOCH => {
            Reaction::AbortAndRejoin
        }
        code::FENCED_INSTANCE_ID
        | code::TOPIC_AUTHORIZATION
        | code::GROUP_AUTHORIZATION
        | code::CLUSTER_AUTHORIZATION
        | code::TRANSACTIONAL_ID_AUTHORIZATION
        | code::OFFSET_METADATA_TOO_LARGE
        | code::MSG_SIZE_TOO_LARGE
        | code::RECORD_LIST_TOO_LARGE
        | code::INVALID_RECORD
        | code::POLICY_VIOLATION
        | code::TOPIC_EXCEPTION
        | UNKNOWN_SERVER_ERROR => Reaction::AbortAndStop,
        _ => Reaction::AbortAndRewind,
    }
}

/// The broker's "something unexpected happened".
const UNKNOWN_SERVER_ERROR: i32 = -1;

/// The reaction to a delivery report's error code.
#[must_use]
pub fn delivery_reaction(error_code: i32) -> Reaction {
    match error_code {
        code::NO_ERROR | code::PURGE_QUEUE | code::PURGE_INFLIGHT => Reaction::Ignore,
        code::FENCED | code::FATAL | code::PRODUCER_FENCED | code::INVALID_PRODUCER_EPOCH | code::INVALID_TXN_STATE => {
            Reaction::ReplaceProducer
        }
        other => after_abort(other),
    }
}

/// The kind of an error met while fetching. `offset` is where the error stands, negative when unknown.
pub(crate) fn fetch_error_kind(error_code: i32, offset: i64) -> FetchErrorKind {
    match error_code {
        code::OFFSET_OUT_OF_RANGE | code::AUTO_OFFSET_RESET | code::NO_OFFSET => FetchErrorKind::OutOfRange { offset },
        code::TOPIC_AUTHORIZATION => FetchErrorKind::TopicAuthorization,
        code::GROUP_AUTHORIZATION => FetchErrorKind::GroupAuthorization,
        code::UNKNOWN_TOPIC | code::UNKNOWN_PARTITION | code::UNKNOWN_TOPIC_OR_PART | code::UNKNOWN_TOPIC_ID => {
            FetchErrorKind::UnknownTopic
        }
        code::AUTHENTICATION | code::SASL_AUTHENTICATION | code::SSL => FetchErrorKind::Authentication,
        code::TRANSPORT | code::ALL_BROKERS_DOWN | code::RESOLVE | code::TIMED_OUT => FetchErrorKind::Transport,
        code::FATAL | code::FENCED => FetchErrorKind::Fatal,
        other => FetchErrorKind::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32, fatal: bool, abortable: bool, retriable: bool) -> TxnError {
        TxnError::new(
            "call",
            NativeError {
                code,
                message: String::new(),
                fatal,
                retriable,
                abortable,
            },
            None,
        )
    }

    #[test]
    fn the_table_of_the_exactly_once_protocol() {
        for (error, reaction) in [
            (error(code::FENCED, true, false, false), Reaction::ReplaceProducer),
            (
                error(code::INVALID_TXN_STATE, true, false, false),
                Reaction::ReplaceProducer,
            ),
            (
                error(code::TRANSACTIONAL_ID_AUTHORIZATION, true, false, false),
                Reaction::Stop,
            ),
            (
                error(code::UNKNOWN_MEMBER_ID, false, true, false),
                Reaction::AbortAndRejoin,
            ),
            (
                error(code::ILLEGAL_GENERATION, false, true, false),
                Reaction::AbortAndRejoin,
            ),
            (
                error(code::FENCED_INSTANCE_ID, false, true, false),
                Reaction::AbortAndStop,
            ),
            (
                error(code::OFFSET_METADATA_TOO_LARGE, false, true, false),
                Reaction::AbortAndStop,
            ),
            (error(code::MSG_TIMED_OUT, false, true, false), Reaction::AbortAndRewind),
            (error(120, false, true, false), Reaction::AbortAndRewind),
            (error(code::TIMED_OUT, false, false, true), Reaction::Again),
            (error(code::STATE, false, false, false), Reaction::ReplaceProducer),
            (error(code::INVALID_ARG, false, false, false), Reaction::Stop),
        ] {
            assert_eq!(error.reaction(), reaction, "{error}");
        }
        assert_eq!(delivery_reaction(code::PURGE_INFLIGHT), Reaction::Ignore);
        assert_eq!(delivery_reaction(code::MSG_SIZE_TOO_LARGE), Reaction::AbortAndStop);
        assert_eq!(delivery_reaction(code::MSG_TIMED_OUT), Reaction::AbortAndRewind);
    }

    /// What Kafka marks as retriable (`org.apache.kafka.common.protocol.Errors`), as far as a question can get it, and what
    /// librdkafka says of brokers that it can't reach.
    #[test]
    fn what_passes_by_itself_is_asked_again() {
        let brokers = [
            5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 72, 74, 75, 78, 83, 88, 89,
        ];
        let clients = [-195, -187, -185, -193, -180, -166, -164, -153, -167, -146];
        for number in brokers.into_iter().chain(clients) {
            let native = NativeError::new(number, "later");
            let error = ClientError::new("asking", "somebody", native);
            assert_eq!(error.kind, ClientErrorKind::TimedOut, "{error}");
        }
    }

    #[test]
    fn a_fatal_error_shows_the_code_that_caused_it() {
        let native = NativeError::new(code::FATAL, "Fatal error");
        let error = TxnError::new(
            "begin_transaction",
            native,
            Some((code::FENCED, "fenced by a newer one".into())),
        );
        assert!(error.is_fenced() && error.class == TxnErrorClass::Fatal, "{error}");
    }

    #[test]
    fn a_missing_permission_is_named() {
        let denied = NativeError::new(code::TOPIC_AUTHORIZATION, "Topic authorization failed");
        let text = ClientError::new(CREATE_TOPICS, "app-sums-changelog", denied).to_string();
        assert!(
            text.contains("; grant Create on the topic (or on the cluster) to the principal")
                && text.ends_with("--operation Create --topic app-sums-changelog"),
            "{text}"
        );
    }
}
