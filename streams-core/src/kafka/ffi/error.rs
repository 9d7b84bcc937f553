//! Error codes and librdkafka's error objects.

use std::ffi::{CStr, c_char, c_int};

use super::sys::{self, b};

/// librdkafka's error numbers that are looked at by name. Negative ones are made by the client, others by a broker.
pub(crate) mod code {
    use rdkafka::bindings::rd_kafka_resp_err_t as E;

    pub(crate) const NO_ERROR: i32 = E::RD_KAFKA_RESP_ERR_NO_ERROR as i32;
    pub(crate) const PARTITION_EOF: i32 = E::RD_KAFKA_RESP_ERR__PARTITION_EOF as i32;
    pub(crate) const TRANSPORT: i32 = E::RD_KAFKA_RESP_ERR__TRANSPORT as i32;
    pub(crate) const ALL_BROKERS_DOWN: i32 = E::RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN as i32;
    pub(crate) const RESOLVE: i32 = E::RD_KAFKA_RESP_ERR__RESOLVE as i32;
    pub(crate) const TIMED_OUT: i32 = E::RD_KAFKA_RESP_ERR__TIMED_OUT as i32;
    #[cfg(test)]
    pub(crate) const MSG_TIMED_OUT: i32 = E::RD_KAFKA_RESP_ERR__MSG_TIMED_OUT as i32;
    pub(crate) const QUEUE_FULL: i32 = E::RD_KAFKA_RESP_ERR__QUEUE_FULL as i32;
    pub(crate) const PURGE_QUEUE: i32 = E::RD_KAFKA_RESP_ERR__PURGE_QUEUE as i32;
    pub(crate) const PURGE_INFLIGHT: i32 = E::RD_KAFKA_RESP_ERR__PURGE_INFLIGHT as i32;
    pub(crate) const FATAL: i32 = E::RD_KAFKA_RESP_ERR__FATAL as i32;
    pub(crate) const FENCED: i32 = E::RD_KAFKA_RESP_ERR__FENCED as i32;
    pub(crate) const AUTO_OFFSET_RESET: i32 = E::RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET as i32;
    pub(crate) const NO_OFFSET: i32 = E::RD_KAFKA_RESP_ERR__NO_OFFSET as i32;
    pub(crate) const UNKNOWN_TOPIC: i32 = E::RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC as i32;
    pub(crate) const UNKNOWN_PARTITION: i32 = E::RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION as i32;
    pub(crate) const AUTHENTICATION: i32 = E::RD_KAFKA_RESP_ERR__AUTHENTICATION as i32;
    pub(crate) const SSL: i32 = E::RD_KAFKA_RESP_ERR__SSL as i32;
    pub(crate) const INVALID_ARG: i32 = E::RD_KAFKA_RESP_ERR__INVALID_ARG as i32;
    pub(crate) const CONFLICT: i32 = E::RD_KAFKA_RESP_ERR__CONFLICT as i32;
    pub(crate) const PREV_IN_PROGRESS: i32 = E::RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS as i32;
    pub(crate) const TIMED_OUT_QUEUE: i32 = E::RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE as i32;
    pub(crate) const WAIT_CACHE: i32 = E::RD_KAFKA_RESP_ERR__WAIT_CACHE as i32;
    pub(crate) const RETRY: i32 = E::RD_KAFKA_RESP_ERR__RETRY as i32;
    pub(crate) const OUTDATED: i32 = E::RD_KAFKA_RESP_ERR__OUTDATED as i32;
    pub(crate) const UNKNOWN_BROKER: i32 = E::RD_KAFKA_RESP_ERR__UNKNOWN_BROKER as i32;
    pub(crate) const STATE: i32 = E::RD_KAFKA_RESP_ERR__STATE as i32;
    /// No partition of the request has a leader, or exists.
    pub(crate) const NOENT: i32 = E::RD_KAFKA_RESP_ERR__NOENT as i32;
    pub(crate) const WAIT_COORD: i32 = E::RD_KAFKA_RESP_ERR__WAIT_COORD as i32;
    pub(crate) const FAIL: i32 = E::RD_KAFKA_RESP_ERR__FAIL as i32;

