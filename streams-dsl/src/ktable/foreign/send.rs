//! The left side: each change of a row becomes a subscription to its foreign key, or the end of one.
//!
//! Java counterpart: `SubscriptionSendProcessorSupplier`.

use std::rc::Rc;
use std::sync::Arc;

use streams_core::codec::Instruction;
use streams_core::murmur3::hash128;
use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::SharedSerde;
use streams_core::{BoxError, Change, ProcessResult, Record};

use super::Topics;
use super::wire::Message;

/// Finds a row's foreign key; `None` = it has none.
pub(super) type Extract<K, V, KO> = dyn Fn(&K, &V) -> Option<KO> + Send + Sync;

/// What the node is made from.
pub(super) struct SendFactory<K, V, KO> {
    pub(super) key: SharedSerde<K>,
    pub(super) value: SharedSerde<V>,
    pub(super) foreign_key: SharedSerde<KO>,
    pub(super) extract: Arc<Extract<K, V, KO>>,
    pub(super) left_join: bool,
    /// The registration topic.
    pub(super) topic: Arc<str>,
}

impl<K: 'static, V: 'static, KO: 'static> NodeFactory for SendFactory<K, V, KO> {
    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<AnyNode, streams_core::topology::TopologyError> {
        let topics = Topics::of(builder, &self.topic);
        Ok(AnyNode::new::<K, Change<V>>(Rc::new(Sender {
            name: builder.name(),
            children: builder.children::<Option<KO>, Message>()?,
            key: Arc::clone(&self.key),
            value: Arc::clone(&self.value),
            foreign_key: Arc::clone(&self.foreign_key),
            extract: Arc::clone(&self.extract),
            left_join: self.left_join,
            topics,
        })))
    }
}

struct Sender<K, V, KO> {
    name: Arc<str>,
    children: Children<Option<KO>, Message>,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    foreign_key: SharedSerde<KO>,
    extract: Arc<Extract<K, V, KO>>,
    left_join: bool,
    topics: Topics,
}

/// The messages of one change, in their order.
type Messages<KO> = [Option<(Option<KO>, Instruction)>; 2];

impl<K: 'static, V: 'static, KO: 'static> Sender<K, V, KO> {
    fn foreign_key(&self, key: &K, row: Option<&V>) -> Option<KO> {
        (self.extract)(key, row?).filter(|foreign_key| !self.foreign_key.is_null(foreign_key))
    }

    /// Foreign keys are equal by their bytes, as rows of a store are.
    fn differ(&self, old: &KO, new: Option<&KO>) -> Result<bool, BoxError> {
        let Some(new) = new else { return Ok(true) };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.foreign_key.serialize(&self.topics.foreign_key, old, &mut first)?;
        self.foreign_key.serialize(&self.topics.foreign_key, new, &mut second)?;
        Ok(first != second)
    }

    /// For a left join every change is answered, also one to a row without a foreign key, so that a result comes of it.
    fn left_join(&self, key: &K, change: &Change<V>) -> Result<Messages<KO>, BoxError> {
        let old = self.foreign_key(key, change.old.as_ref());
        let new = self.foreign_key(key, change.new.as_ref());
        let end = match old {
            Some(old) if self.differ(&old, new.as_ref())? => Some((Some(old), Instruction::DeleteKeyNoPropagate)),
            _ => None,
        };
        Ok([end, Some((new, Instruction::PropagateNullIfNoForeignValue))])
    }

    /// For an inner join there is an answer where there is a result, or one to be deleted.
    fn inner_join(&self, key: &K, change: &Change<V>) -> Result<Messages<KO>, BoxError> {
        let old = self.foreign_key(key, change.old.as_ref());
        let new = self.foreign_key(key, change.new.as_ref());
        Ok(match (old, new) {
            (None, None) => [None, None],
            (Some(old), None) => [Some((Some(old), Instruction::DeleteKeyAndPropagate)), None],
            (None, Some(new)) => [Some((Some(new), Instruction::PropagateOnlyIfForeignValue)), None],
            (Some(old), Some(new)) if self.differ(&old, Some(&new))? => [
                Some((Some(old), Instruction::DeleteKeyNoPropagate)),
                Some((Some(new), Instruction::PropagateNullIfNoForeignValue)),
            ],
            (Some(_), Some(new)) => [Some((Some(new), Instruction::PropagateOnlyIfForeignValue)), None],
        })
    }

    /// The messages, the row's serialized key and the hash of its new value.
    #[allow(clippy::type_complexity, reason = "one private answer")]
    fn messages(
        &self,
        record: Record<'_, K, Change<V>>,
    ) -> Result<(Messages<KO>, Vec<u8>, Option<[u8; 16]>), BoxError> {
        let messages = match self.left_join {
            true => self.left_join(record.key, record.value)?,
            false => self.inner_join(record.key, record.value)?,
        };
        let mut primary_key = Vec::new();
        self.key
            .serialize(&self.topics.primary_key, record.key, &mut primary_key)?;
        let mut value = Vec::new();
        let present = match &record.value.new {
            Some(new) => self.value.serialize(&self.topics.value_hash, new, &mut value)?,
            None => false,
        };
        Ok((messages, primary_key, present.then(|| hash128(&value))))
    }
}

impl<K: 'static, V: 'static, KO: 'static> Downstream<K, Change<V>> for Sender<K, V, KO> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        let change = record.value;
        if !change.is_latest {
            // An update of a versioned table that is older than its newest version (KIP-914).
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        if change.new.is_none() && change.old.is_none() {
            return Ok(());
        }
        let Some((messages, primary_key, hash)) = cx.try_user(&self.name, || self.messages(record))? else {
            return Ok(());
        };
        let subscribes = messages
            .iter()
            .flatten()
            .any(|(_, instruction)| *instruction != Instruction::DeleteKeyAndPropagate);
        if !self.left_join && change.new.is_some() && !subscribes {
            // The new row has no foreign key: it has no result.
            cx.counters.dropped_records += 1;
        }
        let mut message = Message {
            hash,
            instruction: Instruction::DeleteKeyNoPropagate,
            primary_key,
            primary_partition: Some(cx.task().partition),
        };
        for (foreign_key, instruction) in messages.into_iter().flatten() {
            message.instruction = instruction;
            self.children
                .forward(cx, record.with_key(&foreign_key).with_value(&message))?;
        }
        Ok(())
    }
}
