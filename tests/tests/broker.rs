//! Tests that need a real broker. One module per subject, in `broker/`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[path = "broker/cases.rs"]
mod cases;
#[path = "broker/differential.rs"]
mod differential;
#[path = "broker/edge.rs"]
mod edge;
#[path = "broker/global.rs"]
mod global;
#[path = "broker/membership.rs"]
mod membership;
#[path = "broker/outages.rs"]
mod outages;
#[path = "broker/permissions.rs"]
mod permissions;
#[path = "broker/restore.rs"]
mod restore;
#[path = "broker/shared.rs"]
mod shared;
#[path = "broker/sizes.rs"]
mod sizes;
#[path = "broker/threads.rs"]
mod threads;
#[path = "broker/topics.rs"]
mod topics;
#[path = "broker/uncaught.rs"]
mod uncaught;
