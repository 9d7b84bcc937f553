//! The committed view, from any thread.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};

use crate::durable::{Database, DatabaseSnapshot};
use crate::error::StateError;
use crate::family::Published;
use crate::memory::MemoryStore;
use crate::range::{Direction, KeyRange, RangeIter};
use crate::session::{SessionIter, SessionLayout, SessionSlice};
use crate::spec::{StoreId, StoreKind, StoreSpec};
use crate::store::KeyValueStore;
use crate::versioned::{VersionLayout, VersionRow, Versioned};
use crate::window::{WindowIter, WindowLayout, WindowSlice};

/// Where a store's committed rows are, and how they are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Memory(usize),
    #[cfg_attr(not(feature = "rocksdb"), allow(dead_code))]
    Durable(usize),
}

/// What readers need to know of a task; never changes.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) task: String,
    pub(crate) stores: Vec<(StoreSpec, Place)>,
}

impl Shape {
    pub(crate) fn store(&self, id: StoreId) -> Result<&(StoreSpec, Place), StateError> {
        let unknown = || StateError::UnknownStore {
            task: self.task.clone(),
            store: id.index().to_string(),
        };
        self.stores.get(id.index()).ok_or_else(unknown)
    }

    pub(crate) fn id(&self, name: &str) -> Option<StoreId> {
        let number = self.stores.iter().position(|(spec, _)| spec.name == name)?;
        Some(StoreId(u32::try_from(number).ok()?))
    }

    pub(crate) fn window(&self, id: StoreId) -> Result<WindowLayout, StateError> {
        let (spec, _) = self.store(id)?;
        match spec.kind {
            StoreKind::Window {
                segment_interval_ms,
                retain_duplicates,
                ..
            } => Ok(WindowLayout {
                segment_interval_ms,
                retain_duplicates,
            }),
            other => Err(self.wrong_kind(spec, other.label(), "window")),
        }
    }

    pub(crate) fn versions(&self, id: StoreId) -> Result<VersionLayout, StateError> {
        let (spec, _) = self.store(id)?;
        match spec.kind {
            StoreKind::Versioned {
                history_retention_ms,
                segment_interval_ms,
            } => Ok(VersionLayout {
                history_retention_ms,
                segment_interval_ms,
            }),
            other => Err(self.wrong_kind(spec, other.label(), "versioned")),
        }
    }

    pub(crate) fn expiring(&self, id: StoreId) -> Result<(), StateError> {
        let (spec, _) = self.store(id)?;
        match spec.kind {
            StoreKind::Expiring { .. } => Ok(()),
            other => Err(self.wrong_kind(spec, other.label(), "expiring")),
        }
    }

    pub(crate) fn session(&self, id: StoreId) -> Result<SessionLayout, StateError> {
        let (spec, _) = self.store(id)?;
        match spec.kind {
            StoreKind::Session {
                segment_interval_ms, ..
            } => Ok(SessionLayout { segment_interval_ms }),
            other => Err(self.wrong_kind(spec, other.label(), "session")),
        }
    }

    /// The bucket width of a window or session store.
    pub(crate) fn bucket_ms(&self, id: StoreId) -> Result<i64, StateError> {
        let (spec, _) = self.store(id)?;
        match spec.kind {
            StoreKind::Window {
                segment_interval_ms, ..
            }
            | StoreKind::Session {
                segment_interval_ms, ..
            } => Ok(segment_interval_ms),
            other => Err(self.wrong_kind(spec, other.label(), "window")),
        }
    }

    pub(crate) fn key_value(&self, id: StoreId) -> Result<(), StateError> {
        let (spec, _) = self.store(id)?;
        match spec.kind {
            StoreKind::KeyValue => Ok(()),
            other => Err(self.wrong_kind(spec, other.label(), "key-value")),
        }
    }

    fn wrong_kind(&self, spec: &StoreSpec, found: &'static str, wanted: &'static str) -> StateError {
        StateError::WrongKind {
            task: self.task.clone(),
            store: spec.name.clone(),
            found,
            wanted,
        }
    }
}

