//! C declarations used instead of the generated ones where those are not sound.
//!
//! The generated bindings return `rd_kafka_resp_err_t` as a Rust enum. librdkafka passes numbers through that its
//! header does not list (120, `TRANSACTION_ABORTABLE`, is one), and such a value in a Rust enum is undefined behaviour.
//! Here the same functions return `c_int`, which has the same representation in C.

use std::ffi::{c_char, c_int, c_void};

pub(super) use rdkafka::bindings as b;

/// `rd_kafka_message_t` with a plain number for the error.
#[repr(C)]
pub(super) struct Message {
    pub(super) err: c_int,
    pub(super) rkt: *mut b::rd_kafka_topic_t,
    pub(super) partition: i32,
    pub(super) payload: *mut c_void,
    pub(super) len: usize,
    pub(super) key: *mut c_void,
    pub(super) key_len: usize,
    pub(super) offset: i64,
    pub(super) private: *mut c_void,
}

/// `rd_kafka_topic_partition_t` with a plain number for the error.
#[repr(C)]
pub(super) struct TopicPartition {
    pub(super) topic: *mut c_char,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) metadata: *mut c_void,
    pub(super) metadata_size: usize,
    pub(super) opaque: *mut c_void,
    pub(super) err: c_int,
    pub(super) private: *mut c_void,
}

/// `rd_kafka_metadata_topic_t` with a plain number for the error.
#[repr(C)]
pub(super) struct MetadataTopic {
    pub(super) topic: *mut c_char,
    pub(super) partition_cnt: c_int,
    pub(super) partitions: *mut c_void,
    pub(super) err: c_int,
}

// The mirrors must have the layout of the originals, or the build stops.
const _: () = {
    assert!(size_of::<Message>() == size_of::<b::rd_kafka_message_t>());
    assert!(std::mem::offset_of!(Message, offset) == std::mem::offset_of!(b::rd_kafka_message_t, offset));
    assert!(size_of::<TopicPartition>() == size_of::<b::rd_kafka_topic_partition_t>());
    assert!(std::mem::offset_of!(TopicPartition, err) == std::mem::offset_of!(b::rd_kafka_topic_partition_t, err));
    assert!(size_of::<MetadataTopic>() == size_of::<b::rd_kafka_metadata_topic_t>());
    assert!(std::mem::offset_of!(MetadataTopic, err) == std::mem::offset_of!(b::rd_kafka_metadata_topic_t, err));
    assert!(size_of::<b::rd_kafka_resp_err_t>() == size_of::<c_int>());
};

unsafe extern "C" {
    pub(super) fn rd_kafka_err2str(err: c_int) -> *const c_char;
    pub(super) fn rd_kafka_err2name(err: c_int) -> *const c_char;
    pub(super) fn rd_kafka_last_error() -> c_int;
    pub(super) fn rd_kafka_error_code(error: *const b::rd_kafka_error_t) -> c_int;
    pub(super) fn rd_kafka_fatal_error(rk: *mut b::rd_kafka_t, errstr: *mut c_char, size: usize) -> c_int;
    pub(super) fn rd_kafka_conf_set(
        conf: *mut b::rd_kafka_conf_t,
        name: *const c_char,
        value: *const c_char,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int;
    pub(super) fn rd_kafka_poll_set_consumer(rk: *mut b::rd_kafka_t) -> c_int;
    pub(super) fn rd_kafka_assign(
        rk: *mut b::rd_kafka_t,
        partitions: *const b::rd_kafka_topic_partition_list_t,
    ) -> c_int;
    pub(super) fn rd_kafka_committed(
        rk: *mut b::rd_kafka_t,
        partitions: *mut b::rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> c_int;
    pub(super) fn rd_kafka_metadata(
        rk: *mut b::rd_kafka_t,
        all_topics: c_int,
        only_rkt: *mut b::rd_kafka_topic_t,
        metadatap: *mut *const b::rd_kafka_metadata,
        timeout_ms: c_int,
    ) -> c_int;
    pub(super) fn rd_kafka_message_headers(
        message: *const b::rd_kafka_message_t,
        headers: *mut *mut b::rd_kafka_headers_t,
    ) -> c_int;
    pub(super) fn rd_kafka_header_get_all(
        headers: *const b::rd_kafka_headers_t,
        index: usize,
        name: *mut *const c_char,
        value: *mut *const c_void,
        size: *mut usize,
    ) -> c_int;
    pub(super) fn rd_kafka_header_add(
        headers: *mut b::rd_kafka_headers_t,
        name: *const c_char,
        name_size: isize,
        value: *const c_void,
        value_size: isize,
    ) -> c_int;
    pub(super) fn rd_kafka_flush(rk: *mut b::rd_kafka_t, timeout_ms: c_int) -> c_int;
    pub(super) fn rd_kafka_purge(rk: *mut b::rd_kafka_t, flags: c_int) -> c_int;
    pub(super) fn rd_kafka_event_error(event: *mut b::rd_kafka_event_t) -> c_int;
    pub(super) fn rd_kafka_topic_result_error(result: *const b::rd_kafka_topic_result_t) -> c_int;
    pub(super) fn rd_kafka_ConfigResource_error(resource: *const b::rd_kafka_ConfigResource_t) -> c_int;
    pub(super) fn rd_kafka_NewTopic_set_config(
        topic: *mut b::rd_kafka_NewTopic_t,
        name: *const c_char,
        value: *const c_char,
    ) -> c_int;
    pub(super) fn rd_kafka_AdminOptions_set_request_timeout(
        options: *mut b::rd_kafka_AdminOptions_t,
        timeout_ms: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int;
    pub(super) fn rd_kafka_AdminOptions_set_operation_timeout(
        options: *mut b::rd_kafka_AdminOptions_t,
        timeout_ms: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int;
}
