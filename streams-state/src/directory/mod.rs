//! What a process has on disk.

/// Keeps a task from being opened twice.
#[derive(Debug)]
pub(crate) struct TaskLease {}
