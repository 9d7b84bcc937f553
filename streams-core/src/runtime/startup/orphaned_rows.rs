//! Rows without offsets: the group's offsets are gone, and the inputs would be counted again over what the changelog has
//! brought back (design rule 2.5).

use std::ops::Bound;

use streams_state::{Direction, KeyValueStore, StateError, TaskState};

use crate::TaskId;
use crate::error::{Error, ProcessResult};
use crate::task::TaskInput;
use crate::topology::SubtopologyPlan;

/// Refuses a task whose restored stores have rows although the group has no offset of any of its inputs. Under exactly-once
/// a row of a changelog is committed together with offsets, so these were there once: they expired with the group, or the
/// group was deleted. The state that remembers its inputs itself was compared with them before.
///
/// # Errors
/// So it is; or a store can't be read.
pub(super) fn check_rows(
    id: TaskId,
    plan: &SubtopologyPlan,
    state: &mut TaskState,
    inputs: &[TaskInput],
) -> ProcessResult {
    if inputs.iter().any(|input| input.committed.is_some()) {
        return Ok(());
    }
    for changelog in &plan.changelogs {
        // A source topic has rows of its own, and is restored up to what was committed.
        let is_input = plan.source_topics.contains_key(&changelog.topic.name);
        if !is_input && has_rows(state, &changelog.store).map_err(|source| Error::state(id, source))? {
            let topics: Vec<_> = inputs.iter().map(|input| input.topic_partition.to_string()).collect();
            let reason = format!(
                "its changelog {} has rows, and the group has no committed offset of {}: the group was deleted or its offsets expired, so input would be counted twice; set the group's offsets to where the application was, or to the earliest if it shall count again over these rows, or delete the changelogs to start over",
                changelog.topic.name,
                topics.join(", ")
            );
            return Err(Box::new(Error::TaskCorrupted {
                task: id,
                store: changelog.store.to_string(),
                reason,
            }));
        }
    }
    Ok(())
}

fn has_rows(state: &mut TaskState, store: &str) -> Result<bool, StateError> {
    let Some(id) = state.store_id(store) else {
        return Ok(false);
    };
    let mut rows = state
        .view(id)?
        .range(Bound::Unbounded, Bound::Unbounded, Direction::Forward)?;
    Ok(rows.next_row()?.is_some())
}
