//! Members of streams groups against a real coordinator.
#![allow(clippy::disallowed_methods, reason = "a real broker is waited for by a real clock")]

#[path = "membership/proxy.rs"]
mod proxy;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use streams_core::TaskId;
use streams_core::kafka::group::{
    CommandSender, GroupTarget, MembershipConfig, StreamsMembership, describe_group, leave_surplus,
};
use streams_core::membership::codec::offset_commit::{CommitPartition, CommitTopic, OffsetCommitRequest};
use streams_core::membership::codec::{decode_response, encode_request};
use streams_core::membership::{
    GroupTopology, MemberEpoch, MembershipCommand, MembershipError, MembershipEvent, Status, StatusCode, Subtopology,
    TopicInfo,
};
use streams_tests::{broker, topic, unique};

const LIMIT: Duration = Duration::from_secs(30);

/// A stream thread that owns whatever it is told to own.
struct Thread {
    events: Receiver<MembershipEvent>,
    commands: CommandSender,
    started: Instant,
    member: Option<MemberEpoch>,
    active: Vec<TaskId>,
    ready: bool,
    status: Vec<Status>,
    error: Option<MembershipError>,
    /// What happened, for failures and for order.
    trace: Vec<String>,
}

impl Thread {
    fn join(config: MembershipConfig) -> Self {
        let started = Instant::now();
        let (events, commands) = StreamsMembership::start(config).unwrap();
        let (member, error) = (None, None);
        let (active, status, trace) = (vec![], vec![], vec![]);
        Self {
            events,
            commands,
            started,
            member,
            active,
            ready: false,
            status,
            error,
            trace,
        }
    }

    /// Applies events until `done`, acknowledging every assignment. Returns the time since the thread started.
    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Duration {
        let deadline = Instant::now() + LIMIT;
        while !done(self) {
            self.commands.alive();
            match self
                .events
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(event) => self.apply(event),
                Err(RecvTimeoutError::Timeout) => panic!("no {what} within {LIMIT:?}: {:#?}", self.trace),
                Err(RecvTimeoutError::Disconnected) => panic!("membership ended before {what}: {:#?}", self.trace),
            }
        }
        self.started.elapsed()
    }

    fn apply(&mut self, event: MembershipEvent) {
        match event {
            MembershipEvent::Assigned {
                assignment,
                member,
                active,
                standby,
                ready,
                status,
            } => {
                self.trace
                    .push(format!("assigned {} at epoch {}", names(&active), member.epoch));
                (self.member, self.ready, self.status) = (Some(member), ready, status);
                self.active.clone_from(&active);
                self.commands.owned(assignment, active, standby);
            }
            MembershipEvent::Epoch { member } => {
                self.trace.push(format!("epoch {}", member.epoch));
                self.member = Some(member);
            }
            MembershipEvent::Status { ready, status } => {
                self.trace.push(format!("status {status:?}"));
                (self.ready, self.status) = (ready, status);
            }
            MembershipEvent::Lost { reason, .. } => {
                self.trace.push(format!("lost: {reason}"));
                self.active.clear();
            }
            MembershipEvent::Fatal { error } | MembershipEvent::Refused { error } => self.error = Some(error),
            other => self.trace.push(format!("{other:?}")),
        }
    }

    fn until_tasks(&mut self, count: usize) -> Duration {
        self.until(&format!("{count} tasks"), |thread| thread.active.len() == count)
    }

    fn epoch(&self) -> i32 {
        self.member.as_ref().unwrap().epoch
    }

    fn leave(self) {
        assert!(self.commands.leave(false, LIMIT), "no answer to the leave");
    }
}

fn names(tasks: &[TaskId]) -> String {
    tasks.iter().map(TaskId::to_string).collect::<Vec<_>>().join(" ")
}

