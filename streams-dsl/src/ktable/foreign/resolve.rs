//! The left side again: answers meet the row they belong to, if it has not changed meanwhile.
//!
//! Java counterpart: `ResponseJoinProcessorSupplier`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use streams_core::murmur3::hash128;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext, catch_user};
use streams_core::serde::SharedSerde;
use streams_core::{BoxError, ProcessResult, Record};

use super::Topics;
use super::wire::Answer;
use crate::ktable::view::{TableView, View};

/// The result of a left row and a foreign one, where there is one; `None` = none.
pub(super) type Combine<K, V, VO, V2> = dyn Fn(&K, &V, Option<&VO>) -> Option<V2> + Send + Sync;

/// What the node is made from.
pub(super) struct Resolve<K, V, VO, V2> {
    pub(super) value: SharedSerde<V>,
    pub(super) result: SharedSerde<V2>,
    pub(super) left: View<K, V>,
    pub(super) combine: Arc<Combine<K, V, VO, V2>>,
    /// The registration topic.
    pub(super) topic: Arc<str>,
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> NodeFactory for Resolve<K, V, VO, V2> {
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<AnyNode, streams_core::topology::TopologyError> {
        let topics = Topics::of(builder, &self.topic);
        Ok(AnyNode::new::<K, Answer<VO>>(Rc::new(Resolver {
            name: builder.name(),
            children: builder.children::<K, Option<V2>>()?,
            value: Arc::clone(&self.value),
            result: Arc::clone(&self.result),
            left: (self.left.open)(builder)?,
            combine: Arc::clone(&self.combine),
            topics,
            buffer: RefCell::default(),
        })))
    }
}

struct Resolver<K, V, VO, V2> {
    name: Arc<str>,
    children: Children<K, Option<V2>>,
    value: SharedSerde<V>,
    result: SharedSerde<V2>,
    left: Rc<dyn TableView<K, V>>,
    combine: Arc<Combine<K, V, VO, V2>>,
    topics: Topics,
    buffer: RefCell<Vec<u8>>,
}

/// What an answer gives.
enum Outcome<V2> {
    /// The left row has changed since: its own answer is on its way.
    Stale,
    Result(Option<V2>),
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> Resolver<K, V, VO, V2> {
    fn resolve(&self, key: &K, left: Option<&V>, answer: &Answer<VO>) -> Result<Outcome<V2>, BoxError> {
        if self.hash(left)? != answer.hash {
            return Ok(Outcome::Stale);
        }
        let Some(left) = left else {
            return Ok(Outcome::Result(None));
        };
        let result = catch_user(|| (self.combine)(key, left, answer.foreign_value.as_ref()))?;
        Ok(Outcome::Result(result.filter(|result| !self.result.is_null(result))))
    }

    fn hash(&self, left: Option<&V>) -> Result<Option<[u8; 16]>, BoxError> {
        let Some(left) = left else { return Ok(None) };
        let mut bytes = self.buffer.borrow_mut();
        bytes.clear();
        let present = self.value.serialize(&self.topics.value_hash, left, &mut bytes)?;
        Ok(present.then(|| hash128(&bytes)))
    }
}

impl<K: 'static, V: 'static, VO: 'static, V2: 'static> Downstream<K, Answer<VO>> for Resolver<K, V, VO, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Answer<VO>>) -> ProcessResult {
        let outcome = RefCell::new(Ok(Outcome::Stale));
        self.left.read(cx, record.key, &mut |row| {
            let left = row.map(|(value, _)| value);
            *outcome.borrow_mut() = self.resolve(record.key, left, record.value);
        })?;
        match cx.try_user(&self.name, || outcome.into_inner())? {
            Some(Outcome::Result(result)) => self.children.forward(cx, record.with_value(&result)),
            Some(Outcome::Stale) => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}
