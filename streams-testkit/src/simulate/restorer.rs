//! What replays topics into stores beside the stream threads: the restore thread of each, and the global thread. The
//! restore thread is that of the shipped shell (`streams-core/src/kafka/shell/restore_work.rs`): one consumer, all jobs
//! side by side, each changelog as its records come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use streams_core::TaskId;
use streams_core::fetch::{Fetched, PartitionBatch, PartitionId};
use streams_core::restore;
use streams_core::runtime::{Assignment, FailureClass, Outcome, RestoreFailure, RestoreJob, Restored};
use streams_core::test_driver::MemoryConsumer;

use super::calls::failure;
use super::process::Key;
use super::world::{Event, World};

/// How far one changelog of a job is.
struct Part {
    id: PartitionId,
    position: i64,
    buffered: Vec<PartitionBatch>,
    buffered_to: i64,
    records: u64,
}

/// A restore that goes on.
struct Running {
    job: RestoreJob,
    parts: Vec<Part>,
}

/// The restore thread of a stream thread.
#[derive(Default)]
pub(super) struct Restorer {
    waiting: VecDeque<RestoreJob>,
    running: Vec<Running>,
    results: VecDeque<Restored>,
    consumer: MemoryConsumer,
    /// Whose results are waited for, by task and lease.
    wanted: BTreeSet<(TaskId, u64)>,
    next_id: u32,
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
        self.waiting.is_empty() && self.running.is_empty()
    }

    fn start(&mut self, job: RestoreJob) {
        let parts = job.changelogs.iter().map(|changelog| {
            self.next_id += 1;
            Part {
                id: PartitionId(self.next_id),
                position: changelog.from,
                buffered: Vec::new(),
                buffered_to: changelog.from,
                records: 0,
            }
        });
        let mut running = Running {
            parts: parts.collect(),
            job,
        };
        match self.begin(&mut running) {
            Ok(()) => self.running.push(running),
            Err(failure) => self.end(running, Some(failure)),
        }
    }

    fn begin(&mut self, running: &mut Running) -> Result<(), RestoreFailure> {
        let mut assigned = Vec::new();
        let RestoreJob {
            state,
            changelogs,
            incarnation,
            ..
        } = &mut running.job;
        for (part, changelog) in running.parts.iter().zip(&*changelogs) {
            restore::begin(state, changelog)?;
            assigned.push(Assignment {
                topic_partition: changelog.topic_partition.clone(),
                start_offset: changelog.from,
                id: part.id,
                incarnation: *incarnation,
            });
        }
        match self.consumer.assign(assigned) {
            Outcome::Failed(failure) => Err(failure.into()),
            _ => Ok(()),
        }
    }

    fn part(&mut self, id: PartitionId) -> Option<(TaskId, &mut Part)> {
        self.running.iter_mut().find_map(|running| {
            let task = running.job.task;
            let part = running.parts.iter_mut().find(|part| part.id == id)?;
            Some((task, part))
        })
    }

    fn take(&mut self, item: Fetched, failures: &mut BTreeMap<TaskId, RestoreFailure>) {
        match item {
            Fetched::Records(batch) => {
                let last = batch.len().checked_sub(1).map(|last| batch.offset(last));
                if let (Some((_, part)), Some(last)) = (self.part(batch.partition), last) {
                    part.buffered_to = last + 1;
                    part.buffered.push(batch);
                }
            }
            Fetched::Eof { partition, offset, .. } => {
                if let Some((_, part)) = self.part(partition) {
                    part.buffered_to = part.buffered_to.max(offset);
                }
            }
            Fetched::Error(error) => {
                if let Some((task, _)) = error.partition.and_then(|(partition, _)| self.part(partition)) {
                    failures.insert(task, failure(FailureClass::Retriable, "FETCH").into());
                }
            }
        }
    }

    /// Gives the state back with the result.
    fn end(&mut self, mut running: Running, failure: Option<RestoreFailure>) {
        let failure = failure.or_else(|| running.finish().err());
        let ids: Vec<PartitionId> = running.parts.iter().map(|part| part.id).collect();
        self.consumer.unassign(&ids);
        let RestoreJob {
            task,
            incarnation,
            state,
            changelogs,
        } = running.job;
        let records = changelogs.into_iter().zip(&running.parts);
        self.results.push_back(Restored {
            task,
            incarnation,
            state,
            records: records
                .map(|(changelog, part)| (changelog.name, part.records))
                .collect(),
            failure,
        });
    }
}

impl Running {
    fn apply(&mut self) -> Result<(), RestoreFailure> {
        for (part, changelog) in self.parts.iter_mut().zip(&self.job.changelogs) {
            if part.position >= changelog.to {
                // It is done. A source topic goes on with records that are not the restore's.
                part.buffered.clear();
            } else if part.buffered_to > part.position {
                let to = part.buffered_to;
                part.records += restore::apply(&mut self.job.state, changelog, &part.buffered, to)?;
                part.buffered.clear();
                part.position = to;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), RestoreFailure> {
        for (part, changelog) in self.parts.iter().zip(&self.job.changelogs) {
            restore::finish(&mut self.job.state, changelog, part.position)?;
        }
        Ok(())
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
            restorer.start(job);
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
            // The consumer is of no use any more: the next job gets a new one.
            self.note(|| format!("{key}: its restore consumer fails"));
            for running in std::mem::take(&mut restorer.running) {
                restorer.end(running, Some(failure(FailureClass::Retriable, "_TRANSPORT").into()));
            }
            return;
        }
        // Partitions answer when they do.
        let ids: Vec<PartitionId> = restorer
            .running
            .iter()
            .flat_map(|running| running.parts.iter().map(|part| part.id))
            .collect();
        let slow: Vec<PartitionId> = ids.iter().filter(|_| self.rng.below(3) == 0).copied().collect();
        restorer.consumer.set_paused(&ids, false);
        restorer.consumer.set_paused(&slow, true);
        let most = usize::try_from(1 + self.rng.below(30)).unwrap_or(1);
        let fetched = restorer.consumer.fetch(&self.broker, most);
        let mut failures = BTreeMap::new();
        for item in fetched {
            restorer.take(item, &mut failures);
        }
        for number in (0..restorer.running.len()).rev() {
            let Some(running) = restorer.running.get_mut(number) else {
                continue;
            };
            let failed = match failures.remove(&running.job.task) {
                Some(failure) => Some(failure),
                None if !restorer.wanted.contains(&(running.job.task, running.job.incarnation)) => {
                    Some(failure(FailureClass::Retriable, "NOT_WANTED").into())
                }
                None => running.apply().err(),
            };
            if failed.is_some() || self.is_restored(running) {
                let running = restorer.running.swap_remove(number);
                self.note(|| {
                    let ends = running.parts.iter().zip(&running.job.changelogs);
                    let ends: Vec<String> = ends
                        .map(|(part, changelog)| format!("{}@{}", changelog.topic_partition, part.position))
                        .collect();
                    format!(
                        "{key} has restored {} to [{}]: {failed:?}",
                        running.job.task,
                        ends.join(" ")
                    )
                });
                restorer.end(running, failed);
            }
        }
    }

    fn is_restored(&self, running: &Running) -> bool {
        running
            .parts
            .iter()
            .zip(&running.job.changelogs)
            .all(|(part, changelog)| {
                #[allow(unused_mut, reason = "only tests change it")]
                let mut to = changelog.to;
                #[cfg(test)]
                self.mutate_target(&mut to, changelog);
                part.position >= to
            })
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
