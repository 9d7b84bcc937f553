//! Machines: starts, crashes, stops, pauses, full disks, and what else happens to the world.

use std::sync::Arc;

use streams_core::error::ProcessResult;
use streams_core::membership::MembershipCommand;
use streams_core::membership::member::{Member, MemberConfig};
use streams_core::processor::ErrorHandlers;
use streams_core::runtime::{CoreParts, GlobalCore, GlobalState, RuntimeSettings, StreamThreadCore};
use streams_core::test_driver::MemoryConsumer;
use streams_core::{TaskId, TopicPartition};
use streams_state::{MemoryDisk, StoreSpec, TaskState};

use super::process::{GlobalRun, Instance, Key, Place, Producer, Thread};
use super::scenario::APPLICATION_ID;
use super::weather::{Disruption, zombie_ms};
use super::world::{Event, TRANSACTION_TIMEOUT_MS, Undo, World};

impl World<'_> {
    pub(super) fn plan_start(&mut self, instance: usize, after_ms: i64) {
        if let Some(machine) = self.instances.get_mut(instance) {
            machine.start_planned = true;
            self.after(after_ms, Event::Start(instance));
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
            ..RuntimeSettings::default()
        }
    }

    fn parts(&self, machine: &Instance) -> CoreParts {
        let disk = machine.disk.clone();
        CoreParts {
            settings: self.settings(),
            topology: Arc::clone(&self.scenario.topology),
            plan: Arc::clone(&self.scenario.plan),
            topics: Arc::clone(&self.scenario.topics),
            handlers: Arc::new(ErrorHandlers::default()),
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
        machine.life += 1;
        machine.up = true;
        machine.stopping = false;
        machine.disk_was_full = machine.disk_is_full;
        machine.paused_until_ms = 0;
        machine.threads_stalled_until_ms = 0;
        machine.globals = Arc::default();
        self.note(|| format!("instance {instance} starts"));
        match self.start_global(instance) {
            Ok(true) => {}
            Ok(false) => self.start_threads(instance),
            Err(error) => self.instance_failed(instance, &error.to_string()),
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
        for number in 0..self.weather.threads {
            match self.new_thread(instance, number) {
                Ok(mut thread) => {
                    let key = thread.key;
                    self.wake_beat(&mut thread, 0);
                    let token = self.number();
                    thread.round_token = token;
                    if let Some(machine) = self.instances.get_mut(instance) {
                        machine.threads.push(Some(thread));
                    }
                    self.after(1, Event::Round(key, token));
                }
                Err(error) => return self.instance_failed(instance, &error),
            }
        }
    }

    fn new_thread(&mut self, instance: usize, number: usize) -> Result<Box<Thread>, String> {
        let clock_ms = self.clock_ms(instance);
        let machine = self.instances.get(instance).ok_or("no such instance")?;
        let process_id = machine.process_id();
        let config = MemberConfig {
            group_id: APPLICATION_ID.to_owned(),
            member_id: format!("{process_id}-m{number}"),
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
            restores: Default::default(),
            restored: Default::default(),
            restoring: false,
            restore_position: None,
            restored_rows: Default::default(),
            closing: false,
            leaving: false,
        }))
    }

    /// A thread met an error and stops; its process stops with it and is started again by whoever watches it.
    pub(super) fn thread_failed(&mut self, key: Key, error: &str) {
        self.note(|| format!("{key} stops: {error}"));
        self.instance_failed(key.instance, error);
    }

    pub(super) fn instance_failed(&mut self, instance: usize, error: &str) {
        let disk_trouble = self
            .instances
            .get(instance)
            .is_some_and(|machine| machine.disk_was_full);
        if !disk_trouble {
            return self.fail(format!("instance {instance} stopped: {error}"));
        }
        self.weather.count("process stopped by a full disk");
        self.crash(instance);
    }

    /// The process ends at once.
    pub(super) fn crash(&mut self, instance: usize) {
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        if !machine.up {
            return;
        }
        machine.up = false;
        machine.threads.clear();
        machine.global = None;
        self.note(|| format!("instance {instance} is dead"));
        let after_ms = match self.rng.below(4) {
            0 => self.random_ms(100),
            1 | 2 => self.random_ms(5_000),
            _ => self.random_ms(30_000),
        };
        self.plan_start(instance, after_ms);
    }

    pub(super) fn pause(&mut self, instance: usize, ms: i64) {
        let until_ms = self.now_ms + ms;
        let stalled_ms = until_ms
            + if self.rng.below(2) == 0 {
                self.random_ms(4_000)
            } else {
                0
            };
        if let Some(machine) = self.instances.get_mut(instance) {
            machine.paused_until_ms = machine.paused_until_ms.max(until_ms);
            machine.threads_stalled_until_ms = machine.threads_stalled_until_ms.max(stalled_ms);
            self.note(|| format!("instance {instance} is paused for {ms} ms"));
        }
    }

    pub(super) fn disrupt(&mut self, disruption: Disruption) {
        if self.healed {
            return;
        }
        let instance = usize::try_from(self.rng.below(self.instances.len() as u64)).unwrap_or(0);
        self.note(|| format!("disruption: {disruption:?} ({instance})"));
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        let up = machine.up;
        match disruption {
            Disruption::CrashOf(key) => {
                let same = self
                    .instances
                    .get(key.instance)
                    .is_some_and(|machine| machine.life == key.life);
                if same {
                    self.crash(key.instance);
                }
                return;
            }
            Disruption::Crash if up => self.crash(instance),
            Disruption::PowerLoss if up => {
                let disk = machine.disk.clone();
                self.crash(instance);
                disk.lose_power(usize::try_from(1 + self.rng.below(3)).unwrap_or(1));
            }
            Disruption::DiskLost if up => {
                machine.disk = MemoryDisk::default();
                machine.disk.set_full(machine.disk_is_full);
                machine.identity += 1;
                self.crash(instance);
            }
            Disruption::ClockJump if up => {
                machine.clock_offset_ms = i64::try_from(self.rng.below(40_000)).unwrap_or(0) - 20_000;
                self.crash(instance);
            }
            Disruption::Stop if up => self.stop(instance),
            Disruption::StartAnother => {
                if self.instances.len() < 4 {
                    let number = self.instances.len();
                    self.instances.push(Instance::new(number));
                    self.plan_start(number, 1);
                }
            }
            Disruption::PauseProcess if up => {
                let ms = zombie_ms(&mut self.rng);
                self.pause(instance, ms);
            }
            Disruption::StallThread if up => {
                let ms = zombie_ms(&mut self.rng);
                let chosen = usize::try_from(self.rng.below(self.weather.threads as u64)).unwrap_or(0);
                self.stall(instance, chosen, ms);
            }
            Disruption::Reshuffle => {
                let seed = self.rng.next_u64();
                self.group.reshuffle(seed);
            }
            Disruption::MoveCoordinator if !self.coordinator_away => {
                self.coordinator_away = true;
                let ms = 1 + self.random_ms(6_000);
                self.after(ms, Event::Undo(Undo::CoordinatorBack));
            }
            Disruption::FillDisk => {
                machine.disk_is_full = true;
                machine.disk_was_full = true;
                machine.disk.set_full(true);
                let ms = 1 + self.random_ms(8_000);
                self.after(ms, Event::Undo(Undo::DiskFreed(instance)));
            }
            Disruption::ZombieCommit => self.weather.zombie_next = true,
            Disruption::Compact => self.compact(),
            _ => return,
        }
        self.weather.count(disruption.name());
    }

    /// A thread of a process stands still (slow user code); its heartbeats go on.
    fn stall(&mut self, instance: usize, thread: usize, ms: i64) {
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        let key = Key {
            instance,
            life: machine.life,
            thread,
        };
        let Some(mut thread) = self.take(key) else { return };
        if !thread.blocked {
            // The round that was planned is void.
            let token = self.number();
            thread.round_token = token;
            thread.wakes_at_ms = self.now_ms + ms;
            self.after(ms, Event::Round(key, token));
        }
        self.put_back(thread);
    }

    /// Changelogs are compacted up to somewhere; deletions stay, as they do for a day.
    fn compact(&mut self) {
        let changelogs: Vec<String> = self
            .scenario
            .plan
            .subtopologies
            .iter()
            .flat_map(|sub| &sub.changelogs)
            .map(|changelog| changelog.topic.name.to_string())
            .collect();
        for topic in changelogs {
            for partition in 0..self.broker.partitions(&topic).unwrap_or(0) {
                let below = self.rng.below(200);
                if let Some(log) = self.broker.log_mut(&TopicPartition::new(topic.as_str(), partition)) {
                    log.compact(i64::try_from(below).unwrap_or(0), true);
                }
            }
        }
    }

    /// The instance closes gracefully: every thread commits, gives back and leaves.
    fn stop(&mut self, instance: usize) {
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        if machine.stopping || machine.threads.is_empty() {
            return;
        }
        machine.stopping = true;
        for thread in machine.threads.iter_mut().flatten() {
            thread.closing = true;
            thread.waiting = None;
            let group = thread.core.group().clone();
            thread.core.on_assigned(group, []);
        }
    }

    pub(super) fn leave(&mut self, mut thread: Box<Thread>) {
        thread.leaving = true;
        self.note(|| format!("{} leaves", thread.key));
        self.command(
            &mut thread,
            MembershipCommand::Leave {
                shutdown_application: false,
            },
        );
        self.put_back(thread);
    }

    /// The membership of a thread has ended, after a leave.
    pub(super) fn member_ended(&mut self, thread: Box<Thread>) {
        let key = thread.key;
        if !thread.leaving {
            self.put_back(thread);
            return;
        }
        drop(thread);
        let Some(machine) = self.instances.get_mut(key.instance) else {
            return;
        };
        if machine.threads.iter().all(Option::is_none) {
            machine.up = false;
            machine.threads.clear();
            machine.global = None;
            self.note(|| format!("instance {} has stopped", key.instance));
            let after_ms = self.random_ms(15_000);
            self.plan_start(key.instance, after_ms);
        }
    }

    pub(super) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::CoordinatorBack => {
                if self.coordinator_away {
                    self.coordinator_away = false;
                    self.group.restart_sessions(self.now_ms);
                }
            }
            Undo::DiskFreed(instance) => {
                if let Some(machine) = self.instances.get_mut(instance) {
                    machine.disk_is_full = false;
                    machine.disk.set_full(false);
                }
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
