//! How RocksDB is tuned: point lookups and overwrites of small values, bounded memory, fast opening.
//!
//! The choices that were measured are in the example `write_path`; the numbers stand in `ARCHITECTURE.md`.

use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, DataBlockIndexType, LogLevel, Options, WriteBufferManager,
    WriteOptions,
};

use crate::budget::MemoryBudget;

/// The log that opening has to replay: a shared log is pinned by its least written family (rule 2.8). Divided among the
/// tasks of a process, but no task's is smaller than the second number.
const LOG_BYTES: u64 = 32 << 20;
const SMALLEST_LOG: u64 = 4 << 20;
/// Memtables of one family, within the bound that all share.
const LARGEST_MEMTABLE: u64 = 32 << 20;
const SMALLEST_MEMTABLE: u64 = 1 << 20;

/// Block cache and memtables of all tasks, under one bound.
pub(crate) struct SharedMemory {
    cache: Cache,
    memtables: WriteBufferManager,
    memtable_bytes: u64,
}

impl std::fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedMemory").field("in_use", &self.in_use()).finish()
    }
}

impl SharedMemory {
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        let bytes = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        // 5 % faster lookups than the LRU cache, and no lock that queries would share with tasks.
        let cache = Cache::new_hyper_clock_cache(bytes(budget.storage()), 0);
        // Memtables are charged to the cache. No stall: an apply never waits for a flush (rule 2.8).
        let memtables =
            WriteBufferManager::new_write_buffer_manager_with_cache(bytes(budget.storage() / 2), false, cache.clone());
        let memtable_bytes = (budget.storage() / 8).clamp(SMALLEST_MEMTABLE, LARGEST_MEMTABLE);
        Self {
            cache,
            memtables,
            memtable_bytes,
        }
    }

    pub(crate) fn in_use(&self) -> Vec<(&'static str, u64)> {
        vec![
            // Memtables are charged to the cache.
            ("storage", self.cache.get_usage() as u64),
            ("block-cache-pinned-usage", self.cache.get_pinned_usage() as u64),
            ("memtable-usage", self.memtables.get_usage() as u64),
        ]
    }

    /// Options of a database in a process that has `tasks` open, this one included.
    pub(super) fn database_options(&self, tasks: usize) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_write_buffer_manager(&self.memtables);
        options.set_max_total_wal_size((LOG_BYTES / tasks.max(1) as u64).max(SMALLEST_LOG));
        // One writer per database.
        options.set_allow_concurrent_memtable_write(false);
        options.set_skip_stats_update_on_db_open(true);
        options.set_max_background_jobs(4);
        options.set_bytes_per_sync(1 << 20);
        options.set_log_level(LogLevel::Warn);
        options.set_keep_log_file_num(2);
        options.set_max_log_file_size(1 << 20);
        options
    }

    pub(crate) fn family_options(&self) -> Options {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&self.cache);
        table.set_bloom_filter(10.0, false);
        table.set_whole_key_filtering(true);
        table.set_optimize_filters_for_memory(true);
        // Index and filters count in the one memory number; the newest level's stay.
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        table.set_data_block_hash_ratio(0.75);
        table.set_format_version(5);
        let mut options = Options::default();
        options.set_block_based_table_factory(&table);
        options.set_write_buffer_size(usize::try_from(self.memtable_bytes).unwrap_or(usize::MAX));
        options.set_max_write_buffer_number(3);
        options.set_compression_type(DBCompressionType::Lz4);
        options.set_level_compaction_dynamic_level_bytes(true);
        // A lookup of a key that is not in the memtable costs no search in it.
        options.set_memtable_prefix_bloom_ratio(0.05);
        options.set_memtable_whole_key_filtering(true);
        options
    }
}

/// In the log, without fsync.
pub(super) fn write_options() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(false);
    options.set_memtable_insert_hint_per_batch(true);
    options
}
