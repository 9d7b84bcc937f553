//! A topology by hand: copy, or count by key with a store.

use std::rc::Rc;
use std::sync::Arc;

use streams_state::StoreSpec;

use crate::error::ProcessResult;
use crate::processor::{
    AnyNode, Children, Downstream, NodeBuilder, OperatorTime, PunctuationType, RawRecord, SourceNode, TaskContext,
};
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

/// How often the bill comes, milliseconds.
pub(super) const BILL_MS: i64 = 3_600_000;

struct Ignore;

impl Downstream<Bytes, Bytes> for Ignore {
    fn process(&self, _: &mut TaskContext, _: Record<'_, Bytes, Bytes>) -> ProcessResult {
        Ok(())
    }
}

/// Sends a bill each hour of the wall clock, one for each task.
fn bill(builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    builder.on_init(|cx| {
        cx.schedule(PunctuationType::WallClockTime, BILL_MS, |cx, _, now_ms| {
            let partition = cx.task().partition;
            cx.emit_to("out", partition, now_ms, Some(b"bill"), Some(b"1"), [])
        });
        Ok(())
    });
    Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(Ignore)))
}

/// Sends on what is not older than what it has seen, by a clock of its own that travels with the commits.
struct InOrder(OperatorTime, Children<Bytes, Bytes>);

impl Downstream<Bytes, Bytes> for InOrder {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Bytes>) -> ProcessResult {
        if cx.observe(self.0, record.timestamp_ms) > record.timestamp_ms {
            return Ok(());
        }
        self.1.forward(cx, record)
    }
}

fn in_order(builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    let clock = builder.context().operator_time("in-order");
    let children = builder.children()?;
    Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(InOrder(clock, children))))
}

/// A count beside a copy of what comes in order of time.
pub(super) fn ordering() -> Topology {
    let mut topology = base();
    topology.add_processor("count", &["source"], Arc::new(count));
    topology.add_store(StoreDefinition {
        spec: StoreSpec::key_value("counts"),
        changelog: Some(ChangelogDefinition::of(&StoreSpec::key_value("counts"))),
        factory: Arc::new(CountStore),
        global: false,
    });
    topology.connect_store("count", "counts");
    topology.add_processor("in-order", &["source"], Arc::new(in_order));
    topology.add_sink(
        "sink",
        &["in-order"],
        SinkTopic::Static(SourceTopic::external("out")),
        Arc::new(sink),
    );
    topology
}

/// Sends each record a hundred times.
struct Burst(Children<Bytes, Bytes>);

impl Downstream<Bytes, Bytes> for Burst {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Bytes>) -> ProcessResult {
        (0..100).try_for_each(|_| self.0.forward(cx, record))
    }
}

fn burst(builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(Burst(builder.children()?))))
}

pub(super) fn bursting() -> Topology {
    let mut topology = base();
    topology.add_processor("burst", &["source"], Arc::new(burst));
    topology.add_sink(
        "sink",
        &["burst"],
        SinkTopic::Static(SourceTopic::external("out")),
        Arc::new(sink),
    );
    topology
}

struct Through;

impl Downstream<Bytes, Bytes> for Through {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Bytes>) -> ProcessResult {
        let partition = cx.task().partition;
        let (key, value) = (Some(&record.key[..]), Some(&record.value[..]));
        cx.emit_to("app-through", partition, record.timestamp_ms, key, value, [])
    }
}

fn through(_: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(Through)))
}

/// A copy through a repartition topic, `app-through`: two sub-topologies.
pub(super) fn copy_through() -> Topology {
    let internal = || SourceTopic::internal("through");
    let mut topology = base();
    topology.add_sink("to", &["source"], SinkTopic::Static(internal()), Arc::new(through));
    topology.repartition_topic("through", Some(2));
    topology.add_source("from", vec![internal()], AutoOffsetReset::Configured, Arc::new(source));
    topology.add_sink(
        "sink",
        &["from"],
        SinkTopic::Static(SourceTopic::external("out")),
        Arc::new(sink),
    );
    topology
}

/// A copy whose source has a reset policy of its own.
pub(super) fn copy_from(reset: AutoOffsetReset) -> Topology {
    let mut topology = Topology::new();
    topology.add_source("source", vec![SourceTopic::external("in")], reset, Arc::new(source));
    topology.add_sink(
        "sink",
        &["source"],
        SinkTopic::Static(SourceTopic::external("out")),
        Arc::new(sink),
    );
    topology
}

/// As `counting`, with an hourly bill of each task.
pub(super) fn billing() -> Topology {
    let mut topology = counting();
    topology.add_processor("bill", &["source"], Arc::new(bill));
    topology
}

/// User code that makes nothing of a failure.
struct Heedless(Rc<dyn Downstream<Bytes, Bytes>>);

impl Downstream<Bytes, Bytes> for Heedless {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Bytes, Bytes>) -> ProcessResult {
        let _ = self.0.process(cx, record);
        Ok(())
    }
}

/// As `counting`, by a processor that goes on when the store fails.
pub(super) fn heedless_counting() -> Topology {
    let mut topology = base();
    let heedless = |builder: &mut NodeBuilder<'_>| {
        let children = Rc::new(builder.children::<Bytes, Bytes>()?);
        let store: Rc<KeyValueStore<Bytes, i64>> = builder.store("counts")?;
        let count = Rc::new(Count { store, children });
        Ok(AnyNode::new::<Bytes, Bytes>(Rc::new(Heedless(count))))
    };
    topology.add_processor("count", &["source"], Arc::new(heedless));
    topology.add_store(StoreDefinition {
        spec: StoreSpec::key_value("counts"),
        changelog: Some(ChangelogDefinition::of(&StoreSpec::key_value("counts"))),
        factory: Arc::new(CountStore),
        global: false,
    });
    topology.connect_store("count", "counts");
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
