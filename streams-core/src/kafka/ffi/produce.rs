//! Sending records, delivery reports and transactional calls.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::client::Client;
use super::error::{self, NativeError, check, code};
use super::list::{PartitionList, c_string};
use super::sys::{self, b};
use crate::outbox::{HeaderIter, OutRecord};

// The opaque pointer of a record carries 64 bits (epoch and slot) through librdkafka and back in its delivery report.
const _: () = assert!(
    usize::BITS == 64,
    "64-bit pointers are needed: the opaque of a record carries epoch and slot"
);

/// A topic handle for producing, cached because looking a topic up by name costs a lock and a search per record.
#[derive(Debug)]
pub(crate) struct Topic {
    topic: NonNull<b::rd_kafka_topic_t>,
    client: Arc<Client>,
}

// SAFETY: topic handles are thread-safe, as clients are.
unsafe impl Send for Topic {}

impl Topic {
    pub(crate) fn new(client: &Arc<Client>, name: &str) -> Result<Self, NativeError> {
        let name = c_string(name)?;
        // SAFETY: the handle is alive and the name is copied; without a configuration the client's default is used.
        let topic = unsafe { b::rd_kafka_topic_new(client.as_ptr(), name.as_ptr(), ptr::null_mut()) };
        match NonNull::new(topic) {
            Some(topic) => Ok(Topic {
                topic,
                client: Arc::clone(client),
            }),
            // SAFETY: reads a thread-local number.
            None => Err(NativeError::from_code(unsafe { sys::rd_kafka_last_error() })),
        }
    }

    /// Hands one record to librdkafka, which copies it. `opaque` comes back in its delivery report.
    ///
    /// A timestamp of 0 means "now" in librdkafka's interface, so the first millisecond of 1970 is sent as 1.
    pub(crate) fn produce(&self, record: &OutRecord<'_>, opaque: u64) -> Result<(), NativeError> {
        use b::rd_kafka_vtype_t as T;
        let mut values = Values::new();
        values.push(
            T::RD_KAFKA_VTYPE_RKT,
            Union {
                rkt: self.topic.as_ptr(),
            },
        );
        values.push(T::RD_KAFKA_VTYPE_PARTITION, Union { i32_: record.partition });
        values.push(
            T::RD_KAFKA_VTYPE_MSGFLAGS,
            Union {
                i: b::RD_KAFKA_MSG_F_COPY,
            },
        );
        let timestamp_ms = if record.timestamp_ms == 0 {
            1
        } else {
            record.timestamp_ms
        };
        values.push(T::RD_KAFKA_VTYPE_TIMESTAMP, Union { i64_: timestamp_ms });
        values.push(
            T::RD_KAFKA_VTYPE_OPAQUE,
            Union {
                ptr: ptr::without_provenance_mut(opaque as usize),
            },
        );
        if let Some(key) = record.key {
            values.push(T::RD_KAFKA_VTYPE_KEY, Union { mem: memory(key) });
        }
        if let Some(value) = record.value {
            values.push(T::RD_KAFKA_VTYPE_VALUE, Union { mem: memory(value) });
        }
        let headers = NativeHeaders::new(&record.headers)?;
        if let Some(headers) = &headers {
            values.push(
                T::RD_KAFKA_VTYPE_HEADERS,
                Union {
                    headers: headers.0.as_ptr(),
                },
            );
        }
        // SAFETY: client and topic are alive, `values` has `len` initialized elements whose pointers live during the
        // call; F_COPY makes librdkafka copy key and value.
        let sent = unsafe {
            error::take(b::rd_kafka_produceva(
                self.client.as_ptr(),
                values.values.as_ptr().cast(),
                values.len,
            ))
        };
        if sent.is_ok() {
            std::mem::forget(headers); // the record owns them now; after a failure they are still ours
        }
        sent
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        // SAFETY: this is the only owner of the handle, and the client is dropped after it.
        unsafe { b::rd_kafka_topic_destroy(self.topic.as_ptr()) }
    }
}

use b::rd_kafka_vu_s__bindgen_ty_1 as Union;

/// The arguments of one `produceva` call, on the stack and mostly left uninitialized: each is 72 bytes.
struct Values {
    values: [MaybeUninit<b::rd_kafka_vu_t>; 8],
    len: usize,
}

impl Values {
    fn new() -> Self {
        Values {
            values: [const { MaybeUninit::uninit() }; 8],
            len: 0,
        }
    }

    fn push(&mut self, vtype: b::rd_kafka_vtype_t, u: Union) {
        if let Some(value) = self.values.get_mut(self.len) {
            value.write(b::rd_kafka_vu_t { vtype, u });
            self.len += 1;
        }
    }
}

