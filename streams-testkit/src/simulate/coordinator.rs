//! The group's coordinator as the broker has it (KIP-1071): epochs, target assignment, revocation before assignment,
//! session and rebalance timeouts, and the check of offset commits.
//!
//! Source: `GroupMetadataManager.streamsGroupHeartbeat`, `CurrentAssignmentBuilder`, `StreamsGroup.validateOffsetCommit`.

use std::collections::{BTreeMap, BTreeSet};

use streams_core::membership::codec::describe::{DescribedGroup, DescribedMember};
use streams_core::membership::codec::heartbeat::{HeartbeatRequest, HeartbeatResponse, JOIN_EPOCH, LEAVE_EPOCH};
use streams_core::membership::codec::structs::{TaskIds, TaskLists, WireStatus};
use streams_core::runtime::{CommittedOffset, GroupIdentity};
use streams_core::topology::TopologyPlan;
use streams_core::{TaskId, TopicPartition};

mod assignment;

const UNKNOWN_MEMBER_ID: i16 = 25;
const FENCED_MEMBER_EPOCH: i16 = 110;
const MISSING_INTERNAL_TOPICS: i8 = 3;
const ASSIGNMENT_DELAYED: i8 = 5;

/// Why a commit is refused (`ILLEGAL_GENERATION` or `UNKNOWN_MEMBER_ID`).
pub(super) struct Refusal(pub(super) &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stable,
    Unrevoked,
    Unreleased,
}

#[derive(Debug)]
struct Member {
    epoch: i32,
    previous_epoch: i32,
    /// Active tasks with the epoch at which each was given.
    active: BTreeMap<TaskId, i32>,
    revoking: BTreeMap<TaskId, i32>,
    state: State,
    session_until_ms: i64,
    rebalance_until_ms: Option<i64>,
    rebalance_timeout_ms: i64,
}

/// The coordinator of one group.
#[derive(Debug)]
pub(super) struct Coordinator {
    plan: std::sync::Arc<TopologyPlan>,
    tasks: BTreeSet<TaskId>,
    epoch: i32,
    assignment_epoch: i32,
    assigned_at_ms: i64,
    target: BTreeMap<String, BTreeSet<TaskId>>,
    members: BTreeMap<String, Member>,
    /// The next assignment is drawn with this seed instead of being sticky.
    shuffle: Option<u64>,
    pub(super) session_timeout_ms: i64,
    pub(super) heartbeat_interval_ms: i32,
    pub(super) assignment_interval_ms: i64,
    /// Until then internal topics are "being made".
    pub(super) ready_at_ms: i64,
    /// Tasks are given although their topics are still being made.
    pub(super) gives_early: bool,
}

impl Coordinator {
    pub(super) fn new(plan: std::sync::Arc<TopologyPlan>, tasks: BTreeSet<TaskId>) -> Self {
        Coordinator {
            plan,
            tasks,
            epoch: 0,
            assignment_epoch: 0,
            assigned_at_ms: i64::MIN / 2,
            target: BTreeMap::new(),
            members: BTreeMap::new(),
            shuffle: None,
            session_timeout_ms: 12_000,
            heartbeat_interval_ms: 1_000,
            assignment_interval_ms: 200,
            ready_at_ms: 0,
            gives_early: false,
        }
    }

    pub(super) fn tasks(&self) -> &BTreeSet<TaskId> {
        &self.tasks
    }

    /// Whether every member has what the target gives it.
    pub(super) fn is_stable(&self) -> bool {
        let settled = |member: &Member| member.state == State::Stable && member.epoch == self.assignment_epoch;
        self.epoch == self.assignment_epoch && self.members.values().all(settled)
    }

    /// From the next heartbeat on the tasks are given out anew, at random.
    pub(super) fn reshuffle(&mut self, seed: u64) {
        self.epoch += 1;
        self.shuffle = Some(seed);
    }

    /// Removes members that were silent for the session timeout, or kept what was to be revoked for too long.
    pub(super) fn expire(&mut self, now_ms: i64) -> Vec<String> {
        let overdue = |member: &Member| {
            member.session_until_ms <= now_ms || member.rebalance_until_ms.is_some_and(|until_ms| until_ms <= now_ms)
        };
        let gone: Vec<String> = self
            .members
            .iter()
            .filter(|(_, member)| overdue(member))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &gone {
            self.remove(id);
        }
        gone
    }

