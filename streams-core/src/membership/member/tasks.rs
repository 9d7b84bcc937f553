//! Sets of tasks and their lists on the wire.

use std::collections::BTreeSet;

use crate::membership::codec::structs::{TaskIds, TaskLists};
use crate::record::TaskId;

/// The tasks of a member. Warm-ups run as standbys; they are kept apart only to be told to the coordinator as what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskSet {
    pub(super) active: BTreeSet<TaskId>,
    /// Standby and warm-up tasks.
    pub(super) standby: BTreeSet<TaskId>,
    /// Those of `standby` that were assigned as warm-ups.
    pub(super) warmup: BTreeSet<TaskId>,
}

impl TaskSet {
    /// Reads an assignment; `None` when an id is not a sub-topology number or a partition is negative.
    pub(super) fn from_wire(lists: &TaskLists) -> Option<Self> {
        let warmup = ids(&lists.warmup)?;
        let standby = ids(&lists.standby)?.union(&warmup).copied().collect();
        Some(Self {
            active: ids(&lists.active)?,
            standby,
            warmup,
        })
    }

    /// The lists, sorted.
    pub(super) fn to_wire(&self) -> TaskLists {
        let (warmup, standby) = self.standby.iter().partition(|task| self.warmup.contains(task));
        TaskLists {
            active: grouped(&self.active),
            standby: grouped(&standby),
            warmup: grouped(&warmup),
        }
    }

    /// Adds all tasks of `other`.
    pub(super) fn add(&mut self, other: &Self) {
        self.active.extend(&other.active);
        self.standby.extend(&other.standby);
        self.warmup.extend(&other.warmup);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty()
    }
}

fn ids(lists: &[TaskIds]) -> Option<BTreeSet<TaskId>> {
    let mut tasks = BTreeSet::new();
    for list in lists {
        let subtopology = list.subtopology_id.parse().ok()?;
        for &partition in &list.partitions {
            tasks.insert(TaskId {
                subtopology,
                partition: (partition >= 0).then_some(partition)?,
            });
        }
    }
    Some(tasks)
}

fn grouped(tasks: &BTreeSet<TaskId>) -> Vec<TaskIds> {
    let mut lists: Vec<TaskIds> = Vec::new();
    let mut last = None;
    for task in tasks {
        match lists.last_mut().filter(|_| last == Some(task.subtopology)) {
            Some(list) => list.partitions.push(task.partition),
            None => {
                let subtopology_id = task.subtopology.to_string();
                lists.push(TaskIds {
                    subtopology_id,
                    partitions: vec![task.partition],
                });
            }
        }
        last = Some(task.subtopology);
    }
    lists
}
