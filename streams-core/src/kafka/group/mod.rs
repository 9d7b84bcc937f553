//! Membership of a streams group (KIP-1071) over a connection of its own: librdkafka does not know this protocol.
//!
//! [`StreamsMembership::start`] starts one heartbeat thread for a stream thread. What should happen is decided by
//! [`Member`]; here is only what it needs of the world: a clock, a socket, a thread.
//!
//! The connection is plain text. TLS and SASL are refused with an error that says so.

mod clock;
mod connection;
mod mailbox;
mod once;
mod session;
mod thread;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use self::clock::Clock;
use self::mailbox::Mailbox;
use crate::membership::codec::offset_commit::{CommittedTopic, OffsetCommitRequest};
use crate::membership::member::{Member, MemberConfig};
use crate::membership::{GroupTopology, MembershipCommand, MembershipError, MembershipEvent};
use crate::record::TaskId;

pub use self::once::{describe_group, leave_surplus};

/// Events that may wait for a stream thread. One that does not read so many has long lost its tasks: its membership ends.
const EVENT_QUEUE_LIMIT: usize = 1024;

/// A group and the way to it.
#[derive(Clone, Debug)]
pub struct GroupTarget {
    /// `bootstrap.servers`: `host:port`, several separated by commas.
    pub bootstrap: String,
    /// `application.id`.
    pub group_id: String,
    /// `client.id`.
    pub client_id: String,
    /// `security.protocol`; only `PLAINTEXT` so far.
    pub security_protocol: String,
    /// `request.timeout.ms`: bound of one connection attempt and of one request, milliseconds.
    pub request_timeout_ms: u64,
}

impl GroupTarget {
    /// Plain text, ten seconds a request, the group's id as client id.
    pub fn new(bootstrap: impl Into<String>, group_id: impl Into<String>) -> Self {
        let group_id = group_id.into();
        Self {
            bootstrap: bootstrap.into(),
            client_id: group_id.clone(),
            group_id,
            security_protocol: "PLAINTEXT".to_owned(),
            request_timeout_ms: 10_000,
        }
    }

    fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    /// # Errors
    /// [`MembershipError::Setting`] for what this connection cannot do.
    fn check(&self) -> Result<(), MembershipError> {
        if !self.security_protocol.eq_ignore_ascii_case("PLAINTEXT") {
            return Err(MembershipError::Setting {
                key: "security.protocol",
                value: self.security_protocol.clone(),
                reason: "the membership of streams groups speaks plain text only so far; use a PLAINTEXT listener, or \
                         group.protocol=classic, whose traffic librdkafka carries"
                    .to_owned(),
            });
        }
        if session::servers(&self.bootstrap).is_empty() {
            let reason = "it names no server; give host:port, several separated by commas".to_owned();
            return Err(MembershipError::Setting {
                key: "bootstrap.servers",
                value: self.bootstrap.clone(),
                reason,
            });
        }
        Ok(())
    }
}

/// All that a member needs to know.
#[derive(Clone, Debug)]
pub struct MembershipConfig {
    /// The group and the way to it.
    pub target: GroupTarget,
    /// Member id of the stream thread. Reuse it after a crash only under exactly-once, where the transactional id fences.
    pub member_id: String,
    /// Process id, shared by the stream threads of a process.
    pub process_id: String,
    /// `client.rack`.
    pub rack_id: Option<String>,
    /// `client.tag.*`.
    pub client_tags: Vec<(String, String)>,
    /// `application.server`: host and port.
    pub endpoint: Option<(String, u16)>,
    /// How long the coordinator waits for revoked tasks, milliseconds.
    pub rebalance_timeout_ms: i32,
    /// `max.poll.interval.ms`.
    pub max_poll_interval_ms: i64,
    /// `streams.heartbeat.max.ms`: upper bound of the time between heartbeats; `None` is the coordinator's interval.
    pub heartbeat_max_ms: Option<i64>,
    /// The topology.
    pub topology: GroupTopology,
}

/// `max.poll.interval.ms` when nothing else is said (Java's default), milliseconds.
const DEFAULT_MAX_POLL_INTERVAL_MS: i32 = 300_000;

impl MembershipConfig {
    /// Java's defaults: five minutes for both time-outs, the coordinator's heartbeat interval, no rack, tags or endpoint.
    pub fn new(
        target: GroupTarget,
        member_id: impl Into<String>,
        process_id: impl Into<String>,
        topology: GroupTopology,
    ) -> Self {
        Self {
            target,
            member_id: member_id.into(),
            process_id: process_id.into(),
            rack_id: None,
            client_tags: Vec::new(),
            endpoint: None,
            rebalance_timeout_ms: DEFAULT_MAX_POLL_INTERVAL_MS,
            max_poll_interval_ms: i64::from(DEFAULT_MAX_POLL_INTERVAL_MS),
            heartbeat_max_ms: None,
            topology,
        }
    }

