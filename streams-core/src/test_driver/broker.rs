//! A broker in memory: topics, transactions with fencing and a time limit, a group's committed offsets. No threads, and
//! no time but what it is told.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Log, LogRecord};
use crate::TopicPartition;

/// A producer's session: an older one of the same transactional id is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerSession {
    id: String,
    epoch: u32,
}

/// Why a producer's request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// A newer producer has the same transactional id, or the transaction took too long and its producer was fenced.
    #[error("a newer producer has the same transactional id, or the transaction timed out")]
    Fenced,
    /// There is no transaction that this could be part of (`INVALID_TXN_STATE`).
    #[error("the transaction is not open")]
    NotOpen,
    /// The markers of the last transaction are still being written (`CONCURRENT_TRANSACTIONS`): ask again.
    #[error("the last transaction is still being ended")]
    Busy,
}

#[derive(Debug, Default)]
struct ProducerState {
    epoch: u32,
    open: Option<Transaction>,
    /// The outcome is decided, and markers are still to be written.
    ending: Option<(Transaction, bool)>,
    /// How the last transaction ended.
    last: Option<bool>,
}

#[derive(Debug, Default)]
struct Transaction {
    number: u64,
    began_ms: i64,
    partitions: BTreeSet<TopicPartition>,
    /// Offsets with the number of their request: of two transactions the later request wins, whichever ends first.
    offsets: BTreeMap<TopicPartition, (u64, i64, String)>,
}

impl Transaction {
    /// One for each partition, and one for the group's offsets.
    fn markers(&self) -> usize {
        self.partitions.len() + usize::from(!self.offsets.is_empty())
    }
}

/// A broker in memory.
///
/// A transaction ends in two steps, as on a broker: the outcome is decided, then each partition gets its marker. Here
/// [`end_transaction`](Self::end_transaction) does both, unless [`delay_markers`](Self::delay_markers) leaves the second
/// to [`write_marker`](Self::write_marker).
#[derive(Debug, Default)]
pub struct MemoryBroker {
    topics: BTreeMap<String, Vec<Log>>,
    committed: BTreeMap<TopicPartition, (u64, (i64, String))>,
    producers: BTreeMap<String, ProducerState>,
    transactions: u64,
    offset_requests: u64,
    delay_markers: bool,
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

    /// From now on markers wait for [`write_marker`](Self::write_marker), or are written at once again.
    pub fn delay_markers(&mut self, delay: bool) {
        self.delay_markers = delay;
    }

    /// Starts a session (`InitProducerId`): an earlier one is fenced, its open transaction aborted, and all markers of the
    /// id are written.
    pub fn init_producer(&mut self, transactional_id: &str) -> ProducerSession {
        let state = self.producers.entry(transactional_id.to_owned()).or_default();
        state.epoch += 1;
        let epoch = state.epoch;
        let open = state.open.take().map(|transaction| (transaction, false));
        let ending = state.ending.take();
        for (transaction, committed) in ending.into_iter().chain(open) {
            self.finish(transactional_id, transaction, committed);
        }
        ProducerSession {
            id: transactional_id.to_owned(),
            epoch,
        }
    }

    fn state(&mut self, session: &ProducerSession) -> Result<&mut ProducerState, TransactionError> {
        self.producers
            .get_mut(&session.id)
            .filter(|state| state.epoch == session.epoch)
            .ok_or(TransactionError::Fenced)
    }

    /// The open transaction; what is sent first opens it, since a broker does not hear of a client's begin.
    fn transaction(&mut self, session: &ProducerSession, now_ms: i64) -> Result<&mut Transaction, TransactionError> {
        let number = self.transactions + 1;
        let state = self.state(session)?;
        if state.ending.is_some() {
            return Err(TransactionError::Busy);
        }
        if state.open.is_none() {
            self.transactions = number;
        }
        let state = self.state(session)?;
        Ok(state.open.get_or_insert_with(|| Transaction {
            number,
            began_ms: now_ms,
            ..Transaction::default()
        }))
    }

