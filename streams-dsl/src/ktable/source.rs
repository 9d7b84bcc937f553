//! The node that turns records into updates of a table, for `table`, `global_table` and `to_table`.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::stores::{TableStore, Update};
use streams_core::{Change, ProcessResult, Record};

use crate::node::ForwardChanges;

/// What later steps ask of a table.
#[derive(Debug, Default)]
pub(crate) struct TableFlags {
    /// Changes carry the old value.
    pub(crate) send_old: AtomicBool,
}

impl TableFlags {
    pub(crate) fn sends_old(&self) -> bool {
        self.send_old.load(Ordering::Relaxed)
    }

    pub(crate) fn send_old(&self) {
        self.send_old.store(true, Ordering::Relaxed);
    }
}

/// Makes the node. It stores rows if the topology connected it to its store.
pub(crate) fn source_factory<K: 'static, V: Clone + 'static>(
    store: Arc<str>,
    key: SharedSerde<K>,
    flags: Arc<TableFlags>,
) -> Arc<dyn NodeFactory> {
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<K, Change<V>>()?);
        let key = Arc::clone(&key);
        if !builder.store_names().contains(&store) {
            return Ok(AnyNode::new(Rc::new(PassingTable { key, children })));
        }
        let store = builder.table_store::<K, V>(&store)?;
        store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), flags.sends_old());
        Ok(AnyNode::new(Rc::new(StoredTable { store, children })))
    })
}

/// A table whose rows nobody looks up.
struct PassingTable<K, V> {
    key: SharedSerde<K>,
    children: Rc<Children<K, Change<V>>>,
}

impl<K: 'static, V: Clone> Downstream<K, Option<V>> for PassingTable<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Option<V>>) -> ProcessResult {
        if self.key.is_null(record.key) {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let change = Change::new(record.value.clone(), None);
        self.children.forward(cx, record.with_value(&change))
    }
}

struct StoredTable<K: 'static, V> {
    store: TableStore<K, V>,
    children: Rc<Children<K, Change<V>>>,
}

impl<K: 'static, V: Clone + 'static> Downstream<K, Option<V>> for StoredTable<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Option<V>>) -> ProcessResult {
        match self.store.put(cx, record.key, record.value.clone(), record)? {
            Update::NullKey => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
            Update::Skipped | Update::Deferred => Ok(()),
            Update::Changed(change, timestamp_ms) => self
                .children
                .forward(cx, record.with_value(&change).with_timestamp(timestamp_ms)),
        }
    }
}
