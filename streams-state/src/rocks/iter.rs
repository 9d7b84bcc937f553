//! A RocksDB iterator that owns what it reads. An iterator of RocksDB sees the state at its creation.

use std::sync::Arc;

use rocksdb::{DB, DBRawIteratorWithThreadMode, ReadOptions};
use self_cell::self_cell;

use super::{Database, DatabaseSnapshot};
use crate::error::StateError;
use crate::range::{Cursor, Direction, KeyRange, LayerRow};

/// What an iterator reads, and keeps open.
pub(super) enum Source {
    Live(Arc<Database>),
    Snapshot(Arc<DatabaseSnapshot>),
}

impl Source {
    fn database(&self) -> &Database {
        match self {
            Self::Live(database) => database,
            Self::Snapshot(snapshot) => snapshot.database(),
        }
    }

    fn iterator(&self, family: usize, options: ReadOptions) -> Result<RawIterator<'_>, StateError> {
        let handle = self.database().family(family)?;
        Ok(match self {
            Self::Live(database) => database.db().raw_iterator_cf_opt(handle, options),
            Self::Snapshot(snapshot) => snapshot.0.borrow_dependent().raw_iterator_cf_opt(handle, options),
        })
    }
}

type RawIterator<'db> = DBRawIteratorWithThreadMode<'db, DB>;

self_cell!(
    struct OwnedIterator {
        owner: Source,
        #[covariant]
        dependent: RawIterator,
    }
);

/// Ordered reading of a family.
pub(super) struct RocksCursor {
    iterator: OwnedIterator,
    direction: Direction,
}

impl RocksCursor {
    pub(super) fn new(
        source: Source,
        family: usize,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Self, StateError> {
        let mut options = ReadOptions::default();
        if !range.from.is_empty() {
            options.set_iterate_lower_bound(range.from.clone());
        }
        if let Some(until) = &range.until {
            options.set_iterate_upper_bound(until.clone());
        }
        let iterator = OwnedIterator::try_new(source, |source| source.iterator(family, options))?;
        let mut cursor = Self { iterator, direction };
        cursor.step(|iterator, direction| match direction {
            Direction::Forward => iterator.seek_to_first(),
            Direction::Reverse => iterator.seek_to_last(),
        })?;
        Ok(cursor)
    }

    fn step(&mut self, step: impl FnOnce(&mut RawIterator<'_>, Direction)) -> Result<(), StateError> {
        let direction = self.direction;
        self.iterator.with_dependent_mut(|source, iterator| {
            step(iterator, direction);
            if iterator.valid() {
                return Ok(());
            }
            iterator
                .status()
                .map_err(|error| source.database().scope.error("read", error))
        })
    }
}

impl Cursor for RocksCursor {
    fn current(&self) -> Option<LayerRow<'_>> {
        let (key, value) = self.iterator.borrow_dependent().item()?;
        Some(LayerRow {
            key,
            value: Some(value),
        })
    }

    fn advance(&mut self) -> Result<(), StateError> {
        self.step(|iterator, direction| match direction {
            // Stepping beyond the end is not allowed there.
            _ if !iterator.valid() => {}
            Direction::Forward => iterator.next(),
            Direction::Reverse => iterator.prev(),
        })
    }

    fn seek(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.step(|iterator, direction| match direction {
            Direction::Forward => iterator.seek(key),
            Direction::Reverse => iterator.seek_for_prev(key),
        })
    }
}
