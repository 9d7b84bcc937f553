//! The size of operator clocks in the metadata of an offset commit.
//!
//! Source: `TopicPartitionMetadata` and `ProcessorMetadata` for the bytes; `offset.metadata.max.bytes` of the broker
//! for the limit.

/// The most characters of base64 that a broker accepts with one offset by default.
pub(crate) const MAX_METADATA_CHARACTERS: usize = 4096;

/// Version byte and partition time.
const FIXED_BYTES: usize = 1 + 8;
/// Number of entries; absent when there are none.
const COUNT_BYTES: usize = 4;
/// Length of a key, and a time.
const ENTRY_BYTES: usize = 4 + 8;

/// Characters of padded base64 for the clocks of one task when all of them are set.
pub(crate) fn metadata_characters<'a>(keys: impl IntoIterator<Item = &'a str>) -> usize {
    let entries: usize = keys.into_iter().map(|key| ENTRY_BYTES + key.len()).sum();
    let count = if entries == 0 { 0 } else { COUNT_BYTES };
    (FIXED_BYTES + count + entries).div_ceil(3) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_2_2_sizes_are_those_of_the_encoded_metadata() {
        // `Av//////////` is Java's metadata without clocks.
        assert_eq!(metadata_characters([]), "Av//////////".len());
        // 9 + 4 + (12 + 3) = 28 bytes, in groups of three.
        assert_eq!(metadata_characters(["win"]), 40);
        assert_eq!(metadata_characters(["a", "b"]), 52);
    }
}
