//! What rides beside a committed offset (`TopicPartitionMetadata`, `ProcessorMetadata`): the partition's stream time
//! and named times of operators, as base64 text.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::io::{CodecError, Reader, invalid, length_i32};

const WHAT: &str = "offset-commit metadata";
const VERSION: u8 = 2;
/// What Java writes for a time that is not known.
const UNKNOWN_TIME_MS: i64 = -1;

/// The metadata of one committed offset.
///
/// Every time in it only moves forward, so copies from several partitions, or from before and after a move of the
/// task, are merged by taking the greater one.
///
/// ```
/// use streams_core::codec::CommitMetadata;
/// let mut metadata = CommitMetadata::default();
/// assert_eq!(metadata.encode()?, "Av//////////");
/// metadata.raise("hourly-bill", 99);
/// assert_eq!(CommitMetadata::decode(&metadata.encode()?)?, metadata);
/// # Ok::<(), streams_core::codec::CodecError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitMetadata {
    /// The partition's stream time (ms since the Unix epoch); `None` = unknown.
    pub partition_time_ms: Option<i64>,
    /// Named times (ms), for example when a window store last emitted. In order of their names, so that equal
    /// metadata has equal bytes (Java writes them in the order of its hash map, and reads any order).
    pub entries: BTreeMap<Arc<str>, i64>,
}

impl CommitMetadata {
    /// The most characters that a broker takes by default (`offset.metadata.max.bytes`, which counts the text).
    pub const MAX_CHARACTERS: usize = 4096;

    /// Sets a named time, unless it is already later.
    pub fn raise(&mut self, name: &str, time_ms: i64) {
        match self.entries.get_mut(name) {
            Some(known) => *known = (*known).max(time_ms),
            None => {
                self.entries.insert(name.into(), time_ms);
            }
        }
    }

    /// Takes over every named time of another partition's metadata that is later than ours. The partition's own time
    /// stays: it is no one else's.
    pub fn merge_entries(&mut self, other: &CommitMetadata) {
        for (name, time_ms) in &other.entries {
            let known = self.entries.entry(Arc::clone(name)).or_insert(*time_ms);
            *known = (*known).max(*time_ms);
        }
    }

    /// How many characters metadata with these names takes; values do not matter. For the check when a topology is
    /// built: a commit whose metadata is too long would be refused each time.
    #[must_use]
    pub fn encoded_length<'n>(names: impl IntoIterator<Item = &'n str>) -> usize {
        let entries: usize = names.into_iter().map(|name| 4 + name.len() + 8).sum();
        let count = if entries == 0 { 0 } else { 4 };
        (9 + count + entries).div_ceil(3) * 4
    }

    /// The text that goes with the offset.
    ///
    /// # Errors
    /// When it is longer than [`Self::MAX_CHARACTERS`]: the broker would refuse the commit.
    pub fn encode(&self) -> Result<String, CodecError> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.partition_time_ms.unwrap_or(UNKNOWN_TIME_MS).to_be_bytes());
        if !self.entries.is_empty() {
            bytes.extend_from_slice(&length_i32(WHAT, self.entries.len())?.to_be_bytes());
        }
        for (name, time_ms) in &self.entries {
            bytes.extend_from_slice(&length_i32(WHAT, name.len())?.to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&time_ms.to_be_bytes());
        }
        let text = STANDARD.encode(bytes);
        if text.len() > Self::MAX_CHARACTERS {
            return Err(invalid(
                WHAT,
                format!(
                    "{} characters, but a broker takes {}: use fewer or shorter names of windowed stores",
                    text.len(),
                    Self::MAX_CHARACTERS
                ),
            ));
        }
        Ok(text)
    }

    /// Reads the text of an offset; empty text is unknown times.
    ///
    /// # Errors
    /// When it is not such metadata or of a version that is not known. Java goes on with unknown times then, and a
    /// caller may do so too after telling it.
    pub fn decode(text: &str) -> Result<Self, CodecError> {
        if text.is_empty() {
            return Ok(CommitMetadata::default());
        }
        let bytes = STANDARD
            .decode(text)
            .map_err(|cause| invalid(WHAT, cause.to_string()))?;
        let mut reader = Reader::new(WHAT, &bytes);
        let version = reader.u8()?;
        let time_ms = reader.i64()?;
        let partition_time_ms = (time_ms != UNKNOWN_TIME_MS).then_some(time_ms);
        match version {
            1 => Ok(CommitMetadata {
                partition_time_ms,
                entries: BTreeMap::new(),
            }),
            2 => Ok(CommitMetadata {
                partition_time_ms,
                entries: entries(reader)?,
            }),
            other => Err(invalid(WHAT, format!("version {other}, which is not known here"))),
        }
    }
}

fn entries(mut reader: Reader<'_>) -> Result<BTreeMap<Arc<str>, i64>, CodecError> {
    let mut entries = BTreeMap::new();
    if reader.is_empty() {
        return Ok(entries);
    }
    let count = reader.i32()?;
    for _ in 0..reader.length(count)? {
        let name = Arc::from(reader.text()?);
        entries.insert(name, reader.i64()?);
    }
    reader.end()?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_later_time_of_each_name_and_the_own_partition_time() {
        let mut a = CommitMetadata {
            partition_time_ms: Some(5),
            ..Default::default()
        };
        a.raise("x", 1);
        a.raise("x", 0);
        let mut b = CommitMetadata {
            partition_time_ms: Some(9),
            ..Default::default()
        };
        b.raise("x", 7);
        b.raise("y", 2);
        a.merge_entries(&b);
        assert_eq!(a.partition_time_ms, Some(5));
        assert_eq!(
            a.entries.iter().map(|(k, v)| (&**k, *v)).collect::<Vec<_>>(),
            [("x", 7), ("y", 2)]
        );
    }

    #[test]
    fn the_length_known_from_names_is_the_encoded_length() {
        for names in [
            &[][..],
            &["a"],
            &["abc", "de"],
            &["KSTREAM-AGGREGATE-0000000003", "", "x"],
        ] {
            let mut metadata = CommitMetadata::default();
            names.iter().for_each(|name| metadata.raise(name, 1));
            assert_eq!(
                metadata.encode().unwrap().len(),
                CommitMetadata::encoded_length(names.iter().copied())
            );
        }
    }

    #[test]
    fn too_long_and_unreadable_metadata_is_refused() {
        let mut metadata = CommitMetadata::default();
        metadata.raise(&"n".repeat(4000), 1);
        assert!(metadata.encode().is_err());
        for text in ["A", "====", "A///////////", "Ag=="] {
            assert!(CommitMetadata::decode(text).is_err(), "{text}");
        }
        assert_eq!(CommitMetadata::decode(""), Ok(CommitMetadata::default()));
    }
}
