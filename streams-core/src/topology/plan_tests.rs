#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::super::test_support::{store, topology};
use super::*;

fn names(topics: impl IntoIterator<Item = Arc<str>>) -> Vec<String> {
    topics.into_iter().map(|topic| topic.to_string()).collect()
}

#[test]
fn a_plan_names_topics_with_the_application_id_and_keeps_global_stores_apart() {
    let mut topology = topology(&[
        "global g: tg gs gp",
        "repartition r 5",
        "source s: t2 t1",
        "proc p < s [z g a]",
        "sink k: =r < p",
        "sink o: out < p",
        "source s2: =r",
        "proc q < s2 [y]",
    ]);
    topology
        .declare_operator_clock("p", "z")
        .declare_operator_clock("p", "a")
        .declare_operator_clock("q", "y");
    let defaults = InternalTopicDefaults {
        replication_factor: 3,
        ..InternalTopicDefaults::default()
    };
    let plan = topology.plan("app", &defaults).unwrap();
    assert_eq!(
        (
            plan.global[0].id,
            plan.global[0].nodes.as_slice(),
            &*plan.global[0].topic
        ),
        (0, &[0, 1][..], "tg")
    );
    let [first, second] = &plan.subtopologies[..] else {
        panic!("two sub-topologies")
    };
    assert_eq!((first.id, first.nodes.as_slice()), (1, &[2, 3, 4, 5][..]));
    assert_eq!(names(first.source_topics.keys().cloned()), ["t1", "t2"]);
    assert_eq!(names(first.sink_topics.clone()), ["app-r", "out"]);
    assert_eq!(names(first.repartition_sinks.clone()), ["app-r"]);
    assert_eq!(names(first.stores.clone()), ["z", "a"]);
    assert_eq!(
        names(first.changelogs.iter().map(|c| Arc::clone(&c.topic.name))),
        ["app-a-changelog", "app-z-changelog"]
    );
    assert_eq!(names(first.operator_clocks.clone()), ["a", "z"]);
    assert_eq!(second.repartition_sources[0].partitions, Some(5));
    assert_eq!(second.repartition_sources[0].replication_factor, 3);
    assert_eq!(names(second.external_sources().cloned()), Vec::<String>::new());
    assert_eq!(plan.subtopology(2), Some(second));
    assert_eq!(plan.subtopology(0), None);
    assert_eq!(plan.internal_topics().len(), 4);
}

#[test]
fn a_source_topic_as_changelog_is_not_made() {
    let mut topology = topology(&["source s: t", "proc p < s [unlogged]"]);
    topology.stores.get_mut("unlogged").unwrap().changelog = None;
    let mut table = store("table");
    table.changelog = table.changelog.map(|changelog| changelog.in_source_topic("t"));
    topology.add_store(table).connect_store("p", "table");
    let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
    let changelogs = &plan.subtopologies[0].changelogs;
    assert_eq!(
        (changelogs.len(), &*changelogs[0].topic.name, changelogs[0].source_topic),
        (1, "t", true)
    );
    assert!(plan.internal_topics().is_empty());
}

#[test]
fn a_name_that_is_too_long_with_the_application_id_is_refused() {
    let store_name = "s".repeat(236);
    let topology = topology(&["source s: t", &format!("proc p < s [{store_name}]")]);
    assert!(topology.plan("ap", &InternalTopicDefaults::default()).is_ok());
    let error = topology.plan("app", &InternalTopicDefaults::default()).unwrap_err();
    assert_eq!(
        error,
        TopologyError::InvalidName {
            name: format!("app-{store_name}-changelog")
        }
    );
    assert!(topology.plan("my app", &InternalTopicDefaults::default()).is_err());
}

#[test]
fn a_group_over_two_subtopologies_is_in_the_plan_and_in_neither_of_them() {
    let topology = topology(&[
        "source a: ta",
        "source b: tb",
        "source c: tc",
        "proc j < a c",
        "copartition ta tb",
        "copartition tc",
    ]);
    let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
    assert_eq!(plan.copartition_groups.len(), 2);
    assert_eq!(plan.subtopologies[0].copartition_groups, [[Arc::from("tc")]]);
    assert!(plan.subtopologies[1].copartition_groups.is_empty());
}
