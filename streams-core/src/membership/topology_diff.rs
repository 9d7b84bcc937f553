//! What differs between two topologies of a group, in words.

use std::collections::BTreeMap;

use super::topology_wire::{GroupTopology, Subtopology, TopicInfo};

/// Says how `ours` differs from what a coordinator has `stored`, one finding per entry, empty when nothing differs.
///
/// Compared is what a coordinator shows: not co-partition groups, and not partition counts that were left to it. Lists that
/// have equal elements in another order differ too, because the coordinator compares them so.
///
/// # Example
/// ```
/// use streams_core::membership::{topology_diff::differences, GroupTopology, Subtopology};
/// let of = |topic: &str| GroupTopology {
///     subtopologies: vec![Subtopology { source_topics: vec![topic.into()], ..Subtopology::default() }],
/// };
/// assert_eq!(
///     differences(&of("orders"), &of("order")),
///     ["sub-topology 0 reads `orders`, in the group it does not", "sub-topology 0 does not read `order`, in the group it does"],
/// );
/// ```
pub fn differences(ours: &GroupTopology, stored: &GroupTopology) -> Vec<String> {
    let mut found = Vec::new();
    let ours = by_key(&ours.subtopologies, |subtopology| subtopology.id);
    let stored = by_key(&stored.subtopologies, |subtopology| subtopology.id);
    for (id, subtopology) in &ours {
        match stored.get(id) {
            Some(stored) => compare_subtopologies(subtopology, stored, &mut found),
            None => found.push(format!(
                "sub-topology {id} ({}) is not in the group",
                reads(subtopology)
            )),
        }
    }
    for (id, subtopology) in &stored {
        if !ours.contains_key(id) {
            found.push(format!(
                "sub-topology {id} of the group ({}) is missing here",
                reads(subtopology)
            ));
        }
    }
    found
}

fn reads(subtopology: &Subtopology) -> String {
    let repartition = subtopology.repartition_source_topics.iter().map(|topic| &topic.name);
    let topics: Vec<&str> = subtopology
        .source_topics
        .iter()
        .chain(repartition)
        .map(String::as_str)
        .collect();
    format!("reads {}", topics.join(", "))
}

fn compare_subtopologies(ours: &Subtopology, stored: &Subtopology, found: &mut Vec<String>) {
    let id = ours.id;
    compare_names(id, ("reads", "read"), &ours.source_topics, &stored.source_topics, found);
    compare_names(
        id,
        ("writes", "write"),
        &ours.repartition_sink_topics,
        &stored.repartition_sink_topics,
        found,
    );
    let repartition = (&ours.repartition_source_topics, &stored.repartition_source_topics);
    compare_topics(id, "repartition topic", repartition, true, found);
    let changelogs = (&ours.state_changelog_topics, &stored.state_changelog_topics);
    compare_topics(id, "changelog", changelogs, false, found);
}

fn compare_names(id: u32, verb: (&str, &str), ours: &[String], stored: &[String], found: &mut Vec<String>) {
    let before = found.len();
    for topic in ours.iter().filter(|topic| !stored.contains(topic)) {
        found.push(format!(
            "sub-topology {id} {} `{topic}`, in the group it does not",
            verb.0
        ));
    }
    for topic in stored.iter().filter(|topic| !ours.contains(topic)) {
        found.push(format!(
            "sub-topology {id} does not {} `{topic}`, in the group it does",
            verb.1
        ));
    }
    if found.len() == before && !stored.is_sorted() {
        found.push(format!(
            "sub-topology {id}: the group has the topics it {} in another order",
            verb.0
        ));
    }
}

fn compare_topics(
    id: u32,
    kind: &str,
    (ours, stored): (&Vec<TopicInfo>, &Vec<TopicInfo>),
    with_partitions: bool,
    found: &mut Vec<String>,
) {
    let ours = by_key(ours, |topic| topic.name.as_str());
    let theirs = by_key(stored, |topic| topic.name.as_str());
    for (name, topic) in &ours {
        let place = format!("sub-topology {id}, {kind} `{name}`");
        let Some(theirs) = theirs.get(name) else {
            found.push(format!("{place} is not in the group"));
            continue;
        };
        // A count that was left to the coordinator is shown as it turned out.
        if with_partitions && topic.partitions != 0 && topic.partitions != theirs.partitions {
            found.push(different(&place, "partitions", topic.partitions, theirs.partitions));
        }
        if topic.replication_factor != theirs.replication_factor {
            found.push(different(
                &place,
                "replication factor",
                topic.replication_factor,
                theirs.replication_factor,
            ));
        }
        compare_configs(&place, topic, theirs, found);
    }
    for name in theirs.keys().filter(|name| !ours.contains_key(*name)) {
        found.push(format!(
            "sub-topology {id}, {kind} `{name}` of the group is missing here"
        ));
    }
    if !stored.is_sorted_by(|a, b| a.name <= b.name) {
        found.push(format!("sub-topology {id}: the group has the {kind}s in another order"));
    }
}

