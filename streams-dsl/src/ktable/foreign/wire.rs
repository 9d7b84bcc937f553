//! What travels between the sides of a foreign-key join, with the bytes of Java's `SubscriptionWrapperSerde` and
//! `SubscriptionResponseWrapperSerde`.

use streams_core::codec::{Instruction, Subscription, SubscriptionResponse};
use streams_core::serde::{Serde, SerdeError, SharedSerde};

/// A left row's wish to be told about a foreign key. The primary key stays serialized: the store holds it so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) hash: Option<[u8; 16]>,
    pub(super) instruction: Instruction,
    pub(super) primary_key: Vec<u8>,
    /// The left row's partition; `None` in messages of Kafka Streams before 3.4.
    pub(super) primary_partition: Option<i32>,
}

impl Message {
    /// Appends the wire form.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let subscription = Subscription {
            hash: self.hash,
            instruction: self.instruction,
            primary_key: &self.primary_key,
            primary_partition: self.primary_partition,
        };
        subscription.encode(out);
    }

    /// Reads the wire form.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, SerdeError> {
        let subscription = Subscription::decode(bytes).map_err(|error| unreadable::<Message>(&error))?;
        Ok(Message {
            hash: subscription.hash,
            instruction: subscription.instruction,
            primary_key: subscription.primary_key.to_vec(),
            primary_partition: subscription.primary_partition,
        })
    }
}

/// Values of the registration topic.
pub(super) struct MessageSerde;

impl Serde<Message> for MessageSerde {
    fn serialize(&self, _topic: &str, value: &Message, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        value.encode(out);
        Ok(true)
    }

    fn deserialize(&self, _topic: &str, bytes: Option<&[u8]>) -> Result<Message, SerdeError> {
        Message::decode(bytes.ok_or_else(null::<Message>)?)
    }
}

/// The answer: the foreign row's value, and which left value it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer<V> {
    pub(super) hash: Option<[u8; 16]>,
    pub(super) foreign_value: Option<V>,
    /// Where the answer goes; not written.
    pub(super) primary_partition: Option<i32>,
}

/// Values of the response topic. A foreign value of no bytes is read as none, as in Java.
pub(super) struct AnswerSerde<V>(pub(super) SharedSerde<V>);

impl<V: 'static> Serde<Answer<V>> for AnswerSerde<V> {
    fn serialize(&self, topic: &str, value: &Answer<V>, out: &mut Vec<u8>) -> Result<bool, SerdeError> {
        let mut bytes = Vec::new();
        let present = match &value.foreign_value {
            Some(value) => self.0.serialize(topic, value, &mut bytes)?,
            None => false,
        };
        let response = SubscriptionResponse {
            hash: value.hash,
            foreign_value: present.then_some(&*bytes),
        };
        response.encode(out);
        Ok(true)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<Answer<V>, SerdeError> {
        let bytes = bytes.ok_or_else(null::<Answer<V>>)?;
        let response = SubscriptionResponse::decode(bytes).map_err(|error| unreadable::<Answer<V>>(&error))?;
        let value = response
            .foreign_value
            .map(|bytes| self.0.deserialize(topic, Some(bytes)));
        Ok(Answer {
            hash: response.hash,
            foreign_value: value.transpose()?,
            primary_partition: None,
        })
    }
}

fn null<T>() -> SerdeError {
    SerdeError::Null {
        what: "value",
        type_name: std::any::type_name::<T>(),
    }
}

fn unreadable<T>(error: &streams_core::codec::CodecError) -> SerdeError {
    SerdeError::Convert {
        type_name: std::any::type_name::<T>(),
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use streams_core::serde::Utf8;

    use super::*;

    #[test]
    fn a_message_of_the_old_version_stays_one() {
        let old = Message {
            hash: None,
            instruction: Instruction::DeleteKeyAndPropagate,
            primary_key: b"pk".to_vec(),
            primary_partition: None,
        };
        let mut bytes = Vec::new();
        MessageSerde.serialize("t", &old, &mut bytes).unwrap();
        assert_eq!(bytes, [0x80, 1, b'p', b'k']);
        assert_eq!(MessageSerde.deserialize("t", Some(&bytes)).unwrap(), old);
    }

    #[test]
    fn a_message_of_an_unknown_version_is_refused() {
        assert!(MessageSerde.deserialize("t", Some(&[2, 0])).is_err());
        assert!(MessageSerde.deserialize("t", None).is_err());
    }

    #[test]
    fn an_answer_without_a_foreign_value_is_read_as_one() {
        let serde = AnswerSerde(Arc::new(Utf8) as SharedSerde<String>);
        for value in [None, Some("v".to_owned())] {
            let answer = Answer {
                hash: Some([7; 16]),
                foreign_value: value,
                primary_partition: None,
            };
            let mut bytes = Vec::new();
            serde.serialize("t", &answer, &mut bytes).unwrap();
            assert_eq!(serde.deserialize("t", Some(&bytes)).unwrap(), answer);
        }
        assert!(serde.deserialize("t", Some(&[1])).is_err());
    }
}
