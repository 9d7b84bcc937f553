//! The sink node: writes keys and values, finds topic and partition.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::node::{AnyNode, Downstream, NodeBuilder, NodeFactory};
use super::{Decision, OutputTopic, RecordContext, TaskContext};
use crate::Record;
use crate::error::{Error, ProcessResult};
use crate::metrics::meters::{Direction, NodeMeter, TopicMeter, header_bytes};
use crate::murmur2::partition_for_key;
use crate::outbox::ANY_PARTITION;
use crate::serde::{Format, SerdeError, SharedSerde};
use crate::topology::{SourceTopic, TopologyError};

/// Which partitions a record goes to. Java: the `Optional<Set<Integer>>` of `StreamPartitioner.partitions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// By murmur2 of the key's bytes, as without a partitioner.
    Default,
    /// This one.
    One(i32),
    /// One copy to each of these; an empty list drops the record, counted.
    Each(Vec<i32>),
}

/// Chooses partitions: `(topic, key, value, partition count of the topic)`.
pub type SinkPartitioner<K, V> = Arc<dyn Fn(&str, &K, &V, i32) -> Partitions + Send + Sync>;

type TopicChooser<K, V> = dyn Fn(&K, &V, &RecordContext) -> String + Send + Sync;

/// Where a sink writes.
pub enum SinkTarget<K, V> {
    /// One topic.
    Fixed(SourceTopic),
    /// Chosen for each record; the context is the source record's, with the event time and headers of this one.
    Chosen(Arc<TopicChooser<K, V>>),
}

impl<K, V> Clone for SinkTarget<K, V> {
    fn clone(&self) -> Self {
        match self {
            SinkTarget::Fixed(topic) => SinkTarget::Fixed(topic.clone()),
            SinkTarget::Chosen(chooser) => SinkTarget::Chosen(Arc::clone(chooser)),
        }
    }
}

/// Makes sink nodes of keys `K` and values `V`.
pub struct TypedSink<K, V> {
    /// The topic.
    pub target: SinkTarget<K, V>,
    /// Writes the keys.
    pub key: SharedSerde<K>,
    /// Writes the values.
    pub value: SharedSerde<V>,
    /// Chooses partitions; `None` = by murmur2 of the key, a null key by the client.
    pub partitioner: Option<SinkPartitioner<K, V>>,
}

impl<K: 'static, V: 'static> NodeFactory for TypedSink<K, V> {
    fn written(&self) -> Option<(Format, Format)> {
        Some((Format::of(&*self.key), Format::of(&*self.value)))
    }

    fn build(&self, builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
        let name = builder.name();
        let topics = Arc::clone(builder.context().topics());
        let target = match &self.target {
            SinkTarget::Chosen(chooser) => Target::Chosen(Arc::clone(chooser)),
            SinkTarget::Fixed(topic) => {
                let full: Arc<str> = if topic.internal {
                    topics.internal(&topic.name).into()
                } else {
                    Arc::clone(&topic.name)
                };
                let partitions = topics.partitions(&full);
                let output = builder.context().output_topic(&full);
                Target::Fixed(full, output, partitions)
            }
        };
        let meters = &builder.context().meters;
        let meter = meters.node(&name);
        let written = match &target {
            Target::Fixed(topic, ..) => Some(meters.topic(&name, topic, Direction::Produced)),
            Target::Chosen(_) => None,
        };
        let (key, value) = (Arc::clone(&self.key), Arc::clone(&self.value));
        let partitioner = self.partitioner.clone();
        Ok(AnyNode::new(Rc::new(Sink {
            name,
            target,
            key,
            value,
            partitioner,
            buffers: RefCell::default(),
            meter,
            written,
        })))
    }
}

enum Target<K, V> {
    /// The full name, its number in the outbox and, where it is known, the partition count.
    Fixed(Arc<str>, OutputTopic, Option<i32>),
    Chosen(Arc<TopicChooser<K, V>>),
}

#[derive(Default)]
struct Buffers {
    key: Vec<u8>,
    value: Vec<u8>,
}

struct Sink<K, V> {
    name: Arc<str>,
    target: Target<K, V>,
    key: SharedSerde<K>,
    value: SharedSerde<V>,
    partitioner: Option<SinkPartitioner<K, V>>,
    buffers: RefCell<Buffers>,
    meter: Rc<NodeMeter>,
    /// What is written to the one topic; a chosen one is looked up.
    written: Option<Rc<TopicMeter>>,
}

