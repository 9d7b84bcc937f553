//! What a run must have led to: the outputs and changelogs of a run without faults, and stores that are their changelogs.

use std::collections::BTreeMap;
use std::ops::Bound;

use streams_core::codec::BufferedValue;
use streams_core::error::ProcessResult;
use streams_core::fetch::PartitionId;
use streams_core::restore::{BufferedRows, replay_all};
use streams_core::runtime::ChangelogRestore;
use streams_core::test_driver::{Log, LogRecord, batch_of};
use streams_core::{Error, TaskId, TopicPartition};
use streams_state::{
    Cleanup, Direction, KeyValueStore as _, StateError, StoreKind, StoreMetadata, StoreSpec, TaskState,
};

use super::scenario::{Compare, InputRecord, Scenario};
use super::world::World;

mod inexact;

type Bytes = Option<Vec<u8>>;

/// What a run has written, by topic.
#[derive(Debug, Default)]
pub(super) struct Written {
    outputs: BTreeMap<String, Vec<(i32, LogRecord)>>,
    /// The last value of each key.
    changelogs: BTreeMap<String, BTreeMap<Bytes, Bytes>>,
}

impl Written {
    pub(super) fn of(world: &World<'_>) -> Self {
        let scenario = world.scenario;
        let outputs = scenario
            .outputs
            .iter()
            .map(|topic| (topic.to_string(), world.broker.read_committed(topic)));
        let changelogs = changelogs(scenario).map(|(_, store, topic)| {
            let mut latest = latest(&history(world, &topic));
            latest
                .values_mut()
                .flatten()
                .for_each(|value| without_offset(scenario, value));
            let numbered = scenario
                .topology
                .store(&store)
                .is_some_and(|store| is_numbered(&store.spec));
            (topic, if numbered { without_numbers(latest) } else { latest })
        });
        Written {
            outputs: outputs.collect(),
            changelogs: changelogs.collect(),
        }
    }

    /// How many records the outputs have.
    pub(super) fn records(&self) -> usize {
        self.outputs.values().map(Vec::len).sum()
    }

    /// The first difference of the outputs from what a model of the application says.
    pub(super) fn differs_from_model(
        &self,
        model: &[InputRecord],
        scenario: &Scenario,
        compare: impl Fn(&str) -> Compare,
    ) -> Option<String> {
        let mut topics: BTreeMap<&str, Vec<(i32, LogRecord)>> = BTreeMap::new();
        for record in model {
            let count = scenario.topics.partitions(&record.topic).unwrap_or(1);
            let key = record.key.as_deref();
            let partition = key.map_or(0, |key| streams_core::murmur2::partition_for_key(key, count));
            let log_record = LogRecord {
                offset: 0,
                timestamp_ms: record.timestamp_ms,
                key: record.key.clone(),
                value: record.value.clone(),
                headers: streams_core::Headers::default(),
            };
            topics.entry(&record.topic).or_default().push((partition, log_record));
        }
        topics.into_iter().find_map(|(topic, records)| {
            differ(self.of_topic(topic), &records, compare(topic))
                .map(|what| format!("{topic} (compared by {:?}): {what}", compare(topic)))
        })
    }

    /// The first difference from what was expected; `compare` says how each topic is compared.
    pub(super) fn difference(&self, expected: &Written, compare: impl Fn(&str) -> Compare) -> Option<String> {
        for (topic, records) in &expected.outputs {
            let (found, compare) = (self.of_topic(topic), compare(topic));
            if let Some(what) = differ(found, records, compare) {
                return Some(format!("{topic} (compared by {compare:?}): {what}"));
            }
        }
        self.changelogs_differ(expected)
    }

    fn of_topic(&self, topic: &str) -> &[(i32, LogRecord)] {
        self.outputs.get(topic).map(Vec::as_slice).unwrap_or_default()
    }

    fn changelogs_differ(&self, expected: &Written) -> Option<String> {
        for (topic, expected) in &expected.changelogs {
            let empty = BTreeMap::new();
            let found = self.changelogs.get(topic).unwrap_or(&empty);
            if let Some(what) = first_difference(&shown(found), &shown(expected)) {
                return Some(format!("{topic}: {what}"));
            }
        }
        None
    }
}

fn changelogs(scenario: &Scenario) -> impl Iterator<Item = (u32, String, String)> {
    let each = scenario.changelogs.iter();
    each.map(|changelog| (changelog.subtopology, changelog.store.clone(), changelog.topic.clone()))
}

/// All committed records of a topic, also those that retention took.
fn history(world: &World<'_>, topic: &str) -> Vec<(i32, LogRecord)> {
    let partitions = 0..world.broker.partitions(topic).unwrap_or(0);
    let each = partitions.filter_map(|partition| {
        let log = world.broker.log(&TopicPartition::new(topic, partition))?;
        let records = log.with_history().read_committed(0, usize::MAX).0;
        Some(records.into_iter().map(move |record| (partition, record)))
    });
    each.flatten().collect()
}

