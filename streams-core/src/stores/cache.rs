//! The entries of one typed store in memory: found by key bytes, ordered by use, with a list of the dirty ones.
//!
//! Identity is the serialized key, never the typed key's `Eq`: two keys with different bytes are two rows, as in Java.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::Headers;
use crate::processor::RecordContext;

const NONE: u32 = u32::MAX;
/// What an entry costs besides its key and value: the slot, the index, the key's allocation.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// What a slot holds.
#[derive(Debug)]
pub(crate) enum Held<V> {
    /// The value was lent out; the task's bytes have the truth.
    Out,
    /// The row does not exist.
    Absent,
    /// The value and its event time.
    Value(V, i64),
}

impl<V> Held<V> {
    pub(crate) fn take(&mut self) -> Held<V> {
        std::mem::replace(self, Held::Out)
    }
}

pub(crate) struct Slot<V> {
    pub(crate) key: Box<[u8]>,
    pub(crate) held: Held<V>,
    /// The stored bytes before the first update since the last flush, where old values are asked for.
    pub(crate) old: Option<Box<[u8]>>,
    /// Where the last update came from, while the entry is dirty.
    pub(crate) context: Option<RecordContext>,
    /// Whether the row existed before the first update since the last flush: the delete of a row that never was is
    /// neither logged nor forwarded.
    pub(crate) existed: bool,
    /// Not yet in the task's bytes.
    pub(crate) unserialized: bool,
    value_len: usize,
    charged: usize,
    newer: u32,
    older: u32,
}

pub(crate) struct Cache<V> {
    index: HashTable<u32>,
    slots: Vec<Slot<V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    dirty: Vec<u32>,
    /// Entries that a flush has taken and not written yet, last first.
    flushing: Vec<u32>,
    /// Entries that are not yet in the task's bytes, and some that are.
    to_serialize: Vec<u32>,
    charged: usize,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Cache {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            dirty: Vec::new(),
            flushing: Vec::new(),
            to_serialize: Vec::new(),
            charged: 0,
        }
    }
}

