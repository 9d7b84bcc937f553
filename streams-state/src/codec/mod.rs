//! Byte layouts, as pure functions with golden tests.

pub(crate) mod metadata;
pub mod session_key;
pub mod window_key;
