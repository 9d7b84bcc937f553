//! A broker in memory: topics, transactions with fencing, a group's committed offsets. No time, no threads.

use std::collections::BTreeMap;

use super::log::{Log, LogRecord};
use crate::TopicPartition;

/// A producer's session: an older one of the same transactional id is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerSession {
    id: String,
    epoch: u32,
}

/// A newer producer has the same transactional id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a newer producer has the same transactional id")]
pub struct Fenced;

#[derive(Debug, Default)]
struct ProducerState {
    epoch: u32,
    open: Option<Transaction>,
}

#[derive(Debug)]
struct Transaction {
    number: u64,
    offsets: Vec<(TopicPartition, i64, String)>,
}

/// A broker in memory.
#[derive(Debug, Default)]
pub struct MemoryBroker {
    topics: BTreeMap<String, Vec<Log>>,
    committed: BTreeMap<TopicPartition, (i64, String)>,
    producers: BTreeMap<String, ProducerState>,
    transactions: u64,
}

impl MemoryBroker {
    /// Makes a topic; one that exists stays as it is.
    pub fn create_topic(&mut self, topic: &str, partitions: i32) {
        let count = usize::try_from(partitions).unwrap_or(0);
        self.topics
            .entry(topic.to_owned())
            .or_insert_with(|| vec![Log::default(); count]);
    }

    /// A topic's partition count.
    #[must_use]
    pub fn partitions(&self, topic: &str) -> Option<i32> {
        self.topics.get(topic).and_then(|logs| i32::try_from(logs.len()).ok())
    }

    /// The names of all topics.
    pub fn topic_names(&self) -> impl Iterator<Item = &str> {
        self.topics.keys().map(String::as_str)
    }

    /// A partition's log.
    #[must_use]
    pub fn log(&self, topic_partition: &TopicPartition) -> Option<&Log> {
        self.topics
            .get(&*topic_partition.topic)?
            .get(usize::try_from(topic_partition.partition).ok()?)
    }

    /// A partition's log, to write outside of transactions.
    pub fn log_mut(&mut self, topic_partition: &TopicPartition) -> Option<&mut Log> {
        self.topics
            .get_mut(&*topic_partition.topic)?
            .get_mut(usize::try_from(topic_partition.partition).ok()?)
    }

    /// All committed records of a topic, partition by partition.
    #[must_use]
    pub fn read_committed(&self, topic: &str) -> Vec<(i32, LogRecord)> {
        let logs = self.topics.get(topic).map(Vec::as_slice).unwrap_or_default();
        let each = (0..).zip(logs).flat_map(|(partition, log)| {
            log.read_committed(0, usize::MAX)
                .0
                .into_iter()
                .map(move |record| (partition, record))
        });
        each.collect()
    }

    /// Starts a session: the open transaction of an earlier one is aborted and that one is fenced.
    pub fn init_producer(&mut self, transactional_id: &str) -> ProducerSession {
        let state = self.producers.entry(transactional_id.to_owned()).or_default();
        state.epoch += 1;
        let session = ProducerSession {
            id: transactional_id.to_owned(),
            epoch: state.epoch,
        };
        if let Some(transaction) = state.open.take() {
            self.end(&transaction, false);
        }
        session
    }

    fn state(&mut self, session: &ProducerSession) -> Result<&mut ProducerState, Fenced> {
        self.producers
            .get_mut(&session.id)
            .filter(|state| state.epoch == session.epoch)
            .ok_or(Fenced)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// When the session is fenced.
    pub fn begin(&mut self, session: &ProducerSession) -> Result<(), Fenced> {
        let number = self.transactions + 1;
        self.state(session)?.open = Some(Transaction {
            number,
            offsets: Vec::new(),
        });
        self.transactions = number;
        Ok(())
    }

    /// Appends a record to the open transaction; answers its offset, `None` if there is no such partition.
    ///
    /// # Errors
    /// When the session is fenced.
    pub fn send(
        &mut self,
        session: &ProducerSession,
        topic_partition: &TopicPartition,
        record: LogRecord,
    ) -> Result<Option<i64>, Fenced> {
        let number = self.state(session)?.open.as_ref().map(|transaction| transaction.number);
        Ok(self.log_mut(topic_partition).map(|log| log.append(record, number)))
    }

    /// Adds offsets to the open transaction.
    ///
    /// # Errors
    /// When the session is fenced.
    pub fn send_offsets(
        &mut self,
        session: &ProducerSession,
        offsets: Vec<(TopicPartition, i64, String)>,
    ) -> Result<(), Fenced> {
        if let Some(transaction) = &mut self.state(session)?.open {
            transaction.offsets.extend(offsets);
        }
        Ok(())
    }

    /// Ends the open transaction, if there is one.
    ///
    /// # Errors
    /// When the session is fenced.
    pub fn end_transaction(&mut self, session: &ProducerSession, committed: bool) -> Result<(), Fenced> {
        if let Some(transaction) = self.state(session)?.open.take() {
            self.end(&transaction, committed);
        }
        Ok(())
    }

    fn end(&mut self, transaction: &Transaction, committed: bool) {
        for log in self.topics.values_mut().flatten() {
            log.end(transaction.number, committed);
        }
        if committed {
            for (topic_partition, offset, metadata) in &transaction.offsets {
                self.committed
                    .insert(topic_partition.clone(), (*offset, metadata.clone()));
            }
        }
    }

    /// The group's committed offset of a partition, with its metadata.
    #[must_use]
    pub fn committed(&self, topic_partition: &TopicPartition) -> Option<&(i64, String)> {
        self.committed.get(topic_partition)
    }

    /// Whether a transaction is open: then committed offsets are not stable.
    #[must_use]
    pub fn has_open_transaction(&self) -> bool {
        self.producers.values().any(|state| state.open.is_some())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Headers;

    fn record() -> LogRecord {
        LogRecord {
            offset: 0,
            timestamp_ms: 0,
            key: None,
            value: None,
            headers: Headers::default(),
        }
    }

    #[test]
    fn a_new_session_aborts_and_fences_the_old_one() {
        let mut broker = MemoryBroker::default();
        broker.create_topic("out", 1);
        let out = TopicPartition::new("out", 0);
        let old = broker.init_producer("tx");
        broker.begin(&old).unwrap();
        broker.send(&old, &out, record()).unwrap();
        broker
            .send_offsets(&old, vec![(out.clone(), 7, String::new())])
            .unwrap();
        let new = broker.init_producer("tx");
        assert_eq!(broker.end_transaction(&old, true), Err(Fenced));
        assert!(broker.read_committed("out").is_empty());
        assert_eq!(broker.committed(&out), None);
        broker.begin(&new).unwrap();
        broker.send(&new, &out, record()).unwrap();
        broker.end_transaction(&new, true).unwrap();
        assert_eq!(broker.read_committed("out").len(), 1);
    }
}
