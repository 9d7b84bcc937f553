//! The plan: what an application of some id makes of a topology. Sub-topologies with full topic names and topic
//! configs; partition counts come later (`resolve`), when the cluster is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::copartition::CopartitionGroup;
use super::groups::NodeGroup;
use super::validate::{check_name, topics_of};
use super::{ChangelogDefinition, InternalTopicDefaults, NodeKind, SourceTopic, Topology, TopologyError};

/// An internal topic to be made for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopic {
    /// The full name.
    pub name: Arc<str>,
    /// The count given by the user; `None` = it follows from the sources.
    pub partitions: Option<i32>,
    /// Replicas; -1 = the brokers' default.
    pub replication_factor: i16,
    /// Topic configs by key.
    pub configs: BTreeMap<String, String>,
}

/// A store's changelog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogPlan {
    /// The store.
    pub store: Arc<str>,
    /// The topic; of a source topic that serves as the changelog, these are the configs that it should have.
    pub topic: InternalTopic,
    /// Whether it is a source topic: it is others' then, not to be made, and nothing is written to it.
    pub source_topic: bool,
}

/// A sub-topology: the nodes of a task, and the topics between which they work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubtopologyPlan {
    /// The number, first part of its tasks' ids.
    pub id: u32,
    /// The nodes' places in [`Topology::nodes`], parents before children.
    pub nodes: Vec<usize>,
    /// Full names of all topics that are read, repartition topics among them, with the place of the node that reads
    /// each.
    pub source_topics: BTreeMap<Arc<str>, usize>,
    /// Full names of all topics that are written, as far as they are known beforehand.
    pub sink_topics: BTreeSet<Arc<str>>,
    /// The repartition topics that are read, sorted by name.
    pub repartition_sources: Vec<InternalTopic>,
    /// The repartition topics that are written and that some sub-topology reads.
    pub repartition_sinks: BTreeSet<Arc<str>>,
    /// The changelogs of the stores that have one, sorted by topic name.
    pub changelogs: Vec<ChangelogPlan>,
    /// The stores, in the order in which the nodes use them first; no global ones.
    pub stores: Vec<Arc<str>>,
    /// Groups of topics, all of them read here, that must have equal partition counts.
    pub copartition_groups: Vec<Vec<Arc<str>>>,
    /// The keys of its operator clocks in the offset-commit metadata, sorted.
    pub operator_clocks: Vec<Arc<str>>,
}

impl SubtopologyPlan {
    /// Full names of the topics that are read and are not the application's own.
    pub fn external_sources(&self) -> impl Iterator<Item = &Arc<str>> {
        self.source_topics.keys().filter(|topic| !self.reads_repartition(topic))
    }

    /// Whether a topic is a repartition topic that is read here.
    #[must_use]
    pub fn reads_repartition(&self, topic: &str) -> bool {
        self.repartition_sources.iter().any(|source| &*source.name == topic)
    }
}

/// What fills a global store in every instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalPlan {
    /// The number; there are no tasks of it.
    pub id: u32,
    /// The store.
    pub store: Arc<str>,
    /// The topic, which is its changelog too.
    pub topic: Arc<str>,
    /// The source's and the processor's places in [`Topology::nodes`].
    pub nodes: Vec<usize>,
}

/// What an application makes of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyPlan {
    /// The application id, in front of the names of internal topics.
    pub application_id: Arc<str>,
    /// The sub-topologies, ascending by number. Numbers of global stores are missing.
    pub subtopologies: Vec<SubtopologyPlan>,
    /// The global stores.
    pub global: Vec<GlobalPlan>,
    /// All groups of topics that must have equal partition counts; some span sub-topologies.
    pub copartition_groups: Vec<Vec<Arc<str>>>,
}

impl TopologyPlan {
    /// A sub-topology by its number.
    #[must_use]
    pub fn subtopology(&self, id: u32) -> Option<&SubtopologyPlan> {
        self.subtopologies.iter().find(|subtopology| subtopology.id == id)
    }

