//! User processors: typed in and out, with stores, punctuation and forwarding. Java: the Processor API (KIP-478).

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::node::{AnyNode, Children, Downstream, NodeBuilder};
use super::{PunctuationType, PunctuatorId, TaskContext};
use crate::error::{BoxError, Error, FailurePlace, ProcessResult};
use crate::stores::{GlobalStore, KeyValueStore, SessionStore, TaskStores, TtlStore, VersionedStore, WindowStore};
use crate::topology::TopologyError;
use crate::{DefaultSerde, Record, TaskId};

/// User code that works on records one by one, may keep state in stores and may run on a schedule.
///
/// One instance per task; after an aborted transaction the instance is thrown away and a new one made, so its fields
/// never hold anything that was not committed. Java counterpart: `org.apache.kafka.streams.processor.api.Processor`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a processor of keys `{KIn}` and values `{VIn}`",
    label = "the processors made here do not take this stream's records",
    note = "a processor implements `Processor<{KIn}, {VIn}, KOut, VOut>`: first the types of the stream, then those it forwards"
)]
pub trait Processor<KIn, VIn, KOut, VOut>: 'static {
    /// Called once before the first record, with the stores restored: look up stores, schedule punctuations.
    ///
    /// # Errors
    /// An error stops the thread.
    fn init(&mut self, _cx: &mut ProcessorContext<'_, KOut, VOut>) -> Result<(), BoxError> {
        Ok(())
    }

    /// Works on one record.
    ///
    /// # Errors
    /// An error, as a panic, goes to the processing handler.
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, KOut, VOut>,
        record: Record<'_, KIn, VIn>,
    ) -> Result<(), BoxError>;

    /// Runs when a schedule made by this processor is due; `timestamp_ms` is stream time or wall clock.
    ///
    /// # Errors
    /// An error, as a panic, goes to the processing handler.
    fn punctuate(
        &mut self,
        _cx: &mut ProcessorContext<'_, KOut, VOut>,
        _id: PunctuatorId,
        _timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        Ok(())
    }

    /// Called when the task is given away, closed, or made anew after an abort. Nothing can be written any more.
    fn close(&mut self) {}
}

/// Makes processors, one per task. Implemented by every `Fn() -> P`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not make processors",
    label = "a processor for each task is wanted here, not a processor",
    note = "pass what makes one: a closure `|| …`, or a function"
)]
pub trait ProcessorSupplier<P>: Send + Sync + 'static {
    /// Makes one.
    fn get(&self) -> P;
}

impl<P, F: Fn() -> P + Send + Sync + 'static> ProcessorSupplier<P> for F {
    fn get(&self) -> P {
        self()
    }
}

/// What a processor can reach: its children, its stores, its task's times and output.
pub struct ProcessorContext<'a, KOut, VOut> {
    cx: &'a mut TaskContext,
    children: &'a Children<KOut, VOut>,
    node: &'a NodeParts,
    me: &'a std::rc::Weak<dyn Punctuated>,
    /// What a child failed with. It lies outside the processor's call, so that a panic can't lose it.
    failure: &'a mut Option<Box<Error>>,
}

struct NodeParts {
    name: Arc<str>,
    children: Vec<Arc<str>>,
    store_names: Vec<Arc<str>>,
    stores: TaskStores,
}

/// A child failed for good; the thread stops whatever the processor does with this.
#[derive(Debug, thiserror::Error)]
#[error("a node downstream failed, the thread stops")]
pub struct ForwardFailed;

impl<KOut, VOut> Deref for ProcessorContext<'_, KOut, VOut> {
    type Target = TaskContext;
    fn deref(&self) -> &TaskContext {
        self.cx
    }
}

impl<KOut, VOut> DerefMut for ProcessorContext<'_, KOut, VOut> {
    fn deref_mut(&mut self) -> &mut TaskContext {
        self.cx
    }
}

