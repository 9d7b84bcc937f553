//! Reading queues in batches.
//!
//! Each assigned partition keeps its own librdkafka queue, not forwarded to a common one. So a partition whose tasks
//! are full is simply not read: pausing it in librdkafka would throw away what was fetched and fetch it again.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::client::Client;
use super::error::{self, NativeError, code};
use super::list::c_string;
use super::signal::Signal;
use super::sys::{self, b};

/// A librdkafka queue that raises a [`Signal`] when it becomes non-empty.
pub(crate) struct SignalledQueue {
    queue: NonNull<b::rd_kafka_queue_t>,
    signal: Arc<Signal>,
    _client: Arc<Client>,
}

// SAFETY: queues are thread-safe handles, as clients are.
unsafe impl Send for SignalledQueue {}

impl SignalledQueue {
    /// The queue of one partition, cut off from the common consumer queue. Must be made before the partition is
    /// assigned, or records could still reach the common queue.
    pub(crate) fn of_partition(
        client: &Arc<Client>,
        topic: &str,
        partition: i32,
        signal: Signal,
    ) -> Result<Self, NativeError> {
        let name = c_string(topic)?;
        // SAFETY: the handle is alive and the name is copied; a null queue is refused below.
        let queue = unsafe { b::rd_kafka_queue_get_partition(client.as_ptr(), name.as_ptr(), partition) };
        let queue = Self::new(client, queue, signal)?;
        // SAFETY: the queue is alive; a null destination ends forwarding.
        unsafe { b::rd_kafka_queue_forward(queue.queue.as_ptr(), ptr::null_mut()) };
        Ok(queue)
    }

    /// The common consumer queue: errors that concern no partition, statistics.
    pub(crate) fn of_consumer(client: &Arc<Client>, signal: Signal) -> Result<Self, NativeError> {
        // SAFETY: the handle is alive; a null queue is refused below.
        let queue = unsafe { b::rd_kafka_queue_get_consumer(client.as_ptr()) };
        Self::new(client, queue, signal)
    }

    fn new(client: &Arc<Client>, queue: *mut b::rd_kafka_queue_t, signal: Signal) -> Result<Self, NativeError> {
        let queue = NonNull::new(queue).ok_or_else(|| NativeError::from_code(code::UNKNOWN_PARTITION))?;
        let signal = Arc::new(signal);
        // SAFETY: the signal lives until after the callback was taken back in `drop`.
        unsafe {
            let opaque = Arc::as_ptr(&signal).cast_mut().cast::<c_void>();
            b::rd_kafka_queue_cb_event_enable(queue.as_ptr(), Some(on_queue_event), opaque);
        }
        Ok(SignalledQueue {
            queue,
            signal,
            _client: Arc::clone(client),
        })
    }

    pub(crate) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Takes up to `max` messages without waiting, serving the client's callbacks on the way. librdkafka drops records
    /// of an outdated assignment here.
    pub(crate) fn take<'b>(&self, buffer: &'b mut MessageBuffer, max: usize) -> Messages<'b> {
        let max = max.min(buffer.0.len());
        // SAFETY: the queue is alive and the buffer has room for `max` pointers; messages put there are ours.
        let count =
            unsafe { b::rd_kafka_consume_batch_queue(self.queue.as_ptr(), 0, buffer.0.as_mut_ptr().cast(), max) };
        let count = usize::try_from(count).unwrap_or(0).min(max);
        Messages(buffer.0.get(..count).unwrap_or_default())
    }
}

impl Drop for SignalledQueue {
    fn drop(&mut self) {
        // SAFETY: librdkafka calls back under the queue's lock and takes it to change the callback, so afterwards
        // nobody uses the signal any more. This is the only owner of the handle.
        unsafe {
            b::rd_kafka_queue_cb_event_enable(self.queue.as_ptr(), None, ptr::null_mut());
            b::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
    }
}

unsafe extern "C" fn on_queue_event(_rk: *mut b::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: the opaque is the signal of a living `SignalledQueue`.
    unsafe { (*opaque.cast::<Signal>()).raise() }
}

/// Room for the message pointers of one batch, reused from call to call.
pub(crate) struct MessageBuffer(Vec<*mut sys::Message>);

// SAFETY: between calls the buffer holds no live message, only stale pointers that are never read.
unsafe impl Send for MessageBuffer {}

impl MessageBuffer {
    pub(crate) fn new(capacity: usize) -> Self {
        MessageBuffer(vec![ptr::null_mut(); capacity])
    }
}

/// Messages taken from a queue; given back to librdkafka when dropped.
pub(crate) struct Messages<'b>(&'b [*mut sys::Message]);

