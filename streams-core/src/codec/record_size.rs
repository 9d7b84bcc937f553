//! How large a record is for a broker: as a batch of its own, which is what `max.message.bytes` bounds (design rule 4.4).
//! Format: KIP-98, `DefaultRecordBatch.RECORD_BATCH_OVERHEAD` and `DefaultRecord.sizeInBytes` (magic 2).

use crate::outbox::OutRecord;

/// The head of a batch.
const BATCH_BYTES: usize = 61;
/// More than a record without headers can have beside key and value: attributes, two differences of one byte, and four
/// numbers of up to five.
const MOST_BESIDE: usize = BATCH_BYTES + 3 + 4 * 5;

/// A size that no record with so many bytes of key, value and packed headers is above; cheaper than the size itself.
pub(crate) fn at_most(payload: usize) -> usize {
    // A packed header has eight bytes for its lengths, and one on the wire at most ten.
    payload.saturating_add(payload / 4).saturating_add(MOST_BESIDE)
}

/// The bytes of an uncompressed batch with this record alone.
pub(crate) fn batch_bytes(record: &OutRecord<'_>) -> usize {
    let field = |bytes: Option<&[u8]>| match bytes {
        Some(bytes) => varint_bytes(bytes.len()) + bytes.len(),
        // The length −1.
        None => 1,
    };
    let headers = record.headers.clone();
    let (mut count, mut header_bytes) = (0, 0);
    for (name, value) in headers {
        count += 1;
        header_bytes += field(Some(name.as_bytes())) + field(value);
    }
    // Attributes, and the differences of time and offset to those of the batch, which are 0.
    let body = 3 + field(record.key) + field(record.value) + varint_bytes(count) + header_bytes;
    BATCH_BYTES + varint_bytes(body) + body
}

/// The bytes of a length as a zigzag varint.
fn varint_bytes(length: usize) -> usize {
    let bits = usize::BITS - (length << 1).leading_zeros();
    (bits.max(1).div_ceil(7)) as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{at_most, batch_bytes};
    use crate::outbox::Outbox;

    /// The size, and the bound on it.
    fn sizes(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[(&str, Option<&[u8]>)]) -> (usize, usize) {
        let mut outbox = Outbox::default();
        let topic = outbox.topic("t");
        outbox
            .push(topic, 0, 1, key, value, headers.iter().copied(), 0)
            .unwrap();
        let bound = at_most(outbox.bytes());
        (batch_bytes(&outbox.iter().next().unwrap()), bound)
    }

    /// As a broker counts them: `DumpLogSegments` shows such batches with these sizes.
    #[test]
    fn a_batch_of_one_record_has_the_size_that_a_broker_gives_it() {
        assert_eq!(sizes(None, None, &[]).0, 61 + 1 + 3 + 1 + 1 + 1);
        assert_eq!(sizes(Some(b"k"), Some(b"value"), &[]).0, 61 + 1 + 3 + 2 + 6 + 1);
        assert_eq!(sizes(Some(b"k"), Some(&[0; 63]), &[]).0, 61 + 2 + 3 + 2 + 64 + 1);
        assert_eq!(sizes(Some(b"k"), Some(&[0; 64]), &[]).0, 61 + 2 + 3 + 2 + 66 + 1);
        assert_eq!(
            sizes(None, Some(b""), &[("h", None), ("h", Some(b"xy"))]).0,
            61 + 1 + 3 + 1 + 1 + 1 + 3 + 5
        );
    }

    #[test]
    fn the_cheap_bound_is_never_below_the_size() {
        let names: Vec<String> = (0..200).map(|at| "h".repeat(at % 3)).collect();
        let headers: Vec<(&str, Option<&[u8]>)> = names.iter().map(|name| (name.as_str(), None)).collect();
        for length in [0, 1, 62, 63, 64, 8_191, 8_192, 1_048_576] {
            let value = vec![0; length];
            for headers in [&headers[..0], &headers[..1], &headers[..]] {
                let (size, bound) = sizes(Some(&value), Some(&value), headers);
                assert!(size <= bound, "{size} > {bound} with {} headers", headers.len());
            }
        }
    }
}
