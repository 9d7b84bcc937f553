//! What the cluster knows: partition counts, changelog facts. Every question is bounded.

use std::collections::BTreeMap;

use streams_state::{ChangelogFacts, Cleanup};

use crate::TopicPartition;
use crate::error::grant_text;
use crate::kafka::admin::{AdminClient, Isolation, OffsetSpec, TopicOperation};
use crate::kafka::errors::{ClientError, ClientErrorKind};
use crate::runtime::{CallFailure, FailureClass};
use crate::topics::Topics;
use crate::topology::TopologyPlan;

/// How long one question may take, milliseconds.
pub(super) const QUESTION_MS: u64 = 10_000;

/// A broker's default `delete.retention.ms`.
const DEFAULT_DELETE_RETENTION_MS: i64 = 86_400_000;

/// What a client error means for a step of the core.
pub(super) fn failure_of(error: &ClientError) -> CallFailure {
    let class = match error.kind {
        ClientErrorKind::TimedOut => FailureClass::Retriable,
        // A topic that was just made is not known everywhere at once.
        ClientErrorKind::UnknownTopic => FailureClass::Retriable,
        _ => FailureClass::Stop,
    };
    CallFailure {
        class,
        code: error.name.clone(),
        message: error.to_string(),
    }
}

/// Asks the cluster on behalf of one stream thread.
pub(super) struct Cluster {
    admin: AdminClient,
    policies: BTreeMap<String, (Cleanup, i64)>,
    /// How large batches of topics may be, by name; `None` = it may not be asked.
    sizes: BTreeMap<String, Option<usize>>,
}

impl Cluster {
    pub(super) fn new(admin: AdminClient) -> Self {
        Cluster {
            admin,
            policies: BTreeMap::new(),
            sizes: BTreeMap::new(),
        }
    }

    pub(super) fn admin(&self) -> &AdminClient {
        &self.admin
    }

    /// Partition counts of every topic of the plan that exists.
    pub(super) fn topics(&self, plan: &TopologyPlan) -> Result<Topics, ClientError> {
        let mut names: Vec<&str> = Vec::new();
        for sub in &plan.subtopologies {
            names.extend(sub.source_topics.keys().chain(&sub.sink_topics).map(|name| &**name));
            names.extend(sub.changelogs.iter().map(|changelog| &*changelog.topic.name));
        }
        names.extend(plan.global.iter().map(|global| &*global.topic));
        names.sort_unstable();
        names.dedup();
        let mut topics = Topics::new(&plan.application_id);
        for (name, described) in self.admin.describe_topics(&names, QUESTION_MS)? {
            match described {
                Ok(description) => topics.set_partitions(&name, description.partitions),
                Err(error) if error.kind == ClientErrorKind::UnknownTopic => {}
                Err(error) => return Err(error),
            }
        }
        Ok(topics)
    }

    /// Names those of the topics on which this client lacks a permission, and what to type; nothing where there is none, or
    /// the cluster does not tell.
    pub(super) fn lacking(&self, operation: TopicOperation, topics: &[&str]) -> String {
        let forbidden = self.admin.forbidden(operation, topics, QUESTION_MS);
        let forbidden = forbidden.unwrap_or_else(|error| {
            tracing::debug!(%error, "which topics are concerned is not known");
            Vec::new()
        });
        let name = format!("{operation:?}");
        let each = forbidden.iter().map(|topic| {
            let permission = format!("{name} on topic {topic}");
            grant_text(&permission, &[&name], &format!("--topic {topic}"))
        });
        each.collect()
    }

