//! What nodes can reach while a record passes: state, outbox, times, the record's origin. One per task, of one thread.

mod output;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use streams_state::TaskState;

use super::bad_records::BadRecords;
use super::punctuation::Callback;
use super::{
    ErrorContext, ErrorHandlers, PunctuationQueue, PunctuationType, PunctuatorId, RecordContext, TaskCounters,
};
use crate::error::{Error, FailurePlace, ProcessResult};
use crate::metrics::meters::TaskMeters;
use crate::outbox::{Outbox, OutboxMark};
use crate::stores::GlobalStores;
use crate::topics::Topics;
use crate::{TaskId, TopicPartition};

/// Names a topic that a task writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputTopic(u32);

#[cfg(test)]
impl OutputTopic {
    /// The topic that gets this number.
    pub(crate) fn numbered(number: u32) -> Self {
        OutputTopic(number)
    }
}

/// Names an operator's own stream time within its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperatorTime(usize);

struct OperatorClock {
    key: Arc<str>,
    time_ms: i64,
}

/// What a task shares with its nodes. Nothing of it is visible to another thread.
pub struct TaskContext {
    task: TaskId,
    handlers: Arc<ErrorHandlers>,
    topics: Arc<Topics>,
    globals: Arc<GlobalStores>,
    clocks: Vec<OperatorClock>,
    committed_times: BTreeMap<String, i64>,
    pub(crate) now_ms: i64,
    pub(crate) stream_time_ms: i64,
    pub(crate) current: RecordContext,
    pub(crate) state: TaskState,
    pub(crate) outbox: Outbox,
    pub(crate) punctuations: PunctuationQueue,
    pub(crate) commit_requested: bool,
    /// Bytes that a batch may have, by the topic's number in the outbox; `usize::MAX` where it is not known.
    max_message_bytes: Vec<usize>,
    /// A row that the storage has and its changelog does not take. User code may not go on over it.
    unlogged: Option<Box<Error>>,
    pub(super) bad_records: BadRecords,
    /// What the task counts.
    pub counters: TaskCounters,
    /// What it measures, shared with its nodes and stores.
    pub(crate) meters: Rc<TaskMeters>,
}

impl TaskContext {
    pub(crate) fn new(
        task: TaskId,
        handlers: Arc<ErrorHandlers>,
        topics: Arc<Topics>,
        globals: Arc<GlobalStores>,
        state: TaskState,
        now_ms: i64,
    ) -> Self {
        TaskContext {
            task,
            handlers,
            topics,
            globals,
            clocks: Vec::new(),
            committed_times: BTreeMap::new(),
            now_ms,
            stream_time_ms: -1,
            current: RecordContext::of_punctuation(-1),
            state,
            outbox: Outbox::default(),
            punctuations: PunctuationQueue::default(),
            commit_requested: false,
            max_message_bytes: Vec::new(),
            unlogged: None,
            bad_records: BadRecords::default(),
            counters: TaskCounters::default(),
            meters: Rc::default(),
        }
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// The application's handlers.
    #[must_use]
    pub fn handlers(&self) -> &Arc<ErrorHandlers> {
        &self.handlers
    }

    /// Where the record in hand came from.
    #[must_use]
    pub fn record_context(&self) -> &RecordContext {
        &self.current
    }

    /// Puts another record in hand, one that was kept aside, and answers what was: give it back when that one is done.
    pub fn exchange_record_context(&mut self, context: RecordContext) -> RecordContext {
        std::mem::replace(&mut self.current, context)
    }

    /// Runs `work` as for a record of another place: one that was buffered, and not the one in hand.
    pub fn at_place<R>(&mut self, place: RecordContext, work: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.current, place);
        let result = work(self);
        self.current = outer;
        result
    }

    /// The highest event time (ms since the Unix epoch) taken from the task's inputs; -1 before the first record.
    /// Java: `currentStreamTimeMs`.
    #[must_use]
    pub fn stream_time_ms(&self) -> i64 {
        self.stream_time_ms
    }

    /// The wall clock (ms since the Unix epoch) as the shell told it last. Java: `currentSystemTimeMs`.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Asks for a commit as soon as the record in hand is done. Java: `ProcessorContext.commit`.
    pub fn request_commit(&mut self) {
        self.commit_requested = true;
    }

    /// The task's bytes.
    pub fn state(&mut self) -> &mut TaskState {
        &mut self.state
    }

    /// The task's bytes, to read.
    #[must_use]
    pub fn state_ref(&self) -> &TaskState {
        &self.state
    }

    // ---- operator stream times

