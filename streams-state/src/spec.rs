//! What stores a task has.

use crate::error::StateError;

/// One store of a task: its name, its layout, and whether it survives the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSpec {
    /// The store's name; also its column family's name.
    pub name: String,
    /// Layout of its keys.
    pub kind: StoreKind,
    /// `true`: RocksDB; `false`: memory, restored from the beginning of its changelog at each start.
    pub persistent: bool,
}

/// Layout of a store's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// Plain keys.
    KeyValue,
    /// Rows of (key, window start, sequence number), kept in time buckets that are dropped as a whole.
    Window {
        /// How long a row is kept after its window's start, in milliseconds of event time. Only a note for the caller:
        /// the store drops nothing by itself.
        retention_ms: i64,
        /// Width of a bucket in milliseconds. Used when the store is created; a store on disk keeps the width it was
        /// created with.
        segment_interval_ms: i64,
        /// Rows of equal key and start are kept apart by a sequence number (join windows).
        retain_duplicates: bool,
    },
    /// Rows of (key, session end, session start), kept in time buckets by their end that are dropped as a whole.
    Session {
        /// How long a row is kept after its session's end, in milliseconds of event time. Only a note for the caller.
        retention_ms: i64,
        /// Width of a bucket in milliseconds. Used when the store is created; a store on disk keeps the width it was
        /// created with.
        segment_interval_ms: i64,
    },
    /// The versions of each key's value (KIP-889).
    Versioned {
        /// How long a version can be asked for after it has ended, and how late an update may come, in milliseconds of
        /// event time.
        history_retention_ms: i64,
        /// Width of a bucket in milliseconds. Used when the store is created; a store on disk keeps the width it was
        /// created with.
        segment_interval_ms: i64,
    },
    /// Rows that die, each at its own time.
    Expiring {
        /// How long rows live that do not say it, in milliseconds of event time after their own.
        default_ttl_ms: i64,
    },
}

impl StoreKind {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::KeyValue => "key-value",
            Self::Window { .. } => "window",
            Self::Versioned { .. } => "versioned",
            Self::Expiring { .. } => "expiring",
            Self::Session { .. } => "session",
        }
    }
}

impl StoreSpec {
    /// A persistent key-value store.
    #[must_use]
    pub fn key_value(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: StoreKind::KeyValue,
            persistent: true,
        }
    }

    /// A persistent window store with the default bucket width of Kafka Streams: `max(retention / 2, 60 s)`
    /// (`Stores.defaultSegmentInterval`). Times are milliseconds.
    #[must_use]
    pub fn window(name: impl Into<String>, retention_ms: i64, retain_duplicates: bool) -> Self {
        let segment_interval_ms = (retention_ms / 2).max(60_000);
        let kind = StoreKind::Window {
            retention_ms,
            segment_interval_ms,
            retain_duplicates,
        };
        Self {
            name: name.into(),
            kind,
            persistent: true,
        }
    }

    /// A persistent session store with the default bucket width of Kafka Streams: `max(retention / 2, 60 s)`. Times are
    /// milliseconds.
    #[must_use]
    pub fn session(name: impl Into<String>, retention_ms: i64) -> Self {
        let kind = StoreKind::Session {
            retention_ms,
            segment_interval_ms: (retention_ms / 2).max(60_000),
        };
        Self {
            name: name.into(),
            kind,
            persistent: true,
        }
    }

    /// A persistent versioned store with the bucket width of Kafka Streams
    /// (`RocksDbVersionedKeyValueBytesStoreSupplier.defaultSegmentInterval`). Times are milliseconds of event time.
    #[must_use]
    pub fn versioned(name: impl Into<String>, history_retention_ms: i64) -> Self {
        let segment_interval_ms = match history_retention_ms {
            ..=60_000 => (history_retention_ms / 3).max(2_000),
            60_001..=300_000 => (history_retention_ms / 5).max(20_000),
            300_001..=3_600_000 => (history_retention_ms / 12).max(60_000),
            _ => (history_retention_ms / 24).max(300_000),
        };
        let kind = StoreKind::Versioned {
            history_retention_ms,
            segment_interval_ms,
        };
        Self {
            name: name.into(),
            kind,
            persistent: true,
        }
    }

    /// A persistent store of rows that die, after `default_ttl_ms` of event time unless they say another.
    #[must_use]
    pub fn expiring(name: impl Into<String>, default_ttl_ms: i64) -> Self {
        Self {
            name: name.into(),
            kind: StoreKind::Expiring { default_ttl_ms },
            persistent: true,
        }
    }

    /// The same window or session store with buckets of this width (milliseconds), should it be created now.
    #[must_use]
    pub fn with_buckets_of(mut self, width_ms: i64) -> Self {
        match &mut self.kind {
            StoreKind::Window {
                segment_interval_ms, ..
            }
            | StoreKind::Session {
                segment_interval_ms, ..
            } => *segment_interval_ms = width_ms,
            StoreKind::KeyValue | StoreKind::Versioned { .. } | StoreKind::Expiring { .. } => {}
        }
        self
    }

    /// The same store in memory.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.persistent = false;
        self
    }

    pub(crate) fn check(&self) -> Result<(), StateError> {
        let invalid = |reason: &str| StateError::InvalidSpec {
            store: self.name.clone(),
            reason: reason.to_owned(),
        };
        if self.name.is_empty() {
            return Err(invalid("a store needs a name"));
        }
        match self.kind {
            StoreKind::Window {
                segment_interval_ms, ..
            }
            | StoreKind::Session {
                segment_interval_ms, ..
            } if segment_interval_ms < 1 => Err(invalid("the segment interval of a store must be at least 1 ms")),
            StoreKind::Versioned {
                segment_interval_ms, ..
            } if segment_interval_ms < 1 => Err(invalid(
                "the segment interval of a versioned store must be at least 1 ms",
            )),
            StoreKind::Versioned {
                history_retention_ms, ..
            } if history_retention_ms < 0 => {
                Err(invalid("the history retention of a versioned store can't be negative"))
            }
            StoreKind::Expiring { default_ttl_ms } if default_ttl_ms < 1 => {
                Err(invalid("rows must live for at least 1 ms"))
            }
            _ => Ok(()),
        }
    }
}

/// Number of a store in its task, in the order of the specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreId(pub(crate) u32);

impl StoreId {
    /// Position of the store's spec in the list that the task was opened with.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names that [`crate::TaskState::property`] knows: the property-based RocksDB metrics of Kafka Streams
/// (`RocksDBMetrics`).
pub const PROPERTY_NAMES: [&str; 22] = [
    "num-immutable-mem-table",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "num-entries-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-deletes-active-mem-table",
    "num-deletes-imm-mem-tables",
    "mem-table-flush-pending",
    "num-running-flushes",
    "compaction-pending",
    "num-running-compactions",
    "estimate-pending-compaction-bytes",
    "total-sst-files-size",
    "live-sst-files-size",
    "num-live-versions",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "estimate-num-keys",
    "estimate-table-readers-mem",
    "background-errors",
];
