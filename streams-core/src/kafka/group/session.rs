//! A connection to the coordinator of a group, with the versions that both sides know.

use super::connection::{Connection, ConnectionError};
use super::{GroupTarget, OffsetCommitFailure};
use crate::membership::MembershipError;
use crate::membership::codec::Request;
use crate::membership::codec::api_versions::{ApiVersionsRequest, ApiVersionsResponse, STREAMS_FEATURE};
use crate::membership::codec::coordinator::{Coordinator, FindCoordinatorRequest};
use crate::membership::codec::describe::{self, DescribeRequest, DescribedGroup};
use crate::membership::codec::heartbeat::{self, HeartbeatRequest, HeartbeatResponse};
use crate::membership::codec::offset_commit::{self, CommittedTopic, OffsetCommitRequest};

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// Try again after a pause.
    #[error("{0}")]
    Retry(String),
    /// Trying again changes nothing.
    #[error("{0}")]
    Fatal(MembershipError),
}

impl From<ConnectionError> for SessionError {
    fn from(error: ConnectionError) -> Self {
        Self::Retry(error.to_string())
    }
}

const API_VERSIONS: i16 = 3;
const FIND_COORDINATOR: i16 = 4;
const UNSUPPORTED_VERSION: i16 = 35;
const GROUP_AUTHORIZATION_FAILED: i16 = 30;

#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    heartbeat_version: i16,
    describe_version: Option<i16>,
    commits_by_epoch: bool,
}

impl Session {
    /// Finds the coordinator through the first bootstrap server that answers, and connects to it.
    pub(super) fn open(target: &GroupTarget) -> Result<Self, SessionError> {
        let mut last = SessionError::Retry("bootstrap.servers names no server".to_owned());
        for server in servers(&target.bootstrap) {
            match Self::through(&server, target) {
                Err(SessionError::Retry(cause)) => last = SessionError::Retry(cause),
                done => return done,
            }
        }
        Err(last)
    }

    fn through(server: &str, target: &GroupTarget) -> Result<Self, SessionError> {
        let (mut connection, offers) = connect(server, target)?;
        require::<FindCoordinatorRequest>(&offers, FIND_COORDINATOR, target)?;
        let request = FindCoordinatorRequest {
            group_id: target.group_id.clone(),
        };
        let coordinator = usable(connection.call(&request, FIND_COORDINATOR)?, target)?;
        let coordinator = address(&coordinator.host, coordinator.port);
        // The usual case of a small cluster: the server asked is the coordinator.
        if coordinator == connection.server() {
            return Self::with(connection, &offers, target);
        }
        let (connection, offers) = connect(&coordinator, target)?;
        Self::with(connection, &offers, target)
    }

    fn with(connection: Connection, offers: &ApiVersionsResponse, target: &GroupTarget) -> Result<Self, SessionError> {
        let heartbeat_version = require::<HeartbeatRequest>(offers, heartbeat::HIGHEST_VERSION, target)?;
        if offers.streams_version() == Some(0) {
            return Err(unsupported(
                target,
                format!("their feature {STREAMS_FEATURE} is at level 0"),
            ));
        }
        let describe_version = offers.highest(DescribeRequest::API_KEY, describe::HIGHEST_VERSION);
        let commit_version = offers.highest(OffsetCommitRequest::API_KEY, offset_commit::VERSION);
        Ok(Self {
            connection,
            heartbeat_version,
            describe_version,
            commits_by_epoch: commit_version == Some(offset_commit::VERSION),
        })
    }

    pub(super) fn heartbeat(&mut self, request: &HeartbeatRequest) -> Result<HeartbeatResponse, SessionError> {
        Ok(self.connection.call(request, self.heartbeat_version)?)
    }

