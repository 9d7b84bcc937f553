//! A task: one partition of one sub-topology. It takes records from its queues, runs them through its chain, and tells
//! what a commit has to name.

mod choice;
mod epoch;
mod instantiate;
mod queue;

use std::rc::Rc;

use crate::TaskId;
use crate::error::{Error, ProcessResult};
use crate::fetch::{FetchedRecord, PartitionBatch, PartitionId};
use crate::metrics::RecordingLevel;
use crate::metrics::meters::{TaskMeters, header_bytes};
use crate::processor::{PunctuationType, RawRecord, RecordContext, Schedules, SourceNode, TaskContext, TaskCounters};
use crate::stores::{CacheBudget, TaskStores};

use choice::{IdleClock, Readiness, smallest_head};
use queue::PartitionQueue;

pub use epoch::CommittedOffset;
pub(crate) use epoch::{Applied, TaskEpoch};
#[cfg(feature = "kafka")]
pub(crate) use instantiate::scope_of;
pub(crate) use instantiate::{TaskInput, TaskSeed};

/// How a task waits and buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskLimits {
    /// `max.task.idle.ms`.
    pub(crate) max_idle_ms: i64,
    /// `buffered.records.per.partition`.
    pub(crate) buffered_per_partition: usize,
}

/// A running task with its nodes, stores and queues. It never leaves the thread that made it.
pub(crate) struct Task {
    id: TaskId,
    /// `task{task_id}`, for what is logged while it works.
    span: tracing::Span,
    cx: TaskContext,
    sources: Vec<Rc<dyn SourceNode>>,
    queues: Vec<PartitionQueue>,
    stores: TaskStores,
    budget: Rc<CacheBudget>,
    /// The logged stores and under which number their acknowledged offsets come back.
    changelogs: Vec<(streams_state::StoreId, u32)>,
    /// Stores whose changelog is a source topic: they stand where the input stands.
    source_changelogs: Vec<(streams_state::StoreId, std::sync::Arc<str>)>,
    close_hooks: Vec<Box<dyn FnOnce(&mut TaskContext)>>,
    idle: IdleClock,
    limits: TaskLimits,
    /// Something was processed or punctuated since the last commit.
    touched: bool,
    /// Something is applied whose input offsets are not committed (at least once).
    ahead: bool,
    /// Punctuation schedules as of the last commit.
    committed_schedules: Schedules,
}

impl Task {
    /// Its name.
    pub(crate) fn id(&self) -> TaskId {
        self.id
    }

    /// What it counts.
    pub(crate) fn counters(&self) -> TaskCounters {
        self.cx.counters
    }

    /// Takes a fetched run. Runs of unknown partitions are refused: they would be lost.
    pub(crate) fn accept(&mut self, batch: PartitionBatch) -> ProcessResult {
        let queue = self.queue_mut(batch.partition)?;
        queue.push_records(batch);
        Ok(())
    }

    /// Takes an end-of-partition mark.
    pub(crate) fn accept_eof(&mut self, partition: PartitionId, offset: i64) -> ProcessResult {
        self.queue_mut(partition)?.push_eof(offset);
        Ok(())
    }

    fn queue_mut(&mut self, partition: PartitionId) -> ProcessResult<&mut PartitionQueue> {
        let task = self.id;
        let queue = self.queues.iter_mut().find(|queue| queue.id == partition);
        queue.ok_or_else(|| Error::bug(format!("task {task} got records of a partition that it does not own")))
    }

    /// Processes up to `budget` records; answers how many. `now_ms` is the wall clock, milliseconds since the Unix epoch.
    pub(crate) fn process(&mut self, now_ms: i64, budget: usize) -> ProcessResult<usize> {
        let span = self.span.clone();
        let _task = span.enter();
        self.cx.now_ms = now_ms;
        let mut done = 0;
        // The budget itself may have become smaller: there is another stream thread.
        if self.budget.is_over() {
            self.stores.evict(&mut self.cx, &self.budget)?;
        }
        while done < budget {
            match self.idle.readiness(&self.queues, self.limits.max_idle_ms, now_ms) {
                Readiness::Ready => {}
                Readiness::Enforced => self.cx.counters.enforced_processing += 1,
                Readiness::Empty | Readiness::Waiting(_) => break,
            }
            self.read_heads()?;
            self.cx.forward_bad_records()?;
            let Some(at) = smallest_head(&self.queues) else {
                continue;
            };
            let started = self.cx.meters.recording.detailed_ns();
            self.process_head(at)?;
            if let Some(took_ns) = self.cx.meters.recording.since_ns(started) {
                self.cx.meters.records_ns.note(took_ns);
            }
            done += 1;
            if self.budget.is_over() {
                self.stores.evict(&mut self.cx, &self.budget)?;
            }
            self.punctuate_stream_time()?;
            if self.cx.commit_requested {
                break;
            }
        }
        Ok(done)
    }