/// The last value of each key; deleted keys are left out.
fn latest(records: &[(i32, LogRecord)]) -> BTreeMap<Bytes, Bytes> {
    let all: BTreeMap<Bytes, Bytes> = records
        .iter()
        .map(|(_, record)| (record.key.clone(), record.value.clone()))
        .collect();
    all.into_iter().filter(|(_, value)| value.is_some()).collect()
}

/// Whether keys end with a number that tells equal ones apart. Which number a row gets depends on what was in the store
/// when the task started.
fn is_numbered(spec: &StoreSpec) -> bool {
    let with_duplicates = matches!(
        spec.kind,
        StoreKind::Window {
            retain_duplicates: true,
            ..
        }
    );
    // What waits for the grace of a join with a versioned table.
    with_duplicates || spec.name.ends_with("-Buffer")
}

/// What waits in a buffer has the offset of its input record, which depends on the transactions of the input's producers.
fn without_offset(scenario: &Scenario, value: &mut [u8]) {
    let buffered = BufferedValue::decode_grace(value);
    if buffered.is_ok_and(|buffered| scenario.sources.contains(buffered.context.topic.as_str())) {
        value.iter_mut().skip(8).take(8).for_each(|byte| *byte = 0);
    }
}

/// Rows whose keys differ by their number alone become one, with all their values in order.
fn without_numbers(rows: BTreeMap<Bytes, Bytes>) -> BTreeMap<Bytes, Bytes> {
    let mut all: BTreeMap<Bytes, Vec<Vec<u8>>> = BTreeMap::new();
    for (key, value) in rows {
        let key = key.map(|mut key| {
            key.truncate(key.len().saturating_sub(4));
            key
        });
        all.entry(key).or_default().extend(value);
    }
    let joined = all.into_iter().map(|(key, mut values)| {
        values.sort_unstable();
        (key, Some(values.join(&b", "[..])))
    });
    joined.collect()
}

fn shown(rows: &BTreeMap<Bytes, Bytes>) -> BTreeMap<String, String> {
    rows.iter()
        .map(|(key, value)| (text(key.as_deref()), text(value.as_deref())))
        .collect()
}

fn differ(found: &[(i32, LogRecord)], expected: &[(i32, LogRecord)], compare: Compare) -> Option<String> {
    let by_key = |records: &[(i32, LogRecord)], times: bool| {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (partition, record) in records {
            let key = format!("{}/{partition}", text(record.key.as_deref()));
            let value = text(record.value.as_deref());
            let value = if times {
                format!("{value} at {}", record.timestamp_ms)
            } else {
                value
            };
            keys.entry(key).or_default().push(value);
        }
        keys
    };
    match compare {
        Compare::Exact => first_difference(&lists(by_key(found, true)), &lists(by_key(expected, true))),
        Compare::Values => first_difference(&lists(by_key(found, false)), &lists(by_key(expected, false))),
        Compare::AnyOrder => {
            let sorted = |records| {
                let mut keys = by_key(records, true);
                keys.values_mut().for_each(|values| values.sort_unstable());
                lists(keys)
            };
            first_difference(&sorted(found), &sorted(expected))
        }
        Compare::Latest => first_difference(&shown(&latest(found)), &shown(&latest(expected))),
    }
}

fn lists(keys: BTreeMap<String, Vec<String>>) -> BTreeMap<String, String> {
    keys.into_iter().map(|(key, values)| (key, values.join(", "))).collect()
}

fn first_difference(found: &BTreeMap<String, String>, expected: &BTreeMap<String, String>) -> Option<String> {
    for (key, value) in expected {
        match found.get(key) {
            None => return Some(format!("{key} is missing, it should have: {value}")),
            Some(found) if found != value => return Some(format!("{key} has: {found}\n  and should have: {value}")),
            Some(_) => {}
        }
    }
    let more = found.iter().find(|(key, _)| !expected.contains_key(*key));
    more.map(|(key, value)| format!("{key} has: {value}\n  and should not be there"))
}

/// Bytes as text where they are, else as a number or in hexadecimal.
pub(super) fn text(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "null".to_owned() };
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(|c| !c.is_control()) => text.to_owned(),
        _ => match <[u8; 8]>::try_from(bytes) {
            Ok(number) => i64::from_be_bytes(number).to_string(),
            Err(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        },
    }
}

/// Compares the stores of every running task with what a replay of their changelogs gives.
pub(super) fn stores_differ(world: &mut World<'_>) -> Option<String> {
    let logged: Vec<(u32, String, String)> = changelogs(world.scenario).collect();
    let mut machines = std::mem::take(&mut world.instances);
    let mut difference = None;
    for thread in machines
        .iter_mut()
        .flat_map(|machine| machine.threads.iter_mut().flatten())
    {
        let tasks: Vec<TaskId> = thread.core.status().tasks.iter().map(|task| task.id).collect();
        for task in tasks {
            let Some((_, cx)) = thread.core.task_parts(task) else {
                continue;
            };
            for (_, store, topic) in logged.iter().filter(|(sub, _, _)| *sub == task.subtopology) {
                let topic_partition = TopicPartition::new(topic.as_str(), task.partition);
                let found = store_differs(cx.state(), store, &topic_partition, world);
                difference = difference.or(found.map(|what| format!("store {store} of task {task}: {what}")));
            }
        }
    }
    world.instances = machines;
    difference
}

