//! Making a task: stores first, then the nodes from the last to the first, so that each finds its children made.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use streams_state::{StoreId, StoreKind, TaskState};

use super::choice::IdleClock;
use super::queue::PartitionQueue;
use super::{Task, TaskLimits};
use crate::codec::CommitMetadata;
use crate::error::{Error, ProcessResult};
use crate::fetch::PartitionId;
use crate::metrics::meters::{Direction, TaskMeters};
use crate::processor::{AnyNode, BuiltGraph, ErrorHandlers, NodeBuilder, Schedules, SourceNode, TaskContext};
use crate::stores::{CacheBudget, Changelog, GlobalStores, StoreBuilder, TaskStores};
use crate::topics::Topics;
use crate::topology::{NodeDefinition, NodeKind, SubtopologyPlan, Topology};
use crate::{TaskId, TopicPartition};

/// An input partition of a task, as the start-up found it.
#[derive(Clone, Debug)]
pub(crate) struct TaskInput {
    pub(crate) topic_partition: TopicPartition,
    pub(crate) id: PartitionId,
    /// Where to start: the committed offset, or what the reset policy gave.
    pub(crate) start_offset: i64,
    /// The committed offset, if the group has one, with its metadata text.
    pub(crate) committed: Option<(i64, String)>,
}

/// Everything a task is made of.
pub(crate) struct TaskSeed<'a> {
    pub(crate) id: TaskId,
    pub(crate) topology: &'a Topology,
    pub(crate) plan: &'a SubtopologyPlan,
    pub(crate) state: TaskState,
    pub(crate) inputs: Vec<TaskInput>,
    /// The number of the first store's acknowledged offsets; the others follow.
    pub(crate) first_slot: u32,
    pub(crate) budget: Rc<CacheBudget>,
    pub(crate) handlers: Arc<ErrorHandlers>,
    pub(crate) topics: Arc<Topics>,
    pub(crate) globals: Arc<GlobalStores>,
    pub(crate) limits: TaskLimits,
    pub(crate) now_ms: i64,
    /// Punctuation schedules as of the last commit, when the nodes are made anew after an abort.
    pub(crate) schedules: Schedules,
    /// What the task measures; they outlive it.
    pub(crate) meters: Rc<TaskMeters>,
    /// Whether records are claimed before they are processed (at most once).
    pub(crate) claims: bool,
}

impl Task {
    /// Makes the stores and nodes and runs the processors' `init`.
    pub(crate) fn new(seed: TaskSeed<'_>) -> ProcessResult<Task> {
        let TaskSeed {
            id,
            topology,
            plan,
            state,
            inputs,
            first_slot,
            budget,
            handlers,
            topics,
            globals,
            limits,
            now_ms,
            schedules,
            meters,
            claims,
        } = seed;
        let span = tracing::info_span!("task", task_id = %id);
        let entered = span.clone().entered();
        let mut cx = TaskContext::new(id, handlers, topics, globals, state, now_ms);
        cx.meters = meters;
        let (partition_times, operator_times) = committed_times(&inputs, &cx.state)?;
        cx.set_committed_times(operator_times);
        cx.stream_time_ms = partition_times.iter().copied().max().unwrap_or(-1);
        let (stores, changelogs, source_changelogs) = make_stores(topology, plan, &mut cx, first_slot, &budget)?;
        let mut graph = BuiltGraph::default();
        let sources = make_nodes(topology, plan, &stores, &mut cx, &mut graph)?;
        let mut queues = make_queues(topology, plan, inputs, &partition_times, &cx.meters)?;
        if claims {
            queues.iter_mut().for_each(PartitionQueue::claim_first);
        }
        let close_hooks = graph.close;
        for init in graph.init {
            init(&mut cx)?;
        }
        cx.punctuations.reset_to(&schedules);
        let committed_schedules = cx.punctuations.next_times();
        // What `init` wrote or forwarded belongs to the next commit, with this task's offsets.
        let touched = !cx.outbox.is_empty() || cx.state.is_dirty() || stores.is_dirty();
        drop(entered);
        Ok(Task {
            id,
            span,
            cx,
            sources,
            queues,
            stores,
            budget,
            changelogs,
            source_changelogs,
            close_hooks,
            idle: IdleClock::default(),
            limits,
            touched,
            ahead: false,
            committed_schedules,
        })
    }
}

/// Partition times per input and the operators' clocks merged by maximum, as the commit metadata has them. A clock that is
/// not there is taken from the state's copy: offsets that were set by hand have no metadata, and a clock that starts anew
/// would emit final results again (design rule 2.2). The copy is never ahead of the group's offsets: then the task does not
/// start.
fn committed_times(inputs: &[TaskInput], state: &TaskState) -> ProcessResult<(Vec<i64>, BTreeMap<String, i64>)> {
    let mut partition_times = Vec::new();
    let mut operator_times: BTreeMap<String, i64> = BTreeMap::new();
    for input in inputs {
        let text = input.committed.as_ref().map_or("", |(_, metadata)| metadata);
        let metadata = CommitMetadata::decode(text).unwrap_or_else(|error| {
            // As Java: metadata of an unknown version means that the times are unknown, not that the task can't start.
            tracing::warn!(topic_partition = %input.topic_partition, %error, "offset-commit metadata can't be read; partition time and operator times start anew");
            CommitMetadata::default()
        });
        partition_times.push(metadata.partition_time_ms.unwrap_or(-1));
        for (key, time) in metadata.entries {
            let known = operator_times.entry(key.to_string()).or_insert(time);
            *known = time.max(*known);
        }
    }
    for (key, time) in state.operator_times() {
        operator_times.entry(key.clone()).or_insert(*time);
    }
    Ok((partition_times, operator_times))
}

