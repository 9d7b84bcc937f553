//! The test driver: one instance, one thread, a broker in memory, a clock moved by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::broker::MemoryBroker;
use super::log::LogRecord;
use super::restart::ProcessSeed;
use super::shell::MemoryShell;
use crate::error::{Error, ProcessResult};
use crate::fetch::{Fetched, PartitionBatch};
use crate::murmur2::partition_for_key;
use crate::processor::ErrorHandlers;
use crate::runtime::{GlobalCore, GlobalState, RuntimeSettings, StreamThreadCore};
use crate::topics::Topics;
use crate::topology::{InternalTopicDefaults, Topology, TopologyPlan};
use crate::{Headers, TopicPartition};

/// How a driver runs a topology. The defaults are those of Java's driver in these cases: no record cache, the clock at 0,
/// one partition a topic.
#[derive(Clone)]
pub struct DriverOptions {
    /// `application.id`.
    pub application_id: String,
    /// The settings of the stream thread.
    pub settings: RuntimeSettings,
    /// The handlers.
    pub handlers: Arc<ErrorHandlers>,
    /// Partition counts of source and sink topics that have more than one, and of topics that the topology does not name:
    /// those that `to_dynamic` chooses and those that fit a pattern have to stand here.
    pub partitions: BTreeMap<String, i32>,
    /// The clock at the start, milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Whether everything is committed after each record, as Java's driver does.
    pub commit_each: bool,
}

impl Default for DriverOptions {
    fn default() -> Self {
        DriverOptions {
            application_id: "app".to_owned(),
            settings: RuntimeSettings {
                cache_bytes: 0,
                ..RuntimeSettings::default()
            },
            handlers: Arc::default(),
            partitions: BTreeMap::new(),
            now_ms: 0,
            commit_each: true,
        }
    }
}

/// Runs a topology without a broker: the core that runs in production, fed record by record.
///
/// Typed records go in by [`TestInput`](super::TestInput) and come out by [`TestOutput`](super::TestOutput); the methods
/// here that take bytes are for tests of what can't be read. Stores are looked at by
/// [`key_value`](Self::key_value), [`key_values`](Self::key_values) and [`window_value`](Self::window_value). Nothing
/// happens by itself: the wall clock stands still until it is moved, stream time moves with the records.
///
/// Topics that the topology reads or writes exist from the start, with one partition unless
/// [`DriverOptions::partitions`] says otherwise. After each record everything is committed
/// ([`DriverOptions::commit_each`]), and a failure of user code comes back from the call that piped the record in.
///
/// Java counterpart: `TopologyTestDriver`.
pub struct TopologyTestDriver {
    pub(super) core: StreamThreadCore,
    pub(super) global: Option<GlobalCore>,
    pub(super) shell: MemoryShell,
    broker: MemoryBroker,
    pub(super) process: ProcessSeed,
    pub(super) now_ms: i64,
    commit_each: bool,
    read: BTreeMap<(String, i32), i64>,
}

impl TopologyTestDriver {
    /// A driver with all topics made and all tasks running.
    ///
    /// # Errors
    /// When the topology can't be run.
    pub fn new(topology: &Topology, options: DriverOptions) -> ProcessResult<Self> {
        let topology = topology.with_topics(options.partitions.keys().map(String::as_str));
        let plan = Arc::new(
            topology
                .plan(&options.application_id, &InternalTopicDefaults::default())
                .map_err(Error::from)?,
        );
        let mut broker = MemoryBroker::default();
        let topics = Arc::new(make_topics(&plan, &options, &mut broker)?);
        let mut process = ProcessSeed {
            application_id: options.application_id.clone(),
            settings: options.settings,
            topology: Arc::new(topology),
            plan: Arc::clone(&plan),
            topics: Arc::clone(&topics),
            handlers: options.handlers,
            globals: Arc::default(),
            tasks: Vec::new(),
        };
        let global_state = GlobalState::open(&process.parts())?;
        if let Some(state) = &global_state {
            process.globals = Arc::new(state.readers(&plan));
        }
        let logs = plan
            .global
            .iter()
            .map(|global| (TopicPartition::new(&*global.topic, 0), 0, 0))
            .collect::<Vec<_>>();
        let global = global_state
            .map(|state| GlobalCore::new(&process.parts(), state, &logs, options.now_ms))
            .transpose()?;
        let tasks = plan.resolve(|topic| topics.partitions(topic)).map_err(Error::from)?;
        process.tasks = tasks.task_ids().collect();
        let (core, shell) = process.start(options.now_ms);
        let mut driver = TopologyTestDriver {
            core,
            global,
            shell,
            broker,
            process,
            now_ms: options.now_ms,
            commit_each: options.commit_each,
            read: BTreeMap::new(),
        };
        driver.run_until_idle()?;
        Ok(driver)
    }

