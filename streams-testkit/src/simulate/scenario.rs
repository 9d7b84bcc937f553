//! What is simulated: a topology, its inputs, and how outputs are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use streams_core::config::ProcessingGuarantee;
use streams_core::processor::ErrorHandlers;
use streams_core::topics::Topics;
use streams_core::topology::{InternalTopicDefaults, Topology, TopologyPlan};
use streams_core::{Error, TaskId};
use streams_state::Cleanup;

/// One record of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRecord {
    /// The topic.
    pub topic: String,
    /// The key; `None` is null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is null.
    pub value: Option<Vec<u8>>,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
}

impl InputRecord {
    /// A record with key and value.
    pub fn new(topic: &str, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, timestamp_ms: i64) -> Self {
        InputRecord {
            topic: topic.to_owned(),
            key: Some(key.into()),
            value: Some(value.into()),
            timestamp_ms,
        }
    }
}

/// The input: records in phases. The next phase begins when all of the last one is processed and committed.
///
/// Within a phase a topology may take records of different partitions in any order, as it may in production. Where
/// results depend on that order (a table must be filled before it is joined) the inputs belong into different phases.
pub type Phases = Vec<Vec<InputRecord>>;

/// How an output topic is compared with that of the run without faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The records of each key, in order, with their times.
    Exact,
    /// The same records with their times, in any order: for outputs whose records of one key come from several partitions.
    AnyOrder,
    /// The values of each key in order: for results whose times depend on the order of partitions.
    Values,
    /// The last value of each key: for results that a record cache may skip steps of.
    Latest,
}

/// What is simulated.
pub(super) struct Scenario {
    pub(super) topology: Arc<Topology>,
    pub(super) plan: Arc<TopologyPlan>,
    pub(super) topics: Arc<Topics>,
    pub(super) tasks: BTreeSet<TaskId>,
    /// Topics that are read by tasks.
    pub(super) sources: BTreeSet<Arc<str>>,
    /// Topics that are written and read by nobody of the application.
    pub(super) outputs: BTreeSet<Arc<str>>,
    /// Changelogs of our own.
    pub(super) changelogs: Vec<ChangelogTopic>,
    /// Inputs that are read by tasks and serve for nothing else.
    pub(super) trimmable: BTreeSet<Arc<str>>,
    pub(super) handlers: Arc<ErrorHandlers>,
    pub(super) guarantee: ProcessingGuarantee,
    /// For how long nothing may change before a phase counts as done, ms: longer than any wall-clock punctuation.
    pub(super) settle_ms: i64,
}

/// A changelog topic.
pub(super) struct ChangelogTopic {
    pub(super) topic: String,
    pub(super) store: String,
    pub(super) subtopology: u32,
    pub(super) cleanup: Cleanup,
    /// How long windows are kept, ms of event time, where the topic is trimmed by that.
    pub(super) keep_ms: i64,
    /// Whether it keeps the versions of each key for longer than a run takes (`min.compaction.lag.ms`).
    pub(super) keeps_versions: bool,
}

pub(super) const APPLICATION_ID: &str = "app";

impl Scenario {
    /// # Errors
    /// When the topology can't be planned.
    pub(super) fn new(
        topology: &Topology,
        partitions: &BTreeMap<String, i32>,
        settle_ms: i64,
        handlers: ErrorHandlers,
        guarantee: ProcessingGuarantee,
    ) -> Result<Self, Box<Error>> {
        let plan = topology
            .plan(APPLICATION_ID, &InternalTopicDefaults::default())
            .map_err(Error::from)?;
        let mut topics = Topics::new(APPLICATION_ID);
        let external = plan
            .subtopologies
            .iter()
            .flat_map(|sub| sub.external_sources().chain(&sub.sink_topics));
        for topic in external.chain(plan.global.iter().map(|global| &global.topic)) {
            topics.set_partitions(topic, partitions.get(&**topic).copied().unwrap_or(2));
        }
        let resolved = plan.resolve(|topic| topics.partitions(topic)).map_err(Error::from)?;
        for (topic, count) in resolved.internal() {
            topics.set_partitions(topic, count);
        }
        let sources: BTreeSet<Arc<str>> = plan
            .subtopologies
            .iter()
            .flat_map(|sub| sub.source_topics.keys().cloned())
            .collect();
        let written = plan
            .subtopologies
            .iter()
            .flat_map(|sub| sub.sink_topics.iter().cloned());
        let outputs = written.filter(|topic| !sources.contains(topic)).collect();
        let as_changelogs: BTreeSet<&str> = plan
            .subtopologies
            .iter()
            .flat_map(|sub| &sub.changelogs)
            .map(|changelog| &*changelog.topic.name)
            .collect();
        let trimmable = plan.subtopologies.iter().flat_map(|sub| sub.external_sources());
        let trimmable = trimmable
            .filter(|topic| !as_changelogs.contains(&***topic))
            .cloned()
            .collect();
        Ok(Scenario {
            topology: Arc::new(topology.clone()),
            tasks: resolved.task_ids().collect(),
            changelogs: changelogs_of(&plan),
            plan: Arc::new(plan),
            topics: Arc::new(topics),
            sources,
            outputs,
            trimmable,
            handlers: Arc::new(handlers),
            guarantee,
            settle_ms,
        })
    }

    /// Whether records are claimed before they are processed.
    pub(super) fn claims(&self) -> bool {
        self.guarantee == ProcessingGuarantee::AtMostOnce
    }

    pub(super) fn is_transactional(&self) -> bool {
        self.guarantee == ProcessingGuarantee::ExactlyOnceV2
    }
}

fn changelogs_of(plan: &TopologyPlan) -> Vec<ChangelogTopic> {
    let each = plan.subtopologies.iter().flat_map(|sub| {
        let own = sub.changelogs.iter().filter(|changelog| !changelog.source_topic);
        own.map(|changelog| {
            let config = |key: &str| changelog.topic.configs.get(key).map(String::as_str);
            let retention_ms: i64 = config("retention.ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
            ChangelogTopic {
                topic: changelog.topic.name.to_string(),
                store: changelog.store.to_string(),
                subtopology: sub.id,
                cleanup: match config("cleanup.policy") {
                    Some("delete") => Cleanup::Delete,
                    Some("compact,delete") => Cleanup::CompactDelete,
                    _ => Cleanup::Compact,
                },
                keeps_versions: config("min.compaction.lag.ms").is_some_and(|ms| ms != "0"),
                keep_ms: retention_ms - InternalTopicDefaults::default().window_store_additional_retention_ms,
            }
        })
    });
    each.collect()
}