/// A store is what its changelog holds. Where retention trimmed the changelog by time, rows of windows that are over may
/// still be there, as they were when the store saw them last.
fn store_differs(
    state: &mut TaskState,
    store: &str,
    topic_partition: &TopicPartition,
    world: &World<'_>,
) -> Option<String> {
    let log = world.broker.log(topic_partition)?;
    compare_store(state, store, topic_partition, log, world).unwrap_or_else(|error| Some(error.to_string()))
}

fn compare_store(
    state: &mut TaskState,
    store: &str,
    topic_partition: &TopicPartition,
    log: &Log,
    world: &World<'_>,
) -> ProcessResult<Option<String>> {
    let found = rows(state, store)?;
    let mut expected = rows(&mut replayed(state, store, topic_partition, log, world)?, store)?;
    let dead = dead_buckets(state, store, world);
    expected.retain(|key, _| found.contains_key(key) || bucket_of(key).is_none_or(|bucket| bucket >= dead));
    let changelogs = &world.scenario.changelogs;
    let changelog = changelogs
        .iter()
        .find(|changelog| *changelog.topic == *topic_partition.topic);
    if log.log_start() == 0 || changelog.is_some_and(|changelog| changelog.cleanup == Cleanup::Compact) {
        return Ok(first_difference(&found, &expected));
    }
    let whole = rows(
        &mut replayed(state, store, topic_partition, &log.with_history(), world)?,
        store,
    )?;
    let known = found
        .iter()
        .filter(|(key, _)| expected.contains_key(*key) || !whole.contains_key(*key));
    let known = known.map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(first_difference(&known, &expected))
}

/// The first bucket that a store of windows or sessions must still have: rows die by event time, and nothing of that is
/// in the changelog. 0 = it must have all.
fn dead_buckets(state: &TaskState, store: &str, world: &World<'_>) -> u64 {
    let spec = state.specs().find(|(_, spec)| spec.name == store);
    let Some((
        StoreKind::Window {
            retention_ms,
            segment_interval_ms,
            ..
        }
        | StoreKind::Session {
            retention_ms,
            segment_interval_ms,
        },
        Some(newest_ms),
    )) = spec.map(|(_, spec)| (spec.kind, world.newest_ms()))
    else {
        return 0;
    };
    let live_from_ms = newest_ms.saturating_sub(retention_ms).max(0);
    u64::try_from(live_from_ms / segment_interval_ms.max(1)).unwrap_or(0)
}

/// The bucket in front of a row's key, as it is shown.
fn bucket_of(key: &str) -> Option<u64> {
    u64::from_str_radix(key.get(..16)?, 16).ok()
}

/// A fresh store with all that a changelog holds.
fn replayed(
    state: &TaskState,
    store: &str,
    topic_partition: &TopicPartition,
    log: &Log,
    world: &World<'_>,
) -> ProcessResult<TaskState> {
    let specs: Vec<StoreSpec> = state.specs().map(|(_, spec)| spec.clone()).collect();
    let factory = world.scenario.topology.store(store).map(|store| &store.factory);
    let timestamped = factory.is_none_or(|factory| factory.is_timestamped());
    let buffers = factory.is_some_and(|factory| factory.is_suppress_buffer());
    let mut fresh = TaskState::in_memory("replayed", specs).map_err(of_store)?;
    let Some(id) = fresh.store_id(store) else {
        return Ok(fresh);
    };
    let changelog = ChangelogRestore {
        store: id,
        name: store.to_owned(),
        topic_partition: topic_partition.clone(),
        from: log.log_start(),
        to: log.high_watermark(),
        exact_end: false,
        from_zero: true,
        resumed: false,
        timestamped,
        rows: None,
        buffered: buffers.then(|| BufferedRows::new(TaskId::new(0, topic_partition.partition))),
        metadata: StoreMetadata {
            changelog_topic_id: None,
            position: 0,
            own_commit: false,
            applied_at_ms: 0,
        },
        meanwhile_ms: 0,
    };
    replay_all(&mut fresh, &changelog, |from| {
        let (records, next) = log.read_committed(from, 1_000);
        (batch_of(PartitionId(0), 0, &records), next)
    })?;
    Ok(fresh)
}

fn of_store(source: StateError) -> Box<Error> {
    Box::new(Error::State {
        task: "replayed".to_owned(),
        source,
    })
}

fn rows(state: &mut TaskState, store: &str) -> ProcessResult<BTreeMap<String, String>> {
    let Some(id) = state.store_id(store) else {
        return Ok(BTreeMap::new());
    };
    let mut rows = BTreeMap::new();
    let mut view = state.view(id).map_err(of_store)?;
    let all = view.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward);
    let mut all = all.map_err(of_store)?;
    while let Some((key, value)) = all.next().transpose().map_err(of_store)? {
        rows.insert(text(Some(&key)), text(Some(&value)));
    }
    Ok(rows)
}
