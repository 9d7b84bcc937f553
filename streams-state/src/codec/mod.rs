//! Byte layouts, as pure functions with golden tests.

pub(crate) mod metadata;
pub mod window_key;
