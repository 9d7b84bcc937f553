//! Global tables: every instance has all rows.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::ProcessResult;
use streams_core::processor::{NodeBuilder, TaskContext};
use streams_core::stores::GlobalStore;
use streams_core::topology::TopologyError;

use streams_core::serde::SharedSerde;

use super::view::TableView;
use crate::graph::Shared;

/// A table of which every instance has all rows, so that a stream joins it by any key and without a repartition.
///
/// There is no order between its updates and the records of a stream. The instance is running only when the table is
/// filled to the end that its topic had at the start.
///
/// ```
/// # use streams_dsl::doctest::*;
/// run(|b| {
///     let countries = b.global_table::<String, String>("countries");
///     let visits = b.stream::<String, String>("visits");
///     visits.join_global(&countries, |_user, code| code.clone(), |_user, _code, name| name.clone()).to("named")
/// })
/// .pipe("countries", [("at", "Austria", at(0))])
/// .pipe("visits", [("ann", "at", at(1)), ("bob", "xx", at(2))])
/// .gives("named", [("ann", "Austria", at(1))]);
/// ```
///
/// Java counterpart: `GlobalKTable`.
pub struct GlobalKTable<K, V> {
    pub(crate) builder: Shared,
    pub(crate) key: SharedSerde<K>,
    pub(crate) store: Arc<str>,
    pub(crate) value: SharedSerde<V>,
}

impl<K, V> Clone for GlobalKTable<K, V> {
    fn clone(&self) -> Self {
        let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
        GlobalKTable {
            builder: self.builder.clone(),
            key,
            store: Arc::clone(&self.store),
            value,
        }
    }
}

impl<K, V> GlobalKTable<K, V> {
    /// The name of its store.
    #[must_use]
    pub fn store_name(&self) -> &str {
        &self.store
    }
}

impl<K: 'static, V: 'static> GlobalKTable<K, V> {
    /// Opens the rows for a node that is connected to the store.
    pub(crate) fn open(&self, builder: &NodeBuilder<'_>) -> Result<Rc<dyn TableView<K, V>>, TopologyError> {
        let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
        Ok(Rc::new(GlobalView(builder.global_store(&self.store, key, value)?)))
    }
}

struct GlobalView<K, V>(GlobalStore<K, V>);

impl<K: 'static, V: 'static> TableView<K, V> for GlobalView<K, V> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V, i64)>)) -> ProcessResult {
        let row = self.0.get(cx, key)?;
        read(row.as_ref().map(|row| (&row.value, row.timestamp_ms)));
        Ok(())
    }
}
