//! How large what is sent may be (design rule 4.4). The core compares each record with its topic's own limit; here batches
//! are kept below the smallest one, because librdkafka has one batch size for all topics and does not split a batch that a
//! broker refused.

use std::sync::Arc;

use super::cluster::Cluster;
use crate::kafka::defaults;
use crate::outbox::OutRecord;
use crate::processor::{Bound, TOO_LARGE, TooLarge};
use crate::runtime::StreamThreadCore;
use crate::topics::Topics;
use crate::topology::TopologyPlan;
use crate::{TopicPartition, codec};

/// librdkafka's default of `message.max.bytes`.
const MESSAGE_MAX_BYTES: usize = 1_000_000;

/// What a stream thread knows about sizes beside the topics' own limits.
pub(super) struct Sizes {
    /// Topics that are written to, as far as they are known before a record comes.
    written: Vec<String>,
    /// Whether batches are compressed: then nobody but the broker knows how large one is.
    compressed: bool,
    /// `batch.size` as it is configured.
    configured: usize,
    /// `batch.size` of the producer that there is.
    batch_bytes: usize,
    /// `message.max.bytes`: this client's own limit.
    client_bytes: usize,
}

impl Sizes {
    /// For a producer of this configuration.
    pub(super) fn new(plan: &TopologyPlan, dead_letters: Option<&str>, producer: &[(String, String)]) -> Self {
        let subs = || plan.subtopologies.iter();
        let sinks = subs().flat_map(|sub| &sub.sink_topics).map(|topic| &**topic);
        let internal = plan.internal_topics();
        let internal = internal.iter().map(|topic| &*topic.name);
        let mut written: Vec<String> = sinks.chain(internal).chain(dead_letters).map(str::to_owned).collect();
        written.sort_unstable();
        written.dedup();
        let merged = defaults::merge(defaults::PRODUCER, producer, &[]);
        let of = |keys: &[&str]| {
            let found = merged.iter().rev().find(|(name, _)| keys.contains(&name.as_str()));
            found.map(|(_, value)| value.as_str())
        };
        let number = |key: &str| of(&[key]).and_then(|value| value.parse().ok());
        let configured = number("batch.size").unwrap_or(MESSAGE_MAX_BYTES);
        Sizes {
            written,
            compressed: of(&["compression.codec", "compression.type"]).is_some_and(|codec| codec != "none"),
            configured,
            batch_bytes: configured,
            client_bytes: number("message.max.bytes").unwrap_or(MESSAGE_MAX_BYTES),
        }
    }

    /// The configuration of the next producer, with batches that every topic takes.
    pub(super) fn producer(&mut self, cluster: &mut Cluster, config: &[(String, String)]) -> Vec<(String, String)> {
        cluster.learn_sizes(&self.written);
        self.batch_bytes = self.smallest(cluster);
        let mut config = config.to_vec();
        if self.batch_bytes < self.configured {
            tracing::info!(
                batch_bytes = self.batch_bytes,
                configured = self.configured,
                "batches are smaller than batch.size, so that the topic with the smallest max.message.bytes takes them"
            );
            config.push(("batch.size".to_owned(), self.batch_bytes.to_string()));
        }
        config
    }

    /// Topics that are written to.
    pub(super) fn written(&self) -> Vec<&str> {
        self.written.iter().map(String::as_str).collect()
    }

    fn smallest(&self, cluster: &Cluster) -> usize {
        let known = cluster.sizes().map(|(_, bytes)| bytes);
        known.chain([self.configured]).min().unwrap_or(self.configured).max(1)
    }

    /// Learns what is not known yet and notes it for the core.
    pub(super) fn learn(&self, cluster: &mut Cluster, topics: &mut Topics) {
        let exists = |topic: &&String| topics.partitions(topic).is_some();
        let written: Vec<String> = self.written.iter().filter(exists).cloned().collect();
        cluster.learn_sizes(&written);
        self.note(cluster, topics);
    }

    fn note(&self, cluster: &Cluster, topics: &mut Topics) {
        if self.compressed {
            return;
        }
        for (topic, bytes) in cluster.sizes() {
            topics.set_max_message_bytes(topic, bytes);
        }
    }

    /// Whether the producer makes batches that some topic does not take.
    pub(super) fn are_batches_too_large(&self, cluster: &Cluster) -> bool {
        self.smallest(cluster) < self.batch_bytes
    }

    /// A broker has refused something of this topic as too large: looks whether the topic takes less than was known. Then
    /// the core knows, too, and what is processed again meets the new limit before it is sent.
    pub(super) fn refused(&self, cluster: &mut Cluster, core: &mut StreamThreadCore, topic: &str) -> bool {
        let before = cluster.size_of(topic).unwrap_or(usize::MAX);
        let Some(now) = cluster.learn_size_again(topic) else {
            return false;
        };
        if now >= before && now >= self.batch_bytes {
            return false;
        }
        tracing::warn!(
            topic,
            bytes = now,
            "the topic takes smaller batches than was known: what was not committed is processed again"
        );
        let mut topics = Topics::clone(core.topics());
        self.note(cluster, &mut topics);
        core.set_topics(Arc::new(topics));
        true
    }

    /// What is added to a broker's refusal of this code.
    pub(super) fn explain(&self, cluster: &Cluster, topic: &str, code: &str) -> String {
        if code != TOO_LARGE {
            return String::new();
        }
        let takes = match cluster.size_of(topic) {
            Some(bytes) => format!("the topic takes batches of {bytes} bytes (its max.message.bytes)"),
            None => "what the topic takes is not known (grant DescribeConfigs on it)".to_owned(),
        };
        let compressed = if self.compressed {
            "; compressed ones are not compared before they are sent"
        } else {
            ""
        };
        format!(
            "; {takes}, this producer makes them of {} and, of one record, larger{compressed}",
            self.batch_bytes
        )
    }

    /// A record that the client itself does not take.
    pub(super) fn above_the_clients(&self, at: TopicPartition, record: Option<&OutRecord<'_>>) -> String {
        let refused = TooLarge {
            topic_partition: at,
            bytes: record.map(codec::record_size::batch_bytes),
            max_bytes: self.client_bytes,
            bound: Bound::Client,
            key: TooLarge::digest(record.and_then(|record| record.key)),
        };
        refused.to_string()
    }
}