fn changelog(app: &str) -> TopicInfo {
    TopicInfo {
        name: format!("{app}-sums-changelog"),
        partitions: 0,
        replication_factor: -1,
        configs: vec![
            ("message.timestamp.type".into(), "CreateTime".into()),
            ("cleanup.policy".into(), "compact".into()),
        ],
    }
}

/// One sub-topology with a store, reading `input`.
fn sums(app: &str, input: &str) -> GroupTopology {
    let subtopology = Subtopology {
        source_topics: vec![input.to_owned()],
        state_changelog_topics: vec![changelog(app)],
        ..Subtopology::default()
    };
    GroupTopology {
        subtopologies: vec![subtopology],
    }
}

fn target(app: &str) -> GroupTarget {
    GroupTarget::new(broker().bootstrap(), app)
}

/// A member of `app`, one process each, that never waits longer than a second.
fn config(app: &str, member: &str, topology: GroupTopology) -> MembershipConfig {
    let mut config = MembershipConfig::new(target(app), member, format!("process-{member}"), topology);
    config.heartbeat_max_ms = Some(1_000);
    config
}

#[test]
fn first_tasks_and_internal_topics_come_soon_after_the_join() {
    let (app, input) = (unique("first"), topic("in", 4));
    let mut thread = Thread::join(config(&app, "m1", sums(&app, &input)));
    let elapsed = thread.until_tasks(4);
    println!(
        "first tasks {} ms after the start: {:?}",
        elapsed.as_millis(),
        thread.trace
    );
    assert_eq!(names(&thread.active), "0_0 0_1 0_2 0_3");
    assert!(thread.ready);
    assert_eq!(
        broker().topics().partitions(&format!("{app}-sums-changelog")).unwrap(),
        4
    );

    let group = describe_group(&target(&app)).unwrap();
    assert_eq!(
        (group.members.len(), group.members[0].member_epoch),
        (1, thread.epoch())
    );
    assert_eq!(group.members[0].assignment.active[0].partitions, [0, 1, 2, 3]);
    let stored = GroupTopology::from_described(group.topology.as_ref().unwrap()).unwrap();
    assert_eq!(stored.subtopologies[0].source_topics, [input]);

    thread.leave();
    let group = describe_group(&target(&app)).unwrap();
    assert_eq!((group.state.as_str(), group.members.len()), ("Empty", 0));
}

#[test]
fn two_members_share_the_tasks_and_hand_them_over() {
    let (app, input) = (unique("share"), topic("in", 4));
    let mut one = Thread::join(config(&app, "m1", sums(&app, &input)));
    one.until_tasks(4);
    let before = one.epoch();
    one.trace.clear();
    let mut two = Thread::join(config(&app, "m2", sums(&app, &input)));
    one.until_tasks(2);
    assert_eq!(
        one.epoch(),
        before,
        "the epoch moves only after the release: {:?}",
        one.trace
    );
    let elapsed = two.until_tasks(2);
    one.until("a newer epoch", |thread| thread.epoch() > before);
    println!(
        "second member had its tasks after {} ms: {:?}",
        elapsed.as_millis(),
        two.trace
    );
    let mut all = [one.active.clone(), two.active.clone()].concat();
    all.sort();
    assert_eq!(names(&all), "0_0 0_1 0_2 0_3");
    two.leave();
    one.until_tasks(4);
    one.leave();
}

#[test]
fn a_member_that_crashed_and_came_back_with_its_id_goes_on_at_once() {
    let (app, input) = (unique("crash"), topic("in", 4));
    let mut one = Thread::join(config(&app, "m1", sums(&app, &input)));
    let mut two = Thread::join(config(&app, "m2", sums(&app, &input)));
    one.until_tasks(2);
    two.until_tasks(2);
    // Both have acknowledged when the coordinator calls the group stable.
    streams_testkit_wait("a stable group", || {
        describe_group(&target(&app)).unwrap().state == "Stable"
    });
    one.until("the last epoch", |thread| thread.epoch() == epoch_of(&app, "m1"));
    let (epoch, tasks) = (one.epoch(), names(&one.active));
    drop(one);

    let mut again = Thread::join(config(&app, "m1", sums(&app, &input)));
    let elapsed = again.until("any event", |thread| thread.member.is_some());
    println!(
        "tasks again {} ms after the restart: {:?}",
        elapsed.as_millis(),
        again.trace
    );
    assert_eq!(
        (again.epoch(), names(&again.active)),
        (epoch, tasks),
        "in the first event: {:?}",
        again.trace
    );
    assert_eq!(again.trace.len(), 1);
    again.leave();
    two.until_tasks(4);
    two.leave();
}

