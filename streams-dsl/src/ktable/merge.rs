//! The node in which the two sides of a join meet, and where the result is stored if that was asked for.
//!
//! Java counterpart: `KTableKTableJoinMerger`.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::stores::{TableStore, Update};
use streams_core::{Change, ProcessResult, Record};

use super::source::TableFlags;
use crate::node::ForwardChanges;

/// Makes the node.
pub(super) fn factory<K: 'static, V: Clone + 'static>(
    store: Option<Arc<str>>,
    flags: Arc<TableFlags>,
) -> Arc<dyn NodeFactory> {
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<K, Change<V>>()?);
        let store = store
            .as_ref()
            .map(|name| builder.table_store::<K, V>(name))
            .transpose()?;
        if let Some(store) = &store {
            store.set_listener(Rc::new(ForwardChanges(Rc::clone(&children))), flags.sends_old());
        }
        Ok(AnyNode::new::<K, Change<V>>(Rc::new(Merge { children, store })))
    })
}

struct Merge<K: 'static, V> {
    children: Rc<Children<K, Change<V>>>,
    store: Option<TableStore<K, V>>,
}

impl<K: 'static, V: Clone + 'static> Downstream<K, Change<V>> for Merge<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        let Some(store) = &self.store else {
            return self.children.forward(cx, record);
        };
        match store.put(cx, record.key, record.value.new.clone(), record)? {
            Update::NullKey | Update::Skipped | Update::Deferred => Ok(()),
            Update::Changed(change, time) => self
                .children
                .forward(cx, record.with_value(&change).with_timestamp(time)),
        }
    }
}
