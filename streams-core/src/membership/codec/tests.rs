//! Frames that a Kafka 4.4 broker and its Java client exchanged, round trips, and broken input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod recorded;

use proptest::prelude::*;

use super::api_versions::{ApiVersion, ApiVersionsRequest, Feature};
use super::coordinator::FindCoordinatorRequest;
use super::describe::{DescribeRequest, DescribedGroup, DescribedMember, DescribedSubtopology, DescribedTopology};
use super::heartbeat::{HeartbeatRequest, HeartbeatResponse, JOIN_EPOCH, LEAVE_EPOCH};
use super::offset_commit::{CommitPartition, CommitTopic, CommittedPartition, OffsetCommitRequest};
use super::structs::*;
use super::wire::{Reader, Wire, WireError, Writer};
use super::{Request, decode_response, encode_request};

/// Bytes of hex text; spaces, bars and line ends are for the reader.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn ascii(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn body<R: Request>(request: &R, version: i16) -> Vec<u8> {
    let mut out = Writer::new();
    request.write(version, &mut out);
    out.into_bytes()
}

fn response_frame(correlation_id: i32, tags: bool, body: &[u8]) -> Vec<u8> {
    let mut frame = correlation_id.to_be_bytes().to_vec();
    if tags {
        frame.push(0);
    }
    frame.extend(body);
    frame
}

fn tasks(subtopology: &str, partitions: &[i32]) -> TaskIds {
    TaskIds {
        subtopology_id: subtopology.into(),
        partitions: partitions.to_vec(),
    }
}

fn config(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: value.into(),
    }
}

fn join() -> HeartbeatRequest {
    let changelog = WireTopicInfo {
        name: "j2-sums-changelog".into(),
        partitions: 0,
        replication_factor: -1,
        configs: vec![
            config("cleanup.policy", "compact"),
            config("message.timestamp.type", "CreateTime"),
        ],
    };
    let subtopology = WireSubtopology {
        id: "0".into(),
        source_topics: vec!["kin".into()],
        state_changelog_topics: vec![changelog],
        ..WireSubtopology::default()
    };
    HeartbeatRequest {
        group_id: "j2".into(),
        member_id: "rust1".into(),
        member_epoch: JOIN_EPOCH,
        endpoint_epoch: -1,
        rebalance_timeout_ms: 300_000,
        topology: Some(WireTopology {
            epoch: 0,
            subtopologies: vec![subtopology],
        }),
        tasks: Some(TaskLists::default()),
        process_id: Some("proc-rust1".into()),
        client_tags: Some(vec![]),
        ..HeartbeatRequest::default()
    }
}

fn steady(member_epoch: i32) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: "v0a".into(),
        member_id: "m1".into(),
        member_epoch,
        rebalance_timeout_ms: -1,
        ..HeartbeatRequest::default()
    }
}

#[test]
fn a_join_has_the_bytes_that_a_broker_accepted() {
    let expected = hex(&format!(
        "03 6a32 | 06 7275737431 | 00000000 | ffffffff | 00 | 00 | 000493e0 | 01 | 00000000 | 02 | 02 30 | 02 04 6b696e | 01 |
         02 12 {} 00000000 ffff 03 0f {} 08 {} 00 17 {} 0b {} 00 00 | 01 | 01 | 01 | 00 | 00 | 01 01 01 | 0b {} | ff | 01 |
         00 00 | 00 | 00",
        ascii("j2-sums-changelog"),
        ascii("cleanup.policy"),
        ascii("compact"),
        ascii("message.timestamp.type"),
        ascii("CreateTime"),
        ascii("proc-rust1"),
    ));
    assert_eq!(expected.len(), 148);
    for version in [0, 1] {
        assert_eq!(body(&join(), version), expected);
    }
    assert_eq!(HeartbeatRequest::read(&mut Reader::new(&expected)).unwrap(), join());
}

