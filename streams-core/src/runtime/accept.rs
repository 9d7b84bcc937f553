//! What was fetched goes to its task, or says what is wrong with the input.

use super::core::StreamThreadCore;
use super::meter::AbortReason;
use super::slot::Slot;
use crate::error::{Error, ProcessResult, grant_text};
use crate::fetch::{FetchErrorKind, Fetched, PartitionId};
use crate::task::Task;

impl StreamThreadCore {
    /// Takes what was fetched. Records of an older incarnation are thrown away: they were fetched before a rewind.
    ///
    /// # Errors
    /// When a partition can't be read any more.
    pub fn accept(&mut self, fetched: &mut Vec<Fetched>) -> ProcessResult {
        self.fetched_records = fetched.iter().map(Fetched::records).sum();
        for item in fetched.drain(..) {
            match item {
                Fetched::Records(batch) => match self.owner(batch.partition, batch.incarnation) {
                    Some(task) => task.accept(batch)?,
                    None => self.totals.outdated_records += batch.len() as u64,
                },
                Fetched::Eof {
                    partition,
                    incarnation,
                    offset,
                } => {
                    if let Some(task) = self.owner(partition, incarnation) {
                        task.accept_eof(partition, offset)?;
                    }
                }
                Fetched::Error(error) => self.fetch_failed(&error)?,
            }
        }
        Ok(())
    }

    fn owner(&mut self, partition: PartitionId, incarnation: u64) -> Option<&mut Task> {
        let owned = self
            .partitions
            .get(&partition)
            .filter(|owned| owned.incarnation == incarnation)?;
        match self.tasks.get_mut(&owned.task) {
            Some(Slot::Running(task)) => Some(task),
            _ => None,
        }
    }

    fn fetch_failed(&mut self, error: &crate::fetch::FetchError) -> ProcessResult {
        let Some((partition, incarnation)) = error.partition else {
            tracing::warn!(error = %error, "fetching met an error; the client goes on by itself");
            return Ok(());
        };
        let Some(owned) = self
            .partitions
            .get(&partition)
            .filter(|owned| owned.incarnation == incarnation)
        else {
            return Ok(());
        };
        let topic_partition = owned.topic_partition.clone();
        match error.kind {
            FetchErrorKind::OutOfRange { offset } if self.reset_to(&topic_partition.topic).is_some() => {
                tracing::warn!(%topic_partition, "the position is outside the log: starting again by auto.offset.reset");
                self.abort_and_rebuild(AbortReason::OutOfRange);
                self.reset_next.insert(topic_partition, offset);
                Ok(())
            }
            FetchErrorKind::OutOfRange { .. } => Err(Box::new(Error::Topics {
                message: format!(
                    "the position in {topic_partition} is outside the log ({}): records were deleted before they were read; set auto.offset.reset to go on without them",
                    error.message
                ),
            })),
            FetchErrorKind::Transport | FetchErrorKind::Other(_) => {
                tracing::debug!(%topic_partition, error = %error, "fetching met an error; the client goes on by itself");
                Ok(())
            }
            kind => Err(Box::new(Error::Topics {
                message: format!(
                    "cannot read {topic_partition}: {}{}",
                    error.message,
                    remedy(kind, &topic_partition.topic)
                ),
            })),
        }
    }
}

/// What to do about an input that can't be read.
fn remedy(kind: FetchErrorKind, topic: &str) -> String {
    let text = match kind {
        FetchErrorKind::TopicAuthorization => {
            let permission = "Read and Describe on the topic";
            return grant_text(permission, &["Read", "Describe"], &format!("--topic {topic}"));
        }
        FetchErrorKind::GroupAuthorization => {
            let permission = "Read on the consumer group (the application id)";
            return grant_text(permission, &["Read"], "--group APPLICATION_ID");
        }
        FetchErrorKind::UnknownTopic => {
            "; the topic was deleted: create it again, or take it out of the topology (if it was made anew, its offsets begin anew: reset the application)"
        }
        FetchErrorKind::Authentication => "; check the credentials of this client",
        _ => "",
    };
    text.to_owned()
}
