//! The runtime of Kafka Streams for Rust: a pure core, and (feature `kafka`) a thin shell over librdkafka.
//!
//! Outside `kafka/` nothing here knows a clock, a socket, a thread, async or librdkafka: the core is told things and
//! answers with outputs and with effects for the shell to carry out.
//!
//! **An application depends on `streams-dsl`**, which gives what it needs of this crate under its own name:
//! `streams_core::serde::Utf8` is `streams_dsl::serdes::Utf8` there. This crate is for who builds on the runtime itself:
//!
//! - what runs: [`topology`] (nodes, plan, names of topics), [`processor`] (processors, contexts, handlers), [`stores`]
//!   (typed stores), [`runtime`] (tasks, epochs, commits, recovery), [`restore`], [`membership`] (streams groups, KIP-1071);
//! - bytes: [`serde`] (what a type is on a topic), [`codec`] (layouts of Kafka Streams), [`murmur2`] (partitions);
//! - around it: [`config`], [`error`], [`metrics`], [`test_driver`], and with the feature `kafka` the module `kafka`.
//!
//! ```
//! use streams_core::config::StreamsConfig;
//! use streams_core::murmur2::partition_for_key;
//! let error = StreamsConfig::new("billing", "localhost").validate().unwrap_err();
//! assert!(error.to_string().contains("`localhost` is not `host:port`"));
//! assert!((0..4).contains(&partition_for_key(b"tenant-1", 4))); // the partition that Java chooses
//! ```

pub mod codec;
pub mod config;
pub mod error;
mod event_id;
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
pub use event_id::{EventId, EventIdText};
pub use headers::{Header, Headers};
pub use record::{Change, Record, TaskId, TopicPartition};
pub use serde::{DefaultSerde, Serde, SerdeError, SharedSerde};
pub use windowed::{Window, Windowed};
