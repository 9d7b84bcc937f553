//! Settings from Java's properties and from the environment.

use super::clients::Scope;
use super::nearest::nearest;
use super::table::{self, Class, Key};
use super::validate::{ConfigError, ConfigProblem, ConfigWarning};
use super::{FIELDS, StreamsConfig, client_keys};

/// Old names, and the ones that win over them.
pub(super) static RENAMED: &[(&str, &str)] = &[
    ("cache.max.bytes.buffering", "statestore.cache.max.bytes"),
    (
        "default.deserialization.exception.handler",
        "deserialization.exception.handler",
    ),
    ("default.production.exception.handler", "production.exception.handler"),
];

const TOPIC: &str = "topic.";
const CLIENT_TAG: &str = "client.tag.";

impl StreamsConfig {
    /// Settings from pairs of Java's names and values; of equal names the last one counts. Keys without an effect
    /// here become warnings of [`validate`](Self::validate).
    ///
    /// # Errors
    /// Everything that `validate` finds, and every unknown key (with the nearest known one) and value that does not
    /// read, all at once.
    ///
    /// ```
    /// use streams_core::config::StreamsConfig;
    /// let pairs = [("application.id", "billing"), ("bootstrap.servers", "localhost:9092"), ("num.stream.thread", "2")];
    /// let error = StreamsConfig::from_properties(pairs).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `num.stream.threads`?"));
    /// ```
    pub fn from_properties<K: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError> {
        let pairs: Vec<(K, V)> = properties.into_iter().collect();
        let mut config = StreamsConfig::new("", "");
        let mut problems = Vec::new();
        let given = |name: &str| pairs.iter().any(|(key, _)| key.as_ref() == name);
        for (key, value) in &pairs {
            let (key, value) = (key.as_ref(), value.as_ref().trim());
            if let Some((_, new)) = RENAMED.iter().find(|(old, new)| *old == key && given(new)) {
                config.note(key, format!("`{new}` is given too and wins"));
            } else if let Err(message) = config.put(key, value) {
                problems.push(ConfigProblem {
                    key: key.to_owned(),
                    message,
                });
            }
        }
        match config.validate() {
            Ok(_) if problems.is_empty() => Ok(config),
            Ok(_) => Err(ConfigError(problems)),
            Err(ConfigError(found)) => {
                // A value that did not read left the default behind, which needs no second complaint.
                let missing: Vec<_> = found
                    .into_iter()
                    .filter(|new| problems.iter().all(|old| old.key != new.key))
                    .collect();
                problems.extend(missing);
                Err(ConfigError(problems))
            }
        }
    }

    /// Settings from environment variables: those that begin with `STREAMS_`, see [`env_properties`].
    ///
    /// # Errors
    /// As [`from_properties`](Self::from_properties).
    pub fn from_env(variables: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        Self::from_properties(env_properties(variables))
    }