/// Takes snapshots of a task's committed state, from any thread, while the task goes on. Does not keep the state open.
#[derive(Debug, Clone)]
pub struct StateReader {
    pub(crate) shape: Arc<Shape>,
    pub(crate) published: Published,
    pub(crate) database: Option<Weak<Database>>,
    /// Held by the task alone; gone when the task was closed.
    pub(crate) alive: Weak<()>,
}

impl StateReader {
    /// The committed state now, of all stores at one commit.
    ///
    /// # Errors
    /// [`StateError::Closed`] when the task was closed.
    pub fn snapshot(&self) -> Result<StateSnapshot, StateError> {
        let closed = || StateError::Closed {
            task: self.shape.task.clone(),
        };
        if self.alive.strong_count() == 0 {
            return Err(closed());
        }
        let database = match &self.database {
            Some(database) => Some(database.upgrade().ok_or_else(closed)?),
            None => None,
        };
        // Under the lock that an apply holds from its batch to its in-memory rows: both parts are of one commit.
        Ok(self.published.read(|committed| StateSnapshot {
            shape: Arc::clone(&self.shape),
            memory: committed.stores.clone(),
            input_offsets: Arc::clone(&committed.input_offsets),
            database: database.as_ref().map(|database| Arc::new(database.snapshot())),
        }))
    }
}

/// Committed state at one moment. Keeps the state's files: drop it when the query is answered.
#[derive(Debug, Clone)]
pub struct StateSnapshot {
    shape: Arc<Shape>,
    memory: Vec<MemoryStore>,
    input_offsets: Arc<BTreeMap<(String, i32), i64>>,
    database: Option<Arc<DatabaseSnapshot>>,
}

impl StateSnapshot {
    /// The store of this name.
    #[must_use]
    pub fn store_id(&self, name: &str) -> Option<StoreId> {
        self.shape.id(name)
    }

    /// Next offset of each input, (topic, partition), that this state contains: its position.
    #[must_use]
    pub fn input_offsets(&self) -> &BTreeMap<(String, i32), i64> {
        &self.input_offsets
    }

    /// Lends the committed value of a key of a key-value store.
    ///
    /// # Errors
    /// Unknown store, a window store, or the storage could not be read.
    pub fn get(&self, id: StoreId, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        self.shape.key_value(id)?;
        self.raw_get(id, key, read)
    }

    /// A copy of the committed value of a key of a key-value store.
    ///
    /// # Errors
    /// As [`StateSnapshot::get`].
    pub fn get_vec(&self, id: StoreId, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        let mut copy = None;
        self.get(id, key, &mut |value| copy = value.map(<[u8]>::to_vec))?;
        Ok(copy)
    }

    /// Committed rows between two bounds of a key-value store.
    ///
    /// # Errors
    /// As [`StateSnapshot::get`].
    pub fn range(
        &self,
        id: StoreId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        self.shape.key_value(id)?;
        self.raw_range(id, &KeyRange::new(lower, upper), direction)
    }

    /// Committed rows whose key begins with `prefix`.
    ///
    /// # Errors
    /// As [`StateSnapshot::get`].
    pub fn prefix(&self, id: StoreId, prefix: &[u8], direction: Direction) -> Result<RangeIter, StateError> {
        self.shape.key_value(id)?;
        self.raw_range(id, &KeyRange::prefix(prefix), direction)
    }

    /// A copy of the committed value of `key` in the window that starts at `start_ms`.
    ///
    /// # Errors
    /// Unknown store, not a window store, or the storage could not be read.
    pub fn window_fetch(&self, id: StoreId, key: &[u8], start_ms: i64) -> Result<Option<Vec<u8>>, StateError> {
        let local = self.shape.window(id)?.row_key(key, start_ms);
        let mut copy = None;
        self.raw_get(id, &local, &mut |value| copy = value.map(<[u8]>::to_vec))?;
        Ok(copy)
    }

