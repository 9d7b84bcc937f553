//! Global stores after a restart: rows and positions together, and no row that was deleted meanwhile (design rules 2.4 and
//! 5.6).

use std::sync::Arc;

use streams_state::{ChangelogFacts, Cleanup, Direction, MemoryDisk, StoreSpec};

use super::World;
use super::tables::{TableStore, put};
use crate::error::{Error, ProcessResult};
use crate::fetch::{FetchError, FetchErrorKind, Fetched, PartitionId};
use crate::processor::{Timestamps, TypedSource};
use crate::runtime::{GlobalCore, GlobalState};
use crate::serde::DefaultSerde;
use crate::test_driver::{LogRecord, batch_of};
use crate::topology::{StoreDefinition, Topology};
use crate::{Headers, TopicPartition};

const HOUR_MS: i64 = 3_600_000;

fn topology() -> Topology {
    let mut topology = Topology::new();
    let source = TypedSource {
        key: String::shared(),
        value: Option::<i64>::shared(),
        timestamps: Timestamps::FailOnInvalid,
    };
    let store = StoreDefinition {
        spec: StoreSpec::key_value("table"),
        changelog: None,
        factory: Arc::new(TableStore),
        global: true,
    };
    topology.add_global_store(store, "prices", ("source", Arc::new(source)), ("put", Arc::new(put)));
    topology
}

fn world() -> World {
    let mut world = World::new(topology(), 0);
    world.disk = Some(MemoryDisk::default());
    world.broker.create_topic("prices", 1);
    write(&mut world, &[("a", Some(1)), ("b", Some(2))]);
    world
}

fn at() -> TopicPartition {
    TopicPartition::new("prices", 0)
}

fn write(world: &mut World, rows: &[(&str, Option<i64>)]) {
    let log = world.broker.log_mut(&at()).unwrap();
    for (key, value) in rows {
        let record = LogRecord {
            offset: 0,
            timestamp_ms: 5,
            key: Some(key.as_bytes().to_vec()),
            value: value.map(|value| value.to_be_bytes().to_vec()),
            headers: Headers::default(),
        };
        log.append(record, None);
    }
}

fn facts(world: &World, topic_id: u8) -> ChangelogFacts {
    let log = world.broker.log(&at()).unwrap();
    ChangelogFacts {
        topic_id: Some([topic_id; 16]),
        log_start: log.log_start(),
        high_watermark: log.high_watermark(),
        cleanup: Cleanup::Compact,
        delete_retention_ms: 24 * HOUR_MS,
        source_topic_committed: None,
    }
}

/// A start of the global task at this time, up to the end of its topic; answers its rows.
fn start(world: &World, topic_id: u8, now_ms: i64) -> ProcessResult<Vec<(Vec<u8>, i64)>> {
    let parts = world.parts();
    let facts = facts(world, topic_id);
    let mut state = GlobalState::open(&parts)?.unwrap();
    state.compare(&parts.plan, &[(at(), facts)], now_ms)?;
    let logs = [(at(), facts.log_start, facts.high_watermark)];
    let mut core = GlobalCore::new(&parts, state, &logs, now_ms)?;
    let from = core.assignments()[0].start_offset;
    let (records, next) = world.broker.log(&at()).unwrap().read_committed(from, usize::MAX);
    let eof = Fetched::Eof {
        partition: PartitionId(0),
        incarnation: 0,
        offset: next,
    };
    core.apply(
        &mut vec![Fetched::Records(batch_of(PartitionId(0), 0, &records)), eof],
        now_ms,
    )?;
    assert!(core.is_restored());
    drop(core);
    let mut state = GlobalState::open(&parts)?.unwrap();
    let id = state.state.store_id("table").unwrap();
    let rows = state.state.prefix(id, b"", Direction::Forward).unwrap();
    let row = |(key, value): (Vec<u8>, Vec<u8>)| (key, i64::from_be_bytes(value[8..].try_into().unwrap()));
    Ok(rows
        .map(|row| row.unwrap())
        .map(|(key, value)| row((key.to_vec(), value.to_vec())))
        .collect())
}

fn rows(rows: &[(&str, i64)]) -> Vec<(Vec<u8>, i64)> {
    rows.iter()
        .map(|(key, value)| (key.as_bytes().to_vec(), *value))
        .collect()
}

#[test]
fn rule_5_6_a_restart_goes_on_behind_what_was_applied() {
    let mut world = world();
    assert_eq!(start(&world, 1, 0).unwrap(), rows(&[("a", 1), ("b", 2)]));
    write(&mut world, &[("a", None), ("c", Some(3))]);
    assert_eq!(start(&world, 1, HOUR_MS).unwrap(), rows(&[("b", 2), ("c", 3)]));
}

#[test]
fn rule_2_4b_a_row_deleted_while_the_instance_was_away_for_long_does_not_stay() {
    for (away_ms, restored) in [(11 * HOUR_MS, false), (72 * HOUR_MS, true)] {
        let mut world = world();
        start(&world, 1, 0).unwrap();
        write(&mut world, &[("a", None), ("c", Some(3))]);
        // The broker's cleaner keeps deletions for a day.
        let log = world.broker.log_mut(&at()).unwrap();
        log.compact(i64::MAX, !restored);
        assert_eq!(
            start(&world, 1, away_ms).unwrap(),
            rows(&[("b", 2), ("c", 3)]),
            "{away_ms}"
        );
        // And from then on it is young again.
        write(&mut world, &[("d", Some(4))]);
        let found = start(&world, 1, away_ms + HOUR_MS).unwrap();
        assert_eq!(found, rows(&[("b", 2), ("c", 3), ("d", 4)]), "{away_ms}");
    }
}

#[test]
fn rule_2_4b_a_global_store_that_has_seen_everything_stays_however_old() {
    let world = world();
    start(&world, 1, 0).unwrap();
    // Nothing may be read again: the log is as good as empty.
    let mut world = world;
    world.broker.log_mut(&at()).unwrap().compact(i64::MAX, false);
    assert_eq!(start(&world, 1, 1_000 * HOUR_MS).unwrap(), rows(&[("a", 1), ("b", 2)]));
}

#[test]
fn rule_2_4c_a_global_topic_that_was_made_anew_stops() {
    let world = world();
    start(&world, 1, 0).unwrap();
    let error = start(&world, 2, HOUR_MS).unwrap_err();
    assert!(matches!(*error, Error::TaskCorrupted { .. }), "{error}");
    assert!(
        error.to_string().contains("prices was deleted and made again"),
        "{error}"
    );
}

#[test]
fn a_global_topic_that_can_not_be_read_any_more_stops_the_instance() {
    for kind in [
        FetchErrorKind::OutOfRange { offset: 7 },
        FetchErrorKind::UnknownTopic,
        FetchErrorKind::TopicAuthorization,
    ] {
        let world = world();
        let parts = world.parts();
        let state = GlobalState::open(&parts).unwrap().unwrap();
        let mut core = GlobalCore::new(&parts, state, &[(at(), 0, 2)], 0).unwrap();
        let error = Fetched::Error(FetchError {
            partition: Some((PartitionId(0), 0)),
            kind,
            message: "told to fail".to_owned(),
        });
        let text = core.apply(&mut vec![error], 0).unwrap_err().to_string();
        assert!(text.contains("global table") && text.contains("told to fail"), "{text}");
    }
}
