//! Schedules of joins, assignments, failures and leaves, by hand-moved time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod refusals;

use super::*;
use crate::membership::codec::describe::{DescribedGroup, DescribedMember, DescribedSubtopology, DescribedTopology};
use crate::membership::codec::heartbeat::HeartbeatResponse;
use crate::membership::codec::structs::{TaskIds, TaskLists, WireStatus};
use crate::membership::{StatusCode, Subtopology};

const MAX_POLL_MS: i64 = 300_000;

fn config() -> MemberConfig {
    MemberConfig {
        group_id: "app".into(),
        member_id: "m1".into(),
        process_id: "p1".into(),
        rack_id: None,
        client_tags: vec![("zone".into(), "a".into())],
        endpoint: Some(("host".into(), 80)),
        rebalance_timeout_ms: 300_000,
        max_poll_interval_ms: MAX_POLL_MS,
        heartbeat_max_ms: None,
        topology: GroupTopology {
            subtopologies: vec![Subtopology {
                source_topics: vec!["in".into()],
                ..Subtopology::default()
            }],
        },
        bootstrap: "localhost:9092".into(),
    }
}

fn member() -> Member {
    Member::new(config(), 0).unwrap()
}

fn task(partition: i32) -> TaskId {
    TaskId {
        subtopology: 0,
        partition,
    }
}

fn lists(active: &[i32]) -> TaskLists {
    let ids = TaskIds {
        subtopology_id: "0".into(),
        partitions: active.to_vec(),
    };
    TaskLists {
        active: if active.is_empty() { vec![] } else { vec![ids] },
        ..TaskLists::default()
    }
}

fn answer(epoch: i32, active: Option<&[i32]>) -> HeartbeatResponse {
    HeartbeatResponse {
        member_id: "m1".into(),
        member_epoch: epoch,
        heartbeat_interval_ms: 5_000,
        status: Some(vec![]),
        tasks: active.map(lists),
        ..HeartbeatResponse::default()
    }
}

fn error(code: i16, message: &str) -> HeartbeatResponse {
    HeartbeatResponse {
        error_code: code,
        error_message: Some(message.into()),
        ..HeartbeatResponse::default()
    }
}

fn with_status(code: i8, detail: &str, response: HeartbeatResponse) -> HeartbeatResponse {
    HeartbeatResponse {
        status: Some(vec![WireStatus {
            code,
            detail: detail.into(),
        }]),
        ..response
    }
}

/// The heartbeat that is due at `now_ms`.
fn heartbeat(member: &mut Member, now_ms: i64) -> HeartbeatRequest {
    match member.next(now_ms) {
        Step::Heartbeat(request) => *request,
        other => panic!("no heartbeat at {now_ms} but {other:?}"),
    }
}

fn events(member: &mut Member) -> Vec<MembershipEvent> {
    std::iter::from_fn(|| member.pop_event()).collect()
}

