//! Single requests about a group, without a membership.

use std::time::Duration;

use super::GroupTarget;
use super::clock::Clock;
use super::session::{Session, SessionError};
use crate::membership::MembershipError;
use crate::membership::codec::describe::{DescribeRequest, DescribedGroup};
use crate::membership::codec::heartbeat::{HeartbeatRequest, LEAVE_EPOCH};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// How a try ended that did not succeed.
enum Failed {
    Retry(String),
    Fatal(MembershipError),
}

impl From<SessionError> for Failed {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Retry(cause) => Self::Retry(cause),
            SessionError::Fatal(error) => Self::Fatal(error),
        }
    }
}

/// Asks the coordinator what it has stored about the group, for `request_timeout_ms` altogether.
///
/// # Errors
/// [`MembershipError::Unreachable`] when nobody answers in time, and what the coordinator refuses.
pub fn describe_group(target: &GroupTarget) -> Result<DescribedGroup, MembershipError> {
    target.check()?;
    let request = DescribeRequest {
        group_id: target.group_id.clone(),
    };
    repeat(target, || {
        let group = Session::open(target)?.describe(&request)?;
        match group.error_code {
            0 => Ok(group),
            code => Err(refusal(target, code, group.error_message)),
        }
    })
}

/// Removes a member that will not come back: the identity of a stream thread that the process no longer has. Until then,
/// or until its session times out, its tasks wait for it. A member or group that is not there is no error.
///
/// # Errors
/// [`MembershipError::Unreachable`] when nobody answers in time, and what the coordinator refuses.
pub fn leave_surplus(target: &GroupTarget, member_id: &str) -> Result<(), MembershipError> {
    target.check()?;
    let request = HeartbeatRequest {
        group_id: target.group_id.clone(),
        member_id: member_id.to_owned(),
        member_epoch: LEAVE_EPOCH,
        endpoint_epoch: -1,
        rebalance_timeout_ms: -1,
        ..HeartbeatRequest::default()
    };
    repeat(target, || {
        let response = Session::open(target)?.heartbeat(&request)?;
        match response.error_code {
            // Left; unknown member; no such group.
            0 | 25 | 69 => Ok(()),
            code => Err(refusal(target, code, response.error_message)),
        }
    })
}

fn refusal(target: &GroupTarget, code: i16, message: Option<String>) -> Failed {
    let broker_message = message.unwrap_or_else(|| format!("error {code}"));
    let group = target.group_id.clone();
    match code {
        // Loading, no coordinator, another coordinator: passes.
        14..=16 => Failed::Retry(broker_message),
        30 => Failed::Fatal(MembershipError::GroupAuthorization { group, broker_message }),
        69 => Failed::Fatal(MembershipError::NotAStreamsGroup { group, broker_message }),
        code => Failed::Fatal(MembershipError::Unexpected {
            group,
            code,
            broker_message,
        }),
    }
}

/// Tries until success, a final refusal, or the time-out.
#[allow(
    clippy::disallowed_methods,
    reason = "a pause between tries at another machine: no condition to wait for"
)]
fn repeat<T>(target: &GroupTarget, mut attempt: impl FnMut() -> Result<T, Failed>) -> Result<T, MembershipError> {
    let clock = Clock::start();
    loop {
        let cause = match attempt() {
            Ok(done) => return Ok(done),
            Err(Failed::Fatal(error)) => return Err(error),
            Err(Failed::Retry(cause)) => cause,
        };
        let failing_ms = clock.now_ms();
        if failing_ms.unsigned_abs() >= target.request_timeout_ms {
            let (group, bootstrap) = (target.group_id.clone(), target.bootstrap.clone());
            return Err(MembershipError::Unreachable {
                group,
                bootstrap,
                failing_ms,
                cause,
            });
        }
        std::thread::sleep(PAUSE);
    }
}