    /// Learns the event times of the heads; drops records without a usable one.
    fn read_heads(&mut self) -> ProcessResult {
        let Task {
            cx,
            sources,
            queues,
            touched,
            ..
        } = self;
        for queue in queues.iter_mut() {
            while queue.head_timestamp_ms.is_none() && queue.ready() > 0 {
                let Some((batch, index)) = queue.head() else { break };
                let source = sources.get(queue.source).ok_or_else(no_source)?;
                // The usual case looks at nothing but the timestamp.
                let own_ms = source.own_timestamp(batch.timestamp_ms(index));
                let time_ms = match own_ms {
                    Some(time_ms) => Some(time_ms),
                    None => {
                        let batch = Rc::clone(batch);
                        let record = batch.get(index).ok_or_else(no_record)?;
                        let topic_partition = &queue.topic_partition;
                        cx.current
                            .move_to_record(topic_partition, &batch, index, record.timestamp_ms);
                        let raw = RawRecord {
                            record: &record,
                            topic_partition,
                        };
                        source.timestamp(cx, raw, queue.partition_time_ms)?
                    }
                };
                if time_ms.is_none() {
                    queue.pop();
                    *touched = true;
                    cx.counters.dropped_records += 1;
                }
                queue.head_timestamp_ms = time_ms;
            }
        }
        Ok(())
    }

    fn process_head(&mut self, at: usize) -> ProcessResult {
        let Task {
            cx, sources, queues, ..
        } = self;
        let Some(queue) = queues.get_mut(at) else { return Ok(()) };
        let (Some((batch, index)), Some(time_ms)) = (queue.head(), queue.head_timestamp_ms) else {
            return Ok(());
        };
        let batch = Rc::clone(batch);
        let record = batch.get(index).ok_or_else(no_record)?;
        let source = sources.get(queue.source).ok_or_else(no_source)?;
        queue.pop();
        queue.partition_time_ms = queue.partition_time_ms.max(time_ms);
        self.touched = true;
        cx.counters.processed_records += 1;
        cx.stream_time_ms = cx.stream_time_ms.max(time_ms);
        cx.current
            .move_to_record(&queue.topic_partition, &batch, index, time_ms);
        measure(cx, queue, time_ms, &record);
        let raw = RawRecord {
            record: &record,
            topic_partition: &queue.topic_partition,
        };
        let processed = source.process(cx, raw).and_then(|()| cx.forward_bad_records());
        // It wins over whatever user code made of it.
        cx.unlogged()?;
        processed
    }

    fn punctuate_stream_time(&mut self) -> ProcessResult {
        if self.cx.punctuations.is_empty() || self.cx.stream_time_ms < 0 {
            return Ok(());
        }
        self.punctuate(PunctuationType::StreamTime, self.cx.stream_time_ms)
            .map(|_| ())
    }

    /// Runs the wall-clock punctuations that are due; answers how many.
    pub(crate) fn punctuate_wall_clock(&mut self, now_ms: i64) -> ProcessResult<usize> {
        if self.cx.punctuations.is_empty() {
            self.cx.now_ms = now_ms;
            return Ok(0);
        }
        let span = self.span.clone();
        let _task = span.enter();
        self.cx.now_ms = now_ms;
        self.punctuate(PunctuationType::WallClockTime, now_ms)
    }

    fn punctuate(&mut self, kind: PunctuationType, time_ms: i64) -> ProcessResult<usize> {
        let mut done = 0;
        while let Some((id, callback)) = self.cx.punctuations.take_due(kind, time_ms) {
            self.cx.current = RecordContext::of_punctuation(time_ms);
            let started = self.cx.meters.recording.now_ns();
            let called = callback(&mut self.cx, id, time_ms).and_then(|()| self.cx.forward_bad_records());
            self.cx.unlogged()?;
            called?;
            let meters = &self.cx.meters;
            if let Some(took_ns) = meters.recording.since_ns(started) {
                meters.punctuations_ns.note(took_ns);
                meters.punctuating_ns.set(meters.punctuating_ns.get() + took_ns);
            }
            self.cx.counters.punctuations += 1;
            self.touched = true;
            done += 1;
        }
        Ok(done)
    }