    pub(crate) const OFFSET_OUT_OF_RANGE: i32 = E::RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE as i32;
    pub(crate) const UNKNOWN_TOPIC_OR_PART: i32 = E::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART as i32;
    pub(crate) const UNKNOWN_TOPIC_ID: i32 = E::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_ID as i32;
    pub(crate) const LEADER_NOT_AVAILABLE: i32 = E::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE as i32;
    pub(crate) const NOT_LEADER: i32 = E::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION as i32;
    pub(crate) const REQUEST_TIMED_OUT: i32 = E::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT as i32;
    pub(crate) const NETWORK_EXCEPTION: i32 = E::RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION as i32;
    pub(crate) const COORDINATOR_LOADING: i32 = E::RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS as i32;
    pub(crate) const COORDINATOR_NOT_AVAILABLE: i32 = E::RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE as i32;
    pub(crate) const NOT_COORDINATOR: i32 = E::RD_KAFKA_RESP_ERR_NOT_COORDINATOR as i32;
    pub(crate) const BROKER_NOT_AVAILABLE: i32 = E::RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE as i32;
    pub(crate) const REPLICA_NOT_AVAILABLE: i32 = E::RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE as i32;
    pub(crate) const NOT_ENOUGH_REPLICAS: i32 = E::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS as i32;
    pub(crate) const NOT_ENOUGH_REPLICAS_AFTER_APPEND: i32 =
        E::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND as i32;
    pub(crate) const CONCURRENT_TRANSACTIONS: i32 = E::RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS as i32;
    pub(crate) const KAFKA_STORAGE_ERROR: i32 = E::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR as i32;
    pub(crate) const LISTENER_NOT_FOUND: i32 = E::RD_KAFKA_RESP_ERR_LISTENER_NOT_FOUND as i32;
    pub(crate) const FENCED_LEADER_EPOCH: i32 = E::RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH as i32;
    pub(crate) const UNKNOWN_LEADER_EPOCH: i32 = E::RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH as i32;
    pub(crate) const OFFSET_NOT_AVAILABLE: i32 = E::RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE as i32;
    pub(crate) const ELIGIBLE_LEADERS_NOT_AVAILABLE: i32 = E::RD_KAFKA_RESP_ERR_ELIGIBLE_LEADERS_NOT_AVAILABLE as i32;
    pub(crate) const THROTTLING_QUOTA_EXCEEDED: i32 = E::RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED as i32;
    pub(crate) const NOT_CONTROLLER: i32 = E::RD_KAFKA_RESP_ERR_NOT_CONTROLLER as i32;
    pub(crate) const MSG_SIZE_TOO_LARGE: i32 = E::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE as i32;
    pub(crate) const OFFSET_METADATA_TOO_LARGE: i32 = E::RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE as i32;
    pub(crate) const TOPIC_EXCEPTION: i32 = E::RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION as i32;
    pub(crate) const RECORD_LIST_TOO_LARGE: i32 = E::RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE as i32;
    pub(crate) const ILLEGAL_GENERATION: i32 = E::RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION as i32;
    pub(crate) const UNKNOWN_MEMBER_ID: i32 = E::RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID as i32;
    pub(crate) const TOPIC_AUTHORIZATION: i32 = E::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED as i32;
    pub(crate) const GROUP_AUTHORIZATION: i32 = E::RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED as i32;
    pub(crate) const CLUSTER_AUTHORIZATION: i32 = E::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED as i32;
    pub(crate) const TRANSACTIONAL_ID_AUTHORIZATION: i32 =
        E::RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED as i32;
    pub(crate) const SASL_AUTHENTICATION: i32 = E::RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED as i32;
    pub(crate) const TOPIC_ALREADY_EXISTS: i32 = E::RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS as i32;
    pub(crate) const POLICY_VIOLATION: i32 = E::RD_KAFKA_RESP_ERR_POLICY_VIOLATION as i32;
    pub(crate) const INVALID_RECORD: i32 = E::RD_KAFKA_RESP_ERR_INVALID_RECORD as i32;
    pub(crate) const FENCED_INSTANCE_ID: i32 = E::RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID as i32;
    pub(crate) const UNSTABLE_OFFSET_COMMIT: i32 = E::RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT as i32;
    pub(crate) const PRODUCER_FENCED: i32 = E::RD_KAFKA_RESP_ERR_PRODUCER_FENCED as i32;
    pub(crate) const INVALID_PRODUCER_EPOCH: i32 = E::RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH as i32;
    pub(crate) const INVALID_TXN_STATE: i32 = E::RD_KAFKA_RESP_ERR_INVALID_TXN_STATE as i32;
    pub(crate) const FENCED_MEMBER_EPOCH: i32 = E::RD_KAFKA_RESP_ERR_FENCED_MEMBER_EPOCH as i32;
    pub(crate) const STALE_MEMBER_EPOCH: i32 = E::RD_KAFKA_RESP_ERR_STALE_MEMBER_EPOCH as i32;
}

