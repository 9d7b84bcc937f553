//! An ordered index over slots, made only when a range is read and kept up to date from then on.

/// Slots per chunk before it is split.
const CHUNK: usize = 512;

/// Slot numbers in the order of their keys. Positions stay valid until the next insertion.
#[derive(Debug, Clone, Default)]
pub(super) struct SlotIndex {
    chunks: Vec<Vec<u32>>,
    len: usize,
}

/// A place in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    chunk: usize,
    at: usize,
}

impl SlotIndex {
    /// From slots that are in the order of their keys already.
    pub(super) fn from_sorted(slots: &[u32]) -> Self {
        Self {
            chunks: slots.chunks(CHUNK / 2).map(<[u32]>::to_vec).collect(),
            len: slots.len(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a slot whose key is not in the index yet.
    pub(super) fn insert<'k>(&mut self, slot: u32, key: &[u8], key_of: impl Fn(u32) -> &'k [u8]) {
        self.len += 1;
        // The last chunk whose first key is not above the new one takes it.
        let after = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|first| key_of(*first) <= key));
        let number = after.saturating_sub(1);
        let Some(chunk) = self.chunks.get_mut(number) else {
            self.chunks.push(vec![slot]);
            return;
        };
        let at = chunk.partition_point(|other| key_of(*other) < key);
        chunk.insert(at, slot);
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(CHUNK / 2);
            self.chunks.insert(number + 1, upper);
        }
    }

    /// The slot at a position.
    pub(super) fn slot(&self, position: Position) -> Option<u32> {
        self.chunks.get(position.chunk)?.get(position.at).copied()
    }

    /// The first position whose key is at or above `key`; the end if there is none.
    pub(super) fn lower_bound<'k>(&self, key: &[u8], key_of: impl Fn(u32) -> &'k [u8]) -> Position {
        let after = self
            .chunks
            .partition_point(|chunk| chunk.first().is_some_and(|first| key_of(*first) < key));
        let number = after.saturating_sub(1);
        let Some(chunk) = self.chunks.get(number) else {
            return Position { chunk: 0, at: 0 };
        };
        let at = chunk.partition_point(|other| key_of(*other) < key);
        if at == chunk.len() {
            Position {
                chunk: number + 1,
                at: 0,
            }
        } else {
            Position { chunk: number, at }
        }
    }

    pub(super) fn end(&self) -> Position {
        Position {
            chunk: self.chunks.len(),
            at: 0,
        }
    }

    /// The next position; the end stays the end.
    pub(super) fn next(&self, position: Position) -> Position {
        match self.chunks.get(position.chunk) {
            Some(chunk) if position.at + 1 < chunk.len() => Position {
                at: position.at + 1,
                ..position
            },
            Some(_) => Position {
                chunk: position.chunk + 1,
                at: 0,
            },
            None => position,
        }
    }

    /// The position before; `None` before the first.
    pub(super) fn previous(&self, position: Position) -> Option<Position> {
        if position.at > 0 {
            return Some(Position {
                at: position.at - 1,
                ..position
            });
        }
        let chunk = position.chunk.checked_sub(1)?;
        let at = self.chunks.get(chunk)?.len().checked_sub(1)?;
        Some(Position { chunk, at })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]
    use super::*;

    #[test]
    fn many_insertions_stay_ordered_and_can_be_walked_both_ways() {
        let keys: Vec<Vec<u8>> = (0..5_000_u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes().to_vec())
            .collect();
        let key_of = |slot: u32| keys[slot as usize].as_slice();
        let mut index = SlotIndex::default();
        for slot in 0..keys.len() as u32 {
            index.insert(slot, key_of(slot), key_of);
        }
        let mut sorted: Vec<u32> = (0..keys.len() as u32).collect();
        sorted.sort_by_key(|slot| key_of(*slot));

        let mut forward = Vec::new();
        let mut position = index.lower_bound(&[], key_of);
        while let Some(slot) = index.slot(position) {
            forward.push(slot);
            position = index.next(position);
        }
        assert_eq!(forward, sorted);

        let mut reverse = Vec::new();
        let mut position = index.end();
        while let Some(previous) = index.previous(position) {
            reverse.push(index.slot(previous).unwrap());
            position = previous;
        }
        reverse.reverse();
        assert_eq!(reverse, sorted);
        assert_eq!(index.len(), keys.len());
    }

    #[test]
    fn lower_bound_between_chunks_is_the_next_chunk() {
        let keys: Vec<Vec<u8>> = (0..600_u16).map(|n| (n * 2).to_be_bytes().to_vec()).collect();
        let key_of = |slot: u32| keys[slot as usize].as_slice();
        let index = SlotIndex::from_sorted(&(0..600).collect::<Vec<_>>());
        for probe in 0..1_200_u16 {
            let found = index.slot(index.lower_bound(&probe.to_be_bytes(), key_of));
            let expected = u32::from(probe.div_ceil(2));
            assert_eq!(found, (expected < 600).then_some(expected), "probe {probe}");
        }
    }
}
