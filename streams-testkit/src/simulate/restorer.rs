//! What replays topics into stores beside the stream threads: the restore thread of each, and the global thread. What the
//! restore thread does with what it has fetched is the core's [`SideBySide`]; its loop is that of the shipped shell
//! (`streams-core/src/kafka/shell/restore_work.rs`).

use std::collections::{BTreeSet, VecDeque};

use streams_core::TaskId;
use streams_core::fetch::PartitionId;
use streams_core::restore::{EndedRestore, SideBySide};
use streams_core::runtime::{CallFailure, FailureClass, Outcome, RestoreJob, Restored};
use streams_core::test_driver::MemoryConsumer;

use super::calls::failure;
use super::process::Key;
use super::world::{Event, World};

/// The restore thread of a stream thread.
#[derive(Default)]
pub(super) struct Restorer {
    waiting: VecDeque<RestoreJob>,
    restores: SideBySide,
    results: VecDeque<Restored>,
    consumer: MemoryConsumer,
    /// Whose results are waited for, by task and lease.
    wanted: BTreeSet<(TaskId, u64)>,
    /// A round is planned.
    pub(super) awake: bool,
}

impl Restorer {
    pub(super) fn submit(&mut self, job: RestoreJob) {
        self.wanted.insert((job.task, job.incarnation));
        self.waiting.push_back(job);
    }

    /// A finished job, if there is one.
    pub(super) fn try_result(&mut self) -> Option<Restored> {
        let restored = self.results.pop_front()?;
        self.wanted.remove(&(restored.task, restored.incarnation));
        Some(restored)
    }

    /// Ends the restores that `waited_for` does not confirm any more.
    pub(super) fn keep(&mut self, waited_for: impl Fn(TaskId, u64) -> bool) {
        self.wanted.retain(|(task, lease)| waited_for(*task, *lease));
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.restores.is_empty()
    }

    fn start(&mut self, job: RestoreJob, now_ms: i64) {
        let lease = (job.task, job.incarnation);
        let assignments = match self.restores.start(job, now_ms) {
            Ok(assignments) => assignments,
            Err(ended) => return self.end(*ended),
        };
        if let Outcome::Failed(failure) = self.consumer.assign(assignments)
            && let Some(ended) = self.restores.fail(lease.0, lease.1, &failure)
        {
            self.end(ended);
        }
    }

    /// The consumer is of no use any more: the next job gets a new one.
    fn lose_consumer(&mut self, failure: &CallFailure) {
        for ended in self.restores.fail_all(failure) {
            self.end(ended);
        }
    }

    /// Gives the state back with the result.
    fn end(&mut self, ended: EndedRestore) {
        self.consumer.unassign(&ended.partitions);
        self.results.push_back(ended.restored);
    }
}

impl World<'_> {
    /// One round of the restore thread.
    pub(super) fn restore(&mut self, key: Key) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::Restore(key));
        }
        let Some(mut thread) = self.take(key) else { return };
        let restorer = &mut thread.restorer;
        while let Some(job) = restorer.waiting.pop_front() {
            restorer.start(job, self.now_ms);
        }
        self.restore_round(key, restorer);
        restorer.awake = !restorer.is_idle();
        if restorer.awake {
            let ms = 1 + self.random_ms(25) + self.disk_ms(key.instance);
            self.after(ms, Event::Restore(key));
        }
        self.put_back(thread);
    }

    fn restore_round(&mut self, key: Key, restorer: &mut Restorer) {
        if self.weather.fetch_fails(&mut self.rng, self.now_ms) {
            self.note(|| format!("{key}: its restore consumer fails"));
            return restorer.lose_consumer(&failure(FailureClass::Retriable, "_TRANSPORT"));
        }
        // Partitions answer when they do.
        let ids: Vec<PartitionId> = restorer.restores.partitions().collect();
        let slow: Vec<PartitionId> = ids.iter().filter(|_| self.rng.below(3) == 0).copied().collect();
        restorer.consumer.set_paused(&ids, false);
        restorer.consumer.set_paused(&slow, true);
        let most = usize::try_from(1 + self.rng.below(30)).unwrap_or(1);
        for item in restorer.consumer.fetch(&self.broker, most) {
            restorer.restores.take(item);
        }
        let wanted = &restorer.wanted;
        let is_wanted = |task, lease| wanted.contains(&(task, lease));
        for ended in restorer.restores.round(self.now_ms, is_wanted, || {}) {
            self.note(|| {
                let at = |changelog: &streams_core::runtime::ChangelogRestore| changelog.topic_partition.to_string();
                let ends = ended.changelogs.iter();
                let ends: Vec<String> = ends.map(|(changelog, to)| format!("{}@{to}", at(changelog))).collect();
                format!(
                    "{key} has restored {} to [{}]: {:?}",
                    ended.restored.task,
                    ends.join(" "),
                    ended.restored.failure
                )
            });
            restorer.end(ended);
        }
    }

    pub(super) fn global(&mut self, instance: usize, life: u32) {
        let (now_ms, most) = (self.now_ms, self.weather.fetch_records);
        let clock_ms = self.clock_ms(instance);
        let Some(machine) = self.instances.get_mut(instance) else {
            return;
        };
        if !machine.up || machine.life != life {
            return;
        }
        if machine.paused_until_ms > now_ms {
            let until_ms = machine.paused_until_ms;
            return self.at(until_ms, Event::Global(instance, life));
        }
        let Some(global) = &mut machine.global else { return };
        let mut fetched = global.consumer.fetch(&self.broker, most);
        let applied = global.core.apply(&mut fetched, clock_ms);
        let starts = global.core.is_restored() && machine.threads.is_empty() && !machine.stopping;
        match applied {
            Ok(_) => {
                let ms = 1 + self.random_ms(60);
                self.after(ms, Event::Global(instance, life));
                if starts {
                    self.start_threads(instance);
                }
            }
            Err(error) => self.instance_failed(instance, error),
        }
    }
}
