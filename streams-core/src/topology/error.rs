//! What can be wrong with a topology. Building reports all findings at once.

/// Why a topology can't be built or instantiated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A name may have 1 to 249 characters of `[a-zA-Z0-9._-]` and not be `.` or `..`.
    #[error("`{name}` can't be a name: use 1 to 249 of the characters a-z A-Z 0-9 . _ -")]
    InvalidName {
        /// The name.
        name: String,
    },
    /// Two nodes, or two stores, of one name.
    #[error("there are two {what}s named `{name}`: give one of them another name")]
    Duplicate {
        /// `node` or `store`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A node or store that does not exist.
    #[error("`{node}` refers to {what} `{name}`, which does not exist: add it first")]
    Unknown {
        /// Who refers to it.
        node: String,
        /// `parent` or `store`.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// One topic read by two sources.
    #[error("topic `{topic}` is read by `{first}` and by `{second}`: read it once and use the stream twice")]
    TopicReadTwice {
        /// The topic.
        topic: String,
        /// The first source.
        first: String,
        /// The second source.
        second: String,
    },
    /// A parent gives other types than its child takes.
    #[error("`{parent}` gives {gives}, but its child `{child}` takes {takes}")]
    Types {
        /// The parent.
        parent: String,
        /// The child.
        child: String,
        /// What the parent gives.
        gives: &'static str,
        /// What the child takes.
        takes: &'static str,
    },
    /// A node uses a store that it is not connected to.
    #[error("`{node}` uses store `{store}` without being connected to it: name it where the processor is added")]
    StoreNotConnected {
        /// The node.
        node: String,
        /// The store.
        store: String,
    },
    /// A store is used as another type than it is.
    #[error("`{node}` uses store `{store}` as {wanted}, which it is not (or it does not exist in this task)")]
    StoreType {
        /// The node.
        node: String,
        /// The store.
        store: String,
        /// The type that was wanted.
        wanted: &'static str,
    },
    /// Topics that are joined have different partition counts.
    #[error("topics that are joined must have equal partition counts: {counts}")]
    CoPartitioning {
        /// `topic: count, …`.
        counts: String,
    },
    /// Source topics that do not exist.
    #[error("topics that are read do not exist: {}: create them before the application starts", .topics.join(", "))]
    MissingTopics {
        /// All missing topics, by full name.
        topics: Vec<String>,
    },
    /// An internal topic that is there already has another partition count than the topology needs.
    #[error(
        "internal topic `{topic}` has {actual} partitions, but the topology needs {needed}: the partition count of a \
         topic that feeds it, or the one given to a repartition, has changed; take that back, or reset the application"
    )]
    PartitionCount {
        /// The full name.
        topic: String,
        /// The count it has.
        actual: i32,
        /// The count it needs.
        needed: i32,
    },
    /// A node's clocks, or those of all nodes of its sub-topology, do not fit into the metadata of an offset commit.
    #[error(
        "the operator clocks of the sub-topology of `{node}` need {characters} characters in the metadata of an offset \
         commit, and brokers accept {limit}: shorten the names of its stores, or split it with a repartition"
    )]
    OperatorClocks {
        /// The sub-topology's first node.
        node: String,
        /// Characters of base64 in the worst case.
        characters: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// Anything else, told in a sentence.
    #[error("{0}")]
    Invalid(String),
    /// Several findings.
    #[error("{} problems:\n{}", .0.len(), .0.iter().map(|e| format!("- {e}")).collect::<Vec<_>>().join("\n"))]
    Several(Vec<TopologyError>),
}

impl TopologyError {
    /// No finding is success; one stands for itself; more are [`TopologyError::Several`].
    ///
    /// # Errors
    /// When there is a finding.
    pub(crate) fn all(mut findings: Vec<TopologyError>) -> Result<(), TopologyError> {
        match findings.len() {
            0 => Ok(()),
            1 => findings.pop().map_or(Ok(()), Err),
            _ => Err(TopologyError::Several(findings)),
        }
    }
}
