//! How stream threads end: gracefully, or with an error that the application answers. Follows the shipped shell
//! (`thread.rs`, `supervise.rs`, `uncaught.rs`): abort, leave, close the stores, and after a pause another thread.

use streams_core::Error;
use streams_core::membership::MembershipCommand;
use streams_core::runtime::Reaction;

use super::process::{Key, Thread};
use super::user_faults::MARK;
use super::world::{Event, World};

/// How long a leave may take, ms.
const LEAVE_MS: i64 = 2_000;
/// How long the last commit of a stopping thread may take, ms.
pub(super) const STOP_MS: i64 = 30_000;

/// The text of a failure that somebody was told.
pub(super) const SIMULATED: &str = "simulated";

impl World<'_> {
    /// A thread met an error and ends; what then happens is the application's answer.
    pub(super) fn thread_failed(&mut self, mut thread: Box<Thread>, error: Box<Error>) {
        let key = thread.key;
        self.given_up += 1;
        self.note(|| format!("{key} ends: {error}"));
        if !self.excuses(&thread, &error) {
            self.put_back(thread);
            return self.fail(format!("{key} stopped: {error}"));
        }
        self.heed(&error);
        let (clock_ms, answer) = (self.clock_ms(key.instance), self.weather.answer);
        let Some(machine) = self.instances.get_mut(key.instance) else {
            return;
        };
        let reaction = machine.failures.react(key.thread + 1, error, answer, clock_ms);
        let stopping = machine.stopping;
        let after_ms = match reaction {
            Reaction::Replace { after_ms, .. } if !stopping && !self.is_struck() => Some(after_ms),
            _ => None,
        };
        let what = if after_ms.is_some() {
            "thread replaced"
        } else {
            "process stopped by a thread's error"
        };
        self.weather.count(what);
        thread.dying = Some(after_ms);
        self.put_back(thread);
        if after_ms.is_none() && !stopping {
            self.stop(key.instance);
        }
        self.die(key);
    }

    /// Whether a thread may end with this error in this world.
    fn excuses(&self, thread: &Thread, error: &Error) -> bool {
        match error {
            Error::State { .. } => self.disk_was_bad(thread.key.instance),
            Error::Processing { message, .. } => message.contains(MARK),
            Error::Timeout { .. } => thread.closing,
            // A record that was told not to be delivered.
            Error::Produce { message, .. } => message == SIMULATED,
            Error::Repeated { source, .. } => self.excuses(thread, source),
            error => self.expects(error) || self.tolerates(error),
        }
    }

    fn disk_was_bad(&self, instance: usize) -> bool {
        let machine = self.instances.get(instance);
        machine.is_some_and(|machine| machine.disk_was_bad)
    }

    /// A whole instance can't start or go on.
    pub(super) fn instance_failed(&mut self, instance: usize, error: Box<Error>) {
        let excused = match &*error {
            Error::State { .. } => self.disk_was_bad(instance),
            error => self.expects(error),
        };
        if !excused {
            return self.fail(format!("instance {instance} stopped: {error}"));
        }
        self.note(|| format!("instance {instance} stops: {error}"));
        self.heed(&error);
        self.weather.count("process stopped by an error of its own");
        self.crash(instance);
    }

    /// A dying thread waits for its commit call, aborts what it can and leaves.
    pub(super) fn die(&mut self, key: Key) {
        let Some(mut thread) = self.take(key) else { return };
        if thread.answered.take().is_some() {
            thread.call = None;
        }
        if thread.call.is_some() || thread.leaving {
            return self.put_back(thread);
        }
        if let Some(session) = thread.producer.session.clone() {
            if self.rng.below(3) > 0 && !self.coordinator_away {
                thread.producer.purge();
                let ended = self.broker.end_transaction(&session, false);
                self.note(|| format!("{key} aborts what is open: {ended:?}"));
            } else {
                self.scatter(&mut thread);
            }
        } else {
            self.scatter(&mut thread);
        }
        self.leave(thread);
    }

    /// The instance closes gracefully: every thread commits, gives back and leaves.
    pub(super) fn stop(&mut self, instance: usize) {
        let clock_ms = self.clock_ms(instance);
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        if machine.stopping || machine.threads.is_empty() {
            return;
        }
        machine.stopping = true;
        machine.replacing.clear();
        for thread in machine.threads.iter_mut().flatten() {
            if thread.dying.is_some() {
                continue;
            }
            thread.closing = true;
            thread.closing_until_ms = clock_ms + STOP_MS;
            thread.waiting = None;
            let group = thread.core.group().clone();
            thread.core.on_assigned(group, []);
        }
        self.look_at_end(instance);
    }

    pub(super) fn leave(&mut self, mut thread: Box<Thread>) {
        let key = thread.key;
        thread.leaving = true;
        self.note(|| format!("{key} leaves"));
        self.after(LEAVE_MS, Event::LeaveOver(key));
        let shutdown_application = false;
        self.command(&mut thread, MembershipCommand::Leave { shutdown_application });
        self.put_back(thread);
    }

    /// The group did not answer the leave in time; it finds out by the session timeout.
    pub(super) fn leave_over(&mut self, key: Key) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::LeaveOver(key));
        }
        if let Some(thread) = self.take(key) {
            self.member_ended(thread);
        }
    }

    /// The membership of a thread has ended.
    pub(super) fn member_ended(&mut self, thread: Box<Thread>) {
        let key = thread.key;
        if !thread.leaving {
            return self.put_back(thread);
        }
        let after_ms = thread.dying.flatten();
        // Its stores close here.
        drop(thread);
        let Some(machine) = self.instances.get_mut(key.instance) else {
            return;
        };
        if let (Some(after_ms), false) = (after_ms, machine.stopping) {
            machine.replacing.insert(key.thread);
            return self.after(after_ms, Event::Replace(key));
        }
        self.look_at_end(key.instance);
    }

    /// Another thread takes the place of one that failed.
    pub(super) fn replace(&mut self, key: Key) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::Replace(key));
        }
        let Some(machine) = self.instances.get_mut(key.instance) else {
            return;
        };
        if machine.life != key.life || !machine.replacing.remove(&key.thread) {
            return;
        }
        self.note(|| format!("{key} is replaced"));
        if let Err(error) = self.start_thread(key.instance, key.thread, key.turn + 1) {
            self.fail(format!("{key} could not be replaced: {error}"));
        }
    }

    /// Whether the process has no thread any more and will have none.
    fn look_at_end(&mut self, instance: usize) {
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        if !machine.threads.iter().all(Option::is_none) || !machine.replacing.is_empty() {
            return;
        }
        machine.up = false;
        machine.threads.clear();
        machine.global = None;
        self.note(|| format!("instance {instance} has stopped"));
        let after_ms = self.random_ms(15_000);
        self.plan_start(instance, after_ms);
    }
}
