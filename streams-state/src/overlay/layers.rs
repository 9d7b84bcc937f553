//! The layers of one epoch of one store. An iterator seals the newest layer (rule 3.5): it keeps what it saw, and
//! later writes go to a new layer on top. As soon as no iterator looks at them any more, layers are merged again.

use std::sync::Arc;

use super::layer::{Change, Found, Layer, LayerCursor, hash_key};
use crate::range::{Cursor, Direction, KeyRange};

#[derive(Debug, Default)]
pub(super) struct Layers {
    /// Layers under `top`, oldest first. Usually none.
    sealed: Vec<Arc<Layer>>,
    top: Arc<Layer>,
}

impl Layers {
    pub(super) fn is_empty(&self) -> bool {
        self.top.is_empty() && self.sealed.is_empty()
    }

    pub(super) fn rows(&self) -> usize {
        self.oldest_first().map(|layer| layer.rows()).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.oldest_first().map(|layer| layer.bytes()).sum()
    }

    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Found<'_> {
        for layer in self.newest_first().filter(|layer| !layer.is_empty()) {
            let found = layer.get(hash, key);
            if found != Found::Nothing {
                return found;
            }
        }
        Found::Nothing
    }

    pub(super) fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.writable().put(hash_key(key), key, value);
    }

    pub(super) fn delete_below(&mut self, bound: &[u8]) {
        self.writable().delete_below(bound);
    }

    /// All writes, oldest layer first.
    pub(super) fn changes(&self, sink: &mut dyn FnMut(Change<'_>)) {
        self.oldest_first().for_each(|layer| layer.changes(sink));
    }

    pub(super) fn min_key(&self) -> Option<&[u8]> {
        self.oldest_first().filter_map(|layer| layer.min_key()).min()
    }

    /// Adds a cursor per layer, the newest first, and narrows `visible` to what the layers leave of those below.
    pub(super) fn push_cursors(
        &mut self,
        visible: &mut KeyRange,
        direction: Direction,
        cursors: &mut Vec<Box<dyn Cursor>>,
    ) {
        self.merge_unwatched();
        for layer in self.sealed.iter_mut().chain(std::iter::once(&mut self.top)) {
            // Fails only for a layer that an iterator holds, and that has its index for this reason.
            if let Some(layer) = Arc::get_mut(layer) {
                layer.make_index();
            }
        }
        for layer in self.newest_first().filter(|layer| !layer.is_empty()) {
            if layer.rows() > 0 && !visible.is_empty() {
                cursors.push(Box::new(LayerCursor::new(
                    Arc::clone(layer),
                    visible.clone(),
                    direction,
                )));
            }
            *visible = visible.at_least(layer.deleted_below());
        }
    }

    /// The newest layer, or a new one above it while an iterator holds it.
    fn writable(&mut self) -> &mut Layer {
        if Arc::strong_count(&self.top) > 1 {
            let held = std::mem::take(&mut self.top);
            self.sealed.push(held);
        }
        // The layer is ours alone here: only this type makes new references. So nothing is copied.
        Arc::make_mut(&mut self.top)
    }

    /// Merges the newest layers that no iterator holds any more.
    fn merge_unwatched(&mut self) {
        while let Some(mut below) = self.sealed.pop() {
            let (Some(older), Some(_)) = (Arc::get_mut(&mut below), Arc::get_mut(&mut self.top)) else {
                self.sealed.push(below);
                return;
            };
            older.absorb(&self.top);
            self.top = below;
        }
    }

    fn newest_first(&self) -> impl Iterator<Item = &Arc<Layer>> {
        std::iter::once(&self.top).chain(self.sealed.iter().rev())
    }

    fn oldest_first(&self) -> impl Iterator<Item = &Arc<Layer>> {
        self.sealed.iter().chain(std::iter::once(&self.top))
    }
}
