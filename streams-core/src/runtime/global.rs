//! The global task: it reads every partition of the global topics and fills the global stores. No transactions: what
//! was read is applied with its positions in one batch, so a restart goes on where it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_state::{StateReader, TaskState};

use super::settings::CoreParts;
use crate::error::{Error, ProcessResult};
use crate::fetch::{FetchError, FetchErrorKind, Fetched, PartitionId};
use crate::runtime::Assignment;
use crate::stores::{CacheBudget, GlobalStores};
use crate::task::{Applied, Task, TaskInput, TaskLimits, TaskSeed};
use crate::topology::{SubtopologyPlan, TopologyPlan};
use crate::{TaskId, TopicPartition};

/// The sub-topology number of the global task, which no sub-topology can have.
const GLOBAL: u32 = TaskId::GLOBAL.subtopology;

/// The global stores' bytes, opened before anything reads them.
pub struct GlobalState {
    pub(super) state: TaskState,
}

impl GlobalState {
    /// Opens the global stores; `None` if the topology has none.
    ///
    /// # Errors
    /// When the state can't be opened.
    pub fn open(parts: &CoreParts) -> ProcessResult<Option<Self>> {
        let stores = parts
            .plan
            .global
            .iter()
            .filter_map(|global| parts.topology.store(&global.store));
        let specs: Vec<_> = stores.map(|store| store.spec.clone()).collect();
        if specs.is_empty() {
            return Ok(None);
        }
        let task = TaskId::GLOBAL;
        let state = parts.opener.open(task, specs).map_err(|source| Error::State {
            task: "the global stores".to_owned(),
            source,
        })?;
        Ok(Some(GlobalState { state }))
    }

    /// What stream threads read the global stores through.
    #[must_use]
    pub fn readers(&self, plan: &TopologyPlan) -> GlobalStores {
        let reader: StateReader = self.state.reader();
        let readers: BTreeMap<_, _> = plan
            .global
            .iter()
            .map(|global| (Arc::clone(&global.store), reader.clone()))
            .collect();
        GlobalStores::new(readers)
    }
}

/// The global task's core.
pub struct GlobalCore {
    task: Task,
    positions: Vec<Assignment>,
    ends: BTreeMap<TopicPartition, i64>,
}

impl GlobalCore {
    /// Makes the global task. `logs` gives start and end (committed) of every partition of the global topics.
    ///
    /// # Errors
    /// When its nodes can't be made.
    pub fn new(
        parts: &CoreParts,
        global: GlobalState,
        logs: &[(TopicPartition, i64, i64)],
        now_ms: i64,
    ) -> ProcessResult<Self> {
        let state = global.state;
        let mut inputs = Vec::new();
        let mut positions = Vec::new();
        for (number, (topic_partition, start, end)) in (0..).zip(logs) {
            let key = (topic_partition.topic.to_string(), topic_partition.partition);
            let start_offset = state.input_offsets().get(&key).copied().unwrap_or(*start).max(*start);
            if start_offset > *end {
                return Err(Box::new(Error::TaskCorrupted {
                    task: TaskId::GLOBAL,
                    store: topic_partition.topic.to_string(),
                    reason: format!(
                        "the global store has applied {topic_partition} up to {start_offset}, but the topic ends at {end}: it was truncated or made again; delete the local state of the global stores to fill them anew"
                    ),
                }));
            }
            let id = PartitionId(number);
            inputs.push(TaskInput {
                topic_partition: topic_partition.clone(),
                id,
                start_offset,
                committed: None,
            });
            positions.push(Assignment {
                topic_partition: topic_partition.clone(),
                start_offset,
                id,
                incarnation: 0,
            });
        }
        let plan = global_plan(&parts.plan);
        // Each partition is applied as it comes: there is nothing to wait for.
        let limits = TaskLimits {
            max_idle_ms: -1,
            buffered_per_partition: usize::MAX,
        };
        let task = Task::new(TaskSeed {
            id: TaskId::GLOBAL,
            topology: &parts.topology,
            plan: &plan,
            state,
            inputs,
            first_slot: 0,
            budget: CacheBudget::new(0),
            handlers: Arc::clone(&parts.handlers),
            topics: Arc::clone(&parts.topics),
            globals: Arc::default(),
            limits,
            now_ms,
            meters: std::rc::Rc::default(),
            schedules: Vec::new(),
            claims: false,
        })?;
        let ends = logs
            .iter()
            .map(|(topic_partition, _, end)| (topic_partition.clone(), *end))
            .collect();
        Ok(GlobalCore { task, positions, ends })
    }