    /// Committed rows of a window store: keys between two bounds, windows that start between two times (both included).
    ///
    /// # Errors
    /// As [`StateSnapshot::window_fetch`].
    pub fn window_fetch_range(
        &self,
        id: StoreId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<WindowIter, StateError> {
        let layout = self.shape.window(id)?;
        let slice = WindowSlice::new(lower, upper, from_ms, to_ms);
        let rows = self.raw_range(id, &slice.local_range(&layout), direction)?;
        Ok(WindowIter::new(rows, slice))
    }

    /// The committed version of a key that was valid at a time, as [`Versioned::get_as_of`]; `i64::MAX` = the newest.
    ///
    /// # Errors
    /// Unknown store, not a versioned store, or the storage could not be read.
    pub fn version_as_of(&self, id: StoreId, key: &[u8], as_of_ms: i64) -> Result<Option<VersionRow>, StateError> {
        self.version_rows(id)?.get_as_of(key, as_of_ms)
    }

    /// The committed versions of a key, as [`Versioned::versions`].
    ///
    /// # Errors
    /// As [`StateSnapshot::version_as_of`].
    pub fn versions(
        &self,
        id: StoreId,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<Vec<VersionRow>, StateError> {
        self.version_rows(id)?.versions(key, from_ms, to_ms, direction)
    }

    fn version_rows(&self, id: StoreId) -> Result<Versioned<ReadOnly<'_>>, StateError> {
        let layout = self.shape.versions(id)?;
        Ok(Versioned::new(ReadOnly { snapshot: self, id }, layout))
    }

    /// Committed sessions of a key that end at or after `from_end_ms` and start at or before `to_start_ms`, by their end.
    ///
    /// # Errors
    /// Unknown store, not a session store, or the storage could not be read.
    pub fn session_find(
        &self,
        id: StoreId,
        key: &[u8],
        from_end_ms: i64,
        to_start_ms: i64,
    ) -> Result<SessionIter, StateError> {
        let layout = self.shape.session(id)?;
        let slice = SessionSlice::of_key(key, from_end_ms, to_start_ms);
        let (lower, upper) = slice.bounds(&layout);
        let range = KeyRange::new(Bound::Included(&lower), Bound::Excluded(&upper));
        Ok(SessionIter::new(self.raw_range(id, &range, Direction::Forward)?, slice))
    }

    fn raw_get(&self, id: StoreId, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        match (self.shape.store(id)?.1, &self.database) {
            (Place::Durable(family), Some(database)) => database.get(family, key, read),
            (Place::Memory(number), _) => {
                read(self.memory.get(number).and_then(|store| store.value(key)));
                Ok(())
            }
            (Place::Durable(_), None) => Err(StateError::Closed {
                task: self.shape.task.clone(),
            }),
        }
    }

    fn raw_range(&self, id: StoreId, range: &KeyRange, direction: Direction) -> Result<RangeIter, StateError> {
        let place = self.shape.store(id)?.1;
        if range.is_empty() {
            return Ok(RangeIter::merge(Vec::new(), direction));
        }
        let cursor = match (place, &self.database) {
            (Place::Durable(family), Some(database)) => database.cursor(family, range, direction)?,
            (Place::Memory(number), _) => match self.memory.get(number) {
                Some(store) => Box::new(store.cursor_of(range, direction)),
                None => return Ok(RangeIter::merge(Vec::new(), direction)),
            },
            (Place::Durable(_), None) => {
                return Err(StateError::Closed {
                    task: self.shape.task.clone(),
                });
            }
        };
        Ok(RangeIter::merge(vec![cursor], direction))
    }
}

/// The local rows of a snapshot's store, for code that is written against [`KeyValueStore`].
struct ReadOnly<'a> {
    snapshot: &'a StateSnapshot,
    id: StoreId,
}

impl ReadOnly<'_> {
    fn refuse(&self) -> StateError {
        StateError::EpochOrder {
            task: self.snapshot.shape.task.clone(),
            reason: "a write to a snapshot, which can only be read",
        }
    }
}

impl KeyValueStore for ReadOnly<'_> {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), StateError> {
        self.snapshot.raw_get(self.id, key, read)
    }

    fn put(&mut self, _: &[u8], _: Option<&[u8]>) -> Result<(), StateError> {
        Err(self.refuse())
    }

    fn range(
        &mut self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<RangeIter, StateError> {
        self.snapshot
            .raw_range(self.id, &KeyRange::new(lower, upper), direction)
    }

    fn delete_below(&mut self, _: &[u8]) -> Result<(), StateError> {
        Err(self.refuse())
    }
}