/// What librdkafka said: the code, its text, and for transactional calls what may be done next.
#[derive(Clone, Debug)]
pub(crate) struct NativeError {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) fatal: bool,
    pub(crate) retriable: bool,
    pub(crate) abortable: bool,
}

impl NativeError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        let fatal = code == code::FATAL || code == code::FENCED;
        NativeError {
            code,
            message: message.into(),
            fatal,
            retriable: false,
            abortable: false,
        }
    }

    pub(crate) fn from_code(code: i32) -> Self {
        NativeError::new(code, describe(code))
    }
}

/// `Ok` for code 0.
pub(crate) fn check(code: c_int) -> Result<(), NativeError> {
    if code == code::NO_ERROR {
        Ok(())
    } else {
        Err(NativeError::from_code(code))
    }
}

/// The symbolic name of a code, such as `_FENCED`.
pub(crate) fn name(code: i32) -> String {
    // SAFETY: librdkafka answers with a static, or for unknown numbers a thread-local, NUL-terminated string.
    unsafe { text(sys::rd_kafka_err2name(code)) }
}

/// librdkafka's description of a code.
pub(crate) fn describe(code: i32) -> String {
    // SAFETY: as in `name`.
    unsafe { text(sys::rd_kafka_err2str(code)) }
}

/// Copies a C string; null gives the empty string, invalid UTF-8 is replaced.
///
/// # Safety
/// `ptr` must be null or a NUL-terminated string that stays valid during the call.
pub(super) unsafe fn text(ptr: *const c_char) -> String {
    if ptr.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for the string.
    unsafe { CStr::from_ptr(ptr) }.to_string_lossy().into_owned()
}

/// Turns an error object into a value and frees it; null is success.
///
/// # Safety
/// `error` must be null or owned by the caller, who must not use it afterwards.
pub(super) unsafe fn take(error: *mut b::rd_kafka_error_t) -> Result<(), NativeError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the object is alive until `rd_kafka_error_destroy`, its string is copied before.
    unsafe {
        let result = peek(error);
        b::rd_kafka_error_destroy(error);
        result
    }
}

/// Reads an error object that librdkafka keeps; null and code 0 are success.
///
/// # Safety
/// `error` must be null or valid during the call.
pub(super) unsafe fn peek(error: *const b::rd_kafka_error_t) -> Result<(), NativeError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller vouches for the object; all four functions only read it.
    unsafe {
        let code = sys::rd_kafka_error_code(error);
        if code == code::NO_ERROR {
            return Ok(());
        }
        Err(NativeError {
            code,
            message: text(b::rd_kafka_error_string(error)),
            fatal: b::rd_kafka_error_is_fatal(error) != 0,
            retriable: b::rd_kafka_error_is_retriable(error) != 0,
            abortable: b::rd_kafka_error_txn_requires_abort(error) != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_librdkafka_does_not_know_is_only_a_number() {
        let error = NativeError::from_code(120);
        assert_eq!(error.code, 120);
        assert!(error.message.contains("120"), "{}", error.message);
        assert_eq!(name(code::FENCED), "_FENCED");
    }
}
