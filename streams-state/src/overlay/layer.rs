//! One layer of writes: a hash table over an arena, with an ordered index once a range was read.

use std::hash::Hasher;
use std::sync::Arc;

use hashbrown::HashTable;

use super::arena::{Arena, Place};
use super::index::{Position, SlotIndex};
use crate::error::StateError;
use crate::range::{Cursor, Direction, KeyRange, LayerRow};

/// One change of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Every key below this one is gone. Comes before the rows of its layer.
    DeleteBelow(&'a [u8]),
    /// The key has this value now.
    Put(&'a [u8], &'a [u8]),
    /// The key is gone.
    Delete(&'a [u8]),
}

/// What a layer says about a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    Value(&'a [u8]),
    Deleted,
    /// Ask the layer below.
    Nothing,
}

/// Hash of a key in every layer, so that a lookup hashes once.
pub(super) fn hash_key(key: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(key);
    hasher.finish()
}

/// Value length that says "deleted".
const TOMBSTONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u64,
    place: Place,
    key_len: u32,
    value_len: u32,
    /// Bytes kept for the value behind the key.
    room: u32,
}

/// Writes of (a part of) an epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    arena: Arena,
    index: Option<SlotIndex>,
    /// Rows below this key are gone in every layer beneath.
    deleted_below: Option<Vec<u8>>,
}

impl Layer {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.deleted_below.is_none()
    }

    pub(super) fn rows(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let index = self.index.as_ref().map_or(0, |index| index.len() * 8);
        self.arena.allocated() + self.slots.capacity() * size_of::<Slot>() + self.table.capacity() * 5 + index
    }

    pub(super) fn deleted_below(&self) -> Option<&[u8]> {
        self.deleted_below.as_deref()
    }

    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Found<'_> {
        match self.find(hash, key) {
            Some(slot) => self.value(slot).map_or(Found::Deleted, Found::Value),
            None if self.deleted_below().is_some_and(|bound| key < bound) => Found::Deleted,
            None => Found::Nothing,
        }
    }

    pub(super) fn put(&mut self, hash: u64, key: &[u8], value: Option<&[u8]>) {
        let bytes = value.unwrap_or_default();
        let value_len = if value.is_some() { bytes.len() as u32 } else { TOMBSTONE };
        let Some(number) = self.find(hash, key) else {
            return self.insert(hash, key, bytes, value_len);
        };
        let Some(slot) = self.slots.get_mut(number as usize) else {
            return;
        };
        slot.value_len = value_len;
        if bytes.len() <= slot.room as usize {
            self.arena.overwrite(slot.place, slot.key_len, bytes);
        } else {
            slot.place = self.arena.push(key, bytes);
            slot.room = bytes.len() as u32;
        }
    }

    fn insert(&mut self, hash: u64, key: &[u8], bytes: &[u8], value_len: u32) {
        let place = self.arena.push(key, bytes);
        let number = self.slots.len() as u32;
        self.slots.push(Slot {
            hash,
            place,
            key_len: key.len() as u32,
            value_len,
            room: bytes.len() as u32,
        });
        let slots = &self.slots;
        self.table.insert_unique(hash, number, |other| {
            slots.get(*other as usize).map_or(0, |slot| slot.hash)
        });
        if let Some(mut index) = self.index.take() {
            index.insert(number, key, |other| self.key(other));
            self.index = Some(index);
        }
    }

    /// Everything below `bound` is gone, here and beneath.
    pub(super) fn delete_below(&mut self, bound: &[u8]) {
        let hidden = (0..self.slots.len() as u32)
            .filter(|slot| self.key(*slot) < bound)
            .collect::<Vec<_>>();
        for slot in hidden {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.value_len = TOMBSTONE;
            }
        }
        if self.deleted_below().is_none_or(|old| old < bound) {
            self.deleted_below = Some(bound.to_vec());
        }
    }

    /// Takes over the writes of a newer layer.
    pub(super) fn absorb(&mut self, newer: &Layer) {
        newer.changes(&mut |change| match change {
            Change::DeleteBelow(bound) => self.delete_below(bound),
            Change::Put(key, value) => self.put(hash_key(key), key, Some(value)),
            Change::Delete(key) => self.put(hash_key(key), key, None),
        });
    }

    /// The layer's writes: the deletion of old keys first, then the rows.
    pub(super) fn changes(&self, sink: &mut dyn FnMut(Change<'_>)) {
        if let Some(bound) = self.deleted_below() {
            sink(Change::DeleteBelow(bound));
        }
        for number in self.in_order() {
            let key = self.key(number);
            match self.value(number) {
                Some(value) => sink(Change::Put(key, value)),
                // What lies below the bound was deleted with it.
                None if self.deleted_below().is_some_and(|bound| key < bound) => {}
                None => sink(Change::Delete(key)),
            }
        }
    }

    /// The slots by key: what is written in this order is inserted with less searching.
    fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.slots.len() as u32).collect();
        order.sort_unstable_by(|a, b| self.key(*a).cmp(self.key(*b)));
        order
    }

    pub(super) fn min_key(&self) -> Option<&[u8]> {
        (0..self.slots.len() as u32).map(|slot| self.key(slot)).min()
    }

    /// Makes the ordered index, if it is not there yet.
    pub(super) fn make_index(&mut self) {
        if self.index.is_none() {
            let order = self.in_order();
            self.index = Some(SlotIndex::from_sorted(&order));
        }
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let same = |number: &u32| {
            self.slots.get(*number as usize).is_some_and(|slot| {
                slot.hash == hash
                    && slot.key_len as usize == key.len()
                    && self.arena.get(slot.place, 0, slot.key_len) == key
            })
        };
        self.table.find(hash, same).copied()
    }

    fn key(&self, slot: u32) -> &[u8] {
        self.slots
            .get(slot as usize)
            .map_or(&[], |slot| self.arena.get(slot.place, 0, slot.key_len))
    }

    fn value(&self, slot: u32) -> Option<&[u8]> {
        let slot = self
            .slots
            .get(slot as usize)
            .filter(|slot| slot.value_len != TOMBSTONE)?;
        Some(self.arena.get(slot.place, slot.key_len, slot.value_len))
    }
}

