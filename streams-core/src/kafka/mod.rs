//! The shell over librdkafka: the only part that knows sockets, threads and a clock.
//!
//! [`consumer`], [`producer`] and [`admin`] are thin and safe; `ffi` below them is the only place with `unsafe`.
//! What should happen when something goes wrong is a table in [`errors`], not an `if` here. `group` is the membership
//! over a connection of its own, `shell` runs the core on threads.

pub mod admin;
pub mod consumer;
mod deadline;
pub mod defaults;
pub mod errors;
mod ffi;
pub mod group;
pub mod producer;
mod shell;
mod tally;

pub use crate::runtime::StreamThreadExceptionResponse;
pub use shell::{KafkaStreams, State, StateListener, ThreadMetadata, UncaughtExceptionHandler};