/// The only event.
fn event(member: &mut Member) -> MembershipEvent {
    let mut events = events(member);
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

fn assigned(event: &MembershipEvent) -> (u64, i32, Vec<i32>) {
    match event {
        MembershipEvent::Assigned {
            assignment,
            member,
            active,
            ..
        } => (
            *assignment,
            member.epoch,
            active.iter().map(|task| task.partition).collect(),
        ),
        other => panic!("not an assignment: {other:?}"),
    }
}

fn owned(assignment: u64, active: &[i32]) -> MembershipCommand {
    MembershipCommand::Owned {
        assignment,
        active: active.iter().map(|&partition| task(partition)).collect(),
        standby: vec![],
    }
}

/// A member at `epoch` 3 that owns and has acknowledged `active`; time 0, no event left.
fn settled(active: &[i32]) -> Member {
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(answer(3, Some(active)), 0);
    let (assignment, ..) = assigned(&event(&mut member));
    member.on_command(owned(assignment, active), 0);
    assert_eq!(heartbeat(&mut member, 0).tasks, Some(lists(active)));
    member.on_answer(answer(3, None), 0);
    assert!(events(&mut member).is_empty());
    member
}

/// The next heartbeat after a wait.
fn later(member: &mut Member, now_ms: &mut i64) -> HeartbeatRequest {
    match member.next(*now_ms) {
        Step::Heartbeat(request) => *request,
        Step::Wait { until_ms } => {
            *now_ms = until_ms;
            heartbeat(member, until_ms)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_join_says_everything_and_later_heartbeats_only_what_is_new() {
    let mut member = member();
    let join = heartbeat(&mut member, 0);
    assert_eq!(
        (join.member_epoch, join.endpoint_epoch, join.rebalance_timeout_ms),
        (0, -1, 300_000)
    );
    assert_eq!(join.tasks, Some(TaskLists::default()));
    assert!(join.topology.is_some() && join.process_id.is_some() && join.endpoint.is_some());
    assert_eq!(join.client_tags.as_ref().map(Vec::len), Some(1));
    member.on_answer(
        HeartbeatResponse {
            endpoint_epoch: 7,
            ..answer(3, Some(&[0, 1]))
        },
        0,
    );
    assert_eq!(assigned(&event(&mut member)), (1, 3, vec![0, 1]));
    let next = heartbeat(&mut member, 200);
    assert_eq!(
        (next.member_epoch, next.endpoint_epoch, next.rebalance_timeout_ms),
        (3, 7, -1)
    );
    assert_eq!(
        (next.topology, next.tasks, next.process_id, next.client_tags),
        (None, None, None, None)
    );
}

#[test]
fn an_acknowledgement_is_sent_at_once_and_once() {
    let mut member = settled(&[0, 1]);
    assert_eq!(heartbeat(&mut member, 10_000).tasks, None);
}

#[test]
fn rule_1_1_every_change_of_the_epoch_is_an_event() {
    let mut member = settled(&[0]);
    heartbeat(&mut member, 10_000);
    member.on_answer(answer(4, None), 10_000);
    match event(&mut member) {
        MembershipEvent::Epoch { member } => assert_eq!(
            member,
            MemberEpoch {
                member_id: "m1".into(),
                epoch: 4
            }
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rule_1_5_a_revocation_keeps_the_old_epoch_until_it_is_acknowledged() {
    let mut member = settled(&[0, 1]);
    heartbeat(&mut member, 10_000);
    member.on_answer(answer(3, Some(&[0])), 10_000);
    assert_eq!(assigned(&event(&mut member)), (2, 3, vec![0]));
    assert_eq!(heartbeat(&mut member, 20_000).tasks, None, "not released yet");
    member.on_answer(answer(3, None), 20_000);
    member.on_command(owned(2, &[0]), 20_001);
    assert_eq!(heartbeat(&mut member, 20_001).tasks, Some(lists(&[0])));
    member.on_answer(answer(4, None), 20_002);
    assert!(matches!(event(&mut member), MembershipEvent::Epoch { .. }));
}

#[test]
fn the_answer_to_an_older_assignment_releases_nothing() {
    let mut member = settled(&[]);
    let mut now = 10_000;
    for tasks in [&[0][..], &[0, 1], &[0]] {
        later(&mut member, &mut now);
        member.on_answer(answer(3, Some(tasks)), now);
    }
    let events = events(&mut member);
    assert_eq!(
        events.iter().map(|event| assigned(event).0).collect::<Vec<_>>(),
        [2, 3, 4]
    );
    // The thread has applied number 2 and may be about to apply 3: task 1 is not released by what it says now.
    member.on_command(owned(2, &[0]), now);
    assert_eq!(later(&mut member, &mut now).tasks, None);
    member.on_answer(answer(3, None), now);
    member.on_command(owned(4, &[0]), now);
    assert_eq!(heartbeat(&mut member, now).tasks, Some(lists(&[0])));
}

#[test]
fn a_revocation_is_acknowledged_even_by_lists_that_were_said_before() {
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(answer(3, Some(&[0])), 0);
    heartbeat(&mut member, 200);
    member.on_answer(answer(3, Some(&[])), 200);
    assert_eq!(events(&mut member).len(), 2);
    // The join has said empty lists already; the coordinator waits for them to be said again.
    member.on_command(owned(2, &[]), 210);
    assert_eq!(heartbeat(&mut member, 210).tasks, Some(TaskLists::default()));
}

#[test]
fn after_an_error_the_lists_name_whatever_the_thread_may_hold() {
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(answer(3, Some(&[0, 1])), 0);
    heartbeat(&mut member, 200);
    member.on_answer(answer(3, Some(&[1])), 200);
    // Nothing acknowledged: the thread may run task 0, so saying lists without it would release it.
    let mut now = 400;
    heartbeat(&mut member, now);
    assert_eq!(
        member.on_answer(error(16, "not coordinator"), now),
        Coordination::FindAgain
    );
    assert_eq!(later(&mut member, &mut now).tasks, Some(lists(&[0, 1])));
    assert_eq!(member.on_answer(error(14, "loading"), now), Coordination::Keep);
    let retried_at = now;
    assert_eq!(later(&mut member, &mut now).tasks, Some(lists(&[0, 1])));
    assert!(now - retried_at >= 200, "backs off");
}

#[test]
fn a_fenced_member_loses_its_tasks_and_rejoins_at_once_with_its_id() {
    for code in [25, 110] {
        let mut member = settled(&[0, 1]);
        heartbeat(&mut member, 10_000);
        member.on_answer(error(code, "fenced"), 10_000);
        match event(&mut member) {
            MembershipEvent::Lost { assignment, reason } => assert_eq!((assignment, reason), (2, LostReason::Fenced)),
            other => panic!("{other:?}"),
        }
        // What the thread says about the lost assignment comes too late.
        member.on_command(owned(1, &[0, 1]), 10_001);
        let join = heartbeat(&mut member, 10_001);
        assert_eq!(
            (join.member_id.as_str(), join.member_epoch, join.tasks),
            ("m1", 0, Some(TaskLists::default()))
        );
        member.on_answer(answer(8, Some(&[0])), 10_002);
        assert_eq!(assigned(&event(&mut member)), (3, 8, vec![0]));
    }
}

#[test]
fn a_member_that_is_fenced_again_and_again_backs_off() {
    let mut member = settled(&[0]);
    let mut now = 10_000;
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let before = now;
        later(&mut member, &mut now);
        member.on_answer(error(25, "unknown"), now);
        pauses.push(now - before);
    }
    assert_eq!(pauses[..2], [0, 0]);
    assert!(pauses[2] >= 100 && pauses[3] >= 200, "{pauses:?}");
}

#[test]
fn a_deleted_group_is_joined_again() {
    let mut member = settled(&[0]);
    heartbeat(&mut member, 10_000);
    member.on_answer(error(69, "Group app not found."), 10_000);
    assert!(matches!(
        event(&mut member),
        MembershipEvent::Lost {
            reason: LostReason::GroupDeleted,
            ..
        }
    ));
    assert_eq!(heartbeat(&mut member, 10_000).member_epoch, 0);
}

/// Our entry in a description.
fn entry(epoch: i32, active: &[i32]) -> DescribedGroup {
    let member = DescribedMember {
        member_id: "m1".into(),
        member_epoch: epoch,
        assignment: lists(active),
        ..DescribedMember::default()
    };
    DescribedGroup {
        members: vec![DescribedMember::default(), member],
        ..DescribedGroup::default()
    }
}

/// A member whose heartbeat was answered after an answer had been lost; the description is due.
fn in_doubt(epoch: i32) -> (Member, i64) {
    let mut member = settled(&[0]);
    let mut now = 10_000;
    heartbeat(&mut member, now);
    member.on_failure("connection reset", now);
    assert_eq!(later(&mut member, &mut now).tasks, Some(lists(&[0])));
    member.on_answer(answer(epoch, None), now);
    events(&mut member);
    assert!(matches!(member.next(now), Step::Describe(_)));
    (member, now)
}

#[test]
fn a_lost_answer_loses_no_assignment() {
    let (mut member, now) = in_doubt(4);
    member.on_described(&entry(4, &[0, 1]), now);
    assert_eq!(assigned(&event(&mut member)), (2, 4, vec![0, 1]));
    assert!(matches!(member.next(now), Step::Wait { .. }));
}

#[test]
fn a_lost_answer_that_said_nothing_new_changes_nothing() {
    let (mut member, now) = in_doubt(3);
    member.on_described(&entry(3, &[0]), now);
    assert!(events(&mut member).is_empty());
    assert!(matches!(member.next(now), Step::Wait { .. }));
}

#[test]
fn an_entry_that_is_gone_or_moved_on_means_joining_anew() {
    for group in [DescribedGroup::default(), entry(9, &[0])] {
        let (mut member, now) = in_doubt(3);
        member.on_described(&group, now);
        assert!(matches!(
            event(&mut member),
            MembershipEvent::Lost {
                reason: LostReason::OutOfStep,
                ..
            }
        ));
        assert_eq!(heartbeat(&mut member, now).member_epoch, 0);
    }
}

#[test]
fn an_answer_with_tasks_settles_the_doubt_without_a_description() {
    let mut member = settled(&[0]);
    let mut now = 10_000;
    heartbeat(&mut member, now);
    member.on_failure("time-out", now);
    later(&mut member, &mut now);
    member.on_answer(answer(4, Some(&[0, 2])), now);
    assert_eq!(assigned(&event(&mut member)).2, [0, 2]);
    assert!(matches!(member.next(now), Step::Wait { .. }));
}

#[test]
fn a_join_whose_answer_is_lost_is_a_join_again() {
    let mut member = member();
    let mut now = 0;
    heartbeat(&mut member, now);
    member.on_failure("connection reset", now);
    assert_eq!(later(&mut member, &mut now).member_epoch, 0);
    member.on_answer(answer(1, Some(&[0])), now);
    assert_eq!(assigned(&event(&mut member)).2, [0]);
    assert!(
        matches!(member.next(now), Step::Wait { .. }),
        "nothing is in doubt after a join"
    );
}

#[test]
fn rule_6_3_a_thread_that_stands_still_leaves_and_rejoins_when_it_loops_again() {
    let mut member = settled(&[0]);
    member.on_command(MembershipCommand::Alive { at_ms: 1_000 }, 1_000);
    let mut now = 10_000;
    while now < MAX_POLL_MS + 1_000 {
        match member.next(now) {
            Step::Heartbeat(request) => {
                assert_eq!(request.member_epoch, 3);
                member.on_answer(answer(3, None), now);
            }
            Step::Wait { until_ms } => now = until_ms,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(now, MAX_POLL_MS + 1_000, "no wait beyond the deadline");
    assert_eq!(heartbeat(&mut member, now).member_epoch, -1);
    assert!(matches!(
        event(&mut member),
        MembershipEvent::Lost {
            reason: LostReason::PollIntervalExceeded,
            ..
        }
    ));
    member.on_answer(answer(-1, None), now);
    assert!(
        matches!(member.next(now + 60_000), Step::Wait { .. }),
        "no heartbeat while it stands still"
    );
    member.on_command(MembershipCommand::Alive { at_ms: 1_000 }, now + 60_000);
    assert!(
        matches!(member.next(now + 60_000), Step::Wait { .. }),
        "an old stamp is no sign of life"
    );
    member.on_command(MembershipCommand::Alive { at_ms: now + 60_001 }, now + 60_001);
    assert_eq!(heartbeat(&mut member, now + 60_001).member_epoch, 0);
    assert!(events(&mut member).is_empty());
}

/// What the old member sent may still arrive. It must meet a member that is gone, or an owner that nobody has taken over from.
#[test]
fn rule_7_a_member_in_doubt_leaves_and_joins_under_another_id() {
    let mut member = settled(&[0]);
    member.on_command(MembershipCommand::Rejoin { member_id: "m2".into() }, 10);
    assert!(matches!(
        event(&mut member),
        MembershipEvent::Lost {
            reason: LostReason::ClaimInDoubt,
            ..
        }
    ));
    let leave = heartbeat(&mut member, 10);
    assert_eq!((leave.member_id.as_str(), leave.member_epoch), ("m1", LEAVE_EPOCH));
    // Whether the answer comes or not.
    member.on_failure("no answer", 20);
    member.on_command(MembershipCommand::Alive { at_ms: 30 }, 30);
    let join = heartbeat(&mut member, 1_000);
    assert_eq!((join.member_id.as_str(), join.member_epoch), ("m2", JOIN_EPOCH));
    assert!(join.topology.is_some());
    member.on_answer(answer(9, Some(&[0])), 1_000);
    let events = events(&mut member);
    let identity = events.iter().find_map(|event| match event {
        MembershipEvent::Assigned { member, .. } => Some(member.clone()),
        _ => None,
    });
    let expected = MemberEpoch {
        member_id: "m2".into(),
        epoch: 9,
    };
    assert_eq!(identity, Some(expected));
}

#[test]
fn a_leave_is_sent_at_once_and_ends_the_member() {
    let mut member = settled(&[0]);
    member.on_command(
        MembershipCommand::Leave {
            shutdown_application: true,
        },
        5,
    );
    let leave = heartbeat(&mut member, 5);
    assert_eq!(
        (leave.member_epoch, leave.shutdown_application, leave.tasks),
        (-1, true, None)
    );
    member.on_answer(answer(-1, None), 6);
    assert!(matches!(event(&mut member), MembershipEvent::Left));
    assert_eq!(member.next(6), Step::End);
}

#[test]
fn a_leave_without_answer_is_tried_twice_and_no_more() {
    let mut member = settled(&[0]);
    member.on_command(
        MembershipCommand::Leave {
            shutdown_application: false,
        },
        5,
    );
    for _ in 0..2 {
        assert_eq!(heartbeat(&mut member, 5).member_epoch, -1);
        member.on_failure("connection refused", 5);
    }
    assert!(matches!(event(&mut member), MembershipEvent::Left));
    assert_eq!(member.next(5), Step::End);
}

#[test]
fn statuses_are_told_when_they_change_and_only_some_stop_tasks() {
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(with_status(1, "Source topics in are missing.", answer(1, Some(&[]))), 0);
    match event(&mut member) {
        MembershipEvent::Assigned { ready, status, .. } => {
            assert!(!ready);
            assert_eq!(
                (status[0].code, status[0].detail.as_str()),
                (StatusCode::MissingSourceTopics, "Source topics in are missing.")
            );
        }
        other => panic!("{other:?}"),
    }
    heartbeat(&mut member, 100);
    member.on_answer(with_status(1, "Source topics in are missing.", answer(1, None)), 100);
    assert!(events(&mut member).is_empty(), "nothing new");
    heartbeat(&mut member, 200);
    member.on_answer(with_status(5, "delayed", answer(1, None)), 200);
    assert!(matches!(
        event(&mut member),
        MembershipEvent::Status { ready: true, .. }
    ));
    heartbeat(&mut member, 300);
    member.on_answer(
        HeartbeatResponse {
            status: None,
            ..answer(1, None)
        },
        300,
    );
    assert!(events(&mut member).is_empty(), "null leaves the statuses");
}

#[test]
fn warm_ups_run_as_standbys_and_are_acknowledged_as_warm_ups() {
    let one = |partition| {
        vec![TaskIds {
            subtopology_id: "0".into(),
            partitions: vec![partition],
        }]
    };
    let tasks = TaskLists {
        active: one(0),
        standby: one(1),
        warmup: one(2),
    };
    let mut member = member();
    heartbeat(&mut member, 0);
    member.on_answer(
        HeartbeatResponse {
            tasks: Some(tasks.clone()),
            ..answer(1, None)
        },
        0,
    );
    match event(&mut member) {
        MembershipEvent::Assigned { standby, .. } => assert_eq!(standby, [task(1), task(2)]),
        other => panic!("{other:?}"),
    }
    let owned = MembershipCommand::Owned {
        assignment: 1,
        active: vec![task(0)],
        standby: vec![task(1), task(2)],
    };
    member.on_command(owned, 1);
    assert_eq!(heartbeat(&mut member, 1).tasks, Some(tasks));
}

#[test]
fn a_refused_commit_asks_at_once() {
    let mut member = settled(&[0]);
    heartbeat(&mut member, 20_000);
    member.on_answer(answer(3, None), 20_000);
    assert_eq!(member.next(20_001), Step::Wait { until_ms: 25_000 });
    member.on_command(MembershipCommand::HeartbeatNow, 20_002);
    heartbeat(&mut member, 20_002);
    member.on_answer(answer(3, None), 20_002);
    assert_eq!(member.next(20_003), Step::Wait { until_ms: 20_202 });
}

#[test]
fn a_broker_that_wants_silence_gets_it() {
    let mut member = settled(&[0]);
    heartbeat(&mut member, 10_000);
    member.on_answer(
        HeartbeatResponse {
            throttle_time_ms: 30_000,
            ..answer(3, None)
        },
        10_000,
    );
    assert_eq!(member.next(10_001), Step::Wait { until_ms: 40_000 });
}
