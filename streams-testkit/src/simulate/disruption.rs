//! What happens to the world at moments of its own: machines crash, pause and stop, disks fill, tasks move.

use streams_core::error::FailurePlace;
use streams_core::{Error, TaskId};
use streams_state::MemoryDisk;

use super::process::{Instance, Key};
use super::user_faults::MARK;
use super::weather::zombie_ms;
use super::world::{Event, Undo, World};

/// Something that happens to the world at a moment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disruption {
    /// Of the process that has just made a request.
    CrashOf(Key),
    Crash,
    PowerLoss,
    DiskLost,
    /// For longer than deletions stay in a changelog.
    LongOutage,
    Stop,
    StartAnother,
    PauseProcess,
    /// The next process that commits is paused in the call, for longer than its session.
    ZombieCommit,
    StallThread,
    ThreadFails,
    Reshuffle,
    MoveCoordinator,
    FillDisk,
    FailWrites,
    SlowDisk,
    Compact,
    TrimChangelogs,
    TrimInputs,
    ClockJump,
}

impl Disruption {
    pub(super) const ALL: [Disruption; 19] = [
        Disruption::Crash,
        Disruption::PowerLoss,
        Disruption::DiskLost,
        Disruption::LongOutage,
        Disruption::Stop,
        Disruption::StartAnother,
        Disruption::PauseProcess,
        Disruption::ZombieCommit,
        Disruption::StallThread,
        Disruption::ThreadFails,
        Disruption::Reshuffle,
        Disruption::MoveCoordinator,
        Disruption::FillDisk,
        Disruption::FailWrites,
        Disruption::SlowDisk,
        Disruption::Compact,
        Disruption::TrimChangelogs,
        Disruption::TrimInputs,
        Disruption::ClockJump,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Disruption::Crash | Disruption::CrashOf(_) => "crash",
            Disruption::PowerLoss => "crash with lost power",
            Disruption::DiskLost => "crash with lost disk",
            Disruption::LongOutage => "crash with a long outage",
            Disruption::Stop => "graceful stop",
            Disruption::StartAnother => "instance started",
            Disruption::PauseProcess => "process paused",
            Disruption::ZombieCommit => "process paused in a commit",
            Disruption::StallThread => "thread stalled",
            Disruption::ThreadFails => "thread failed",
            Disruption::Reshuffle => "rebalance forced",
            Disruption::MoveCoordinator => "coordinator moved",
            Disruption::FillDisk => "disk full",
            Disruption::FailWrites => "disk writes failed",
            Disruption::SlowDisk => "disk slow",
            Disruption::Compact => "changelogs compacted",
            Disruption::TrimChangelogs => "changelogs trimmed",
            Disruption::TrimInputs => "processed inputs trimmed",
            Disruption::ClockJump => "clock jumped at restart",
        }
    }
}

