//! The hash by which a foreign-key join recognises that the left value has changed meanwhile.

const SEED: u64 = 104_729;
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Murmur3 x64, 128 bits, seed 104729, of a serialized value (`streams.state.internals.Murmur3.hash128`), as the
/// sixteen bytes that travel on the subscription and response topics: two big-endian longs.
///
/// ```
/// assert_eq!(streams_core::murmur3::hash128(b"value-1")[..4], [0x8d, 0xbc, 0xd6, 0xbe]);
/// ```
#[must_use]
pub fn hash128(bytes: &[u8]) -> [u8; 16] {
    let (mut h1, mut h2) = (SEED, SEED);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 = (h1 ^ mix1(k1))
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(k2))
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    // A tail padded with zeros mixes as the shorter one does: mixing zero gives zero.
    let mut padded = [0u8; 16];
    for (to, from) in padded.iter_mut().zip(tail) {
        *to = *from;
    }
    let (k1, k2) = halves(&padded);
    let length = bytes.len() as u64;
    h1 ^= mix1(k1) ^ length;
    h2 ^= mix2(k2) ^ length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    ((u128::from(h1) << 64) | u128::from(h2)).to_be_bytes()
}

/// The two little-endian longs of a block.
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}