fn memory(bytes: &[u8]) -> b::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
    b::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
        ptr: bytes.as_ptr().cast_mut().cast(),
        size: bytes.len(),
    }
}

struct NativeHeaders(NonNull<b::rd_kafka_headers_t>);

impl NativeHeaders {
    fn new(headers: &HeaderIter<'_>) -> Result<Option<Self>, NativeError> {
        if headers.is_empty() {
            return Ok(None);
        }
        // SAFETY: a plain allocation; null is checked.
        let made = unsafe { b::rd_kafka_headers_new(8) };
        let made = NonNull::new(made)
            .map(NativeHeaders)
            .ok_or_else(|| NativeError::from_code(code::FAIL))?;
        for (name, value) in headers.clone() {
            let value_ptr = value.map_or(ptr::null(), <[u8]>::as_ptr).cast::<c_void>();
            let (name_len, value_len) = (name.len() as isize, value.unwrap_or_default().len() as isize);
            // SAFETY: the headers are alive; name and value are copied with the lengths given, and a null value with
            // length 0 is Kafka's null.
            check(unsafe {
                sys::rd_kafka_header_add(made.0.as_ptr(), name.as_ptr().cast(), name_len, value_ptr, value_len)
            })?;
        }
        Ok(Some(made))
    }
}

impl Drop for NativeHeaders {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; headers handed to a record were forgotten.
        unsafe { b::rd_kafka_headers_destroy(self.0.as_ptr()) }
    }
}

/// One delivery report.
pub(crate) struct Delivery<'e> {
    pub(crate) opaque: u64,
    pub(crate) code: i32,
    pub(crate) offset: i64,
    pub(crate) partition: i32,
    message: &'e sys::Message,
}

impl Delivery<'_> {
    pub(crate) fn topic(&self) -> String {
        // SAFETY: the message belongs to an event that is alive; the name is copied.
        unsafe { error::text(b::rd_kafka_topic_name(self.message.rkt)) }
    }

    /// The broker's own words where it gave some, else the description of the code.
    pub(crate) fn error_text(&self) -> String {
        let message: *const sys::Message = self.message;
        // SAFETY: as above.
        let said = unsafe { error::text(b::rd_kafka_message_produce_errstr(message.cast())) };
        if said.is_empty() {
            error::describe(self.code)
        } else {
            said
        }
    }
}

/// The main queue of a producer: delivery reports as events, callbacks served on the way.
#[derive(Debug)]
pub(crate) struct EventQueue {
    queue: NonNull<b::rd_kafka_queue_t>,
    _client: Arc<Client>,
}

// SAFETY: queues are thread-safe handles.
unsafe impl Send for EventQueue {}
// SAFETY: see above.
unsafe impl Sync for EventQueue {}

impl EventQueue {
    pub(crate) fn of_producer(client: &Arc<Client>) -> Result<Self, NativeError> {
        // SAFETY: the handle is alive; null is checked.
        let queue = unsafe { b::rd_kafka_queue_get_main(client.as_ptr()) };
        let queue = NonNull::new(queue).ok_or_else(|| NativeError::from_code(code::FAIL))?;
        Ok(EventQueue {
            queue,
            _client: Arc::clone(client),
        })
    }

    /// Waits up to `timeout_ms` for an event; `None` when there was none, or only callbacks.
    pub(crate) fn poll(&self, timeout_ms: i32) -> Option<DeliveryEvent> {
        // SAFETY: the queue is alive; the event is ours.
        NonNull::new(unsafe { b::rd_kafka_queue_poll(self.queue.as_ptr(), timeout_ms) }).map(DeliveryEvent)
    }

    /// Ends a `poll` that is waiting in another thread.
    pub(crate) fn interrupt(&self) {
        // SAFETY: the queue is alive.
        unsafe { b::rd_kafka_queue_yield(self.queue.as_ptr()) }
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        // SAFETY: this is the only owner of the handle.
        unsafe { b::rd_kafka_queue_destroy(self.queue.as_ptr()) }
    }
}

/// An event with delivery reports. librdkafka counts its records as outstanding until it is dropped, so what is done
/// with the reports before that has happened when a flush returns.
pub(crate) struct DeliveryEvent(NonNull<b::rd_kafka_event_t>);

