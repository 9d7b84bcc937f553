//! Topic configs of internal topics: the library's, under those of the configuration, under those of the store.
//!
//! Source: `InternalTopicConfig` and its subclasses. A coordinator of a streams group compares these configs with the
//! ones it stored, so they are part of the contract with members of other versions and with Java's.

use std::collections::BTreeMap;

use super::{ChangelogDefinition, ChangelogKind};

const CLEANUP_POLICY: &str = "cleanup.policy";
const MESSAGE_TIMESTAMP_TYPE: &str = "message.timestamp.type";
const MIN_COMPACTION_LAG: &str = "min.compaction.lag.ms";
const RETENTION: &str = "retention.ms";
const SEGMENT_BYTES: &str = "segment.bytes";

/// What versioned stores keep beyond their history: one day. Not the setting of windows.
const VERSIONED_ADDITIONAL_LAG_MS: i64 = 86_400_000;

/// What the configuration says about all internal topics of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalTopicDefaults {
    /// Replicas of each internal topic; -1 leaves it to the brokers. Java: `replication.factor`.
    pub replication_factor: i16,
    /// Configs for every internal topic, by topic config name. Java: settings that start with `topic.`, without that.
    pub topic_configs: BTreeMap<String, String>,
    /// What changelogs of windows keep beyond the store's retention, in milliseconds.
    /// Java: `windowstore.changelog.additional.retention.ms`.
    pub window_store_additional_retention_ms: i64,
}

impl Default for InternalTopicDefaults {
    /// Java's defaults: the brokers' replication factor, no overrides, one day.
    fn default() -> Self {
        InternalTopicDefaults {
            replication_factor: -1,
            topic_configs: BTreeMap::new(),
            window_store_additional_retention_ms: 86_400_000,
        }
    }
}

impl InternalTopicDefaults {
    /// The configs of a repartition topic.
    pub(crate) fn repartition(&self) -> BTreeMap<String, String> {
        // Retention is off: the application itself deletes what it has committed.
        self.layered(&[
            (CLEANUP_POLICY, "delete"),
            (RETENTION, "-1"),
            (SEGMENT_BYTES, "52428800"),
        ])
    }

    /// The configs of a changelog topic.
    pub(crate) fn changelog(&self, changelog: &ChangelogDefinition) -> BTreeMap<String, String> {
        let policy = match changelog.kind {
            ChangelogKind::Windowed { .. } | ChangelogKind::JoinWindow { .. } => "compact,delete",
            ChangelogKind::KeyValue | ChangelogKind::Versioned { .. } => "compact",
        };
        let mut configs = self.layered(&[(CLEANUP_POLICY, policy)]);
        configs.extend(changelog.configs.clone());
        match changelog.kind {
            ChangelogKind::KeyValue => {}
            ChangelogKind::Windowed { retention_ms } => self.set_retention(&mut configs, changelog, retention_ms),
            ChangelogKind::JoinWindow { retention_ms } => {
                // Every key is new (it has a sequence number): compaction would keep all of them, so no one may ask for
                // it.
                configs.insert(CLEANUP_POLICY.to_owned(), "delete".to_owned());
                self.set_retention(&mut configs, changelog, retention_ms);
            }
            ChangelogKind::Versioned { history_retention_ms } => {
                let lag_ms = history_retention_ms.saturating_add(VERSIONED_ADDITIONAL_LAG_MS);
                set_unless_given(&mut configs, changelog, MIN_COMPACTION_LAG, lag_ms);
            }
        }
        configs
    }

    fn set_retention(
        &self,
        configs: &mut BTreeMap<String, String>,
        changelog: &ChangelogDefinition,
        retention_ms: i64,
    ) {
        let retention_ms = retention_ms.saturating_add(self.window_store_additional_retention_ms);
        set_unless_given(configs, changelog, RETENTION, retention_ms);
    }

    fn layered(&self, library: &[(&str, &str)]) -> BTreeMap<String, String> {
        let library = library.iter().chain(&[(MESSAGE_TIMESTAMP_TYPE, "CreateTime")]);
        let mut configs: BTreeMap<String, String> = library
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        configs.extend(self.topic_configs.clone());
        configs
    }
}

/// A time that follows from the store wins over the configuration for all topics, not over the store's own configs.
fn set_unless_given(configs: &mut BTreeMap<String, String>, changelog: &ChangelogDefinition, key: &str, ms: i64) {
    if !changelog.configs.contains_key(key) {
        configs.insert(key.to_owned(), ms.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn with_topic_configs(entries: &[(&str, &str)]) -> InternalTopicDefaults {
        InternalTopicDefaults {
            topic_configs: map(entries),
            ..InternalTopicDefaults::default()
        }
    }

    #[test]
    fn the_configuration_overrides_the_library_and_the_store_overrides_both() {
        let defaults = with_topic_configs(&[("cleanup.policy", "delete"), ("segment.ms", "1"), ("retention.ms", "5")]);
        let repartition = defaults.repartition();
        assert_eq!((&*repartition["retention.ms"], &*repartition["segment.ms"]), ("5", "1"));
        let changelog = ChangelogDefinition::new(ChangelogKind::KeyValue).with_configs(map(&[("segment.ms", "2")]));
        let expected = [
            ("cleanup.policy", "delete"),
            ("message.timestamp.type", "CreateTime"),
            ("retention.ms", "5"),
            ("segment.ms", "2"),
        ];
        assert_eq!(defaults.changelog(&changelog), map(&expected));
    }

    #[test]
    fn a_window_retention_yields_only_to_the_stores_own() {
        let defaults = with_topic_configs(&[("retention.ms", "5")]);
        let windowed = ChangelogDefinition::new(ChangelogKind::Windowed { retention_ms: 1000 });
        assert_eq!(defaults.changelog(&windowed)["retention.ms"], "86401000");
        let given = windowed.with_configs(map(&[("retention.ms", "7")]));
        assert_eq!(defaults.changelog(&given)["retention.ms"], "7");
        let endless = ChangelogDefinition::new(ChangelogKind::Windowed { retention_ms: i64::MAX });
        assert_eq!(defaults.changelog(&endless)["retention.ms"], i64::MAX.to_string());
    }

    #[test]
    fn join_windows_are_never_compacted() {
        let join = ChangelogDefinition::new(ChangelogKind::JoinWindow { retention_ms: 25_000 });
        let join = join.with_configs(map(&[("cleanup.policy", "compact")]));
        let configs = with_topic_configs(&[("cleanup.policy", "compact")]).changelog(&join);
        assert_eq!(
            (&*configs["cleanup.policy"], &*configs["retention.ms"]),
            ("delete", "86425000")
        );
    }

    #[test]
    fn versions_are_kept_from_compaction_for_their_history_and_a_day() {
        let versioned = ChangelogDefinition::new(ChangelogKind::Versioned {
            history_retention_ms: 60_000,
        });
        let defaults = InternalTopicDefaults {
            window_store_additional_retention_ms: 0,
            ..Default::default()
        };
        let configs = defaults.changelog(&versioned);
        assert_eq!(
            (&*configs["cleanup.policy"], &*configs["min.compaction.lag.ms"]),
            ("compact", "86460000")
        );
        let given = versioned.with_configs(map(&[("min.compaction.lag.ms", "3")]));
        assert_eq!(defaults.changelog(&given)["min.compaction.lag.ms"], "3");
    }
}
