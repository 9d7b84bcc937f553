//! The core in a small world: a broker in memory that outlives the process, a process that can be killed after any effect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod at_least_once;
mod at_most_once;
mod crash;
mod faults;
mod global;
mod meters;
mod nodes;
mod outages;
mod pipeline;
mod punctual;
mod reactions;
mod rebalance;
mod restoring;
mod rules;
mod sizes;
mod spans;
mod storm;
mod tables;
mod timeouts;

use std::sync::Arc;

use streams_state::{MemoryDisk, StoreSpec, TaskState};

use super::{CallFailure, CoreParts, Effect, FailureClass, GroupIdentity, Outcome, RuntimeSettings, StreamThreadCore};
use crate::error::ProcessResult;
use crate::fetch::{FetchError, FetchErrorKind, Fetched};
use crate::processor::ErrorHandlers;
use crate::test_driver::{LogRecord, MemoryBroker, MemoryShell};
use crate::topics::Topics;
use crate::topology::{InternalTopicDefaults, Topology};
use crate::{Headers, TaskId, TopicPartition};

/// What outlives a process, and the process.
pub(super) struct World {
    pub(super) broker: MemoryBroker,
    topology: Topology,
    pub(super) settings: RuntimeSettings,
    pub(super) handlers: Arc<ErrorHandlers>,
    /// Processes and members so far: each has an id of its own.
    members: u32,
    pub(super) now_ms: i64,
    pub(super) process: Option<Process>,
    /// The tasks that it is given.
    pub(super) tasks: Vec<TaskId>,
    /// Where state outlives the process, if it does.
    pub(super) disk: Option<MemoryDisk>,
    /// `max.message.bytes` of topics.
    pub(super) max_message_bytes: Vec<(&'static str, usize)>,
    pub(super) effects: usize,
    pub(super) trace: Vec<String>,
}

pub(super) struct Process {
    pub(super) core: StreamThreadCore,
    pub(super) shell: MemoryShell,
}

pub(super) fn failure(class: FailureClass) -> Outcome {
    Outcome::Failed(CallFailure {
        class,
        code: "TEST".to_owned(),
        message: "told to fail".to_owned(),
    })
}

impl World {
    pub(super) fn new(topology: Topology, cache_bytes: usize) -> Self {
        let mut broker = MemoryBroker::default();
        for topic in ["in", "out"] {
            broker.create_topic(topic, 2);
        }
        broker.create_topic("app-counts-changelog", 2);
        let settings = RuntimeSettings {
            cache_bytes,
            send_bytes: 5,
            commit_interval_ms: 15,
            ..RuntimeSettings::default()
        };
        World {
            broker,
            topology,
            settings,
            handlers: Arc::default(),
            members: 0,
            now_ms: 1_000,
            process: None,
            tasks: vec![TaskId::new(0, 0), TaskId::new(0, 1)],
            disk: None,
            max_message_bytes: Vec::new(),
            effects: 0,
            trace: Vec::new(),
        }
    }