impl DeliveryEvent {
    /// Calls `on_delivery` for every report of this event.
    pub(crate) fn for_each(&mut self, mut on_delivery: impl FnMut(&Delivery<'_>)) {
        const CHUNK: usize = 256;
        let mut chunk = [ptr::null::<b::rd_kafka_message_t>(); CHUNK];
        loop {
            // SAFETY: the event is alive and the array has room for `CHUNK` pointers. For an event without messages
            // librdkafka answers 0.
            let count = unsafe { b::rd_kafka_event_message_array(self.0.as_ptr(), chunk.as_mut_ptr(), CHUNK) };
            for message in chunk.iter().take(count) {
                // SAFETY: messages of the event live as long as it does; `_private` is the opaque given to produce.
                let message = unsafe { &*message.cast::<sys::Message>() };
                on_delivery(&Delivery {
                    opaque: message.private.addr() as u64,
                    code: message.err,
                    offset: message.offset,
                    partition: message.partition,
                    message,
                });
            }
            if count == 0 {
                return;
            }
        }
    }
}

impl Drop for DeliveryEvent {
    fn drop(&mut self) {
        // SAFETY: the event is ours and destroyed once.
        unsafe { b::rd_kafka_event_destroy(self.0.as_ptr()) }
    }
}

/// Who commits: the group and its member, as of the membership event applied last.
pub(crate) struct GroupMetadata(NonNull<b::rd_kafka_consumer_group_metadata_t>);

impl GroupMetadata {
    pub(crate) fn new(
        group_id: &str,
        member_epoch: i32,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<Self, NativeError> {
        let (group_id, member_id) = (c_string(group_id)?, c_string(member_id)?);
        let instance_id = instance_id.map(c_string).transpose()?;
        let instance_ptr = instance_id.as_ref().map_or(ptr::null(), |id| id.as_ptr());
        // SAFETY: all strings are alive during the call, which copies them; a null instance id is "none".
        let made = unsafe {
            b::rd_kafka_consumer_group_metadata_new_with_genid(
                group_id.as_ptr(),
                member_epoch,
                member_id.as_ptr(),
                instance_ptr,
            )
        };
        NonNull::new(made)
            .map(GroupMetadata)
            .ok_or_else(|| NativeError::from_code(code::FAIL))
    }
}

impl Drop for GroupMetadata {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { b::rd_kafka_consumer_group_metadata_destroy(self.0.as_ptr()) }
    }
}

// Transactional calls block inside librdkafka and need another thread that serves the event queue. Each is bounded by
// its timeout; -1 ("for ever") is never passed.
impl Client {
    pub(crate) fn init_transactions(&self, timeout_ms: i32) -> Result<(), NativeError> {
        // SAFETY: the handle is alive; the error is ours.
        unsafe { error::take(b::rd_kafka_init_transactions(self.as_ptr(), timeout_ms.max(0))) }
    }

    pub(crate) fn begin_transaction(&self) -> Result<(), NativeError> {
        // SAFETY: as above.
        unsafe { error::take(b::rd_kafka_begin_transaction(self.as_ptr())) }
    }

    pub(crate) fn send_offsets(
        &self,
        offsets: &PartitionList,
        group: &GroupMetadata,
        timeout_ms: i32,
    ) -> Result<(), NativeError> {
        // SAFETY: handle, list and metadata are alive and copied.
        unsafe {
            error::take(b::rd_kafka_send_offsets_to_transaction(
                self.as_ptr(),
                offsets.as_ptr(),
                group.0.as_ptr(),
                timeout_ms.max(0),
            ))
        }
    }

    pub(crate) fn commit_transaction(&self, timeout_ms: i32) -> Result<(), NativeError> {
        // SAFETY: as above.
        unsafe { error::take(b::rd_kafka_commit_transaction(self.as_ptr(), timeout_ms.max(0))) }
    }

    pub(crate) fn abort_transaction(&self, timeout_ms: i32) -> Result<(), NativeError> {
        // SAFETY: as above.
        unsafe { error::take(b::rd_kafka_abort_transaction(self.as_ptr(), timeout_ms.max(0))) }
    }

    /// Waits until every record was delivered or failed and its report was served.
    pub(crate) fn flush(&self, timeout_ms: i32) -> Result<(), NativeError> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::rd_kafka_flush(self.as_ptr(), timeout_ms.max(0)) })
    }

    /// Gives up every record that is queued or in flight, without waiting.
    pub(crate) fn purge(&self) -> Result<(), NativeError> {
        let flags = b::RD_KAFKA_PURGE_F_QUEUE | b::RD_KAFKA_PURGE_F_INFLIGHT | b::RD_KAFKA_PURGE_F_NON_BLOCKING;
        // SAFETY: the handle is alive.
        check(unsafe { sys::rd_kafka_purge(self.as_ptr(), flags) })
    }

    /// How many records and requests are on their way.
    pub(crate) fn outstanding(&self) -> usize {
        // SAFETY: the handle is alive.
        usize::try_from(unsafe { b::rd_kafka_outq_len(self.as_ptr()) }).unwrap_or(0)
    }
}
