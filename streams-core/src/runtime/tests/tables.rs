//! A source topic that is its table's changelog: restored as it was processed (design rule 2.3).

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use streams_state::StoreSpec;

use super::World;
use crate::Record;
use crate::error::{Error, ProcessResult};
use crate::processor::{
    AnyNode, DeserializationHandler, Downstream, ErrorContext, ErrorHandlers, HandlerResponse, LogAndContinue,
    NodeBuilder, TaskContext, Timestamps, TypedSource,
};
use crate::serde::{DefaultSerde, SerdeError};
use crate::stores::{
    KeyValueLayout, KeyValueStore, ManagedStore, StoreBuilder, StoreFactory, StoreOptions, TypedStore,
    ValueAndTimestamp,
};
use crate::test_driver::LogRecord;
use crate::topology::{AutoOffsetReset, ChangelogDefinition, SourceTopic, StoreDefinition, Topology, TopologyError};
use crate::{Headers, TaskId, TopicPartition};

pub(super) struct TableStore;

impl StoreFactory for TableStore {
    fn build(&self, builder: StoreBuilder) -> Rc<dyn ManagedStore> {
        let options = StoreOptions {
            caching: false,
            timestamped: true,
        };
        Rc::new(TypedStore::new(
            builder,
            KeyValueLayout::new(String::shared()),
            i64::shared(),
            options,
        ))
    }
}

struct Put(Rc<KeyValueStore<String, i64>>);

impl Downstream<String, Option<i64>> for Put {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, String, Option<i64>>) -> ProcessResult {
        let timestamp_ms = record.timestamp_ms;
        let row = record.value.map(|value| ValueAndTimestamp { value, timestamp_ms });
        self.0
            .update(cx, record.key, record.with_value(&()), |_, _| Ok(Some(row)))?;
        Ok(())
    }
}

pub(super) fn put(builder: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
    Ok(AnyNode::new::<String, Option<i64>>(Rc::new(Put(
        builder.store("table")?
    ))))
}

/// `in` read as a table that is kept in no other topic.
fn table(timestamps: Timestamps<String, Option<i64>>) -> Topology {
    let mut topology = Topology::new();
    let source = TypedSource {
        key: String::shared(),
        value: Option::<i64>::shared(),
        timestamps,
    };
    topology.add_source(
        "source",
        vec![SourceTopic::external("in")],
        AutoOffsetReset::Configured,
        Arc::new(source),
    );
    topology.add_processor("table", &["source"], Arc::new(put));
    let spec = StoreSpec::key_value("table");
    topology.add_store(StoreDefinition {
        changelog: Some(ChangelogDefinition::of(&spec).in_source_topic("in")),
        spec,
        factory: Arc::new(TableStore),
        global: false,
    });
    topology.connect_store("table", "table");
    topology
}

fn feed(world: &mut World, rows: &[(&str, Option<&[u8]>, i64)]) {
    let log = world.broker.log_mut(&TopicPartition::new("in", 0)).unwrap();
    for (key, value, timestamp_ms) in rows {
        let record = LogRecord {
            offset: 0,
            timestamp_ms: *timestamp_ms,
            key: Some(key.as_bytes().to_vec()),
            value: value.map(<[u8]>::to_vec),
            headers: Headers::default(),
        };
        log.append(record, None);
    }
}

fn rows(world: &mut World) -> Vec<(Vec<u8>, Vec<u8>)> {
    let core = &mut world.process.as_mut().unwrap().core;
    let (_, cx) = core.task_parts(TaskId::new(0, 0)).unwrap();
    let store = cx.state_ref().store_id("table").unwrap();
    let rows = cx
        .state()
        .prefix(store, b"", streams_state::Direction::Forward)
        .unwrap();
    rows.map(|row| row.unwrap())
        .map(|(key, value)| (key.to_vec(), value.to_vec()))
        .collect()
}

