//! Which partition a key belongs to: Kafka's murmur2, computed here because librdkafka's own default is CRC32.

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;
const R: u32 = 24;

/// Kafka's murmur2 of a serialized key, signed as in Java (`org.apache.kafka.common.utils.Utils.murmur2`).
///
/// ```
/// assert_eq!(streams_core::murmur2::murmur2(b"abc"), 479_470_107);
/// assert_eq!(streams_core::murmur2::murmur2(b"abcd"), -1_323_649_548);
/// ```
#[must_use]
pub fn murmur2(bytes: &[u8]) -> i32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    // The length enters modulo 2^32, as Java's int does.
    let mut hash = SEED ^ (bytes.len() as u32);
    for block in blocks {
        let mut k = u32::from_le_bytes(*block).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (position, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * position);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    hash.cast_signed()
}

/// The partition, of `partitions` many, that Kafka's default partitioner gives a key with these bytes.
/// A count below 1 is taken as 1.
///
/// The sign bit is masked off, not negated: that is what Java does (`BuiltInPartitioner.partitionForKey`).
///
/// ```
/// assert_eq!(streams_core::murmur2::partition_for_key(b"user-1", 12), 8);
/// ```
#[must_use]
pub fn partition_for_key(bytes: &[u8], partitions: i32) -> i32 {
    (murmur2(bytes) & i32::MAX) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_always_in_range() {
        for count in [-1, 0, 1, 2, 7, i32::MAX] {
            for key in [&b""[..], b"a", b"abcd", &[0xff; 33]] {
                assert!((0..count.max(1)).contains(&partition_for_key(key, count)));
            }
        }
    }
}
