//! The committed base of one store: a family of the task's memory or of its database.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::StateError;
use crate::memory::MemoryStore;
use crate::overlay::{Change, CommittedStore};
use crate::range::{Cursor, Direction, KeyRange};

/// What is committed and not in the database: the in-memory stores and the position of the whole.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    pub(crate) stores: Vec<MemoryStore>,
    pub(crate) input_offsets: Arc<BTreeMap<(String, i32), i64>>,
}

/// The committed part that readers on other threads see. One lock for all: a snapshot takes everything at one commit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published(Arc<RwLock<Committed>>);

impl Published {
    pub(crate) fn add_store(&self) -> MemoryFamily {
        let number = self.write(|committed| {
            committed.stores.push(MemoryStore::new());
            committed.stores.len() - 1
        });
        MemoryFamily {
            published: self.clone(),
            number,
        }
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&Committed) -> R) -> R {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn write<R>(&self, change: impl FnOnce(&mut Committed) -> R) -> R {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One in-memory store of a task.
#[derive(Debug)]
pub(crate) struct MemoryFamily {
    published: Published,
    pub(crate) number: usize,
}

impl MemoryFamily {
    fn with<R>(&self, read: impl FnOnce(&MemoryStore) -> R) -> Option<R> {
        self.published
            .read(|committed| committed.stores.get(self.number).map(read))
    }

    pub(crate) fn len(&self) -> usize {
        self.with(MemoryStore::len).unwrap_or_default()
    }
}

/// Where a store's committed rows are.
#[derive(Debug)]
pub(crate) enum Family {
    Memory(MemoryFamily),
    #[cfg(feature = "rocksdb")]
    Rocks(crate::rocks::RocksFamily),
}

impl CommittedStore for Family {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        match self {
            Self::Memory(family) => {
                family.with(|store| read(store.value(key)));
                Ok(())
            }
            #[cfg(feature = "rocksdb")]
            Self::Rocks(family) => family.get(key, read),
        }
    }

    fn cursor(&self, range: &KeyRange, direction: Direction) -> Result<Box<dyn Cursor>, StateError> {
        match self {
            Self::Memory(family) => {
                let cursor = family.with(|store| store.cursor_of(range, direction));
                Ok(Box::new(
                    cursor.unwrap_or_else(|| MemoryStore::new().cursor_of(range, direction)),
                ))
            }
            #[cfg(feature = "rocksdb")]
            Self::Rocks(family) => family.cursor(range, direction),
        }
    }

    fn write(&mut self, changes: &mut dyn FnMut(&mut dyn FnMut(Change<'_>))) -> Result<(), StateError> {
        match self {
            Self::Memory(family) => family
                .published
                .write(|committed| match committed.stores.get_mut(family.number) {
                    Some(store) => store.write(changes),
                    None => Ok(()),
                }),
            #[cfg(feature = "rocksdb")]
            Self::Rocks(family) => family.write(changes),
        }
    }
}
