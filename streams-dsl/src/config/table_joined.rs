//! How two tables are joined by a foreign key.

use std::sync::Arc;

/// Chooses one partition by `(topic, key, partition count)`; `None` = as without.
pub(crate) type KeyPartitioner<K> = dyn Fn(&str, &K, i32) -> Option<i32> + Send + Sync;

/// How two tables are joined by a foreign key: a name for the nodes, topics and the subscription store, and partitioners
/// for tables that are not partitioned by murmur2 of their keys. `K` are the keys of the left table, `KO` those of the
/// other one. Java counterpart: `TableJoined`.
///
/// ```
/// use streams_dsl::{Materialized, StreamsBuilder, TableJoined};
/// let builder = StreamsBuilder::new();
/// let (orders, customers) = (builder.table::<String, String>("orders"), builder.table::<String, String>("customers"));
/// orders.join_foreign_key_with(
///     &customers,
///     |_order, customer| Some(customer.clone()),
///     |_order, _id, customer| customer.clone(),
///     TableJoined::named("customer-of-order"),
///     Materialized::unnamed(),
/// );
/// assert!(builder.build()?.describe().contains("topic: customer-of-order-subscription-registration-topic"));
/// # Ok::<(), streams_dsl::TopologyError>(())
/// ```
pub struct TableJoined<K, KO> {
    pub(crate) name: Option<String>,
    pub(crate) partitioner: Option<Arc<KeyPartitioner<K>>>,
    pub(crate) other_partitioner: Option<Arc<KeyPartitioner<Option<KO>>>>,
}

impl<K, KO> Default for TableJoined<K, KO> {
    fn default() -> Self {
        TableJoined {
            name: None,
            partitioner: None,
            other_partitioner: None,
        }
    }
}

impl<K: 'static, KO: 'static> TableJoined<K, KO> {
    /// The nodes are `NAME-subscription-registration-processor` and so on, the topics
    /// `<application.id>-NAME-subscription-registration-topic` and `…-response-topic`, the store
    /// `NAME-subscription-store`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::default().with_name(name)
    }

    /// Names nodes, topics and store; see [`named`](Self::named).
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Chooses the partition of answers by `(topic, key, partition count)` of the left table's keys: give the one that
    /// the left topic is partitioned by. Default (and `None`): the partition the left row came from.
    #[must_use]
    pub fn partitioned_by(
        mut self,
        partitioner: impl Fn(&str, &K, i32) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.partitioner = Some(Arc::new(partitioner));
        self
    }

    /// Chooses the partition of subscriptions by `(topic, foreign key, partition count)`: give the one that the other
    /// topic is partitioned by. The key is `None` for a left join's rows without a foreign key. Default (and `None`):
    /// murmur2 of the key's bytes.
    #[must_use]
    pub fn other_partitioned_by(
        mut self,
        partitioner: impl Fn(&str, Option<&KO>, i32) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.other_partitioner = Some(Arc::new(move |topic: &str, key: &Option<KO>, count: i32| {
            partitioner(topic, key.as_ref(), count)
        }));
        self
    }
}