const POISONED: [(&str, Option<&[u8]>, i64); 6] = [
    ("a", Some(&1_i64.to_be_bytes()), 10),
    ("b", Some(b"poison"), 11),
    ("c", Some(&3_i64.to_be_bytes()), 12),
    ("c", Some(b"more poison"), 13),
    ("d", Some(&4_i64.to_be_bytes()), 14),
    ("d", None, 15),
];

fn continuing() -> Arc<ErrorHandlers> {
    Arc::new(ErrorHandlers {
        deserialization: Arc::new(LogAndContinue),
        dead_letter_topic: Some("out".into()),
        ..ErrorHandlers::default()
    })
}

/// Lives once, is killed with its state, and lives again: what its table has before and after.
fn lives(world: &mut World) -> [Vec<(Vec<u8>, Vec<u8>)>; 2] {
    world.start();
    world.run_to_end();
    let before = rows(world);
    world.kill();
    world.start();
    world.run_to_end();
    [before, rows(world)]
}

#[test]
fn rule_2_3_rows_that_processing_let_pass_do_not_come_back_with_a_restore() {
    let mut world = World::new(table(Timestamps::FailOnInvalid), 0);
    world.handlers = continuing();
    feed(&mut world, &POISONED);
    let [before, after] = lives(&mut world);
    assert_eq!(before.len(), 2, "{before:?}");
    assert_eq!(after, before);
    // Processing sent each bad record to the dead letters; the restore sent none again.
    assert_eq!(world.all("out").len(), 2);
}

#[test]
fn rule_2_3_rows_without_a_usable_time_are_skipped_or_dated_as_processing_did() {
    for (timestamps, kept) in [(Timestamps::SkipInvalid, 2), (Timestamps::PartitionTimeOnInvalid, 3)] {
        let mut world = World::new(table(timestamps), 0);
        let value = 7_i64.to_be_bytes();
        feed(
            &mut world,
            &[
                ("x", Some(&value), -1),
                ("a", Some(&value), 10),
                ("b", Some(&value), -1),
                ("c", Some(&value), 5),
            ],
        );
        let [before, after] = lives(&mut world);
        assert_eq!(before.len(), kept, "{before:?}");
        assert_eq!(after, before);
    }
}

#[test]
fn rule_2_3_a_restore_stops_at_a_row_that_processing_would_stop_at_and_names_it() {
    let mut world = World::new(table(Timestamps::FailOnInvalid), 0);
    world.handlers = continuing();
    feed(&mut world, &POISONED);
    world.start();
    world.run_to_end();
    world.kill();
    world.handlers = Arc::default();
    world.start();
    let error = world.run(|_, _| false).unwrap_err();
    assert!(matches!(*error, Error::Deserialize { offset: 1, .. }), "{error}");
    assert!(error.to_string().contains("in-0"), "{error}");
}

/// Remembers what it was asked.
#[derive(Default)]
struct Asked(Mutex<Vec<(i64, Option<String>, Option<Vec<u8>>)>>);

impl DeserializationHandler for Asked {
    fn handle(&self, context: &ErrorContext, what: &'static str, _: &SerdeError) -> HandlerResponse {
        assert_eq!(what, "value");
        let asked = (context.offset, context.node.clone(), context.source_value.clone());
        self.0.lock().unwrap().push(asked);
        crate::processor::Decision::Resume.into()
    }
}

#[test]
fn rule_2_3_the_handler_is_asked_the_same_by_a_restore_as_by_processing() {
    let asked = Arc::new(Asked::default());
    let mut world = World::new(table(Timestamps::FailOnInvalid), 0);
    world.handlers = Arc::new(ErrorHandlers {
        deserialization: Arc::clone(&asked) as Arc<dyn DeserializationHandler>,
        ..ErrorHandlers::default()
    });
    feed(&mut world, &POISONED);
    lives(&mut world);
    let asked = asked.0.lock().unwrap();
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[..2], asked[2..]);
}