    /// Adds the partition to the open transaction and appends a record; answers its offset, `None` if there is no such
    /// partition.
    ///
    /// # Errors
    /// [`TransactionError::Fenced`], [`TransactionError::Busy`].
    pub fn send(
        &mut self,
        session: &ProducerSession,
        topic_partition: &TopicPartition,
        record: LogRecord,
        now_ms: i64,
    ) -> Result<Option<i64>, TransactionError> {
        if self.log(topic_partition).is_none() {
            return Ok(None);
        }
        let transaction = self.transaction(session, now_ms)?;
        transaction.partitions.insert(topic_partition.clone());
        let number = transaction.number;
        Ok(self
            .log_mut(topic_partition)
            .map(|log| log.append(record, Some(number))))
    }

    /// Appends a record that arrives late: it is taken only into an open transaction that has the partition.
    ///
    /// # Errors
    /// [`TransactionError::Fenced`], [`TransactionError::NotOpen`].
    pub fn send_late(
        &mut self,
        session: &ProducerSession,
        topic_partition: &TopicPartition,
        record: LogRecord,
    ) -> Result<(), TransactionError> {
        let open = self.state(session)?.open.as_ref();
        let number = open
            .filter(|open| open.partitions.contains(topic_partition))
            .map(|open| open.number)
            .ok_or(TransactionError::NotOpen)?;
        if let Some(log) = self.log_mut(topic_partition) {
            log.append(record, Some(number));
        }
        Ok(())
    }

    /// Adds offsets to the open transaction. Whether the group takes them was asked before.
    ///
    /// # Errors
    /// [`TransactionError::Fenced`], [`TransactionError::Busy`].
    pub fn send_offsets(
        &mut self,
        session: &ProducerSession,
        offsets: Vec<(TopicPartition, i64, String)>,
        now_ms: i64,
    ) -> Result<(), TransactionError> {
        let request = self.offset_requests + 1;
        let transaction = self.transaction(session, now_ms)?;
        for (topic_partition, offset, metadata) in offsets {
            transaction.offsets.insert(topic_partition, (request, offset, metadata));
        }
        self.offset_requests = request;
        Ok(())
    }

    /// Commits offsets of the group outside of transactions. Whether the group takes them was asked before.
    pub fn commit_offsets(&mut self, offsets: Vec<(TopicPartition, i64, String)>) {
        self.offset_requests += 1;
        let request = self.offset_requests;
        for (topic_partition, offset, metadata) in offsets {
            self.committed.insert(topic_partition, (request, (offset, metadata)));
        }
    }

    /// Ends the open transaction, if there is one. Asked again it gives the same answer.
    ///
    /// # Errors
    /// [`TransactionError::Fenced`]; [`TransactionError::NotOpen`] when it ended the other way, or there is nothing to commit.
    pub fn end_transaction(&mut self, session: &ProducerSession, committed: bool) -> Result<(), TransactionError> {
        let delay = self.delay_markers;
        let state = self.state(session)?;
        if let Some((_, decided)) = &state.ending {
            return if *decided == committed {
                Ok(())
            } else {
                Err(TransactionError::NotOpen)
            };
        }
        let Some(transaction) = state.open.take() else {
            let again = state.last == Some(committed);
            return if again || !committed {
                Ok(())
            } else {
                Err(TransactionError::NotOpen)
            };
        };
        if delay && transaction.markers() > 0 {
            state.ending = Some((transaction, committed));
        } else {
            self.finish(&session.id, transaction, committed);
        }
        Ok(())
    }

    /// Aborts every transaction that is open for longer than `timeout_ms` and fences its producer; answers their ids.
    pub fn end_overdue(&mut self, now_ms: i64, timeout_ms: i64) -> Vec<String> {
        let overdue = |state: &ProducerState| {
            let open = state.open.as_ref();
            open.is_some_and(|transaction| now_ms - transaction.began_ms >= timeout_ms)
        };
        let mut ended = Vec::new();
        for (id, state) in &mut self.producers {
            if overdue(state) {
                state.epoch += 1;
                state.ending = state.open.take().map(|transaction| (transaction, false));
                ended.push(id.clone());
            }
        }
        if !self.delay_markers {
            while self.write_marker(0) {}
        }
        ended
    }

