//! The shell against brokers made of a script.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::membership::codec::api_versions::{ApiVersion, Feature};
use crate::membership::codec::coordinator::Coordinator;
use crate::membership::codec::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use crate::membership::codec::structs::{TaskIds, TaskLists};
use crate::membership::codec::wire::{Reader, Writer};
use crate::membership::{MembershipError, Subtopology};

const LIMIT: Duration = Duration::from_secs(20);
const API_VERSIONS: i16 = 18;
const FIND_COORDINATOR: i16 = 10;
const HEARTBEAT: i16 = 88;

/// A request as it came.
#[derive(Debug)]
struct Asked {
    key: i16,
    version: i16,
    body: Vec<u8>,
}

/// Answers each request by `script`; `None` stays silent. Heartbeats that came are also put into the channel, and so is
/// the end of a connection, as `None`.
struct Broker {
    port: i32,
    heartbeats: Receiver<Option<HeartbeatRequest>>,
}

impl Broker {
    fn start(script: impl Fn(i32, &Asked) -> Option<Vec<u8>> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = i32::from(listener.local_addr().unwrap().port());
        let (sender, heartbeats) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), port, &script, &sender);
            }
        });
        Self { port, heartbeats }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn serve(
    mut stream: TcpStream,
    port: i32,
    script: &dyn Fn(i32, &Asked) -> Option<Vec<u8>>,
    heartbeats: &Sender<Option<HeartbeatRequest>>,
) {
    while let Some((correlation, asked)) = read_request(&mut stream) {
        if asked.key == HEARTBEAT {
            let request = HeartbeatRequest::read(&mut Reader::new(&asked.body)).unwrap();
            let _gone = heartbeats.send(Some(request));
        }
        let Some(body) = script(port, &asked) else { continue };
        let mut frame = correlation.to_be_bytes().to_vec();
        if asked.key != API_VERSIONS {
            frame.push(0);
        }
        frame.extend(body);
        let len = (frame.len() as u32).to_be_bytes();
        stream.write_all(&[&len[..], &frame].concat()).unwrap();
    }
    let _gone = heartbeats.send(None);
}

fn read_request(stream: &mut TcpStream) -> Option<(i32, Asked)> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut frame).ok()?;
    let mut bytes = Reader::new(&frame);
    let (key, version, correlation) = (bytes.i16().unwrap(), bytes.i16().unwrap(), bytes.i32().unwrap());
    let header = 8 + 2 + bytes.short_string().unwrap().unwrap().len();
    let flexible = key != API_VERSIONS || version >= 3;
    Some((
        correlation,
        Asked {
            key,
            version,
            body: frame[header + usize::from(flexible)..].to_vec(),
        },
    ))
}

fn api_versions(keys: &[(i16, i16)], streams_version: Option<i16>) -> Vec<u8> {
    let keys: Vec<ApiVersion> = keys
        .iter()
        .map(|&(api_key, max)| ApiVersion { api_key, min: 0, max })
        .collect();
    let mut out = Writer::new();
    out.i16(0);
    out.list(&keys);
    out.i32(0);
    let Some(level) = streams_version else {
        out.no_tags();
        return out.into_bytes();
    };
    let mut features = Writer::new();
    features.list(&[Feature {
        name: "streams.version".into(),
        level,
    }]);
    let features = features.into_bytes();
    out.uvarint(1);
    out.uvarint(2);
    out.uvarint(features.len() as u32);
    out.raw(&features);
    out.into_bytes()
}

const ALL_KEYS: &[(i16, i16)] = &[(API_VERSIONS, 4), (FIND_COORDINATOR, 6), (HEARTBEAT, 1), (89, 1)];

fn coordinator(port: i32, error_code: i16) -> Vec<u8> {
    let coordinator = Coordinator {
        key: "app".into(),
        node_id: 1,
        host: "127.0.0.1".into(),
        port,
        error_code,
        error_message: None,
    };
    let mut out = Writer::new();
    out.i32(0);
    out.list(&[coordinator]);
    out.no_tags();
    out.into_bytes()
}

