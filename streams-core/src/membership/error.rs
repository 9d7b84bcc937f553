//! Why membership does not work, in words that say what to do.

use crate::error::grant_text;

/// A refusal that a person has to act on.
///
/// Reported by [`MembershipEvent::Fatal`](super::MembershipEvent::Fatal) or, where the member goes on trying, by
/// [`MembershipEvent::Refused`](super::MembershipEvent::Refused).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The broker cannot host streams groups, or they are switched off (error 35).
    #[error(
        "the brokers cannot host the streams group `{group}`: {reason}. Use brokers of version 4.2 or newer with the feature \
         streams.version at 1 (bin/kafka-features.sh --bootstrap-server … upgrade --feature streams.version=1), \
         or set group.protocol=classic"
    )]
    StreamsGroupsUnsupported {
        /// The group.
        group: String,
        /// How it was noticed.
        reason: String,
    },
    /// The group has another topology (error 42). It keeps it even when all members have left.
    #[error(
        "the topology differs from the one that the group `{group}` has, and a streams group does not change its topology: \
         {}. Either use a new application.id, or stop all members and delete the group \
         (bin/kafka-streams-groups.sh --bootstrap-server … --delete --group {group}); deleting it also deletes its committed \
         offsets, so note them first. Broker: {broker_message}",
        describe_differences(differences)
    )]
    TopologyChanged {
        /// The group.
        group: String,
        /// What differs; empty when the broker does not show it.
        differences: Vec<String>,
        /// The broker's words.
        broker_message: String,
    },
    /// The group id belongs to a group of another type (error 69).
    #[error(
        "the group `{group}` is of another type: {broker_message} If it is in use, choose another application.id. If its \
         consumers are stopped, delete it (bin/kafka-groups.sh shows its type; deleting loses its offsets); an empty group \
         of the classic protocol is converted without that"
    )]
    NotAStreamsGroup {
        /// The group.
        group: String,
        /// The broker's words.
        broker_message: String,
    },
    /// A permission on the group is missing (error 30).
    #[error(
        "not authorized for the group `{group}`: allow READ on the group to the principal of this client{}. Broker: {broker_message}",
        grant_text("Read on the group", &["Read"], &format!("--group {group}"))
    )]
    GroupAuthorization {
        /// The group.
        group: String,
        /// The broker's words.
        broker_message: String,
    },
    /// A permission on topics is missing (error 29).
    #[error(
        "not authorized for topics of the group `{group}`: allow DESCRIBE and READ on its source topics and CREATE, READ and \
         WRITE on its internal topics (prefix `{group}-`) to the principal of this client{}. Broker: {broker_message}",
        grant_text("Describe and Read on the topics", &["Describe", "Read"], "--topic TOPIC")
    )]
    TopicAuthorization {
        /// The group.
        group: String,
        /// The broker's words.
        broker_message: String,
    },
    /// The group has as many members as the brokers allow (error 81).
    #[error(
        "the group `{group}` is full: raise group.streams.max.size of the brokers, or start fewer stream threads. Broker: {broker_message}"
    )]
    GroupFull {
        /// The group.
        group: String,
        /// The broker's words.
        broker_message: String,
    },
    /// The topology is refused (errors 130, 131, 132).
    #[error("the brokers refuse the topology of the group `{group}` (error {code}): {broker_message}")]
    InvalidTopology {
        /// The group.
        group: String,
        /// Error code.
        code: i16,
        /// The broker's words.
        broker_message: String,
    },
    /// The topology cannot be told to a coordinator at all.
    #[error("the topology cannot be described to the group: {reason}")]
    TopologyNotDescribable {
        /// What is wrong in it.
        reason: String,
    },
    /// A request was not what the broker expects, or its answer not what we expect: a defect on one side.
    #[error(
        "the coordinator of the group `{group}` and this client do not understand each other: {reason}. Please report it with the broker's version"
    )]
    Protocol {
        /// The group.
        group: String,
        /// What happened.
        reason: String,
    },
    /// The coordinator gave an error that is not foreseen.
    #[error("the coordinator of the group `{group}` answered with error {code}: {broker_message}")]
    Unexpected {
        /// The group.
        group: String,
        /// Error code.
        code: i16,
        /// The broker's words.
        broker_message: String,
    },
    /// No coordinator answers; the member goes on trying.
    #[error(
        "no coordinator of the group `{group}` could be reached for {failing_ms} ms (bootstrap.servers {bootstrap}): {cause}. Check the address, the network, and that the brokers run"
    )]
    Unreachable {
        /// The group.
        group: String,
        /// Where we look for it.
        bootstrap: String,
        /// How long, milliseconds.
        failing_ms: i64,
        /// The last failure.
        cause: String,
    },
    /// A setting cannot be used for group membership.
    #[error("{key} = `{value}` cannot be used for group membership: {reason}")]
    Setting {
        /// The setting.
        key: &'static str,
        /// Its value.
        value: String,
        /// Why, and what to do.
        reason: String,
    },
}

fn describe_differences(differences: &[String]) -> String {
    if differences.is_empty() {
        return "what the broker shows of it is equal, so the difference is in what it does not show (co-partitioned topics, \
                or the order of topics or configs)"
            .to_owned();
    }
    differences.join("; ")
}
