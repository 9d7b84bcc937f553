//! The only place with `unsafe`: owned, typed handles over librdkafka's C functions.
//!
//! Rules kept here, so that everything above is safe code:
//! * every pointer has one owner whose `Drop` frees it, and everything made from a client keeps that client alive;
//! * an error code is an `i32`, never librdkafka's enum: a broker may send a number that the enum does not have, and a
//!   Rust enum with an unknown number is undefined behaviour (see [`sys`]);
//! * callbacks only set flags or log, and never call back into librdkafka;
//! * nothing waits without a bound.
#![allow(unsafe_code)]

pub(crate) mod admin;
pub(crate) mod client;
pub(crate) mod consume;
pub(crate) mod error;
pub(crate) mod list;
pub(crate) mod produce;
pub(crate) mod signal;
mod sys;
