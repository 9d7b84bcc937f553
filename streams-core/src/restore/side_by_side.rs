//! The restores of one stream thread, side by side, without the client that fetches: so that one that waits for somebody's
//! transaction does not hold up the others, and so that a simulator runs what production runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tracing::Span;

use super::{Standstill, StandstillNews};
use crate::TaskId;
use crate::error::{Error, grant_text};
use crate::fetch::{FetchError, FetchErrorKind, Fetched, PartitionBatch, PartitionId};
use crate::runtime::{
    Assignment, CallFailure, ChangelogRestore, FailureClass, RestoreFailure, RestoreJob, RestoreProgress, Restored,
};

/// How far one changelog of a job is.
struct Part {
    id: PartitionId,
    position: i64,
    buffered: Vec<PartitionBatch>,
    buffered_to: i64,
    records: u64,
    span: Span,
}

/// A restore that goes on.
struct Running {
    job: RestoreJob,
    span: Span,
    parts: Vec<Part>,
    standstill: Standstill,
    /// What a fetch met; it ends with the next round.
    failure: Option<RestoreFailure>,
}

/// A restore that has ended, well or not.
pub struct EndedRestore {
    /// The result, for [`StreamThreadCore::on_restored`](crate::runtime::StreamThreadCore::on_restored).
    pub restored: Restored,
    /// What was replayed, and the position reached in each.
    pub changelogs: Vec<(ChangelogRestore, i64)>,
    /// What the consumer need not fetch any more.
    pub partitions: Vec<PartitionId>,
    /// The span of the task.
    pub span: Span,
}

/// Restores that go on side by side. It is told what a consumer has fetched, and answers which restores have ended.
///
/// Times are milliseconds of one clock. Java counterpart: `StoreChangelogReader`.
#[derive(Default)]
pub struct SideBySide {
    running: Vec<Running>,
    next_id: u32,
}