impl Messages<'_> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = MessageRef<'_>> {
        // SAFETY: librdkafka filled in valid messages, alive until `drop`.
        self.0.iter().map(|message| MessageRef(unsafe { &**message }))
    }
}

impl Drop for Messages<'_> {
    fn drop(&mut self) {
        for message in self.0 {
            // SAFETY: each message is ours and freed once.
            unsafe { b::rd_kafka_message_destroy(message.cast()) }
        }
    }
}

/// One message of a batch: a record, an end-of-partition mark or an error.
pub(crate) struct MessageRef<'m>(&'m sys::Message);

impl<'m> MessageRef<'m> {
    pub(crate) fn code(&self) -> i32 {
        self.0.err
    }

    pub(crate) fn offset(&self) -> i64 {
        self.0.offset
    }

    /// librdkafka's text of an error message.
    pub(crate) fn error_text(&self) -> String {
        // SAFETY: the message is alive; the text belongs to it and is copied.
        let described = unsafe { error::text(b::rd_kafka_message_errstr(self.as_ptr())) };
        if described.is_empty() {
            error::describe(self.0.err)
        } else {
            described
        }
    }

    pub(crate) fn key(&self) -> Option<&'m [u8]> {
        // SAFETY: see `bytes`.
        unsafe { bytes(self.0.key, self.0.key_len) }
    }

    pub(crate) fn value(&self) -> Option<&'m [u8]> {
        // SAFETY: see `bytes`.
        unsafe { bytes(self.0.payload, self.0.len) }
    }

    /// Milliseconds since the Unix epoch; -1 when the broker sent none.
    pub(crate) fn timestamp_ms(&self) -> i64 {
        // SAFETY: the message is alive; the type of timestamp is not asked for.
        unsafe { b::rd_kafka_message_timestamp(self.as_ptr(), ptr::null_mut()) }
    }

    pub(crate) fn leader_epoch(&self) -> i32 {
        // SAFETY: the message is alive.
        unsafe { b::rd_kafka_message_leader_epoch(self.as_ptr()) }
    }

    /// The headers in order; bytes that are not UTF-8 in a name are replaced, as Java does.
    pub(crate) fn headers(&self) -> Headers<'m> {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is alive; the headers belong to it. Any error means that there are none to read.
        let result = unsafe { sys::rd_kafka_message_headers(self.as_ptr(), &raw mut headers) };
        let headers = if result == code::NO_ERROR {
            headers
        } else {
            ptr::null_mut()
        };
        Headers {
            headers,
            next: 0,
            message: std::marker::PhantomData,
        }
    }

    fn as_ptr(&self) -> *const b::rd_kafka_message_t {
        ptr::from_ref(self.0).cast()
    }
}

/// The bytes of a key or value; a null pointer is Kafka's null.
///
/// # Safety
/// `ptr` must be null or point to `len` bytes that live for `'m`.
unsafe fn bytes<'m>(ptr: *const c_void, len: usize) -> Option<&'m [u8]> {
    // SAFETY: the caller vouches for the range.
    (!ptr.is_null()).then(|| unsafe { std::slice::from_raw_parts(ptr.cast::<u8>(), len) })
}

pub(crate) struct Headers<'m> {
    headers: *mut b::rd_kafka_headers_t,
    next: usize,
    message: std::marker::PhantomData<&'m sys::Message>,
}

impl<'m> Iterator for Headers<'m> {
    type Item = (std::borrow::Cow<'m, str>, Option<&'m [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.headers.is_null() {
            return None;
        }
        let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the headers live as long as their message (`'m`); on success name and value belong to them.
        unsafe {
            let result =
                sys::rd_kafka_header_get_all(self.headers, self.next, &raw mut name, &raw mut value, &raw mut size);
            if result != code::NO_ERROR {
                return None;
            }
            self.next += 1;
            Some((CStr::from_ptr(name).to_string_lossy(), bytes(value, size)))
        }
    }
}
