//! Whoever watches the world: what must hold at any time, when a phase is done, and when all is.

use streams_core::TopicPartition;
use streams_core::test_driver::Log;

use super::world::{Event, QUIET_MS, SLOW_QUIET_MS, START_MS, Undo, World};

impl World<'_> {
    /// Committed offsets never go back: that would be a commit of work which another member did already.
    pub(super) fn check_offsets(&mut self) {
        let scenario = self.scenario;
        for topic in &scenario.sources {
            for partition in 0..scenario.topics.partitions(topic).unwrap_or(0) {
                let topic_partition = TopicPartition::new(&**topic, partition);
                let Some((offset, _)) = self.broker.committed(&topic_partition) else {
                    continue;
                };
                let offset = *offset;
                let seen = self.committed_seen.entry(topic_partition.clone()).or_insert(offset);
                if *seen > offset {
                    let seen = *seen;
                    self.fail(format!(
                        "the committed offset of {topic_partition} went back from {seen} to {offset}"
                    ));
                    return;
                }
                *seen = offset;
            }
        }
    }

    /// The highest event time of all inputs, ms.
    pub(super) fn newest_ms(&self) -> Option<i64> {
        let records = self.phases.iter().flatten();
        records.map(|record| record.timestamp_ms).max()
    }

    /// Looks whether a phase is done, and whether all is.
    pub(super) fn watch(&mut self) {
        self.after(250, Event::Watch);
        let ends: i64 = self
            .broker
            .topic_names()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .iter()
            .map(|topic| self.end_of(topic))
            .sum();
        if ends != self.seen_end || self.is_struck() || !self.is_consumed() {
            self.seen_end = ends;
            self.quiet_since_ms = self.now_ms;
        }
        self.watch_harm();
        if self.now_ms >= self.weather.until_ms && !self.healed && !self.is_struck() {
            self.heal();
        }
        // Whoever has just got its tasks may still have something to do by the wall clock.
        if self.phase + 1 >= self.phases.len() && !self.is_settled() {
            self.settled_since_ms = self.now_ms;
        }
        let all_fed = self.phases.get(self.phase).is_none_or(|phase| self.fed >= phase.len());
        let quiet = all_fed && !self.is_struck() && self.now_ms - self.quiet_since_ms >= self.scenario.settle_ms;
        if quiet && self.phase + 1 < self.phases.len() {
            self.phase += 1;
            self.fed = 0;
            self.quiet_since_ms = self.now_ms;
            self.note(|| "the next phase begins".to_owned());
            self.feed_phase();
        } else if quiet && self.phase + 1 >= self.phases.len() {
            self.done = self.healed && self.now_ms - self.settled_since_ms >= self.scenario.settle_ms;
            if !self.healed
                && !self.is_struck()
                && self.weather.calamity.is_none()
                && self.weather.until_ms > self.now_ms + 8_000
            {
                // Nothing is left to go wrong with.
                self.weather.until_ms = self.now_ms + 8_000;
            }
        }
        let quiet_ms = if self.weather.slow_for_ever {
            SLOW_QUIET_MS
        } else {
            QUIET_MS
        };
        if self.healed && self.hung_input.is_none() && self.now_ms - self.weather.until_ms > quiet_ms {
            self.fail(format!(
                "livelock: not done {} s after the last fault. {}",
                quiet_ms / 1_000,
                self.show()
            ));
        }
    }

    /// The end of a topic's data; the markers of commits that only moved positions do not count.
    fn end_of(&self, topic: &str) -> i64 {
        let count = self.broker.partitions(topic).unwrap_or(0);
        let end = |partition| {
            let log = self.broker.log(&TopicPartition::new(topic, partition));
            log.map_or(0, Log::high_watermark)
        };
        (0..count).map(end).sum()
    }

    /// Whether every record of every input is committed as processed, and every global table has all.
    pub(super) fn is_consumed(&self) -> bool {
        if self.broker.has_open_transaction() {
            return false;
        }
        let scenario = self.scenario;
        for topic in &scenario.sources {
            for partition in 0..scenario.topics.partitions(topic).unwrap_or(0) {
                let topic_partition = TopicPartition::new(&**topic, partition);
                let Some(log) = self.broker.log(&topic_partition) else {
                    continue;
                };
                let committed = self.broker.committed(&topic_partition).map_or(0, |(offset, _)| *offset);
                // What an open transaction holds may be records.
                let held = log.last_stable_offset() < log.high_watermark();
                if held || !log.read_committed(committed, 1).0.is_empty() {
                    return false;
                }
            }
        }
        self.instances.iter().filter(|instance| instance.up).all(|instance| {
            instance.global.as_ref().is_none_or(|global| {
                global.consumer.positions().all(|(topic_partition, position)| {
                    let end = self.broker.log(topic_partition).map_or(0, Log::high_watermark);
                    position >= end
                })
            })
        })
    }

    /// Whether every task runs at exactly one thread, and it is the one that the group knows.
    fn is_settled(&mut self) -> bool {
        let mut owned = Vec::new();
        for instance in self.instances.iter().filter(|instance| instance.up) {
            let awake = instance.paused_until_ms.max(instance.threads_stalled_until_ms) <= self.now_ms;
            if instance.threads.is_empty() || !instance.replacing.is_empty() || !awake {
                return false;
            }
            for thread in instance.threads.iter().flatten() {
                let status = thread.core.status();
                if !status.settled || thread.wakes_at_ms > self.now_ms + 500 {
                    return false;
                }
                owned.extend(status.tasks.iter().map(|task| task.id));
            }
        }
        owned.sort_unstable();
        owned.iter().eq(self.group.tasks()) && self.group.is_stable()
    }

    /// Nothing goes wrong from now on.
    fn heal(&mut self) {
        self.note(|| "nothing goes wrong from now on".to_owned());
        self.healed = true;
        self.weather.until_ms = self.now_ms;
        self.broker.delay_markers(false);
        while self.broker.write_marker(0) {}
        self.undo(Undo::CoordinatorBack);
        self.end_foreign();
        self.end_user_faults();
        for instance in 0..self.instances.len() {
            self.undo(Undo::DiskFreed(instance));
            // Who is paused wakes up by itself.
            self.hold_start(instance, 0);
            if let Some(machine) = self.instances.get_mut(instance) {
                machine.writes_fail = false;
                machine.disk.fail_writes(0);
                if !machine.up {
                    self.plan_start(instance, 100);
                }
            }
        }
    }

    /// The state of all, for a report.
    pub(super) fn show(&self) -> String {
        let mut lines = vec![
            self.group.show(),
            format!(
                "phase {} of {}, {} records fed",
                self.phase + 1,
                self.phases.len(),
                self.fed
            ),
        ];
        for instance in &self.instances {
            lines.push(format!(
                "instance {} life {} up {} stopping {} paused until {}",
                instance.number,
                instance.life,
                instance.up,
                instance.stopping,
                instance.paused_until_ms - START_MS
            ));
            for thread in instance.threads.iter().flatten() {
                let status = thread.core.status();
                let tasks: Vec<String> = status
                    .tasks
                    .iter()
                    .map(|task| format!("{} {:?} {}", task.id, task.phase, task.buffered))
                    .collect();
                lines.push(format!(
                    "  {} at {:?} call {:?} group {:?} tasks [{}] uncommitted {}",
                    thread.key,
                    thread.place,
                    thread.call,
                    thread.core.group(),
                    tasks.join(", "),
                    thread.core.has_uncommitted()
                ));
            }
        }
        for topic in self.scenario.topics.iter().map(|(topic, _)| topic) {
            for partition in 0..self.broker.partitions(topic).unwrap_or(0) {
                let topic_partition = TopicPartition::new(topic, partition);
                if let Some(log) = self.broker.log(&topic_partition) {
                    let committed = self.broker.committed(&topic_partition).map(|(offset, _)| *offset);
                    lines.push(format!(
                        "  {topic_partition}: start {} stable {} end {} committed {committed:?}",
                        log.log_start(),
                        log.last_stable_offset(),
                        log.high_watermark()
                    ));
                }
            }
        }
        lines.join("\n")
    }
}
