//! What a member says when it cannot go on.

use super::*;
use crate::membership::CopartitionGroup;

/// The error of the only event, which ends the member.
fn fatal_text(member: &mut Member) -> String {
    let text = match event(member) {
        MembershipEvent::Fatal { error } => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(member.next(99_000), Step::End);
    text
}

fn refused_join(code: i16, message: &str) -> String {
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(error(code, message), 0);
    fatal_text(&mut member)
}

#[test]
fn refusals_say_what_to_do() {
    for (code, message, words) in [
        (35, "The version of API is not supported.", "streams.version=1"),
        (69, "Group app is not a streams group.", "of another type"),
        (30, "Group authorization failed.", "allow READ on the group"),
        (29, "Topic authorization failed.", "prefix `app-`"),
        (81, "full", "group.streams.max.size"),
        (42, "MemberId can't be empty.", "do not understand each other"),
        (130, "no writer", "refuse the topology"),
        (99, "what", "error 99"),
    ] {
        let text = refused_join(code, message);
        assert!(text.contains(words) && text.contains("`app`"), "{code}: {text}");
    }
}

#[test]
fn a_missing_topic_permission_is_reported_and_the_tasks_stay() {
    let mut member = settled(&[0]);
    let mut now = 10_000;
    heartbeat(&mut member, now);
    member.on_answer(error(29, "Topic authorization failed."), now);
    match event(&mut member) {
        MembershipEvent::Refused { error } => assert!(error.to_string().contains("prefix `app-`"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(later(&mut member, &mut now).tasks, Some(lists(&[0])));
}

/// A member that was told "topology updates are not supported".
fn changed() -> Member {
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(error(42, "Topology updates are not supported yet."), 0);
    assert!(events(&mut member).is_empty());
    assert!(matches!(member.next(0), Step::Describe(_)));
    member
}

#[test]
fn a_changed_topology_is_explained_with_what_differs() {
    let mut member = changed();
    let stored = DescribedSubtopology {
        id: "0".into(),
        source_topics: vec!["old".into()],
        ..DescribedSubtopology::default()
    };
    let topology = DescribedTopology {
        epoch: 0,
        subtopologies: Some(vec![stored]),
    };
    member.on_described(
        &DescribedGroup {
            topology: Some(topology),
            ..DescribedGroup::default()
        },
        1,
    );
    let text = fatal_text(&mut member);
    for words in [
        "reads `in`",
        "does not read `old`",
        "new application.id",
        "delete the group",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_changed_topology_is_explained_without_a_description_too() {
    let mut member = changed();
    member.on_failure("connection reset", 1);
    assert!(fatal_text(&mut member).contains("new application.id"));
    let mut member = changed();
    member.on_described(
        &DescribedGroup {
            error_code: 30,
            ..DescribedGroup::default()
        },
        1,
    );
    assert!(fatal_text(&mut member).contains("does not show"));
}

#[test]
fn an_unreachable_coordinator_is_reported_and_tried_on() {
    let mut member = member();
    let mut now = 0;
    let mut reports = Vec::new();
    while now < 60_000 {
        later(&mut member, &mut now);
        member.on_failure("connection refused", now);
        for event in events(&mut member) {
            match event {
                MembershipEvent::Refused { error } => reports.push((now, error.to_string())),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(
        reports[0].0 >= 10_000
            && reports[0].1.contains("localhost:9092")
            && reports[0].1.contains("connection refused")
    );
}

#[test]
fn empty_ids_and_impossible_topologies_are_refused_before_anything_is_sent() {
    let error = Member::new(
        MemberConfig {
            group_id: String::new(),
            ..config()
        },
        0,
    )
    .unwrap_err();
    assert!(error.to_string().contains("application.id"), "{error}");
    let mut topology = config().topology;
    let group = CopartitionGroup {
        source_topics: vec!["other".into()],
        repartition_topics: vec![],
    };
    topology.subtopologies[0].copartition_groups.push(group);
    let error = Member::new(MemberConfig { topology, ..config() }, 0).unwrap_err();
    assert!(error.to_string().contains("`other`"), "{error}");
}