impl<KOut, VOut> ProcessorContext<'_, KOut, VOut> {
    /// The same context for a shorter while.
    pub(super) fn reborrow(&mut self) -> ProcessorContext<'_, KOut, VOut> {
        ProcessorContext {
            cx: self.cx,
            children: self.children,
            node: self.node,
            me: self.me,
            failure: self.failure,
        }
    }

    /// Hands a record to all children; returns when they are done.
    ///
    /// # Errors
    /// When a child failed for good; pass it on with `?`.
    pub fn forward(&mut self, record: Record<'_, KOut, VOut>) -> Result<(), ForwardFailed> {
        self.children.forward(self.cx, record).map_err(|error| {
            self.failure.get_or_insert(error);
            ForwardFailed
        })
    }

    /// Hands a record to the child of this name alone; returns when it is done. Java: `forward(record, childName)`.
    ///
    /// # Errors
    /// When there is no child of this name, or it failed for good; pass it on with `?`.
    pub fn forward_to(&mut self, child: &str, record: Record<'_, KOut, VOut>) -> Result<(), BoxError> {
        let Some(index) = self.node.children.iter().position(|name| &**name == child) else {
            return Err(Box::new(TopologyError::Unknown {
                node: self.node.name.to_string(),
                what: "child",
                name: child.to_owned(),
            }));
        };
        let forwarded = self.children.forward_to(index, self.cx, record);
        Ok(forwarded.map_err(|error| {
            self.failure.get_or_insert(error);
            ForwardFailed
        })?)
    }

    /// The store of this name, as the type it was defined with.
    ///
    /// # Errors
    /// When the processor is not connected to it, or it is of another type.
    pub fn store<S: 'static>(&self, name: &str) -> Result<Rc<S>, TopologyError> {
        let node = self.node.name.to_string();
        if !self.node.store_names.iter().any(|connected| &**connected == name) {
            return Err(TopologyError::StoreNotConnected {
                node,
                store: name.to_owned(),
            });
        }
        let wanted = std::any::type_name::<S>();
        self.node.stores.get(name).ok_or(TopologyError::StoreType {
            node,
            store: name.to_owned(),
            wanted,
        })
    }

    /// A key-value store; values carry the event time of their last update.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn key_value_store<K: 'static, V: 'static>(
        &self,
        name: &str,
    ) -> Result<Rc<KeyValueStore<K, V>>, TopologyError> {
        self.store(name)
    }

    /// A store whose rows die.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn ttl_store<K: 'static, V: 'static>(&self, name: &str) -> Result<Rc<TtlStore<K, V>>, TopologyError> {
        self.store(name)
    }

    /// A versioned store.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn versioned_store<K: 'static, V: 'static>(
        &self,
        name: &str,
    ) -> Result<Rc<VersionedStore<K, V>>, TopologyError> {
        self.store(name)
    }

    /// A window store.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn window_store<K: 'static, V: 'static>(&self, name: &str) -> Result<Rc<WindowStore<K, V>>, TopologyError> {
        self.store(name)
    }

    /// A global store, to look up rows by the types' default serdes. No connection is needed.
    ///
    /// # Errors
    /// When there is no global store of this name.
    pub fn global_store<K: DefaultSerde, V: DefaultSerde>(
        &self,
        name: &str,
    ) -> Result<GlobalStore<K, V>, TopologyError> {
        let reader = self
            .cx
            .globals()
            .reader(name)
            .cloned()
            .ok_or_else(|| TopologyError::Unknown {
                node: self.node.name.to_string(),
                what: "global store",
                name: name.to_owned(),
            })?;
        Ok(GlobalStore::new(name.into(), reader, K::shared(), V::shared()))
    }

    /// A session store.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn session_store<K: 'static, V: 'static>(&self, name: &str) -> Result<Rc<SessionStore<K, V>>, TopologyError> {
        self.store(name)
    }

    /// Runs [`Processor::punctuate`] every `interval`. Schedules are not persisted; make them in `init`.
    pub fn schedule_every(&mut self, interval: Duration, kind: PunctuationType) -> PunctuatorId {
        let me = self.me.clone();
        let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        self.cx
            .schedule(kind, interval_ms, move |cx, id, timestamp_ms| match me.upgrade() {
                Some(node) => node.punctuate(cx, id, timestamp_ms),
                None => Ok(()),
            })
    }

    /// As [`schedule_every`](Self::schedule_every), but only at `start_ms` (milliseconds since the Unix epoch of that clock)
    /// and whole intervals after it: at every full hour, say. Java: `schedule` with a start time (KIP-1146).
    pub fn schedule_from(&mut self, start_ms: i64, interval: Duration, kind: PunctuationType) -> PunctuatorId {
        let me = self.me.clone();
        let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        self.cx
            .schedule_from(kind, start_ms, interval_ms, move |cx, id, timestamp_ms| {
                match me.upgrade() {
                    Some(node) => node.punctuate(cx, id, timestamp_ms),
                    None => Ok(()),
                }
            })
    }

    /// The task. Java: `taskId`.
    #[must_use]
    pub fn task_id(&self) -> TaskId {
        self.cx.task()
    }
}

