//! The process of a test driver dies and comes again.

use std::sync::Arc;

use streams_state::{StoreSpec, TaskState};

use super::driver::TopologyTestDriver;
use super::shell::MemoryShell;
use crate::TaskId;
use crate::error::ProcessResult;
use crate::processor::ErrorHandlers;
use crate::runtime::{CoreParts, GroupIdentity, RuntimeSettings, StreamThreadCore};
use crate::stores::GlobalStores;
use crate::topics::Topics;
use crate::topology::{Topology, TopologyPlan};

/// What each life of the driver's process is made of.
pub(super) struct ProcessSeed {
    pub(super) application_id: String,
    pub(super) settings: RuntimeSettings,
    pub(super) topology: Arc<Topology>,
    pub(super) plan: Arc<TopologyPlan>,
    pub(super) topics: Arc<Topics>,
    pub(super) handlers: Arc<ErrorHandlers>,
    pub(super) globals: Arc<GlobalStores>,
    pub(super) tasks: Vec<TaskId>,
}

impl ProcessSeed {
    /// The parts of a core whose tasks have no local state.
    pub(super) fn parts(&self) -> CoreParts {
        let opener = |task: TaskId, specs: Vec<StoreSpec>| TaskState::in_memory(&task.to_string(), specs);
        CoreParts {
            settings: self.settings.clone(),
            topology: Arc::clone(&self.topology),
            plan: Arc::clone(&self.plan),
            topics: Arc::clone(&self.topics),
            handlers: Arc::clone(&self.handlers),
            globals: Arc::clone(&self.globals),
            opener: Box::new(opener),
        }
    }

    /// A process with all tasks assigned; its first effects are still to be carried out.
    pub(super) fn start(&self, now_ms: i64) -> (StreamThreadCore, MemoryShell) {
        let mut core = StreamThreadCore::new(self.parts(), now_ms);
        let group = GroupIdentity {
            member_id: "driver".to_owned(),
            member_epoch: 1,
        };
        core.on_assigned(group, self.tasks.iter().copied());
        (core, MemoryShell::new(&format!("{}-driver-1", self.application_id)))
    }
}

impl TopologyTestDriver {
    /// Kills the process that runs the topology and starts it anew, as on another machine: the topics and the committed
    /// offsets are there, local state is not. Stores are restored from their changelogs, times of operators come from the
    /// commits, and what was not committed is processed again. Global stores stay as they are, and so does the wall clock.
    ///
    /// Not in Java, whose driver has one life.
    ///
    /// # Errors
    /// When the topology can't be started again, or fails on what it processes then.
    pub fn restart(&mut self) -> ProcessResult {
        (self.core, self.shell) = self.process.start(self.now_ms);
        self.run_until_idle()
    }
}