    /// The clock of an operator: the highest event time it has seen. It starts at what was committed under `key`
    /// (short: it travels in the offset-commit metadata), so it moves with the task and rolls back with an abort.
    pub fn operator_time(&mut self, key: &str) -> OperatorTime {
        if let Some(index) = self.clocks.iter().position(|clock| &*clock.key == key) {
            return OperatorTime(index);
        }
        let time_ms = self.committed_times.get(key).copied().unwrap_or(-1);
        self.clocks.push(OperatorClock {
            key: key.into(),
            time_ms,
        });
        OperatorTime(self.clocks.len() - 1)
    }

    /// The clocks as the group's commit has them, before the nodes are made.
    pub(crate) fn set_committed_times(&mut self, times: BTreeMap<String, i64>) {
        self.committed_times = times;
    }

    /// Moves an operator's clock to `timestamp_ms` if that is later, and reads it (ms since the Unix epoch).
    pub fn observe(&mut self, time: OperatorTime, timestamp_ms: i64) -> i64 {
        self.clocks.get_mut(time.0).map_or(timestamp_ms, |clock| {
            clock.time_ms = clock.time_ms.max(timestamp_ms);
            clock.time_ms
        })
    }

    /// Reads an operator's clock; -1 before its first record.
    #[must_use]
    pub fn observed(&self, time: OperatorTime) -> i64 {
        self.clocks.get(time.0).map_or(-1, |clock| clock.time_ms)
    }

    /// All operator clocks that have seen a record, for the commit.
    pub(crate) fn operator_times(&self) -> impl Iterator<Item = (&str, i64)> {
        self.clocks
            .iter()
            .filter(|clock| clock.time_ms >= 0)
            .map(|clock| (&*clock.key, clock.time_ms))
    }

    // ---- punctuation

    /// Schedules `callback` every `interval_ms`; it runs between records and may forward and write.
    pub fn schedule(
        &mut self,
        kind: PunctuationType,
        interval_ms: i64,
        callback: impl Fn(&mut TaskContext, PunctuatorId, i64) -> ProcessResult + 'static,
    ) -> PunctuatorId {
        let callback: Callback = Rc::new(callback);
        self.punctuations.add(kind, interval_ms, self.now_ms, callback)
    }

    /// As [`schedule`](Self::schedule), at `start_ms` (milliseconds of that clock) and whole intervals after it alone; a start
    /// that has passed is moved on by whole intervals.
    pub fn schedule_from(
        &mut self,
        kind: PunctuationType,
        start_ms: i64,
        interval_ms: i64,
        callback: impl Fn(&mut TaskContext, PunctuatorId, i64) -> ProcessResult + 'static,
    ) -> PunctuatorId {
        let callback: Callback = Rc::new(callback);
        let time_ms = match kind {
            PunctuationType::StreamTime => self.stream_time_ms,
            PunctuationType::WallClockTime => self.now_ms,
        };
        self.punctuations
            .add_from(kind, (start_ms, interval_ms), time_ms, callback)
    }

    /// Ends a schedule; unknown or ended ones are ignored.
    pub fn cancel(&mut self, id: PunctuatorId) {
        self.punctuations.cancel(id);
    }

    /// The partition count of a topic, where it is known.
    #[must_use]
    pub fn partitions(&self, topic: &str) -> Option<i32> {
        self.topics.partitions(topic)
    }

    /// The application's topics: full names and partition counts.
    #[must_use]
    pub fn topics(&self) -> &Arc<Topics> {
        &self.topics
    }

    /// The global stores.
    #[must_use]
    pub fn globals(&self) -> &GlobalStores {
        &self.globals
    }

    /// A place to cut the outbox back to.
    #[must_use]
    pub fn outbox_mark(&self) -> OutboxMark {
        self.outbox.mark()
    }

    // ---- failures

    /// Where a failure happens, for handlers.
    #[must_use]
    pub fn error_context(&self, node: Option<&str>) -> ErrorContext {
        let raw = self.current.raw.as_ref();
        ErrorContext {
            topic: Arc::clone(&self.current.topic),
            partition: self.current.partition,
            offset: self.current.offset,
            headers: self.current.headers.clone(),
            node: node.map(str::to_owned),
            task: self.task,
            timestamp_ms: self.current.timestamp_ms,
            source_key: raw.and_then(|(batch, index)| batch.key(*index)).map(<[u8]>::to_vec),
            source_value: raw.and_then(|(batch, index)| batch.value(*index)).map(<[u8]>::to_vec),
        }
    }

    /// What is in hand: a record, or a punctuation.
    #[must_use]
    pub fn place(&self) -> FailurePlace {
        if self.current.partition < 0 {
            return FailurePlace::Punctuation {
                time_ms: self.current.timestamp_ms,
            };
        }
        FailurePlace::Record {
            topic_partition: TopicPartition::new(Arc::clone(&self.current.topic), self.current.partition),
            offset: self.current.offset,
        }
    }
}
