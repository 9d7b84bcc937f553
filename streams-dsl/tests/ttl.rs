//! Rows that die, on the test driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use streams_core::TopicPartition;
use streams_core::fetch::{PartitionBatch, PartitionId};
use streams_core::restore::replay_all;
use streams_core::runtime::ChangelogRestore;
use streams_core::test_driver::LogRecord;
use streams_dsl::{
    BoxError, Connect, DriverOptions, Headers, Processor, ProcessorContext, Record, SECOND, Stores, StreamsBuilder,
    TopologyTestDriver,
};
use streams_state::{Direction, StoreMetadata, StoreSpec, TaskState};

/// Keeps what it gets (a negative value: as long as that says, in seconds) and forwards how many rows live.
struct Keep;

impl Processor<String, i64, String, i64> for Keep {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let rows = cx.ttl_store::<String, i64>("rows")?;
        match *record.value {
            0 => rows.put(cx, record.key, None, record)?,
            1.. => rows.put(cx, record.key, Some(record.value), record)?,
            seconds => {
                let dies_at_ms = record.timestamp_ms - seconds * 1_000;
                rows.put_until(cx, record.key, Some(record.value), dies_at_ms, record)?
            }
        };
        let living = rows.range(cx, None, None, Direction::Forward)?.count();
        Ok(cx.forward(record.with_value(&i64::try_from(living)?))?)
    }
}

fn driver() -> TopologyTestDriver {
    let builder = StreamsBuilder::new();
    builder.add_state_store(Stores::ttl::<String, i64>("rows", 10 * SECOND));
    let stream = builder.stream::<String, i64>("in");
    stream.process_with(|| Keep, Connect::stores(["rows"])).to("out");
    TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap()
}

fn pipe(driver: &mut TopologyTestDriver, key: &str, value: i64, seconds: i64) -> i64 {
    let value = value.to_be_bytes();
    driver
        .pipe(
            "in",
            Some(key.as_bytes()),
            Some(&value),
            seconds * 1_000,
            Headers::empty(),
        )
        .unwrap();
    let told = driver.read_record("out").unwrap();
    i64::from_be_bytes(told.value.unwrap().try_into().unwrap())
}

fn log(driver: &TopologyTestDriver) -> Vec<LogRecord> {
    driver.read_all("app-rows-changelog")
}

#[test]
fn rows_die_by_stream_time_and_leave_a_tombstone_in_the_changelog() {
    let mut driver = driver();
    assert_eq!(pipe(&mut driver, "a", 1, 0), 1);
    assert_eq!(pipe(&mut driver, "b", 1, 5), 2);
    assert_eq!(pipe(&mut driver, "a", 2, 9), 2, "lives anew");
    assert_eq!(pipe(&mut driver, "c", 1, 15), 2, "b is dead");
    let tombstones: Vec<_> = log(&driver)
        .into_iter()
        .filter(|record| record.value.is_none())
        .collect();
    assert_eq!(tombstones.len(), 1);
    assert_eq!(
        (tombstones[0].key.as_deref(), tombstones[0].timestamp_ms),
        (Some(&b"b"[..]), 15_000)
    );
    assert_eq!(pipe(&mut driver, "c", 0, 16), 1);
    assert_eq!(pipe(&mut driver, "d", 1, 60), 1);
    let tombstones = log(&driver).into_iter().filter(|record| record.value.is_none()).count();
    assert_eq!(tombstones, 3, "b, the deleted c, and a");
}

#[test]
fn a_row_with_an_end_of_its_own_says_so_in_a_header_and_others_do_not() {
    let mut driver = driver();
    pipe(&mut driver, "short", -2, 0);
    pipe(&mut driver, "usual", 7, 0);
    let log = log(&driver);
    let dies_at = log[0]
        .headers
        .last("dies-at")
        .unwrap()
        .value
        .as_deref()
        .map(<[u8]>::to_vec);
    assert_eq!(dies_at, Some(2_000_i64.to_be_bytes().to_vec()));
    assert!(log[1].headers.is_empty());
    assert_eq!(
        log[1].value.as_deref(),
        Some(&7_i64.to_be_bytes()[..]),
        "the plain value"
    );
    assert_eq!(pipe(&mut driver, "other", 1, 2), 2, "the short one is dead");
}

#[test]
fn the_changelog_gives_the_ends_back() {
    let mut driver = driver();
    pipe(&mut driver, "short", -2, 0);
    pipe(&mut driver, "usual", 7, 1);
    let log = log(&driver);
    let mut state = TaskState::in_memory("0_0", vec![StoreSpec::expiring("rows", 10_000)]).unwrap();
    let store = state.store_id("rows").unwrap();
    let changelog = ChangelogRestore {
        store,
        name: "rows".to_owned(),
        topic_partition: TopicPartition::new("app-rows-changelog", 0),
        from: 0,
        to: 2,
        exact_end: false,
        from_zero: false,
        resumed: false,
        timestamped: true,
        rows: None,
        buffered: None,
        metadata: StoreMetadata {
            changelog_topic_id: None,
            position: 0,
            own_commit: false,
            applied_at_ms: 0,
        },
        meanwhile_ms: 0,
    };
    let replayed = replay_all(&mut state, &changelog, |_| {
        let mut batch = PartitionBatch::new(PartitionId(0), 0);
        for (offset, record) in (0_i64..).zip(&log) {
            let headers = record
                .headers
                .iter()
                .map(|header| (&*header.key, header.value.as_deref()));
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            assert!(batch.push(offset, record.timestamp_ms, -1, key, value, headers));
        }
        (batch, 2)
    });
    assert_eq!(replayed.unwrap().rows, 2);
    let mut rows = state.expiring(store).unwrap();
    let mut dead = |now_ms| rows.dead(now_ms).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(dead(2_000), [Box::from(&b"short"[..])]);
    assert_eq!(dead(11_000).len(), 2);
    let mut time = 0;
    rows.get(b"usual", &mut |row| {
        time = i64::from_be_bytes(row.unwrap().0[..8].try_into().unwrap())
    })
    .unwrap();
    assert_eq!(time, 1_000, "with the record's time");
}
