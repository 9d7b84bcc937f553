//! What the nodes of the operations have in common.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::stores::FlushListener;
use streams_core::{Change, ProcessResult, Record};

/// What every node has: its name, for failures, and its children.
pub(crate) struct Parts<K, V> {
    pub(crate) name: Arc<str>,
    pub(crate) children: Children<K, V>,
}

/// A factory of nodes without state.
pub(crate) fn factory<KI, VI, KO, VO, N>(
    make: impl Fn(Parts<KO, VO>) -> N + Send + Sync + 'static,
) -> Arc<dyn NodeFactory>
where
    N: Downstream<KI, VI> + 'static,
    KI: 'static,
    VI: 'static,
    KO: 'static,
    VO: 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let parts = Parts {
            name: builder.name(),
            children: builder.children()?,
        };
        Ok(AnyNode::new::<KI, VI>(Rc::new(make(parts))))
    })
}

/// Hands every record on: branches, merges, and where a graph needs a node.
pub(crate) struct PassThrough<K, V>(pub(crate) Parts<K, V>);

impl<K, V> Downstream<K, V> for PassThrough<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        self.0.children.forward(cx, record)
    }
}

/// Hands the changes of a flushed store on.
pub(crate) struct ForwardChanges<K, V>(pub(crate) Rc<Children<K, Change<V>>>);

impl<K, V> FlushListener<K, V> for ForwardChanges<K, V> {
    fn flushed(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        self.0.forward(cx, record)
    }
}