#[test]
fn a_surplus_member_can_be_removed_without_its_session_time_out() {
    let (app, input) = (unique("surplus"), topic("in", 2));
    let mut thread = Thread::join(config(&app, "m2", sums(&app, &input)));
    thread.until_tasks(2);
    drop(thread);
    assert_eq!(describe_group(&target(&app)).unwrap().members.len(), 1);
    leave_surplus(&target(&app), "m2").unwrap();
    assert_eq!(describe_group(&target(&app)).unwrap().members.len(), 0);
    leave_surplus(&target(&app), "m2").unwrap();
    leave_surplus(&target(&unique("no-such-group")), "m2").unwrap();
}

#[test]
fn a_changed_topology_is_refused_with_what_differs() {
    let (app, input) = (unique("changed"), topic("in", 2));
    let mut first = Thread::join(config(&app, "m1", sums(&app, &input)));
    first.until_tasks(2);
    first.leave();

    let other = topic("other", 2);
    let mut changed = sums(&app, &input);
    changed.subtopologies[0].source_topics.push(other.clone());
    changed.subtopologies[0].state_changelog_topics[0]
        .configs
        .push(("retention.ms".into(), "5".into()));
    let mut second = Thread::join(config(&app, "m1", changed));
    second.until("a refusal", |thread| thread.error.is_some());
    let text = second.error.as_ref().unwrap().to_string();
    println!("{text}");
    assert!(
        matches!(second.error, Some(MembershipError::TopologyChanged { .. })),
        "{text}"
    );
    for words in [
        format!("reads `{other}`"),
        "retention.ms is 5 here and not set in the group".into(),
        app,
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
}

#[test]
fn a_missing_source_topic_is_named_and_its_tasks_come_when_it_exists() {
    let (app, input) = (unique("missing"), unique("late-topic"));
    let mut thread = Thread::join(config(&app, "m1", sums(&app, &input)));
    thread.until("the missing topic", |thread| {
        thread
            .status
            .iter()
            .any(|s| s.code == StatusCode::MissingSourceTopics && s.detail.contains(&input))
    });
    println!("{:?}", thread.status);
    assert!(!thread.ready && thread.active.is_empty());
    broker().create_topic(&input, 3, &[]).unwrap();
    thread.until_tasks(3);
    thread.until("a ready group", |thread| thread.ready);
    thread.leave();
}

#[test]
fn a_lost_answer_loses_no_assignment() {
    let (app, input) = (unique("lost"), topic("in", 4));
    let proxy = proxy::Proxy::start(broker().bootstrap());
    let mut through = config(&app, "m1", sums(&app, &input));
    through.target.bootstrap = proxy.address();
    let mut one = Thread::join(through);
    one.until_tasks(4);
    let mut two = Thread::join(config(&app, "m2", sums(&app, &input)));
    one.until_tasks(2);
    two.until_tasks(2);
    one.until("the last epoch", |thread| thread.epoch() == epoch_of(&app, "m1"));
    proxy.swallow_next_assignment();
    two.leave();
    // The coordinator has assigned all tasks in the answer that was lost, and says them in no later heartbeat.
    one.until_tasks(4);
    assert_eq!(
        (proxy.swallowed(), proxy.assignments_since()),
        (1, 0),
        "{:?}",
        one.trace
    );
    assert_eq!(epoch_of(&app, "m1"), one.epoch());
    one.leave();
}

#[test]
fn an_offset_commit_is_fenced_by_the_member_epoch() {
    let (app, input) = (unique("commit"), topic("in", 1));
    let mut thread = Thread::join(config(&app, "m1", sums(&app, &input)));
    thread.until_tasks(1);
    streams_testkit_wait("a stable group", || {
        describe_group(&target(&app)).unwrap().state == "Stable"
    });
    let epoch = epoch_of(&app, "m1");
    let commit = |member_id: &str, member_epoch| {
        let partition = CommitPartition {
            partition: 0,
            offset: 7,
            leader_epoch: -1,
            metadata: Some("x".into()),
        };
        let topics = vec![CommitTopic {
            name: input.clone(),
            partitions: vec![partition],
        }];
        let (group_id, member_id) = (app.clone(), member_id.to_owned());
        let request = OffsetCommitRequest {
            group_id,
            member_epoch,
            member_id,
            instance_id: None,
            topics,
        };
        let answer = proxy::raw_call(broker().bootstrap(), &encode_request(&request, 9, 1, "test"));
        decode_response::<OffsetCommitRequest>(9, 1, &answer).unwrap()[0].partitions[0].error_code
    };
    assert_eq!(commit("m1", epoch), 0);
    assert_eq!(broker().topics().committed_offsets(&app, &input).unwrap()[&0], 7);
    assert_eq!(commit("m1", epoch + 1), 113);
    assert_eq!(commit("stranger", epoch), 25);
    thread.leave();
}

/// As the stream thread commits: on the membership's own connection, between its heartbeats.
#[test]
fn rule_7_offsets_are_committed_on_the_groups_connection_and_a_member_that_joined_anew_is_not_heard_any_more() {
    let (app, input) = (unique("commit-own"), topic("in", 1));
    let mut thread = Thread::join(config(&app, "m1", sums(&app, &input)));
    thread.until_tasks(1);
    let commit = |thread: &Thread, member: &MemberEpoch, offset| {
        let partition = CommitPartition {
            partition: 0,
            offset,
            leader_epoch: -1,
            metadata: Some("AgA=".into()),
        };
        let request = OffsetCommitRequest {
            group_id: app.clone(),
            member_epoch: member.epoch,
            member_id: member.member_id.clone(),
            instance_id: None,
            topics: vec![CommitTopic {
                name: input.clone(),
                partitions: vec![partition],
            }],
        };
        thread.commands.offsets().commit(request, LIMIT).unwrap()[0].partitions[0].error_code
    };
    let committed = || broker().topics().committed_offsets(&app, &input).unwrap()[&0];
    let old = thread.member.clone().unwrap();
    for offset in 1..20 {
        assert_eq!(commit(&thread, &old, offset), 0);
    }
    assert_eq!(committed(), 19);
    let newer = MemberEpoch {
        epoch: old.epoch + 1,
        ..old.clone()
    };
    assert_eq!(commit(&thread, &newer, 20), 113);
    thread
        .commands
        .send(MembershipCommand::Rejoin { member_id: "m2".into() });
    thread.until("the loss", |thread| thread.active.is_empty());
    thread.until_tasks(1);
    let new = thread.member.clone().unwrap();
    assert_eq!(new.member_id, "m2");
    // A claim of the old member that arrives only now.
    assert_eq!(commit(&thread, &old, 21), 25);
    assert_eq!(commit(&thread, &new, 22), 0);
    assert_eq!(committed(), 22);
    thread.leave();
}

fn epoch_of(app: &str, member: &str) -> i32 {
    let group = describe_group(&target(app)).unwrap();
    group
        .members
        .iter()
        .find(|described| described.member_id == member)
        .unwrap()
        .member_epoch
}

fn streams_testkit_wait(what: &str, condition: impl Fn() -> bool) {
    streams_testkit::wait_until(what, LIMIT, || Ok(condition())).unwrap();
}
