//! A task's state compared with its inputs and its changelogs: current, to be replayed, or not to be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use streams_state::{
    ChangelogFacts, StateError, StoreId, StoreMetadata, TaskState, Verdict, assess, disagreeing_inputs,
};

use super::RETRY_MS;
use crate::error::{Error, ProcessResult};
use crate::processor::Schedules;
use crate::restore::{BufferedRows, SourceRows};
use crate::runtime::core::StreamThreadCore;
use crate::runtime::effect::{ChangelogRestore, RestoreJob};
use crate::runtime::slot::Slot;
use crate::task::TaskInput;
use crate::topology::NodeKind;
use crate::{TaskId, TopicPartition};

impl StreamThreadCore {
    pub(super) fn changelogs_of_starting(&self) -> ProcessResult<Vec<TopicPartition>> {
        let mut partitions = Vec::new();
        for (id, slot) in &self.tasks {
            if matches!(slot, Slot::Starting { .. }) {
                for changelog in &self.subtopology(*id)?.changelogs {
                    partitions.push(TopicPartition::new(&*changelog.topic.name, id.partition));
                }
            }
        }
        Ok(partitions)
    }

    pub(super) fn changelogs_known(
        &mut self,
        facts: &BTreeMap<TopicPartition, ChangelogFacts>,
        now_ms: i64,
    ) -> ProcessResult {
        let starting: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Starting { .. }))
            .map(|(id, _)| *id)
            .collect();
        for id in starting {
            let Some(Slot::Starting {
                state,
                schedules,
                inputs,
            }) = self.tasks.get_mut(&id)
            else {
                continue;
            };
            let (state, schedules, inputs) = (state.take(), std::mem::take(schedules), std::mem::take(inputs));
            let slot = self.prepare(id, state, schedules, inputs, facts, now_ms)?;
            self.tasks.insert(id, slot);
        }
        Ok(())
    }

    /// Opens a task's state and compares it with the inputs and the changelogs.
    fn prepare(
        &mut self,
        id: TaskId,
        state: Option<TaskState>,
        schedules: Schedules,
        inputs: Vec<TaskInput>,
        facts: &BTreeMap<TopicPartition, ChangelogFacts>,
        now_ms: i64,
    ) -> ProcessResult<Slot> {
        let in_hand = state.is_some();
        let mut state = match state {
            Some(state) => state,
            None => match self.open_state(id)? {
                Some(state) => state,
                None => {
                    self.start_up_after_ms = now_ms + RETRY_MS;
                    return Ok(Slot::Waiting { state: None, schedules });
                }
            },
        };
        let compared = check_inputs(id, &state, &inputs)
            .and_then(|()| self.compare_changelogs(id, &mut state, &inputs, facts, now_ms));
        let changelogs = match compared {
            Ok(changelogs) => changelogs,
            // Another thread of this process had the state until now and may have gone on after the offsets and ends were
            // listed: they are asked for again with the state in hand, and only then believed.
            Err(error) if !in_hand && matches!(*error, Error::TaskCorrupted { .. }) => {
                tracing::info!(task_id = %id, %error, "state and log disagree; the log is looked at again");
                self.start_up_after_ms = now_ms + RETRY_MS;
                return Ok(Slot::Waiting {
                    state: Some(state),
                    schedules,
                });
            }
            Err(error) => return Err(error),
        };
        if changelogs.is_empty() {
            return Ok(Slot::Restored {
                state: Some(state),
                schedules,
                inputs,
            });
        }
        self.incarnation += 1;
        let job = RestoreJob {
            task: id,
            incarnation: self.incarnation,
            state,
            changelogs,
        };
        Ok(Slot::Restorable {
            job: Some(job),
            schedules,
            inputs,
        })
    }

    /// What has to be replayed of each changelog.
    fn compare_changelogs(
        &self,
        id: TaskId,
        state: &mut TaskState,
        inputs: &[TaskInput],
        facts: &BTreeMap<TopicPartition, ChangelogFacts>,
        now_ms: i64,
    ) -> ProcessResult<Vec<ChangelogRestore>> {
        let mut changelogs = Vec::new();
        for changelog in &self.subtopology(id)?.changelogs {
            let store = &changelog.store;
            let topic_partition = TopicPartition::new(&*changelog.topic.name, id.partition);
            let mut facts = *facts
                .get(&topic_partition)
                .ok_or_else(|| Error::bug(format!("no answer for {topic_partition}")))?;
            let source = inputs.iter().find(|input| input.topic_partition == topic_partition);
            facts.source_topic_committed =
                source.map(|input| input.committed.as_ref().map_or(facts.log_start, |(offset, _)| *offset));
            let store_id = state
                .store_id(store)
                .ok_or_else(|| Error::bug(format!("store {store} is not in the state of task {id}")))?;
            let factory = self.topology.store(store).map(|store| &store.factory);
            let timestamped = factory.is_none_or(|factory| factory.is_timestamped());
            let buffers = factory.is_some_and(|factory| factory.is_suppress_buffer());
            if let Some(restore) = judge(id, state, store_id, store, topic_partition, &facts, now_ms)? {
                let whole = (restore.from_zero && !restore.resumed) || restore.from <= facts.log_start;
                let rows = source.and_then(|input| self.source_rows(id, &input.topic_partition.topic, whole));
                changelogs.push(ChangelogRestore {
                    timestamped,
                    rows,
                    buffered: buffers.then(|| BufferedRows::new(id)),
                    ..restore
                });
            }
        }
        Ok(changelogs)
    }

    /// How the source node of a topic reads its records.
    fn source_rows(&self, id: TaskId, topic: &str, whole: bool) -> Option<SourceRows> {
        let node = self.plan.subtopology(id.subtopology)?.source_topics.get(topic)?;
        let node = self.topology.nodes().get(*node)?;
        let NodeKind::Source { factory, .. } = &node.kind else {
            return None;
        };
        let reader = factory.rows(&node.name)?;
        Some(SourceRows::new(id, reader, Arc::clone(&self.handlers), whole))
    }

    /// `None`: another thread of this process has not let go of it yet; try again.
    fn open_state(&self, id: TaskId) -> ProcessResult<Option<TaskState>> {
        let stores = &self.subtopology(id)?.stores;
        let specs = stores
            .iter()
            .filter_map(|name| self.topology.store(name))
            .map(|store| store.spec.clone())
            .collect();
        match self.opener.open(id, specs) {
            Ok(state) => {
                if let Some(path) = state.was_set_aside() {
                    tracing::warn!(task_id = %id, path = %path.display(), "state that could not be opened was set aside; the task is restored from its changelogs");
                }
                Ok(Some(state))
            }
            Err(StateError::TaskBusy { .. }) => Ok(None),
            Err(error) => Err(Error::state(id, error)),
        }
    }
}

