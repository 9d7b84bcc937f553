//! Global tables: every instance has all rows.

use std::marker::PhantomData;
use std::sync::Arc;

use streams_core::serde::SharedSerde;

use crate::graph::Shared;

/// A table of which every instance has all rows, so that a stream joins it by any key and without a repartition.
///
/// There is no order between its updates and the records of a stream. Java counterpart: `GlobalKTable`.
pub struct GlobalKTable<K, V> {
    pub(crate) builder: Shared,
    pub(crate) key: SharedSerde<K>,
    pub(crate) store: Arc<str>,
    pub(crate) value: PhantomData<fn() -> V>,
}

impl<K, V> Clone for GlobalKTable<K, V> {
    fn clone(&self) -> Self {
        GlobalKTable { builder: self.builder.clone(), key: Arc::clone(&self.key), store: Arc::clone(&self.store), value: PhantomData }
    }
}

impl<K, V> GlobalKTable<K, V> {
    /// The name of its store.
    #[must_use]
    pub fn store_name(&self) -> &str {
        &self.store
    }
}
