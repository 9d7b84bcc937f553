#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::super::InternalTopicDefaults;
use super::super::test_support::{TopologyText, topology};
use super::*;

type Cluster<'a> = &'a [(&'a str, i32)];

fn resolve(lines: TopologyText<'_>, cluster: Cluster<'_>) -> Result<ResolvedTopics, TopologyError> {
    let plan = topology(lines).plan("app", &InternalTopicDefaults::default()).unwrap();
    plan.resolve(|topic| partitions(cluster, topic))
}

fn partitions(cluster: Cluster<'_>, topic: &str) -> Option<i32> {
    cluster.iter().find(|(name, _)| *name == topic).map(|(_, count)| *count)
}

fn counts(map: &BTreeMap<Arc<str>, i32>) -> Vec<(&str, i32)> {
    map.iter().map(|(name, count)| (&**name, *count)).collect()
}

const JOIN_AFTER_REPARTITION: [&str; 6] = [
    "repartition r",
    "source a: ta",
    "sink k: =r < a",
    "source ra: =r",
    "source b: tb",
    "proc j < ra b [st]",
];

#[test]
fn a_repartition_topic_has_the_most_partitions_of_its_feeders_sources() {
    let lines = [
        "repartition r",
        "source a: ta",
        "source b: tb",
        "sink k: =r < a b",
        "source s: =r",
        "proc p < s [st]",
    ];
    let resolved = resolve(&lines, &[("ta", 3), ("tb", 5)]).unwrap();
    assert_eq!(counts(&resolved.repartition), [("app-r", 5)]);
    assert_eq!(counts(&resolved.changelogs), [("app-st-changelog", 5)]);
    assert_eq!(resolved.tasks, BTreeMap::from([(0, 5), (1, 5)]));
    assert_eq!(resolved.task_ids().count(), 10);
    assert_eq!(resolved.task_ids().last(), Some(TaskId::new(1, 4)));
}

#[test]
fn a_given_count_is_kept_and_handed_down_a_chain() {
    let lines = [
        "repartition r1 7",
        "repartition r2",
        "source a: ta",
        "sink k1: =r1 < a",
        "source s1: =r1",
        "sink k2: =r2 < s1",
        "source s2: =r2",
    ];
    let resolved = resolve(&lines, &[("ta", 3)]).unwrap();
    assert_eq!(counts(&resolved.repartition), [("app-r1", 7), ("app-r2", 7)]);
    assert_eq!(resolved.tasks, BTreeMap::from([(0, 3), (1, 7), (2, 7)]));
}

#[test]
fn a_chain_is_followed_against_the_order_of_the_subtopologies() {
    // Sub-topology 0 reads r1, which 1 writes from r2, which 2 writes from the only topic that is there.
    let lines = [
        "repartition r1",
        "repartition r2",
        "source s0: =r1",
        "source s1: =r2",
        "sink k1: =r1 < s1",
        "source s2: t",
        "sink k2: =r2 < s2",
    ];
    assert_eq!(
        counts(&resolve(&lines, &[("t", 4)]).unwrap().repartition),
        [("app-r1", 4), ("app-r2", 4)]
    );
}

#[test]
fn a_loop_takes_its_count_from_outside_or_is_refused() {
    let looped = [
        "repartition r",
        "source a: ta",
        "source s: =r",
        "proc p < a s",
        "sink k: =r < p",
    ];
    assert_eq!(
        counts(&resolve(&looped, &[("ta", 3)]).unwrap().repartition),
        [("app-r", 3)]
    );
    let closed = ["repartition r", "source s: =r", "sink k: =r < s"];
    let error = resolve(&closed, &[]).unwrap_err().to_string();
    assert!(
        error.contains("app-r") && error.contains("give one of them a number"),
        "{error}"
    );
}

#[test]
fn all_missing_topics_are_named_with_those_of_global_stores() {
    let lines = ["global g: tg gs gp", "source a: ta", "source b: tb tc"];
    let error = resolve(&lines, &[("tb", 1), ("tc", 0)]).unwrap_err();
    assert_eq!(
        error,
        TopologyError::MissingTopics {
            topics: vec!["ta".into(), "tc".into(), "tg".into()]
        }
    );
}

#[test]
fn a_joined_repartition_topic_takes_the_count_of_the_external_topic() {
    let lines = [&JOIN_AFTER_REPARTITION[..], &["copartition =r tb"]].concat();
    let resolved = resolve(&lines, &[("ta", 3), ("tb", 8)]).unwrap();
    assert_eq!(counts(&resolved.repartition), [("app-r", 8)]);
    assert_eq!(counts(&resolved.changelogs), [("app-st-changelog", 8)]);
    let fewer = resolve(&lines, &[("ta", 8), ("tb", 3)]).unwrap();
    assert_eq!(counts(&fewer.repartition), [("app-r", 3)]);
}

#[test]
fn joined_external_topics_of_unequal_counts_are_named_with_their_numbers() {
    let lines = [
        "source a: ta",
        "source b: tb",
        "source c: tc",
        "source d: td",
        "copartition tb ta",
        "copartition tc td",
    ];
    let error = resolve(&lines, &[("ta", 3), ("tb", 4), ("tc", 5), ("td", 6)]).unwrap_err();
    let finding = |counts: &str| TopologyError::CoPartitioning { counts: counts.into() };
    assert_eq!(
        error,
        TopologyError::Several(vec![finding("ta: 3, tb: 4"), finding("tc: 5, td: 6")])
    );
}

#[test]
fn a_given_count_that_does_not_fit_the_join_is_refused() {
    let mut lines = [&JOIN_AFTER_REPARTITION[..], &["copartition =r tb"]].concat();
    lines[0] = "repartition r 5";
    let error = resolve(&lines, &[("ta", 3), ("tb", 8)]).unwrap_err();
    let counts = "app-r: 5 (given to the repartition), tb: 8".to_owned();
    assert_eq!(error, TopologyError::CoPartitioning { counts });
}

#[test]
fn joined_repartition_topics_take_the_given_count_else_the_largest() {
    let base = [
        "source a: ta",
        "source b: tb",
        "sink ka: =ra < a",
        "sink kb: =rb < b",
        "source sa: =ra",
        "source sb: =rb",
    ];
    let join = ["proc j < sa sb", "copartition =ra =rb"];
    let free = resolve(
        &[&["repartition ra", "repartition rb"], &base[..], &join[..]].concat(),
        &[("ta", 3), ("tb", 6)],
    );
    assert_eq!(counts(&free.unwrap().repartition), [("app-ra", 6), ("app-rb", 6)]);
    let given = resolve(
        &[&["repartition ra 2", "repartition rb"], &base[..], &join[..]].concat(),
        &[("ta", 3), ("tb", 6)],
    );
    let given = given.unwrap();
    assert_eq!(counts(&given.repartition), [("app-ra", 2), ("app-rb", 2)]);
    assert_eq!(given.tasks, BTreeMap::from([(0, 3), (1, 6), (2, 2)]));
}

#[test]
fn a_source_topic_as_changelog_gets_no_count() {
    let mut topology = topology(&["source s: t", "proc p < s [st]"]);
    let store = topology.stores.get_mut("st").unwrap();
    store.changelog = store.changelog.take().map(|changelog| changelog.in_source_topic("t"));
    let plan = topology.plan("app", &InternalTopicDefaults::default()).unwrap();
    assert!(plan.resolve(|_| Some(2)).unwrap().changelogs.is_empty());
}

#[test]
fn existing_internal_topics_must_have_the_counts_that_are_needed() {
    let resolved = resolve(&JOIN_AFTER_REPARTITION, &[("ta", 3), ("tb", 2)]).unwrap();
    let check = |cluster: Cluster<'_>| resolved.check_existing(|topic| partitions(cluster, topic));
    assert_eq!(check(&[]), Ok(()));
    assert_eq!(check(&[("app-r", 3), ("app-st-changelog", 3), ("out", 9)]), Ok(()));
    let finding = TopologyError::PartitionCount {
        topic: "app-r".into(),
        actual: 4,
        needed: 3,
    };
    assert_eq!(check(&[("app-r", 4)]), Err(finding));
}
