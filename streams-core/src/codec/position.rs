//! A store's position in its input topics (`PositionSerde`), for interactive queries.

use std::collections::BTreeMap;

use super::io::{CodecError, Reader, invalid, length_i32};

const WHAT: &str = "position";

/// Topic → partition → offset of the last record that a store has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position(
    /// The offsets by topic and partition.
    pub BTreeMap<String, BTreeMap<i32, i64>>,
);

impl Position {
    /// Appends `00 ++ topics4 ++ {length4 topic partitions4 {partition4 offset8}*}*` and Java's padding: it counts
    /// the room in bits where bytes are meant, so zeros follow.
    ///
    /// # Errors
    /// When a topic's name or a count exceeds 2^31−1.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        let begin = out.len();
        out.push(0);
        out.extend_from_slice(&length_i32(WHAT, self.0.len())?.to_be_bytes());
        let mut size = 8 + 32;
        for (topic, partitions) in &self.0 {
            out.extend_from_slice(&length_i32(WHAT, topic.len())?.to_be_bytes());
            out.extend_from_slice(topic.as_bytes());
            out.extend_from_slice(&length_i32(WHAT, partitions.len())?.to_be_bytes());
            for (partition, offset) in partitions {
                out.extend_from_slice(&partition.to_be_bytes());
                out.extend_from_slice(&offset.to_be_bytes());
            }
            size += 32 + topic.len() + 32 + 96 * partitions.len();
        }
        out.resize(begin + size, 0);
        Ok(())
    }

    /// Reads a position; what follows it is ignored.
    ///
    /// # Errors
    /// When the version is not 0 or the bytes end early.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(WHAT, bytes);
        match reader.u8()? {
            0 => {}
            version => return Err(invalid(WHAT, format!("version {version}, which is not known here"))),
        }
        let mut position = Position::default();
        let topics = reader.i32()?;
        for _ in 0..reader.length(topics)? {
            let topic = reader.text()?.to_owned();
            let partitions = position.0.entry(topic).or_default();
            let count = reader.i32()?;
            for _ in 0..reader.length(count)? {
                let partition = reader.i32()?;
                partitions.insert(partition, reader.i64()?);
            }
        }
        Ok(position)
    }
}
