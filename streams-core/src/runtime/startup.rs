//! The start-up of tasks, in the only safe order: producer settled, committed offsets (stable), changelog ends, restore,
//! process (design rule 1.6). Every part may be tried again later, and commits go on meanwhile (rule 1.15).

use std::collections::BTreeMap;

use streams_state::{
    ChangelogFacts, StateError, StoreId, StoreMetadata, TaskState, Verdict, assess, disagreeing_inputs,
};

use super::core::{Owned, Slot, StreamThreadCore};
use super::effect::{
    Assignment, CallFailure, ChangelogRestore, Effect, FailureClass, Outcome, ResetTo, RestoreJob, Restored,
};
use super::step::Step;
use crate::error::{Error, ProcessResult};
use crate::fetch::PartitionId;
use crate::task::{Task, TaskInput, TaskLimits, TaskSeed};
use crate::topology::{AutoOffsetReset, NodeKind, SubtopologyPlan};
use crate::{TaskId, TopicPartition};

/// A start offset that is not known yet.
const UNRESOLVED: i64 = i64::MIN;
/// How long a start-up that failed waits before it is tried again.
const RETRY_MS: i64 = 100;

impl StreamThreadCore {
    /// The topics' partition counts changed or became known.
    pub fn set_topics(&mut self, topics: std::sync::Arc<crate::topics::Topics>) {
        self.topics = topics;
    }

    pub(super) fn next_start_up_step(&self, now_ms: i64) -> Option<Step> {
        if now_ms < self.start_up_after_ms {
            return None;
        }
        let any = |wanted: fn(&Slot) -> bool| self.tasks.iter().find(|(_, slot)| wanted(slot)).map(|(id, _)| *id);
        if any(|slot| matches!(slot, Slot::Waiting { .. })).is_some() {
            return Some(Step::FetchCommitted);
        }
        let unresolved = |slot: &Slot| matches!(slot, Slot::Starting { inputs, .. } if inputs.iter().any(|i| i.start_offset == UNRESOLVED));
        if any(unresolved).is_some() {
            return Some(Step::ResolveReset);
        }
        if any(|slot| matches!(slot, Slot::Starting { .. })).is_some() {
            return Some(Step::ListChangelogs);
        }
        if let Some(task) = any(|slot| matches!(slot, Slot::Restorable { .. })) {
            return Some(Step::Restore(task));
        }
        any(|slot| matches!(slot, Slot::Restored { .. })).map(Step::Assign)
    }

    pub(super) fn start_up_effect(&mut self, step: &Step, now_ms: i64) -> ProcessResult<Option<Effect>> {
        match step {
            Step::FetchCommitted => {
                let waiting = self
                    .tasks
                    .iter()
                    .filter(|(_, slot)| matches!(slot, Slot::Waiting { .. }));
                let mut partitions = Vec::new();
                for (id, _) in waiting {
                    partitions.extend(self.input_partitions(*id)?);
                }
                Ok(Some(Effect::FetchCommitted { partitions }))
            }
            Step::ResolveReset => self.resolve_effect().map(Some),
            Step::ListChangelogs => {
                let partitions = self.changelogs_of_starting()?;
                if partitions.is_empty() {
                    self.changelogs_known(&BTreeMap::new(), now_ms)?;
                    return Ok(None);
                }
                Ok(Some(Effect::ListChangelogs { partitions }))
            }
            Step::Restore(task) => Ok(self.start_restore(*task)),
            Step::Assign(task) => self.start_task(*task, now_ms),
            _ => Err(Error::bug(format!("{step:?} is no step of a start-up"))),
        }
    }

    pub(super) fn start_up_step_done(&mut self, step: &Step, outcome: Outcome, now_ms: i64) -> ProcessResult {
        match (step, outcome) {
            (Step::FetchCommitted, Outcome::Committed(offsets)) => self.committed_known(offsets),
            (Step::ResolveReset, Outcome::Started(offsets)) => {
                self.starts_known(&offsets);
                Ok(())
            }
            (Step::ListChangelogs, Outcome::Changelogs(facts)) => {
                self.changelogs_known(&facts.into_iter().collect(), now_ms)
            }
            (Step::Assign(_), Outcome::Done) => {
                self.start_up_failing_since_ms = None;
                Ok(())
            }
            (step, outcome) => Err(Error::bug(format!("{outcome:?} does not answer {step:?}"))),
        }
    }

