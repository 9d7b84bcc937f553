//! What can be wrong with settings, all of it at once.

use std::fmt;

use super::clients::Client;
use super::{ClientIds, GroupProtocol, OffsetReset, ProcessingGuarantee, Setting, StreamsConfig};

/// A setting that cannot be started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The key, by Java's name where there is one.
    pub key: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// A setting that has no effect, or not the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    /// The key, by Java's name where there is one.
    pub key: String,
    /// What happens instead.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// Everything that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(
    /// The findings, at least one.
    pub Vec<ConfigProblem>,
);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has {} problem(s)", self.0.len())?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for ConfigError {}

/// Collects findings.
#[derive(Default)]
struct Findings {
    problems: Vec<ConfigProblem>,
    warnings: Vec<ConfigWarning>,
}

impl Findings {
    fn problem_if(&mut self, wrong: bool, key: &str, message: impl Into<String>) {
        if wrong {
            self.problems.push(ConfigProblem {
                key: key.to_owned(),
                message: message.into(),
            });
        }
    }

    fn at_least(&mut self, key: &str, value: i64, least: i64) {
        self.problem_if(value < least, key, format!("{value} is less than {least}"));
    }
}

impl StreamsConfig {
    /// Checks values and relations, and answers what has no effect or another one than asked for.
    ///
    /// What only the cluster knows (that `transaction.timeout.ms` is within the broker's maximum) is checked at start.
    ///
    /// # Errors
    /// All findings together.
    pub fn validate(&self) -> Result<Vec<ConfigWarning>, ConfigError> {
        let mut findings = Findings {
            warnings: self.notes.clone(),
            ..Findings::default()
        };
        self.check_names(&mut findings);
        self.check_not_built(&mut findings);
        self.check_ranges(&mut findings);
        self.check_clients(&mut findings);
        self.check_relations(&mut findings);
        if findings.problems.is_empty() {
            Ok(findings.warnings)
        } else {
            Err(ConfigError(findings.problems))
        }
    }

    fn check_names(&self, findings: &mut Findings) {
        let id = &self.application_id;
        findings.problem_if(id.is_empty(), "application.id", "it is missing");
        // It is a part of topic names, which may have 249 characters; internal names need some.
        findings.problem_if(
            !id.is_empty() && (!is_topic_name(id) || id.len() > 200),
            "application.id",
            format!("`{id}` cannot begin a topic's name: use at most 200 of a-z A-Z 0-9 . _ -"),
        );
        let servers = &self.bootstrap_servers;
        findings.problem_if(servers.trim().is_empty(), "bootstrap.servers", "it is missing");
        for server in servers.split(',').map(str::trim).filter(|_| !servers.trim().is_empty()) {
            let port = server
                .rsplit_once(':')
                .and_then(|(host, port)| Some((!host.is_empty(), port.parse::<u16>().ok()?)));
            findings.problem_if(
                !matches!(port, Some((true, 1..))),
                "bootstrap.servers",
                format!("`{server}` is not `host:port`"),
            );
        }
        for (key, name) in [
            (
                "errors.dead.letter.queue.topic.name",
                &self.errors_dead_letter_queue_topic_name,
            ),
            ("process.id", &self.process_id),
        ] {
            let wrong = name
                .as_ref()
                .is_some_and(|name| !is_topic_name(name) || name.len() > 249);
            findings.problem_if(wrong, key, "use at most 249 of a-z A-Z 0-9 . _ -");
        }
        findings.problem_if(self.client_tags.len() > 5, "client.tag.", "at most 5 tags are allowed");
        for (tag, value) in &self.client_tags {
            let wrong = tag.is_empty() || tag.len() > 20 || value.len() > 30;
            findings.problem_if(
                wrong,
                &format!("client.tag.{tag}"),
                "a tag has at most 20 characters, its value 30",
            );
        }
    }

    fn check_not_built(&self, findings: &mut Findings) {
        findings.problem_if(
            !matches!(self.group_protocol, GroupProtocol::Auto | GroupProtocol::Streams),
            "group.protocol",
            format!(
                "`{}` is not built yet: use `auto` or `streams`, with brokers 4.2 or later",
                self.group_protocol.to_text()
            ),
        );
    }