    /// Sets one property by Java's name, with or without a prefix, or by librdkafka's name.
    ///
    /// # Errors
    /// When the key is unknown or the value does not read.
    pub fn property(mut self, key: &str, value: &str) -> Result<Self, ConfigError> {
        match self.put(key, value) {
            Ok(()) => Ok(self),
            Err(message) => Err(ConfigError(vec![ConfigProblem {
                key: key.to_owned(),
                message,
            }])),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), String> {
        if let Some(name) = key.strip_prefix(CLIENT_TAG) {
            self.client_tags.insert(name.to_owned(), value.to_owned());
            return Ok(());
        }
        if let Some((old, new)) = RENAMED.iter().find(|(old, _)| *old == key) {
            self.note(old, format!("the name is deprecated: use `{new}`"));
            return self.put(new, value);
        }
        if let Some(field) = FIELDS.iter().find(|field| field.key == key) {
            return (field.set)(self, value);
        }
        if let Some(known) = table::find(key).filter(|known| known.class != Class::Translated) {
            return self.put_without_field(known, value);
        }
        if let Some((_, reason)) = table::PRIVATE.iter().find(|(name, _)| *name == key) {
            self.note(key, format!("it has no effect here: {reason}"));
            return Ok(());
        }
        if client_keys::find(key).is_some() {
            self.clients.insert((Scope::All, key.to_owned()), value.to_owned());
            return Ok(());
        }
        // After librdkafka's own names, some of which begin so.
        if let Some(name) = key.strip_prefix(TOPIC) {
            self.topic_configs.insert(name.to_owned(), value.to_owned());
            return Ok(());
        }
        self.put_with_prefix(key, value)
    }

    fn put_without_field(&mut self, known: &Key, value: &str) -> Result<(), String> {
        match known.class {
            Class::Limited(accepted, _) if accepted.iter().any(|taken| same(taken, value)) => Ok(()),
            Class::Limited(_, advice) => Err(format!("`{value}` is not taken: {advice}")),
            Class::NotApplicable(reason) => {
                if !known.java_default.is_some_and(|default| same(default, value)) {
                    self.note(known.name, format!("it has no effect here: {reason}"));
                }
                Ok(())
            }
            Class::Honoured | Class::Translated => Err(format!("`{}` has no place to go", known.name)),
        }
    }

    fn put_with_prefix(&mut self, key: &str, value: &str) -> Result<(), String> {
        let prefixed = |scope: &Scope| key.strip_prefix(scope.prefix()).map(|name| (*scope, name));
        let Some((scope, name)) = Scope::PREFIXED.iter().find_map(prefixed) else {
            let known = table::TABLE.iter().map(|key| key.name).chain(client_keys::names());
            return Err(unknown(nearest(key, known)));
        };
        if client_keys::find(name).is_none() {
            let near = nearest(name, client_keys::names()).map(|near| format!("{}{near}", scope.prefix()));
            return Err(unknown(near.as_deref()));
        }
        self.clients.insert((scope, name.to_owned()), value.to_owned());
        Ok(())
    }

    fn note(&mut self, key: &str, message: String) {
        self.notes.push(ConfigWarning {
            key: key.to_owned(),
            message,
        });
    }
}

fn unknown(near: Option<&str>) -> String {
    match near {
        Some(near) => format!("the key is not known; did you mean `{near}`?"),
        None => "the key is not known; docs/configuration.md lists all".to_owned(),
    }
}

/// Equal but for case, a Java package and brackets of a list.
fn same(known: &str, value: &str) -> bool {
    let plain = |text: &str| {
        let text = text.trim().trim_start_matches("class ").trim_matches(['[', ']']);
        let class = if text.contains('/') || text.contains(':') {
            text
        } else {
            text.rsplit('.').next().unwrap_or(text)
        };
        class.to_ascii_lowercase()
    };
    known.eq_ignore_ascii_case(value) || plain(known) == plain(value) || (known == "null" && value.is_empty())
}

/// How the names of tests' own variables go on behind `STREAMS_`. No key begins so.
const OF_TESTS: [&str; 2] = ["TEST", "CRASH_"];

/// The properties that environment variables name: `STREAMS_` and the key in capitals, dots as underscores
/// (`STREAMS_CONSUMER_FETCH_MIN_BYTES`). Other variables are left out. To put the environment over a file, chain the
/// two and give them to [`StreamsConfig::from_properties`]. `STREAMS_TEST…` and `STREAMS_CRASH_…` are the variables of
/// tests, which an application started by one inherits; they are left out too.
///
/// ```
/// use streams_core::config::env_properties;
/// let variables = [("STREAMS_COMMIT_INTERVAL_MS".to_owned(), "50".to_owned()), ("HOME".to_owned(), "/root".to_owned())];
/// assert_eq!(env_properties(variables), [("commit.interval.ms".to_owned(), "50".to_owned())]);
/// ```
pub fn env_properties(variables: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let named = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("STREAMS_")?.to_owned(), value)))
        .filter(|(name, _)| !OF_TESTS.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(name, value)| (property_of(&name), value));
    named.collect()
}

/// A few keys have underscores of their own, so known keys are compared before underscores become dots.
fn property_of(variable: &str) -> String {
    let in_capitals = |key: &str| key.replace('.', "_").to_ascii_uppercase();
    let own = table::TABLE
        .iter()
        .map(|key| key.name)
        .chain(table::PRIVATE.iter().map(|(key, _)| *key));
    if let Some(known) = own.chain(client_keys::names()).find(|key| in_capitals(key) == variable) {
        return known.to_owned();
    }
    variable.to_ascii_lowercase().replace('_', ".")
}
