//! Nodes: the builder stores factories, each task makes its own chain of typed nodes from them.
//!
//! Types are erased once, while a task is built; at run time a record goes by reference from typed parent to typed
//! child (about 2 ns a hop).

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use super::TaskContext;
use super::rows::RowReader;
use crate::error::ProcessResult;
use crate::fetch::FetchedRecord;
use crate::metrics::meters::NodeMeter;
use crate::serde::{Format, SharedSerde};
use crate::stores::{GlobalStore, KeyValueStore, TableStore, TaskStores};
use crate::topology::TopologyError;
use crate::{Record, TopicPartition};

/// A node that takes records of keys `K` and values `V`.
pub trait Downstream<K, V> {
    /// Takes one record; returns when its whole subtree is done (depth first, as Java).
    ///
    /// # Errors
    /// Only for failures that stop the thread; a failure that a handler lets pass is not one.
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult;
}

/// The children of a node, in wiring order.
pub struct Children<K, V> {
    nodes: Box<[Rc<dyn Downstream<K, V>>]>,
}

impl<K, V> Children<K, V> {
    /// Hands a record to every child in turn.
    ///
    /// # Errors
    /// The first child's failure that stops the thread.
    #[inline]
    pub fn forward(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        for node in &self.nodes {
            node.process(cx, record)?;
        }
        Ok(())
    }

    /// Hands a record to the `index`-th child only; without one the record is gone, as for a branch without default.
    ///
    /// # Errors
    /// The child's failure that stops the thread.
    pub fn forward_to(&self, index: usize, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        self.nodes.get(index).map_or(Ok(()), |node| node.process(cx, record))
    }

    /// How many children there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no child.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// A node whose types are known only to its factory and its parents'.
#[derive(Clone)]
pub struct AnyNode {
    node: Rc<dyn Any>,
    types: &'static str,
}

struct Typed<K, V>(Rc<dyn Downstream<K, V>>);

impl AnyNode {
    /// Erases a node's types.
    pub fn new<K: 'static, V: 'static>(node: Rc<dyn Downstream<K, V>>) -> Self {
        AnyNode {
            node: Rc::new(Typed(node)),
            types: std::any::type_name::<(K, V)>(),
        }
    }

    fn typed<K: 'static, V: 'static>(&self) -> Option<Rc<dyn Downstream<K, V>>> {
        self.node.downcast_ref::<Typed<K, V>>().map(|typed| Rc::clone(&typed.0))
    }
}

/// Makes one node for one task. Shared by all threads; what it makes stays on the thread that made it.
pub trait NodeFactory: Send + Sync {
    /// Makes the node; its children are there already.
    ///
    /// # Errors
    /// When types or stores do not fit.
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError>;

    /// What a sink's keys and values are on its topic; `None` = not known, or no sink.
    fn written(&self) -> Option<(Format, Format)> {
        None
    }
}

impl<F> NodeFactory for F
where
    F: Fn(&mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> + Send + Sync,
{
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
        self(builder)
    }
}

/// A fetched record before it is read.
#[derive(Clone, Copy)]
pub struct RawRecord<'a> {
    /// The record's bytes, offset and timestamp.
    pub record: &'a FetchedRecord<'a>,
    /// Where it lies.
    pub topic_partition: &'a TopicPartition,
}

/// Turns fetched bytes into typed records and hands them to its children.
pub trait SourceNode {
    /// The event time (ms since the Unix epoch) of a record that carries `record_ms`, where nothing else of the record
    /// is needed to know it; `None` = ask [`timestamp`](Self::timestamp), which must agree.
    fn own_timestamp(&self, _record_ms: i64) -> Option<i64> {
        None
    }

