//! Identities of events that are equal on every replay.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::processor::RecordContext;
use crate::serde::{DefaultSerde, Serde, SerdeError};
use crate::{BoxError, TopicPartition};

/// What an event is called wherever it is seen: the topic, partition and offset at which it lies. However often a record
/// is processed (after a crash, an abort, a reset of the group), its identity is the same, and no other record has it. So
/// it serves as a key for systems that are written to from outside of Kafka's transactions, where a generated id (a random
/// UUID, the time) would make a second event of each replay.
///
/// A step that makes several events of one record numbers them by [`part`](Self::part). A record in a repartition topic is
/// a record of its own, with another identity: name an event before its key changes. A topic that is deleted and made again
/// gives its identities out a second time.
///
/// Its text is `<topic>-<partition>@<offset>`, followed by `#<part>` for every part but the first; that is also its byte
/// form on topics (UTF-8).
///
/// ```
/// use streams_core::EventId;
/// let id = EventId::of("orders", 3, 1041);
/// assert_eq!(id.to_string(), "orders-3@1041");
/// assert_eq!(id.part(2).to_string(), "orders-3@1041#2");
/// assert_eq!("orders-3@1041#2".parse::<EventId>()?, id.part(2));
/// # Ok::<(), streams_core::BoxError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    topic: Arc<str>,
    partition: i32,
    offset: i64,
    part: u32,
}

impl EventId {
    /// The identity of the record at an offset of a partition.
    pub fn of(topic: impl Into<Arc<str>>, partition: i32, offset: i64) -> Self {
        EventId {
            topic: topic.into(),
            partition,
            offset,
            part: 0,
        }
    }

    /// The identity of the record in hand; `None` in a punctuation, which has none.
    #[must_use]
    pub fn of_record(context: &RecordContext) -> Option<Self> {
        let is_record = context.partition >= 0 && context.offset >= 0;
        is_record.then(|| EventId::of(Arc::clone(&context.topic), context.partition, context.offset))
    }

    /// The identity of one of several events that are made of the same record, by their number. Part 0 is the record's.
    #[must_use]
    pub fn part(&self, part: u32) -> Self {
        EventId { part, ..self.clone() }
    }

    /// Where the record lies.
    #[must_use]
    pub fn topic_partition(&self) -> TopicPartition {
        TopicPartition::new(Arc::clone(&self.topic), self.partition)
    }

    /// Its offset there.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}@{}", self.topic, self.partition, self.offset)?;
        match self.part {
            0 => Ok(()),
            part => write!(f, "#{part}"),
        }
    }
}

impl FromStr for EventId {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Self, BoxError> {
        let no_id = || {
            BoxError::from(format!(
                "`{text}` is no event id: it should be `<topic>-<partition>@<offset>`"
            ))
        };
        // The topic may have dashes too; numbers have neither sign nor leading zeros, so that each id has one text.
        let (place, rest) = text.rsplit_once('@').ok_or_else(no_id)?;
        let (topic, partition) = place.rsplit_once('-').ok_or_else(no_id)?;
        let (offset, part) = rest
            .split_once('#')
            .map_or((rest, "0"), |(offset, part)| (offset, part));
        let id = EventId {
            topic: topic.into(),
            partition: partition.parse().map_err(|_| no_id())?,
            offset: offset.parse().map_err(|_| no_id())?,
            part: part.parse().map_err(|_| no_id())?,
        };
        let is_its_text = !topic.is_empty() && id.partition >= 0 && id.offset >= 0 && id.to_string() == text;
        is_its_text.then_some(id).ok_or_else(no_id)
    }
}

/// The text of an [`EventId`], in UTF-8.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventIdText;

impl Serde<EventId> for EventIdText {
    fn serialize(&self, _: &str, value: &EventId, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        out.extend_from_slice(value.to_string().as_bytes());
        Ok(true)
    }

    fn deserialize(&self, _: &str, bytes: Option<&[u8]>) -> Result<EventId, SerdeError> {
        let type_name = std::any::type_name::<EventId>();
        let bytes = bytes.ok_or(SerdeError::Null {
            what: "value",
            type_name,
        })?;
        let convert = |message: String| SerdeError::Convert { type_name, message };
        let text = std::str::from_utf8(bytes).map_err(|error| convert(error.to_string()))?;
        text.parse().map_err(|error: BoxError| convert(error.to_string()))
    }

    fn format(&self) -> String {
        "event-id".to_owned()
    }
}

impl DefaultSerde for EventId {
    type Serde = EventIdText;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_is_read_back_from_its_text_whatever_the_topic() {
        for topic in ["a", "orders-by-day", "a.b_c-0", "1-2"] {
            for id in [
                EventId::of(topic, 0, 0),
                EventId::of(topic, 17, i64::MAX).part(u32::MAX),
            ] {
                assert_eq!(id.to_string().parse::<EventId>().unwrap(), id);
            }
        }
    }

    #[test]
    fn text_that_no_id_has_is_refused() {
        let texts = [
            "", "orders", "orders-1", "orders@1", "-1@1", "o-01@1", "o-1@+1", "o-1@-1", "o-1@1#0", "o-1@1#x", "o-1@",
        ];
        for text in texts {
            let read = text.parse::<EventId>();
            assert!(read.is_err(), "{text} was read as {read:?}");
        }
    }

    #[test]
    fn no_two_places_have_one_text() {
        let places = [("a-1", 1, 1), ("a", 1, 1), ("a", 11, 1), ("a", 1, 11), ("a-1", 11, 1)];
        let texts: std::collections::BTreeSet<String> = places
            .iter()
            .map(|(topic, partition, offset)| EventId::of(*topic, *partition, *offset).to_string())
            .collect();
        assert_eq!(texts.len(), places.len());
    }

    #[test]
    fn bytes_that_are_no_text_are_told() {
        let read = EventIdText.deserialize("ids", Some(&[0xff]));
        assert!(matches!(read, Err(SerdeError::Convert { .. })), "{read:?}");
    }
}