    fn into_member(self) -> (GroupTarget, MemberConfig) {
        let member = MemberConfig {
            group_id: self.target.group_id.clone(),
            bootstrap: self.target.bootstrap.clone(),
            member_id: self.member_id,
            process_id: self.process_id,
            rack_id: self.rack_id,
            client_tags: self.client_tags,
            endpoint: self.endpoint,
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            max_poll_interval_ms: self.max_poll_interval_ms,
            heartbeat_max_ms: self.heartbeat_max_ms,
            topology: self.topology,
        };
        (self.target, member)
    }
}

/// Starts memberships.
#[derive(Debug)]
pub struct StreamsMembership;

impl StreamsMembership {
    /// Joins the group and keeps the membership, on a thread of its own, until the command to leave or until the
    /// [`CommandSender`] is dropped. Dropping sends no leave: to the group that looks like a crash, and the member's tasks
    /// wait for it until the session time-out.
    ///
    /// A closed channel of events means that membership is over, as after
    /// [`Fatal`](MembershipEvent::Fatal) and [`Left`](MembershipEvent::Left).
    ///
    /// # Errors
    /// [`MembershipError::Setting`] and [`MembershipError::TopologyNotDescribable`]; what the brokers refuse comes as event.
    pub fn start(config: MembershipConfig) -> Result<(Receiver<MembershipEvent>, CommandSender), MembershipError> {
        let (target, config) = config.into_member();
        target.check()?;
        let clock = Clock::start();
        let member = Member::new(config, clock.now_ms())?;
        let mailbox = Arc::new(Mailbox::new(clock));
        let (events, received) = sync_channel(EVENT_QUEUE_LIMIT);
        thread::spawn(member, target, Arc::clone(&mailbox), events)?;
        Ok((received, CommandSender { mailbox }))
    }
}

/// The stream thread's way to its membership. Sending never blocks.
#[derive(Debug)]
pub struct CommandSender {
    mailbox: Arc<Mailbox>,
}

impl CommandSender {
    /// Hands over a command. Only the newest `Owned` counts; `Alive` means now, whatever time it names.
    pub fn send(&self, command: MembershipCommand) {
        match command {
            MembershipCommand::Alive { .. } => self.alive(),
            command => self.mailbox.put(command),
        }
    }

    /// Assignment number `assignment` is applied: these tasks are owned, all others committed and released.
    pub fn owned(&self, assignment: u64, active: Vec<TaskId>, standby: Vec<TaskId>) {
        self.send(MembershipCommand::Owned {
            assignment,
            active,
            standby,
        });
    }

    /// Commits offsets on this membership's connection, from any thread.
    #[must_use]
    pub fn offsets(&self) -> OffsetCommitter {
        OffsetCommitter {
            mailbox: Arc::clone(&self.mailbox),
        }
    }

    /// The stream thread has looped. Cheap: one store to memory, to be called in every loop.
    pub fn alive(&self) {
        self.mailbox.stamp_alive();
    }

    /// Leaves the group and waits until that is done, for `timeout` at most. Says whether it was done in time; the thread
    /// goes on trying in its own bounds otherwise.
    pub fn leave(&self, shutdown_application: bool, timeout: Duration) -> bool {
        self.send(MembershipCommand::Leave { shutdown_application });
        self.mailbox.wait_ended(timeout)
    }
}

/// Why an OffsetCommit has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffsetCommitFailure {
    /// It was not sent.
    #[error("the offset commit was not sent: {0}")]
    NotSent(String),
    /// It was sent, and whether it was carried out is not known; it may still be.
    #[error("it is not known whether the offset commit was carried out: {0}")]
    Unknown(String),
}

/// Commits offsets on the connection of a membership, between its heartbeats. librdkafka can't do it for a member of a
/// streams group: it knows no such membership and is refused.
#[derive(Clone, Debug)]
pub struct OffsetCommitter {
    mailbox: Arc<Mailbox>,
}

impl OffsetCommitter {
    /// Commits, and waits for the answer for `timeout` at most: the error code of each partition. One call at a time.
    ///
    /// # Errors
    /// [`OffsetCommitFailure`] when there is no answer.
    pub fn commit(
        &self,
        request: OffsetCommitRequest,
        timeout: Duration,
    ) -> Result<Vec<CommittedTopic>, OffsetCommitFailure> {
        self.mailbox.commit(request, timeout)
    }
}

impl Drop for CommandSender {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}
