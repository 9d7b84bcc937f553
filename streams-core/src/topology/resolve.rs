//! Partition counts of internal topics and numbers of tasks, from the partition counts of the topics that are read.
//!
//! Source: `RepartitionTopics`, `CopartitionedTopicsEnforcer`, `ChangelogTopics`; a broker of a streams group follows
//! the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{InternalTopic, SubtopologyPlan, TopologyError, TopologyPlan};
use crate::TaskId;
use crate::java_hash::JavaHashSet;

/// Partition counts that follow from the topics that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTopics {
    /// Partition counts of the repartition topics, by full name.
    pub repartition: BTreeMap<Arc<str>, i32>,
    /// Partition counts of the changelogs, by full name; source topics that serve as changelogs are not among them.
    pub changelogs: BTreeMap<Arc<str>, i32>,
    /// The number of tasks of each sub-topology, by its number.
    pub tasks: BTreeMap<u32, i32>,
}

impl ResolvedTopics {
    /// All internal topics with their partition counts.
    pub fn internal(&self) -> impl Iterator<Item = (&Arc<str>, i32)> {
        self.repartition
            .iter()
            .chain(&self.changelogs)
            .map(|(name, count)| (name, *count))
    }

    /// All tasks, ascending.
    pub fn task_ids(&self) -> impl Iterator<Item = TaskId> {
        self.tasks
            .iter()
            .flat_map(|(id, count)| (0..*count).map(|partition| TaskId::new(*id, partition)))
    }

    /// Checks the internal topics that exist already: a topic with another partition count holds records where no task
    /// looks for them. `partitions_of` gives the count of a topic that exists.
    ///
    /// # Errors
    /// [`TopologyError::PartitionCount`], for each such topic.
    pub fn check_existing(&self, partitions_of: impl Fn(&str) -> Option<i32>) -> Result<(), TopologyError> {
        let differing = self.internal().filter_map(|(topic, needed)| {
            let actual = partitions_of(topic).filter(|actual| *actual != needed)?;
            Some(TopologyError::PartitionCount {
                topic: topic.to_string(),
                actual,
                needed,
            })
        });
        TopologyError::all(differing.collect())
    }
}

impl TopologyPlan {
    /// Works out the partition counts of internal topics and the numbers of tasks. `partitions_of` gives the partition
    /// count of a topic that is not the application's own, by its full name; `None` = there is no such topic.
    ///
    /// # Errors
    /// [`TopologyError::MissingTopics`] with all topics that are missing; [`TopologyError::CoPartitioning`] with names
    /// and counts where joined topics differ; a repartition topic whose count follows from nothing.
    pub fn resolve(&self, partitions_of: impl Fn(&str) -> Option<i32>) -> Result<ResolvedTopics, TopologyError> {
        let mut counts = Counts::of_external_topics(self, partitions_of)?;
        counts.derive(&self.subtopologies)?;
        counts.align(&self.copartition_groups)?;
        Ok(counts.resolved(&self.subtopologies))
    }
}

struct Counts<'a> {
    repartition: BTreeMap<&'a str, &'a InternalTopic>,
    /// What is known by now, of external and of repartition topics.
    known: BTreeMap<Arc<str>, i32>,
}

impl<'a> Counts<'a> {
    fn of_external_topics(
        plan: &'a TopologyPlan,
        partitions_of: impl Fn(&str) -> Option<i32>,
    ) -> Result<Self, TopologyError> {
        let repartition = plan
            .subtopologies
            .iter()
            .flat_map(|subtopology| &subtopology.repartition_sources);
        let repartition: BTreeMap<&str, &InternalTopic> = repartition.map(|topic| (&*topic.name, topic)).collect();
        let mut known = BTreeMap::new();
        let mut missing = BTreeSet::new();
        let sources = plan.subtopologies.iter().flat_map(SubtopologyPlan::external_sources);
        for topic in sources.chain(plan.global.iter().map(|global| &global.topic)) {
            match partitions_of(topic).filter(|count| *count > 0) {
                Some(count) => drop(known.insert(Arc::clone(topic), count)),
                None => drop(missing.insert(topic.to_string())),
            }
        }
        if !missing.is_empty() {
            return Err(TopologyError::MissingTopics {
                topics: missing.into_iter().collect(),
            });
        }
        let given = repartition
            .values()
            .filter_map(|topic| Some((Arc::clone(&topic.name), topic.partitions?)));
        known.extend(given);
        Ok(Counts { repartition, known })
    }