    /// Whether a topic is a repartition topic that some sub-topology reads.
    #[must_use]
    pub fn reads_repartition(&self, topic: &str) -> bool {
        self.subtopologies
            .iter()
            .any(|subtopology| subtopology.reads_repartition(topic))
    }

    /// The topics that the application has to have: repartition topics and changelogs, each once.
    #[must_use]
    pub fn internal_topics(&self) -> Vec<&InternalTopic> {
        let changelogs = self
            .subtopologies
            .iter()
            .flat_map(|subtopology| &subtopology.changelogs);
        let changelogs = changelogs
            .filter(|changelog| !changelog.source_topic)
            .map(|changelog| &changelog.topic);
        self.subtopologies
            .iter()
            .flat_map(|subtopology| &subtopology.repartition_sources)
            .chain(changelogs)
            .collect()
    }
}

impl Topology {
    /// Checks the topology and plans it for an application.
    ///
    /// Java counterparts: `InternalTopologyBuilder.rewriteTopology` and `subtopologyToTopicsInfo`.
    ///
    /// # Errors
    /// Every finding of [`validate`](Self::validate); names that are too long with the application id in front.
    pub fn plan(&self, application_id: &str, defaults: &InternalTopicDefaults) -> Result<TopologyPlan, TopologyError> {
        self.validate()?;
        check_name(application_id)?;
        let planner = Planner {
            topology: self,
            application_id,
            defaults,
        };
        let plan = planner.plan();
        TopologyError::all(
            plan.internal_topics()
                .iter()
                .filter_map(|topic| check_name(&topic.name).err())
                .collect(),
        )?;
        Ok(plan)
    }
}

struct Planner<'a> {
    topology: &'a Topology,
    application_id: &'a str,
    defaults: &'a InternalTopicDefaults,
}

