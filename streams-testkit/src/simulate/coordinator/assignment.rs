//! Who gets which task: the target assignment, and the steps of each member towards it.
//!
//! Source: `StickyTaskAssignor`, `CurrentAssignmentBuilder`.

use std::collections::{BTreeMap, BTreeSet};

use streams_core::TaskId;

use super::{Coordinator, State};
use crate::Seeded;

impl Coordinator {
    /// Whether the target is that of the group's epoch.
    pub(super) fn assign_if_due(&mut self, now_ms: i64) -> bool {
        if self.epoch == self.assignment_epoch {
            return true;
        }
        if now_ms - self.assigned_at_ms < self.assignment_interval_ms {
            return false;
        }
        self.target = match self.shuffle.take() {
            Some(seed) => self.random_target(seed),
            None => self.sticky_target(),
        };
        self.assignment_epoch = self.epoch;
        self.assigned_at_ms = now_ms;
        true
    }

    fn random_target(&self, seed: u64) -> BTreeMap<String, BTreeSet<TaskId>> {
        let mut rng = Seeded::new(seed);
        let mut target: BTreeMap<String, BTreeSet<TaskId>> =
            self.members.keys().map(|id| (id.clone(), BTreeSet::new())).collect();
        for task in &self.tasks {
            let chosen = usize::try_from(rng.below(target.len() as u64)).unwrap_or(0);
            if let Some(tasks) = target.values_mut().nth(chosen) {
                tasks.insert(*task);
            }
        }
        target
    }

    /// `StickyTaskAssignor`: who had a task keeps it while under the quota, the rest goes to the least loaded.
    fn sticky_target(&self) -> BTreeMap<String, BTreeSet<TaskId>> {
        let quota = self.tasks.len().div_ceil(self.members.len().max(1));
        let mut left = self.tasks.clone();
        let mut target: BTreeMap<String, BTreeSet<TaskId>> = BTreeMap::new();
        for (id, member) in &self.members {
            let had = member.active.keys().filter(|task| left.contains(task)).take(quota);
            let kept: BTreeSet<TaskId> = had.copied().collect();
            left.retain(|task| !kept.contains(task));
            target.insert(id.clone(), kept);
        }
        for task in left {
            if let Some(tasks) = target.values_mut().min_by_key(|tasks| tasks.len()) {
                tasks.insert(task);
            }
        }
        target
    }

    pub(super) fn reconcile(&mut self, id: &str, owned: Option<&BTreeSet<TaskId>>, now_ms: i64) {
        let target = self.target.get(id).cloned().unwrap_or_default();
        let held_by_others: BTreeSet<TaskId> = self
            .members
            .iter()
            .filter(|(other, _)| *other != id)
            .flat_map(|(_, member)| member.active.keys().chain(member.revoking.keys()))
            .copied()
            .collect();
        let target_epoch = self.assignment_epoch;
        let Some(member) = self.members.get_mut(id) else { return };
        let epoch = match member.state {
            State::Stable if member.epoch == target_epoch => return,
            State::Unrevoked => {
                let released = owned.is_some_and(|owned| !member.revoking.keys().any(|task| owned.contains(task)));
                if !released {
                    return;
                }
                member.epoch + 1
            }
            State::Stable | State::Unreleased => member.epoch,
        };
        let kept: BTreeMap<TaskId, i32> = member
            .active
            .iter()
            .filter(|(task, _)| target.contains(task))
            .map(|(task, since)| (*task, *since))
            .collect();
        let revoking: BTreeMap<TaskId, i32> = member
            .active
            .iter()
            .filter(|(task, _)| !target.contains(task))
            .map(|(task, since)| (*task, *since))
            .collect();
        let owns = |task: &TaskId| owned.is_none_or(|owned| owned.contains(task));
        if revoking.keys().any(owns) {
            member.state = State::Unrevoked;
            member.move_to(epoch);
            member.active = kept;
            member.revoking = revoking;
            member.rebalance_until_ms = Some(now_ms + member.rebalance_timeout_ms);
            return;
        }
        let wanted = target.iter().filter(|task| !kept.contains_key(task));
        let (withheld, given): (Vec<TaskId>, Vec<TaskId>) = wanted.partition(|task| held_by_others.contains(task));
        member.active = kept;
        member.active.extend(given.into_iter().map(|task| (task, target_epoch)));
        member.revoking.clear();
        member.rebalance_until_ms = None;
        member.state = if withheld.is_empty() {
            State::Stable
        } else {
            State::Unreleased
        };
        member.move_to(target_epoch);
    }
}
