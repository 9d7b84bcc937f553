//! An application in the test's own process: topics, state, start and stop, and what came out.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use streams_dsl::{KafkaStreams, State, StreamsBuilder, StreamsConfig};
use streams_testkit::{Isolation, Kafka, NewRecord, Record, wait_until};
use tempfile::TempDir;

use crate::{broker, unique};

/// The longest wait for anything; a busy machine is slow.
pub const LIMIT: Duration = Duration::from_secs(90);

/// A record as a case writes it: key, value (`None` = null), event time in milliseconds.
pub type Row<'a> = (&'a str, Option<&'a str>, i64);

type Topology = Box<dyn Fn(&StreamsBuilder, &Names) + Send + Sync>;

/// The topics of an application, by the short names that a case uses.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// The topic's name on the broker.
    ///
    /// # Panics
    /// When the case has no such topic.
    #[must_use]
    pub fn of(&self, short: &str) -> &str {
        self.0
            .get(short)
            .unwrap_or_else(|| panic!("the case has no topic {short}"))
    }
}

/// An application with its topics on a broker. Its settings are the cases' defaults: exactly-once, commits every 100 ms,
/// no cache.
pub struct Local {
    kafka: &'static Kafka,
    /// `application.id`.
    pub id: String,
    names: Names,
    properties: BTreeMap<String, String>,
    topology: Topology,
    /// The state of the first instance; each further one has a directory of its own.
    pub state: TempDir,
}

impl Local {
    /// An application on the shared broker, with topics (short name, partitions).
    ///
    /// # Panics
    /// When a topic can't be made.
    #[must_use]
    pub fn new(
        case: &str,
        topics: &[(&str, i32)],
        topology: impl Fn(&StreamsBuilder, &Names) + Send + Sync + 'static,
    ) -> Self {
        let local = Self::without_topics(case, topology);
        topics.iter().fold(local, |mut local, (short, partitions)| {
            local.topic(short, *partitions, &[]);
            local
        })
    }

    /// As [`new`](Self::new), for topics that come later or have configs.
    ///
    /// # Panics
    /// When there is no folder for its state.
    #[must_use]
    pub fn without_topics(case: &str, topology: impl Fn(&StreamsBuilder, &Names) + Send + Sync + 'static) -> Self {
        Self::on(broker(), case, topology)
    }

    /// As [`without_topics`](Self::without_topics), on another broker than the shared one.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn on(
        kafka: &'static Kafka,
        case: &str,
        topology: impl Fn(&StreamsBuilder, &Names) + Send + Sync + 'static,
    ) -> Self {
        let settings = [
            ("processing.guarantee", "exactly_once_v2"),
            ("auto.offset.reset", "earliest"),
            ("commit.interval.ms", "100"),
            ("statestore.cache.max.bytes", "0"),
        ];
        Local {
            kafka,
            id: unique(case),
            names: Names::default(),
            properties: settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            topology: Box::new(topology),
            state: TempDir::new().unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// Makes a topic of a unique name under a short one.
    ///
    /// # Panics
    /// When it can't be made.
    pub fn topic(&mut self, short: &str, partitions: i32, configs: &[(&str, &str)]) {
        let name = self.name_topic(short);
        ok(self.kafka.create_topic(&name, partitions, configs));
    }

    /// Gives a topic its name without making it.
    pub fn name_topic(&mut self, short: &str) -> String {
        let name = format!("{}.{short}", self.id);
        self.names.0.insert(short.to_owned(), name.clone());
        name
    }

    /// Another setting.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.properties.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The broker.
    #[must_use]
    pub fn kafka(&self) -> &'static Kafka {
        self.kafka
    }

    /// The topic's name on the broker.
    #[must_use]
    pub fn name(&self, short: &str) -> &str {
        self.names.of(short)
    }

    /// The changelog topic of a store.
    #[must_use]
    pub fn changelog(&self, store: &str) -> String {
        format!("{}-{store}-changelog", self.id)
    }

    /// An instance that is not started.
    ///
    /// # Panics
    /// When the topology or the settings are refused.
    #[must_use]
    pub fn instance_at(&self, state: &Path) -> KafkaStreams {
        let builder = StreamsBuilder::new();
        (self.topology)(&builder, &self.names);
        let mut properties = self.properties.clone();
        properties.insert("application.id".to_owned(), self.id.clone());
        properties.insert("bootstrap.servers".to_owned(), self.kafka.bootstrap().to_owned());
        properties.insert("state.dir".to_owned(), state.display().to_string());
        let config = ok(StreamsConfig::from_properties(properties));
        ok(KafkaStreams::new(ok(builder.build()), config))
    }

    /// Starts an instance on the first state directory.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(&self) -> KafkaStreams {
        let streams = self.instance_at(self.state.path());
        ok(streams.start());
        streams
    }

    /// Starts an instance and waits until its tasks run.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn start_running(&self) -> KafkaStreams {
        let streams = self.start();
        wait_running(&streams);
        streams
    }

    /// Forgets the local state.
    ///
    /// # Panics
    /// When it can't be removed.
    pub fn wipe(&self) {
        ok(std::fs::remove_dir_all(self.state.path().join(&self.id)));
    }

    /// Writes rows to partition 0 of a topic.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn produce(&self, short: &str, rows: &[Row<'_>]) {
        self.produce_to(short, 0, rows);
    }

    /// Writes rows to a partition of a topic.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn produce_to(&self, short: &str, partition: i32, rows: &[Row<'_>]) {
        let records = rows.iter().map(|row| record(row).partition(partition));
        ok(self.kafka.produce(self.name(short), records));
    }

    /// Waits until the group has committed this offset of partition 0 of a topic.
    ///
    /// # Panics
    /// When that takes too long, or the instance fails meanwhile.
    pub fn wait_committed(&self, streams: &KafkaStreams, short: &str, offset: i64) {
        self.wait_committed_of(streams, short, 0, offset);
    }

    /// As [`wait_committed`](Self::wait_committed), for any partition.
    ///
    /// # Panics
    /// As there.
    pub fn wait_committed_of(&self, streams: &KafkaStreams, short: &str, partition: i32, offset: i64) {
        let topic = self.name(short);
        ok(wait_until(
            &format!("offset {offset} of {short}-{partition}"),
            LIMIT,
            || {
                assert!(
                    !streams.state().is_final(),
                    "{}: {:?}",
                    streams.state(),
                    streams.error()
                );
                let committed = self.kafka.topics().committed_offsets(&self.id, topic)?;
                Ok(committed.get(&partition).is_some_and(|committed| *committed >= offset))
            },
        ));
    }

    /// Waits until everything in a topic is committed, markers at its end included.
    ///
    /// # Panics
    /// As [`wait_committed`](Self::wait_committed).
    pub fn wait_lag_0(&self, streams: &KafkaStreams, short: &str) {
        for (partition, end) in ok(self.kafka.topics().end_offsets(self.name(short))) {
            if end > 0 {
                self.wait_committed_of(streams, short, partition, end);
            }
        }
    }

    /// All committed records of a topic.
    ///
    /// # Panics
    /// When it can't be read.
    #[must_use]
    pub fn records(&self, short: &str) -> Vec<Record> {
        ok(self.kafka.collect(self.name(short)))
    }

    /// All records of a topic, also those of open and aborted transactions.
    ///
    /// # Panics
    /// When it can't be read.
    #[must_use]
    pub fn uncommitted(&self, short: &str) -> Vec<Record> {
        let collector = self.kafka.collector().isolation(Isolation::ReadUncommitted);
        ok(collector.collect(self.name(short)))
    }

    /// The committed rows of a topic whose values are texts: key, value, time.
    ///
    /// # Panics
    /// When it can't be read.
    #[must_use]
    pub fn rows(&self, short: &str) -> Vec<(String, String, i64)> {
        let row = |record: &Record| (record.key_text(), record.value_text(), record.timestamp);
        self.records(short).iter().map(row).collect()
    }

    /// The committed rows of a topic whose values are counts (i64): key, count as text, time.
    ///
    /// # Panics
    /// When it can't be read, or a value is no count.
    #[must_use]
    pub fn counts(&self, short: &str) -> Vec<(String, String, i64)> {
        let row = |record: &Record| (record.key_text(), count_text(record.value.as_deref()), record.timestamp);
        self.records(short).iter().map(row).collect()
    }

    /// The live rows of a store of counts, by its changelog.
    ///
    /// # Panics
    /// When it can't be read, or a value is no count.
    #[must_use]
    pub fn stored_counts(&self, store: &str) -> BTreeMap<String, String> {
        let mut live = BTreeMap::new();
        for record in ok(self.kafka.collect(&self.changelog(store))) {
            match &record.value {
                Some(value) => live.insert(record.key_text(), count_text(Some(value))),
                None => live.remove(&record.key_text()),
            };
        }
        live
    }
}

