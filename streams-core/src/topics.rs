//! The application's topics as the broker knows them: partition counts and record sizes, told by the shell.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Partition counts, and how large a record may be, by full topic name. Immutable: a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    partitions: BTreeMap<Arc<str>, i32>,
    max_message_bytes: BTreeMap<Arc<str>, usize>,
    prefix: String,
}

impl Topics {
    /// Knows nothing yet; `application_id` prefixes internal topics.
    #[must_use]
    pub fn new(application_id: &str) -> Self {
        Topics {
            partitions: BTreeMap::new(),
            max_message_bytes: BTreeMap::new(),
            prefix: format!("{application_id}-"),
        }
    }

    /// Notes a topic's partition count.
    pub fn set_partitions(&mut self, topic: &str, count: i32) {
        self.partitions.insert(topic.into(), count);
    }

    /// A topic's partition count, where it is known.
    #[must_use]
    pub fn partitions(&self, topic: &str) -> Option<i32> {
        self.partitions.get(topic).copied()
    }

    /// Notes the topic's own `max.message.bytes`: bytes that a batch may have, and so a record alone in one. What is not
    /// noted is not checked before a record is sent, and refused by the broker.
    pub fn set_max_message_bytes(&mut self, topic: &str, bytes: usize) {
        self.max_message_bytes.insert(topic.into(), bytes);
    }

    /// How large a batch of the topic may be, where it is known.
    #[must_use]
    pub fn max_message_bytes(&self, topic: &str) -> Option<usize> {
        self.max_message_bytes.get(topic).copied()
    }

    /// All topics with their partition counts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i32)> {
        self.partitions.iter().map(|(topic, count)| (&**topic, *count))
    }

    /// The full name of an internal topic: `<application.id>-<name>`.
    #[must_use]
    pub fn internal(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
