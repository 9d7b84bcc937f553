//! State of a stream task as bytes: stores, the transaction overlay above them, and the metadata that says how far they
//! have come.
//!
//! A task's state is a [`TaskState`]: one database (RocksDB, or memory), a family per store, a metadata family. What an
//! epoch writes stays in an overlay until its transaction is committed; then rows and metadata reach the base in one
//! batch ([`TaskState::freeze`], [`TaskState::apply`]). So the base is at some committed point whenever the process dies,
//! and is never wiped for it. [`StateDirectory`] owns what a process has on disk: lock, format marker, identity, memory.
//!
//! This crate knows topics as names only, no client, no clock and no thread.
//!
//! ```
//! use streams_state::{EpochMetadata, StoreSpec, TaskState};
//! # fn main() -> Result<(), streams_state::StateError> {
//! let mut state = TaskState::in_memory("0_0", vec![StoreSpec::key_value("counts")])?;
//! let counts = state.store_id("counts").unwrap();
//! state.put(counts, b"k", Some(b"1"))?;
//! state.freeze()?;
//! state.put(counts, b"k", Some(b"2"))?; // the next epoch, while the first is being committed
//! state.apply(&EpochMetadata::default())?;
//! state.drop_open(); // abort
//! assert_eq!(state.get_vec(counts, b"k")?, Some(b"1".to_vec()));
//! # Ok(())
//! # }
//! ```

mod assess;
mod budget;
pub mod codec;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod directory;
mod durable;
mod error;
mod expiring;
mod family;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod memory;
mod memory_disk;
mod metadata;
pub mod overlay;
mod range;
#[cfg(feature = "rocksdb")]
mod rocks;
mod session;
mod snapshot;
mod spec;
mod store;
mod task;
mod versioned;
mod window;

pub use assess::{
    ChangelogFacts, Cleanup, InputDisagreement, RestoreReason, StopReason, Verdict, assess, disagreeing_inputs,
};
pub use budget::{MemoryBudget, MemorySource, OVERLAY_COPIES};
pub use directory::{IdentityOrigin, ProcessIdentity, StateDirectory, StateDirectoryConfig, TaskDirectory};
pub use error::{BoxError, StateError};
pub use expiring::{DeadKeys, Expiring, ExpiringRows, NEVER_MS};
pub use memory::MemoryStore;
pub use memory_disk::MemoryDisk;
pub use metadata::{EpochMetadata, StoreMetadata};
pub use overlay::Overlay;
pub use range::{Cursor, Direction, KeyRange, LayerRow, RangeIter};
pub use session::{SessionIter, SessionLayout, SessionRow, Sessions};
pub use snapshot::{StateReader, StateSnapshot};
pub use spec::{PROPERTY_NAMES, StoreId, StoreKind, StoreSpec};
pub use store::{KeyValueStore, KeyValueStoreExt, SessionStore, WindowStore, WindowStoreExt};
pub use task::{StoreView, TaskState};
pub use versioned::{Version, VersionLayout, VersionPut, VersionRow, Versioned};
pub use window::{WindowIter, WindowLayout, WindowRow, Windowed};