type MadeStores = (TaskStores, Vec<(StoreId, u32)>, Vec<(StoreId, Arc<str>)>);

fn make_stores(
    topology: &Topology,
    plan: &SubtopologyPlan,
    cx: &mut TaskContext,
    first_slot: u32,
    budget: &Rc<CacheBudget>,
) -> ProcessResult<MadeStores> {
    let mut stores = Vec::new();
    let mut changelogs = Vec::new();
    let mut source_changelogs = Vec::new();
    for (slot, name) in (first_slot..).zip(&plan.stores) {
        let definition = topology
            .store(name)
            .ok_or_else(|| Error::bug(format!("store {name} is planned but not defined")))?;
        let id = cx
            .state
            .store_id(name)
            .ok_or_else(|| Error::bug(format!("store {name} is not in the task's state")))?;
        let own_topic = cx.topics().internal(&format!("{name}-changelog"));
        let topic: Arc<str> = match &definition.changelog {
            Some(changelog) => changelog.source_topic.clone().unwrap_or_else(|| own_topic.into()),
            None => Arc::clone(name),
        };
        // A source topic that serves as the changelog holds the records already.
        let logged = definition
            .changelog
            .as_ref()
            .is_some_and(|changelog| changelog.source_topic.is_none());
        if let Some(source) = definition
            .changelog
            .as_ref()
            .and_then(|changelog| changelog.source_topic.clone())
        {
            source_changelogs.push((id, source));
        }
        let changelog = logged.then(|| {
            changelogs.push((id, slot));
            Changelog {
                topic: cx.output_topic(&topic),
                partition: cx.task().partition,
                slot,
            }
        });
        let builder = StoreBuilder {
            name: Arc::clone(name),
            id,
            changelog,
            topic,
            budget: Rc::clone(budget),
            meter: cx.meters.store(name, scope_of(&cx.state, id)),
        };
        stores.push((Arc::clone(name), definition.factory.build(builder)));
    }
    Ok((TaskStores::new(stores), changelogs, source_changelogs))
}

/// What a store is called after in metrics, as in Java (`…BytesStoreSupplier.metricsScope`).
pub(crate) fn scope_of(state: &TaskState, id: StoreId) -> &'static str {
    let kind = state.specs().find_map(|(of, spec)| (of == id).then_some(spec.kind));
    match (state.is_persistent(id), kind) {
        (true, Some(StoreKind::Window { .. })) => "rocksdb-window",
        (true, Some(StoreKind::Session { .. })) => "rocksdb-session",
        (true, _) => "rocksdb",
        (false, Some(StoreKind::Window { .. })) => "in-memory-window",
        (false, Some(StoreKind::Session { .. })) => "in-memory-session",
        (false, _) => "in-memory",
    }
}

fn make_nodes(
    topology: &Topology,
    plan: &SubtopologyPlan,
    stores: &TaskStores,
    cx: &mut TaskContext,
    graph: &mut BuiltGraph,
) -> ProcessResult<Vec<Rc<dyn SourceNode>>> {
    let definitions: Vec<&NodeDefinition> = plan.nodes.iter().filter_map(|at| topology.nodes().get(*at)).collect();
    let mut made: BTreeMap<Arc<str>, AnyNode> = BTreeMap::new();
    let mut sources: Vec<Rc<dyn SourceNode>> = Vec::new();
    for node in definitions.iter().rev() {
        let children = definitions.iter().filter(|child| child.parents.contains(&node.name));
        // Children run in wiring order, which is the order in which they were added.
        let mut children: Vec<_> = children.collect();
        children.sort_by_key(|child| topology.nodes().iter().position(|n| n.name == child.name));
        let children = children
            .into_iter()
            .filter_map(|child| Some((Arc::clone(&child.name), made.get(&child.name)?.clone())));
        let mut builder = NodeBuilder::new(
            Arc::clone(&node.name),
            children.collect(),
            node.stores.clone(),
            stores,
            cx,
            graph,
        );
        match &node.kind {
            NodeKind::Source { factory, .. } => sources.push(factory.build(&mut builder).map_err(Error::from)?),
            NodeKind::Processor { factory } | NodeKind::Sink { factory, .. } => {
                let any = factory.build(&mut builder).map_err(Error::from)?;
                made.insert(Arc::clone(&node.name), any);
            }
        }
    }
    // Nodes were made last to first; processors are initialized first to last.
    graph.init.reverse();
    sources.reverse();
    Ok(sources)
}

fn make_queues(
    topology: &Topology,
    plan: &SubtopologyPlan,
    inputs: Vec<TaskInput>,
    partition_times: &[i64],
    meters: &TaskMeters,
) -> ProcessResult<Vec<PartitionQueue>> {
    let is_source = |at: &&usize| {
        matches!(
            topology.nodes().get(**at).map(|node| &node.kind),
            Some(NodeKind::Source { .. })
        )
    };
    let sources: Vec<usize> = plan.nodes.iter().filter(is_source).copied().collect();
    let mut queues = Vec::new();
    for (input, time) in inputs.into_iter().zip(partition_times) {
        let topic = &*input.topic_partition.topic;
        let node = plan.source_topics.get(topic);
        let source = node.and_then(|node| sources.iter().position(|source| source == node));
        let source = source.ok_or_else(|| Error::bug(format!("no source reads {topic}")))?;
        let name = node
            .and_then(|node| topology.nodes().get(*node))
            .map_or("", |node| &*node.name);
        let meters = (meters.node(name), meters.topic(name, topic, Direction::Consumed));
        let mut queue = PartitionQueue::new(input.topic_partition, input.id, source, input.start_offset, meters);
        queue.partition_time_ms = *time;
        queue.committed = input.committed.map(|(offset, _)| offset);
        queues.push(queue);
    }
    Ok(queues)
}