    /// Whether a commit would have something of this task.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched || self.ahead
    }

    /// At most once: whether a claimed record waits to be processed.
    pub(crate) fn has_claimed(&self) -> bool {
        self.queues.iter().any(|queue| queue.ready() > 0)
    }

    /// At most once: whether a record waits to be claimed.
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.queues.iter().any(|queue| queue.buffered() > queue.ready())
    }

    /// Whether only transaction markers were passed since the last commit: rides along, never asks for a commit itself.
    pub(crate) fn has_passed_markers(&self) -> bool {
        self.queues
            .iter()
            .any(|queue| queue.committed.is_some_and(|offset| queue.position() > offset))
    }

    /// Whether a node asked for a commit.
    pub(crate) fn commit_requested(&self) -> bool {
        self.cx.commit_requested
    }

    /// Partitions with more waiting records than allowed: to be paused until they have fewer.
    pub(crate) fn full_partitions(&self) -> impl Iterator<Item = PartitionId> {
        let limit = self.limits.buffered_per_partition;
        self.queues
            .iter()
            .filter(move |queue| queue.buffered() > limit)
            .map(|queue| queue.id)
    }

    /// Where it stands in its inputs.
    pub(crate) fn positions(&self) -> impl Iterator<Item = (&crate::TopicPartition, i64)> {
        self.queues
            .iter()
            .map(|queue| (&queue.topic_partition, queue.position()))
    }

    /// Where it stands in the inputs that have no record for it now.
    pub(crate) fn waiting_positions(&self) -> impl Iterator<Item = (PartitionId, &crate::TopicPartition, i64)> {
        let waiting = self.queues.iter().filter(|queue| queue.buffered() == 0);
        waiting.map(|queue| (queue.id, &queue.topic_partition, queue.position()))
    }

    /// Records that wait in its queues.
    pub(crate) fn buffered(&self) -> usize {
        self.queues.iter().map(PartitionQueue::buffered).sum()
    }

    /// Bytes of the fetched batches that wait in its queues.
    pub(crate) fn queue_bytes(&self) -> usize {
        self.queues.iter().map(PartitionQueue::buffered_bytes).sum()
    }

    /// Bytes charged for cached entries of its stores.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn cached_bytes(&self) -> usize {
        self.stores.cached_bytes()
    }

    /// Its state, to look at.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn state(&self) -> &streams_state::TaskState {
        &self.cx.state
    }

    /// Its meters.
    pub(crate) fn meters(&self) -> &TaskMeters {
        &self.cx.meters
    }

    /// When its next wall-clock punctuation is due.
    pub(crate) fn next_wall_clock_ms(&self) -> Option<i64> {
        self.cx.punctuations.next_wall_clock_ms()
    }

    /// Bytes of the open and frozen epochs.
    pub(crate) fn overlay_bytes(&self) -> usize {
        self.cx.state.overlay_bytes()
    }

    /// What it wants to send.
    pub(crate) fn outbox(&self) -> &crate::outbox::Outbox {
        &self.cx.outbox
    }

    /// The outbox was handed to the client.
    pub(crate) fn outbox_sent(&mut self) {
        self.cx.outbox.clear();
    }

    /// The task's stream time; -1 before its first record.
    pub(crate) fn stream_time_ms(&self) -> i64 {
        self.cx.stream_time_ms
    }

    /// Its typed stores and context, for the test driver.
    pub(crate) fn parts(&mut self) -> (&TaskStores, &mut TaskContext) {
        (&self.stores, &mut self.cx)
    }
}

/// What is measured of a record before it is processed: at most a few additions.
fn measure(cx: &TaskContext, queue: &PartitionQueue, time_ms: i64, record: &FetchedRecord<'_>) {
    let (node, topic) = &queue.meters;
    node.records.set(node.records.get() + 1);
    node.e2e_ms.note(u64::try_from(cx.now_ms - time_ms).unwrap_or(0));
    let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let headers = header_bytes(&cx.current.headers);
    topic.count(1, length(record.key) + length(record.value) + headers);
    if cx.meters.recording.level >= RecordingLevel::Debug {
        cx.meters
            .lateness_ms
            .note(u64::try_from(cx.stream_time_ms - time_ms).unwrap_or(0));
    }
}

#[cold]
fn no_record() -> Box<Error> {
    Error::bug("a queue has a head without a record")
}

#[cold]
fn no_source() -> Box<Error> {
    Error::bug("a queue belongs to a source that the task does not have")
}
