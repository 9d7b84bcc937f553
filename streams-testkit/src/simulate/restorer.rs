//! What replays topics into stores beside the stream threads: the restore thread of each, and the global thread.

use streams_core::error::ProcessResult;
use streams_core::fetch::PartitionId;
use streams_core::restore;
use streams_core::runtime::{RestoreFailure, Restored};
use streams_core::test_driver::batch_of;

use super::process::{Key, Thread};
use super::world::{Event, World};

impl World<'_> {
    /// The restore thread reads a run of one changelog.
    pub(super) fn restore(&mut self, key: Key) {
        if let Some(until_ms) = self.paused_until(key) {
            return self.at(until_ms, Event::Restore(key));
        }
        let Some(mut thread) = self.take(key) else { return };
        let most = usize::try_from(1 + self.rng.below(30)).unwrap_or(1);
        let failure = match self.restore_some(&mut thread, most) {
            Ok(false) => None,
            Ok(true) => {
                let ms = 1 + self.random_ms(25);
                self.after(ms, Event::Restore(key));
                return self.put_back(thread);
            }
            Err(error) => Some(RestoreFailure::Fatal(error)),
        };
        thread.restore_position = None;
        if let Some(job) = thread.restores.pop_front() {
            self.note(|| format!("{key} has restored {}: {failure:?}", job.task));
            thread.restored.push_back(Restored {
                task: job.task,
                incarnation: job.incarnation,
                state: job.state,
                records: std::mem::take(&mut thread.restored_rows),
                failure,
            });
        }
        thread.restoring = !thread.restores.is_empty();
        if thread.restoring {
            self.after(1, Event::Restore(key));
        }
        self.put_back(thread);
    }

    /// One step of the first job; answers whether it needs more.
    fn restore_some(&mut self, thread: &mut Thread, most: usize) -> ProcessResult<bool> {
        let Some(job) = thread.restores.front_mut() else {
            return Ok(false);
        };
        let (number, position) = match thread.restore_position {
            Some(place) => place,
            None => {
                for changelog in &job.changelogs {
                    restore::begin(&mut job.state, changelog)?;
                }
                (0, job.changelogs.first().map_or(0, |changelog| changelog.from))
            }
        };
        let Some(changelog) = job.changelogs.get(number) else {
            return Ok(false);
        };
        #[allow(unused_mut, reason = "only tests change it")]
        let mut to = changelog.to;
        #[cfg(test)]
        self.mutate_target(&mut to, changelog);
        let mut reached = position;
        if position < to
            && let Some(log) = self.broker.log(&changelog.topic_partition)
        {
            let (records, next) = log.read_committed(position, most);
            if next > position {
                let batch = batch_of(PartitionId(0), job.incarnation, &records);
                let rows = restore::apply(&mut job.state, changelog, &[batch], next)?;
                *thread.restored_rows.entry(changelog.name.clone()).or_default() += rows;
                reached = next;
            }
        }
        if reached < to {
            thread.restore_position = Some((number, reached));
            return Ok(true);
        }
        restore::finish(&mut job.state, changelog, reached)?;
        let next = job
            .changelogs
            .get(number + 1)
            .map(|changelog| (number + 1, changelog.from));
        thread.restore_position = next;
        Ok(next.is_some())
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
            Err(error) => self.instance_failed(instance, &error.to_string()),
        }
    }
}
