//! What each kind of change means.

use super::LockVerdict::{self, Compatible, NeedsReset};

/// What a change of one fact means, and what to do.
pub(super) type Rule = (LockVerdict, &'static str);

const RESET: &str = "take the change back; or give the store a new name, which begins empty, or reset the application \
                     (docs/guide, \"Naming and upgrades\")";

/// The rule of a fact of a store that has kept its name.
pub(super) fn of_store(fact: &str, (old, new): (Option<&str>, Option<&str>)) -> Rule {
    match fact {
        "kind" | "key" | "value" | "value.time" | "window.size.ms" | "global" => (NeedsReset, RESET),
        "key.type" | "value.type" => (
            Compatible,
            "only the type's name differs, the format is the same; see to it that the type reads the rows that are there",
        ),
        "retention.ms" | "history.ms" | "ttl.ms" => (
            Compatible,
            "rows live by the new time from now on; what was dropped does not come back, and the retention.ms or \
             min.compaction.lag.ms of a changelog that exists has to be altered by hand (bin/kafka-configs.sh)",
        ),
        "place" => (Compatible, "the rows are restored from the changelog, once"),
        "from" => (
            Compatible,
            "the rows stay, and what comes now is added to them; where that is not meant, give the store a new name",
        ),
        "changelog" if old == Some("off") => (
            NeedsReset,
            "the rows that are there are not in the new changelog and would be lost with their disk: give the store a new \
             name, or reset the application",
        ),
        "changelog" if new == Some("off") => (
            Compatible,
            "the rows stay on their disk and are lost with it, and with a task that moves",
        ),
        "changelog" => (
            NeedsReset,
            "the rows that are there are those of another topic: give the store a new name, or reset the application",
        ),
        config if config.starts_with("changelog.") => (
            Compatible,
            "a changelog that exists keeps its configs: alter them by hand (bin/kafka-configs.sh)",
        ),
        _ => (Compatible, "nothing that is there depends on it"),
    }
}

/// The rule of a fact of a repartition topic that has kept its name.
pub(super) fn of_repartition(fact: &str, (old, new): (Option<&str>, Option<&str>)) -> Rule {
    match fact {
        "key" => (
            NeedsReset,
            "keys of the new form go to other partitions than those that are there: give the repartition a new name and \
             let the old version read the old topic to its end first, or reset the application",
        ),
        "value" => (
            NeedsReset,
            "the records that are there and not yet read have the old form: let the old version read the topic to its end \
             first, or give the repartition a new name",
        ),
        "partitions" if [old, new].iter().flatten().any(|count| count.parse::<i32>().is_ok()) => (
            NeedsReset,
            "a topic keeps its number of partitions, and keys would move between tasks: take the number back, or reset the \
             application",
        ),
        "key.type" | "value.type" => (
            Compatible,
            "only the type's name differs, the format is the same; see to it that the type reads the records that are there",
        ),
        "from" | "partitions" => (
            Compatible,
            "the number of partitions follows from the topics that feed it and must not change: see to it that no new one \
             has more",
        ),
        config if config.starts_with("config.") => (
            Compatible,
            "a topic that exists keeps its configs: alter them by hand (bin/kafka-configs.sh)",
        ),
        _ => (Compatible, "nothing that is there depends on it"),
    }
}
