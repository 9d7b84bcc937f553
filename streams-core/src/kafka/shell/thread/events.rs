//! What a stream thread and its instance tell each other.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use crate::TaskId;
use crate::error::ProcessResult;
use crate::kafka::shell::state::State;
use crate::runtime::{CoreStatus, Reaction, RestoreProgress};

/// What a stream thread tells the instance.
#[derive(Debug)]
pub(in crate::kafka::shell) enum ThreadEvent {
    /// Its state as seen from outside.
    State { thread: usize, state: State },
    /// It ended, well or with an error about which something has to be done.
    Ended { thread: usize, reaction: Option<Reaction> },
    /// The group wants every instance to stop.
    ShutdownApplication { detail: String },
    /// The application wants one more thread; answered with its name, `None` while the instance does not run.
    Add {
        answer: Sender<ProcessResult<Option<String>>>,
    },
    /// The application wants one thread less. `caller` is the name of the thread that asks.
    Remove {
        caller: Option<String>,
        answer: Sender<Removal>,
    },
    /// The threads were told to stop: look whether all is over.
    Stopping,
}

/// How the removal of a thread goes.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kafka::shell) enum Removal {
    /// There is none to remove.
    NoThread,
    /// This one was told to end.
    Told(String),
    /// It has ended.
    Gone,
}

/// What a thread and the instance share.
#[derive(Default)]
pub(in crate::kafka::shell) struct Shared {
    pub(in crate::kafka::shell) stop: AtomicBool,
    status: Mutex<Option<CoreStatus>>,
    restores: Mutex<BTreeMap<TaskId, RestoreProgress>>,
}

impl Shared {
    pub(in crate::kafka::shell) fn restores(&self) -> BTreeMap<TaskId, RestoreProgress> {
        self.restores.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, status: CoreStatus, restores: BTreeMap<TaskId, RestoreProgress>) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        *self.restores.lock().unwrap_or_else(PoisonError::into_inner) = restores;
    }

    pub(in crate::kafka::shell) fn status(&self) -> Option<CoreStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
