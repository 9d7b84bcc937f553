//! Configuration: Java's names, our defaults, librdkafka's properties. Pure: nothing is read, logged or asked here.

mod client_keys;
mod clients;
mod docs;
mod ids;
mod librdkafka;
mod nearest;
mod parse;
mod security;
mod settings;
pub mod table;
#[cfg(test)]
mod tests;
mod translate;
mod validate;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use docs::render_documentation;
pub use ids::ClientIds;
pub use parse::env_properties;
pub use settings::{GroupProtocol, OffsetReset, OnError, ProcessingGuarantee};
pub use validate::{ConfigError, ConfigProblem, ConfigWarning};

use crate::metrics::RecordingLevel;
use clients::Scope;
use settings::Setting;

/// A key that is a field of [`StreamsConfig`].
struct Field {
    key: &'static str,
    get: fn(&StreamsConfig) -> String,
    set: fn(&mut StreamsConfig, &str) -> Result<(), String>,
}

/// Writes the struct, its setters and the list of its keys from one list, so that none is forgotten.
macro_rules! settings {
    ($($(#[$doc:meta])* $key:literal $name:ident: $type:ty = $default:expr, ($($input:tt)*) => $value:expr;)*) => {
        /// The settings of an application. Everything but two has a default; times are milliseconds.
        ///
        /// Every key of Java's `StreamsConfig` and what becomes of it here stands in `docs/configuration.md`. Nothing
        /// is checked before [`validate`](Self::validate), which tells everything at once.
        ///
        /// ```
        /// use streams_core::config::StreamsConfig;
        /// let config = StreamsConfig::new("billing", "localhost:9092").num_stream_threads(2)
        ///     .state_dir("/var/lib/billing");
        /// assert_eq!(config.effective_commit_interval_ms(), 100);
        /// assert!(config.validate().is_ok_and(|warnings| warnings.is_empty()));
        /// ```
        ///
        /// Java counterpart: `org.apache.kafka.streams.StreamsConfig`.
        #[derive(Clone, PartialEq)]
        #[non_exhaustive]
        pub struct StreamsConfig {
            $($(#[$doc])* #[doc = ""] #[doc = concat!("Java key: `", $key, "`.")] pub $name: $type,)*
            clients: BTreeMap<(Scope, String), String>,
            notes: Vec<ConfigWarning>,
            topic_configs: BTreeMap<String, String>,
            client_tags: BTreeMap<String, String>,
        }

        impl StreamsConfig {
            /// The settings of an application (`application.id`) on a cluster (`bootstrap.servers`, a comma list of
            /// `host:port`), all else at its default.
            pub fn new(application_id: impl Into<String>, bootstrap_servers: impl Into<String>) -> Self {
                let mut config = StreamsConfig {
                    $($name: $default,)*
                    clients: BTreeMap::new(),
                    notes: Vec::new(),
                    topic_configs: BTreeMap::new(),
                    client_tags: BTreeMap::new(),
                };
                config.application_id = application_id.into();
                config.bootstrap_servers = bootstrap_servers.into();
                config
            }

            $(#[doc = concat!("Sets `", $key, "`; see the field.")]
            #[must_use]
            pub fn $name(mut self, $($input)*) -> Self {
                self.$name = $value;
                self
            })*
        }

        static FIELDS: &[Field] = &[$(Field {
            key: $key,
            get: |config| config.$name.to_text(),
            set: |config, text| {
                config.$name = <$type as Setting>::from_text(text)?;
                Ok(())
            },
        }),*];
    };
}

settings! {
    /// The application's name: group id and prefix of internal topics and client ids. Required.
    "application.id" application_id: String = String::new(), (value: impl Into<String>) => value.into();
    /// The brokers to begin with, a comma list of `host:port`. Required.
    "bootstrap.servers" bootstrap_servers: String = String::new(), (value: impl Into<String>) => value.into();
    /// How many stream threads there are. Default 1.
    "num.stream.threads" num_stream_threads: i32 = 1, (value: i32) => value;
    /// What a crash may do to the outputs. Default exactly-once; Java's is at-least-once.
    "processing.guarantee" processing_guarantee: ProcessingGuarantee = ProcessingGuarantee::ExactlyOnceV2,
        (value: ProcessingGuarantee) => value;
    /// How tasks are shared. Default `auto`; Java's is `classic`.
    "group.protocol" group_protocol: GroupProtocol = GroupProtocol::Auto, (value: GroupProtocol) => value;
    /// The longest time between commits, ms. Default 100 under exactly-once, else 30,000.
    "commit.interval.ms" commit_interval_ms: Option<i64> = None, (value: i64) => Some(value);
    /// Whether to commit as soon as the input is drained. Default true. Ours.
    "commit.adaptive" commit_adaptive: bool = true, (value: bool) => value;
    /// Whether records are processed while the last commit is on its way. Default true. Ours.
    "commit.pipelined" commit_pipelined: bool = true, (value: bool) => value;
    /// Where local state lies. Default `/tmp/kafka-streams`, which gives a warning.
    "state.dir" state_dir: PathBuf = PathBuf::from("/tmp/kafka-streams"), (value: impl Into<PathBuf>) => value.into();
    /// The limit of all memory that the library decides about, bytes. Default 60 % of the cgroup's limit, else 25 %
    /// of the machine's memory. Ours.
    "memory.max.bytes" memory_max_bytes: Option<i64> = None, (value: i64) => Some(value);
    /// The caches' part of it, bytes, for all threads together; 0 emits every update. Default: decided by the limit.
    "statestore.cache.max.bytes" statestore_cache_max_bytes: Option<i64> = None, (value: i64) => Some(value);
    /// How long a task waits for a partition without buffered records before it goes on with the others, ms. −1 =
    /// never, 0 (default) = only for data known to be on the broker.
    "max.task.idle.ms" max_task_idle_ms: i64 = 0, (value: i64) => value;
    /// How many records of a partition are buffered before it is paused. Default 1,000.
    "buffered.records.per.partition" buffered_records_per_partition: i32 = 1000, (value: i32) => value;
    /// How long a task may fail to make progress because of the cluster before it stops, ms. Default 300,000.
    "task.timeout.ms" task_timeout_ms: i64 = 300_000, (value: i64) => value;
    /// The longest wait for records when there is nothing to do, ms. Default 100.
    "poll.ms" poll_ms: i64 = 100, (value: i64) => value;
    /// Replicas of internal topics; −1 (default) = the broker's default.
    "replication.factor" replication_factor: i32 = -1, (value: i32) => value;
    /// How often processed records of repartition topics are deleted, ms. Default 30,000.
    "repartition.purge.interval.ms" repartition_purge_interval_ms: i64 = 30_000, (value: i64) => value;
    /// How long state of a task that is elsewhere stays, ms. Default 600,000.
    "state.cleanup.delay.ms" state_cleanup_delay_ms: i64 = 600_000, (value: i64) => value;
    /// What a windowed changelog keeps beyond the store's retention, ms. Default one day.
    "windowstore.changelog.additional.retention.ms" windowstore_changelog_additional_retention_ms: i64 = 86_400_000,
        (value: i64) => value;
    /// The prefix of client ids. Default `<application.id>-<process id>`.
    "client.id" client_id: Option<String> = None, (value: impl Into<String>) => Some(value.into());
    /// The process's identity. Default: random, kept in the state directory. Ours.
    "process.id" process_id: Option<String> = None, (value: impl Into<String>) => Some(value.into());
    /// The longest time between heartbeats, ms. Default: the broker's interval. Ours.
    "streams.heartbeat.max.ms" streams_heartbeat_max_ms: Option<i64> = None, (value: i64) => Some(value);
    /// The topic of records that could not be processed. Default: none.
    "errors.dead.letter.queue.topic.name" errors_dead_letter_queue_topic_name: Option<String> = None,
        (value: impl Into<String>) => Some(value.into());
    /// What to do with a record whose bytes do not read. Default: fail.
    "deserialization.exception.handler" deserialization_exception_handler: OnError = OnError::Fail,
        (value: OnError) => value;
    /// What to do with a record whose processing fails. Default: fail.
    "processing.exception.handler" processing_exception_handler: OnError = OnError::Fail, (value: OnError) => value;
    /// What to do with a record that cannot be written. Default: fail.
    "production.exception.handler" production_exception_handler: OnError = OnError::Fail, (value: OnError) => value;
    /// How much is measured. Default `INFO`: nothing that reads a clock for each record.
    "metrics.recording.level" metrics_recording_level: RecordingLevel = RecordingLevel::Info,
        (value: RecordingLevel) => value;
    /// Whether logs may show keys and values of failing records. Default false. Ours.
    "log.record.content" log_record_content: bool = false, (value: bool) => value;
}

impl StreamsConfig {
    /// The longest time between commits that holds: as set, else 100 ms under exactly-once and 30,000 ms otherwise.
    #[must_use]
    pub fn effective_commit_interval_ms(&self) -> i64 {
        self.commit_interval_ms.unwrap_or(match self.processing_guarantee {
            ProcessingGuarantee::ExactlyOnceV2 => 100,
            ProcessingGuarantee::AtLeastOnce | ProcessingGuarantee::AtMostOnce => 30_000,
        })
    }

    /// The configs of internal topics that hold for all of them (`topic.` prefix), without the prefix.
    #[must_use]
    pub fn topic_configs(&self) -> &BTreeMap<String, String> {
        &self.topic_configs
    }

    /// The tags of this client (`client.tag.` prefix), without the prefix.
    #[must_use]
    pub fn client_tags(&self) -> &BTreeMap<String, String> {
        &self.client_tags
    }
}

/// Secrets are not shown.
impl fmt::Debug for StreamsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        map.entries(FIELDS.iter().map(|field| (field.key, (field.get)(self))));
        map.entries(self.clients.iter().map(|((scope, key), value)| {
            (
                format!("{}{key}", scope.prefix()),
                if clients::is_secret(key) { "<hidden>" } else { value },
            )
        }));
        map.entries(
            self.topic_configs
                .iter()
                .map(|(key, value)| (format!("topic.{key}"), value)),
        );
        map.entries(
            self.client_tags
                .iter()
                .map(|(key, value)| (format!("client.tag.{key}"), value)),
        );
        map.finish()
    }
}