fn heartbeat_answer(response: &HeartbeatResponse) -> Vec<u8> {
    let mut out = Writer::new();
    response.write(1, &mut out);
    out.into_bytes()
}

fn one_task() -> TaskLists {
    TaskLists {
        active: vec![TaskIds {
            subtopology_id: "0".into(),
            partitions: vec![0],
        }],
        ..TaskLists::default()
    }
}

/// A coordinator that gives one task on join and says yes to everything.
fn friendly(port: i32, asked: &Asked) -> Option<Vec<u8>> {
    match asked.key {
        API_VERSIONS => Some(api_versions(ALL_KEYS, Some(1))),
        FIND_COORDINATOR => Some(coordinator(port, 0)),
        _ => {
            let request = HeartbeatRequest::read(&mut Reader::new(&asked.body)).unwrap();
            let tasks = (request.member_epoch == 0).then(one_task);
            let member_epoch = if request.member_epoch == -1 { -1 } else { 3 };
            let (heartbeat_interval_ms, status) = (60_000, Some(vec![]));
            Some(heartbeat_answer(&HeartbeatResponse {
                member_epoch,
                heartbeat_interval_ms,
                status,
                tasks,
                ..Default::default()
            }))
        }
    }
}

fn config(bootstrap: String) -> MembershipConfig {
    let topology = GroupTopology {
        subtopologies: vec![Subtopology {
            source_topics: vec!["in".into()],
            ..Subtopology::default()
        }],
    };
    MembershipConfig::new(GroupTarget::new(bootstrap, "app"), "m1", "p1", topology)
}