impl World<'_> {
    pub(super) fn disrupt(&mut self, disruption: Disruption) {
        if self.healed || self.is_struck() {
            return;
        }
        let instance = usize::try_from(self.rng.below(self.instances.len() as u64)).unwrap_or(0);
        if let Disruption::CrashOf(key) = disruption {
            let machine = self.instances.get(key.instance);
            if machine.is_some_and(|machine| machine.life == key.life) {
                self.crash(key.instance);
            }
            return;
        }
        self.note(|| format!("disruption: {disruption:?} ({instance})"));
        let up = self.instances.get(instance).is_some_and(|machine| machine.up);
        if self.befalls(disruption, instance, up) {
            self.weather.count(disruption.name());
        }
    }

    /// Carries a disruption out; answers whether there was something to disrupt.
    fn befalls(&mut self, disruption: Disruption, instance: usize, up: bool) -> bool {
        match disruption {
            Disruption::Reshuffle => {
                let seed = self.rng.next_u64();
                self.group.reshuffle(seed);
            }
            Disruption::MoveCoordinator if !self.coordinator_away => {
                self.coordinator_away = true;
                let ms = 1 + self.random_ms(6_000);
                self.after(ms, Event::Undo(Undo::CoordinatorBack));
            }
            Disruption::StartAnother if self.instances.len() < 4 => {
                let number = self.instances.len();
                self.instances.push(Instance::new(number));
                self.plan_start(number, 1);
            }
            Disruption::ZombieCommit => self.weather.zombie_next = true,
            Disruption::Compact => self.compact(),
            Disruption::TrimChangelogs => return self.trim_changelogs(),
            Disruption::TrimInputs => return self.trim_inputs(),
            Disruption::FillDisk | Disruption::FailWrites | Disruption::SlowDisk => {
                self.spoil_disk(disruption, instance)
            }
            _ if up => return self.befalls_process(disruption, instance),
            _ => return false,
        }
        true
    }

    fn befalls_process(&mut self, disruption: Disruption, instance: usize) -> bool {
        let disk = self.instances.get(instance).map(|machine| machine.disk.clone());
        match disruption {
            Disruption::Crash => self.crash(instance),
            Disruption::LongOutage => {
                self.crash(instance);
                let ms = 60_000 + self.random_ms(120_000);
                self.hold_start(instance, ms);
            }
            Disruption::PowerLoss => {
                self.crash(instance);
                let writes = usize::try_from(1 + self.rng.below(3)).unwrap_or(1);
                if let Some(disk) = disk {
                    disk.lose_power(writes);
                }
            }
            Disruption::DiskLost => {
                self.crash(instance);
                if let Some(machine) = self.instances.get_mut(instance) {
                    machine.disk = MemoryDisk::default();
                    machine.disk.set_full(machine.disk_is_full);
                    machine.identity += 1;
                }
            }
            Disruption::ClockJump => {
                let offset_ms = self.random_ms(40_000) - 20_000;
                if let Some(machine) = self.instances.get_mut(instance) {
                    machine.clock_offset_ms = offset_ms;
                }
                self.crash(instance);
            }
            Disruption::Stop => self.stop(instance),
            Disruption::PauseProcess => {
                let ms = zombie_ms(&mut self.rng);
                self.pause(instance, ms);
            }
            Disruption::StallThread | Disruption::ThreadFails => {
                let chosen = usize::try_from(self.rng.below(self.weather.threads as u64)).unwrap_or(0);
                let key = self.instances.get(instance).and_then(|machine| {
                    let thread = machine.threads.get(chosen)?.as_ref()?;
                    Some(thread.key)
                });
                let Some(key) = key else { return false };
                if disruption == Disruption::StallThread {
                    let ms = zombie_ms(&mut self.rng);
                    self.stall(key, ms);
                } else {
                    return self.fail_thread(key);
                }
            }
            _ => return false,
        }
        true
    }

    fn spoil_disk(&mut self, disruption: Disruption, instance: usize) {
        self.given_up += u64::from(disruption != Disruption::SlowDisk);
        let (ms, writes) = (1 + self.random_ms(8_000), 1 + self.rng.below(2));
        let now_ms = self.now_ms;
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        match disruption {
            Disruption::SlowDisk => machine.disk_slow_until_ms = now_ms + ms,
            Disruption::FailWrites => {
                machine.writes_fail = true;
                machine.disk_was_bad = true;
                machine.disk.fail_writes(usize::try_from(writes).unwrap_or(1));
            }
            _ => {
                machine.disk_is_full = true;
                machine.disk_was_bad = true;
                machine.disk.set_full(true);
                self.after(ms, Event::Undo(Undo::DiskFreed(instance)));
            }
        }
    }

    /// How much longer a write takes now, ms.
    pub(super) fn disk_ms(&mut self, instance: usize) -> i64 {
        let slow = self
            .instances
            .get(instance)
            .is_some_and(|machine| machine.disk_slow_until_ms > self.now_ms);
        if slow { self.random_ms(3_000) } else { 0 }
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

    /// A thread of a process stands still; its heartbeats go on.
    fn stall(&mut self, key: Key, ms: i64) {
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

    /// A thread meets an error at the place where it is; one that waits for a broker can't.
    fn fail_thread(&mut self, key: Key) -> bool {
        let Some(thread) = self.take(key) else { return false };
        if thread.blocked || thread.leaving || thread.dying.is_some() {
            self.put_back(thread);
            return false;
        }
        let time_ms = self.now_ms;
        let error = Error::Processing {
            node: "(any)".to_owned(),
            task: TaskId::new(0, 0),
            place: FailurePlace::Punctuation { time_ms },
            message: MARK.to_owned(),
        };
        self.thread_failed(thread, Box::new(error));
        true
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