    /// Commits offsets with the identity that the request carries.
    pub(super) fn commit_offsets(
        &mut self,
        request: &OffsetCommitRequest,
    ) -> Result<Vec<CommittedTopic>, OffsetCommitFailure> {
        if !self.commits_by_epoch {
            return Err(OffsetCommitFailure::NotSent(format!(
                "{} does not offer OffsetCommit in version {}",
                self.connection.server(),
                offset_commit::VERSION
            )));
        }
        let answer = self.connection.call(request, offset_commit::VERSION);
        answer.map_err(|error| OffsetCommitFailure::Unknown(error.to_string()))
    }

    pub(super) fn describe(&mut self, request: &DescribeRequest) -> Result<DescribedGroup, SessionError> {
        let version = self.describe_version.ok_or_else(|| {
            SessionError::Retry(format!("{} cannot describe streams groups", self.connection.server()))
        })?;
        let groups = self.connection.call(request, version)?;
        let group = groups.into_iter().find(|group| group.group_id == request.group_id);
        group.ok_or_else(|| SessionError::Retry(format!("{} described another group", self.connection.server())))
    }
}

/// The servers of a bootstrap list, with the listener prefix that Java also takes off.
pub(super) fn servers(bootstrap: &str) -> Vec<String> {
    let servers = bootstrap
        .split(',')
        .map(|server| server.trim().trim_start_matches("PLAINTEXT://"));
    servers.filter(|server| !server.is_empty()).map(str::to_owned).collect()
}

fn address(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Connects and asks for the versions. A broker that does not know our version of that question answers 35.
fn connect(server: &str, target: &GroupTarget) -> Result<(Connection, ApiVersionsResponse), SessionError> {
    let mut connection = Connection::open(server, &target.client_id, target.request_timeout())?;
    let mut offers = connection.call(&ApiVersionsRequest, API_VERSIONS)?;
    if offers.error_code == UNSUPPORTED_VERSION {
        offers = connection.call(&ApiVersionsRequest, 0)?;
    }
    match offers.error_code {
        0 => Ok((connection, offers)),
        code => Err(SessionError::Retry(format!(
            "{server} answered ApiVersions with error {code}"
        ))),
    }
}

fn require<R: Request>(offers: &ApiVersionsResponse, highest: i16, target: &GroupTarget) -> Result<i16, SessionError> {
    offers.highest(R::API_KEY, highest).ok_or_else(|| {
        unsupported(
            target,
            format!("they do not offer request {} in version {highest}", R::API_KEY),
        )
    })
}

fn unsupported(target: &GroupTarget, reason: String) -> SessionError {
    SessionError::Fatal(MembershipError::StreamsGroupsUnsupported {
        group: target.group_id.clone(),
        reason,
    })
}

fn usable(found: Vec<Coordinator>, target: &GroupTarget) -> Result<Coordinator, SessionError> {
    let coordinator = found.into_iter().find(|coordinator| coordinator.key == target.group_id);
    let Some(coordinator) = coordinator else {
        return Err(SessionError::Retry(
            "the answer to FindCoordinator does not have our group".to_owned(),
        ));
    };
    let broker_message = coordinator.error_message.clone().unwrap_or_default();
    match coordinator.error_code {
        0 => Ok(coordinator),
        GROUP_AUTHORIZATION_FAILED => {
            let group = target.group_id.clone();
            Err(SessionError::Fatal(MembershipError::GroupAuthorization {
                group,
                broker_message,
            }))
        }
        // 15 for the first moments of a cluster, whose offsets topic is being made.
        code => Err(SessionError::Retry(format!(
            "there is no coordinator now (error {code}) {broker_message}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_lists_are_read_like_javas() {
        assert_eq!(servers(" a:1, PLAINTEXT://b:2 ,,[::1]:3"), ["a:1", "b:2", "[::1]:3"]);
        assert!(servers(" , ").is_empty());
        assert_eq!(
            (address("::1", 3), address("h", 4)),
            ("[::1]:3".to_owned(), "h:4".to_owned())
        );
    }
}
