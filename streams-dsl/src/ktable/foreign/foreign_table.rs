//! The right side, where foreign rows change: every subscriber is told.
//!
//! Java counterpart: `ForeignTableJoinProcessorSupplier`.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::codec::{combined_key_prefix, split_combined_key};
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::{BoxError, Change, ProcessResult, Record};

use super::wire::{Answer, Message};
use super::{Subscriptions, Topics};

/// The node's factory.
pub(super) fn tell<K: 'static, KO: 'static, VO: Clone + 'static>(
    store: &str,
    topic: &Arc<str>,
    key: &SharedSerde<K>,
    foreign_key: &SharedSerde<KO>,
) -> Arc<dyn NodeFactory> {
    let (store, topic) = (store.to_owned(), Arc::clone(topic));
    let (key, foreign_key) = (Arc::clone(key), Arc::clone(foreign_key));
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let tell = Tell {
            name: builder.name(),
            children: builder.children::<K, Answer<VO>>()?,
            store: builder.store::<Subscriptions>(&store)?,
            key: Arc::clone(&key),
            foreign_key: Arc::clone(&foreign_key),
            topics: Topics::of(builder, &topic),
        };
        Ok(AnyNode::new::<KO, Change<VO>>(Rc::new(tell)))
    })
}

struct Tell<K, KO, VO> {
    name: Arc<str>,
    children: Children<K, Answer<VO>>,
    store: Rc<Subscriptions>,
    key: SharedSerde<K>,
    foreign_key: SharedSerde<KO>,
    topics: Topics,
}

impl<K: 'static, KO: 'static, VO: Clone> Tell<K, KO, VO> {
    fn prefix(&self, foreign_key: &KO) -> Result<Vec<u8>, BoxError> {
        let mut bytes = Vec::new();
        self.foreign_key
            .serialize(&self.topics.foreign_key, foreign_key, &mut bytes)?;
        Ok(combined_key_prefix(&bytes)?)
    }

    /// A subscriber's key, and what it is told.
    fn answer(&self, key: &[u8], row: &[u8], value: Option<&VO>) -> Result<(K, Answer<VO>), BoxError> {
        let (_, primary_key) = split_combined_key(key)?;
        let key = self.key.deserialize(&self.topics.primary_key, Some(primary_key))?;
        let message = Message::decode(row)?;
        let answer = Answer {
            hash: message.hash,
            foreign_value: value.cloned(),
            primary_partition: message.primary_partition,
        };
        Ok((key, answer))
    }
}

impl<K: 'static, KO: 'static, VO: Clone + 'static> Downstream<KO, Change<VO>> for Tell<K, KO, VO> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, KO, Change<VO>>) -> ProcessResult {
        let change = record.value;
        if self.foreign_key.is_null(record.key) || !change.is_latest {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        if change.new.is_none() && change.old.is_none() {
            // Nobody was told of a row, so nobody needs to hear that there is none. (Java repeats its tombstones here.)
            return Ok(());
        }
        let Some(prefix) = cx.try_user(&self.name, || self.prefix(record.key))? else {
            return Ok(());
        };
        let subscribers = self.store.prefix_scan(cx, &prefix)?;
        for subscriber in subscribers {
            let (key, row) = subscriber?;
            let told = cx.try_user(&self.name, || self.answer(&key, &row.value, change.new.as_ref()))?;
            if let Some((key, answer)) = told {
                self.children.forward(cx, record.with_key(&key).with_value(&answer))?;
            }
        }
        Ok(())
    }
}
