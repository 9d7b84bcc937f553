//! Tests without a broker. One module per subject, in `offline/`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[path = "offline/cases.rs"]
mod cases;
#[path = "offline/files.rs"]
mod files;
