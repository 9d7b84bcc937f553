//! How other operations look rows up in a table.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::ProcessResult;
use streams_core::processor::{NodeBuilder, TaskContext};
use streams_core::stores::{Layout, TableStore, TypedStore};
use streams_core::topology::TopologyError;

use crate::graph::NodeId;

/// The rows of a table, in one task.
pub(crate) trait TableView<K, V> {
    /// Lends a row to `read`, called once: the value and its event time (ms since the Unix epoch), or `None`.
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V, i64)>)) -> ProcessResult;

    /// As `read`, for the row that was valid at a time (ms since the Unix epoch). A table without versions knows its last
    /// row only.
    fn read_as_of(
        &self,
        cx: &mut TaskContext,
        key: &K,
        _as_of_ms: i64,
        read: &mut dyn FnMut(Option<(&V, i64)>),
    ) -> ProcessResult {
        self.read(cx, key, read)
    }
}

/// The rows of a table's store, plain or versioned.
struct RowsView<K: 'static, V>(TableStore<K, V>);

impl<K: 'static, V: 'static> TableView<K, V> for RowsView<K, V> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V, i64)>)) -> ProcessResult {
        self.0.read(cx, key, read)
    }

    fn read_as_of(
        &self,
        cx: &mut TaskContext,
        key: &K,
        as_of_ms: i64,
        read: &mut dyn FnMut(Option<(&V, i64)>),
    ) -> ProcessResult {
        self.0.read_as_of(cx, key, as_of_ms, read)
    }
}

/// The rows of a store.
pub(crate) struct StoreView<L: Layout, V>(pub(crate) Rc<TypedStore<L, V>>);

impl<L: Layout, V: 'static> TableView<L::Key, V> for StoreView<L, V> {
    fn read(&self, cx: &mut TaskContext, key: &L::Key, read: &mut dyn FnMut(Option<(&V, i64)>)) -> ProcessResult {
        self.0.read(cx, key, read)
    }
}

type Open<K, V> = dyn Fn(&mut NodeBuilder<'_>) -> Result<Rc<dyn TableView<K, V>>, TopologyError> + Send + Sync;

/// Opens a table's rows for a node that is connected to `stores`.
pub(crate) struct View<K, V> {
    /// The nodes that have to store their rows for this.
    pub(crate) stored_by: Vec<NodeId>,
    pub(crate) stores: Vec<Arc<str>>,
    pub(crate) open: Arc<Open<K, V>>,
}

impl<K, V> Clone for View<K, V> {
    fn clone(&self) -> Self {
        View {
            stored_by: self.stored_by.clone(),
            stores: self.stores.clone(),
            open: Arc::clone(&self.open),
        }
    }
}

impl<K: 'static, V: 'static> View<K, V> {
    /// The rows of a table's store, plain or versioned.
    pub(crate) fn of_store(stored_by: NodeId, store: &str) -> Self {
        let store: Arc<str> = store.into();
        let name = Arc::clone(&store);
        let open = move |builder: &mut NodeBuilder<'_>| {
            let view: Rc<dyn TableView<K, V>> = Rc::new(RowsView(builder.table_store::<K, V>(&name)?));
            Ok(view)
        };
        View {
            stored_by: vec![stored_by],
            stores: vec![store],
            open: Arc::new(open),
        }
    }
}
