//! Recorded frames: what a 4.4 broker sends is read, what we send is written byte for byte.

use super::*;
use crate::membership::GroupTopology;

const FRAMES: &str = include_str!("../frames.txt");
const HEADER: usize = 8;

/// The bytes of a frame of `frames.txt`.
fn frame(name: &str) -> Vec<u8> {
    let line = FRAMES
        .lines()
        .find(|line| line.split(' ').next() == Some(name))
        .expect(name);
    hex(line.rsplit(' ').next().unwrap())
}

fn correlation(frame: &[u8]) -> i32 {
    i32::from_be_bytes(frame[..4].try_into().unwrap())
}

fn answer<R: Request>(name: &str, version: i16) -> R::Response {
    let frame = frame(name);
    decode_response::<R>(version, correlation(&frame), &frame).unwrap()
}

/// The body of a recorded heartbeat.
fn heartbeat(name: &str) -> HeartbeatRequest {
    let frame = frame(name);
    let client_id = frame[HEADER..HEADER + 2]
        .iter()
        .fold(0, |len, &byte| len * 256 + usize::from(byte));
    HeartbeatRequest::read(&mut Reader::new(&frame[HEADER + 2 + client_id + 1..])).unwrap()
}

#[test]
fn what_we_sent_is_written_byte_for_byte() {
    for name in ["join", "acknowledge-nothing", "release", "after-lost-answer", "leave"] {
        let sent = frame(name);
        let correlation_id = i32::from_be_bytes(sent[4..8].try_into().unwrap());
        let request = heartbeat(name);
        let written = encode_request(&request, 1, correlation_id, &request.group_id);
        assert_eq!(written[4..], sent, "{name}");
    }
    assert_eq!(
        (heartbeat("join").member_epoch, heartbeat("leave").member_epoch),
        (JOIN_EPOCH, LEAVE_EPOCH)
    );
}

#[test]
fn heartbeat_answers_are_read_and_written_back() {
    for name in [
        "joined",
        "assigned",
        "revoked",
        "next-epoch",
        "answer-without-tasks",
        "left",
    ] {
        let read: HeartbeatResponse = answer::<HeartbeatRequest>(name, 1);
        let mut out = Writer::new();
        read.write(1, &mut out);
        assert_eq!(out.into_bytes(), frame(name)[5..], "{name}");
    }
    let joined = answer::<HeartbeatRequest>("joined", 1);
    assert_eq!(joined.tasks, Some(TaskLists::default()));
    let status = &joined.status.unwrap()[0];
    assert!(
        status.code == 3 && status.detail.starts_with("Internal topics are missing: "),
        "{status:?}"
    );
    let assigned = answer::<HeartbeatRequest>("assigned", 1);
    assert_eq!(
        (assigned.member_epoch, assigned.tasks.unwrap().active),
        (3, vec![tasks("0", &[0, 1, 2, 3])])
    );
    let revoked = answer::<HeartbeatRequest>("revoked", 1);
    assert_eq!(
        (revoked.member_epoch, revoked.tasks.unwrap().active),
        (3, vec![tasks("0", &[0, 1])])
    );
    assert_eq!(answer::<HeartbeatRequest>("next-epoch", 1).member_epoch, 4);
    assert_eq!(answer::<HeartbeatRequest>("left", 1).member_epoch, -1);
}

#[test]
fn a_broker_tells_versions_feature_and_coordinator() {
    let offers = answer::<ApiVersionsRequest>("api-versions", 3);
    assert_eq!(offers.streams_version(), Some(1));
    assert_eq!(
        (
            offers.highest(88, 1),
            offers.highest(89, 1),
            offers.highest(10, 4),
            offers.highest(8, 9)
        ),
        (Some(1), Some(1), Some(4), Some(9))
    );
    assert_eq!(
        answer::<FindCoordinatorRequest>("no-coordinator-yet", 4)[0].error_code,
        15
    );
    let coordinator = answer::<FindCoordinatorRequest>("coordinator", 4).remove(0);
    assert_eq!(
        (coordinator.host.as_str(), coordinator.node_id, coordinator.error_code),
        ("127.0.0.1", 1, 0)
    );
}

#[test]
fn a_description_shows_the_assignment_that_the_lost_answer_had() {
    let group = answer::<DescribeRequest>("described", 1).remove(0);
    assert_eq!(
        (group.state.as_str(), group.assignor_name.as_deref()),
        ("Stable", Some("sticky"))
    );
    let member = &group.members[0];
    assert_eq!((member.member_id.as_str(), member.member_epoch), ("m1", 5));
    assert_eq!(member.assignment.active, [tasks("0", &[0, 1, 2, 3])]);
    let next = answer::<HeartbeatRequest>("answer-without-tasks", 1);
    assert_eq!(
        (next.member_epoch, next.tasks),
        (5, None),
        "the heartbeat does not repeat it"
    );
    let stored = GroupTopology::from_described(group.topology.as_ref().unwrap()).unwrap();
    assert_eq!(stored.subtopologies[0].state_changelog_topics[0].partitions, 4);
    let sent = frame("describe");
    assert_eq!(
        encode_request(
            &DescribeRequest {
                group_id: group.group_id.clone()
            },
            1,
            4,
            &group.group_id
        )[4..],
        sent
    );
}