impl SideBySide {
    /// Whether none goes on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The numbers of the partitions that are being fetched.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.running
            .iter()
            .flat_map(|running| running.parts.iter().map(|part| part.id))
    }

    /// Begins a restore; what is to be fetched for it is the answer. The span entered now is its task's.
    ///
    /// # Errors
    /// The restore, when a store can't be written: it has ended.
    pub fn start(&mut self, job: RestoreJob, now_ms: i64) -> Result<Vec<Assignment>, Box<EndedRestore>> {
        let parts = job.changelogs.iter().map(|changelog| {
            self.next_id = self.next_id.wrapping_add(1);
            Part {
                id: PartitionId(self.next_id),
                position: changelog.from,
                buffered: Vec::new(),
                buffered_to: changelog.from,
                records: 0,
                span: tracing::info_span!(
                    "restore",
                    store = changelog.name,
                    topic = &*changelog.topic_partition.topic,
                    partition = changelog.topic_partition.partition
                ),
            }
        });
        let mut running = Running {
            parts: parts.collect(),
            job,
            span: Span::current(),
            standstill: Standstill::since(now_ms),
            failure: None,
        };
        match running.begin() {
            Ok(assignments) => {
                self.running.push(running);
                Ok(assignments)
            }
            Err(failure) => Err(Box::new(running.end(Some(failure)))),
        }
    }

    /// Takes what was fetched. It is applied in the next round.
    pub fn take(&mut self, item: Fetched) {
        match item {
            Fetched::Records(batch) => {
                let last = batch.len().checked_sub(1).map(|last| batch.offset(last));
                if let (Some((_, part)), Some(last)) = (self.part(batch.partition), last) {
                    part.buffered_to = last + 1;
                    part.buffered.push(batch);
                }
            }
            Fetched::Eof { partition, offset, .. } => {
                if let Some((_, part)) = self.part(partition) {
                    part.buffered_to = part.buffered_to.max(offset);
                }
            }
            Fetched::Error(error) => self.fetch_failed(&error),
        }
    }

    fn fetch_failed(&mut self, error: &FetchError) {
        let fatal = matches!(
            error.kind,
            FetchErrorKind::TopicAuthorization | FetchErrorKind::Authentication | FetchErrorKind::Fatal
        );
        let topic = error.partition.and_then(|(partition, _)| self.topic_of(partition));
        let failure = || RestoreFailure::from(failure_of(error, fatal, topic.as_deref()));
        match error.partition {
            Some((partition, _)) => {
                if let Some((failed, _)) = self.part(partition) {
                    *failed = Some(failure());
                }
            }
            None if fatal => {
                for running in &mut self.running {
                    running.failure = Some(failure());
                }
            }
            None => tracing::debug!(%error, "the restore consumer met an error; it goes on by itself"),
        }
    }

    fn topic_of(&self, id: PartitionId) -> Option<Arc<str>> {
        self.running.iter().find_map(|running| {
            let mut parts = running.parts.iter().zip(&running.job.changelogs);
            let (_, changelog) = parts.find(|(part, _)| part.id == id)?;
            Some(Arc::clone(&changelog.topic_partition.topic))
        })
    }

    /// Where the failure of a partition's restore is kept, and the part.
    fn part(&mut self, id: PartitionId) -> Option<(&mut Option<RestoreFailure>, &mut Part)> {
        self.running.iter_mut().find_map(|running| {
            let part = running.parts.iter_mut().find(|part| part.id == id)?;
            Some((&mut running.failure, part))
        })
    }

    /// Applies what has come; answers the restores that have ended. A restore whose lease `is_wanted` does not confirm ends
    /// too, so that the next owner of its task finds the directory free. `moved` is called after each write.
    pub fn round(
        &mut self,
        now_ms: i64,
        is_wanted: impl Fn(TaskId, u64) -> bool,
        mut moved: impl FnMut(),
    ) -> Vec<EndedRestore> {
        let mut ended = Vec::new();
        for number in (0..self.running.len()).rev() {
            let Some(running) = self.running.get_mut(number) else {
                continue;
            };
            let failure = match running.failure.take() {
                Some(failure) => Some(failure),
                None if !is_wanted(running.job.task, running.job.incarnation) => Some(not_wanted().into()),
                // A panic must reach the stream thread, or it would wait for ever.
                None => match catch_unwind(AssertUnwindSafe(|| running.apply(now_ms, &mut moved))) {
                    Ok(applied) => applied.err(),
                    Err(panic) => Some(Error::bug(crate::processor::panic_message(&*panic)).into()),
                },
            };
            if failure.is_some() || running.is_done() {
                ended.push(self.running.swap_remove(number).end(failure));
            }
        }
        ended
    }

    /// Ends one restore, as failed: what it would read can't be fetched.
    pub fn fail(&mut self, task: TaskId, incarnation: u64, failure: &CallFailure) -> Option<EndedRestore> {
        let is_it = |running: &Running| (running.job.task, running.job.incarnation) == (task, incarnation);
        let number = self.running.iter().position(is_it)?;
        let running = self.running.swap_remove(number);
        Some(running.end(Some(failure.clone().into())))
    }

    /// Ends all restores, as failed: the consumer is of no use any more, or the thread closes.
    pub fn fail_all(&mut self, failure: &CallFailure) -> Vec<EndedRestore> {
        let running = std::mem::take(&mut self.running).into_iter();
        running
            .map(|running| running.end(Some(failure.clone().into())))
            .collect()
    }

    /// How far each is.
    pub fn progress(&self) -> impl Iterator<Item = (TaskId, RestoreProgress)> {
        self.running
            .iter()
            .map(|running| (running.job.task, running.progress()))
    }
}

impl Running {
    fn begin(&mut self) -> Result<Vec<Assignment>, RestoreFailure> {
        let mut assignments = Vec::new();
        let RestoreJob {
            state,
            changelogs,
            incarnation,
            ..
        } = &mut self.job;
        for (part, changelog) in self.parts.iter().zip(&*changelogs) {
            super::begin(state, changelog)?;
            assignments.push(Assignment {
                topic_partition: changelog.topic_partition.clone(),
                start_offset: changelog.from,
                id: part.id,
                incarnation: *incarnation,
            });
        }
        Ok(assignments)
    }

    /// A restore ends by its positions alone, never by an end-of-partition mark (design rule 5.3).
    fn is_done(&self) -> bool {
        let mut parts = self.parts.iter().zip(&self.job.changelogs);
        parts.all(|(part, changelog)| part.position >= changelog.to)
    }

    /// Applies what has come.
    fn apply(&mut self, now_ms: i64, moved: &mut impl FnMut()) -> Result<(), RestoreFailure> {
        let _task = self.span.clone().entered();
        for (part, changelog) in self.parts.iter_mut().zip(&self.job.changelogs) {
            if part.position >= changelog.to {
                // It is done. A source topic goes on with records that are not the restore's.
                part.buffered.clear();
            } else if part.buffered_to > part.position {
                let _restore = part.span.enter();
                let to = part.buffered_to;
                part.records += super::apply(&mut self.job.state, changelog, &part.buffered, to)?;
                part.buffered.clear();
                part.position = to;
                self.standstill.moved(now_ms);
                moved();
            }
        }
        self.look_at_standstill(now_ms);
        Ok(())
    }