    /// Pipes one record in as bytes and processes everything that follows from it. `timestamp_ms` is event time.
    ///
    /// # Errors
    /// When the topology fails; the driver is then as a dead thread.
    pub fn pipe(
        &mut self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp_ms: i64,
        headers: &Headers,
    ) -> ProcessResult {
        self.append(topic, key, value, timestamp_ms, headers)?;
        self.run_until_idle()
    }

    /// Pipes many records in at once: keys, values and event times. All of them lie in the topic before the first is
    /// processed, so tasks with several inputs choose among them by event time. Much faster than one by one.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_all<'r>(
        &mut self,
        topic: &str,
        records: impl IntoIterator<Item = (Option<&'r [u8]>, Option<&'r [u8]>, i64)>,
    ) -> ProcessResult {
        for (key, value, timestamp_ms) in records {
            self.append(topic, key, value, timestamp_ms, Headers::empty())?;
        }
        self.run_until_idle()
    }

    /// Writes one record to a topic; those of global tables are applied at once.
    fn append(
        &mut self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp_ms: i64,
        headers: &Headers,
    ) -> ProcessResult {
        let count = self.broker.partitions(topic).ok_or_else(|| self.no_topic(topic))?;
        let partition = key.map_or(0, |key| partition_for_key(key, count));
        let record = LogRecord {
            offset: 0,
            timestamp_ms,
            key: key.map(<[u8]>::to_vec),
            value: value.map(<[u8]>::to_vec),
            headers: headers.clone(),
        };
        let topic_partition = TopicPartition::new(topic, partition);
        let log = self
            .broker
            .log_mut(&topic_partition)
            .ok_or_else(|| Error::bug("a topic without its partition"))?;
        let offset = log.append(record.clone(), None);
        if let Some(global) = &mut self.global {
            let id = global
                .assignments()
                .iter()
                .find(|a| a.topic_partition == topic_partition)
                .map(|a| a.id);
            if let Some(id) = id {
                let mut batch = PartitionBatch::new(id, 0);
                let headers = record
                    .headers
                    .iter()
                    .map(|header| (&*header.key, header.value.as_deref()));
                if !batch.push(offset, timestamp_ms, -1, key, value, headers) {
                    return Err(Error::bug("a record does not fit into a batch"));
                }
                global.apply(&mut vec![Fetched::Records(batch)], self.now_ms)?;
            }
        }
        Ok(())
    }

    /// Ends the application as a graceful stop does: commits what is left, closes the tasks and tells processors
    /// ([`close`](crate::processor::Processor::close)). A driver that is only dropped is as a process that was killed.
    /// Java: `close`.
    ///
    /// # Errors
    /// When the commit fails.
    pub fn close(mut self) -> ProcessResult {
        let left = crate::runtime::GroupIdentity {
            member_id: "driver".to_owned(),
            member_epoch: 2,
        };
        self.core.on_assigned(left, []);
        self.run_until_idle()
    }

    /// Moves the wall clock on and runs what is due: punctuations by wall-clock time, and the commit by
    /// `commit.interval.ms`. Stream time does not move. Java: `advanceWallClockTime`.
    ///
    /// # Errors
    /// When the topology fails.
    pub fn advance_wall_clock_time(&mut self, by: Duration) -> ProcessResult {
        self.advance_wall_clock_ms(i64::try_from(by.as_millis()).unwrap_or(i64::MAX))
    }

    /// As [`advance_wall_clock_time`](Self::advance_wall_clock_time), in milliseconds.
    ///
    /// # Errors
    /// When the topology fails.
    pub fn advance_wall_clock_ms(&mut self, by_ms: i64) -> ProcessResult {
        self.now_ms = self.now_ms.saturating_add(by_ms);
        self.run_until_idle()
    }

    /// The wall clock, milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The next committed record of a topic that was not read yet, partition by partition, as bytes; `None` too when
    /// there is no such topic. [`TestOutput`](super::TestOutput) reads types.
    pub fn read_record(&mut self, topic: &str) -> Option<LogRecord> {
        self.read_next(topic).map(|(_, record)| record)
    }

    /// The same, with its partition.
    pub(super) fn read_next(&mut self, topic: &str) -> Option<(i32, LogRecord)> {
        let count = self.broker.partitions(topic)?;
        for partition in 0..count {
            let position = self.read.entry((topic.to_owned(), partition)).or_default();
            let (mut records, next) = self
                .broker
                .log(&TopicPartition::new(topic, partition))?
                .read_committed(*position, 1);
            *position = next;
            if let Some(record) = records.pop() {
                return Some((partition, record));
            }
        }
        None
    }

    /// How many committed records of a topic were not read yet.
    pub(super) fn unread(&self, topic: &str) -> usize {
        let partitions = 0..self.broker.partitions(topic).unwrap_or(0);
        let count = |partition| {
            let position = self.read.get(&(topic.to_owned(), partition)).copied().unwrap_or(0);
            let log = self.broker.log(&TopicPartition::new(topic, partition));
            log.map_or(0, |log| log.read_committed(position, usize::MAX).0.len())
        };
        partitions.map(count).sum()
    }

    /// Every committed record of a topic, from the beginning.
    #[must_use]
    pub fn read_all(&self, topic: &str) -> Vec<LogRecord> {
        self.broker
            .read_committed(topic)
            .into_iter()
            .map(|(_, record)| record)
            .collect()
    }

    /// Dropped records of all tasks, that of the global tables too (`dropped-records-total`).
    #[must_use]
    pub fn dropped_records(&self) -> u64 {
        let status = self.core.status();
        let of_tasks: u64 = status.tasks.iter().map(|task| task.counters.dropped_records).sum();
        of_tasks + self.global.as_ref().map_or(0, GlobalCore::dropped_records)
    }

    /// The core, to look at.
    #[must_use]
    pub fn core(&self) -> &StreamThreadCore {
        &self.core
    }

    /// The broker, to look at.
    #[must_use]
    pub fn broker(&self) -> &MemoryBroker {
        &self.broker
    }

    /// The plan of the topology.
    #[must_use]
    pub fn plan(&self) -> &TopologyPlan {
        &self.process.plan
    }

    pub(super) fn no_topic(&self, topic: &str) -> Box<Error> {
        let topics: Vec<&str> = self.broker.topic_names().collect();
        Box::new(Error::Topics {
            message: format!(
                "the topology neither reads nor writes topic `{topic}`; its topics are {}",
                topics.join(", ")
            ),
        })
    }

    pub(super) fn run_until_idle(&mut self) -> ProcessResult {
        const ROUNDS: usize = 1_000_000;
        for _ in 0..ROUNDS {
            self.perform_effects()?;
            let mut fetched = self.shell.fetch(&self.broker, 100);
            let got = !fetched.is_empty();
            self.core.accept(&mut fetched)?;
            let done = self
                .core
                .process(self.now_ms, if self.commit_each { 1 } else { usize::MAX })?;
            let commits = self.core.has_uncommitted() && (self.commit_each || !got);
            if commits {
                self.core.request_commit();
            }
            self.perform_effects()?;
            // A commit makes records of repartition topics visible: look again.
            if !commits && !got && done == 0 && self.core.status().settled && !self.core.has_uncommitted() {
                return Ok(());
            }
        }
        Err(Error::bug(
            "the topology is still busy after a million rounds: does it write to its own input?",
        ))
    }

    fn perform_effects(&mut self) -> ProcessResult {
        while let Some(effect) = self.core.next_effect(self.now_ms)? {
            self.shell
                .perform(effect, &mut self.core, &mut self.broker, self.now_ms)?;
            for topic in self.shell.take_written_topics() {
                tracing::trace!(topic, "written");
            }
        }
        Ok(())
    }
}

fn make_topics(plan: &TopologyPlan, options: &DriverOptions, broker: &mut MemoryBroker) -> ProcessResult<Topics> {
    let mut topics = Topics::new(&options.application_id);
    let external = plan
        .subtopologies
        .iter()
        .flat_map(|sub| sub.external_sources().chain(&sub.sink_topics));
    let external = external.chain(plan.global.iter().map(|global| &global.topic));
    for topic in external {
        topics.set_partitions(topic, options.partitions.get(&**topic).copied().unwrap_or(1));
    }
    let resolved = plan.resolve(|topic| topics.partitions(topic)).map_err(Error::from)?;
    for (topic, count) in resolved.internal() {
        topics.set_partitions(topic, count);
    }
    for (topic, count) in topics.iter() {
        broker.create_topic(topic, count);
    }
    // Topics that records choose as they come are known to the test alone.
    for (topic, count) in &options.partitions {
        broker.create_topic(topic, *count);
    }
    if let Some(topic) = &options.handlers.dead_letter_topic {
        broker.create_topic(topic, 1);
    }
    Ok(topics)
}