#[test]
fn javas_join_differs_only_in_its_empty_offset_lists() {
    let java = HeartbeatRequest {
        task_offsets: Some(vec![]),
        task_end_offsets: Some(vec![]),
        ..join()
    };
    let ours = body(&join(), 1);
    let theirs = body(&java, 1);
    let different: Vec<usize> = (0..ours.len()).filter(|&at| ours[at] != theirs[at]).collect();
    assert_eq!(different, [144, 145]);
    assert_eq!((&ours[144..146], &theirs[144..146]), (&[0, 0][..], &[1, 1][..]));
}

#[test]
fn a_steady_heartbeat_is_32_bytes_of_nulls() {
    let expected = hex(
        "04 763061 | 03 6d31 | 00000003 | 00000000 | 00 | 00 | ffffffff | ff | 00 00 00 | 00 | ff | 00 | 00 00 | 00 | 00",
    );
    assert_eq!(expected.len(), 32);
    assert_eq!(body(&steady(3), 0), expected);
}

#[test]
fn an_acknowledgement_lists_the_tasks() {
    let lists = TaskLists {
        active: vec![tasks("0", &[0, 1, 2, 3]), tasks("1", &[0, 1, 2, 3])],
        ..TaskLists::default()
    };
    let list = "05 00000000 00000001 00000002 00000003 00";
    let expected = hex(&format!(
        "04 763061 | 03 6d31 | 00000003 | 00000000 | 00 | 00 | ffffffff | ff | 03 02 30 {list} 02 31 {list} 01 01 |
         00 | ff | 00 | 00 00 | 00 | 00"
    ));
    assert_eq!(
        body(
            &HeartbeatRequest {
                tasks: Some(lists),
                ..steady(3)
            },
            0
        ),
        expected
    );
}

#[test]
fn a_leave_is_an_epoch_of_minus_one() {
    let expected = hex(
        "04 763061 | 03 6d31 | ffffffff | 00000000 | 00 | 00 | ffffffff | ff | 00 00 00 | 00 | ff | 00 | 00 00 | 00 | 00",
    );
    assert_eq!(body(&steady(LEAVE_EPOCH), 0), expected);
}

#[test]
fn both_versions_of_an_assignment_are_read_though_their_fields_moved() {
    let list = "05 00000000 00000001 00000002 00000003 00";
    let lists = format!("03 02 30 {list} 02 31 {list} | 01 | 01");
    let head = "00000000 | 0000 | 00 | 03 6d31 | 00000003 | 00001388";
    let v0 = hex(&format!(
        "{head} | 00000000 | 0000ea60 | 01 | {lists} | 00000000 | 00 | 00"
    ));
    let v1 = hex(&format!(
        "{head} | 0000ea60 | 0000000000002710 | 01 | {lists} | 00 | 00000000 | 00 | 00"
    ));
    for (version, bytes, lag) in [(0, v0, 0), (1, v1, 10_000)] {
        let read = decode_response::<HeartbeatRequest>(version, 5, &response_frame(5, true, &bytes)).unwrap();
        assert_eq!(
            (read.member_epoch, read.heartbeat_interval_ms, read.member_id.as_str()),
            (3, 5_000, "m1")
        );
        assert_eq!(
            (read.acceptable_recovery_lag, read.task_offset_interval_ms),
            (lag, 60_000)
        );
        assert_eq!(read.status, Some(vec![]));
        let lists = read.tasks.as_ref().unwrap();
        assert_eq!(lists.active, [tasks("0", &[0, 1, 2, 3]), tasks("1", &[0, 1, 2, 3])]);
        let mut written = Writer::new();
        read.write(version, &mut written);
        assert_eq!(written.into_bytes(), bytes, "version {version}");
    }
}

#[test]
fn a_mixture_of_null_and_present_lists_is_an_error() {
    let bytes = hex(
        "00000000 | 0000 | 00 | 03 6d31 | 00000003 | 00001388 | 00000000 | 0000ea60 | 01 | 01 | 00 | 01 | 00000000 | 00 | 00",
    );
    let read = decode_response::<HeartbeatRequest>(0, 1, &response_frame(1, true, &bytes));
    assert!(matches!(read, Err(WireError::Impossible { .. })), "{read:?}");
}

