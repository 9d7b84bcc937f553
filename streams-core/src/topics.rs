//! The application's topics as the broker knows them: partition counts and ids, told by the shell.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Partition counts by full topic name. Immutable: a change makes a new one.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    partitions: BTreeMap<Arc<str>, i32>,
    prefix: String,
}

impl Topics {
    /// Knows nothing yet; `application_id` prefixes internal topics.
    #[must_use]
    pub fn new(application_id: &str) -> Self {
        Topics {
            partitions: BTreeMap::new(),
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
