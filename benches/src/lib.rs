//! What the programs of this package share: an application as a process that others start, watch and kill.

mod application;
pub mod eos;
pub mod relational;
pub mod smoke;
mod system;

pub use application::{env, extra_properties, log_to_stderr, run};