impl<K: 'static, V: 'static> Downstream<K, V> for Sink<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match &self.target {
            Target::Fixed(topic, output, partitions) => self.write(cx, (topic, *output), *partitions, record),
            Target::Chosen(chooser) => {
                let mut context = cx.record_context().without_raw();
                context.timestamp_ms = record.timestamp_ms;
                context.headers = record.headers.clone();
                let topic = cx.call_user(&self.name, || chooser(record.key, record.value, &context))?;
                let Some(topic) = topic else { return Ok(()) };
                let partitions = cx.partitions(&topic);
                let output = cx.output_topic(&topic);
                self.write(cx, (&topic, output), partitions, record)
            }
        }
    }
}

impl<K: 'static, V: 'static> Sink<K, V> {
    fn write(
        &self,
        cx: &mut TaskContext,
        topic: (&str, OutputTopic),
        count: Option<i32>,
        record: Record<'_, K, V>,
    ) -> ProcessResult {
        let mut buffers = self.buffers.take();
        let result = self.write_with(cx, topic, count, record, &mut buffers);
        *self.buffers.borrow_mut() = buffers;
        result
    }

    fn write_with(
        &self,
        cx: &mut TaskContext,
        (topic, output): (&str, OutputTopic),
        count: Option<i32>,
        record: Record<'_, K, V>,
        buffers: &mut Buffers,
    ) -> ProcessResult {
        buffers.key.clear();
        buffers.value.clear();
        let key = match self.key.serialize(topic, record.key, &mut buffers.key) {
            Ok(present) => present.then_some(&*buffers.key),
            Err(error) => return self.unwritable(cx, topic, "key", error),
        };
        let value = match self.value.serialize(topic, record.value, &mut buffers.value) {
            Ok(present) => present.then_some(&*buffers.value),
            Err(error) => return self.unwritable(cx, topic, "value", error),
        };
        let by_key = match (key, count) {
            (Some(key), Some(count)) => partition_for_key(self.key.partition_bytes(key), count),
            _ => ANY_PARTITION,
        };
        let chosen = match (&self.partitioner, count) {
            (Some(partitioner), Some(count)) => {
                match cx.call_user(&self.name, || partitioner(topic, record.key, record.value, count))? {
                    Some(chosen) => chosen,
                    None => return Ok(()),
                }
            }
            _ => Partitions::Default,
        };
        let headers = || {
            record
                .headers
                .iter()
                .map(|header| (&*header.key, header.value.as_deref()))
        };
        let payload = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + header_bytes(record.headers);
        let copies = match &chosen {
            Partitions::Default | Partitions::One(_) => 1,
            Partitions::Each(partitions) => partitions.len() as u64,
        };
        self.count(cx, topic, copies, payload, record.timestamp_ms);
        match chosen {
            Partitions::Default => cx.emit_on(output, by_key, record.timestamp_ms, key, value, headers()),
            Partitions::One(partition) => cx.emit_on(output, partition, record.timestamp_ms, key, value, headers()),
            Partitions::Each(partitions) if partitions.is_empty() => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
            Partitions::Each(partitions) => partitions
                .into_iter()
                .try_for_each(|partition| cx.emit_on(output, partition, record.timestamp_ms, key, value, headers())),
        }
    }

    fn count(&self, cx: &TaskContext, topic: &str, copies: u64, payload: usize, timestamp_ms: i64) {
        if copies == 0 {
            return;
        }
        match &self.written {
            Some(meter) => meter.count(copies, payload),
            None => cx
                .meters
                .topic(&self.name, topic, Direction::Produced)
                .count(copies, payload),
        }
        // A record of the future has no latency.
        self.meter
            .e2e_ms
            .note(u64::try_from(cx.now_ms - timestamp_ms).unwrap_or(0));
    }

    #[cold]
    fn unwritable(&self, cx: &mut TaskContext, topic: &str, what: &'static str, source: SerdeError) -> ProcessResult {
        let handlers = Arc::clone(cx.handlers());
        let response = handlers
            .production
            .handle_serialization(&cx.error_context(Some(&self.name)), topic, &source);
        cx.send_dead_letters(&response, "SerializationException", &source.to_string())?;
        match response.decision {
            Decision::Resume => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
            Decision::Fail => {
                let (node, topic) = (self.name.to_string(), topic.to_owned());
                Err(Box::new(Error::Serialize {
                    what,
                    node,
                    task: cx.task(),
                    topic,
                    source,
                }))
            }
        }
    }
}