    /// A new coordinator reads the group from its log and starts every session anew.
    pub(super) fn restart_sessions(&mut self, now_ms: i64) {
        for member in self.members.values_mut() {
            member.session_until_ms = now_ms + self.session_timeout_ms;
        }
    }

    /// The members whose ids begin so leave.
    pub(super) fn leave(&mut self, prefix: &str) {
        let all = self.members.keys().filter(|id| id.starts_with(prefix));
        for id in all.cloned().collect::<Vec<_>>() {
            self.remove(&id);
        }
    }

    /// Nobody is a member any more.
    pub(super) fn forget_members(&mut self) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.remove(&id);
        }
    }

    fn remove(&mut self, id: &str) {
        if self.members.remove(id).is_some() {
            self.target.remove(id);
            self.epoch += 1;
        }
    }

    /// The epoch of a member now; only a broken client asks for it at a commit.
    #[cfg(test)]
    pub(super) fn epoch_of(&self, member: &str) -> Option<i32> {
        self.members.get(member).map(|member| member.epoch)
    }

    /// Whether the group takes a commit. The current epoch is taken for every partition; an older one only for tasks that
    /// the member has had since then.
    pub(super) fn check_commit(&self, group: &GroupIdentity, offsets: &[CommittedOffset]) -> Result<(), Refusal> {
        let member = self.members.get(&group.member_id).ok_or(Refusal("UNKNOWN_MEMBER_ID"))?;
        if group.member_epoch == member.epoch {
            return Ok(());
        }
        if group.member_epoch > member.epoch {
            return Err(Refusal("ILLEGAL_GENERATION"));
        }
        let held = |offset: &CommittedOffset| {
            let task = self.task_of(&offset.topic_partition)?;
            member.active.get(&task).or_else(|| member.revoking.get(&task)).copied()
        };
        let taken = |offset: &CommittedOffset| held(offset).is_some_and(|since| since <= group.member_epoch);
        if offsets.iter().all(taken) {
            Ok(())
        } else {
            Err(Refusal("ILLEGAL_GENERATION"))
        }
    }

    fn task_of(&self, topic_partition: &TopicPartition) -> Option<TaskId> {
        let reads =
            |sub: &&streams_core::topology::SubtopologyPlan| sub.source_topics.contains_key(&topic_partition.topic);
        let sub = self.plan.subtopologies.iter().find(reads)?;
        Some(TaskId::new(sub.id, topic_partition.partition))
    }

    /// Answers a heartbeat.
    pub(super) fn heartbeat(&mut self, request: &HeartbeatRequest, now_ms: i64) -> HeartbeatResponse {
        let id = &request.member_id;
        if request.member_epoch == LEAVE_EPOCH {
            self.remove(id);
            return self.answer(id, LEAVE_EPOCH, None, now_ms);
        }
        let owned = request.tasks.as_ref().map(ids_of);
        if let Err(code) = self.check_epoch(request, owned.as_ref()) {
            return HeartbeatResponse {
                error_code: code,
                error_message: Some("the coordinator does not take this epoch".to_owned()),
                member_id: id.clone(),
                ..HeartbeatResponse::default()
            };
        }
        let joins = request.member_epoch == JOIN_EPOCH;
        if joins && !self.members.contains_key(id) {
            self.epoch += 1;
            self.members.insert(id.clone(), Member::new());
        }
        let waits = now_ms < self.ready_at_ms && !self.gives_early;
        let delayed = waits || !self.assign_if_due(now_ms);
        let before = self.members.get(id).map(|member| member.active.clone());
        self.reconcile(id, owned.as_ref(), now_ms);
        let session_until_ms = now_ms + self.session_timeout_ms;
        let Some(member) = self.members.get_mut(id) else {
            return HeartbeatResponse::default();
        };
        member.session_until_ms = session_until_ms;
        if joins {
            member.rebalance_timeout_ms = i64::from(request.rebalance_timeout_ms);
        }
        let changed = joins
            || before.as_ref().map(|tasks| tasks.keys().collect()) != Some(member.active.keys().collect::<Vec<_>>());
        let tasks = changed.then(|| lists_of(member.active.keys().copied()));
        let epoch = member.epoch;
        let mut response = self.answer(id, epoch, tasks, now_ms);
        if delayed && now_ms >= self.ready_at_ms {
            response.status = Some(vec![status(
                ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured assignment interval.",
            )]);
        }
        response
    }

    fn answer(&self, id: &str, epoch: i32, tasks: Option<TaskLists>, now_ms: i64) -> HeartbeatResponse {
        let missing = status(MISSING_INTERNAL_TOPICS, "Internal topics are missing.");
        HeartbeatResponse {
            member_id: id.to_owned(),
            member_epoch: epoch,
            heartbeat_interval_ms: self.heartbeat_interval_ms,
            status: Some(if now_ms < self.ready_at_ms {
                vec![missing]
            } else {
                Vec::new()
            }),
            tasks,
            ..HeartbeatResponse::default()
        }
    }

    fn check_epoch(&self, request: &HeartbeatRequest, owned: Option<&BTreeSet<TaskId>>) -> Result<(), i16> {
        if request.member_epoch == JOIN_EPOCH {
            return Ok(());
        }
        let member = self.members.get(&request.member_id).ok_or(UNKNOWN_MEMBER_ID)?;
        if request.member_epoch == member.epoch {
            return Ok(());
        }
        // The answer that told the newer epoch was lost.
        let lost_answer = request.member_epoch == member.previous_epoch
            && owned.is_some_and(|owned| owned.iter().all(|task| member.active.contains_key(task)));
        if lost_answer { Ok(()) } else { Err(FENCED_MEMBER_EPOCH) }
    }

    /// What `StreamsGroupDescribe` shows.
    pub(super) fn describe(&self, group_id: &str) -> DescribedGroup {
        let members = self.members.iter().map(|(id, member)| DescribedMember {
            member_id: id.clone(),
            member_epoch: member.epoch,
            assignment: lists_of(member.active.keys().copied()),
            ..DescribedMember::default()
        });
        DescribedGroup {
            group_id: group_id.to_owned(),
            group_epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            members: members.collect(),
            ..DescribedGroup::default()
        }
    }

    /// One line for a trace.
    pub(super) fn show(&self) -> String {
        let members = self.members.iter().map(|(id, member)| {
            let tasks: Vec<String> = member.active.keys().map(ToString::to_string).collect();
            let revoking: Vec<String> = member.revoking.keys().map(ToString::to_string).collect();
            format!(
                "{id}@{} {:?} [{}] revoking [{}]",
                member.epoch,
                member.state,
                tasks.join(" "),
                revoking.join(" ")
            )
        });
        format!(
            "group epoch {} of {}: {}",
            self.assignment_epoch,
            self.epoch,
            members.collect::<Vec<_>>().join("; ")
        )
    }
}

