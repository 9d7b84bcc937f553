//! A topology by hand: copy, or count by key with a store.

use std::rc::Rc;
use std::sync::Arc;

use streams_state::StoreSpec;

use crate::error::ProcessResult;
use crate::processor::{AnyNode, Children, Downstream, NodeBuilder, RawRecord, SourceNode, TaskContext};
use crate::serde::{DefaultSerde, SharedSerde};
use crate::stores::{
    FlushListener, KeyValueLayout, KeyValueStore, ManagedStore, StoreBuilder, StoreFactory, StoreOptions, TypedStore,
    Update, ValueAndTimestamp,
};
use crate::topology::{
    AutoOffsetReset, ChangelogDefinition, SinkTopic, SourceTopic, StoreDefinition, Topology, TopologyError,
};
use crate::{Change, Record};

type Bytes = Vec<u8>;

struct Source(Children<Bytes, Bytes>);

impl SourceNode for Source {
    fn timestamp(&self, _: &mut TaskContext, raw: RawRecord<'_>, _: i64) -> ProcessResult<Option<i64>> {
        Ok(Some(raw.record.timestamp_ms))
    }

    fn process(&self, cx: &mut TaskContext, raw: RawRecord<'_>) -> ProcessResult {
        let (key, value) = (raw.record.key.unwrap().to_vec(), raw.record.value.unwrap().to_vec());
        let timestamp_ms = cx.record_context().timestamp_ms;
        self.0.forward(cx, Record::new(&key, &value, timestamp_ms))
    }
}

struct Sink;

impl Downstream<Bytes, Bytes> for Sink {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Bytes>) -> ProcessResult {
        let partition = cx.task().partition;
        cx.emit_to(
            "out",
            partition,
            record.timestamp_ms,
            Some(record.key),
            Some(record.value),
            [],
        )
    }
}

struct Count {
    store: Rc<KeyValueStore<Bytes, i64>>,
    children: Rc<Children<Bytes, Bytes>>,
}

struct Forward(Rc<Children<Bytes, Bytes>>);

fn emit(
    children: &Children<Bytes, Bytes>,
    cx: &mut TaskContext,
    record: Record<'_, Bytes, Change<i64>>,
) -> ProcessResult {
    let text = record.value.new.unwrap_or_default().to_string().into_bytes();
    children.forward(cx, record.with_value(&text))
}

impl FlushListener<Bytes, i64> for Forward {
    fn flushed(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Change<i64>>) -> ProcessResult {
        emit(&self.0, cx, record)
    }
}

impl Downstream<Bytes, Bytes> for Count {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Bytes>) -> ProcessResult {
        let timestamp_ms = record.timestamp_ms;
        let update = self.store.update(cx, record.key, record, |cx, before| {
            let before = before.map_or(0, |before: ValueAndTimestamp<i64>| before.value);
            let text = String::from_utf8_lossy(record.value).into_owned();
            let added = cx.call_user("count", || {
                assert!(!text.contains("boom"), "told to fail");
                1
            })?;
            Ok(added.map(|added| {
                Some(ValueAndTimestamp {
                    value: before + added,
                    timestamp_ms,
                })
            }))
        })?;
        if let Update::Changed(change, _) = update {
            emit(&self.children, cx, record.with_value(&change))?;
        }
        Ok(())
    }
}

struct CountStore;

impl StoreFactory for CountStore {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let key: SharedSerde<Bytes> = Bytes::shared();
        Rc::new(TypedStore::new(
            builder,
            KeyValueLayout::new(key),
            i64::shared(),
            StoreOptions {
                caching: true,
                timestamped: true,
            },
        ))
    }
}

fn source(builder: &mut NodeBuilder<'_>) -> Result<Rc<dyn SourceNode>, TopologyError> {
    Ok(Rc::new(Source(builder.children()?)))
}

fn sink(_: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(Sink)))
}

fn count(builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    let children = Rc::new(builder.children::<Bytes, Bytes>()?);
    let store: Rc<KeyValueStore<Bytes, i64>> = builder.store("counts")?;
    store.set_listener(Rc::new(Forward(Rc::clone(&children))), false);
    Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(Count { store, children })))
}

fn base() -> Topology {
    let mut topology = Topology::new();
    topology.add_source(
        "source",
        vec![SourceTopic::external("in")],
        AutoOffsetReset::Configured,
        Arc::new(source),
    );
    topology
}

pub(super) fn copy() -> Topology {
    let mut topology = base();
    topology.add_sink(
        "sink",
        &["source"],
        SinkTopic::Static(SourceTopic::external("out")),
        Arc::new(sink),
    );
    topology
}

pub(super) fn counting() -> Topology {
    let mut topology = base();
    topology.add_processor("count", &["source"], Arc::new(count));
    topology.add_store(StoreDefinition {
        spec: StoreSpec::key_value("counts"),
        changelog: Some(ChangelogDefinition::of(&StoreSpec::key_value("counts"))),
        factory: Arc::new(CountStore),
        global: false,
    });
    topology.connect_store("count", "counts");
    topology.add_sink(
        "sink",
        &["count"],
        SinkTopic::Static(SourceTopic::external("out")),
        Arc::new(sink),
    );
    topology
}
