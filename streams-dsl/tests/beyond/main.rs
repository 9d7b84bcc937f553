//! What Java does not have, on the test driver; each operator with a kill of the process in between.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod as_of;
mod bad_records;
mod calendar;
mod count_windows;
mod drop_duplicates;
mod event_id;
mod late;
mod optional_keys;
mod spread;
mod wall_clock;
