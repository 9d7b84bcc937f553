//! The right side, where subscriptions arrive: they are stored, and answered with the foreign row there is.
//!
//! Java counterpart: `SubscriptionReceiveProcessorSupplier`, `SubscriptionJoinProcessorSupplier`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use streams_core::codec::{Instruction, combined_key};
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::{BoxError, ProcessResult, Record};

use super::wire::{Answer, Message};
use super::{Subscriptions, Topics};
use crate::ktable::view::{TableView, View};

/// The factory of the node that stores subscriptions.
pub(super) fn receive<KO: 'static>(
    store: &str,
    topic: &Arc<str>,
    foreign_key: &SharedSerde<KO>,
) -> Arc<dyn NodeFactory> {
    let (store, topic, foreign_key) = (store.to_owned(), Arc::clone(topic), Arc::clone(foreign_key));
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let receive = Receive {
            name: builder.name(),
            children: builder.children::<Option<KO>, Message>()?,
            store: builder.store::<Subscriptions>(&store)?,
            foreign_key: Arc::clone(&foreign_key),
            topics: Topics::of(builder, &topic),
        };
        Ok(AnyNode::new::<Option<KO>, Message>(Rc::new(receive)))
    })
}

struct Receive<KO> {
    name: Arc<str>,
    children: Children<Option<KO>, Message>,
    store: Rc<Subscriptions>,
    foreign_key: SharedSerde<KO>,
    topics: Topics,
}

impl<KO: 'static> Receive<KO> {
    fn store_key(&self, foreign_key: &KO, message: &Message) -> Result<Vec<u8>, BoxError> {
        let mut bytes = Vec::new();
        self.foreign_key
            .serialize(&self.topics.foreign_key, foreign_key, &mut bytes)?;
        Ok(combined_key(&bytes, &message.primary_key)?)
    }
}

impl<KO: 'static> Downstream<Option<KO>, Message> for Receive<KO> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Option<KO>, Message>) -> ProcessResult {
        let message = record.value;
        let Some(foreign_key) = record.key.as_ref().filter(|key| !self.foreign_key.is_null(key)) else {
            if message.instruction == Instruction::PropagateNullIfNoForeignValue {
                // A left join's row without a foreign key is only answered.
                return self.children.forward(cx, record);
            }
            cx.counters.dropped_records += 1;
            return Ok(());
        };
        let Some(key) = cx.try_user(&self.name, || self.store_key(foreign_key, message))? else {
            return Ok(());
        };
        let ends = matches!(
            message.instruction,
            Instruction::DeleteKeyAndPropagate | Instruction::DeleteKeyNoPropagate
        );
        let row = (!ends).then(|| {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            bytes
        });
        self.store.put(cx, &key, row, record)?;
        self.children.forward(cx, record)
    }
}

/// The factory of the node that answers subscriptions.
pub(super) fn answer<K: 'static, KO: 'static, VO: Clone + 'static>(
    topic: &Arc<str>,
    key: &SharedSerde<K>,
    foreign: &View<KO, VO>,
) -> Arc<dyn NodeFactory> {
    let (topic, key, foreign) = (Arc::clone(topic), Arc::clone(key), foreign.clone());
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let join = Join {
            name: builder.name(),
            children: builder.children::<K, Answer<VO>>()?,
            key: Arc::clone(&key),
            foreign: (foreign.open)(builder)?,
            topics: Topics::of(builder, &topic),
        };
        Ok(AnyNode::new::<Option<KO>, Message>(Rc::new(join)))
    })
}

struct Join<K, KO, VO> {
    name: Arc<str>,
    children: Children<K, Answer<VO>>,
    key: SharedSerde<K>,
    foreign: Rc<dyn TableView<KO, VO>>,
    topics: Topics,
}

impl<K: 'static, KO: 'static, VO: Clone + 'static> Downstream<Option<KO>, Message> for Join<K, KO, VO> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Option<KO>, Message>) -> ProcessResult {
        let message = record.value;
        if message.instruction == Instruction::DeleteKeyNoPropagate {
            return Ok(());
        }
        let row = RefCell::new(None);
        if let Some(foreign_key) = record.key {
            self.foreign.read(cx, foreign_key, &mut |found| {
                *row.borrow_mut() = found.map(|(value, time)| (value.clone(), time));
            })?;
        }
        let row = row.into_inner();
        if row.is_none() && message.instruction == Instruction::PropagateOnlyIfForeignValue {
            return Ok(());
        }
        let time_ms = row
            .as_ref()
            .map_or(record.timestamp_ms, |(_, time)| record.timestamp_ms.max(*time));
        let ends = message.instruction == Instruction::DeleteKeyAndPropagate;
        let answer = Answer {
            hash: message.hash,
            foreign_value: row.map(|(value, _)| value).filter(|_| !ends),
            primary_partition: message.primary_partition,
        };
        let key = cx.try_user(&self.name, || {
            let key = self
                .key
                .deserialize(&self.topics.primary_key, Some(&message.primary_key))?;
            Ok(key)
        })?;
        let Some(key) = key else { return Ok(()) };
        self.children
            .forward(cx, record.with_key(&key).with_value(&answer).with_timestamp(time_ms))
    }
}
