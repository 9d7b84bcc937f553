//! The heartbeat thread: carries out what the state machine says, and hands its events to the stream thread.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use tracing::{debug, error, info, warn};

use super::mailbox::Mailbox;
use super::session::{Session, SessionError};
use super::{GroupTarget, OffsetCommitFailure};
use crate::membership::codec::offset_commit::{CommittedTopic, OffsetCommitRequest};
use crate::membership::member::{Coordination, Member, Step};
use crate::membership::{MembershipError, MembershipEvent};

/// Starts the thread.
pub(super) fn spawn(
    member: Member,
    target: GroupTarget,
    mailbox: Arc<Mailbox>,
    events: SyncSender<MembershipEvent>,
) -> Result<(), MembershipError> {
    let group = target.group_id.clone();
    let mut heartbeats = Heartbeats {
        member,
        target,
        mailbox,
        events,
        session: None,
    };
    let spawned = std::thread::Builder::new()
        .name("streams-heartbeat".to_owned())
        .spawn(move || {
            heartbeats.run();
            let Heartbeats { mailbox, events, .. } = heartbeats;
            // The channel closes before anyone who waits for the end is woken.
            drop(events);
            mailbox.end();
        });
    let refused = |error: std::io::Error| MembershipError::Protocol {
        group,
        reason: format!("no thread: {error}"),
    };
    spawned.map(drop).map_err(refused)
}

struct Heartbeats {
    member: Member,
    target: GroupTarget,
    mailbox: Arc<Mailbox>,
    events: SyncSender<MembershipEvent>,
    session: Option<Session>,
}

impl Heartbeats {
    fn run(&mut self) {
        let clock = self.mailbox.clock();
        while let Some(commands) = self.mailbox.take() {
            for command in commands {
                self.member.on_command(command, clock.now_ms());
            }
            if let Some((number, request)) = self.mailbox.take_commit() {
                let result = self.commit_offsets(&request);
                self.mailbox.put_committed(number, result);
            }
            let step = self.member.next(clock.now_ms());
            if !self.hand_over() {
                return;
            }
            match step {
                Step::End => return,
                Step::Wait { until_ms } => self.mailbox.wait_call(until_ms),
                step => self.carry_out(&step),
            }
            if !self.hand_over() {
                return;
            }
        }
        debug!(
            group = self.target.group_id,
            "the stream thread is gone, so its membership ends without a leave"
        );
    }

    /// Sends a request and tells the state machine how that ended.
    fn carry_out(&mut self, step: &Step) {
        let done = self.exchange(step);
        match done {
            Ok(Coordination::Keep) => {}
            Ok(Coordination::FindAgain) => self.session = None,
            Err(SessionError::Fatal(error)) => self.member.on_fatal(error),
            Err(SessionError::Retry(cause)) => {
                debug!(group = self.target.group_id, cause, "no answer from the coordinator");
                self.session = None;
                self.member.on_failure(&cause, self.mailbox.clock().now_ms());
            }
        }
    }

    fn exchange(&mut self, step: &Step) -> Result<Coordination, SessionError> {
        let session = match &mut self.session {
            Some(session) => session,
            none => none.insert(Session::open(&self.target)?),
        };
        let clock = self.mailbox.clock();
        match step {
            Step::Heartbeat(request) => {
                let response = session.heartbeat(request)?;
                Ok(self.member.on_answer(response, clock.now_ms()))
            }
            Step::Describe(request) => {
                let group = session.describe(request)?;
                Ok(self.member.on_described(&group, clock.now_ms()))
            }
            Step::Wait { .. } | Step::End => Ok(Coordination::Keep),
        }
    }

    /// Makes an offset commit on the group's connection. A connection that failed is opened anew by whoever needs it next:
    /// for the membership it makes no difference.
    fn commit_offsets(&mut self, request: &OffsetCommitRequest) -> Result<Vec<CommittedTopic>, OffsetCommitFailure> {
        let session = match &mut self.session {
            Some(session) => session,
            none => match Session::open(&self.target) {
                Ok(session) => none.insert(session),
                Err(error) => return Err(OffsetCommitFailure::NotSent(error.to_string())),
            },
        };
        let result = session.commit_offsets(request);
        let elsewhere = |code: i16| matches!(code, 15 | 16);
        let lost = match &result {
            Ok(topics) => topics
                .iter()
                .flat_map(|topic| &topic.partitions)
                .any(|partition| elsewhere(partition.error_code)),
            Err(_) => true,
        };
        if lost {
            self.session = None;
        }
        result
    }

    /// Hands all events over; false when nobody takes them any more.
    fn hand_over(&mut self) -> bool {
        while let Some(event) = self.member.pop_event() {
            log(&self.target.group_id, &event);
            match self.events.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Disconnected(_)) => return false,
                Err(TrySendError::Full(_)) => {
                    error!(
                        group = self.target.group_id,
                        "the stream thread reads no events, so its membership ends"
                    );
                    return false;
                }
            }
        }
        true
    }
}

fn log(group: &str, event: &MembershipEvent) {
    match event {
        MembershipEvent::Assigned {
            assignment,
            member,
            active,
            standby,
            ready,
            ..
        } => {
            let (active, standby, epoch) = (active.len(), standby.len(), member.epoch);
            info!(group, assignment, epoch, active, standby, ready, "tasks are assigned");
        }
        MembershipEvent::Epoch { member } => debug!(group, epoch = member.epoch, "the member epoch moved"),
        MembershipEvent::Status { ready, status } => info!(group, ready, ?status, "the group's status changed"),
        MembershipEvent::Endpoints { endpoints } => debug!(group, endpoints = endpoints.len(), "query endpoints moved"),
        MembershipEvent::Lost { reason, .. } => warn!(group, %reason, "all tasks are lost"),
        MembershipEvent::Refused { error } => warn!(group, %error, "the group refuses something"),
        MembershipEvent::Fatal { error } => error!(group, %error, "membership has ended"),
        MembershipEvent::Left => info!(group, "the member has left the group"),
    }
}
