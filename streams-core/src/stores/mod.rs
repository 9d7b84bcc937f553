//! Typed stores: what nodes see of a task's state. Values stay deserialized in a write-back cache, which is Java's
//! record cache and the top of the transaction overlay in one.

mod cache;
mod decode;
mod flush;
mod global;
mod layout;
mod managed;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod ttl;
mod typed;
mod versioned;
mod window;

pub use global::{GlobalStore, GlobalStores};
pub use layout::{KeyValueLayout, Layout, WindowLayout};
pub use managed::{
    CacheBudget, Changelog, FlushListener, ManagedStore, StoreBuilder, StoreFactory, TaskStores, ValueAndTimestamp,
};
pub use read::Rows;
pub use table::TableStore;
pub(crate) use ttl::dies_at;
pub use ttl::{DIES_AT_HEADER, LivingRows, TtlStore};
pub use typed::{StoreOptions, TypedStore, Update};
pub use versioned::{VersionedStore, VersionedValue};

pub use streams_state::VersionPut;

/// A key-value store of typed keys and values. Java: `TimestampedKeyValueStore` (and `KeyValueStore` without times).
pub type KeyValueStore<K, V> = TypedStore<KeyValueLayout<K>, V>;

/// A window store: values by key and window start. Java: `TimestampedWindowStore`.
pub type WindowStore<K, V> = TypedStore<WindowLayout<K>, V>;
