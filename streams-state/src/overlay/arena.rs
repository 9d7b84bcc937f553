//! Bytes of an epoch, allocated in growing chunks and freed together.

/// Where some bytes lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    chunk: u32,
    offset: u32,
}

const FIRST_CHUNK: usize = 4 << 10;
const LARGEST_CHUNK: usize = 256 << 10;

/// An append-only store of byte strings: no allocation per string, nothing is moved.
#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    allocated: usize,
}

impl Arena {
    /// Memory held, in bytes.
    pub(super) fn allocated(&self) -> usize {
        self.allocated
    }

    /// Stores the two strings one behind the other.
    pub(super) fn push(&mut self, first: &[u8], second: &[u8]) -> Place {
        let needed = first.len() + second.len();
        if self
            .chunks
            .last()
            .is_none_or(|chunk| chunk.capacity() - chunk.len() < needed)
        {
            self.add_chunk(needed);
        }
        let number = self.chunks.len().saturating_sub(1);
        let Some(chunk) = self.chunks.last_mut() else {
            return Place { chunk: 0, offset: 0 };
        };
        // Chunks are at most 256 KiB unless one string is larger, and then it begins at 0: the casts lose nothing.
        let place = Place {
            chunk: number as u32,
            offset: chunk.len() as u32,
        };
        chunk.extend_from_slice(first);
        chunk.extend_from_slice(second);
        place
    }

    /// `len` bytes that begin `skip` bytes behind `place`.
    pub(super) fn get(&self, place: Place, skip: u32, len: u32) -> &[u8] {
        let start = place.offset as usize + skip as usize;
        self.chunks
            .get(place.chunk as usize)
            .and_then(|chunk| chunk.get(start..start + len as usize))
            .unwrap_or_default()
    }

    /// Overwrites bytes that begin `skip` bytes behind `place`.
    pub(super) fn overwrite(&mut self, place: Place, skip: u32, bytes: &[u8]) {
        let start = place.offset as usize + skip as usize;
        let target = self
            .chunks
            .get_mut(place.chunk as usize)
            .and_then(|chunk| chunk.get_mut(start..start + bytes.len()));
        if let Some(target) = target {
            target.copy_from_slice(bytes);
        }
    }

    fn add_chunk(&mut self, needed: usize) {
        let next = self
            .chunks
            .last()
            .map_or(FIRST_CHUNK, |chunk| (chunk.capacity() * 2).min(LARGEST_CHUNK));
        let capacity = next.max(needed);
        self.allocated += capacity;
        self.chunks.push(Vec::with_capacity(capacity));
    }
}
