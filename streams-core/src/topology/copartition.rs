//! Groups of topics that must have equal partition counts, as Java's builder forms them from what was registered.
//!
//! Indices into these groups are sent to the coordinator of a streams group, which compares them *in order*: so the
//! walk through hash sets is reproduced. Source: `InternalTopologyBuilder.copartitionGroups`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::validate::topics_of;
use super::{NodeDefinition, NodeKind, SourceTopic, TopicPattern, Topology};
use crate::java_hash::JavaHashSet;

/// Full topic names, in the order in which Java adds them to the group's set.
pub(crate) type CopartitionGroup = Vec<Arc<str>>;

impl Topology {
    /// The groups by full topic name. A registration that shares a topic with an earlier one is merged into it.
    pub(crate) fn merged_copartition_groups(
        &self,
        full_name: impl Fn(&SourceTopic) -> Arc<str>,
    ) -> Vec<CopartitionGroup> {
        let mut groups: Vec<CopartitionGroup> = Vec::new();
        let mut group_of: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for registered in &self.copartition_groups {
            let topics = self.registered_topics(registered, &full_name);
            let at = topics
                .iter()
                .find_map(|topic| group_of.get(topic))
                .copied()
                .unwrap_or(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            let Some(group) = groups.get_mut(at) else { continue };
            for topic in topics {
                if !group.contains(&topic) {
                    group.push(Arc::clone(&topic));
                }
                group_of.insert(topic, at);
            }
        }
        // A group all of whose topics went over to another one is gone.
        let alive = groups
            .into_iter()
            .enumerate()
            .filter(|(at, _)| group_of.values().any(|group| group == at));
        alive.map(|(_, group)| group).collect()
    }

    /// The topics of one registration in Java's order: Java registers the sources' names in a set, and makes from it a
    /// set of the topics of these sources.
    fn registered_topics(
        &self,
        registered: &[SourceTopic],
        full_name: impl Fn(&SourceTopic) -> Arc<str>,
    ) -> Vec<Arc<str>> {
        let sources: JavaHashSet<&str> = registered
            .iter()
            .filter_map(|topic| self.reader(topic))
            .map(|node| &*node.name)
            .collect();
        let nodes = sources
            .into_iter()
            .filter_map(|name| self.nodes.iter().find(|node| &*node.name == name));
        let names: Vec<Arc<str>> = nodes.flat_map(topics_of).map(full_name).collect();
        let ordered: JavaHashSet<&str> = names.iter().map(|name| &**name).collect();
        ordered.into_iter().map(Arc::from).collect()
    }

    /// The source that reads a topic; one that reads by a pattern is meant by the pattern.
    fn reader(&self, topic: &SourceTopic) -> Option<&NodeDefinition> {
        let mut sources = self
            .nodes
            .iter()
            .filter(|node| matches!(node.kind, NodeKind::Source { .. }));
        sources.find(|node| {
            let fits = |pattern: &TopicPattern| *pattern.as_str() == *topic.name && !topic.internal;
            topics_of(node).contains(topic)
                || matches!(&node.kind, NodeKind::Source { pattern: Some(pattern), .. } if fits(pattern))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{TopologyText, topology};
    use super::*;

    fn groups(lines: TopologyText<'_>) -> Vec<Vec<String>> {
        let full_name = |topic: &SourceTopic| {
            if topic.internal {
                format!("app-{}", topic.name).into()
            } else {
                Arc::clone(&topic.name)
            }
        };
        let groups = topology(lines).merged_copartition_groups(full_name);
        groups
            .iter()
            .map(|group| group.iter().map(|topic| topic.to_string()).collect())
            .collect()
    }

    const SOURCES: [&str; 4] = ["source s1: kin", "source s2: kin2", "source s3: c d", "repartition r"];

    fn registered(registrations: TopologyText<'_>) -> Vec<Vec<String>> {
        groups(&[&SOURCES[..], registrations].concat())
    }

    #[test]
    fn topics_stand_in_the_order_of_javas_set() {
        assert_eq!(registered(&["copartition kin kin2"]), [["kin2", "kin"]]);
    }

    #[test]
    fn registrations_that_share_a_topic_are_one_group() {
        // Buckets of 16: kin2 is in 0, kin in 1, c in 3, d in 4. The second registration adds its own topics at the end.
        assert_eq!(
            registered(&["copartition kin2 c", "copartition kin kin2"]),
            [["kin2", "c", "d", "kin"]]
        );
        assert_eq!(
            registered(&["copartition kin kin2", "copartition c"]),
            [vec!["kin2", "kin"], vec!["c", "d"]]
        );
    }

    #[test]
    fn a_source_brings_all_its_topics() {
        assert_eq!(registered(&["copartition d"]), [["c", "d"]]);
    }

    #[test]
    fn internal_topics_have_their_full_names() {
        let lines = [
            "repartition r",
            "source s: t",
            "sink k: =r < s",
            "source s2: =r",
            "copartition =r",
        ];
        assert_eq!(groups(&lines), [["app-r"]]);
    }
}