    /// Starts and (uncommitted) ends of changelogs, their ids and policies.
    pub(super) fn changelogs(
        &mut self,
        partitions: &[TopicPartition],
    ) -> Result<Vec<(TopicPartition, ChangelogFacts)>, ClientError> {
        let mut names: Vec<&str> = partitions.iter().map(|partition| &*partition.topic).collect();
        names.sort_unstable();
        names.dedup();
        let unknown: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !self.policies.contains_key(*name))
            .collect();
        // All questions at once: a start waits for the slowest instead of for their sum.
        let asked = &*self;
        let list = |which| asked.offsets(partitions, which, Isolation::ReadUncommitted);
        let (starts, ends, topics, policies) = std::thread::scope(|scope| {
            let starts = scope.spawn(|| list(OffsetSpec::Earliest));
            let topics = scope.spawn(|| asked.admin.describe_topics(&names, QUESTION_MS));
            let policies: Vec<_> = unknown
                .iter()
                .map(|name| scope.spawn(|| asked.policy(name).map(|policy| ((*name).to_owned(), policy))))
                .collect();
            let ends = list(OffsetSpec::Latest);
            (
                starts.join(),
                ends,
                topics.join(),
                policies.into_iter().map(|asked| asked.join()).collect::<Vec<_>>(),
            )
        });
        let (starts, ends) = (answer(starts)?, ends?);
        let mut ids = BTreeMap::new();
        for (name, described) in answer(topics)? {
            ids.insert(name, described?.topic_id);
        }
        for policy in policies {
            let (name, policy) = answer(policy)?;
            self.policies.insert(name, policy);
        }
        let mut facts = Vec::new();
        for partition in partitions {
            let (cleanup, delete_retention_ms) = match self.policies.get(&*partition.topic) {
                Some(policy) => *policy,
                None => self.policy(&partition.topic)?,
            };
            let fact = ChangelogFacts {
                topic_id: ids.get(&*partition.topic).copied(),
                log_start: starts.get(partition).copied().unwrap_or(0),
                high_watermark: ends.get(partition).copied().unwrap_or(0),
                cleanup,
                delete_retention_ms,
                source_topic_committed: None,
            };
            facts.push((partition.clone(), fact));
        }
        Ok(facts)
    }

    /// Asks how large batches of these topics may be, as far as that is not known: `max.message.bytes`, and no more than a
    /// segment. What is not answered is asked again the next time.
    pub(super) fn learn_sizes(&mut self, topics: &[String]) {
        let unknown = topics.iter().filter(|topic| !self.sizes.contains_key(*topic));
        let unknown: Vec<&str> = unknown.map(String::as_str).collect();
        let described = match self.admin.describe_configs_of(&unknown, QUESTION_MS) {
            Ok(described) => described,
            Err(error) => {
                tracing::debug!(%error, "how large records may be is asked again later");
                return;
            }
        };
        for (topic, configs) in described {
            match configs {
                Ok(configs) => {
                    let number = |key: &str| configs.get(key)?.value.as_ref()?.parse::<usize>().ok();
                    let bytes = [number("max.message.bytes"), number("segment.bytes")];
                    self.sizes.insert(topic, bytes.into_iter().flatten().min());
                }
                Err(error) if matches!(error.kind, ClientErrorKind::Denied(_)) => {
                    tracing::warn!(%error, "how large records of a topic may be is not known: one that is too large is refused by the broker, and then no handler can let it pass");
                    self.sizes.insert(topic, None);
                }
                // It does not exist yet, for example.
                Err(error) => tracing::debug!(%error, "how large records may be is asked again later"),
            }
        }
    }

    /// As [`learn_sizes`](Self::learn_sizes) for one topic, known or not; answers how large a batch may be.
    pub(super) fn learn_size_again(&mut self, topic: &str) -> Option<usize> {
        let before = self.sizes.remove(topic);
        self.learn_sizes(&[topic.to_owned()]);
        if let (Some(before), false) = (before, self.sizes.contains_key(topic)) {
            self.sizes.insert(topic.to_owned(), before);
        }
        self.size_of(topic)
    }

    /// How large a batch of the topic may be, where it is known.
    pub(super) fn size_of(&self, topic: &str) -> Option<usize> {
        self.sizes.get(topic).copied().flatten()
    }

    /// How large batches may be, by topic.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.sizes
            .iter()
            .filter_map(|(topic, bytes)| bytes.map(|bytes| (topic.as_str(), bytes)))
    }

    pub(super) fn offsets(
        &self,
        partitions: &[TopicPartition],
        which: OffsetSpec,
        isolation: Isolation,
    ) -> Result<BTreeMap<TopicPartition, i64>, ClientError> {
        let listed = self.admin.list_offsets(partitions, which, isolation, QUESTION_MS)?;
        Ok(listed
            .into_iter()
            .map(|(partition, listed)| (partition, listed.offset))
            .collect())
    }

    fn policy(&self, topic: &str) -> Result<(Cleanup, i64), ClientError> {
        let configs = self.admin.describe_configs(topic, QUESTION_MS)?;
        let value = |key: &str| configs.get(key).and_then(|config| config.value.as_deref());
        let policy = value("cleanup.policy").unwrap_or("delete");
        let cleanup = match (policy.contains("compact"), policy.contains("delete")) {
            (true, true) => Cleanup::CompactDelete,
            (true, false) => Cleanup::Compact,
            _ => Cleanup::Delete,
        };
        let retention = value("delete.retention.ms")
            .and_then(|text| text.parse().ok())
            .unwrap_or(DEFAULT_DELETE_RETENTION_MS);
        Ok((cleanup, retention))
    }
}

/// What a question asked beside others was answered; a panic there is this thread's.
fn answer<T>(asked: std::thread::Result<Result<T, ClientError>>) -> Result<T, ClientError> {
    asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