    /// The record's event time (ms since the Unix epoch); `None` drops the record (counted).
    /// `partition_time_ms` is the highest event time seen in the partition, -1 when unknown.
    ///
    /// # Errors
    /// When the extractor's policy is to fail.
    fn timestamp(&self, cx: &mut TaskContext, raw: RawRecord<'_>, partition_time_ms: i64)
    -> ProcessResult<Option<i64>>;

    /// Reads the record and hands it on; `cx` carries its context and event time.
    ///
    /// # Errors
    /// As [`Downstream::process`].
    fn process(&self, cx: &mut TaskContext, raw: RawRecord<'_>) -> ProcessResult;
}

/// Makes one source node for one task.
pub trait SourceFactory: Send + Sync {
    /// Makes the node; its children are there already.
    ///
    /// # Errors
    /// When types do not fit.
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<Rc<dyn SourceNode>, TopologyError>;

    /// How a restore reads the topic when it serves as a table's changelog, for the node of the name `node`; `None` = every
    /// record with a key is a row, at the record's own timestamp.
    fn rows(&self, _node: &Arc<str>) -> Option<Arc<dyn RowReader>> {
        None
    }
}

impl<F> SourceFactory for F
where
    F: Fn(&mut NodeBuilder<'_>) -> Result<Rc<dyn SourceNode>, TopologyError> + Send + Sync,
{
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<Rc<dyn SourceNode>, TopologyError> {
        self(builder)
    }
}

type InitHook = Box<dyn FnOnce(&mut TaskContext) -> ProcessResult>;
type CloseHook = Box<dyn FnOnce(&mut TaskContext)>;

/// What a factory gets: the node's name, its children, its stores, and the task's life cycle.
pub struct NodeBuilder<'a> {
    name: Arc<str>,
    children: Vec<(Arc<str>, AnyNode)>,
    store_names: Vec<Arc<str>>,
    stores: &'a TaskStores,
    cx: &'a mut TaskContext,
    graph: &'a mut BuiltGraph,
}

/// What building a task's nodes left to be done in its life.
#[derive(Default)]
pub(crate) struct BuiltGraph {
    pub(crate) init: Vec<InitHook>,
    pub(crate) close: Vec<CloseHook>,
}

impl<'a> NodeBuilder<'a> {
    pub(crate) fn new(
        name: Arc<str>,
        children: Vec<(Arc<str>, AnyNode)>,
        store_names: Vec<Arc<str>>,
        stores: &'a TaskStores,
        cx: &'a mut TaskContext,
        graph: &'a mut BuiltGraph,
    ) -> Self {
        NodeBuilder {
            name,
            children,
            store_names,
            stores,
            cx,
            graph,
        }
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The children, all of which must take these types.
    ///
    /// # Errors
    /// When a child takes others; only a hand-made topology can bring that about.
    pub fn children<K: 'static, V: 'static>(&self) -> Result<Children<K, V>, TopologyError> {
        let typed = self.children.iter().map(|(name, child)| {
            child.typed::<K, V>().ok_or_else(|| TopologyError::Types {
                parent: self.name.to_string(),
                child: name.to_string(),
                gives: std::any::type_name::<(K, V)>(),
                takes: child.types,
            })
        });
        Ok(Children {
            nodes: typed.collect::<Result<_, _>>()?,
        })
    }

    /// The children's names, in wiring order.
    #[must_use]
    pub fn child_names(&self) -> Vec<Arc<str>> {
        self.children.iter().map(|(name, _)| Arc::clone(name)).collect()
    }

    /// The children of a node with two outputs: those that take the first types, and those that take the second.
    ///
    /// # Errors
    /// When a child takes neither.
    #[allow(clippy::type_complexity, reason = "a pair of children")]
    pub fn children_of_two<K1: 'static, V1: 'static, K2: 'static, V2: 'static>(
        &self,
    ) -> Result<(Children<K1, V1>, Children<K2, V2>), TopologyError> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (name, child) in &self.children {
            match (child.typed::<K1, V1>(), child.typed::<K2, V2>()) {
                (Some(node), _) => first.push(node),
                (None, Some(node)) => second.push(node),
                (None, None) => {
                    return Err(TopologyError::Types {
                        parent: self.name.to_string(),
                        child: name.to_string(),
                        gives: std::any::type_name::<((K1, V1), (K2, V2))>(),
                        takes: child.types,
                    });
                }
            }
        }
        Ok((Children { nodes: first.into() }, Children { nodes: second.into() }))
    }

    /// The position of a child by its name, for nodes that choose one of their children.
    #[must_use]
    pub fn child_index(&self, name: &str) -> Option<usize> {
        self.children.iter().position(|(child, _)| &**child == name)
    }

    /// A store of the task that this node is connected to, as the type its definition makes.
    ///
    /// # Errors
    /// When the store is not connected or is of another type.
    pub fn store<S: 'static>(&self, store: &str) -> Result<Rc<S>, TopologyError> {
        if !self.store_names.iter().any(|name| &**name == store) {
            return Err(TopologyError::StoreNotConnected {
                node: self.name.to_string(),
                store: store.to_owned(),
            });
        }
        self.stores.get(store).ok_or_else(|| TopologyError::StoreType {
            node: self.name.to_string(),
            store: store.to_owned(),
            wanted: std::any::type_name::<S>(),
        })
    }

    /// The rows of a table that this node is connected to, plain or versioned.
    ///
    /// # Errors
    /// When the store is not connected or is of another type.
    pub fn table_store<K: 'static, V: 'static>(&self, store: &str) -> Result<TableStore<K, V>, TopologyError> {
        if let (true, Some(found)) = (
            self.store_names.iter().any(|name| &**name == store),
            TableStore::find(self.stores, store),
        ) {
            return Ok(found);
        }
        self.store::<KeyValueStore<K, V>>(store).map(TableStore::Plain)
    }

    /// A global key-value store, to look up rows by typed keys.
    ///
    /// # Errors
    /// When there is no global store of this name.
    pub fn global_store<K: 'static, V: 'static>(
        &self,
        store: &str,
        key: SharedSerde<K>,
        value: SharedSerde<V>,
    ) -> Result<GlobalStore<K, V>, TopologyError> {
        let reader = self
            .cx
            .globals()
            .reader(store)
            .cloned()
            .ok_or_else(|| TopologyError::Unknown {
                node: self.name.to_string(),
                what: "global store",
                name: store.to_owned(),
            })?;
        Ok(GlobalStore::new(store.into(), reader, key, value))
    }

    /// The names of the stores that the node is connected to.
    #[must_use]
    pub fn store_names(&self) -> &[Arc<str>] {
        &self.store_names
    }

    /// All stores of the task, for nodes that look them up later (they check the connection themselves).
    #[must_use]
    pub fn stores(&self) -> TaskStores {
        self.stores.clone()
    }

    /// What counts what the node emits later than it is told.
    pub fn meter(&mut self) -> Rc<NodeMeter> {
        self.cx.meters.node(&self.name)
    }

    /// The task's context, for what a node sets up once: topics, operator times.
    pub fn context(&mut self) -> &mut TaskContext {
        self.cx
    }

    /// Runs once, before the first record, when the task's state is restored.
    pub fn on_init(&mut self, hook: impl FnOnce(&mut TaskContext) -> ProcessResult + 'static) {
        self.graph.init.push(Box::new(hook));
    }

    /// Runs once when the task is closed or its nodes are made anew; nothing written here is kept.
    pub fn on_close(&mut self, hook: impl FnOnce(&mut TaskContext) + 'static) {
        self.graph.close.push(Box::new(hook));
    }
}