impl Member {
    fn new() -> Self {
        Member {
            epoch: 0,
            previous_epoch: -1,
            active: BTreeMap::new(),
            revoking: BTreeMap::new(),
            state: State::Stable,
            session_until_ms: i64::MAX,
            rebalance_until_ms: None,
            rebalance_timeout_ms: 300_000,
        }
    }

    fn move_to(&mut self, epoch: i32) {
        self.previous_epoch = self.epoch;
        self.epoch = epoch;
    }
}

fn status(code: i8, detail: &str) -> WireStatus {
    WireStatus {
        code,
        detail: detail.to_owned(),
    }
}

fn ids_of(lists: &TaskLists) -> BTreeSet<TaskId> {
    let of_list = |list: &TaskIds| {
        let subtopology = list.subtopology_id.parse().unwrap_or(u32::MAX);
        list.partitions
            .iter()
            .map(move |partition| TaskId::new(subtopology, *partition))
            .collect::<Vec<_>>()
    };
    lists.active.iter().flat_map(of_list).collect()
}

fn lists_of(tasks: impl Iterator<Item = TaskId>) -> TaskLists {
    let mut by_subtopology: BTreeMap<u32, Vec<i32>> = BTreeMap::new();
    for task in tasks {
        by_subtopology.entry(task.subtopology).or_default().push(task.partition);
    }
    let active = by_subtopology.into_iter().map(|(id, partitions)| TaskIds {
        subtopology_id: id.to_string(),
        partitions,
    });
    TaskLists {
        active: active.collect(),
        ..TaskLists::default()
    }
}
