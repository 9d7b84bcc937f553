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
#[path = "crash/billing_instances.rs"]
mod billing_instances;
#[path = "crash/cases.rs"]
mod cases;
#[path = "crash/eos.rs"]
mod eos;
#[path = "crash/exact.rs"]
mod exact;
#[path = "crash/guarantees.rs"]
mod guarantees;
#[path = "crash/harness.rs"]
mod harness;
#[cfg(feature = "test-hooks")]
#[path = "crash/hooks.rs"]
mod hooks;
#[path = "crash/instances.rs"]
mod instances;
#[path = "crash/kills.rs"]
mod kills;
#[path = "crash/rebalance.rs"]
mod rebalance;
#[path = "crash/relational.rs"]
mod relational;
#[path = "crash/restores.rs"]
mod restores;
#[path = "crash/scrape.rs"]
mod scrape;
#[path = "crash/smoke.rs"]
mod smoke;
#[path = "crash/system.rs"]
mod system;
