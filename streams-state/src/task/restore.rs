//! Restoring a store from its changelog, straight into the base.

use std::borrow::Cow;

use super::TaskState;
use crate::codec::metadata::MetadataRow;
use crate::codec::session_key::SessionKey;
use crate::codec::window_key::WindowKey;
use crate::error::StateError;
use crate::metadata::StoreMetadata;
use crate::overlay::Change;
use crate::session::SessionLayout;
use crate::snapshot::Place;
use crate::spec::{StoreId, StoreKind};
use crate::window::WindowLayout;

impl TaskState {
    /// Applies changelog records (key as on the topic, value or deletion), in the order of their offsets, and the
    /// position behind them, in one batch.
    ///
    /// # Errors
    /// Unknown store, a window key that is none, writes of an epoch over the store, or the storage could not be
    /// written; then nothing of the batch was.
    pub fn restore<'r>(
        &mut self,
        id: StoreId,
        records: impl IntoIterator<Item = (&'r [u8], Option<&'r [u8]>)>,
        metadata: StoreMetadata,
    ) -> Result<(), StateError> {
        if self.is_versioned(id) || self.default_ttl_ms(id).is_some() {
            return match records.into_iter().next() {
                None => self.restore_gathered(id, metadata, |_| Ok(())),
                Some(_) => Err(self.out_of_order("restore of a store by plain rows, whose rows have times")),
            };
        }
        self.check_idle(id)?;
        self.check_disk()?;
        let (spec, place) = self.shape.store(id)?;
        let layout = match spec.kind {
            StoreKind::KeyValue | StoreKind::Versioned { .. } | StoreKind::Expiring { .. } => Layout::KeyValue,
            StoreKind::Window { .. } => Layout::Window(self.shape.window(id)?),
            StoreKind::Session { .. } => Layout::Session(self.shape.session(id)?),
        };
        let outlives = matches!(place, Place::Durable(_)) || (self.disk.is_some() && spec.persistent);
        if outlives && self.store(id)?.from_zero {
            let place = *place;
            let mut rows = Vec::new();
            for (key, value) in records {
                rows.push((local_key(layout, &spec.name, key)?, value));
            }
            return self.restore_in_bulk(id, place, &rows, metadata);
        }
        match (place, &self.database) {
            (Place::Durable(family), Some(database)) => {
                let mut batch = database.batch();
                for (key, value) in records {
                    let key = local_key(layout, &spec.name, key)?;
                    database.add(&mut batch, *family, change_of(&key, value));
                }
                database.add_row(&mut batch, &MetadataRow::Store(&spec.name, metadata));
                database.write(batch)?;
            }
            _ => {
                let mut rows = Vec::new();
                for (key, value) in records {
                    rows.push((local_key(layout, &spec.name, key)?, value));
                }
                self.change_memory(*place, |store| {
                    rows.iter()
                        .for_each(|(key, value)| store.change(change_of(key, *value)));
                });
            }
        }
        self.metadata.set_store(id, Some(metadata));
        self.store_mut(id)?.rows_from = 0;
        self.save();
        Ok(())
    }

    /// Keeps the last value of each key, and writes a file of rows when they hold too much memory.
    fn restore_in_bulk(
        &mut self,
        id: StoreId,
        place: Place,
        rows: &[(Cow<'_, [u8]>, Option<&[u8]>)],
        metadata: StoreMetadata,
    ) -> Result<(), StateError> {
        let most = self.bulk_bytes;
        let bulk = &mut self.store_mut(id)?.bulk;
        rows.iter().for_each(|(key, value)| bulk.add(key, *value));
        let full = bulk.bytes() >= most;
        self.metadata.set_store(id, Some(metadata));
        if full {
            self.keep_bulk(id, place, metadata)?;
        }
        Ok(())
    }

    /// The rows gathered go to disk, and behind them how far they go.
    fn keep_bulk(&mut self, id: StoreId, place: Place, metadata: StoreMetadata) -> Result<(), StateError> {
        self.write_bulk(id, place)?;
        // After the rows, so that a kill in between only reads some of them again.
        if let (Place::Durable(_), Some(database)) = (place, &self.database) {
            let (spec, _) = self.shape.store(id)?;
            let mut batch = database.batch();
            database.add_row(&mut batch, &MetadataRow::FromZero(&spec.name, Some(metadata)));
            database.write(batch)?;
        }
        self.store_mut(id)?.in_files = Some(metadata);
        self.save();
        Ok(())
    }

    /// A restore from zero ends before it is done: what it has gathered goes to disk, so that the next one, also after a
    /// restart, goes on behind it. Without such a restore nothing happens.
    ///
    /// # Errors
    /// Unknown store, or the storage could not be written; then what was gathered since the last file is read again.
    pub fn keep_full_restore(&mut self, id: StoreId) -> Result<(), StateError> {
        let store = self.store(id)?;
        let gathered = store.from_zero && store.bulk.bytes() > 0;
        match self.store_metadata(id).copied() {
            Some(metadata) if gathered => {
                self.check_disk()?;
                let place = self.shape.store(id)?.1;
                self.keep_bulk(id, place, metadata)
            }
            _ => Ok(()),
        }
    }

    /// The rows gathered go to disk: as a file, or in a batch when they are few and the only ones.
    fn write_bulk(&mut self, id: StoreId, place: Place) -> Result<(), StateError> {
        /// Below this a file costs more than it saves.
        const FEW_BYTES: usize = 1 << 20;
        let few = self.store(id)?.bulk.bytes() < FEW_BYTES.min(self.bulk_bytes);
        let bulk = &mut self.store_mut(id)?.bulk;
        let rows = bulk.take();
        bulk.has_files = true;
        let (Place::Durable(family), Some(database)) = (place, &self.database) else {
            self.change_memory(place, |store| {
                rows.iter()
                    .for_each(|(key, value)| store.change(change_of(key, value.as_deref())));
            });
            self.save();
            return Ok(());
        };
        if !few {
            return database.ingest(family, &rows);
        }
        let mut batch = database.batch();
        for (key, value) in &rows {
            database.add(&mut batch, family, change_of(key, value.as_deref()));
        }
        database.write(batch)
    }

    /// Begins a restore from zero: in one batch the store is marked and emptied, and its position forgotten. Until
    /// [`TaskState::finish_full_restore`] a start that finds the mark begins from an empty store again, or, when rows have
    /// reached the disk in files, goes on behind them: [`TaskState::store_metadata`] is then how far they go (rule 2.9).
    ///
    /// # Errors
    /// Unknown store, writes of an epoch over it, or the storage could not be written.
    pub fn begin_full_restore(&mut self, id: StoreId) -> Result<(), StateError> {
        self.check_idle(id)?;
        self.check_disk()?;
        let (spec, place) = self.shape.store(id)?;
        if let (Place::Durable(family), Some(database)) = (place, &self.database) {
            let mut batch = database.batch();
            database.add_row(&mut batch, &MetadataRow::FromZero(&spec.name, None));
            database.remove_row(&mut batch, &MetadataRow::Store(&spec.name, NO_METADATA));
            database.clear(&mut batch, *family)?;
            database.write(batch)?;
            database.reclaim(*family);
        }
        self.change_memory(*place, crate::memory::MemoryStore::clear);
        self.metadata.set_store(id, None);
        let store = self.store_mut(id)?;
        store.from_zero = true;
        store.expired_below = 0;
        store.bulk.clear();
        store.in_files = None;
        store.rows_from = 0;
        self.save();
        Ok(())
    }

    /// Ends a restore from zero: the position is stored and the mark removed, in one batch.
    ///
    /// # Errors
    /// No restore from zero was begun, or the storage could not be written.
    pub fn finish_full_restore(&mut self, id: StoreId, metadata: StoreMetadata) -> Result<(), StateError> {
        if !self.store(id)?.from_zero {
            return Err(self.out_of_order("finish of a full restore that was not begun"));
        }
        self.check_disk()?;
        let place = self.shape.store(id)?.1;
        self.write_bulk(id, place)?;
        let (spec, place) = self.shape.store(id)?;
        if let (Place::Durable(_), Some(database)) = (place, &self.database) {
            let mut batch = database.batch();
            database.add_row(&mut batch, &MetadataRow::Store(&spec.name, metadata));
            database.remove_row(&mut batch, &MetadataRow::FromZero(&spec.name, None));
            database.write(batch)?;
        }
        self.metadata.set_store(id, Some(metadata));
        let store = self.store_mut(id)?;
        store.from_zero = false;
        store.bulk.clear();
        store.in_files = None;
        self.save();
        Ok(())
    }

    /// True between the two calls above.
    ///
    /// # Errors
    /// Unknown store.
    pub fn is_restoring_from_zero(&self, id: StoreId) -> Result<bool, StateError> {
        Ok(self.store(id)?.from_zero)
    }

    pub(super) fn change_memory(&self, place: Place, change: impl FnOnce(&mut crate::memory::MemoryStore)) {
        if let Place::Memory(number) = place {
            self.published.write(|committed| {
                if let Some(store) = committed.stores.get_mut(number) {
                    change(store);
                }
            });
        }
    }

    pub(super) fn check_idle(&self, id: StoreId) -> Result<(), StateError> {
        let store = self.store(id)?;
        if store.overlay.is_dirty() || store.overlay.has_frozen() {
            return Err(self.out_of_order("restore of a store that an epoch wrote to: apply or drop the epoch first"));
        }
        Ok(())
    }
}

/// Only its key counts where a row is removed.
const NO_METADATA: StoreMetadata = StoreMetadata {
    changelog_topic_id: None,
    position: 0,
    own_commit: false,
    applied_at_ms: 0,
};

fn change_of<'a>(key: &'a [u8], value: Option<&'a [u8]>) -> Change<'a> {
    value.map_or(Change::Delete(key), |value| Change::Put(key, value))
}

/// How changelog keys become local ones.
#[derive(Clone, Copy)]
enum Layout {
    KeyValue,
    Window(WindowLayout),
    Session(SessionLayout),
}

fn local_key<'k>(layout: Layout, store: &str, key: &'k [u8]) -> Result<Cow<'k, [u8]>, StateError> {
    let (local, what) = match layout {
        Layout::KeyValue => return Ok(Cow::Borrowed(key)),
        Layout::Window(layout) => (
            WindowKey::from_changelog_key(key)
                .filter(|row| row.start_ms >= 0)
                .map(|row| layout.local_key(&row)),
            "no window key (key, start, sequence number)",
        ),
        Layout::Session(layout) => (
            SessionKey::from_changelog_key(key)
                .filter(|session| session.end_ms >= 0)
                .map(|session| layout.local_key(&session)),
            "no session key (key, end, start)",
        ),
    };
    local.map(Cow::Owned).ok_or_else(|| StateError::InvalidWindowKey {
        store: store.to_owned(),
        reason: format!(
            "its changelog holds a key of {} bytes that is {what}: is the topic the right one?",
            key.len()
        ),
    })
}
