//! A stream thread without its thread: tasks, start-up, commits and recovery as data. It knows no clock and no client:
//! the shell (or the test driver, or a simulator) tells it what happened and carries out the effects it asks for.

mod accept;
mod commit;
mod core;
mod effect;
mod epoch_size;
mod global;
mod global_age;
mod hanging;
mod membership;
mod meter;
mod pipelining;
mod plain;
mod rebuild;
mod recovery;
mod settings;
mod slot;
mod startup;
mod status;
mod step;
mod uncaught;

#[cfg(test)]
mod tests;

pub use self::core::StreamThreadCore;
pub use crate::task::CommittedOffset;
pub use effect::{
    Assignment, CallFailure, ChangelogRestore, Effect, FailureClass, GroupIdentity, Outcome, Reports, ResetTo,
    RestoreFailure, RestoreJob, Restored, Undelivered,
};
pub use global::{GlobalCore, GlobalState};
pub(crate) use hanging::HANGING_MS;
pub use hanging::HangingTransaction;
pub use meter::{AbortReason, CommitSample, RestoreProgress};
pub use plain::class_of_offset_commit;
pub use settings::{CoreParts, RuntimeSettings, StateOpener};
pub use status::{CoreStatus, CoreTotals, TaskPhase, TaskStatus};
pub use uncaught::{FailureLog, Reaction, StreamThreadExceptionResponse};
