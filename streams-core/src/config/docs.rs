//! The tables as a page of the documentation.

use std::fmt::Write;

use super::client_keys::{CLIENT_KEYS, ClientKey, Rule};
use super::table::{Class, Key, PRIVATE, TABLE, Type};

const HEAD: &str = "# Configuration

Written from the tables in `streams-core/src/config/`; a test compares it with them.

Settings have the names of Kafka Streams (Java). They are given in code (`StreamsConfig::new(…).commit_interval_ms(50)`),
as properties (`StreamsConfig::from_properties`), or as environment variables: `STREAMS_` and the key in capitals, dots as
underscores (`STREAMS_COMMIT_INTERVAL_MS`). `validate` tells all problems at once. An unknown key is an error that names the
nearest known one.

Clients are given settings with a prefix: `consumer.`, `main.consumer.`, `restore.consumer.`, `global.consumer.`, `producer.`,
`admin.`. What is more special wins: `main.consumer.` over `consumer.` over no prefix over our defaults. Names are Java's or
librdkafka's; of two names for one property librdkafka's wins. `topic.` sets configs of internal topics, `client.tag.` tags.

";

/// `docs/configuration.md`: every key and what becomes of it.
#[must_use]
pub fn render_documentation() -> String {
    let mut page = HEAD.to_owned();
    section(
        &mut page,
        "Honoured",
        "They mean what they mean in Java, unless the last column says more.",
        |key| matches!(key.class, Class::Honoured),
    );
    section(
        &mut page,
        "Handed to the clients",
        "librdkafka's name stands in the last column where it is another one.",
        |key| matches!(key.class, Class::Translated),
    );
    section(
        &mut page,
        "Taken with some values only",
        "Any other value is an error.",
        |key| matches!(key.class, Class::Limited(..)),
    );
    section(
        &mut page,
        "Without effect",
        "A value other than the default gives a warning with the reason.",
        |key| matches!(key.class, Class::NotApplicable(_)),
    );
    page.push_str("Java's private keys have no effect either:\n\n| Key | Reason |\n|---|---|\n");
    for (name, reason) in PRIVATE {
        row(&mut page, &[&format!("`{name}`"), reason]);
    }
    page.push_str("\n## Keys of Java's clients\n\nWith a prefix, or without one for every client that has them (C = consumers, P = producers, A = admin).\n\n");
    page.push_str("| Key | For | What becomes of it |\n|---|---|---|\n");
    for ClientKey { name, clients, rule } in CLIENT_KEYS {
        row(&mut page, &[&format!("`{name}`"), clients, &rule_text(name, *rule)]);
    }
    page.push_str(FIXED);
    page
}

const FIXED: &str = "
## Always set

These cannot be changed; another value is overruled with a warning.

| Client | Property | Value |
|---|---|---|
| consumers | `enable.auto.commit`, `enable.auto.offset.store`, `allow.auto.create.topics` | `false` |
| consumers | `enable.partition.eof` | `true` |
| consumers | `isolation.level` | `read_committed`; under `at_least_once` the main and global consumers read `read_uncommitted` (as in Java) unless it is given |
| consumers | `auto.offset.reset` | `error`: the library decides itself, by the main consumer's `auto.offset.reset` |
| consumers | `group.id` | `application.id` |
| producers | `enable.idempotence`, `acks` | `true`, `all` |
| producers | `transactional.id` | `<application.id>-<process id>-<thread>` under `exactly_once_v2`, else none |
| all | `client.id` | from `client.id`, thread and kind of client, as in Java |

Set unless given: `linger.ms` 100, `transaction.timeout.ms` 10000, `max.poll.records` 1000, `auto.offset.reset` earliest. The
producer's `message.timeout.ms` and `socket.timeout.ms` are kept within the transaction timeout, as librdkafka asks for.
";

fn section(page: &mut String, title: &str, lead: &str, takes: impl Fn(&Key) -> bool) {
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "## {title}\n\n{lead}\n\n| Key | Type | Default | Java's default | |\n|---|---|---|---|---|\n"
    );
    for key in TABLE.iter().filter(|key| takes(key)) {
        let java = key.java_default.map_or("no such key".to_owned(), value);
        let default = key.default.map_or_else(|| java.clone(), value);
        let java = if default == java { String::new() } else { java };
        row(
            page,
            &[
                &format!("`{}`", key.name),
                type_name(key.value_type),
                &default,
                &java,
                &remark(key),
            ],
        );
    }
    page.push('\n');
}

fn row(page: &mut String, cells: &[&str]) {
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn value(text: &str) -> String {
    match text {
        "" => "empty".to_owned(),
        "null" => "none".to_owned(),
        "<required>" => "required".to_owned(),
        text if text.contains(' ') => text.to_owned(),
        text => format!("`{text}`"),
    }
}

fn type_name(of: Type) -> &'static str {
    match of {
        Type::Text => "text",
        Type::List => "list",
        Type::Int => "int",
        Type::Long => "long",
        Type::Boolean => "boolean",
        Type::Class => "class",
    }
}

fn remark(key: &Key) -> String {
    let what = match key.class {
        Class::Honoured | Class::Translated => "",
        Class::NotApplicable(reason) => reason,
        Class::Limited(_, advice) => advice,
    };
    [what, key.note]
        .iter()
        .filter(|text| !text.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" ")
}

fn rule_text(name: &str, rule: Rule) -> String {
    match rule {
        Rule::As(own) if own == name => "passed on".to_owned(),
        Rule::As(own) | Rule::SystemSize(own) => format!("`{own}`"),
        Rule::Kilobytes(own) => format!("`{own}`, in KiB"),
        Rule::Security => security_text(name).to_owned(),
        Rule::Ours => "read by the library".to_owned(),
        Rule::NotApplicable(reason) => format!("no effect: {reason}"),
        Rule::Refused(advice) => format!("refused: {advice}"),
    }
}

fn security_text(name: &str) -> &'static str {
    match name {
        "ssl.truststore.location" => "`ssl.ca.location`; PEM only",
        "ssl.truststore.type" => "must be PEM",
        "ssl.truststore.password" => "no effect: PEM has no password",
        "ssl.truststore.certificates" => "`ssl.ca.pem`",
        "ssl.keystore.location" => {
            "PEM: `ssl.certificate.location` and `ssl.key.location`; PKCS12: `ssl.keystore.location`; JKS is refused"
        }
        "ssl.keystore.type" => "PEM or PKCS12",
        "ssl.keystore.password" => "`ssl.keystore.password`, with PKCS12",
        "ssl.keystore.certificate.chain" => "`ssl.certificate.pem`",
        "ssl.keystore.key" => "`ssl.key.pem`",
        "sasl.jaas.config" => "`sasl.username` and `sasl.password`, for PLAIN and SCRAM; other modules are refused",
        "ssl.endpoint.identification.algorithm" => "passed on; empty is `none`",
        _ => "",
    }
}