    /// Gives each repartition topic the largest count among the sources of the sub-topologies that write it, as far as
    /// those are known at that moment, until all have one. The order decides where sources of both kinds meet in a
    /// writer, so it is Java's: by sub-topology, then by hash.
    fn derive(&mut self, subtopologies: &[SubtopologyPlan]) -> Result<(), TopologyError> {
        loop {
            let mut waiting: Vec<&str> = Vec::new();
            let mut progress = false;
            for subtopology in subtopologies {
                let sources: JavaHashSet<&str> = subtopology
                    .repartition_sources
                    .iter()
                    .map(|topic| &*topic.name)
                    .collect();
                for topic in sources
                    .into_iter()
                    .filter(|topic| !self.known.contains_key(*topic))
                    .collect::<Vec<_>>()
                {
                    match self.largest_feeder(subtopologies, topic) {
                        Some(count) => {
                            self.known.insert(topic.into(), count);
                            progress = true;
                        }
                        None => waiting.push(topic),
                    }
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            if !progress {
                return Err(TopologyError::Invalid(format!(
                    "the partition count of {} follows from no topic that exists, as these topics feed only each other: \
                     give one of them a number of partitions",
                    waiting.join(", ")
                )));
            }
        }
    }

    fn largest_feeder(&self, subtopologies: &[SubtopologyPlan], topic: &str) -> Option<i32> {
        let writers = subtopologies
            .iter()
            .filter(|subtopology| subtopology.repartition_sinks.contains(topic));
        writers
            .flat_map(|writer| writer.source_topics.keys())
            .filter_map(|source| self.known.get(source).copied())
            .max()
    }

    /// Makes joined topics equal, or tells which are not.
    fn align(&mut self, groups: &[Vec<Arc<str>>]) -> Result<(), TopologyError> {
        let mut findings = Vec::new();
        for group in groups {
            match self.common_count(group) {
                Some(count) => self
                    .known
                    .extend(self.free_topics(group).map(|topic| (topic, count)).collect::<Vec<_>>()),
                None => findings.push(self.differing(group)),
            }
        }
        // A later group may have moved a topic of an earlier one.
        if findings.is_empty() {
            let moved = groups.iter().filter(|group| self.distinct(group.iter()).len() > 1);
            findings.extend(moved.map(|group| self.differing(group)));
        }
        TopologyError::all(findings)
    }

    /// The count that all topics of a group can have: that of its external topics, else the one given to a repartition
    /// topic, else the largest. `None` = external topics or given counts differ.
    fn common_count(&self, group: &[Arc<str>]) -> Option<i32> {
        let fixed = self.distinct(group.iter().filter(|topic| self.is_fixed(topic)));
        let all = self.distinct(group.iter());
        match fixed.len() {
            0 => all.last().copied(),
            1 => fixed.first().copied(),
            _ => None,
        }
    }

    fn distinct<'b>(&self, topics: impl Iterator<Item = &'b Arc<str>>) -> BTreeSet<i32> {
        topics.filter_map(|topic| self.known.get(topic).copied()).collect()
    }

    fn is_fixed(&self, topic: &str) -> bool {
        self.repartition
            .get(topic)
            .is_none_or(|topic| topic.partitions.is_some())
    }

    fn free_topics(&self, group: &[Arc<str>]) -> impl Iterator<Item = Arc<str>> {
        group.iter().filter(|topic| !self.is_fixed(topic)).cloned()
    }

    fn differing(&self, group: &[Arc<str>]) -> TopologyError {
        let mut topics: Vec<&Arc<str>> = group.iter().filter(|topic| self.is_fixed(topic)).collect();
        topics.sort();
        let text = |topic: &&Arc<str>| {
            let given = if self.repartition.contains_key(&***topic) {
                " (given to the repartition)"
            } else {
                ""
            };
            format!("{topic}: {}{given}", self.known.get(*topic).copied().unwrap_or(0))
        };
        TopologyError::CoPartitioning {
            counts: topics.iter().map(text).collect::<Vec<_>>().join(", "),
        }
    }

    fn resolved(&self, subtopologies: &[SubtopologyPlan]) -> ResolvedTopics {
        let mut resolved = ResolvedTopics {
            repartition: BTreeMap::new(),
            changelogs: BTreeMap::new(),
            tasks: BTreeMap::new(),
        };
        for subtopology in subtopologies {
            let tasks = self
                .distinct(subtopology.source_topics.keys())
                .last()
                .copied()
                .unwrap_or(0);
            resolved.tasks.insert(subtopology.id, tasks);
            let changelogs = subtopology
                .changelogs
                .iter()
                .filter(|changelog| !changelog.source_topic);
            resolved
                .changelogs
                .extend(changelogs.map(|changelog| (Arc::clone(&changelog.topic.name), tasks)));
            let names = subtopology
                .repartition_sources
                .iter()
                .map(|topic| Arc::clone(&topic.name));
            let counts = names.filter_map(|name| self.known.get(&name).copied().map(|count| (name, count)));
            resolved.repartition.extend(counts);
        }
        resolved
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
