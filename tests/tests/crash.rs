//! Processes that are killed in the middle of their work, on a real broker. One module per subject, in `crash/`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[path = "crash/application.rs"]
mod application;
#[path = "crash/billing.rs"]
mod billing;
#[path = "crash/exact.rs"]
mod exact;
#[path = "crash/guarantees.rs"]
mod guarantees;
#[path = "crash/harness.rs"]
mod harness;
#[cfg(feature = "test-hooks")]
#[path = "crash/hooks.rs"]
mod hooks;
#[path = "crash/kills.rs"]
mod kills;
#[path = "crash/scrape.rs"]
mod scrape;
