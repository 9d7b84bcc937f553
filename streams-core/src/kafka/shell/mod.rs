//! The shell around the core: one OS thread per stream thread, which turns effects into client calls and results into
//! outcomes. What should happen is decided in the core; an `if` about that does not belong here.

mod cleaner;
mod clock;
mod cluster;
mod committer;
mod effects;
mod global;
mod hooks;
mod instance;
mod launch;
mod offsets;
mod restorer;
mod shares;
mod sizes;
mod state;
mod streams;
mod supervise;
mod surplus;
mod thread;
mod threads;
mod uncaught;

pub use state::State;
pub use streams::{KafkaStreams, StateListener, ThreadMetadata};
pub use uncaught::UncaughtExceptionHandler;
