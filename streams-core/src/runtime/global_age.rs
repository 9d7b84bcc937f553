//! Whether what lies in a global store may be gone on with: not when deletions that it has not seen may be gone from its
//! topic, and not when the topic is another one (design rule 2.4).

use streams_state::{ChangelogFacts, Cleanup, EpochMetadata, StateError, StoreId, StoreMetadata};

use super::global::GlobalState;
use crate::error::{Error, ProcessResult};
use crate::topology::TopologyPlan;
use crate::{TaskId, TopicPartition};

impl GlobalState {
    /// Compares the stores with their topics, of whose partitions `facts` speaks. A store whose topic is compacted, and that
    /// is behind and older than half of `delete.retention.ms`, is emptied and filled anew: rows that were deleted meanwhile
    /// would stay for ever. `now_ms` is the wall clock, milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// A topic was deleted and made again since its store was filled; or the state can't be written.
    pub fn compare(
        &mut self,
        plan: &TopologyPlan,
        facts: &[(TopicPartition, ChangelogFacts)],
        now_ms: i64,
    ) -> ProcessResult {
        for global in &plan.global {
            let of_topic = facts.iter().filter(|(at, _)| at.topic == global.topic);
            let facts: Vec<_> = of_topic.cloned().collect();
            if let Some(id) = self.state.store_id(&global.store) {
                self.compare_store(id, &global.store, &facts, now_ms)?;
            }
        }
        Ok(())
    }

    fn compare_store(
        &mut self,
        id: StoreId,
        name: &str,
        facts: &[(TopicPartition, ChangelogFacts)],
        now_ms: i64,
    ) -> ProcessResult {
        let Some((at, first)) = facts.first() else {
            return Ok(());
        };
        let known = self.state.store_metadata(id).copied();
        if let (Some(known), Some(found)) = (known.and_then(|known| known.changelog_topic_id), first.topic_id)
            && known != found
        {
            return Err(Box::new(Error::TaskCorrupted {
                task: TaskId::GLOBAL,
                store: name.to_owned(),
                reason: format!(
                    "the topic {} was deleted and made again since this state was written; delete the local state of the global stores to fill them anew",
                    at.topic
                ),
            }));
        }
        let position = |at: &TopicPartition| {
            let key = (at.topic.to_string(), at.partition);
            self.state.input_offsets().get(&key).copied()
        };
        let filled = facts.iter().any(|(at, _)| position(at).is_some());
        let behind = facts
            .iter()
            .any(|(at, facts)| position(at).is_some_and(|position| position < facts.high_watermark));
        let compacted_away = facts.iter().any(|(at, facts)| {
            facts.cleanup == Cleanup::Compact && position(at).is_some_and(|position| position < facts.log_start)
        });
        // A topic that is also trimmed has rows that only the store still has.
        let deletions =
            first.cleanup == Cleanup::Compact || (first.cleanup == Cleanup::CompactDelete && first.log_start == 0);
        let age_ms = known.map_or(i64::MAX, |known| now_ms.saturating_sub(known.applied_at_ms));
        let old = deletions && behind && age_ms > first.delete_retention_ms / 2;
        let metadata = |applied_at_ms| StoreMetadata {
            changelog_topic_id: first.topic_id.or(known.and_then(|known| known.changelog_topic_id)),
            position: 0,
            own_commit: false,
            applied_at_ms,
        };
        let failed = |source: StateError| Error::state(TaskId::GLOBAL, source);
        if !(filled && (old || compacted_away)) {
            let since_ms = known.map_or(now_ms, |known| known.applied_at_ms);
            return self.state.restore(id, [], metadata(since_ms)).map_err(failed);
        }
        tracing::warn!(
            store = name,
            topic = &*at.topic,
            "deletions that the global store has not seen may be gone from its topic: it is filled anew"
        );
        // First the positions go back and nothing says that the store is young: a crash from here on fills it anew too.
        let starts = facts
            .iter()
            .map(|(at, facts)| ((at.topic.to_string(), at.partition), facts.log_start));
        let epoch = EpochMetadata {
            input_offsets: starts.collect(),
            now_ms: known.map_or(i64::MIN, |known| known.applied_at_ms),
            ..EpochMetadata::default()
        };
        self.state.freeze().map_err(failed)?;
        self.state.apply(&epoch).map_err(failed)?;
        self.state.begin_full_restore(id).map_err(failed)?;
        self.state.finish_full_restore(id, metadata(now_ms)).map_err(failed)
    }
}
