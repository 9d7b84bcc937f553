//! A record that is larger than its topic takes (design rule 4.4): found before it is sent, because a refusal by the broker
//! aborts the whole transaction, and then nobody can let the record pass.

use std::fmt;

use super::{Decision, HandlerResponse, ProductionDecision, TaskContext};
use crate::TopicPartition;
use crate::error::{Error, ProcessResult};
use crate::murmur2::murmur2;

/// librdkafka's name of the refusal.
pub(crate) const TOO_LARGE: &str = "MSG_SIZE_TOO_LARGE";

/// Whose bound a record is above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The topic's own.
    Topic,
    /// This client's.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "only a shell has a client"))]
    Client,
}

/// A record that was not written.
#[derive(Debug)]
pub(crate) struct TooLarge {
    pub(crate) topic_partition: TopicPartition,
    /// Bytes of a batch with this record alone; `None` = a field is longer than Kafka can carry at all.
    pub(crate) bytes: Option<usize>,
    /// Bytes that a batch may have.
    pub(crate) max_bytes: usize,
    /// Who says so.
    pub(crate) bound: Bound,
    /// Length and murmur2 of the key's bytes; `None` = a null key.
    pub(crate) key: Option<(usize, i32)>,
}

impl TooLarge {
    /// What is told of a key: enough to recognize it, and nothing of its content.
    pub(crate) fn digest(key: Option<&[u8]>) -> Option<(usize, i32)> {
        key.map(|key| (key.len(), murmur2(key)))
    }

    fn error(&self, remedy: &str) -> Error {
        Error::Produce {
            topic_partition: self.topic_partition.clone(),
            code: TOO_LARGE.to_owned(),
            message: format!("{self}{remedy}"),
        }
    }

    /// As the error of a changelog record.
    pub(crate) fn as_row(&self) -> Error {
        self.error(
            "; a row must be in its changelog, so no handler can let it pass: raise max.message.bytes of that topic (kafka-configs.sh \
             --alter, or the store's logging configs before the topic is made), or keep rows smaller",
        )
    }

    /// As the error of a dead letter.
    pub(crate) fn as_dead_letter(&self) -> Error {
        self.error("; it is a dead letter, the last copy of its record: raise max.message.bytes of that topic")
    }

    fn as_output(&self) -> Error {
        self.error(
            "; raise max.message.bytes of that topic (kafka-configs.sh --alter) and, above 1 MB, producer.max.request.size, make \
             the record smaller, or let it pass by a production handler",
        )
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (topic, max_bytes) = (&self.topic_partition.topic, self.max_bytes);
        match self.bytes {
            Some(bytes) => write!(f, "it has {bytes} bytes as a batch of its own, and ")?,
            None => f.write_str("a field of it is longer than Kafka can carry (2147483647 bytes)")?,
        }
        match self.bound {
            _ if self.bytes.is_none() => {}
            Bound::Topic => write!(f, "topic {topic} takes {max_bytes} (its max.message.bytes)")?,
            Bound::Client => write!(f, "this client takes {max_bytes} (producer.max.request.size)")?,
        }
        match self.key {
            Some((length, hash)) => write!(f, "; its key has {length} bytes, murmur2 {hash}"),
            None => f.write_str("; its key is null"),
        }
    }
}

impl TaskContext {
    /// Asks the production handler about an output that is too large; `Ok` = go on without it.
    #[cold]
    pub(super) fn output_refused(&mut self, refused: &TooLarge) -> ProcessResult {
        let error = refused.as_output();
        let handlers = std::sync::Arc::clone(self.handlers());
        let topic = &refused.topic_partition.topic;
        let decision = handlers
            .production
            .handle_send(topic, TOO_LARGE, &refused.to_string(), false);
        let decision = match decision {
            ProductionDecision::Resume => Decision::Resume,
            // It would be as large the next time.
            ProductionDecision::Fail | ProductionDecision::Retry => Decision::Fail,
        };
        self.send_dead_letters(
            &HandlerResponse::from(decision),
            "RecordTooLargeException",
            &refused.to_string(),
        )?;
        match decision {
            Decision::Resume => {
                self.counters.dropped_records += 1;
                Ok(())
            }
            Decision::Fail => Err(Box::new(error)),
        }
    }
}
