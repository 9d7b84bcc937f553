//! Other producers of the inputs: their transactions commit late, abort, time out or hang.

use streams_core::TopicPartition;
use streams_core::test_driver::{LogRecord, ProducerSession};

use super::world::{Event, World};

/// Records that never count.
const NOISE: &[u8] = b"of a transaction that was never committed";

/// The other producers.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    committing: Option<ProducerSession>,
    committing_open: bool,
    aborting: Option<ProducerSession>,
    aborting_open: bool,
    hangs: u64,
    /// Records of transactions that nobody coordinates any more: their partition and the transaction.
    hanging: Vec<(TopicPartition, u64)>,
}

/// How a transaction of another producer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForeignEnd {
    Commits,
    Aborts,
    /// Somebody aborts what hangs.
    IsFound,
}

impl World<'_> {
    /// Appends a record of the input, in a transaction or not; answers its offset.
    pub(super) fn append_input(&mut self, topic_partition: &TopicPartition, record: LogRecord) -> Option<i64> {
        if !self.healed && self.rng.below(100) < self.weather.foreign {
            self.make_noise(topic_partition, &record);
            if let Some(offset) = self.append_in_transaction(topic_partition, &record) {
                return Some(offset);
            }
        }
        let log = self.broker.log_mut(topic_partition)?;
        Some(log.append(record, None))
    }

    fn append_in_transaction(&mut self, topic_partition: &TopicPartition, record: &LogRecord) -> Option<i64> {
        let broker = &mut self.broker;
        let session = self
            .foreign
            .committing
            .get_or_insert_with(|| broker.init_producer("foreign"));
        let sent = broker.send(session, topic_partition, record.clone(), self.now_ms);
        let offset = sent.ok().flatten()?;
        self.weather.count("input in a transaction");
        if !self.foreign.committing_open {
            self.foreign.committing_open = true;
            let ms = 1 + self.random_ms(4_000);
            self.after(ms, Event::Foreign(ForeignEnd::Commits));
        }
        Some(offset)
    }

    /// Now and then a record that never counts comes before.
    fn make_noise(&mut self, topic_partition: &TopicPartition, record: &LogRecord) {
        let noise = LogRecord {
            value: Some(NOISE.to_vec()),
            ..record.clone()
        };
        match self.rng.below(20) {
            0 => {
                self.hang(topic_partition, noise);
                let ms = 1 + self.random_ms(40_000);
                self.after(ms, Event::Foreign(ForeignEnd::IsFound));
            }
            1..4 => {
                let broker = &mut self.broker;
                let session = self
                    .foreign
                    .aborting
                    .get_or_insert_with(|| broker.init_producer("aborting"));
                if broker.send(session, topic_partition, noise, self.now_ms).is_err() {
                    // It timed out: the producer is made anew.
                    self.foreign.aborting = None;
                    self.foreign.aborting_open = false;
                    return;
                }
                self.weather.count("input of an aborted transaction");
                if !self.foreign.aborting_open {
                    self.foreign.aborting_open = true;
                    // Beyond its timeout the broker aborts it.
                    let ms = 1 + self.random_ms(14_000);
                    self.after(ms, Event::Foreign(ForeignEnd::Aborts));
                }
            }
            _ => {}
        }
    }

    /// A record of a transaction that no coordinator knows: it holds all readers until somebody finds it.
    pub(super) fn hang(&mut self, topic_partition: &TopicPartition, record: LogRecord) {
        self.foreign.hangs += 1;
        let number = u64::MAX - self.foreign.hangs;
        if let Some(log) = self.broker.log_mut(topic_partition) {
            log.append(record, Some(number));
            self.note(|| format!("a transaction hangs in {topic_partition}"));
            self.weather.count("hanging transaction in an input");
            self.foreign.hanging.push((topic_partition.clone(), number));
        }
    }

    pub(super) fn foreign_ends(&mut self, end: ForeignEnd) {
        match end {
            ForeignEnd::Commits => {
                if let Some(session) = self
                    .foreign
                    .committing
                    .as_ref()
                    .filter(|_| self.foreign.committing_open)
                    && let Err(error) = self.broker.end_transaction(session, true)
                {
                    self.fail(format!("the simulation lost inputs: {error}"));
                }
                self.foreign.committing_open = false;
            }
            ForeignEnd::Aborts => {
                if let Some(session) = &self.foreign.aborting {
                    let _ = self.broker.end_transaction(session, false);
                }
                self.foreign.aborting_open = false;
            }
            // Nobody finds what is to hang for long; the others wait with it.
            ForeignEnd::IsFound if self.hung_input.is_some() => {}
            ForeignEnd::IsFound => {
                for (topic_partition, number) in std::mem::take(&mut self.foreign.hanging) {
                    if let Some(log) = self.broker.log_mut(&topic_partition) {
                        log.end(number, false);
                    }
                }
            }
        }
    }

    /// Everything that others have begun ends now.
    pub(super) fn end_foreign(&mut self) {
        self.foreign_ends(ForeignEnd::Commits);
        self.foreign_ends(ForeignEnd::Aborts);
        if self.hung_input.is_none() {
            self.foreign_ends(ForeignEnd::IsFound);
        }
    }
}