    pub(super) fn start_up_failed(&mut self, failure: CallFailure, now_ms: i64) -> ProcessResult {
        let since_ms = *self.start_up_failing_since_ms.get_or_insert(now_ms);
        if failure.class != FailureClass::Retriable {
            return Err(Box::new(Error::Kafka {
                what: "the start-up of tasks".to_owned(),
                code: failure.code,
                message: failure.message,
            }));
        }
        if now_ms - since_ms > self.settings.task_timeout_ms {
            let what = format!("the start-up of tasks ({}: {})", failure.code, failure.message);
            return Err(Box::new(Error::Timeout {
                what,
                waited_ms: now_ms - since_ms,
                setting: "task.timeout.ms",
            }));
        }
        tracing::info!(
            code = failure.code,
            message = failure.message,
            "the start-up of tasks is tried again"
        );
        self.start_up_after_ms = now_ms + RETRY_MS;
        Ok(())
    }

    fn subtopology(&self, task: TaskId) -> ProcessResult<&SubtopologyPlan> {
        self.plan
            .subtopology(task.subtopology)
            .ok_or_else(|| Error::bug(format!("task {task} is of no sub-topology")))
    }

    /// The input partitions of a task: its partition of every source topic that has so many.
    fn input_partitions(&self, task: TaskId) -> ProcessResult<Vec<TopicPartition>> {
        let mut partitions = Vec::new();
        for topic in self.subtopology(task)?.source_topics.keys() {
            let count = self.topics.partitions(topic).ok_or_else(|| {
                Box::new(Error::Topics {
                    message: format!("source topic {topic} of task {task} does not exist: create it"),
                })
            })?;
            if task.partition < count {
                partitions.push(TopicPartition::new(&**topic, task.partition));
            }
        }
        Ok(partitions)
    }