    /// The high watermark is known, the last stable offset stands still: somebody's transaction is open (design rule 5.1),
    /// or hangs (rule 5.2).
    fn look_at_standstill(&mut self, now_ms: i64) {
        let Some(news) = self.standstill.look(now_ms) else {
            return;
        };
        let waited_ms = self.standstill.waited_ms(now_ms);
        for (part, changelog) in self.parts.iter().zip(&self.job.changelogs) {
            if part.position >= changelog.to {
                continue;
            }
            let (task, changelog_name, at) = (self.job.task, &changelog.name, &changelog.topic_partition);
            let (offset, target) = (part.position, changelog.to);
            if news == StandstillNews::Hangs {
                tracing::error!(
                    task_id = %task, store = changelog_name, topic = &*at.topic, partition = at.partition, offset, target, waited_ms,
                    "the restore waits for an open transaction of another producer, and no broker keeps one open for so long: find it with kafka-transactions.sh find-hanging and abort it"
                );
            } else {
                tracing::warn!(
                    task_id = %task, store = changelog_name, topic = &*at.topic, partition = at.partition, offset, target,
                    "the restore waits for an open transaction of another producer; the broker ends it at its transaction timeout"
                );
            }
        }
    }

    fn progress(&self) -> RestoreProgress {
        let parts = self.parts.iter().zip(&self.job.changelogs);
        let remaining = parts.map(|(part, changelog)| changelog.to.saturating_sub(part.position));
        RestoreProgress {
            restored: self.parts.iter().map(|part| part.records).sum(),
            remaining: remaining.map(|offsets| u64::try_from(offsets).unwrap_or(0)).sum(),
            hanging: self.standstill.is_hanging(),
        }
    }

    /// The restore ends before it is done: what has been read need not be read again.
    fn keep(&mut self) {
        for changelog in &self.job.changelogs {
            if let Err(error) = super::keep(&mut self.job.state, changelog) {
                tracing::warn!(task_id = %self.job.task, store = changelog.name, %error, "what was restored could not be kept; it is read again");
            }
        }
    }

    /// The stores are restored.
    fn finish(&mut self) -> Result<(), RestoreFailure> {
        for (part, changelog) in self.parts.iter().zip(&self.job.changelogs) {
            let _restore = part.span.enter();
            super::finish(&mut self.job.state, changelog, part.position)?;
            tracing::info!(
                task_id = %self.job.task, store = changelog.name, restored = part.records, to = part.position,
                "store is restored"
            );
        }
        Ok(())
    }

    /// Gives the state back with the result.
    fn end(mut self, failure: Option<RestoreFailure>) -> EndedRestore {
        let task_span = self.span.clone().entered();
        let failure = failure.or_else(|| self.finish().err());
        if failure.is_some() {
            self.keep();
        }
        let RestoreJob {
            task,
            incarnation,
            state,
            changelogs,
        } = self.job;
        let records = changelogs.iter().zip(&self.parts);
        let records = records.map(|(changelog, part)| (changelog.name.clone(), part.records));
        let restored = Restored {
            task,
            incarnation,
            state,
            records: records.collect(),
            failure,
        };
        drop(task_span);
        EndedRestore {
            restored,
            partitions: self.parts.iter().map(|part| part.id).collect(),
            changelogs: changelogs
                .into_iter()
                .zip(self.parts.iter().map(|part| part.position))
                .collect(),
            span: self.span,
        }
    }
}

fn failure_of(error: &FetchError, fatal: bool, topic: Option<&str>) -> CallFailure {
    let (code, remedy) = match (error.kind, topic) {
        (FetchErrorKind::TopicAuthorization, Some(topic)) => {
            let permission = format!("Read on topic {topic}");
            let remedy = grant_text(&permission, &["Read"], &format!("--topic {topic}"));
            ("TOPIC_AUTHORIZATION_FAILED", remedy)
        }
        _ => ("FETCH", String::new()),
    };
    CallFailure {
        class: if fatal {
            FailureClass::Stop
        } else {
            FailureClass::Retriable
        },
        code: code.to_owned(),
        message: format!("{error}{remedy}"),
    }
}

fn not_wanted() -> CallFailure {
    CallFailure {
        class: FailureClass::Retriable,
        code: "NOT_WANTED".to_owned(),
        message: "the task was given away or lost".to_owned(),
    }
}

#[cfg(test)]
mod tests;