    /// What to fetch.
    #[must_use]
    pub fn assignments(&self) -> &[Assignment] {
        &self.positions
    }

    /// Applies what was fetched; answers how many records.
    ///
    /// # Errors
    /// When a record can't be read and its handler answers `Fail`, or the store can't be written.
    pub fn apply(&mut self, fetched: &mut Vec<Fetched>, now_ms: i64) -> ProcessResult<usize> {
        for item in fetched.drain(..) {
            match item {
                Fetched::Records(batch) => self.task.accept(batch)?,
                Fetched::Eof { partition, offset, .. } => self.task.accept_eof(partition, offset)?,
                Fetched::Error(error) => fetch_failed(&error)?,
            }
        }
        let done = self.task.process(now_ms, usize::MAX)?;
        if done > 0 || self.task.has_passed_markers() || self.task.is_touched() {
            let epoch = self.task.close_epoch()?;
            self.task.apply(&epoch, now_ms, &|_| None, Applied::Committed)?;
            self.task.outbox_sent();
        }
        Ok(done)
    }

    /// The global stores and the context they are read in, for the test driver.
    pub(crate) fn task_parts(&mut self) -> (&crate::stores::TaskStores, &mut crate::processor::TaskContext) {
        self.task.parts()
    }

    /// Whether everything that was in the topics at the start is applied: only then may stream threads start.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.task
            .positions()
            .all(|(topic_partition, position)| self.ends.get(topic_partition).is_none_or(|end| position >= *end))
    }

    /// Records left out since the start: null keys, bad records let pass (`dropped-records-total`).
    #[must_use]
    pub fn dropped_records(&self) -> u64 {
        self.task.counters().dropped_records
    }

    /// Records that are still to be applied before stream threads may start.
    #[must_use]
    pub fn remaining(&self) -> i64 {
        let left = |(tp, position): (&TopicPartition, i64)| self.ends.get(tp).map_or(0, |end| (end - position).max(0));
        self.task.positions().map(left).sum()
    }
}

/// A partition that can't be read any more stops the instance: its rows would silently stay as they are.
fn fetch_failed(error: &FetchError) -> ProcessResult {
    match error.kind {
        FetchErrorKind::Transport | FetchErrorKind::Other(_) => {
            tracing::warn!(%error, "fetching for the global stores met an error; the client goes on by itself");
            Ok(())
        }
        _ => Err(Box::new(Error::Topics {
            message: format!(
                "a global table can't be read any more: {error}; mend the topic or the permission, or delete the local state of the global stores to fill them anew"
            ),
        })),
    }
}

/// All global sub-topologies as the one of the global task.
fn global_plan(plan: &TopologyPlan) -> SubtopologyPlan {
    let source =
        |global: &crate::topology::GlobalPlan| global.nodes.first().map(|node| (Arc::clone(&global.topic), *node));
    SubtopologyPlan {
        id: GLOBAL,
        nodes: plan
            .global
            .iter()
            .flat_map(|global| global.nodes.iter().copied())
            .collect(),
        source_topics: plan.global.iter().filter_map(source).collect(),
        sink_topics: Default::default(),
        repartition_sources: Vec::new(),
        repartition_sinks: Default::default(),
        changelogs: Vec::new(),
        stores: plan.global.iter().map(|global| Arc::clone(&global.store)).collect(),
        copartition_groups: Vec::new(),
        operator_clocks: Vec::new(),
    }
}
