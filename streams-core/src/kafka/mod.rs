//! The shell over librdkafka: the only part that knows sockets, threads and a clock.
//!
//! [`consumer`], [`producer`] and [`admin`] are thin and safe; `ffi` below them is the only place with `unsafe`.
//! What should happen when something goes wrong is a table in [`errors`], not an `if` here.

pub mod admin;
pub mod consumer;
mod deadline;
pub mod defaults;
pub mod errors;
mod ffi;
pub mod producer;
mod tally;