fn hash(key: &[u8]) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl<V> Cache<V> {
    /// The entry of a key, made the newest.
    pub(crate) fn find(&mut self, key: &[u8]) -> Option<u32> {
        let slots = &self.slots;
        let found = self.index.find(hash(key), |at| {
            slots.get(*at as usize).is_some_and(|slot| *slot.key == *key)
        });
        let at = *found?;
        self.touch(at);
        Some(at)
    }

    /// Adds an entry for a key that has none.
    pub(crate) fn insert(&mut self, key: &[u8], held: Held<V>, value_len: usize) -> u32 {
        let slot = Slot {
            key: key.into(),
            held,
            old: None,
            context: None,
            existed: false,
            unserialized: false,
            value_len,
            charged: 0,
            newer: NONE,
            older: NONE,
        };
        let at = match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.slots.get_mut(at as usize) {
                    *place = slot;
                }
                at
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).unwrap_or(NONE)
            }
        };
        let slots = &self.slots;
        self.index.insert_unique(hash(key), at, |at| {
            slots.get(*at as usize).map_or(0, |slot| hash(&slot.key))
        });
        self.link_newest(at);
        self.recharge(at, value_len);
        at
    }

    pub(crate) fn slot(&self, at: u32) -> Option<&Slot<V>> {
        self.slots.get(at as usize)
    }

    pub(crate) fn slot_mut(&mut self, at: u32) -> Option<&mut Slot<V>> {
        self.slots.get_mut(at as usize)
    }

    /// Notes an update; the entry joins the dirty list at its first one since the last flush.
    pub(crate) fn mark_dirty(&mut self, at: u32, origin: &RecordContext, timestamp_ms: i64, headers: &Headers) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        if !std::mem::replace(&mut slot.unserialized, true) {
            self.to_serialize.push(at);
        }
        match &mut slot.context {
            Some(context) => context.move_to(origin, timestamp_ms, headers),
            None => {
                let mut context = origin.without_raw();
                context.move_to(origin, timestamp_ms, headers);
                slot.context = Some(context);
                self.dirty.push(at);
            }
        }
    }

    /// The entries that are dirty now are to be flushed, in the order in which they became dirty; what becomes dirty
    /// meanwhile waits for the next flush.
    pub(crate) fn begin_flush(&mut self) {
        if self.flushing.is_empty() {
            std::mem::swap(&mut self.dirty, &mut self.flushing);
            self.flushing.reverse();
        }
    }

    /// The next entry of the flush.
    pub(crate) fn next_to_flush(&mut self) -> Option<u32> {
        self.flushing.pop()
    }

    /// The entries to be looked at by a scan; the list is empty afterwards.
    pub(crate) fn take_unserialized(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.to_serialize)
    }

    /// Forgets the entries of that list that a flush has written.
    pub(crate) fn forget_serialized(&mut self) {
        let Cache {
            slots, to_serialize, ..
        } = self;
        to_serialize.retain(|at| slots.get(*at as usize).is_some_and(|slot| slot.unserialized));
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !(self.dirty.is_empty() && self.flushing.is_empty())
    }

    /// Forgets an entry; the task's bytes have the truth.
    pub(crate) fn remove(&mut self, at: u32) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        let key = std::mem::take(&mut slot.key);
        self.charged -= slot.charged;
        slot.charged = 0;
        slot.held = Held::Out;
        slot.context = None;
        slot.unserialized = false;
        slot.old = None;
        if let Ok(entry) = self.index.find_entry(hash(&key), |found| *found == at) {
            entry.remove();
        }
        self.dirty.retain(|dirty| *dirty != at);
        self.unlink(at);
        self.free.push(at);
    }

    /// Forgets the clean entries whose key is `dead`; the task's bytes have the truth.
    pub(crate) fn forget(&mut self, dead: impl Fn(&[u8]) -> bool) {
        for at in 0..u32::try_from(self.slots.len()).unwrap_or(NONE) {
            let goes = |slot: &Slot<V>| slot.charged > 0 && slot.context.is_none() && dead(&slot.key);
            if self.slot(at).is_some_and(goes) {
                self.remove(at);
            }
        }
    }

    /// The clean entry that was not used for the longest time.
    pub(crate) fn oldest_clean(&self) -> Option<u32> {
        let mut at = self.oldest;
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.context.is_none() {
                return Some(at);
            }
            at = slot.newer;
        }
        None
    }

    /// Charges an entry anew after its serialized length became known: length or in-memory size, whichever is more.
    pub(crate) fn recharge(&mut self, at: u32, value_len: usize) {
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.value_len = value_len;
            let charge = ENTRY_OVERHEAD_BYTES + slot.key.len() + size_of::<V>() + value_len;
            self.charged = self.charged + charge - slot.charged;
            slot.charged = charge;
        }
    }

    pub(crate) fn charged(&self) -> usize {
        self.charged
    }

    fn touch(&mut self, at: u32) {
        if self.newest != at {
            self.unlink(at);
            self.link_newest(at);
        }
    }

    fn link_newest(&mut self, at: u32) {
        let before = self.newest;
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.older = before;
            slot.newer = NONE;
        }
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let Some(slot) = self.slots.get(at as usize) else {
            return;
        };
        let (newer, older) = (slot.newer, slot.older);
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn keys_by_age(cache: &mut Cache<i64>) -> Vec<u8> {
        let mut keys = Vec::new();
        while let Some(at) = cache.oldest_clean() {
            keys.push(cache.slot(at).unwrap().key[0]);
            cache.remove(at);
        }
        keys
    }

    #[test]
    fn the_entry_longest_unused_goes_first() {
        let mut cache = Cache::default();
        for key in b"abc" {
            cache.insert(&[*key], Held::Value(1, 0), 8);
        }
        cache.find(b"a").unwrap();
        assert_eq!(keys_by_age(&mut cache), b"bca");
        assert_eq!(cache.charged(), 0);
    }

    #[test]
    fn forgetting_takes_clean_entries_alone_and_their_slots_are_used_again() {
        let mut cache = Cache::default();
        let slots = [b"a", b"b", b"c"].map(|key| cache.insert(key, Held::Value(1, 0), 8));
        cache.mark_dirty(slots[0], &RecordContext::of_punctuation(5), 5, Headers::empty());
        cache.forget(|key| key < b"c".as_slice());
        cache.forget(|key| key < b"c".as_slice());
        assert!(cache.find(b"a").is_some() && cache.find(b"b").is_none() && cache.find(b"c").is_some());
        assert_eq!(cache.insert(b"d", Held::Absent, 0), slots[1]);
        assert_eq!(cache.insert(b"e", Held::Absent, 0), 3);
    }

    #[test]
    fn slots_are_used_again_and_dirty_entries_stay() {
        let mut cache = Cache::default();
        let first = cache.insert(b"a", Held::Value(1, 0), 8);
        let second = cache.insert(b"b", Held::Value(2, 0), 8);
        cache.mark_dirty(first, &RecordContext::of_punctuation(5), 5, Headers::empty());
        assert_eq!(cache.oldest_clean(), Some(second));
        cache.remove(second);
        assert_eq!(cache.oldest_clean(), None);
        assert_eq!(cache.insert(b"c", Held::Absent, 0), second);
        cache.begin_flush();
        assert_eq!((cache.next_to_flush(), cache.next_to_flush()), (Some(first), None));
        assert!(cache.find(b"b").is_none());
    }
}
