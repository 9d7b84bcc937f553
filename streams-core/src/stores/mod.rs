//! Typed stores: what nodes see of a task's state. Values stay deserialized in a write-back cache, which is Java's
//! record cache and the top of the transaction overlay in one.

mod bytes;
mod cache;
mod decode;
mod flush;
mod global;
mod join_unmatched;
mod join_window;
mod layout;
mod lru;
mod managed;
mod pending;
mod read;
mod session;
mod suppress;
mod table;
#[cfg(test)]
mod tests;
mod ttl;
mod typed;
mod versioned;
mod window;
mod window_ends;
mod window_rows;

#[cfg(feature = "fuzzing")]
pub(crate) use decode::read_stored_value;
pub use global::{GlobalStore, GlobalStores};
pub use join_unmatched::{CloseTimes, Unmatched, UnmatchedStore};
pub use join_window::{JoinRows, JoinWindowOptions, JoinWindowStore};
pub use layout::{KeyValueLayout, Layout, SessionLayout, WindowLayout};
pub use lru::LruStore;
pub use managed::{
    CacheBudget, Changelog, FlushListener, ManagedStore, StoreBuilder, StoreFactory, StoreFormats, TaskStores,
    ValueAndTimestamp,
};
pub use pending::{InWindows, PendingWindows};
pub use read::Rows;
pub use suppress::{Released, SuppressBuffer};
pub use table::TableStore;
pub(crate) use ttl::dies_at;
pub use ttl::{DIES_AT_HEADER, LivingRows, TtlStore};
pub use typed::{StoreOptions, TypedStore, Update};
pub use versioned::{VersionedStore, VersionedValue};
pub use window_ends::{WindowEnds, WindowRule};
pub use window_rows::{StoredWindow, WindowRows};

pub use streams_state::{Direction, VersionPut};

/// A key-value store of typed keys and values. Java: `TimestampedKeyValueStore` (and `KeyValueStore` without times).
pub type KeyValueStore<K, V> = TypedStore<KeyValueLayout<K>, V>;

/// A window store: values by key and window start. Java: `TimestampedWindowStore`.
pub type WindowStore<K, V> = TypedStore<WindowLayout<K>, V>;

/// A session store: values by key and session. Java: `SessionStore`.
pub type SessionStore<K, V> = TypedStore<SessionLayout<K>, V>;
