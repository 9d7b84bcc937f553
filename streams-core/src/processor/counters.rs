//! What a task counts. Plain numbers of one thread; the shell publishes them under Kafka Streams' metric names.

/// The counters of one task, since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounters {
    /// Records taken from the input queues (`process-total`).
    pub processed_records: u64,
    /// Records dropped: null keys or values, late records, bad records let pass (`dropped-records-total`).
    pub dropped_records: u64,
    /// Records left out before a repartition topic, because a null key belongs to no partition. Not in Java, which leaves
    /// them out silently; they are not in `dropped_records`.
    pub unpartitioned_records: u64,
    /// Punctuations run (`punctuate-total`).
    pub punctuations: u64,
    /// Rounds in which a task ran although an input was empty, after `max.task.idle.ms` (`enforced-processing-total`).
    pub enforced_processing: u64,
    /// Records written to output and repartition topics (`records-produced-total`).
    pub produced_records: u64,
    /// Records written to changelogs.
    pub changelog_records: u64,
    /// Dead letters written.
    pub dead_letters: u64,
    /// Changelog records applied by restores that ended (`restore-total`).
    pub restored_records: u64,
}

impl TaskCounters {
    /// Adds what another life of the task counted.
    pub fn add(&mut self, other: TaskCounters) {
        let TaskCounters {
            processed_records,
            dropped_records,
            unpartitioned_records,
            punctuations,
            enforced_processing,
            produced_records,
            changelog_records,
            dead_letters,
            restored_records,
        } = other;
        self.processed_records += processed_records;
        self.dropped_records += dropped_records;
        self.unpartitioned_records += unpartitioned_records;
        self.punctuations += punctuations;
        self.enforced_processing += enforced_processing;
        self.produced_records += produced_records;
        self.changelog_records += changelog_records;
        self.dead_letters += dead_letters;
        self.restored_records += restored_records;
    }
}