    /// Markers that are still to be written.
    #[must_use]
    pub fn waiting_markers(&self) -> usize {
        let endings = self.producers.values().filter_map(|state| state.ending.as_ref());
        endings.map(|(transaction, _)| transaction.markers()).sum()
    }

    /// Writes one waiting marker, that of a log or those of the group's offsets; `which` chooses among them. Answers
    /// whether there was one.
    pub fn write_marker(&mut self, which: usize) -> bool {
        let mut left = which.checked_rem(self.waiting_markers()).unwrap_or(0);
        let mut chosen = None;
        for (id, state) in &self.producers {
            let Some((transaction, committed)) = &state.ending else {
                continue;
            };
            if left < transaction.markers() {
                let partition = transaction.partitions.iter().nth(left).cloned();
                chosen = Some((id.clone(), transaction.number, *committed, partition));
                break;
            }
            left -= transaction.markers();
        }
        let Some((id, number, committed, partition)) = chosen else {
            return false;
        };
        // What has no partition is the group's: its offsets count from now on.
        let mut offsets = BTreeMap::new();
        if let Some(state) = self.producers.get_mut(&id)
            && let Some((transaction, _)) = &mut state.ending
        {
            match &partition {
                Some(partition) => drop(transaction.partitions.remove(partition)),
                None => offsets = std::mem::take(&mut transaction.offsets),
            }
            if transaction.markers() == 0 {
                state.ending = None;
                state.last = Some(committed);
            }
        }
        if let Some(log) = partition.and_then(|partition| self.log_mut(&partition)) {
            log.end(number, committed);
        }
        if committed {
            self.take_offsets(offsets);
        }
        true
    }

    fn finish(&mut self, id: &str, transaction: Transaction, committed: bool) {
        for topic_partition in &transaction.partitions {
            if let Some(log) = self.log_mut(topic_partition) {
                log.end(transaction.number, committed);
            }
        }
        if committed {
            self.take_offsets(transaction.offsets);
        }
        if let Some(state) = self.producers.get_mut(id) {
            state.last = Some(committed);
        }
    }

    fn take_offsets(&mut self, offsets: BTreeMap<TopicPartition, (u64, i64, String)>) {
        for (topic_partition, (request, offset, metadata)) in offsets {
            let known = self.committed.get(&topic_partition).map_or(0, |(request, _)| *request);
            if known < request {
                self.committed.insert(topic_partition, (request, (offset, metadata)));
            }
        }
    }

    /// The group's committed offset of a partition, with its metadata.
    #[must_use]
    pub fn committed(&self, topic_partition: &TopicPartition) -> Option<&(i64, String)> {
        self.committed.get(topic_partition).map(|(_, committed)| committed)
    }

    /// Sets the group's committed offset of a partition from outside, as a reset tool does; `None` = it expired.
    pub fn set_committed(&mut self, topic_partition: &TopicPartition, committed: Option<(i64, String)>) {
        match committed {
            Some(committed) => {
                self.offset_requests += 1;
                self.committed
                    .insert(topic_partition.clone(), (self.offset_requests, committed));
            }
            None => drop(self.committed.remove(topic_partition)),
        }
    }

    /// Whether the committed offset of a partition is stable: no transaction that names it is open or still being ended.
    #[must_use]
    pub fn is_stable(&self, topic_partition: &TopicPartition) -> bool {
        let pending = |state: &ProducerState| {
            let ending = state.ending.as_ref().map(|(transaction, _)| transaction);
            let mut transactions = state.open.iter().chain(ending);
            transactions.any(|transaction| transaction.offsets.contains_key(topic_partition))
        };
        !self.producers.values().any(pending)
    }

    /// Whether a transaction is open or still being ended.
    #[must_use]
    pub fn has_open_transaction(&self) -> bool {
        let busy = |state: &ProducerState| state.open.is_some() || state.ending.is_some();
        self.producers.values().any(busy)
    }
}

#[cfg(test)]
mod tests;
