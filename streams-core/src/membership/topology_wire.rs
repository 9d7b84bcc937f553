//! The topology of a streams group, and its form on the wire.
//!
//! A coordinator compares a joining member's topology with the stored one *including the order of every list*, and refuses
//! the member at any difference. So the order here is part of the contract with Java members and with our own older
//! versions: topics and configs sorted, sub-topologies sorted by their number as text, co-partition indices in the order
//! of Java's `HashSet`.
//!
//! Source: `StreamThread.initBrokerTopology`, `StreamsGroupHeartbeatRequestManager`, `InternalTopologyBuilder.copartitionGroups`;
//! orders captured from Kafka Streams 4.4.

use super::codec::describe::DescribedTopology;
use super::codec::structs::{KeyValue, WireCopartitionGroup, WireSubtopology, WireTopicInfo, WireTopology};
use crate::java_hash::JavaHashSet;

/// Topology epoch that every member sends, as Java's does.
const TOPOLOGY_EPOCH: i32 = 0;

/// All sub-topologies of an application, as its group knows them. Lists may be in any order; [`Self::to_wire`] orders them.
///
/// Java counterpart: `StreamsRebalanceData.subtopologies`.
///
/// # Example
/// ```
/// use streams_core::membership::{GroupTopology, Subtopology};
/// let topology = GroupTopology {
///     subtopologies: vec![Subtopology { id: 0, source_topics: vec!["orders".into()], ..Subtopology::default() }],
/// };
/// assert_eq!(topology.to_wire().unwrap().subtopologies[0].id, "0");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTopology {
    /// The sub-topologies.
    pub subtopologies: Vec<Subtopology>,
}

/// A sub-topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subtopology {
    /// Its number.
    pub id: u32,
    /// External source topics; not those in `repartition_source_topics`.
    pub source_topics: Vec<String>,
    /// Repartition topics it writes to and some sub-topology reads.
    pub repartition_sink_topics: Vec<String>,
    /// Repartition topics it reads.
    pub repartition_source_topics: Vec<TopicInfo>,
    /// Changelogs of its stores; a source topic reused as changelog is listed too (Kafka 4.4).
    pub state_changelog_topics: Vec<TopicInfo>,
    /// Sets of two or more of its source topics that were joined. A topic's place matters where two names fall into one
    /// bucket of Java's table: keep the order in which Java's builder meets them.
    pub copartition_groups: Vec<CopartitionGroup>,
}

/// An internal topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicInfo {
    /// Full name.
    pub name: String,
    /// Partition count; 0 leaves it to the coordinator. Ignored for changelogs, whose count is always the coordinator's.
    pub partitions: i32,
    /// `replication.factor`; -1 is the brokers' default.
    pub replication_factor: i16,
    /// Topic configs.
    pub configs: Vec<(String, String)>,
}

/// Topics of one sub-topology that need equal partition counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopartitionGroup {
    /// External source topics.
    pub source_topics: Vec<String>,
    /// Repartition source topics.
    pub repartition_topics: Vec<String>,
}

/// Why a topology has no form on the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A co-partition group names a topic that its sub-topology does not read.
    #[error("sub-topology {subtopology} has the topic `{topic}` in a co-partition group and does not read it")]
    CopartitionTopicUnknown {
        /// The sub-topology.
        subtopology: u32,
        /// The topic.
        topic: String,
    },
    /// More topics than indices of 16 bits can tell apart.
    #[error("sub-topology {subtopology} has more than 32767 topics in one list")]
    TooManyTopics {
        /// The sub-topology.
        subtopology: u32,
    },
}

impl GroupTopology {
    /// The form that is sent.
    ///
    /// # Errors
    /// [`TopologyError`] when a co-partition group does not fit its sub-topology.
    pub fn to_wire(&self) -> Result<WireTopology, TopologyError> {
        // Java collects the groups of the whole topology in one presized set, one entry per topic.
        let entries = self
            .subtopologies
            .iter()
            .flat_map(|subtopology| &subtopology.copartition_groups);
        let entries = entries
            .map(|group| group.source_topics.len() + group.repartition_topics.len())
            .sum();
        let mut subtopologies = self
            .subtopologies
            .iter()
            .map(|subtopology| subtopology.to_wire(entries))
            .collect::<Result<Vec<_>, _>>()?;
        subtopologies.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(WireTopology {
            epoch: TOPOLOGY_EPOCH,
            subtopologies,
        })
    }

