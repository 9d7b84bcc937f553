//! librdkafka settings: our defaults, which a user may override, and what the runtime depends on, which nobody may.

/// Settings of every consumer, overridable.
///
/// Each partition has its own queue (see `consumer.rs`), so the two limits count **per partition**. They are small
/// because a partition that is not read holds at most this much, and librdkafka asks for the next batch while the
/// current one is being processed (20,000 records of 100 bytes instead of 50,000: as fast, 50 MB less with four
/// partitions); the short back-off is what makes small queues fast (its default is a full second).
pub const CONSUMER: &[(&str, &str)] = &[
    ("queued.min.messages", "20000"),
    ("queued.max.messages.kbytes", "8192"),
    ("fetch.queue.backoff.ms", "5"),
    ("fetch.wait.max.ms", "500"),
    ("fetch.min.bytes", "1"),
    ("fetch.message.max.bytes", "1048576"),
    ("check.crcs", "false"),
];

/// What a consumer of this runtime must have: the runtime owns positions and commits, so the client must not.
pub const CONSUMER_MANDATORY: &[(&str, &str)] = &[
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    ("auto.offset.reset", "error"),
    ("allow.auto.create.topics", "false"),
];

/// Settings of every producer, overridable. `partitioner` counts only for records sent without a partition.
pub const PRODUCER: &[(&str, &str)] = &[
    ("linger.ms", "20"),
    ("batch.size", "1000000"),
    ("batch.num.messages", "10000"),
    ("queue.buffering.max.messages", "500000"),
    ("queue.buffering.max.kbytes", "131072"),
    ("enable.idempotence", "true"),
    ("partitioner", "murmur2_random"),
];

/// What a producer of this runtime must have: every delivery is reported, because acknowledged changelog offsets are
/// what a store's position is made of.
pub const PRODUCER_MANDATORY: &[(&str, &str)] = &[("delivery.report.only.error", "false")];

/// Defaults, then what was given, then what is mandatory; librdkafka lets a later value win.
pub(crate) fn merge(
    defaults: &[(&str, &str)],
    given: &[(String, String)],
    mandatory: &[(&str, &str)],
) -> Vec<(String, String)> {
    let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let mut merged = owned(defaults);
    merged.extend_from_slice(given);
    merged.extend(owned(mandatory));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mandatory_settings_win_over_given_ones_and_these_over_defaults() {
        let given = [
            ("linger.ms".to_owned(), "7".to_owned()),
            ("auto.offset.reset".to_owned(), "latest".to_owned()),
        ];
        let merged = merge(PRODUCER, &given, CONSUMER_MANDATORY);
        let last = |name: &str| {
            merged
                .iter()
                .rev()
                .find(|(n, _)| n == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!(
            (last("linger.ms"), last("auto.offset.reset")),
            (Some("7"), Some("error"))
        );
    }
}