/// Inputs that would be read again over state which contains them already (design rule 2.5).
fn check_inputs(id: TaskId, state: &TaskState, inputs: &[TaskInput]) -> ProcessResult {
    let committed = inputs.iter().map(|input| {
        let key = (input.topic_partition.topic.to_string(), input.topic_partition.partition);
        (key, input.committed.as_ref().map(|(offset, _)| *offset))
    });
    let found = disagreeing_inputs(state.input_offsets(), &committed.collect());
    if found.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = found.iter().map(ToString::to_string).collect();
    let reason = format!(
        "the group's offsets expired or were reset, so input would be counted twice ({}): set the group's offsets back, or delete the task's state and changelogs to start over",
        list.join("; ")
    );
    Err(Box::new(Error::TaskCorrupted {
        task: id,
        store: "(inputs)".to_owned(),
        reason,
    }))
}

/// Compares one store with its changelog; `None` = it is current.
fn judge(
    id: TaskId,
    state: &mut TaskState,
    store: StoreId,
    name: &str,
    topic_partition: TopicPartition,
    facts: &ChangelogFacts,
    now_ms: i64,
) -> ProcessResult<Option<ChangelogRestore>> {
    let in_the_middle = state
        .is_restoring_from_zero(store)
        .map_err(|source| Error::state(id, source))?;
    let known = state.store_metadata(store).copied();
    let verdict = match assess(known.as_ref(), facts, now_ms) {
        // An unfinished restore holds nothing that the changelog does not have: it begins again.
        Verdict::Stop { .. } if in_the_middle => assess(None, facts, now_ms),
        verdict => verdict,
    };
    let (mut from_zero, mut resumed) = (in_the_middle, in_the_middle);
    let (from, to) = match verdict {
        Verdict::Current => match known.filter(|_| in_the_middle) {
            Some(known) => (known.position, known.position),
            None => return Ok(None),
        },
        Verdict::Tail { from, to } | Verdict::KeepRowsFrom { from, to } => (from, to),
        Verdict::FullRestore { reason, from, to } => {
            if from < to {
                tracing::info!(task_id = %id, store = name, from, to, %reason, "the store is restored from zero");
            }
            (from_zero, resumed) = (true, false);
            (from, to)
        }
        Verdict::Stop { reason } => {
            let reason = format!(
                "{reason} ({topic_partition}); if the changelog is right, delete the local state of task {id} to rebuild it"
            );
            return Err(Box::new(Error::TaskCorrupted {
                task: id,
                store: name.to_owned(),
                reason,
            }));
        }
    };
    // A restore that goes on is as old as its first record: deletions that came since may be gone from the log some day.
    let begun_ms = known.filter(|_| resumed).map_or(now_ms, |known| known.applied_at_ms);
    let metadata = |position| StoreMetadata {
        changelog_topic_id: facts.topic_id,
        position,
        own_commit: false,
        applied_at_ms: begun_ms,
    };
    if from >= to {
        // Nothing to replay; only the position has to be known from now on.
        let failed = |source| Error::state(id, source);
        if from_zero {
            if !resumed {
                state.begin_full_restore(store).map_err(failed)?;
            }
            state.finish_full_restore(store, metadata(to)).map_err(failed)?;
        } else {
            state.restore(store, [], metadata(to)).map_err(failed)?;
        }
        return Ok(None);
    }
    Ok(Some(ChangelogRestore {
        exact_end: facts.source_topic_committed.is_some(),
        store,
        name: name.to_owned(),
        topic_partition,
        from,
        to,
        from_zero,
        resumed,
        timestamped: true,
        rows: None,
        buffered: None,
        metadata: metadata(to),
        meanwhile_ms: known
            .filter(|_| !from_zero)
            .map_or(begun_ms, |known| known.applied_at_ms),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use streams_state::{Cleanup, StoreSpec};

    use super::*;

    const BEGUN_MS: i64 = 1_000_000;

    fn facts(topic_id: u8) -> ChangelogFacts {
        ChangelogFacts {
            topic_id: Some([topic_id; 16]),
            log_start: 0,
            high_watermark: 100,
            cleanup: Cleanup::Compact,
            delete_retention_ms: 10_000,
            source_topic_committed: None,
        }
    }

    /// A store whose restore from zero stopped at 40.
    fn interrupted() -> (TaskState, StoreId) {
        let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("counts")]).unwrap();
        let id = state.store_id("counts").unwrap();
        state.begin_full_restore(id).unwrap();
        let metadata = StoreMetadata {
            changelog_topic_id: Some([1; 16]),
            position: 40,
            own_commit: false,
            applied_at_ms: BEGUN_MS,
        };
        state.restore(id, [(&b"k"[..], Some(&b"v"[..]))], metadata).unwrap();
        (state, id)
    }

    fn judged(state: &mut TaskState, id: StoreId, facts: &ChangelogFacts, now_ms: i64) -> Option<ChangelogRestore> {
        let at = TopicPartition::new("app-counts-changelog", 0);
        judge(TaskId::new(0, 0), state, id, "counts", at, facts, now_ms).unwrap()
    }

    #[test]
    fn rule_2_9_an_interrupted_restore_goes_on_where_it_was_and_keeps_its_age() {
        let (mut state, id) = interrupted();
        let restore = judged(&mut state, id, &facts(1), BEGUN_MS + 4_000).unwrap();
        assert_eq!((restore.from, restore.to), (40, 100));
        assert!(restore.from_zero && restore.resumed);
        assert_eq!(restore.metadata.applied_at_ms, BEGUN_MS);
        crate::restore::begin(&mut state, &restore).unwrap();
        assert_eq!(state.get_vec(id, b"k").unwrap(), Some(b"v".to_vec()));
    }

    #[test]
    fn rule_2_9_an_interrupted_restore_that_began_too_long_ago_begins_again() {
        // Deletions of what it has read may be gone from the log.
        let (mut state, id) = interrupted();
        let restore = judged(&mut state, id, &facts(1), BEGUN_MS + 5_001).unwrap();
        assert!(restore.from_zero && !restore.resumed);
        assert_eq!(restore.from, 0);
        crate::restore::begin(&mut state, &restore).unwrap();
        assert_eq!(state.get_vec(id, b"k").unwrap(), None);
    }

    #[test]
    fn rule_2_9_an_interrupted_restore_of_another_topic_begins_again_and_stops_nothing() {
        let (mut state, id) = interrupted();
        let restore = judged(&mut state, id, &facts(2), BEGUN_MS).unwrap();
        assert!(restore.from_zero && !restore.resumed);
    }

    #[test]
    fn rule_2_9_a_restore_interrupted_behind_its_last_record_is_finished() {
        let (mut state, id) = interrupted();
        let at_its_end = ChangelogFacts {
            high_watermark: 40,
            ..facts(1)
        };
        assert_eq!(judged(&mut state, id, &at_its_end, BEGUN_MS), None);
        assert!(!state.is_restoring_from_zero(id).unwrap());
        assert_eq!(state.store_metadata(id).unwrap().position, 40);
        assert_eq!(state.get_vec(id, b"k").unwrap(), Some(b"v".to_vec()));
    }

    /// A store at 40, last known to be current at `BEGUN_MS`.
    fn behind() -> (TaskState, StoreId) {
        let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("counts")]).unwrap();
        let id = state.store_id("counts").unwrap();
        let metadata = StoreMetadata {
            changelog_topic_id: Some([1; 16]),
            position: 40,
            own_commit: true,
            applied_at_ms: BEGUN_MS,
        };
        state.restore(id, [], metadata).unwrap();
        (state, id)
    }

    #[test]
    fn rule_2_4b_a_replay_that_is_interrupted_again_and_again_does_not_stay_young() {
        // Deletions that it has not reached grow older all the time, and may be gone from the log.
        let (mut state, id) = behind();
        let tail = judged(&mut state, id, &facts(1), BEGUN_MS + 4_000).unwrap();
        assert!(!tail.from_zero);
        crate::restore::begin(&mut state, &tail).unwrap();
        crate::restore::apply(&mut state, &tail, &[], 60).unwrap();
        let next = judged(&mut state, id, &facts(1), BEGUN_MS + 5_001).unwrap();
        assert!(next.from_zero && !next.resumed, "a deletion may be missed");
        assert_eq!(next.from, 0);
    }

    #[test]
    fn rule_2_4b_a_replay_that_has_ended_is_as_young_as_its_beginning() {
        let (mut state, id) = behind();
        let tail = judged(&mut state, id, &facts(1), BEGUN_MS + 4_000).unwrap();
        crate::restore::apply(&mut state, &tail, &[], 100).unwrap();
        crate::restore::finish(&mut state, &tail, 100).unwrap();
        assert_eq!(state.store_metadata(id).unwrap().applied_at_ms, BEGUN_MS + 4_000);
        let longer = ChangelogFacts {
            high_watermark: 120,
            ..facts(1)
        };
        assert!(!judged(&mut state, id, &longer, BEGUN_MS + 8_000).unwrap().from_zero);
    }

    #[test]
    fn rule_2_4c_and_d_a_changelog_that_was_remade_or_truncated_stops_and_names_itself() {
        let truncated = ChangelogFacts {
            high_watermark: 30,
            ..facts(1)
        };
        for facts in [facts(2), truncated] {
            let (mut state, id) = behind();
            let at = TopicPartition::new("app-counts-changelog", 0);
            let judged = judge(TaskId::new(0, 0), &mut state, id, "counts", at, &facts, BEGUN_MS);
            let text = judged.unwrap_err().to_string();
            assert!(
                text.contains("app-counts-changelog-0") && text.contains("counts"),
                "{text}"
            );
            assert!(text.contains("delete the local state of task 0_0"), "{text}");
            // Nothing was deleted without being asked.
            assert_eq!(state.store_metadata(id).unwrap().position, 40);
        }
    }
}
