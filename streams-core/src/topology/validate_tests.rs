#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use super::super::test_support::{TopologyText, global_store, node, source, store, topology};
use super::*;

fn findings(lines: TopologyText<'_>) -> Vec<TopologyError> {
    match topology(lines).validate() {
        Ok(()) => Vec::new(),
        Err(TopologyError::Several(findings)) => findings,
        Err(finding) => vec![finding],
    }
}

#[test]
fn names_follow_the_rule_of_topic_names() {
    for good in ["a", "a.b_c-D9", &"x".repeat(249), "..."] {
        assert_eq!(check_name(good), Ok(()));
    }
    for bad in ["", ".", "..", "a b", "ä", "a/b", &"x".repeat(250)] {
        assert_eq!(
            check_name(bad),
            Err(TopologyError::InvalidName { name: bad.to_owned() })
        );
    }
}

#[test]
fn a_sound_topology_has_no_findings() {
    let lines = [
        "global g: tg gs gp",
        "repartition r 3",
        "source s: t",
        "proc p < s [st g]",
        "sink k: =r < p",
        "source s2: =r",
        "copartition =r",
    ];
    assert_eq!(findings(&lines), []);
}

#[test]
fn all_findings_are_reported_together() {
    let lines = [
        "source s!: t",
        "proc p < missing",
        "source s2: t",
        "sink k: out < p",
        "proc q < k",
        "proc p < s2",
    ];
    let expected = [
        TopologyError::InvalidName { name: "s!".into() },
        TopologyError::Duplicate {
            what: "node",
            name: "p".into(),
        },
        unknown("p", "parent", "missing"),
        TopologyError::Invalid("sink `k` can't be a parent of `q`: read its topic with a source".into()),
        TopologyError::TopicReadTwice {
            topic: "t".into(),
            first: "s!".into(),
            second: "s2".into(),
        },
    ];
    assert_eq!(findings(&lines), expected);
}

#[test]
fn a_parent_must_be_written_before_its_child() {
    assert_eq!(
        findings(&["source s: t", "proc a < s b", "proc b < s"]),
        [unknown("a", "parent", "b")]
    );
    assert_eq!(
        findings(&["source s: t", "proc a < s a"]),
        [unknown("a", "parent", "a")]
    );
}

#[test]
fn a_topology_without_sources_is_refused() {
    assert!(
        Topology::new()
            .validate()
            .unwrap_err()
            .to_string()
            .contains("reads no topic")
    );
}

#[test]
fn stores_are_known_and_belong_to_processors() {
    let mut wrong = topology(&["source s: t", "proc p < s"]);
    wrong.connect_store("p", "nowhere").connect_store("ghost", "nowhere");
    wrong.add_store(store("st")).connect_store("s", "st");
    let Err(TopologyError::Several(findings)) = wrong.validate() else {
        panic!("accepted")
    };
    assert_eq!(
        findings,
        [
            unknown("nowhere", "node", "ghost"),
            TopologyError::Invalid("`s` can't use a store: only processors can".into()),
            unknown("p", "store", "nowhere"),
        ]
    );
}

#[test]
fn a_store_may_be_added_again_but_not_another_of_its_name() {
    let definition = store("st");
    let mut topology = topology(&["source s: t", "proc p < s"]);
    topology.add_store(definition.clone()).add_store(definition);
    let unused = topology.validate().unwrap_err().to_string();
    assert!(
        unused.contains("`st`") && unused.contains("no processor is connected"),
        "{unused}"
    );
    topology.connect_store("p", "st");
    assert_eq!(topology.validate(), Ok(()));
    topology.add_store(store("st"));
    assert_eq!(
        topology.validate(),
        Err(TopologyError::Duplicate {
            what: "store",
            name: "st".into()
        })
    );
}

#[test]
fn a_global_store_stands_alone_and_is_not_logged() {
    let mut wrong = topology(&["source s: t"]);
    wrong.add_global_store(store("g"), "tg", ("gs", source()), ("gp", node()));
    assert!(wrong.validate().unwrap_err().to_string().contains("switch logging off"));
    let linked = findings(&["global g: tg gs gp", "proc p < gp"]);
    assert_eq!(linked.len(), 1);
    assert!(linked[0].to_string().ends_with("gs, gp, p"));
    let mut twice = topology(&["global g: tg gs gp"]);
    twice.add_global_store(global_store("g"), "other", ("gs2", source()), ("gp2", node()));
    assert_eq!(
        twice.validate(),
        Err(TopologyError::Duplicate {
            what: "store",
            name: "g".into()
        })
    );
}

#[test]
fn internal_topics_are_declared_written_and_have_partitions() {
    assert_eq!(
        findings(&["source s: t", "sink k: =r < s"]),
        [unknown("k", "repartition topic", "r")]
    );
    let unwritten = findings(&["repartition r", "source s: =r"]);
    assert!(unwritten[0].to_string().contains("nothing writes it"));
    let empty = findings(&["repartition r 0", "source s: t", "sink k: =r < s", "source s2: =r"]);
    assert!(empty[0].to_string().contains("can't have 0 partitions"));
    let twice = findings(&[
        "repartition r 2",
        "repartition r 3",
        "source s: t",
        "sink k: =r < s",
        "source s2: =r",
    ]);
    assert!(twice[0].to_string().contains("with 2 and with 3 partitions"));
}

#[test]
fn joined_topics_are_read_and_given_counts_agree() {
    let unread = findings(&["source s: t", "copartition t u"]);
    assert_eq!(
        unread,
        [TopologyError::Invalid(
            "topic `u` is joined, but no source reads it: add a source".into()
        )]
    );
    let base = [
        "source s: t",
        "sink k: =a < s",
        "sink l: =b < s",
        "source sa: =a",
        "source sb: =b",
        "copartition =a =b",
    ];
    let differing = findings(&[&["repartition a 2", "repartition b 3"], &base[..]].concat());
    assert_eq!(
        differing,
        [TopologyError::CoPartitioning {
            counts: "a: 2, b: 3".into()
        }]
    );
    assert_eq!(
        findings(&[&["repartition a 2", "repartition b"], &base[..]].concat()),
        []
    );
}

#[test]
fn clocks_of_one_subtopology_must_fit_into_an_offset_commit() {
    let mut sound = topology(&["source s: t", "source s2: t2"]);
    // 9 + 4 + 48 * (12 + 50) = 2989 bytes in each of two sub-topologies.
    for number in 0..48 {
        sound.declare_operator_clock("s", &format!("{number:050}"));
        sound.declare_operator_clock("s2", &format!("{number:050}"));
    }
    assert_eq!(sound.validate(), Ok(()));
    for number in 48..50 {
        sound.declare_operator_clock("s2", &format!("{number:050}"));
    }
    let expected = TopologyError::OperatorClocks {
        node: "s2".into(),
        characters: 4152,
        limit: 4096,
    };
    assert_eq!(sound.validate(), Err(expected));
    let mut homeless = topology(&["source s: t"]);
    homeless.declare_operator_clock("ghost", "key");
    assert_eq!(homeless.validate(), Err(unknown("key", "node", "ghost")));
}
