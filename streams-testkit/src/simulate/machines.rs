//! Machines: how processes and their threads start, and how they die.

use std::sync::Arc;

use streams_core::error::ProcessResult;
use streams_core::membership::member::{Member, MemberConfig};
use streams_core::runtime::{CoreParts, FailureLog, GlobalCore, GlobalState, RuntimeSettings, StreamThreadCore};
use streams_core::test_driver::MemoryConsumer;
use streams_core::{TaskId, TopicPartition};
use streams_state::{MemoryDisk, StoreSpec, TaskState};

use super::process::{GlobalRun, Instance, Key, Place, Producer, Thread};
use super::scenario::APPLICATION_ID;
use super::world::{Event, TRANSACTION_TIMEOUT_MS, World};

impl World<'_> {
    pub(super) fn plan_start(&mut self, instance: usize, after_ms: i64) {
        if let Some(machine) = self.instances.get_mut(instance) {
            machine.start_planned = true;
            self.after(after_ms, Event::Start(instance));
        }
    }

    /// The instance does not start before so many ms have passed.
    pub(super) fn hold_start(&mut self, instance: usize, ms: i64) {
        if let Some(machine) = self.instances.get_mut(instance) {
            machine.starts_after_ms = self.now_ms + ms;
        }
    }

    fn settings(&self) -> RuntimeSettings {
        RuntimeSettings {
            commit_interval_ms: self.weather.commit_interval_ms,
            buffered_records_per_partition: self.weather.buffered_records,
            transaction_timeout_ms: TRANSACTION_TIMEOUT_MS,
            purge_interval_ms: 3_000,
            cache_bytes: self.weather.cache_bytes,
            send_bytes: self.weather.send_bytes,
            reset: self.reset(),
            guarantee: self.scenario.guarantee,
            ..RuntimeSettings::default()
        }
    }

    pub(super) fn parts(&self, machine: &Instance) -> CoreParts {
        let disk = machine.disk.clone();
        CoreParts {
            settings: self.settings(),
            topology: Arc::clone(&self.scenario.topology),
            plan: Arc::clone(&self.scenario.plan),
            topics: Arc::clone(&self.scenario.topics),
            handlers: Arc::clone(&self.scenario.handlers),
            globals: Arc::clone(&machine.globals),
            opener: Box::new(move |task: TaskId, specs: Vec<StoreSpec>| open(&disk, task, specs)),
        }
    }

    pub(super) fn start(&mut self, instance: usize) {
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        machine.start_planned = false;
        if machine.up {
            return;
        }
        if machine.starts_after_ms > self.now_ms {
            let at_ms = machine.starts_after_ms;
            machine.start_planned = true;
            return self.at(at_ms, Event::Start(instance));
        }
        machine.life += 1;
        machine.up = true;
        machine.stopping = false;
        machine.replacing.clear();
        machine.failures = FailureLog::default();
        machine.disk_was_bad = machine.disk_is_full || machine.writes_fail;
        machine.disk.set_file_bytes(self.weather.file_bytes);
        machine.paused_until_ms = 0;
        machine.threads_stalled_until_ms = 0;
        machine.globals = Arc::default();
        self.note(|| format!("instance {instance} starts"));
        match self.start_global(instance) {
            Ok(true) => {}
            Ok(false) => self.start_threads(instance),
            Err(error) => self.instance_failed(instance, error),
        }
    }

    /// Whether there are global tables, which have to be filled first.
    fn start_global(&mut self, instance: usize) -> ProcessResult<bool> {
        let Some(machine) = self.instances.get(instance) else {
            return Ok(false);
        };
        let parts = self.parts(machine);
        let Some(state) = GlobalState::open(&parts)? else {
            return Ok(false);
        };
        let readers = state.readers(&self.scenario.plan);
        let mut logs = Vec::new();
        for global in &self.scenario.plan.global {
            for partition in 0..self.broker.partitions(&global.topic).unwrap_or(0) {
                let topic_partition = TopicPartition::new(&*global.topic, partition);
                if let Some(log) = self.broker.log(&topic_partition) {
                    logs.push((topic_partition, log.log_start(), log.last_stable_offset()));
                }
            }
        }
        let core = GlobalCore::new(&parts, state, &logs, self.clock_ms(instance))?;
        let mut consumer = MemoryConsumer::default();
        consumer.assign(core.assignments().to_vec());
        if let Some(machine) = self.instances.get_mut(instance) {
            machine.globals = Arc::new(readers);
            machine.global = Some(GlobalRun { core, consumer });
            let life = machine.life;
            self.after(1, Event::Global(instance, life));
        }
        Ok(true)
    }

    pub(super) fn start_threads(&mut self, instance: usize) {
        self.old_members_leave(instance);
        for number in 0..self.weather.threads {
            if let Some(machine) = self.instances.get_mut(instance) {
                machine.threads.push(None);
            }
            if let Err(error) = self.start_thread(instance, number, 0) {
                return self.fail(format!("a thread of instance {instance} could not be made: {error}"));
            }
        }
    }

    /// Under exactly-once a member keeps its id across restarts, since its transactional id fences it. Without transactions
    /// each has its own, as in the shipped shell.
    fn member_id(&self, machine: &Instance, number: usize, turn: u32) -> String {
        let process_id = machine.process_id();
        if self.scenario.is_transactional() {
            return format!("{process_id}-m{number}");
        }
        format!("{process_id}-m{number}-{}.{turn}", machine.life)
    }

    /// Without transactions the members of the process before leave at its start, if the group can be asked.
    fn old_members_leave(&mut self, instance: usize) {
        if self.scenario.is_transactional() || self.coordinator_away || self.rng.below(3) == 0 {
            return;
        }
        if let Some(machine) = self.instances.get(instance) {
            let prefix = format!("{}-", machine.process_id());
            self.group.leave(&prefix);
        }
    }

    /// Starts a thread in its empty place.
    pub(super) fn start_thread(&mut self, instance: usize, number: usize, turn: u32) -> Result<(), String> {
        let mut thread = self.new_thread(instance, number, turn)?;
        let key = thread.key;
        self.wake_beat(&mut thread, 0);
        let token = self.number();
        thread.round_token = token;
        self.put_back(thread);
        self.after(1, Event::Round(key, token));
        Ok(())
    }

    fn new_thread(&self, instance: usize, number: usize, turn: u32) -> Result<Box<Thread>, String> {
        let clock_ms = self.clock_ms(instance);
        let machine = self.instances.get(instance).ok_or("no such instance")?;
        let process_id = machine.process_id();
        let config = MemberConfig {
            group_id: APPLICATION_ID.to_owned(),
            member_id: self.member_id(machine, number, turn),
            process_id: process_id.clone(),
            rack_id: None,
            client_tags: Vec::new(),
            endpoint: None,
            rebalance_timeout_ms: 20_000,
            max_poll_interval_ms: 30_000,
            heartbeat_max_ms: None,
            topology: self.scenario.plan.group_topology(),
            bootstrap: "simulated".to_owned(),
        };
        let member = Member::new(config, clock_ms).map_err(|error| error.to_string())?;
        Ok(Box::new(Thread {
            key: Key {
                instance,
                life: machine.life,
                thread: number,
                turn,
            },
            core: StreamThreadCore::new(self.parts(machine), clock_ms),
            consumer: MemoryConsumer::default(),
            producer: Producer::new(format!("{APPLICATION_ID}-{process_id}-{number}")),
            member,
            beating: false,
            commands: Vec::new(),
            alive_at_ms: clock_ms,
            beat_token: 0,
            member_ended: false,
            events: Default::default(),
            waiting: None,
            assignment: 0,
            place: Place::Start,
            round_token: 0,
            wakes_at_ms: self.now_ms,
            call: None,
            blocked: false,
            answered: None,
            restorer: Default::default(),
            gate: Default::default(),
            chunk: 20,
            processing_ms: 0,
            busy_until_ms: 0,
            closing: false,
            closing_until_ms: i64::MAX,
            dying: None,
            leaving: false,
        }))
    }

    /// The process ends at once. What it had sent may be carried out all the same, and much later.
    pub(super) fn crash(&mut self, instance: usize) {
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        if !machine.up {
            return;
        }
        machine.up = false;
        machine.replacing.clear();
        machine.global = None;
        let threads = std::mem::take(&mut machine.threads);
        self.given_up += 1;
        self.note(|| format!("instance {instance} is dead"));
        for mut thread in threads.into_iter().flatten() {
            self.scatter(&mut thread);
        }
        self.outlive(instance);
        let after_ms = match self.rng.below(4) {
            0 => self.random_ms(100),
            1 | 2 => self.random_ms(5_000),
            _ => self.random_ms(30_000),
        };
        self.plan_start(instance, after_ms);
    }

    /// Requests that are on their way from a process which has just died: the brokers get to some of them only later.
    fn outlive(&mut self, instance: usize) {
        if !self.weather.outlives || self.healed {
            return;
        }
        let delays: Vec<u64> = self.calls.keys().copied().collect();
        for number in delays {
            let ms = self.random_ms(20_000);
            let half = self.rng.below(2) == 0;
            if let Some(call) = self.calls.get_mut(&number)
                && call.from.instance == instance
                && call.on_the_wire
                && half
            {
                call.not_before_ms = self.now_ms + ms;
                self.weather.count("request outlives its process");
            }
        }
    }
}

/// As the shell: a task without stores has nothing on disk.
fn open(disk: &MemoryDisk, task: TaskId, specs: Vec<StoreSpec>) -> Result<TaskState, streams_state::StateError> {
    if specs.is_empty() {
        return TaskState::in_memory(&task.to_string(), specs);
    }
    TaskState::on_memory_disk(disk, &task.to_string(), specs)
}