fn compare_configs(place: &str, ours: &TopicInfo, stored: &TopicInfo, found: &mut Vec<String>) {
    let before = found.len();
    let mine: BTreeMap<&str, &str> = ours
        .configs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let theirs: BTreeMap<&str, &str> = stored
        .configs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let keys: std::collections::BTreeSet<&str> = mine.keys().chain(theirs.keys()).copied().collect();
    for key in keys {
        let (mine, theirs) = (mine.get(key).copied(), theirs.get(key).copied());
        if mine != theirs {
            found.push(different(
                place,
                key,
                mine.unwrap_or("not set"),
                theirs.unwrap_or("not set"),
            ));
        }
    }
    if found.len() == before && !stored.configs.is_sorted() {
        found.push(format!("{place}: the group has the configs in another order"));
    }
}

fn different(place: &str, what: &str, ours: impl std::fmt::Display, stored: impl std::fmt::Display) -> String {
    format!("{place}: {what} is {ours} here and {stored} in the group")
}

fn by_key<'a, T, K: Ord>(items: &'a [T], key: impl Fn(&'a T) -> K) -> BTreeMap<K, &'a T> {
    items.iter().map(|item| (key(item), item)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn config(key: &str, value: &str) -> (String, String) {
        (key.into(), value.into())
    }

    fn base() -> GroupTopology {
        let changelog = TopicInfo {
            name: "app-sums-changelog".into(),
            partitions: 0,
            replication_factor: -1,
            configs: vec![
                config("cleanup.policy", "compact"),
                config("message.timestamp.type", "CreateTime"),
            ],
        };
        let repartition = TopicInfo {
            name: "app-r-repartition".into(),
            ..TopicInfo::default()
        };
        let first = Subtopology {
            source_topics: vec!["kin".into()],
            repartition_sink_topics: vec![repartition.name.clone()],
            ..Subtopology::default()
        };
        let second = Subtopology {
            id: 1,
            repartition_source_topics: vec![repartition],
            state_changelog_topics: vec![changelog],
            ..Subtopology::default()
        };
        GroupTopology {
            subtopologies: vec![first, second],
        }
    }

    #[test]
    fn counts_left_to_the_coordinator_do_not_differ() {
        let mut stored = base();
        stored.subtopologies[1].repartition_source_topics[0].partitions = 4;
        stored.subtopologies[1].state_changelog_topics[0].partitions = 4;
        assert_eq!(differences(&base(), &stored), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let mut ours = base();
        ours.subtopologies[1].state_changelog_topics[0].replication_factor = 3;
        ours.subtopologies[1].state_changelog_topics[0]
            .configs
            .push(config("retention.ms", "5"));
        ours.subtopologies[1].repartition_source_topics[0].partitions = 8;
        ours.subtopologies[0].repartition_sink_topics.clear();
        ours.subtopologies.push(Subtopology {
            id: 2,
            source_topics: vec!["new".into()],
            ..Subtopology::default()
        });
        assert_eq!(
            differences(&ours, &base()),
            [
                "sub-topology 0 does not write `app-r-repartition`, in the group it does",
                "sub-topology 1, repartition topic `app-r-repartition`: partitions is 8 here and 0 in the group",
                "sub-topology 1, changelog `app-sums-changelog`: replication factor is 3 here and -1 in the group",
                "sub-topology 1, changelog `app-sums-changelog`: retention.ms is 5 here and not set in the group",
                "sub-topology 2 (reads new) is not in the group",
            ]
        );
    }

    #[test]
    fn what_only_the_group_has_is_named() {
        let mut ours = base();
        ours.subtopologies[1].state_changelog_topics[0].name = "app-totals-changelog".into();
        ours.subtopologies.remove(0);
        assert_eq!(
            differences(&ours, &base()),
            [
                "sub-topology 1, changelog `app-totals-changelog` is not in the group",
                "sub-topology 1, changelog `app-sums-changelog` of the group is missing here",
                "sub-topology 0 of the group (reads kin) is missing here",
            ]
        );
    }

    #[test]
    fn another_order_is_a_difference() {
        let mut stored = base();
        stored.subtopologies[1].state_changelog_topics[0].configs.reverse();
        let place = "sub-topology 1, changelog `app-sums-changelog`";
        assert_eq!(
            differences(&base(), &stored),
            [format!("{place}: the group has the configs in another order")]
        );
    }
}