    fn check_ranges(&self, findings: &mut Findings) {
        let mut at_least = |key, value: i64, least| findings.at_least(key, value, least);
        at_least("num.stream.threads", self.num_stream_threads.into(), 1);
        at_least(
            "buffered.records.per.partition",
            self.buffered_records_per_partition.into(),
            1,
        );
        at_least("max.task.idle.ms", self.max_task_idle_ms, -1);
        at_least("task.timeout.ms", self.task_timeout_ms, 0);
        at_least("poll.ms", self.poll_ms, 0);
        at_least("repartition.purge.interval.ms", self.repartition_purge_interval_ms, 0);
        at_least("state.cleanup.delay.ms", self.state_cleanup_delay_ms, 0);
        at_least(
            "windowstore.changelog.additional.retention.ms",
            self.windowstore_changelog_additional_retention_ms,
            0,
        );
        at_least("commit.interval.ms", self.effective_commit_interval_ms(), 0);
        at_least("memory.max.bytes", self.memory_max_bytes.unwrap_or(i64::MAX), 16 << 20);
        at_least(
            "statestore.cache.max.bytes",
            self.statestore_cache_max_bytes.unwrap_or(0),
            0,
        );
        at_least(
            "streams.heartbeat.max.ms",
            self.streams_heartbeat_max_ms.unwrap_or(i64::MAX),
            100,
        );
        findings.problem_if(
            self.replication_factor < 1 && self.replication_factor != -1,
            "replication.factor",
            format!(
                "{} is neither -1 (the broker's default) nor at least 1",
                self.replication_factor
            ),
        );
        if ["/tmp", "/var/tmp"]
            .iter()
            .any(|folder| self.state_dir.starts_with(folder))
        {
            findings.warnings.push(ConfigWarning {
                key: "state.dir".to_owned(),
                message: format!(
                    "`{}` is for temporary files: when it is emptied, all state is restored from the changelogs",
                    self.state_dir.display()
                ),
            });
        }
    }

    fn check_clients(&self, findings: &mut Findings) {
        let ids = ClientIds::new(self, "process");
        for client in Client::EVERY {
            let built = self.build(client, &ids, 1);
            // A key without prefix is found once for each client that has it.
            for (key, message) in built.warnings {
                let warning = ConfigWarning { key, message };
                if !findings.warnings.contains(&warning) {
                    findings.warnings.push(warning);
                }
            }
            for (key, message) in built.problems {
                let problem = ConfigProblem { key, message };
                if !findings.problems.contains(&problem) {
                    findings.problems.push(problem);
                }
            }
        }
        self.check_value::<OffsetReset>(findings, Client::Main, "auto.offset.reset", |_| true, "is not built");
        self.check_value::<i32>(
            findings,
            Client::Main,
            "max.poll.records",
            |records| *records >= 1,
            "must be 1 or more",
        );
        self.check_value::<i64>(
            findings,
            Client::Main,
            "max.poll.interval.ms",
            |ms| *ms >= 1,
            "must be 1 or more",
        );
        self.check_value::<i64>(
            findings,
            Client::Producer,
            "transaction.timeout.ms",
            |ms| *ms >= 1000,
            "must be 1000 or more",
        );
        for key in ["max.in.flight.requests.per.connection", "max.in.flight"] {
            let fits = |requests: &i64| (1..=5).contains(requests);
            self.check_value(
                findings,
                Client::Producer,
                key,
                fits,
                "must be from 1 to 5, or records could change their order",
            );
        }
    }

    /// Checks a client's property that the library itself reads.
    fn check_value<T: Setting>(
        &self,
        findings: &mut Findings,
        client: Client,
        key: &str,
        fits: impl Fn(&T) -> bool,
        rule: &str,
    ) {
        match self.given(client, key).map(T::from_text) {
            Some(Err(message)) => findings.problem_if(true, key, message),
            Some(Ok(value)) => findings.problem_if(!fits(&value), key, format!("{} {rule}", value.to_text())),
            None => {}
        }
    }

    fn check_relations(&self, findings: &mut Findings) {
        let (commit, transaction) = (self.effective_commit_interval_ms(), self.transaction_timeout_ms());
        findings.problem_if(
            self.processing_guarantee == ProcessingGuarantee::ExactlyOnceV2 && commit >= transaction,
            "commit.interval.ms",
            format!("{commit} ms is not below `transaction.timeout.ms` ({transaction} ms): each transaction would be aborted by the broker"),
        );
        if let (Some(cache), Some(memory)) = (self.statestore_cache_max_bytes, self.memory_max_bytes) {
            findings.problem_if(
                cache > memory,
                "statestore.cache.max.bytes",
                format!("{cache} is more than `memory.max.bytes` ({memory})"),
            );
        }
        let segment = self
            .topic_configs
            .get("segment.bytes")
            .and_then(|text| text.parse::<i64>().ok());
        if let (Some(segment), Some(batch)) = (segment, self.own::<i64>(Client::Producer, "batch.size")) {
            findings.problem_if(
                segment < batch,
                "topic.segment.bytes",
                format!("{segment} is less than `producer.batch.size` ({batch}): a batch must fit in a segment"),
            );
        }
    }
}

/// Whether a text may be (a part of) a topic's name.
fn is_topic_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
