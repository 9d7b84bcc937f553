//! The table. Java's names: `ClientMetrics`, `ThreadMetrics`, `TaskMetrics`, `NamedCacheMetrics`,
//! `DefaultStateUpdater.StateUpdaterMetrics`.

use super::{Group, Kind, Metric, Origin, Unit};

macro_rules! metrics {
    ($($constant:ident: $group:ident $name:literal $kind:ident $unit:ident $origin:ident $($label:literal)? => $help:literal;)*) => {
        $(#[doc = concat!("`", $name, "`: ", $help)]
        pub const $constant: Metric = Metric {
            group: Group::$group,
            name: $name,
            kind: Kind::$kind,
            unit: Unit::$unit,
            origin: Origin::$origin,
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
    MEMORY_BYTES: Client "memory-bytes" Gauge Bytes Ours "part" => "Storage memory in use by part: block cache and memtables.";
    MEMORY_LIMIT_BYTES: Client "memory-limit-bytes" Gauge Bytes Ours "part" => "The shares of `memory.max.bytes` by part.";
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
    PROCESS_TOTAL: Thread "process-total" Counter Records Java => "Records processed.";
    PROCESS_RECORDS: Thread "process-records" Histogram Records Java => "Records processed in a round; empty rounds are left out.";
    PROCESS_RATIO: Thread "process-ratio" Gauge Ratio Java => "Share of the last 100 ms spent in processing, punctuations included.";
    PUNCTUATE_TOTAL: Thread "punctuate-total" Counter Count Java => "Punctuations run.";
    TASK_CREATED_TOTAL: Thread "task-created-total" Counter Count Java => "Tasks that began to run; one made anew counts again.";
    TASK_CLOSED_TOTAL: Thread "task-closed-total" Counter Count Java => "Tasks given away or lost.";
    THREAD_STATE: Thread "thread-state" Gauge State Java => "As `client-state`, of one thread.";
    TRANSACTION_ABORT_TOTAL: Thread "transaction-abort-total" Counter Count Ours => "Transactions aborted.";
    TRANSACTION_RECORDS: Thread "transaction-records" Histogram Records Ours
        => "Records in a committed transaction: outputs, changelogs and dead letters.";
    PRODUCER_REPLACED_TOTAL: Thread "producer-replaced-total" Counter Count Ours => "Producers made anew after an error that a producer does not survive.";
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

    RECORD_CACHE_BYTES: RecordCache "size-bytes" Gauge Bytes Ours
        => "Bytes charged for cached entries (Java has `cache-size-bytes-total` per task).";
}
