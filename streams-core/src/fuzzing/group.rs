//! Answers of the group's coordinator.

use super::Target;
use crate::membership::codec::api_versions::ApiVersionsRequest;
use crate::membership::codec::coordinator::{Coordinator, FindCoordinatorRequest};
use crate::membership::codec::describe::{DescribeRequest, DescribedGroup};
use crate::membership::codec::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::membership::codec::offset_commit::{CommittedPartition, CommittedTopic, OffsetCommitRequest};
use crate::membership::codec::structs::{TaskIds, TaskLists};
use crate::membership::codec::wire::Writer;
use crate::membership::codec::{Request, decode_response};

/// Frames that a 4.4 broker sent.
const RECORDED: &str = include_str!("../membership/codec/frames.txt");

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "api_versions_v0",
        check: answer::<ApiVersionsRequest, 0>,
        seeds: || vec![vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 88, 0, 0, 0, 1]],
    },
    Target {
        name: "api_versions_v3",
        check: answer::<ApiVersionsRequest, 3>,
        seeds: || recorded("18"),
    },
    Target {
        name: "find_coordinator_v4",
        check: answer::<FindCoordinatorRequest, 4>,
        seeds: find_coordinator,
    },
    Target {
        name: "heartbeat_v0",
        check: answer::<HeartbeatRequest, 0>,
        seeds: || heartbeats(0),
    },
    Target {
        name: "heartbeat_v1",
        check: answer::<HeartbeatRequest, 1>,
        seeds: || recorded("88").into_iter().chain(heartbeats(1)).collect(),
    },
    Target {
        name: "describe_v0",
        check: answer::<DescribeRequest, 0>,
        seeds: || describe(0),
    },
    Target {
        name: "describe_v1",
        check: answer::<DescribeRequest, 1>,
        seeds: || recorded("89").into_iter().chain(describe(1)).collect(),
    },
    Target {
        name: "offset_commit_v9",
        check: answer::<OffsetCommitRequest, 9>,
        seeds: offset_commit,
    },
];

/// An answer to the request whose correlation id stands in it. A wrong one is a wrong one at once.
#[allow(clippy::unnecessary_wraps, reason = "the shape of all checks")]
fn answer<R: Request, const VERSION: i16>(bytes: &[u8]) -> Result<(), String> {
    let correlation_id = bytes.first_chunk().map_or(0, |id| i32::from_be_bytes(*id));
    let _ = decode_response::<R>(VERSION, correlation_id, bytes);
    Ok(())
}

/// The answers to requests of a key.
fn recorded(key: &str) -> Vec<Vec<u8>> {
    let frames = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let answers = frames.filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [_, "answer", of, hex] if of == key => Some(hex),
        _ => None,
    });
    answers.map(from_hex).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect()
}

/// A frame with correlation id 1 and no tags in its header.
fn frame(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::new();
    out.i32(1);
    out.no_tags();
    write(&mut out);
    out.into_bytes()
}

fn find_coordinator() -> Vec<Vec<u8>> {
    let coordinator = Coordinator {
        key: "billing".to_owned(),
        node_id: 1,
        host: "localhost".to_owned(),
        port: 9_092,
        error_code: 0,
        error_message: None,
    };
    vec![frame(|out| {
        out.i32(0);
        out.list(&[coordinator]);
        out.no_tags();
    })]
}

fn heartbeats(version: i16) -> Vec<Vec<u8>> {
    let response = HeartbeatResponse {
        member_id: "member".to_owned(),
        member_epoch: 3,
        heartbeat_interval_ms: 5_000,
        tasks: Some(task_lists()),
        ..HeartbeatResponse::default()
    };
    vec![frame(|out| response.write(version, out))]
}

fn task_lists() -> TaskLists {
    TaskLists {
        active: vec![TaskIds {
            subtopology_id: "0".to_owned(),
            partitions: vec![0, 1, 2],
        }],
        ..TaskLists::default()
    }
}

fn describe(version: i16) -> Vec<Vec<u8>> {
    let group = DescribedGroup {
        group_id: "billing".to_owned(),
        state: "Stable".to_owned(),
        group_epoch: 4,
        ..DescribedGroup::default()
    };
    vec![frame(|out| {
        out.i32(0);
        // A list of one.
        out.raw(&[2]);
        group.write(version, out);
        out.no_tags();
    })]
}

fn offset_commit() -> Vec<Vec<u8>> {
    let partitions = [(0, 0), (1, 113)].map(|(partition, error_code)| CommittedPartition { partition, error_code });
    let topic = CommittedTopic {
        name: "usage".to_owned(),
        partitions: partitions.into(),
    };
    vec![frame(|out| {
        out.i32(0);
        out.list(&[topic]);
        out.no_tags();
    })]
}