#[test]
fn the_header_has_tags_from_flexible_versions_on() {
    let frame = encode_request(&ApiVersionsRequest, 3, 1, "me");
    assert_eq!(&frame[4..16], [0, 18, 0, 3, 0, 0, 0, 1, 0, 2, b'm', b'e']);
    assert_eq!(frame[16], 0);
    assert_eq!(frame[..4], (frame.len() as u32 - 4).to_be_bytes());
    let find = encode_request(&FindCoordinatorRequest { group_id: "g".into() }, 4, 2, "");
    assert_eq!(find, [0, 0, 0, 16, 0, 10, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 2, 2, b'g', 0]);
}

#[test]
fn api_versions_tell_features_and_fall_back_to_version_0() {
    let mut out = Writer::new();
    out.i16(0);
    out.list(&[
        ApiVersion {
            api_key: 88,
            min: 0,
            max: 1,
        },
        ApiVersion {
            api_key: 8,
            min: 2,
            max: 10,
        },
    ]);
    out.i32(0);
    let mut features = Writer::new();
    features.list(&[Feature {
        name: "streams.version".into(),
        level: 1,
    }]);
    let features = features.into_bytes();
    out.uvarint(1);
    out.uvarint(2);
    out.uvarint(features.len() as u32);
    out.raw(&features);
    let frame = response_frame(1, false, &out.into_bytes());
    let read = decode_response::<ApiVersionsRequest>(3, 1, &frame).unwrap();
    assert_eq!(read.streams_version(), Some(1));
    assert_eq!(
        (
            read.highest(88, 1),
            read.highest(88, 0),
            read.highest(8, 9),
            read.highest(8, 1)
        ),
        (Some(1), Some(0), Some(9), None)
    );
    assert_eq!(read.highest(89, 1), None);

    let old = hex("0023 | 00000001 | 0012 0000 0002");
    let read = decode_response::<ApiVersionsRequest>(3, 1, &response_frame(1, false, &old)).unwrap();
    assert_eq!(
        (read.error_code, read.streams_version(), read.highest(18, 3)),
        (35, None, Some(2))
    );
}

#[test]
fn a_feature_that_is_not_finalized_has_level_0() {
    let bytes = hex("0000 | 02 0058 0000 0001 00 | 00000000 | 00");
    let read = decode_response::<ApiVersionsRequest>(3, 9, &response_frame(9, false, &bytes)).unwrap();
    assert_eq!(read.streams_version(), Some(0));
}

#[test]
fn a_coordinator_is_read() {
    let bytes = hex(&format!(
        "00000000 | 02 | 02 67 | 00000001 | 0a {} | 00002384 | 0000 | 00 | 00 | 00",
        ascii("127.0.0.1")
    ));
    let read = decode_response::<FindCoordinatorRequest>(4, 2, &response_frame(2, true, &bytes)).unwrap();
    assert_eq!(
        (read[0].host.as_str(), read[0].port, read[0].error_code, read[0].node_id),
        ("127.0.0.1", 9_092, 0, 1)
    );
}

#[test]
fn an_offset_commit_carries_member_and_epoch() {
    let partition = CommitPartition {
        partition: 3,
        offset: 258,
        leader_epoch: -1,
        metadata: None,
    };
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        member_epoch: 4,
        member_id: "m1".into(),
        instance_id: None,
        topics: vec![CommitTopic {
            name: "t".into(),
            partitions: vec![partition],
        }],
    };
    let expected =
        hex("02 67 | 00000004 | 03 6d31 | 00 | 02 02 74 02 00000003 0000000000000102 ffffffff 00 00 00 | 00");
    assert_eq!(body(&request, 9), expected);
    let answer = hex("00000000 | 02 02 74 02 00000003 0071 00 00 | 00");
    let read = decode_response::<OffsetCommitRequest>(9, 1, &response_frame(1, true, &answer)).unwrap();
    assert_eq!(
        read[0].partitions,
        [CommittedPartition {
            partition: 3,
            error_code: 113
        }]
    );
}

#[test]
fn an_answer_to_another_request_or_with_bytes_left_is_refused() {
    let frame = response_frame(1, false, &hex("0000 00000000 00"));
    assert_eq!(
        decode_response::<ApiVersionsRequest>(0, 2, &frame),
        Err(WireError::Correlation { expected: 2, got: 1 })
    );
    assert_eq!(
        decode_response::<ApiVersionsRequest>(0, 1, &frame),
        Err(WireError::LeftOver { left: 1 })
    );
}