impl Planner<'_> {
    fn plan(&self) -> TopologyPlan {
        let groups = self.topology.node_groups();
        let copartition_groups = self.topology.merged_copartition_groups(|topic| self.full_name(topic));
        let sources = self
            .topology
            .nodes
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Source { .. }));
        let read: BTreeSet<Arc<str>> = sources
            .flat_map(topics_of)
            .filter(|topic| topic.internal)
            .map(|topic| self.full_name(topic))
            .collect();
        let tasks = groups.iter().filter(|group| !group.global);
        TopologyPlan {
            application_id: self.application_id.into(),
            subtopologies: tasks
                .map(|group| self.subtopology(group, &read, &copartition_groups))
                .collect(),
            global: groups.iter().filter_map(|group| self.global(group)).collect(),
            copartition_groups,
        }
    }

    fn subtopology(
        &self,
        group: &NodeGroup,
        read: &BTreeSet<Arc<str>>,
        copartition_groups: &[CopartitionGroup],
    ) -> SubtopologyPlan {
        let source_topics = self.source_topics(group);
        let sink_topics = self.sink_topics(group);
        let stores = self.stores(group);
        let read_here = |group: &CopartitionGroup| group.iter().all(|topic| source_topics.contains_key(topic));
        SubtopologyPlan {
            id: group.id,
            nodes: group.nodes.clone(),
            repartition_sources: self.repartition_sources(group),
            repartition_sinks: sink_topics.intersection(read).cloned().collect(),
            changelogs: self.changelogs(&stores),
            copartition_groups: copartition_groups
                .iter()
                .filter(|group| read_here(group))
                .cloned()
                .collect(),
            operator_clocks: self
                .topology
                .clock_keys(&group.nodes)
                .into_iter()
                .map(Arc::from)
                .collect(),
            source_topics,
            sink_topics,
            stores,
        }
    }

    fn source_topics(&self, group: &NodeGroup) -> BTreeMap<Arc<str>, usize> {
        let mut topics = BTreeMap::new();
        for index in &group.nodes {
            let Some(node) = self.topology.nodes.get(*index) else {
                continue;
            };
            if let NodeKind::Source { topics: read, .. } = &node.kind {
                topics.extend(read.iter().map(|topic| (self.full_name(topic), *index)));
            }
        }
        topics
    }

    fn sink_topics(&self, group: &NodeGroup) -> BTreeSet<Arc<str>> {
        let nodes = group.nodes.iter().filter_map(|node| self.topology.nodes.get(*node));
        let sinks = nodes.filter(|node| matches!(node.kind, NodeKind::Sink { .. }));
        sinks.flat_map(topics_of).map(|topic| self.full_name(topic)).collect()
    }

    fn repartition_sources(&self, group: &NodeGroup) -> Vec<InternalTopic> {
        let nodes = group.nodes.iter().filter_map(|node| self.topology.nodes.get(*node));
        let sources = nodes.filter(|node| matches!(node.kind, NodeKind::Source { .. }));
        let internal: BTreeSet<&Arc<str>> = sources
            .flat_map(topics_of)
            .filter(|topic| topic.internal)
            .map(|topic| &topic.name)
            .collect();
        let topic = |name: &Arc<str>| InternalTopic {
            name: self.internal_name(name),
            partitions: self.topology.repartition_topics.get(name).copied().flatten(),
            replication_factor: self.defaults.replication_factor,
            configs: self.defaults.repartition(),
        };
        internal.into_iter().map(topic).collect()
    }

    fn stores(&self, group: &NodeGroup) -> Vec<Arc<str>> {
        let mut stores: Vec<Arc<str>> = Vec::new();
        let nodes = group.nodes.iter().filter_map(|node| self.topology.nodes.get(*node));
        for store in nodes
            .flat_map(|node| &node.stores)
            .filter(|store| !self.topology.is_global(store))
        {
            if !stores.contains(store) {
                stores.push(Arc::clone(store));
            }
        }
        stores
    }

    fn changelogs(&self, stores: &[Arc<str>]) -> Vec<ChangelogPlan> {
        let logged = stores.iter().filter_map(|name| {
            let changelog = self.topology.store(name)?.changelog.as_ref()?;
            Some(self.changelog(name, changelog))
        });
        let mut changelogs: Vec<ChangelogPlan> = logged.collect();
        changelogs.sort_by(|a, b| a.topic.name.cmp(&b.topic.name));
        changelogs
    }

    fn changelog(&self, store: &Arc<str>, changelog: &ChangelogDefinition) -> ChangelogPlan {
        let own = || self.internal_name(&format!("{store}-changelog"));
        let topic = InternalTopic {
            name: changelog.source_topic.as_ref().map_or_else(own, Arc::clone),
            partitions: None,
            replication_factor: self.defaults.replication_factor,
            configs: self.defaults.changelog(changelog),
        };
        ChangelogPlan {
            store: Arc::clone(store),
            topic,
            source_topic: changelog.source_topic.is_some(),
        }
    }

    fn global(&self, group: &NodeGroup) -> Option<GlobalPlan> {
        let names: Vec<&Arc<str>> = group
            .nodes
            .iter()
            .filter_map(|node| self.topology.nodes.get(*node))
            .map(|node| &node.name)
            .collect();
        let global = self
            .topology
            .global_stores
            .iter()
            .find(|global| names.contains(&&global.source))?;
        let (store, topic) = (Arc::clone(&global.store), Arc::clone(&global.topic));
        Some(GlobalPlan {
            id: group.id,
            store,
            topic,
            nodes: group.nodes.clone(),
        })
    }

    fn full_name(&self, topic: &SourceTopic) -> Arc<str> {
        if topic.internal {
            self.internal_name(&topic.name)
        } else {
            Arc::clone(&topic.name)
        }
    }

    /// Source: `InternalTopologyBuilder.decorateTopic`, `ProcessorStateManager.storeChangelogTopic`.
    fn internal_name(&self, name: &str) -> Arc<str> {
        format!("{}-{name}", self.application_id).into()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