/// Ordered reading of a sealed layer.
pub(super) struct LayerCursor {
    layer: Arc<Layer>,
    range: KeyRange,
    direction: Direction,
    position: Option<Position>,
}

impl LayerCursor {
    /// A cursor over a layer that has its index; without one it sees nothing.
    pub(super) fn new(layer: Arc<Layer>, range: KeyRange, direction: Direction) -> Self {
        let mut cursor = Self {
            layer,
            range,
            direction,
            position: None,
        };
        cursor.position = match direction {
            Direction::Forward => cursor.at_or_above(&cursor.range.from),
            Direction::Reverse => cursor.last_of_range(),
        };
        cursor
    }

    fn at_or_above(&self, key: &[u8]) -> Option<Position> {
        Some(self.layer.index.as_ref()?.lower_bound(key, |slot| self.layer.key(slot)))
    }

    fn last_of_range(&self) -> Option<Position> {
        let index = self.layer.index.as_ref()?;
        let end = match &self.range.until {
            Some(until) => self.at_or_above(until)?,
            None => index.end(),
        };
        index.previous(end)
    }

    fn slot(&self) -> Option<u32> {
        let slot = self.layer.index.as_ref()?.slot(self.position?)?;
        self.range.contains(self.layer.key(slot)).then_some(slot)
    }
}

impl Cursor for LayerCursor {
    fn current(&self) -> Option<LayerRow<'_>> {
        let slot = self.slot()?;
        Some(LayerRow {
            key: self.layer.key(slot),
            value: self.layer.value(slot),
        })
    }

    fn advance(&mut self) -> Result<(), StateError> {
        if let (Some(index), Some(position)) = (&self.layer.index, self.position) {
            self.position = match self.direction {
                Direction::Forward => Some(index.next(position)),
                Direction::Reverse => index.previous(position),
            };
        }
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.position = match self.direction {
            Direction::Forward => self.at_or_above(key.max(&self.range.from)),
            Direction::Reverse if self.range.until.as_deref().is_some_and(|until| key >= until) => self.last_of_range(),
            Direction::Reverse => match (self.at_or_above(key), self.layer.index.as_ref()) {
                (Some(found), Some(index)) => match index.slot(found) {
                    Some(slot) if self.layer.key(slot) == key => Some(found),
                    _ => index.previous(found),
                },
                _ => None,
            },
        };
        Ok(())
    }
}
