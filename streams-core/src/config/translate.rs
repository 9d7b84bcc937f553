//! From Java's client keys to librdkafka's properties.

use std::collections::BTreeMap;

use super::client_keys::{self, Rule};
use super::clients::{Client, Scope};
use super::security;

/// A client's properties, and what there is to say about them.
#[derive(Debug, Default)]
pub(super) struct Built {
    properties: BTreeMap<String, String>,
    /// Java's key and what happens to it.
    pub(super) warnings: Vec<(String, String)>,
    /// Java's key and what to do.
    pub(super) problems: Vec<(String, String)>,
}

impl Built {
    pub(super) fn into_properties(self) -> Vec<(String, String)> {
        self.properties.into_iter().collect()
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.properties.insert(name.to_owned(), value.into());
    }

    pub(super) fn warn(&mut self, key: &str, message: impl Into<String>) {
        self.warnings.push((key.to_owned(), message.into()));
    }

    pub(super) fn refuse(&mut self, key: &str, message: impl Into<String>) {
        self.problems.push((key.to_owned(), message.into()));
    }

    /// Sets what the library depends on; another value is overruled, and that is said.
    pub(super) fn fix(&mut self, name: &str, value: String) {
        let before = self.properties.insert(name.to_owned(), value.clone());
        if let Some(before) = before.filter(|before| !same_value(name, before, &value)) {
            self.warn(name, format!("it is always `{value}` here; `{before}` is not taken"));
        }
    }

    /// Leaves out what must not be set; that it was given is said.
    pub(super) fn leave_out(&mut self, name: &str, reason: &str) {
        if self.properties.remove(name).is_some() {
            self.warn(name, format!("it is not taken: {reason}"));
        }
    }

    /// librdkafka refuses a producer whose deliveries or requests may outlast its transactions.
    pub(super) fn bound_by_transaction(&mut self, timeout_ms: i64) {
        self.bound("message.timeout.ms", "delivery.timeout.ms", timeout_ms, true);
        self.bound(
            "socket.timeout.ms",
            "request.timeout.ms",
            timeout_ms.saturating_add(100),
            false,
        );
    }

    fn bound(&mut self, name: &str, java_key: &str, limit_ms: i64, zero_is_endless: bool) {
        let Some(value) = self.properties.get(name).and_then(|value| value.parse::<i64>().ok()) else {
            return;
        };
        if value > limit_ms || (value == 0 && zero_is_endless) {
            self.set(name, limit_ms.to_string());
            self.warn(
                java_key,
                format!("the producer gets {limit_ms} ms, not {value}: it may not exceed `transaction.timeout.ms`"),
            );
        }
    }
}

/// `acks` has two names for the same value.
fn same_value(name: &str, a: &str, b: &str) -> bool {
    let plain = |value: &str| {
        if name == "acks" && value == "-1" {
            "all".to_owned()
        } else {
            value.to_lowercase()
        }
    };
    plain(a) == plain(b)
}

/// The properties of a client from Java's keys and values, each with the scope that gave it.
pub(super) fn translate(client: Client, settings: &BTreeMap<&str, (Option<Scope>, &str)>) -> Built {
    let mut built = Built::default();
    // Java's names first, so that librdkafka's own name for the same property wins.
    let (java, own): (Vec<_>, Vec<_>) = settings
        .iter()
        .partition(|(key, _)| client_keys::CLIENT_KEYS.iter().any(|known| known.name == **key));
    for (key, (scope, value)) in java.into_iter().chain(own) {
        let shown = format!("{}{key}", scope.unwrap_or(Scope::All).prefix());
        let Some(known) = client_keys::find(key) else { continue };
        if !known.clients.contains(client.letter()) {
            // Without prefix it is for whoever has it.
            if !matches!(scope, None | Some(Scope::All)) {
                built.warn(&shown, "this client has no such key: it is not taken");
            }
            continue;
        }
        apply(&mut built, known.rule, &shown, value);
    }
    let plain = settings.iter().map(|(key, (_, value))| (*key, *value)).collect();
    security::translate(&plain, &mut built);
    built
}

fn apply(built: &mut Built, rule: Rule, key: &str, value: &str) {
    match rule {
        Rule::As(name) => built.set(name, value),
        Rule::SystemSize(name) => built.set(name, if value == "-1" { "0" } else { value }),
        Rule::Kilobytes(name) => match value.parse::<u64>() {
            Ok(bytes) => built.set(name, bytes.div_ceil(1024).max(1).to_string()),
            Err(_) => built.refuse(key, format!("`{value}` is not a number of bytes")),
        },
        Rule::Security | Rule::Ours => {}
        Rule::NotApplicable(reason) => built.warn(key, format!("it has no effect here: {reason}")),
        Rule::Refused(advice) => built.refuse(key, advice),
    }
}
