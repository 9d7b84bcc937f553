//! A plan in the form in which a streams group (KIP-1071) knows it.
//!
//! Source: `StreamThread.initBrokerTopology`.

use super::{InternalTopic, SubtopologyPlan, TopologyPlan};
use crate::membership::{CopartitionGroup, GroupTopology, Subtopology, TopicInfo};

impl TopologyPlan {
    /// The topology that members of a streams group send to the coordinator, which makes the internal topics by it.
    ///
    /// Global stores are left out: they have no tasks. So are groups of joined topics that span sub-topologies (a
    /// cogroup of repartitioned streams has one, and a Java client stops there): [`resolve`](Self::resolve) checks
    /// those.
    #[must_use]
    pub fn group_topology(&self) -> GroupTopology {
        GroupTopology {
            subtopologies: self
                .subtopologies
                .iter()
                .map(SubtopologyPlan::group_subtopology)
                .collect(),
        }
    }
}

impl SubtopologyPlan {
    fn group_subtopology(&self) -> Subtopology {
        let mut changelogs: Vec<TopicInfo> = Vec::new();
        for changelog in &self.changelogs {
            // Two tables of one source topic have one changelog.
            if changelogs.last().is_none_or(|last| *last.name != *changelog.topic.name) {
                changelogs.push(changelog.topic.group_topic());
            }
        }
        Subtopology {
            id: self.id,
            source_topics: self.external_sources().map(ToString::to_string).collect(),
            repartition_sink_topics: self.repartition_sinks.iter().map(ToString::to_string).collect(),
            repartition_source_topics: self
                .repartition_sources
                .iter()
                .map(InternalTopic::group_topic)
                .collect(),
            state_changelog_topics: changelogs,
            copartition_groups: self
                .copartition_groups
                .iter()
                .map(|group| self.copartition_group(group))
                .collect(),
        }
    }

    fn copartition_group(&self, group: &[std::sync::Arc<str>]) -> CopartitionGroup {
        let (repartition, source) = group
            .iter()
            .map(ToString::to_string)
            .partition(|topic| self.reads_repartition(topic));
        CopartitionGroup {
            source_topics: source,
            repartition_topics: repartition,
        }
    }
}

impl InternalTopic {
    fn group_topic(&self) -> TopicInfo {
        TopicInfo {
            name: self.name.to_string(),
            // 0 leaves the count to the coordinator.
            partitions: self.partitions.unwrap_or(0),
            replication_factor: self.replication_factor,
            configs: self
                .configs
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::InternalTopicDefaults;
    use super::super::test_support::topology;

    #[test]
    fn a_plan_is_sent_as_java_sends_it() {
        let topology = topology(&[
            "global g: tg gs gp",
            "repartition r",
            "repartition n 4",
            "source s: kin",
            "sink k: =r < s",
            "sink o: out < s",
            "source s2: =r",
            "source t: kin2",
            "source t3: kin3",
            "source n: =n",
            "proc j < s2 t t3 n [st]",
            "sink l: =n < j",
            "copartition =r kin2 kin3",
        ]);
        let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
        let wire = plan.group_topology().to_wire().unwrap();
        let [first, second] = &wire.subtopologies[..] else {
            panic!("two sub-topologies")
        };
        assert_eq!(
            (first.id.as_str(), first.source_topics.as_slice()),
            ("1", &["kin".to_owned()][..])
        );
        assert_eq!(first.repartition_sink_topics, ["app-r"]);
        assert_eq!(second.source_topics, ["kin2", "kin3"]);
        let repartition: Vec<(&str, i32)> = second
            .repartition_source_topics
            .iter()
            .map(|topic| (&*topic.name, topic.partitions))
            .collect();
        assert_eq!(repartition, [("app-n", 4), ("app-r", 0)]);
        let changelog = &second.state_changelog_topics[0];
        assert_eq!(
            (&*changelog.name, changelog.partitions, changelog.replication_factor),
            ("app-st-changelog", 0, -1)
        );
        let configs: Vec<(&str, &str)> = changelog.configs.iter().map(|c| (&*c.key, &*c.value)).collect();
        assert_eq!(
            configs,
            [("cleanup.policy", "compact"), ("message.timestamp.type", "CreateTime")]
        );
        let group = &second.copartition_groups[0];
        assert_eq!(
            (
                group.source_topics.as_slice(),
                group.repartition_source_topics.as_slice()
            ),
            (&[0, 1][..], &[1][..])
        );
    }

    #[test]
    fn joined_topics_are_indexed_in_the_order_that_java_sent() {
        let topology = topology(&[
            "source a: kin",
            "source b: kin2",
            "proc j < a b",
            "copartition kin kin2",
        ]);
        let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
        let wire = plan.group_topology().to_wire().unwrap();
        assert_eq!(wire.subtopologies[0].copartition_groups[0].source_topics, [1, 0]);
    }
}
