//! The world of one run: virtual time, a queue of events, the brokers, the machines. One seed, one run.

use std::collections::BTreeMap;

use streams_core::TopicPartition;
use streams_core::membership::member::Step;
use streams_core::test_driver::{LogRecord, MemoryBroker};

use super::calamity::Harm;
use super::calls::Call;
use super::coordinator::Coordinator;
use super::foreign::{Foreign, ForeignEnd};
use super::process::{Instance, Key, Thread};
use super::retention::Ages;
use super::scenario::{Phases, Scenario};
use super::trace::Trace;
use super::user_faults::UserFaults;
use super::weather::Weather;
use crate::Seeded;

/// Virtual time at the start: wall clocks begin here, ms since the Unix epoch.
pub(super) const START_MS: i64 = 1_000_000;
/// `transaction.timeout.ms`.
pub(super) const TRANSACTION_TIMEOUT_MS: i64 = 10_000;
/// How long the application may take to be done once nothing goes wrong any more, ms.
pub(super) const QUIET_MS: i64 = 20 * 60_000;
/// The same where user code is slow and stays so.
pub(super) const SLOW_QUIET_MS: i64 = 3 * 60 * 60_000;
/// A run of more events is stuck.
const MOST_EVENTS: u64 = 3_000_000;

pub(super) enum Event {
    Round(Key, u64),
    Execute(u64),
    Answer(u64),
    Deliver(Key),
    Beat(Key, u64),
    BeatArrives(Key, Box<Step>, bool),
    BeatAnswer(Key, Box<BeatAnswer>),
    Restore(Key),
    Global(usize, u32),
    Feed(usize, usize),
    Tick,
    Disrupt(super::disruption::Disruption),
    Undo(Undo),
    Start(usize),
    Replace(Key),
    LeaveOver(Key),
    Foreign(ForeignEnd),
    Strike,
    Watch,
    Stray(streams_core::test_driver::ProducerSession, TopicPartition, LogRecord),
}

pub(super) enum BeatAnswer {
    Heartbeat(streams_core::membership::codec::heartbeat::HeartbeatResponse),
    Described(streams_core::membership::codec::describe::DescribedGroup),
    Failed,
}

#[derive(Clone, Copy)]
pub(super) enum Undo {
    CoordinatorBack,
    DiskFreed(usize),
}

/// The world.
pub(super) struct World<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) phases: &'s Phases,
    pub(super) rng: Seeded,
    pub(super) now_ms: i64,
    sequence: u64,
    queue: BTreeMap<(i64, u64), Event>,
    pub(super) broker: MemoryBroker,
    pub(super) group: Coordinator,
    pub(super) coordinator_away: bool,
    pub(super) instances: Vec<Instance>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) next_number: u64,
    pub(super) weather: Weather,
    pub(super) trace: Trace,
    pub(super) healed: bool,
    pub(super) phase: usize,
    pub(super) fed: usize,
    pub(super) quiet_since_ms: i64,
    pub(super) settled_since_ms: i64,
    pub(super) seen_end: i64,
    pub(super) committed_seen: BTreeMap<TopicPartition, i64>,
    pub(super) foreign: Foreign,
    pub(super) ages: Ages,
    pub(super) harm: Option<Harm>,
    /// Inputs that come when the harm is undone.
    pub(super) held_back: Vec<(usize, usize)>,
    /// An input that is held by a transaction for longer than any broker would.
    pub(super) hung_input: Option<TopicPartition>,
    pub(super) user_faults: Option<UserFaults>,
    /// How often work may have been given up that was not committed: by a crash, a failure, a lost membership, an abort.
    pub(super) given_up: u64,
    pub(super) failure: Option<String>,
    pub(super) done: bool,
    #[cfg(test)]
    pub(super) mutation: Option<super::tests::Mutation>,
    #[cfg(test)]
    pub(super) fetched_to: BTreeMap<u32, i64>,
}