    /// What a coordinator shows of its stored topology, in the stored order; `None` while it shows none. Co-partition
    /// groups are not shown, and partition counts are those in force.
    pub fn from_described(described: &DescribedTopology) -> Option<Self> {
        let subtopologies = described.subtopologies.as_ref()?.iter().map(|stored| {
            Some(Subtopology {
                id: stored.id.parse().ok()?,
                source_topics: stored.source_topics.clone(),
                repartition_sink_topics: stored.repartition_sink_topics.clone(),
                repartition_source_topics: stored.repartition_source_topics.iter().map(TopicInfo::from).collect(),
                state_changelog_topics: stored.state_changelog_topics.iter().map(TopicInfo::from).collect(),
                copartition_groups: Vec::new(),
            })
        });
        Some(Self {
            subtopologies: subtopologies.collect::<Option<Vec<_>>>()?,
        })
    }
}

impl Subtopology {
    fn to_wire(&self, copartition_entries: usize) -> Result<WireSubtopology, TopologyError> {
        let source_topics = sorted(&self.source_topics);
        let repartition_source_topics = sorted_topics(&self.repartition_source_topics, |topic| topic.partitions);
        let copartition_groups = self
            .groups_in_java_order(copartition_entries)
            .iter()
            .map(|group| self.group_to_wire(group, &source_topics, &repartition_source_topics))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(WireSubtopology {
            id: self.id.to_string(),
            source_topics,
            source_topic_regex: Vec::new(),
            state_changelog_topics: sorted_topics(&self.state_changelog_topics, |_| 0),
            repartition_sink_topics: sorted(&self.repartition_sink_topics),
            repartition_source_topics,
            copartition_groups,
        })
    }

    /// The groups of this sub-topology in the order of Java's set of all groups. Groups of other sub-topologies do not
    /// change the order of these among themselves, only the size of the table.
    fn groups_in_java_order(&self, copartition_entries: usize) -> Vec<JavaHashSet<&str>> {
        let mut groups = JavaHashSet::sized_for(copartition_entries);
        for group in &self.copartition_groups {
            let topics = group.source_topics.iter().chain(&group.repartition_topics);
            groups.insert(topics.map(String::as_str).collect::<JavaHashSet<&str>>());
        }
        groups.into_iter().collect()
    }

    /// Indices of the topics, in the order of one walk over the group's set.
    fn group_to_wire(
        &self,
        group: &JavaHashSet<&str>,
        source_topics: &[String],
        repartition_topics: &[WireTopicInfo],
    ) -> Result<WireCopartitionGroup, TopologyError> {
        let mut wire = WireCopartitionGroup::default();
        for &topic in group.iter() {
            if let Some(index) = source_topics.iter().position(|source| source == topic) {
                wire.source_topics.push(self.index(index)?);
            } else if let Some(index) = repartition_topics.iter().position(|source| source.name == topic) {
                wire.repartition_source_topics.push(self.index(index)?);
            } else {
                let topic = topic.to_owned();
                return Err(TopologyError::CopartitionTopicUnknown {
                    subtopology: self.id,
                    topic,
                });
            }
        }
        Ok(wire)
    }

    fn index(&self, index: usize) -> Result<i16, TopologyError> {
        i16::try_from(index).map_err(|_| TopologyError::TooManyTopics { subtopology: self.id })
    }
}

fn sorted(topics: &[String]) -> Vec<String> {
    let mut topics = topics.to_vec();
    topics.sort();
    topics
}

fn sorted_topics(topics: &[TopicInfo], partitions: impl Fn(&TopicInfo) -> i32) -> Vec<WireTopicInfo> {
    let mut topics: Vec<WireTopicInfo> = topics
        .iter()
        .map(|topic| WireTopicInfo {
            name: topic.name.clone(),
            partitions: partitions(topic),
            replication_factor: topic.replication_factor,
            configs: sorted_configs(&topic.configs),
        })
        .collect();
    topics.sort_by(|a, b| a.name.cmp(&b.name));
    topics
}

fn sorted_configs(configs: &[(String, String)]) -> Vec<KeyValue> {
    let mut configs: Vec<KeyValue> = configs
        .iter()
        .map(|(key, value)| KeyValue {
            key: key.clone(),
            value: value.clone(),
        })
        .collect();
    configs.sort_by(|a, b| a.key.cmp(&b.key));
    configs
}