    pub(super) fn feed(&mut self, records: impl IntoIterator<Item = (&'static str, i64)>) {
        for (at, (key, time)) in records.into_iter().enumerate() {
            let partition = i32::from(key.as_bytes()[0]) % 2;
            let value = Some(format!("{at}").into_bytes());
            let record = LogRecord {
                offset: 0,
                timestamp_ms: time,
                key: Some(key.as_bytes().to_vec()),
                value,
                headers: Headers::default(),
            };
            self.broker
                .log_mut(&TopicPartition::new("in", partition))
                .unwrap()
                .append(record, None);
        }
    }

    /// What a core of this world is made of.
    pub(super) fn parts(&self) -> CoreParts {
        let plan = Arc::new(self.topology.plan("app", &InternalTopicDefaults::default()).unwrap());
        let mut topics = Topics::new("app");
        for topic in self.broker.topic_names() {
            topics.set_partitions(topic, self.broker.partitions(topic).unwrap());
        }
        for (topic, bytes) in &self.max_message_bytes {
            topics.set_max_message_bytes(topic, *bytes);
        }
        let disk = self.disk.clone();
        let opener = move |task: TaskId, specs: Vec<StoreSpec>| match &disk {
            Some(disk) => TaskState::on_memory_disk(disk, &task.to_string(), specs),
            None => TaskState::in_memory(&task.to_string(), specs),
        };
        CoreParts {
            settings: self.settings.clone(),
            topology: Arc::new(self.topology.clone()),
            plan,
            topics: Arc::new(topics),
            handlers: Arc::clone(&self.handlers),
            globals: Arc::default(),
            opener: Box::new(opener),
        }
    }

    pub(super) fn start(&mut self) {
        let mut core = StreamThreadCore::new(self.parts(), self.now_ms);
        let group = self.new_member();
        core.on_assigned(group, self.tasks.clone());
        self.process = Some(Process {
            core,
            shell: MemoryShell::new("app-p-1"),
        });
    }

    pub(super) fn new_member(&mut self) -> GroupIdentity {
        self.members += 1;
        GroupIdentity {
            member_id: format!("m{}", self.members),
            member_epoch: 1,
        }
    }

    /// The process is gone at once: nothing of it is left but what the broker has.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Runs until nothing is left to do, or `stop` says so before an effect is carried out (`true`), and answers whether it
    /// was stopped.
    pub(super) fn run(&mut self, mut stop: impl FnMut(usize, &Effect) -> bool) -> ProcessResult<bool> {
        for _ in 0..100_000 {
            let process = self.process.as_mut().unwrap();
            while let Some(effect) = process.core.next_effect(self.now_ms)? {
                if stop(self.effects, &effect) {
                    return Ok(true);
                }
                self.effects += 1;
                self.trace.push(format!("{effect:?}"));
                process
                    .shell
                    .perform(effect, &mut process.core, &mut self.broker, self.now_ms)?;
                if process.shell.take_rejoin() {
                    self.members += 1;
                    process.core.on_lost()?;
                    let group = GroupIdentity {
                        member_id: format!("m{}", self.members),
                        member_epoch: 1,
                    };
                    process.core.on_assigned(group, [TaskId::new(0, 0), TaskId::new(0, 1)]);
                }
            }
            let mut fetched = process.shell.fetch(&self.broker, 3);
            let got = !fetched.is_empty();
            process.core.accept(&mut fetched)?;
            let done = process.core.process(self.now_ms, 2)?;
            self.now_ms += 7;
            let idle = process.core.buffered() == 0 && process.core.waits_until_ms(self.now_ms).is_none();
            if idle && !got && done == 0 && process.core.status().settled && !process.core.has_uncommitted() {
                return Ok(false);
            }
        }
        panic!("still busy: {:?}", &self.trace[self.trace.len().saturating_sub(20)..]);
    }

    pub(super) fn core(&mut self) -> &mut StreamThreadCore {
        &mut self.process.as_mut().unwrap().core
    }

    /// Runs to the first effect that `is` wants, without carrying it out.
    pub(super) fn run_to(&mut self, is: impl Fn(&Effect) -> bool) {
        assert!(self.run(|_, effect| is(effect)).unwrap(), "there was no such effect");
    }

    /// Runs to the first effect that `is` wants and answers it so, instead of carrying it out.
    pub(super) fn answer_at(&mut self, is: impl Fn(&Effect) -> bool, outcome: Outcome) -> ProcessResult {
        self.run_to(is);
        let now_ms = self.now_ms;
        self.core().on_outcome(outcome, now_ms)
    }

    /// Tells the core that fetching the input failed so.
    pub(super) fn fetch_fails(&mut self, partition: i32, kind: FetchErrorKind) -> ProcessResult {
        let core = self.core();
        let at = TopicPartition::new("in", partition);
        let (id, owned) = core
            .partitions
            .iter()
            .find(|(_, owned)| owned.topic_partition == at)
            .unwrap();
        let error = FetchError {
            partition: Some((*id, owned.incarnation)),
            kind,
            message: "told to fail".to_owned(),
        };
        core.accept(&mut vec![Fetched::Error(error)])
    }

    pub(super) fn run_to_end(&mut self) {
        assert!(!self.run(|_, _| false).unwrap());
    }

    /// The last committed value of each key of a topic.
    pub(super) fn latest(&self, topic: &str) -> std::collections::BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        self.broker
            .read_committed(topic)
            .into_iter()
            .map(|(_, record)| (record.key.unwrap(), record.value))
            .collect()
    }

    /// All committed records of a topic, without offsets.
    pub(super) fn all(&self, topic: &str) -> Vec<(i32, i64, Option<Vec<u8>>, Option<Vec<u8>>)> {
        let records = self.broker.read_committed(topic).into_iter();
        records
            .map(|(partition, r)| (partition, r.timestamp_ms, r.key, r.value))
            .collect()
    }
}