impl<'s> World<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        phases: &'s Phases,
        seed: u64,
        mut weather: Weather,
        traced: bool,
    ) -> Self {
        weather.until_ms += START_MS;
        let mut broker = MemoryBroker::default();
        for (topic, count) in scenario.topics.iter() {
            broker.create_topic(topic, count);
        }
        broker.delay_markers(weather.marker_pace > 0);
        let mut rng = Seeded::new(seed ^ 0x5EED);
        let mut group = Coordinator::new(std::sync::Arc::clone(&scenario.plan), scenario.tasks.clone());
        group.ready_at_ms = START_MS + i64::try_from(rng.below(500)).unwrap_or(0);
        group.gives_early = weather.gives_early;
        group.assignment_interval_ms = i64::try_from(rng.below(2) * 500).unwrap_or(0);
        World {
            scenario,
            phases,
            rng,
            now_ms: START_MS,
            sequence: 0,
            queue: BTreeMap::new(),
            broker,
            group,
            coordinator_away: false,
            instances: (0..weather.instances).map(Instance::new).collect(),
            calls: BTreeMap::new(),
            next_number: 0,
            weather,
            trace: Trace::new(traced),
            healed: false,
            phase: 0,
            fed: 0,
            quiet_since_ms: START_MS,
            settled_since_ms: START_MS,
            seen_end: -1,
            committed_seen: BTreeMap::new(),
            foreign: Foreign::default(),
            ages: Ages::default(),
            harm: None,
            held_back: Vec::new(),
            hung_input: None,
            user_faults: None,
            given_up: 0,
            failure: None,
            done: false,
            #[cfg(test)]
            mutation: None,
            #[cfg(test)]
            fetched_to: BTreeMap::new(),
        }
    }

    pub(super) fn at(&mut self, at_ms: i64, event: Event) {
        self.sequence += 1;
        self.queue.insert((at_ms.max(self.now_ms), self.sequence), event);
    }

    pub(super) fn after(&mut self, ms: i64, event: Event) {
        self.at(self.now_ms + ms, event);
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn random_ms(&mut self, below: u64) -> i64 {
        i64::try_from(self.rng.below(below)).unwrap_or(0)
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        self.trace.note(self.now_ms - START_MS, line);
    }

    pub(super) fn fail(&mut self, what: String) {
        self.note(|| format!("FAILED: {what}"));
        self.failure.get_or_insert(what);
    }

    /// Runs to the end: everything processed, or a failure.
    pub(super) fn run(&mut self) {
        for instance in 0..self.instances.len() {
            let after_ms = self.random_ms(2_000);
            self.plan_start(instance, after_ms);
        }
        self.feed_phase();
        self.after(50, Event::Tick);
        self.after(500, Event::Watch);
        self.plan_disruption();
        self.plan_calamity();
        let mut events = 0;
        while !self.done && self.failure.is_none() {
            let Some(((at_ms, _), event)) = self.queue.pop_first() else {
                self.fail("nothing is left to happen".to_owned());
                return;
            };
            self.now_ms = at_ms;
            self.handle(event);
            events += 1;
            if events > MOST_EVENTS {
                self.fail(format!("livelock: {MOST_EVENTS} events and not done. {}", self.show()));
            }
        }
    }

    pub(super) fn plan_disruption(&mut self) {
        if let Some((at_ms, disruption)) = self.weather.next_disruption(&mut self.rng, self.now_ms) {
            self.at(at_ms, Event::Disrupt(disruption));
        }
    }

    pub(super) fn feed_phase(&mut self) {
        let Some(phase) = self.phases.get(self.phase) else {
            return;
        };
        let mut at_ms = self.now_ms;
        // All at once, in a burst, or over the time in which things go wrong.
        let left_ms = u64::try_from(self.weather.until_ms - self.now_ms).unwrap_or(0);
        let over_ms = [0, 2_000, left_ms / self.phases.len().max(1) as u64, left_ms / 2];
        let over_ms = over_ms
            .get(usize::try_from(self.rng.below(4)).unwrap_or(0))
            .copied()
            .unwrap_or(0);
        let pace = 2 * over_ms / (phase.len() as u64).max(1);
        for number in 0..phase.len() {
            at_ms += self.random_ms(pace + 1);
            self.at(at_ms, Event::Feed(self.phase, number));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Round(key, token) => self.round(key, token),
            Event::Execute(call) => self.execute(call),
            Event::Answer(call) => self.answer(call),
            Event::Deliver(key) => self.deliver(key),
            Event::Beat(key, token) => self.beat(key, token),
            Event::BeatArrives(key, step, answered) => self.beat_arrives(key, &step, answered),
            Event::BeatAnswer(key, answer) => self.beat_answer(key, *answer),
            Event::Restore(key) => self.restore(key),
            Event::Global(instance, life) => self.global(instance, life),
            Event::Feed(phase, number) => self.feed(phase, number),
            Event::Tick => self.tick(),
            Event::Disrupt(disruption) => {
                self.disrupt(disruption);
                self.plan_disruption();
            }
            Event::Undo(undo) => self.undo(undo),
            Event::Start(instance) => self.start(instance),
            Event::Replace(key) => self.replace(key),
            Event::LeaveOver(key) => self.leave_over(key),
            Event::Foreign(end) => self.foreign_ends(end),
            Event::Strike => self.strike(),
            Event::Watch => self.watch(),
            Event::Stray(session, topic_partition, record) => {
                let taken = self.broker.send_late(&session, &topic_partition, record);
                self.note(|| format!("a late record for {topic_partition}: {taken:?}"));
            }
        }
    }

    /// When the event's process is paused: the event comes again when it wakes up.
    pub(super) fn paused_until(&self, key: Key) -> Option<i64> {
        let instance = self.instances.get(key.instance)?;
        (instance.paused_until_ms > self.now_ms).then_some(instance.paused_until_ms)
    }

    /// As `paused_until`, for the stream threads: after a pause they may get the processor later than the heartbeats.
    pub(super) fn stalled_until(&self, key: Key) -> Option<i64> {
        let instance = self.instances.get(key.instance)?;
        let until_ms = instance.paused_until_ms.max(instance.threads_stalled_until_ms);
        (until_ms > self.now_ms).then_some(until_ms)
    }

    pub(super) fn clock_ms(&self, instance: usize) -> i64 {
        self.now_ms
            + self
                .instances
                .get(instance)
                .map_or(0, |instance| instance.clock_offset_ms)
    }

    /// Takes a living thread out, to be driven.
    pub(super) fn take(&mut self, key: Key) -> Option<Box<Thread>> {
        let instance = self.instances.get_mut(key.instance)?;
        if !instance.up || instance.life != key.life {
            return None;
        }
        let slot = instance.threads.get_mut(key.thread)?;
        if slot.as_ref().is_some_and(|thread| thread.key != key) {
            return None;
        }
        slot.take()
    }

    pub(super) fn put_back(&mut self, thread: Box<Thread>) {
        let key = thread.key;
        if let Some(instance) = self.instances.get_mut(key.instance)
            && instance.life == key.life
            && let Some(slot) = instance.threads.get_mut(key.thread)
        {
            *slot = Some(thread);
        }
    }

    pub(super) fn feed(&mut self, phase: usize, number: usize) {
        if self.holds_inputs_back() {
            return self.held_back.push((phase, number));
        }
        let phases = self.phases;
        let Some(record) = phases.get(phase).and_then(|phase| phase.get(number)) else {
            return;
        };
        let count = self.broker.partitions(&record.topic).unwrap_or(1);
        let partition = record
            .key
            .as_deref()
            .map_or(0, |key| streams_core::murmur2::partition_for_key(key, count));
        let topic_partition = TopicPartition::new(record.topic.as_str(), partition);
        let log_record = LogRecord {
            offset: 0,
            timestamp_ms: record.timestamp_ms,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: streams_core::Headers::default(),
        };
        match self.append_input(&topic_partition, log_record) {
            Some(offset) => self.note(|| format!("input {topic_partition}@{offset}")),
            None => self.fail(format!(
                "the topology does not read {}: take it out of the inputs",
                record.topic
            )),
        }
        self.fed += 1;
    }

    pub(super) fn arm_user_faults(&mut self) {
        let (seed, of_10_000) = (self.rng.next_u64(), self.weather.user_faults);
        if let Some(faults) = &self.user_faults {
            faults.arm(seed, of_10_000);
        }
    }

    pub(super) fn end_user_faults(&mut self) {
        let failed = self.user_faults.as_ref().map_or(0, UserFaults::disarm);
        if failed > 0 {
            *self.weather.counts.entry("user code failed").or_default() += failed;
        }
    }

    /// What the brokers do by themselves.
    fn tick(&mut self) {
        let after_ms = 20 + self.random_ms(80);
        self.after(after_ms, Event::Tick);
        for id in self.broker.end_overdue(self.now_ms, TRANSACTION_TIMEOUT_MS) {
            self.note(|| format!("the transaction of {id} timed out"));
        }
        if !self.coordinator_away {
            for member in self.group.expire(self.now_ms) {
                self.weather.count("member expired");
                self.note(|| format!("member {member} expired"));
            }
        }
        if self.rng.below(100) < self.weather.marker_pace {
            for _ in 0..=self.rng.below(self.broker.waiting_markers() as u64 + 1) {
                let which = usize::try_from(self.rng.below(64)).unwrap_or(0);
                self.broker.write_marker(which);
            }
        }
        self.note_ages();
        self.check_offsets();
    }
}
