//! A librdkafka instance: made from a configuration, destroyed in bounded time.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::error::{NativeError, check, code, text};
use super::list::{PartitionList, c_string};
use super::sys::{self, b};

/// How long dropping a client may take. librdkafka joins its broker threads, and one of them may be inside a
/// connection attempt; after this the rest goes on in the background.
const DESTROY_TIMEOUT_MS: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its consumer queue is polled.
    Consumer,
    /// Its main queue is polled, and has delivery reports as events.
    Producer,
    /// Nobody polls its main queue, so it gets no callbacks that would pile up there.
    Admin,
}

/// What callbacks write to; librdkafka's opaque pointer of the instance points here.
#[derive(Debug, Default)]
struct Shared {
    statistics: Mutex<Option<String>>,
    /// Errors met while a queue was read, for its reader to take; `None` where nobody takes them.
    errors: Option<Mutex<Vec<NativeError>>>,
}

/// How many errors are kept between two takes; more only repeat what these say.
const MAX_ERRORS_KEPT: usize = 64;

/// An owned `rd_kafka_t`. Everything made from it (queues, topics) holds it in an `Arc`, so it is destroyed last and
/// never while a call is under way.
#[derive(Debug)]
pub(crate) struct Client {
    rk: NonNull<b::rd_kafka_t>,
    kind: Kind,
    shared: *mut Shared,
}

// SAFETY: librdkafka documents its handles as completely thread-safe; `shared` is only reached through `&` and has its
// own lock.
unsafe impl Send for Client {}
// SAFETY: see above.
unsafe impl Sync for Client {}

impl Client {
    /// Makes a client. A later value of a property overrides an earlier one.
    pub(crate) fn new(kind: Kind, config: &[(String, String)]) -> Result<Self, NativeError> {
        let conf = Conf::new(config)?;
        let errors = (kind == Kind::Consumer).then(Mutex::default);
        let shared = Box::into_raw(Box::new(Shared {
            errors,
            ..Shared::default()
        }));
        let rk_type = match kind {
            Kind::Consumer => b::rd_kafka_type_t::RD_KAFKA_CONSUMER,
            Kind::Producer | Kind::Admin => b::rd_kafka_type_t::RD_KAFKA_PRODUCER,
        };
        let mut errstr = ErrStr::new();
        // SAFETY: `conf` is alive; callbacks have the signatures librdkafka asks for and only touch `shared`, which
        // is freed after the instance.
        let rk = unsafe {
            b::rd_kafka_conf_set_log_cb(conf.0.as_ptr(), Some(on_log));
            b::rd_kafka_conf_set_opaque(conf.0.as_ptr(), shared.cast());
            if kind != Kind::Admin {
                b::rd_kafka_conf_set_error_cb(conf.0.as_ptr(), Some(on_error));
                b::rd_kafka_conf_set_stats_cb(conf.0.as_ptr(), Some(on_statistics));
            }
            if kind == Kind::Producer {
                b::rd_kafka_conf_set_events(conf.0.as_ptr(), b::RD_KAFKA_EVENT_DR);
            }
            b::rd_kafka_new(rk_type, conf.0.as_ptr(), errstr.as_mut_ptr(), errstr.len())
        };
        let Some(rk) = NonNull::new(rk) else {
            // SAFETY: no instance was made, so nothing else points to it.
            drop(unsafe { Box::from_raw(shared) });
            // SAFETY: reads a thread-local number.
            return Err(NativeError::new(unsafe { sys::rd_kafka_last_error() }, errstr.text()));
        };
        std::mem::forget(conf); // rd_kafka_new took it over
        Ok(Client { rk, kind, shared })
    }

    pub(crate) fn as_ptr(&self) -> *mut b::rd_kafka_t {
        self.rk.as_ptr()
    }

