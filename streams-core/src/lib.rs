//! The runtime of Kafka Streams for Rust: a pure core, and (feature `kafka`) a thin shell over librdkafka.
//!
//! Outside `kafka/` nothing here knows a clock, a socket, a thread, async or librdkafka: the core is told things and
//! answers with outputs and with effects for the shell to carry out.

pub mod codec;
pub mod config;
pub mod error;
pub mod fetch;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod headers;
pub mod java_hash;
#[cfg(feature = "kafka")]
pub mod kafka;
pub mod membership;
pub mod metrics;
pub mod murmur2;
pub mod murmur3;
pub mod outbox;
mod packed_headers;
pub mod processor;
pub mod record;
pub mod restore;
pub mod runtime;
pub mod serde;
pub mod stores;
mod task;
pub mod test_driver;
pub mod topics;
pub mod topology;
pub mod windowed;

pub use error::{BoxError, Error, FailurePlace, ProcessResult};
pub use headers::{Header, Headers};
pub use record::{Change, Record, TaskId, TopicPartition};
pub use serde::{DefaultSerde, Serde, SerdeError, SharedSerde};
pub use windowed::{Window, Windowed};