fn fatal(bootstrap: String) -> String {
    let (events, _commands) = StreamsMembership::start(config(bootstrap)).unwrap();
    match events.recv_timeout(LIMIT).unwrap() {
        MembershipEvent::Fatal {
            error: error @ MembershipError::StreamsGroupsUnsupported { .. },
        } => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn brokers_without_streams_groups_are_named_with_the_remedy() {
    let old = Broker::start(|port, asked| match asked.key {
        API_VERSIONS => Some(api_versions(&[(API_VERSIONS, 4), (FIND_COORDINATOR, 6)], None)),
        _ => Some(coordinator(port, 0)),
    });
    let text = fatal(old.address());
    assert!(text.contains("request 88") && text.contains("4.2 or newer"), "{text}");
}

#[test]
fn brokers_with_streams_groups_switched_off_are_named_with_the_remedy() {
    let off = Broker::start(|port, asked| match asked.key {
        API_VERSIONS => Some(api_versions(ALL_KEYS, None)),
        _ => Some(coordinator(port, 0)),
    });
    let text = fatal(off.address());
    assert!(
        text.contains("streams.version is at level 0") && text.contains("--feature streams.version=1"),
        "{text}"
    );
}

#[test]
fn an_old_broker_is_asked_for_its_versions_in_the_old_form() {
    let old = Broker::start(|_, asked| {
        assert_eq!(asked.key, API_VERSIONS);
        let mut out = Writer::new();
        out.i16(if asked.version == 3 { 35 } else { 0 });
        out.i32(1);
        out.i16(API_VERSIONS);
        out.i16(0);
        out.i16(2);
        Some(out.into_bytes())
    });
    assert!(fatal(old.address()).contains("request 10"));
}

#[test]
fn a_member_joins_acknowledges_and_leaves() {
    let broker = Broker::start(friendly);
    // The first server of the list is not there; the second answers.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (events, commands) = StreamsMembership::start(config(format!("{nobody},{}", broker.address()))).unwrap();
    let assignment = match events.recv_timeout(LIMIT).unwrap() {
        MembershipEvent::Assigned {
            assignment,
            member,
            active,
            ..
        } => {
            assert_eq!((member.epoch, active.len()), (3, 1));
            assignment
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(broker.heartbeats.recv_timeout(LIMIT).unwrap().unwrap().member_epoch, 0);
    commands.owned(
        assignment,
        vec![TaskId {
            subtopology: 0,
            partition: 0,
        }],
        vec![],
    );
    let acknowledged = |asked: Option<HeartbeatRequest>| asked.unwrap().tasks == Some(one_task());
    assert!(
        std::iter::repeat_with(|| broker.heartbeats.recv_timeout(LIMIT).unwrap())
            .take(3)
            .any(acknowledged)
    );
    assert!(commands.leave(true, LIMIT));
    let last = std::iter::repeat_with(|| broker.heartbeats.recv_timeout(LIMIT).unwrap().unwrap());
    let leave = last.into_iter().find(|request| request.member_epoch == -1).unwrap();
    assert!(leave.shutdown_application);
    assert!(matches!(events.recv_timeout(LIMIT).unwrap(), MembershipEvent::Left));
    assert!(
        events.recv().is_err(),
        "the channel is closed when the membership is over"
    );
}

#[test]
fn a_dropped_sender_ends_the_thread_without_a_leave() {
    let broker = Broker::start(friendly);
    let (events, commands) = StreamsMembership::start(config(broker.address())).unwrap();
    assert!(matches!(
        events.recv_timeout(LIMIT).unwrap(),
        MembershipEvent::Assigned { .. }
    ));
    drop(commands);
    let requests: Vec<HeartbeatRequest> =
        std::iter::from_fn(|| broker.heartbeats.recv_timeout(LIMIT).unwrap()).collect();
    assert!(
        requests.iter().all(|request| request.member_epoch != -1),
        "{requests:?}"
    );
    assert!(events.recv().is_err());
}

#[test]
fn a_coordinator_that_is_not_there_yet_is_asked_again() {
    let asked_before = std::sync::atomic::AtomicBool::new(false);
    let broker = Broker::start(move |port, asked| {
        let first = asked.key == FIND_COORDINATOR && !asked_before.swap(true, std::sync::atomic::Ordering::SeqCst);
        if first {
            Some(coordinator(-1, 15))
        } else {
            friendly(port, asked)
        }
    });
    let (events, _commands) = StreamsMembership::start(config(broker.address())).unwrap();
    assert!(matches!(
        events.recv_timeout(LIMIT).unwrap(),
        MembershipEvent::Assigned { .. }
    ));
}

#[test]
fn a_leave_is_bounded_when_the_broker_is_silent() {
    let broker = Broker::start(|_, _| None);
    let mut config = config(broker.address());
    config.target.request_timeout_ms = 50;
    let (events, commands) = StreamsMembership::start(config).unwrap();
    assert!(commands.leave(false, LIMIT));
    assert!(matches!(events.recv_timeout(LIMIT).unwrap(), MembershipEvent::Left));
}

#[test]
fn single_requests_end_with_an_explained_time_out() {
    let broker = Broker::start(|_, _| None);
    let target = GroupTarget {
        request_timeout_ms: 50,
        ..GroupTarget::new(broker.address(), "app")
    };
    let described = describe_group(&target).unwrap_err().to_string();
    let left = leave_surplus(&target, "m1").unwrap_err().to_string();
    for text in [described, left] {
        assert!(text.contains(&broker.address()) && text.contains("`app`"), "{text}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let mut encrypted = config("localhost:9092".into());
    encrypted.target.security_protocol = "SASL_SSL".into();
    let text = StreamsMembership::start(encrypted).unwrap_err().to_string();
    assert!(
        text.contains("security.protocol = `SASL_SSL`") && text.contains("PLAINTEXT"),
        "{text}"
    );
    let text = StreamsMembership::start(config(" ,".into())).unwrap_err().to_string();
    assert!(text.contains("bootstrap.servers"), "{text}");
}