    fn committed_known(&mut self, offsets: Vec<(TopicPartition, Option<(i64, String)>)>) -> ProcessResult {
        let offsets: BTreeMap<_, _> = offsets.into_iter().collect();
        let waiting: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Waiting { .. }))
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            let mut inputs = Vec::new();
            for topic_partition in self.input_partitions(id)? {
                let committed = offsets
                    .get(&topic_partition)
                    .ok_or_else(|| Error::bug(format!("no answer for {topic_partition}")))?
                    .clone();
                let reset = self.reset_next.remove(&topic_partition);
                let start_offset = committed
                    .as_ref()
                    .filter(|_| !reset)
                    .map_or(UNRESOLVED, |(offset, _)| *offset);
                inputs.push(TaskInput {
                    topic_partition,
                    id: self.new_partition_id(),
                    start_offset,
                    committed,
                });
            }
            if let Some(slot) = self.tasks.get_mut(&id) {
                if let Slot::Waiting { state, schedules } = slot {
                    *slot = Slot::Starting {
                        state: state.take(),
                        schedules: std::mem::take(schedules),
                        inputs,
                    };
                }
            }
        }
        Ok(())
    }

    fn new_partition_id(&mut self) -> PartitionId {
        self.next_partition = self.next_partition.wrapping_add(1);
        PartitionId(self.next_partition)
    }

    fn resolve_effect(&self) -> ProcessResult<Effect> {
        let mut partitions = Vec::new();
        for slot in self.tasks.values() {
            let Slot::Starting { inputs, .. } = slot else { continue };
            for input in inputs.iter().filter(|input| input.start_offset == UNRESOLVED) {
                let topic = &input.topic_partition.topic;
                let reset = match self.reset_of(topic) {
                    AutoOffsetReset::Configured => self.settings.reset,
                    AutoOffsetReset::Earliest => Some(ResetTo::Earliest),
                    AutoOffsetReset::Latest => Some(ResetTo::Latest),
                    AutoOffsetReset::None => None,
                };
                // Repartition topics always start at their beginning: what lies there was written by this application.
                let reset = if self.plan.reads_repartition(topic) {
                    Some(ResetTo::Earliest)
                } else {
                    reset
                };
                let reset = reset.ok_or_else(|| Box::new(Error::Topics {
                    message: format!("{} has no committed offset and auto.offset.reset is none: set it to earliest or latest, or set the group's offset", input.topic_partition),
                }))?;
                partitions.push((input.topic_partition.clone(), reset));
            }
        }
        Ok(Effect::ResolveReset { partitions })
    }

    fn reset_of(&self, topic: &str) -> AutoOffsetReset {
        let node = self
            .plan
            .subtopologies
            .iter()
            .find_map(|subtopology| subtopology.source_topics.get(topic));
        match node
            .and_then(|node| self.topology.nodes().get(*node))
            .map(|node| &node.kind)
        {
            Some(NodeKind::Source { reset, .. }) => *reset,
            _ => AutoOffsetReset::Configured,
        }
    }

    fn starts_known(&mut self, offsets: &[(TopicPartition, i64)]) {
        for slot in self.tasks.values_mut() {
            let Slot::Starting { inputs, .. } = slot else { continue };
            for input in inputs.iter_mut().filter(|input| input.start_offset == UNRESOLVED) {
                if let Some((_, offset)) = offsets.iter().find(|(tp, _)| *tp == input.topic_partition) {
                    input.start_offset = *offset;
                }
            }
        }
    }

    fn changelogs_of_starting(&self) -> ProcessResult<Vec<TopicPartition>> {
        let mut partitions = Vec::new();
        for (id, slot) in &self.tasks {
            if matches!(slot, Slot::Starting { .. }) {
                for changelog in &self.subtopology(*id)?.changelogs {
                    partitions.push(TopicPartition::new(&*changelog.topic.name, id.partition));
                }
            }
        }
        Ok(partitions)
    }

    fn changelogs_known(&mut self, facts: &BTreeMap<TopicPartition, ChangelogFacts>, now_ms: i64) -> ProcessResult {
        let starting: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Starting { .. }))
            .map(|(id, _)| *id)
            .collect();
        for id in starting {
            let Some(Slot::Starting {
                state,
                schedules,
                inputs,
            }) = self.tasks.get_mut(&id)
            else {
                continue;
            };
            let (state, schedules, inputs) = (state.take(), std::mem::take(schedules), std::mem::take(inputs));
            let slot = self.prepare(id, state, schedules, inputs, facts, now_ms)?;
            self.tasks.insert(id, slot);
        }
        Ok(())
    }

    /// Opens a task's state and compares it with the inputs and the changelogs.
    fn prepare(
        &mut self,
        id: TaskId,
        state: Option<TaskState>,
        schedules: Vec<i64>,
        inputs: Vec<TaskInput>,
        facts: &BTreeMap<TopicPartition, ChangelogFacts>,
        now_ms: i64,
    ) -> ProcessResult<Slot> {
        let mut state = match state {
            Some(state) => state,
            None => match self.open_state(id)? {
                Some(state) => state,
                None => {
                    self.start_up_after_ms = now_ms + RETRY_MS;
                    return Ok(Slot::Waiting { state: None, schedules });
                }
            },
        };
        check_inputs(id, &state, &inputs)?;
        let mut changelogs = Vec::new();
        for changelog in &self.subtopology(id)?.changelogs {
            let store = &changelog.store;
            let topic_partition = TopicPartition::new(&*changelog.topic.name, id.partition);
            let mut facts = *facts
                .get(&topic_partition)
                .ok_or_else(|| Error::bug(format!("no answer for {topic_partition}")))?;
            let source = inputs.iter().find(|input| input.topic_partition == topic_partition);
            facts.source_topic_committed =
                source.map(|input| input.committed.as_ref().map_or(facts.log_start, |(offset, _)| *offset));
            let store_id = state
                .store_id(store)
                .ok_or_else(|| Error::bug(format!("store {store} is not in the state of task {id}")))?;
            let timestamped = self
                .topology
                .store(store)
                .is_none_or(|store| store.factory.is_timestamped());
            if let Some(restore) = judge(id, &mut state, store_id, store, topic_partition, &facts, now_ms)? {
                let restore = ChangelogRestore { timestamped, ..restore };
                changelogs.push(restore);
            }
        }
        if changelogs.is_empty() {
            return Ok(Slot::Restored {
                state: Some(state),
                schedules,
                inputs,
            });
        }
        self.incarnation += 1;
        let job = RestoreJob {
            task: id,
            incarnation: self.incarnation,
            state,
            changelogs,
        };
        Ok(Slot::Restorable {
            job: Some(job),
            schedules,
            inputs,
        })
    }

    /// `None`: another thread of this process has not let go of it yet; try again.
    fn open_state(&self, id: TaskId) -> ProcessResult<Option<TaskState>> {
        let stores = &self.subtopology(id)?.stores;
        let specs = stores
            .iter()
            .filter_map(|name| self.topology.store(name))
            .map(|store| store.spec.clone())
            .collect();
        match self.opener.open(id, specs) {
            Ok(state) => {
                if let Some(path) = state.was_set_aside() {
                    tracing::warn!(task_id = %id, path = %path.display(), "state that could not be opened was set aside; the task is restored from its changelogs");
                }
                Ok(Some(state))
            }
            Err(StateError::TaskBusy { .. }) => Ok(None),
            Err(error) => Err(Error::state(id, error)),
        }
    }

    fn start_restore(&mut self, task: TaskId) -> Option<Effect> {
        let slot = self.tasks.get_mut(&task)?;
        let Slot::Restorable { job, schedules, inputs } = slot else {
            return None;
        };
        let (job, schedules, inputs) = (job.take()?, std::mem::take(schedules), std::mem::take(inputs));
        *slot = Slot::Restoring {
            lease: job.incarnation,
            schedules,
            inputs,
        };
        Some(Effect::Restore(job))
    }

    /// Takes back a restored state. A result under an older lease is thrown away: the task is somebody else's by now.
    ///
    /// # Errors
    /// When the restore failed for good.
    pub fn on_restored(&mut self, restored: Restored, now_ms: i64) -> ProcessResult {
        let Some(slot) = self.tasks.get_mut(&restored.task) else {
            return Ok(());
        };
        let Slot::Restoring {
            lease,
            schedules,
            inputs,
        } = slot
        else {
            return Ok(());
        };
        if *lease != restored.incarnation {
            return Ok(());
        }
        let (schedules, inputs) = (std::mem::take(schedules), std::mem::take(inputs));
        match restored.failure {
            None => {
                let records: u64 = restored.records.values().sum();
                self.totals.restored_records += records;
                *slot = Slot::Restored {
                    state: Some(restored.state),
                    schedules,
                    inputs,
                };
                Ok(())
            }
            Some(failure) => {
                // What was applied so far is kept: the next attempt goes on from the stored position.
                *slot = Slot::Waiting {
                    state: Some(restored.state),
                    schedules,
                };
                self.start_up_failed(failure, now_ms)
            }
        }
    }

    fn start_task(&mut self, id: TaskId, now_ms: i64) -> ProcessResult<Option<Effect>> {
        let Some(Slot::Restored {
            state,
            schedules,
            inputs,
        }) = self.tasks.get_mut(&id)
        else {
            return Ok(None);
        };
        let (Some(state), schedules, inputs) = (state.take(), std::mem::take(schedules), std::mem::take(inputs)) else {
            return Ok(None);
        };
        let incarnation = self.incarnation;
        let mut partitions = Vec::new();
        for input in &inputs {
            let (topic_partition, start_offset) = (input.topic_partition.clone(), input.start_offset);
            self.partitions.insert(
                input.id,
                Owned {
                    task: id,
                    topic_partition: topic_partition.clone(),
                    incarnation,
                    paused: false,
                },
            );
            partitions.push(Assignment {
                topic_partition,
                start_offset,
                id: input.id,
                incarnation,
            });
        }
        let plan = self
            .plan
            .subtopology(id.subtopology)
            .ok_or_else(|| Error::bug(format!("task {id} is of no sub-topology")))?;
        // A task keeps its numbers over rebuilds: they stay small, and reports of aborted epochs never count anyway.
        let (next, stores) = (self.next_slot, u32::try_from(plan.stores.len()).unwrap_or(0));
        let first_slot = *self.first_slots.entry(id).or_insert(next);
        if first_slot == next {
            self.next_slot = next.saturating_add(stores);
        }
        let limits = TaskLimits {
            max_idle_ms: self.settings.max_task_idle_ms,
            buffered_per_partition: self.settings.buffered_records_per_partition,
        };
        let task = Task::new(TaskSeed {
            id,
            topology: &self.topology,
            plan,
            state,
            inputs,
            first_slot,
            budget: std::rc::Rc::clone(&self.budget),
            handlers: std::sync::Arc::clone(&self.handlers),
            topics: std::sync::Arc::clone(&self.topics),
            globals: std::sync::Arc::clone(&self.globals),
            limits,
            now_ms,
            schedules,
        })?;
        self.tasks.insert(id, Slot::Running(Box::new(task)));
        self.totals.tasks_created += 1;
        tracing::info!(task_id = %id, "the task runs");
        Ok(Some(Effect::Assign { partitions }))
    }
}

