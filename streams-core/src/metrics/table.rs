//! The table. Java's names: `ClientMetrics`, `ThreadMetrics`, `TaskMetrics`, `ProcessorNodeMetrics`, `TopicMetrics`,
//! `StateStoreMetrics`, `RocksDBMetrics`, `NamedCacheMetrics`, `DefaultStateUpdater.StateUpdaterMetrics`.

use super::{Group, Kind, Metric, Origin, RecordingLevel, Unit};

macro_rules! metrics {
    (@level) => { RecordingLevel::Info };
    (@level $level:ident) => { RecordingLevel::$level };
    ($($constant:ident: $group:ident $name:literal $kind:ident $unit:ident $origin:ident $($level:ident)? $($label:literal)? => $help:literal;)*) => {
        $(#[doc = concat!("`", $name, "`: ", $help)]
        pub const $constant: Metric = Metric {
            group: Group::$group,
            name: $name,
            kind: Kind::$kind,
            unit: Unit::$unit,
            origin: Origin::$origin,
            level: metrics!(@level $($level)?),
            label: concat!("", $($label)?),
            help: $help,
        };)*

        /// Every metric.
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    CLIENT_STATE: Client "client-state" Gauge State Java
        => "The instance's state: 0 created, 1 rebalancing, 2 running, 3 pending shutdown, 4 not running, 5 pending error, 6 error.";
    ALIVE_STREAM_THREADS: Client "alive-stream-threads" Gauge Count Java => "Stream threads that run.";
    FAILED_STREAM_THREADS: Client "failed-stream-threads" Counter Count Java => "Stream threads that ended with an error.";
    MEMORY_BYTES: Client "memory-bytes" Gauge Bytes Ours "part" => "Memory in use by part: `storage` (RocksDB's block cache with the memtables charged to it), `caches` (typed entries), `overlays` (rows of open and committing epochs), `outbox` (records to be sent), `input-queues` (records fetched and not processed; not among the limits); and of `storage`, `block-cache-pinned-usage` and `memtable-usage`.";
    MEMORY_LIMIT_BYTES: Client "memory-limit-bytes" Gauge Bytes Ours "part" => "The shares of `memory.max.bytes` by part, and `total`. An overlay counts three times against its share while it is applied.";
    STATE_SET_ASIDE_TOTAL: Client "state-set-aside-total" Counter Count Ours
        => "Local stores that could not be opened and were renamed aside.";

    COMMIT_TOTAL: Thread "commit-total" Counter Count Java => "Transactions committed.";
    COMMIT_LATENCY: Thread "commit-latency" Histogram Milliseconds Java
        => "From closing an epoch until it was committed and applied to the stores.";
    COMMIT_RATIO: Thread "commit-ratio" Gauge Ratio Java => "Share of the last 100 ms spent in commits and other calls to the cluster.";
    POLL_TOTAL: Thread "poll-total" Counter Count Java => "Polls for records.";
    POLL_LATENCY: Thread "poll-latency" Histogram Milliseconds Java => "Time of a poll, its waiting included.";
    POLL_RECORDS: Thread "poll-records" Histogram Records Java => "Records that a poll gave; empty polls are left out.";
    POLL_RATIO: Thread "poll-ratio" Gauge Ratio Java => "Share of the last 100 ms spent in polls.";
    PROCESS_LATENCY: Thread "process-latency" Histogram Milliseconds Java
        => "Time for a record: the mean of those processed between two looks at the clock, punctuations included.";
    PROCESS_TOTAL: Thread "process-total" Counter Records Java => "Records processed.";
    PROCESS_RECORDS: Thread "process-records" Histogram Records Java => "Records processed in a round; empty rounds are left out.";
    PROCESS_RATIO: Thread "process-ratio" Gauge Ratio Java => "Share of the last 100 ms spent in processing, punctuations included.";
    PUNCTUATE_TOTAL: Thread "punctuate-total" Counter Count Java => "Punctuations run.";
    PUNCTUATE_LATENCY: Thread "punctuate-latency" Histogram Milliseconds Java => "Time of a punctuation.";
    PUNCTUATE_RATIO: Thread "punctuate-ratio" Gauge Ratio Java => "Share of the last 100 ms spent in punctuations.";
    BLOCKED_TIME_TOTAL: Thread "blocked-time-ns-total" Counter Nanoseconds Java
        => "Time in polls and in calls of the clients and the cluster, waiting included.";
    THREAD_START_TIME: Thread "thread-start-time" Gauge Milliseconds Java => "When the thread started, since the Unix epoch.";
    STARTUP_LATENCY: Thread "startup-latency" Gauge Milliseconds Ours "phase"
        => "How long the phases of the thread's start took: `join` until the group gave tasks, `init` of the transactions, `restore` from the tasks until all of them ran, `first-record` from then until one was processed.";
    TASK_CREATED_TOTAL: Thread "task-created-total" Counter Count Java => "Tasks that began to run; one made anew counts again.";
    TASK_CLOSED_TOTAL: Thread "task-closed-total" Counter Count Java => "Tasks given away or lost.";
    THREAD_STATE: Thread "thread-state" Gauge State Java => "As `client-state`, of one thread.";
    TRANSACTION_ABORT_TOTAL: Thread "transaction-abort-total" Counter Count Ours "reason"
        => "Transactions aborted: `refused` (a call failed), `stale-member`, `tasks-lost`, `undelivered` (a record failed), `out-of-range` (a position outside the log).";
    TRANSACTION_LATENCY: Thread "transaction-latency" Histogram Milliseconds Ours
        => "Time in a transaction: from its begin until it was committed.";
    TRANSACTION_STEP_LATENCY: Thread "transaction-step-latency" Histogram Milliseconds Ours "step"
        => "Time of one call: `init-transactions`, `begin`, `send` (hands records to the client), `flush`, `send-offsets`, `commit`, `apply` (writes the stores), `abort`. Calls that are repeated count each (Java: the producer's `txn-…-time-ns-total`).";
    TRANSACTION_RECORDS: Thread "transaction-records" Histogram Records Ours
        => "Records in a committed transaction: outputs, changelogs and dead letters.";
    PRODUCER_REPLACED_TOTAL: Thread "producer-replaced-total" Counter Count Ours "reason"
        => "Producers made anew: `fenced`, or `failed` in another way that a producer does not survive.";
    OUTDATED_RECORDS_TOTAL: Thread "outdated-records-total" Counter Records Ours => "Records fetched before a rewind and thrown away; they are read again.";
    REFUSED_RECORDS_TOTAL: Thread "refused-records-total" Counter Records Ours
        => "Records that the client refused to send and the production handler let pass.";
    TRANSACTION_TIMEOUT_TOTAL: Thread "transaction-timeout-total" Counter Count Ours
        => "Transactions that were open for longer than `transaction.timeout.ms`; the next ones have fewer records.";
    HANGING_TRANSACTIONS: Thread "hanging-transactions" Gauge Count Ours
        => "Inputs and changelogs that stand still for 15 minutes because of another producer's open transaction.";
    STREAM_TIME_LAG_TOTAL: Thread "stream-time-lag-total" Counter Count Ours
        => "Tasks whose records are older than a changelog of theirs keeps records; see the warning in the log.";

    ACTIVE_RESTORING_TASKS: StateUpdater "active-restoring-tasks" Gauge Count Java => "Tasks that replay their changelogs, or wait to.";
    RESTORE_RECORDS_TOTAL: StateUpdater "restore-records-total" Counter Records Ours
        => "Changelog records applied (Java has the rate alone).";

    TASK_PROCESS_TOTAL: Task "process-total" Counter Records Java => "Records processed.";
    TASK_PUNCTUATE_TOTAL: Task "punctuate-total" Counter Count Java => "Punctuations run.";
    ENFORCED_PROCESSING_TOTAL: Task "enforced-processing-total" Counter Count Java
        => "Rounds in which the task ran although an input was empty, after `max.task.idle.ms`.";
    DROPPED_RECORDS_TOTAL: Task "dropped-records-total" Counter Records Java
        => "Records dropped: null keys or values, late ones, bad ones let pass by a handler.";
    TASK_PROCESS_LATENCY: Task "process-latency" Histogram Nanoseconds Java Debug => "Time for a record.";
    TASK_PUNCTUATE_LATENCY: Task "punctuate-latency" Histogram Nanoseconds Java Debug => "Time of a punctuation.";
    ACTIVE_PROCESS_RATIO: Task "active-process-ratio" Gauge Ratio Java
        => "Share of the thread's processing time of the last 100 ms that this task had.";
    RECORD_LATENESS: Task "record-lateness" Histogram Milliseconds Java Debug
        => "How far the event time of records lay behind the task's stream time; 0 for those that were not late.";
    CACHE_SIZE_BYTES_TOTAL: Task "cache-size-bytes-total" Gauge Bytes Java
        => "Bytes charged for cached entries (a gauge, in spite of its name).";
    RESTORE_TOTAL: Task "restore-total" Counter Records Java => "Changelog records applied.";
    RESTORE_REMAINING_RECORDS_TOTAL: Task "restore-remaining-records-total" Gauge Records Java
        => "Changelog offsets that are still to be read (a gauge, in spite of its name).";
    ACTIVE_BUFFER_COUNT: Task "active-buffer-count" Gauge Records Java => "Records that wait in the task's queues.";
    UNPARTITIONED_RECORDS_TOTAL: Task "unpartitioned-records-total" Counter Records Ours
        => "Records left out before a repartition topic, because a null key belongs to no partition.";
    RECORDS_PRODUCED_TOTAL: Task "records-produced-total" Counter Records Ours
        => "Records written to output and repartition topics (Java counts them per topic).";
    CHANGELOG_RECORDS_TOTAL: Task "changelog-records-total" Counter Records Ours => "Records written to changelogs.";
    DEAD_LETTERS_TOTAL: Task "dead-letters-total" Counter Records Ours => "Records written to the dead letter topic.";

    NODE_PROCESS_TOTAL: Node "process-total" Counter Records Java => "Records taken by a source node.";
    RECORD_E2E_LATENCY: Node "record-e2e-latency" Histogram Milliseconds Java
        => "Wall clock minus event time: at source nodes before a record is processed, at sinks when it is written.";

    SUPPRESSION_EMIT_TOTAL: Node "suppression-emit-total" Counter Records Java => "Updates that a suppressed table let go.";
    FINAL_EMIT_TOTAL: Node "window-aggregate-final-emit-total" Counter Records Java
        => "Final results of windows that were emitted on close.";
    FINAL_EMIT_LATENCY: Node "window-aggregate-final-emit-latency" Histogram Milliseconds Java Debug
        => "Time to emit the final results that were due together.";

    BYTES_CONSUMED_TOTAL: Topic "bytes-consumed-total" Counter Bytes Java
        => "Bytes that a source node took from the topic: keys, values, headers, and 20 and the topic's name for each record.";
    RECORDS_CONSUMED_TOTAL: Topic "records-consumed-total" Counter Records Java => "Records that a source node took from the topic.";
    BYTES_PRODUCED_TOTAL: Topic "bytes-produced-total" Counter Bytes Java
        => "Bytes that a sink wrote for the topic, counted as those consumed; also those of transactions that were aborted.";
    TOPIC_RECORDS_PRODUCED_TOTAL: Topic "records-produced-total" Counter Records Java
        => "Records that a sink wrote for the topic; also those of transactions that were aborted.";

    PUT_LATENCY: State "put-latency" Histogram Nanoseconds Java Debug => "Time of a write; of an update in place, the part after the application's code.";
    GET_LATENCY: State "get-latency" Histogram Nanoseconds Java Debug => "Time of a read by key; of an update in place, the part before the application's code.";
    FETCH_LATENCY: State "fetch-latency" Histogram Nanoseconds Java Debug => "As `get-latency`, of window stores.";
    RANGE_LATENCY: State "range-latency" Histogram Nanoseconds Java Debug => "Time to open an iterator between two keys.";
    ALL_LATENCY: State "all-latency" Histogram Nanoseconds Java Debug => "Time to open an iterator over all rows.";
    PREFIX_SCAN_LATENCY: State "prefix-scan-latency" Histogram Nanoseconds Java Debug => "Time to open an iterator over the keys that begin alike.";
    FLUSH_LATENCY: State "flush-latency" Histogram Nanoseconds Java Debug => "Time to write cached rows through, what that forwards included.";
    PUT_TOTAL: State "put-total" Counter Count Ours Debug => "Writes (Java has the rate alone).";
    GET_TOTAL: State "get-total" Counter Count Ours Debug => "Reads by key (Java has the rate alone).";
    FETCH_TOTAL: State "fetch-total" Counter Count Ours Debug => "As `get-total`, of window stores.";
    RANGE_TOTAL: State "range-total" Counter Count Ours Debug => "Iterators between two keys (Java has the rate alone).";
    ALL_TOTAL: State "all-total" Counter Count Ours Debug => "Iterators over all rows (Java has the rate alone).";
    PREFIX_SCAN_TOTAL: State "prefix-scan-total" Counter Count Ours Debug => "Iterators over the keys that begin alike (Java has the rate alone).";
    FLUSH_TOTAL: State "flush-total" Counter Count Ours Debug => "Flushes of cached rows (Java has the rate alone).";
    STORE_RESTORE_LATENCY: State "restore-latency" Histogram Nanoseconds Java => "Time of a restore from the changelog.";
    NUM_OPEN_ITERATORS: State "num-open-iterators" Gauge Count Java => "Iterators over key-value stores that are open now.";
    ITERATOR_DURATION: State "iterator-duration" Histogram Nanoseconds Java Debug => "How long iterators were open.";
    SUPPRESSION_BUFFER_SIZE: State "suppression-buffer-size" Histogram Bytes Java Debug
        => "Bytes in the buffer of a suppressed table, at each change: keys, values, topics and headers.";
    SUPPRESSION_BUFFER_COUNT: State "suppression-buffer-count" Histogram Records Java Debug
        => "Updates in the buffer of a suppressed table, at each change.";
    NUM_KEYS: State "num-keys" Gauge Count Java => "Rows of an in-memory store.";
    UNCOMMITTED_BYTES: State "uncommitted-bytes" Gauge Bytes Java => "Rows of the open and the committing epoch.";
    NUM_IMMUTABLE_MEM_TABLE: State "num-immutable-mem-table" Gauge Count Java => "RocksDB: memtables that are not flushed yet.";
    CUR_SIZE_ACTIVE_MEM_TABLE: State "cur-size-active-mem-table" Gauge Bytes Java => "RocksDB: size of the active memtable.";
    CUR_SIZE_ALL_MEM_TABLES: State "cur-size-all-mem-tables" Gauge Bytes Java => "RocksDB: size of the active and the unflushed memtables.";
    SIZE_ALL_MEM_TABLES: State "size-all-mem-tables" Gauge Bytes Java => "RocksDB: size of all memtables, pinned ones included.";
    NUM_ENTRIES_ACTIVE_MEM_TABLE: State "num-entries-active-mem-table" Gauge Count Java => "RocksDB: entries of the active memtable.";
    NUM_ENTRIES_IMM_MEM_TABLES: State "num-entries-imm-mem-tables" Gauge Count Java => "RocksDB: entries of unflushed memtables.";
    NUM_DELETES_ACTIVE_MEM_TABLE: State "num-deletes-active-mem-table" Gauge Count Java => "RocksDB: deletes in the active memtable.";
    NUM_DELETES_IMM_MEM_TABLES: State "num-deletes-imm-mem-tables" Gauge Count Java => "RocksDB: deletes in unflushed memtables.";
    MEM_TABLE_FLUSH_PENDING: State "mem-table-flush-pending" Gauge Count Java => "RocksDB: 1 if a memtable waits to be flushed.";
    NUM_RUNNING_FLUSHES: State "num-running-flushes" Gauge Count Java => "RocksDB: flushes that run.";
    COMPACTION_PENDING: State "compaction-pending" Gauge Count Java => "RocksDB: 1 if a compaction waits.";
    NUM_RUNNING_COMPACTIONS: State "num-running-compactions" Gauge Count Java => "RocksDB: compactions that run.";
    ESTIMATE_PENDING_COMPACTION_BYTES: State "estimate-pending-compaction-bytes" Gauge Bytes Java => "RocksDB: bytes that compactions have to rewrite, about.";
    TOTAL_SST_FILES_SIZE: State "total-sst-files-size" Gauge Bytes Java => "RocksDB: size of all files of rows.";
    LIVE_SST_FILES_SIZE: State "live-sst-files-size" Gauge Bytes Java => "RocksDB: size of the files of rows in use.";
    NUM_LIVE_VERSIONS: State "num-live-versions" Gauge Count Java => "RocksDB: versions of the tree that are in use.";
    BLOCK_CACHE_CAPACITY: State "block-cache-capacity" Gauge Bytes Java => "RocksDB: capacity of the block cache, which all stores of the process share.";
    BLOCK_CACHE_USAGE: State "block-cache-usage" Gauge Bytes Java => "RocksDB: bytes in the block cache, which all stores of the process share.";
    BLOCK_CACHE_PINNED_USAGE: State "block-cache-pinned-usage" Gauge Bytes Java => "RocksDB: pinned bytes in the block cache, which all stores of the process share.";
    ESTIMATE_NUM_KEYS: State "estimate-num-keys" Gauge Count Java => "RocksDB: rows, about.";
    ESTIMATE_TABLE_READERS_MEM: State "estimate-table-readers-mem" Gauge Bytes Java => "RocksDB: memory for reading files outside the block cache, about.";
    BACKGROUND_ERRORS: State "background-errors" Gauge Count Java => "RocksDB: errors of flushes and compactions.";

    HIT_RATIO: RecordCache "hit-ratio" Gauge Ratio Java
        => "Share of look-ups that found their row in the cache, of the last 100 ms with a look-up.";
}