/// A group with something in every field.
fn described() -> DescribedGroup {
    let topic = WireTopicInfo {
        name: "c".into(),
        partitions: 4,
        replication_factor: 1,
        configs: vec![config("a", "b")],
    };
    let subtopology = DescribedSubtopology {
        id: "0".into(),
        source_topics: vec!["in".into()],
        repartition_sink_topics: vec!["r".into()],
        state_changelog_topics: vec![topic.clone()],
        repartition_source_topics: vec![topic],
    };
    let lists = TaskLists {
        active: vec![tasks("0", &[1])],
        standby: vec![tasks("1", &[2])],
        warmup: vec![],
    };
    let member = DescribedMember {
        member_id: "m".into(),
        member_epoch: 2,
        instance_id: Some("i".into()),
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        process_id: "p".into(),
        endpoint: Some(Endpoint {
            host: "h".into(),
            port: 65_535,
        }),
        client_tags: vec![config("zone", "a")],
        assignment: lists.clone(),
        target_assignment: lists,
        ..DescribedMember::default()
    };
    DescribedGroup {
        group_id: "g".into(),
        state: "Stable".into(),
        group_epoch: 3,
        assignment_epoch: 3,
        topology: Some(DescribedTopology {
            epoch: 0,
            subtopologies: Some(vec![subtopology]),
        }),
        members: vec![member],
        assignor_name: Some("sticky".into()),
        ..DescribedGroup::default()
    }
}

fn described_frame(version: i16) -> Vec<u8> {
    let mut out = Writer::new();
    out.i32(0);
    out.uvarint(2);
    described().write(version, &mut out);
    out.no_tags();
    response_frame(1, true, &out.into_bytes())
}

#[test]
fn a_description_is_read_in_both_versions() {
    let read = decode_response::<DescribeRequest>(1, 1, &described_frame(1)).unwrap();
    assert_eq!(read, [described()]);
    let read = decode_response::<DescribeRequest>(0, 1, &described_frame(0)).unwrap();
    assert_eq!(
        read,
        [DescribedGroup {
            assignor_name: None,
            ..described()
        }]
    );
    assert_eq!(
        body(&DescribeRequest { group_id: "g".into() }, 1),
        hex("02 02 67 | 00 | 00 | 00")
    );
    assert_eq!(
        body(&DescribeRequest { group_id: "g".into() }, 0),
        hex("02 02 67 | 00 | 00")
    );
}