impl From<&WireTopicInfo> for TopicInfo {
    fn from(topic: &WireTopicInfo) -> Self {
        Self {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            configs: topic
                .configs
                .iter()
                .map(|config| (config.key.clone(), config.value.clone()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn topic(name: &str) -> TopicInfo {
        TopicInfo {
            name: name.into(),
            ..TopicInfo::default()
        }
    }

    #[test]
    fn copartition_indices_come_in_the_order_that_java_sent() {
        let group = CopartitionGroup {
            source_topics: strings(&["kin", "kin2"]),
            repartition_topics: vec![],
        };
        let subtopology = Subtopology {
            source_topics: strings(&["kin2", "kin"]),
            copartition_groups: vec![group],
            ..Subtopology::default()
        };
        let wire = GroupTopology {
            subtopologies: vec![subtopology],
        }
        .to_wire()
        .unwrap();
        assert_eq!(wire.subtopologies[0].source_topics, ["kin", "kin2"]);
        assert_eq!(wire.subtopologies[0].copartition_groups[0].source_topics, [1, 0]);
    }

    #[test]
    fn source_and_repartition_indices_are_two_lists_of_one_walk() {
        let subtopology = Subtopology {
            source_topics: strings(&["kin", "kin2"]),
            repartition_source_topics: vec![topic("z-repartition"), topic("a-repartition")],
            copartition_groups: vec![CopartitionGroup {
                source_topics: strings(&["kin", "kin2"]),
                repartition_topics: strings(&["z-repartition"]),
            }],
            ..Subtopology::default()
        };
        let wire = GroupTopology {
            subtopologies: vec![subtopology],
        }
        .to_wire()
        .unwrap();
        let group = &wire.subtopologies[0].copartition_groups[0];
        assert_eq!(
            (
                group.source_topics.as_slice(),
                group.repartition_source_topics.as_slice()
            ),
            (&[1, 0][..], &[1][..])
        );
    }

    #[test]
    fn groups_of_a_subtopology_come_in_the_order_of_their_hashes() {
        // Buckets of 16: hash("a")+hash("b") = 195 is 3, hash("c")+hash("d") = 199 is 7, hash("e")+hash("p") = 213 is 5.
        let groups = [["c", "d"], ["e", "p"], ["a", "b"]];
        let subtopology = Subtopology {
            source_topics: strings(&["a", "b", "c", "d", "e", "p"]),
            copartition_groups: groups
                .iter()
                .map(|names| CopartitionGroup {
                    source_topics: strings(names),
                    repartition_topics: vec![],
                })
                .collect(),
            ..Subtopology::default()
        };
        let wire = GroupTopology {
            subtopologies: vec![subtopology],
        }
        .to_wire()
        .unwrap();
        let first: Vec<i16> = wire.subtopologies[0]
            .copartition_groups
            .iter()
            .map(|group| *group.source_topics.iter().min().unwrap())
            .collect();
        assert_eq!(first, [0, 4, 2]);
    }

    #[test]
    fn topics_configs_and_subtopologies_are_sorted_and_changelogs_have_no_partition_count() {
        let configs = vec![
            ("retention.ms".into(), "1".into()),
            ("cleanup.policy".into(), "compact".into()),
        ];
        let changelog = TopicInfo {
            name: "b".into(),
            partitions: 4,
            replication_factor: -1,
            configs,
        };
        let subtopologies = [2, 10].map(|id| Subtopology {
            id,
            state_changelog_topics: vec![changelog.clone(), topic("a")],
            repartition_source_topics: vec![TopicInfo {
                partitions: 7,
                ..topic("r")
            }],
            ..Subtopology::default()
        });
        let wire = GroupTopology {
            subtopologies: subtopologies.to_vec(),
        }
        .to_wire()
        .unwrap();
        assert_eq!(wire.subtopologies[0].id, "10");
        let first = &wire.subtopologies[0];
        assert_eq!(first.state_changelog_topics[0].name, "a");
        assert_eq!(first.state_changelog_topics[1].partitions, 0);
        assert_eq!(first.state_changelog_topics[1].configs[0].key, "cleanup.policy");
        assert_eq!(first.repartition_source_topics[0].partitions, 7);
    }

    #[test]
    fn a_copartitioned_topic_that_is_not_read_is_refused() {
        let group = CopartitionGroup {
            source_topics: strings(&["kin"]),
            repartition_topics: vec![],
        };
        let subtopology = Subtopology {
            id: 3,
            copartition_groups: vec![group],
            ..Subtopology::default()
        };
        let error = GroupTopology {
            subtopologies: vec![subtopology],
        }
        .to_wire()
        .unwrap_err();
        assert_eq!(
            error,
            TopologyError::CopartitionTopicUnknown {
                subtopology: 3,
                topic: "kin".into()
            }
        );
    }
}
