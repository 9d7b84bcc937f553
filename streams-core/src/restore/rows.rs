//! Which records of a source topic are rows, when it serves as a changelog.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::TaskId;
use crate::error::ProcessResult;
use crate::fetch::FetchedRecord;
use crate::processor::{ErrorHandlers, RowReader, SourceRow};
use crate::runtime::ChangelogRestore;

/// A partition time that a replay does not know: it began behind the start of the topic.
const UNKNOWN: i64 = i64::MIN;

/// Reads a source topic's rows with the source node's own serdes and the application's handlers, so that what processing
/// let pass does not come back as a row (design rule 2.3). For one replay of one partition.
#[derive(Clone)]
pub struct SourceRows {
    task: TaskId,
    reader: Arc<dyn RowReader>,
    handlers: Arc<ErrorHandlers>,
    partition_time_ms: Arc<AtomicI64>,
}

impl SourceRows {
    /// The rows of one replay. `whole`: it begins at the start of the topic, so partition times are known.
    #[must_use]
    pub fn new(task: TaskId, reader: Arc<dyn RowReader>, handlers: Arc<ErrorHandlers>, whole: bool) -> Self {
        SourceRows {
            task,
            reader,
            handlers,
            partition_time_ms: Arc::new(AtomicI64::new(if whole { -1 } else { UNKNOWN })),
        }
    }

    /// The event time of a row; `None` = the record is none.
    pub(super) fn event_time(
        &self,
        changelog: &ChangelogRestore,
        record: &FetchedRecord<'_>,
    ) -> ProcessResult<Option<i64>> {
        let known_ms = self.partition_time_ms.load(Ordering::Relaxed);
        let row = SourceRow {
            task: self.task,
            topic_partition: &changelog.topic_partition,
            record,
            partition_time_ms: (known_ms != UNKNOWN).then_some(known_ms),
        };
        let time = self.reader.event_time(&row, &self.handlers)?;
        if let Some(time_ms) = time.filter(|time_ms| *time_ms >= 0) {
            self.partition_time_ms.fetch_max(time_ms, Ordering::Relaxed);
        }
        Ok(time)
    }
}

impl std::fmt::Debug for SourceRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceRows")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

impl PartialEq for SourceRows {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reader, &other.reader)
    }
}

impl Eq for SourceRows {}