    /// The latest statistics as JSON, if `statistics.interval.ms` is set; each is handed out once.
    pub(crate) fn take_statistics(&self) -> Option<String> {
        // SAFETY: `shared` lives as long as `self`.
        let shared = unsafe { &*self.shared };
        shared.statistics.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The errors that librdkafka reported by callback since the last call. Callbacks run inside the reading of a queue,
    /// so what comes up while a partition's queue is read concerns that partition (an unknown topic comes like this).
    pub(crate) fn take_errors(&self) -> Vec<NativeError> {
        // SAFETY: `shared` lives as long as `self`.
        let shared = unsafe { &*self.shared };
        let errors = shared
            .errors
            .as_ref()
            .map(|errors| errors.lock().unwrap_or_else(PoisonError::into_inner));
        errors
            .map(|mut errors| std::mem::take(&mut *errors))
            .unwrap_or_default()
    }

    /// The error that made this client unusable, if there is one: code and text.
    pub(crate) fn fatal_error(&self) -> Option<(i32, String)> {
        let mut errstr = ErrStr::new();
        // SAFETY: the handle is alive and the buffer has the length given.
        let code = unsafe { sys::rd_kafka_fatal_error(self.as_ptr(), errstr.as_mut_ptr(), errstr.len()) };
        (code != code::NO_ERROR).then(|| (code, errstr.text()))
    }

    /// Sends this client's errors and statistics through the consumer queue, which the consumer polls anyway.
    pub(crate) fn poll_set_consumer(&self) -> Result<(), NativeError> {
        // SAFETY: the handle is alive.
        check(unsafe { sys::rd_kafka_poll_set_consumer(self.as_ptr()) })
    }

    /// Replaces the whole assignment; `None` empties it. When this returns, what was fetched for the assignment before
    /// is outdated: librdkafka raised the version of those partitions and drops their queued records.
    pub(crate) fn assign(&self, partitions: Option<&PartitionList>) -> Result<(), NativeError> {
        let list = partitions.map_or(ptr::null_mut(), PartitionList::as_ptr);
        // SAFETY: handle and list are alive; the list is copied.
        check(unsafe { sys::rd_kafka_assign(self.as_ptr(), list) })
    }

    pub(crate) fn incremental_assign(&self, partitions: &PartitionList) -> Result<(), NativeError> {
        // SAFETY: handle and list are alive; the list is copied; the error is ours.
        unsafe { super::error::take(b::rd_kafka_incremental_assign(self.as_ptr(), partitions.as_ptr())) }
    }

    pub(crate) fn incremental_unassign(&self, partitions: &PartitionList) -> Result<(), NativeError> {
        // SAFETY: as above.
        unsafe { super::error::take(b::rd_kafka_incremental_unassign(self.as_ptr(), partitions.as_ptr())) }
    }

    /// Fills in the committed offsets of the client's group; stable ones if its isolation level is read-committed.
    pub(crate) fn committed(&self, partitions: &mut PartitionList, timeout_ms: i32) -> Result<(), NativeError> {
        // SAFETY: handle and list are alive, and the list is ours alone during the call.
        check(unsafe { sys::rd_kafka_committed(self.as_ptr(), partitions.as_ptr(), timeout_ms) })
    }

    /// Names and partition counts of all topics this client may see.
    pub(crate) fn list_topics(&self, timeout_ms: i32) -> Result<Vec<(String, i32)>, NativeError> {
        let mut metadata = ptr::null();
        // SAFETY: the handle is alive; on success `metadata` is ours to read and to free.
        unsafe {
            check(sys::rd_kafka_metadata(
                self.as_ptr(),
                1,
                ptr::null_mut(),
                &raw mut metadata,
                timeout_ms,
            ))?;
            let count = usize::try_from((*metadata).topic_cnt).unwrap_or(0);
            let topics = (*metadata).topics.cast::<sys::MetadataTopic>();
            let names = (0..count)
                .map(|index| &*topics.add(index))
                .filter(|topic| topic.err == code::NO_ERROR)
                .map(|topic| (text(topic.topic), topic.partition_cnt))
                .collect();
            b::rd_kafka_metadata_destroy(metadata);
            Ok(names)
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let handles = Handles {
            rk: self.rk,
            shared: self.shared,
            kind: self.kind,
        };
        let (done, finished) = mpsc::sync_channel::<()>(1);
        let started = thread::Builder::new().name("kafka-destroy".to_owned()).spawn(move || {
            handles.destroy();
            drop(done);
        });
        match started {
            Ok(_) => {
                let wait = finished.recv_timeout(Duration::from_millis(DESTROY_TIMEOUT_MS));
                if wait == Err(mpsc::RecvTimeoutError::Timeout) {
                    tracing::warn!(
                        waited_ms = DESTROY_TIMEOUT_MS,
                        "a Kafka client is still closing in the background"
                    );
                }
            }
            // The closure, and with it the handles, is dropped without being run: leaked rather than waited for.
            Err(error) => {
                tracing::error!(%error, "no thread could be started to close a Kafka client; it is left open")
            }
        }
    }
}

struct Handles {
    rk: NonNull<b::rd_kafka_t>,
    shared: *mut Shared,
    kind: Kind,
}

// SAFETY: whoever holds `Handles` is the only one with access to the instance.
unsafe impl Send for Handles {}

impl Handles {
    fn destroy(self) {
        // A consumer that only assigns has no group to leave, so closing it would wait for nothing.
        let flags = match self.kind {
            Kind::Consumer => b::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE,
            Kind::Producer | Kind::Admin => 0,
        };
        // SAFETY: `Client` is dropped, so no call is under way and no queue or topic is left; callbacks end with the
        // instance, and only then what they point to is freed.
        unsafe {
            b::rd_kafka_destroy_flags(self.rk.as_ptr(), flags);
            drop(Box::from_raw(self.shared));
        }
    }
}

struct Conf(NonNull<b::rd_kafka_conf_t>);

impl Conf {
    fn new(config: &[(String, String)]) -> Result<Self, NativeError> {
        // SAFETY: a plain allocation; null is checked.
        let conf = unsafe { b::rd_kafka_conf_new() };
        let conf = NonNull::new(conf)
            .map(Conf)
            .ok_or_else(|| NativeError::from_code(code::FAIL))?;
        for (name, value) in config {
            conf.set(name, value)?;
        }
        Ok(conf)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), NativeError> {
        let (c_name, c_value) = (c_string(name)?, c_string(value)?);
        let mut errstr = ErrStr::new();
        // SAFETY: all pointers are alive during the call, which copies what it keeps.
        let result = unsafe {
            sys::rd_kafka_conf_set(
                self.0.as_ptr(),
                c_name.as_ptr(),
                c_value.as_ptr(),
                errstr.as_mut_ptr(),
                errstr.len(),
            )
        };
        if result == b::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK as c_int {
            return Ok(());
        }
        // The value is left out of our own words: it may be a password.
        Err(NativeError::new(
            code::INVALID_ARG,
            format!("property {name}: {}", errstr.text()),
        ))
    }
}

impl Drop for Conf {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; a configuration handed to `rd_kafka_new` was forgotten.
        unsafe { b::rd_kafka_conf_destroy(self.0.as_ptr()) }
    }
}

/// A buffer for librdkafka's error texts.
pub(super) struct ErrStr([c_char; 512]);

impl ErrStr {
    pub(super) fn new() -> Self {
        ErrStr([0; 512])
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn text(&self) -> String {
        // SAFETY: the buffer was zeroed and librdkafka terminates what it writes.
        unsafe { text(self.0.as_ptr()) }
    }
}

/// librdkafka's log lines, on whichever of its threads they arise.
unsafe extern "C" fn on_log(rk: *const b::rd_kafka_t, level: c_int, facility: *const c_char, line: *const c_char) {
    // SAFETY: librdkafka passes valid strings; `rk` is null for lines from before the instance exists.
    let (client, facility, line) = unsafe {
        let client = if rk.is_null() {
            String::new()
        } else {
            text(b::rd_kafka_name(rk))
        };
        (client, text(facility), text(line))
    };
    // Syslog levels. Connection failures come as 3 although librdkafka repairs them itself, so 3 is a warning here.
    match level {
        0..=2 => tracing::error!(target: "librdkafka", client, facility, "{line}"),
        3..=4 => tracing::warn!(target: "librdkafka", client, facility, "{line}"),
        5..=6 => tracing::info!(target: "librdkafka", client, facility, "{line}"),
        _ => tracing::debug!(target: "librdkafka", client, facility, "{line}"),
    }
}

/// Errors that are not elements of a queue; all but fatal ones are information.
unsafe extern "C" fn on_error(rk: *mut b::rd_kafka_t, err: c_int, reason: *const c_char, opaque: *mut c_void) {
    // SAFETY: librdkafka passes its own handle, a valid string, and as opaque the `Shared` of this client, which is
    // freed only after the instance.
    let (client, reason, shared) = unsafe { (text(b::rd_kafka_name(rk)), text(reason), &*opaque.cast::<Shared>()) };
    let error = super::error::name(err);
    match &shared.errors {
        Some(errors) => {
            let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
            if errors.len() < MAX_ERRORS_KEPT {
                errors.push(NativeError::new(err, reason));
            }
        }
        None if err == code::FATAL => tracing::error!(target: "librdkafka", client, error, "{reason}"),
        None => tracing::warn!(target: "librdkafka", client, error, "{reason}"),
    }
}

unsafe extern "C" fn on_statistics(
    _rk: *mut b::rd_kafka_t,
    json: *mut c_char,
    json_len: usize,
    opaque: *mut c_void,
) -> c_int {
    // SAFETY: `json` has `json_len` bytes during the call; the opaque is the `Shared` of this client, which is freed
    // only after the instance.
    let (bytes, shared) = unsafe {
        (
            std::slice::from_raw_parts(json.cast::<u8>(), json_len),
            &*opaque.cast::<Shared>(),
        )
    };
    let statistics = String::from_utf8_lossy(bytes).into_owned();
    *shared.statistics.lock().unwrap_or_else(PoisonError::into_inner) = Some(statistics);
    0 // librdkafka frees the text
}
