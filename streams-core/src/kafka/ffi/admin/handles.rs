//! Owned handles of admin requests, their arguments and answers.

use std::ptr::NonNull;

use super::{TopicSpec, outcome};
use crate::kafka::ffi::client::{Client, ErrStr};
use crate::kafka::ffi::error::{NativeError, check, code, text};
use crate::kafka::ffi::list::c_string;
use crate::kafka::ffi::sys::{self, b};

/// How much longer than the request itself the answer is awaited: librdkafka reports its own timeout as an event.
const EVENT_MARGIN_MS: i32 = 500;

/// Options and answer queue of one request.
pub(super) struct Request {
    options: NonNull<b::rd_kafka_AdminOptions_t>,
    queue: NonNull<b::rd_kafka_queue_t>,
    timeout_ms: i32,
}

impl Request {
    pub(super) fn new(
        client: &Client,
        operation: b::rd_kafka_admin_op_t,
        timeout_ms: i32,
    ) -> Result<Self, NativeError> {
        // SAFETY: the handle is alive; null is checked; what was made first is freed if the second fails.
        unsafe {
            let options = b::rd_kafka_AdminOptions_new(client.as_ptr(), operation);
            let options = NonNull::new(options).ok_or_else(|| NativeError::from_code(code::FAIL))?;
            let Some(queue) = NonNull::new(b::rd_kafka_queue_new(client.as_ptr())) else {
                b::rd_kafka_AdminOptions_destroy(options.as_ptr());
                return Err(NativeError::from_code(code::FAIL));
            };
            let request = Request {
                options,
                queue,
                timeout_ms,
            };
            let mut errstr = ErrStr::new();
            let (buffer, size) = (errstr.as_mut_ptr(), errstr.len());
            check(sys::rd_kafka_AdminOptions_set_request_timeout(
                request.options(),
                timeout_ms,
                buffer,
                size,
            ))?;
            Ok(request)
        }
    }

    pub(super) fn set_operation_timeout(&self, timeout_ms: i32) -> Result<(), NativeError> {
        let mut errstr = ErrStr::new();
        let (buffer, size) = (errstr.as_mut_ptr(), errstr.len());
        // SAFETY: the options are alive and the buffer has the length given.
        check(unsafe { sys::rd_kafka_AdminOptions_set_operation_timeout(self.options(), timeout_ms, buffer, size) })
    }

    pub(super) fn options(&self) -> *mut b::rd_kafka_AdminOptions_t {
        self.options.as_ptr()
    }

    pub(super) fn queue(&self) -> *mut b::rd_kafka_queue_t {
        self.queue.as_ptr()
    }

    /// The answer, or the error of the request as a whole.
    pub(super) fn wait(&self) -> Result<Event, NativeError> {
        let wait_ms = self.timeout_ms.saturating_add(EVENT_MARGIN_MS);
        // SAFETY: the queue is alive; the event is ours.
        let event = NonNull::new(unsafe { b::rd_kafka_queue_poll(self.queue(), wait_ms) }).map(Event);
        let event = event.ok_or_else(|| NativeError::from_code(code::TIMED_OUT))?;
        // SAFETY: the event is alive; its text is copied.
        let (code, said) = unsafe {
            (
                sys::rd_kafka_event_error(event.0.as_ptr()),
                text(b::rd_kafka_event_error_string(event.0.as_ptr())),
            )
        };
        outcome(code, said).map(|()| event)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; librdkafka keeps the queue while an answer is still on its way.
        unsafe {
            b::rd_kafka_AdminOptions_destroy(self.options());
            b::rd_kafka_queue_destroy(self.queue());
        }
    }
}

pub(super) struct Event(pub(super) NonNull<b::rd_kafka_event_t>);

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { b::rd_kafka_event_destroy(self.0.as_ptr()) }
    }
}

pub(super) struct NewTopic(pub(super) NonNull<b::rd_kafka_NewTopic_t>);

impl NewTopic {
    pub(super) fn new(spec: &TopicSpec<'_>) -> Result<Self, NativeError> {
        let name = c_string(spec.name)?;
        let mut errstr = ErrStr::new();
        let (buffer, size) = (errstr.as_mut_ptr(), errstr.len());
        // SAFETY: the strings are alive during the calls, which copy them.
        unsafe {
            let topic = b::rd_kafka_NewTopic_new(name.as_ptr(), spec.partitions, spec.replication_factor, buffer, size);
            let topic = NonNull::new(topic).map(NewTopic);
            let topic = topic.ok_or_else(|| NativeError::new(code::INVALID_ARG, errstr.text()))?;
            for (name, value) in spec.configs {
                let (name, value) = (c_string(name)?, c_string(value)?);
                check(sys::rd_kafka_NewTopic_set_config(
                    topic.0.as_ptr(),
                    name.as_ptr(),
                    value.as_ptr(),
                ))?;
            }
            Ok(topic)
        }
    }
}

impl Drop for NewTopic {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { b::rd_kafka_NewTopic_destroy(self.0.as_ptr()) }
    }
}

pub(super) struct DeleteTopic(pub(super) NonNull<b::rd_kafka_DeleteTopic_t>);

impl DeleteTopic {
    pub(super) fn new(name: &str) -> Result<Self, NativeError> {
        let name = c_string(name)?;
        // SAFETY: the name is copied; null is checked.
        let topic = unsafe { b::rd_kafka_DeleteTopic_new(name.as_ptr()) };
        NonNull::new(topic)
            .map(DeleteTopic)
            .ok_or_else(|| NativeError::from_code(code::FAIL))
    }
}

impl Drop for DeleteTopic {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { b::rd_kafka_DeleteTopic_destroy(self.0.as_ptr()) }
    }
}

pub(super) struct ConfigResource(pub(super) NonNull<b::rd_kafka_ConfigResource_t>);

impl ConfigResource {
    pub(super) fn of_topic(name: &str) -> Result<Self, NativeError> {
        let name = c_string(name)?;
        // SAFETY: the name is copied; null is checked.
        let resource = unsafe {
            b::rd_kafka_ConfigResource_new(b::rd_kafka_ResourceType_t::RD_KAFKA_RESOURCE_TOPIC, name.as_ptr())
        };
        NonNull::new(resource)
            .map(ConfigResource)
            .ok_or_else(|| NativeError::from_code(code::FAIL))
    }
}

impl Drop for ConfigResource {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { b::rd_kafka_ConfigResource_destroy(self.0.as_ptr()) }
    }
}