trait Punctuated {
    fn punctuate(&self, cx: &mut TaskContext, id: PunctuatorId, timestamp_ms: i64) -> ProcessResult;
}

/// The node around a user processor.
pub struct ProcessorNode<P, KOut, VOut> {
    processor: RefCell<P>,
    children: Children<KOut, VOut>,
    parts: NodeParts,
    me: std::rc::Weak<dyn Punctuated>,
}

impl<P, KOut: 'static, VOut: 'static> ProcessorNode<P, KOut, VOut> {
    /// Makes the node of a processor from `KIn, VIn` to `KOut, VOut`, connected to the node's stores.
    ///
    /// # Errors
    /// When the children take other types.
    pub fn build<KIn: 'static, VIn: 'static>(
        builder: &mut NodeBuilder<'_>,
        processor: P,
    ) -> Result<AnyNode, TopologyError>
    where
        P: Processor<KIn, VIn, KOut, VOut>,
    {
        let children = builder.children::<KOut, VOut>()?;
        let parts = NodeParts {
            name: builder.name(),
            children: builder.child_names(),
            store_names: builder.store_names().to_vec(),
            stores: builder.stores(),
        };
        let node = Rc::new_cyclic(
            |me: &std::rc::Weak<TypedProcessor<P, KIn, VIn, KOut, VOut>>| TypedProcessor {
                node: ProcessorNode {
                    processor: RefCell::new(processor),
                    children,
                    parts,
                    me: me.clone(),
                },
                types: std::marker::PhantomData,
            },
        );
        let (init, close) = (Rc::clone(&node), Rc::clone(&node));
        builder.on_init(move |cx| init.init(cx));
        builder.on_close(move |_| close.node.processor.borrow_mut().close());
        Ok(AnyNode::new::<KIn, VIn>(node))
    }

    /// Calls the processor with a context; a failed child's error wins over whatever the processor made of it.
    fn call(
        &self,
        cx: &mut TaskContext,
        code: impl FnOnce(&mut P, &mut ProcessorContext<'_, KOut, VOut>) -> Result<(), BoxError>,
    ) -> ProcessResult {
        let mut failure = None;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut context = ProcessorContext {
                cx,
                children: &self.children,
                node: &self.parts,
                me: &self.me,
                failure: &mut failure,
            };
            code(&mut self.processor.borrow_mut(), &mut context)
        }));
        if let Some(failure) = failure {
            return Err(failure);
        }
        match caught {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => cx.user_code_failed(&self.parts.name, error),
            Err(panic) => cx.user_code_failed(&self.parts.name, super::user::panic_message(&*panic).into()),
        }
    }
}

struct TypedProcessor<P, KIn, VIn, KOut, VOut> {
    node: ProcessorNode<P, KOut, VOut>,
    types: std::marker::PhantomData<fn(KIn, VIn)>,
}

impl<P, KIn: 'static, VIn: 'static, KOut: 'static, VOut: 'static> TypedProcessor<P, KIn, VIn, KOut, VOut>
where
    P: Processor<KIn, VIn, KOut, VOut>,
{
    fn init(&self, cx: &mut TaskContext) -> ProcessResult {
        let (task, node) = (cx.task(), self.node.parts.name.to_string());
        let mut result = Ok(());
        self.node.call(cx, |processor, context| {
            result = processor.init(context).map_err(|error| {
                let (place, message) = (FailurePlace::Init, error.to_string());
                Box::new(Error::Processing {
                    node,
                    task,
                    place,
                    message,
                })
            });
            Ok(())
        })?;
        result
    }
}

impl<P, KIn: 'static, VIn: 'static, KOut: 'static, VOut: 'static> Downstream<KIn, VIn>
    for TypedProcessor<P, KIn, VIn, KOut, VOut>
where
    P: Processor<KIn, VIn, KOut, VOut>,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, KIn, VIn>) -> ProcessResult {
        self.node
            .call(cx, |processor, context| processor.process(context, record))
    }
}

impl<P, KIn: 'static, VIn: 'static, KOut: 'static, VOut: 'static> Punctuated for TypedProcessor<P, KIn, VIn, KOut, VOut>
where
    P: Processor<KIn, VIn, KOut, VOut>,
{
    fn punctuate(&self, cx: &mut TaskContext, id: PunctuatorId, timestamp_ms: i64) -> ProcessResult {
        self.node
            .call(cx, |processor, context| processor.punctuate(context, id, timestamp_ms))
    }
}