/// Inputs that would be read again over state which contains them already (design rule 2.5).
fn check_inputs(id: TaskId, state: &TaskState, inputs: &[TaskInput]) -> ProcessResult {
    let committed = inputs.iter().map(|input| {
        let key = (input.topic_partition.topic.to_string(), input.topic_partition.partition);
        (key, input.committed.as_ref().map(|(offset, _)| *offset))
    });
    let found = disagreeing_inputs(state.input_offsets(), &committed.collect());
    if found.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = found.iter().map(ToString::to_string).collect();
    let reason = format!(
        "the group's offsets expired or were reset, so input would be counted twice ({}): set the group's offsets back, or delete the task's state and changelogs to start over",
        list.join("; ")
    );
    Err(Box::new(Error::TaskCorrupted {
        task: id,
        store: "(inputs)".to_owned(),
        reason,
    }))
}

/// Compares one store with its changelog; `None` = it is current.
fn judge(
    id: TaskId,
    state: &mut TaskState,
    store: StoreId,
    name: &str,
    topic_partition: TopicPartition,
    facts: &ChangelogFacts,
    now_ms: i64,
) -> ProcessResult<Option<ChangelogRestore>> {
    let metadata = |position| StoreMetadata {
        changelog_topic_id: facts.topic_id,
        position,
        own_commit: false,
        applied_at_ms: now_ms,
    };
    let in_the_middle = state
        .is_restoring_from_zero(store)
        .map_err(|source| Error::state(id, source))?;
    let known = state.store_metadata(store).copied().filter(|_| !in_the_middle);
    let (from, to, from_zero) = match assess(known.as_ref(), facts, now_ms) {
        Verdict::Current => return Ok(None),
        Verdict::Tail { from, to } => (from, to, false),
        Verdict::KeepRowsFrom { from, to } => (from, to, false),
        Verdict::FullRestore { reason, from, to } => {
            if from < to {
                tracing::info!(task_id = %id, store = name, from, to, %reason, "the store is restored from zero");
            }
            (from, to, true)
        }
        Verdict::Stop { reason } => {
            let reason = format!(
                "{reason} ({topic_partition}); if the changelog is right, delete the local state of task {id} to rebuild it"
            );
            return Err(Box::new(Error::TaskCorrupted {
                task: id,
                store: name.to_owned(),
                reason,
            }));
        }
    };
    if from >= to {
        // Nothing to replay; only the position has to be known from now on.
        let failed = |source| Error::state(id, source);
        if from_zero {
            state.begin_full_restore(store).map_err(failed)?;
            state.finish_full_restore(store, metadata(to)).map_err(failed)?;
        } else {
            state.restore(store, [], metadata(to)).map_err(failed)?;
        }
        return Ok(None);
    }
    Ok(Some(ChangelogRestore {
        exact_end: facts.source_topic_committed.is_some(),
        store,
        name: name.to_owned(),
        topic_partition,
        from,
        to,
        from_zero,
        timestamped: true,
        metadata: metadata(to),
    }))
}