/// A row as a record.
#[must_use]
pub fn record((key, value, time): &Row<'_>) -> NewRecord {
    let record = match value {
        Some(value) => NewRecord::new(*key, *value),
        None => NewRecord::tombstone(*key),
    };
    record.at(*time)
}

/// A count (i64, big-endian) as text; `null` for null.
///
/// # Panics
/// When the value is no count.
#[must_use]
pub fn count_text(value: Option<&[u8]>) -> String {
    value.map_or_else(
        || "null".to_owned(),
        |value| {
            let bytes = <[u8; 8]>::try_from(value).unwrap_or_else(|_| panic!("{value:?} is no count"));
            i64::from_be_bytes(bytes).to_string()
        },
    )
}

/// Expected rows, in the shape of [`Local::rows`].
#[must_use]
pub fn expected(rows: &[(&str, &str, i64)]) -> Vec<(String, String, i64)> {
    let owned = |row: &(&str, &str, i64)| (row.0.to_owned(), row.1.to_owned(), row.2);
    rows.iter().map(owned).collect()
}

/// Waits until an instance runs all its tasks.
///
/// # Panics
/// When it does not in time.
pub fn wait_running(streams: &KafkaStreams) {
    let came = streams.wait_for(LIMIT, |state| state == State::Running || state.is_final());
    assert!(
        came && streams.state() == State::Running,
        "{}: {:?}",
        streams.state(),
        streams.error()
    );
}

/// Closes an instance in an orderly way.
///
/// # Panics
/// When it does not close in time, or ends in error.
pub fn stop(streams: &KafkaStreams) {
    assert!(streams.close(LIMIT), "not closed in time");
    assert_eq!(streams.state(), State::NotRunning, "{:?}", streams.error());
}

/// Waits for an instance's end in error; answers the error's text.
///
/// # Panics
/// When it goes on.
#[must_use]
pub fn wait_error(streams: &KafkaStreams) -> String {
    assert!(
        streams.wait_for(LIMIT, |state| state == State::Error),
        "it is {}",
        streams.state()
    );
    streams.error().map(|error| error.to_string()).unwrap_or_default()
}

/// The changelog records that an instance has applied so far.
#[must_use]
pub fn restored(streams: &KafkaStreams) -> u64 {
    let statuses = streams.threads().into_iter().filter_map(|thread| thread.status);
    statuses.map(|status| status.totals.restored_records).sum()
}

fn ok<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