#[test]
fn every_cut_of_a_message_is_an_error() {
    let join = body(&join(), 1);
    for len in 0..join.len() {
        assert!(
            HeartbeatRequest::read(&mut Reader::new(&join[..len])).is_err(),
            "cut at {len}"
        );
    }
    for version in [0, 1] {
        let frame = described_frame(version);
        for len in 0..frame.len() {
            assert!(
                decode_response::<DescribeRequest>(version, 1, &frame[..len]).is_err(),
                "v{version} cut at {len}"
            );
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    "[a-zà-ÿ日本]{0,6}"
}

fn task_lists() -> impl Strategy<Value = TaskLists> {
    let ids = || {
        let one = (text(), prop::collection::vec(any::<i32>(), 0..4));
        let one = one.prop_map(|(subtopology_id, partitions)| TaskIds {
            subtopology_id,
            partitions,
        });
        prop::collection::vec(one, 0..4)
    };
    (ids(), ids(), ids()).prop_map(|(active, standby, warmup)| TaskLists {
        active,
        standby,
        warmup,
    })
}

prop_compose! {
    fn response()(
        numbers in (any::<i32>(), any::<i16>(), any::<i32>(), any::<i32>(), any::<i32>(), any::<i32>(), any::<i32>()),
        texts in (prop::option::of(text()), text()),
        status in prop::option::of(prop::collection::vec((any::<i8>(), text()), 0..3)),
        tasks in prop::option::of(task_lists()),
        endpoints in prop::option::of(prop::collection::vec((text(), any::<u16>(), text()), 0..3)),
    ) -> HeartbeatResponse {
        let (throttle_time_ms, error_code, member_epoch, heartbeat_interval_ms, lag, task_offset_interval_ms, endpoint_epoch) = numbers;
        HeartbeatResponse {
            throttle_time_ms, error_code, member_epoch, heartbeat_interval_ms, task_offset_interval_ms, endpoint_epoch,
            acceptable_recovery_lag: i64::from(lag),
            error_message: texts.0,
            member_id: texts.1,
            status: status.map(|list| list.into_iter().map(|(code, detail)| WireStatus { code, detail }).collect()),
            tasks,
            topology_description_required: false,
            endpoints: endpoints.map(|list| list.into_iter().map(|(host, port, topic)| EndpointPartitions {
                endpoint: Endpoint { host, port },
                active: vec![TopicPartitions { topic, partitions: vec![1, 2] }],
                standby: vec![],
            }).collect()),
        }
    }
}

proptest! {
    #[test]
    fn heartbeat_answers_survive_a_round_trip(response in response(), version in 0i16..2) {
        let mut out = Writer::new();
        response.write(version, &mut out);
        let frame = response_frame(3, true, &out.into_bytes());
        prop_assert_eq!(decode_response::<HeartbeatRequest>(version, 3, &frame).unwrap(), response);
    }

    #[test]
    fn heartbeats_survive_a_round_trip(tasks in prop::option::of(task_lists()), member in text(), epoch in any::<i32>(), tag in text()) {
        let request = HeartbeatRequest {
            member_id: member, member_epoch: epoch, tasks,
            client_tags: Some(vec![config(&tag, "x")]),
            task_offsets: Some(vec![TaskOffset { subtopology_id: tag, partition: 1, offset: i64::MIN }]),
            endpoint: Some(Endpoint { host: "h".into(), port: 1 }),
            ..join()
        };
        let bytes = body(&request, 1);
        prop_assert_eq!(HeartbeatRequest::read(&mut Reader::new(&bytes)).unwrap(), request);
    }

    #[test]
    fn a_changed_byte_never_panics(response in response(), at in any::<prop::sample::Index>(), byte in any::<u8>(), version in 0i16..2) {
        let mut out = Writer::new();
        response.write(version, &mut out);
        let mut frame = response_frame(3, true, &out.into_bytes());
        let at = at.index(frame.len());
        frame[at] = byte;
        if let Ok(read) = decode_response::<HeartbeatRequest>(version, 3, &frame) {
            prop_assert!(read.tasks.is_none_or(|lists| lists.active.len() < frame.len()));
        }
    }

    #[test]
    fn random_bytes_are_errors_or_small_values(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        // A value is never larger than the bytes it came from: no length field makes us allocate.
        let mut reader = Reader::new(&bytes);
        if let Ok(list) = reader.list::<String>() {
            prop_assert!(list.iter().map(String::len).sum::<usize>() + list.len() <= bytes.len());
        }
        if let Ok(group) = DescribedTopology::read(&mut Reader::new(&bytes)) {
            prop_assert!(group.subtopologies.is_none_or(|list| list.len() <= bytes.len()));
        }
        for version in [0, 1] {
            let frame = response_frame(1, true, &bytes);
            if let Ok(groups) = decode_response::<DescribeRequest>(version, 1, &frame) {
                prop_assert!(groups.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn varints_survive_a_round_trip(value in any::<u32>()) {
        let mut out = Writer::new();
        out.uvarint(value);
        prop_assert_eq!(Reader::new(&out.into_bytes()).uvarint(), Ok(value));
    }
}

#[test]
fn a_varint_beyond_32_bits_is_an_error() {
    assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).uvarint().is_err());
    assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).uvarint().is_err());
}

#[test]
fn a_client_id_that_is_too_long_is_cut_at_a_character() {
    let mut out = Writer::new();
    out.short_string(&"é".repeat(20_000));
    let bytes = out.into_bytes();
    assert_eq!(bytes.len(), 2 + 32_766);
    assert!(Reader::new(&bytes).short_string().unwrap().is_some());
}
