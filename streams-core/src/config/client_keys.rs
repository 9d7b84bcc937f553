//! The keys of Java's consumers, producers and admin clients, and what librdkafka calls them.

use super::client_keys::Rule::{As, Kilobytes, NotApplicable, Ours, Refused, Security, SystemSize};
use super::librdkafka;

/// What becomes of a client's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// librdkafka's property of this name, the same value.
    As(&'static str),
    /// librdkafka's property of this name, in KiB where Java has bytes.
    Kilobytes(&'static str),
    /// librdkafka's property of this name; Java's −1 is its 0.
    SystemSize(&'static str),
    /// Several keys together give librdkafka's properties.
    Security,
    /// Read by the library itself.
    Ours,
    /// Nothing to act on: a warning with this reason.
    NotApplicable(&'static str),
    /// An error with this advice.
    Refused(&'static str),
}

/// A client's key: its name, the clients that have it (`C`onsumer, `P`roducer, `A`dmin), what becomes of it.
pub(super) struct ClientKey {
    pub(super) name: &'static str,
    pub(super) clients: &'static str,
    pub(super) rule: Rule,
}

const fn all(name: &'static str, rule: Rule) -> ClientKey {
    ClientKey {
        name,
        clients: "CPA",
        rule,
    }
}

const fn consumer(name: &'static str, rule: Rule) -> ClientKey {
    ClientKey {
        name,
        clients: "C",
        rule,
    }
}

const fn producer(name: &'static str, rule: Rule) -> ClientKey {
    ClientKey {
        name,
        clients: "P",
        rule,
    }
}

const RECORDER: Rule = NotApplicable("metrics go to the recorder that the application installs");
const IN_CODE: Rule = Refused("it is a Java class and cannot be loaded here: remove it");
const OPENSSL: Rule = NotApplicable("OpenSSL does the encryption here");
const TYPES: Rule = NotApplicable("serdes are given in code");
const BROKER: Rule =
    NotApplicable("under the streams protocol the broker decides: set `streams.…` on the group with kafka-configs");
const LOGIN: Rule = NotApplicable("librdkafka logs in by its own rules");
const PARTITIONER: Rule =
    NotApplicable("partitions are chosen by the topology, by murmur2 of the key unless it says otherwise");

/// The table, in the order of the documentation.
pub(super) static CLIENT_KEYS: &[ClientKey] = &[
    all("bootstrap.servers", As("bootstrap.servers")),
    all("client.id", As("client.id")),
    all("client.dns.lookup", As("client.dns.lookup")),
    all("client.rack", As("client.rack")),
    all("connections.max.idle.ms", As("connections.max.idle.ms")),
    all("enable.metrics.push", As("enable.metrics.push")),
    all("metadata.max.age.ms", As("topic.metadata.refresh.interval.ms")),
    all("metadata.recovery.strategy", As("metadata.recovery.strategy")),
    all(
        "metadata.recovery.rebootstrap.trigger.ms",
        As("metadata.recovery.rebootstrap.trigger.ms"),
    ),
    all("receive.buffer.bytes", SystemSize("socket.receive.buffer.bytes")),
    all("send.buffer.bytes", SystemSize("socket.send.buffer.bytes")),
    all("reconnect.backoff.ms", As("reconnect.backoff.ms")),
    all("reconnect.backoff.max.ms", As("reconnect.backoff.max.ms")),
    all("request.timeout.ms", As("socket.timeout.ms")),
    all("retry.backoff.ms", As("retry.backoff.ms")),
    all("retry.backoff.max.ms", As("retry.backoff.max.ms")),
    all(
        "socket.connection.setup.timeout.ms",
        As("socket.connection.setup.timeout.ms"),
    ),
    all(
        "socket.connection.setup.timeout.max.ms",
        NotApplicable("librdkafka's time for a connection does not grow"),
    ),
    all(
        "default.api.timeout.ms",
        NotApplicable("`task.timeout.ms` bounds the waits"),
    ),
    all("interceptor.classes", IN_CODE),
    all("metric.reporters", RECORDER),
    all("metrics.num.samples", RECORDER),
    all("metrics.recording.level", RECORDER),
    all("metrics.sample.window.ms", RECORDER),
    all("auto.include.jmx.reporter", RECORDER),
    all(
        "config.providers",
        Refused("resolve secrets before: environment variables `STREAMS_…` are read"),
    ),
    all("security.protocol", As("security.protocol")),
    all("security.providers", OPENSSL),
    all("ssl.truststore.location", Security),
    all("ssl.truststore.type", Security),
    all("ssl.truststore.password", Security),
    all("ssl.truststore.certificates", Security),
    all("ssl.keystore.location", Security),
    all("ssl.keystore.type", Security),
    all("ssl.keystore.password", Security),
    all("ssl.keystore.certificate.chain", Security),
    all("ssl.keystore.key", Security),
    all("ssl.key.password", As("ssl.key.password")),
    all("ssl.endpoint.identification.algorithm", Security),
    all("ssl.cipher.suites", As("ssl.cipher.suites")),
    all("ssl.enabled.protocols", OPENSSL),
    all("ssl.protocol", OPENSSL),
    all("ssl.provider", OPENSSL),
    all("ssl.keymanager.algorithm", OPENSSL),
    all("ssl.trustmanager.algorithm", OPENSSL),
    all("ssl.secure.random.implementation", OPENSSL),
    all("ssl.engine.factory.class", IN_CODE),
    all("sasl.mechanism", As("sasl.mechanism")),
    all("sasl.mechanisms", As("sasl.mechanism")),
    all("sasl.jaas.config", Security),
    all("sasl.client.callback.handler.class", IN_CODE),
    all("sasl.login.callback.handler.class", IN_CODE),
    all("sasl.login.class", IN_CODE),
    all("sasl.login.connect.timeout.ms", LOGIN),
    all("sasl.login.read.timeout.ms", LOGIN),
    all("sasl.login.refresh.buffer.seconds", LOGIN),
    all("sasl.login.refresh.min.period.seconds", LOGIN),
    all("sasl.login.refresh.window.factor", LOGIN),
    all("sasl.login.refresh.window.jitter", LOGIN),
    all("sasl.login.retry.backoff.ms", LOGIN),
    all("sasl.login.retry.backoff.max.ms", LOGIN),
    consumer("group.id", As("group.id")),
    consumer("enable.auto.commit", As("enable.auto.commit")),
    consumer("allow.auto.create.topics", As("allow.auto.create.topics")),
    consumer("isolation.level", As("isolation.level")),
    consumer("auto.offset.reset", Ours),
    consumer("max.poll.records", Ours),
    consumer("max.poll.interval.ms", Ours),
    consumer("fetch.min.bytes", As("fetch.min.bytes")),
    consumer("fetch.max.bytes", As("fetch.max.bytes")),
    consumer("fetch.max.wait.ms", As("fetch.wait.max.ms")),
    consumer("max.partition.fetch.bytes", As("fetch.message.max.bytes")),
    consumer("check.crcs", As("check.crcs")),
    consumer("session.timeout.ms", BROKER),
    consumer("heartbeat.interval.ms", BROKER),
    consumer(
        "group.instance.id",
        NotApplicable("the identity kept in `state.dir` does what static membership does"),
    ),
    consumer(
        "group.protocol",
        NotApplicable("set the `group.protocol` without prefix"),
    ),
    consumer("group.remote.assignor", BROKER),
    consumer("partition.assignment.strategy", BROKER),
    consumer("auto.commit.interval.ms", NotApplicable("`commit.interval.ms` decides")),
    consumer(
        "exclude.internal.topics",
        NotApplicable("topics are named by the topology"),
    ),
    consumer("key.deserializer", TYPES),
    consumer("value.deserializer", TYPES),
    producer("acks", As("acks")),
    producer("enable.idempotence", As("enable.idempotence")),
    producer("transactional.id", As("transactional.id")),
    producer("transaction.timeout.ms", As("transaction.timeout.ms")),
    producer(
        "transaction.two.phase.commit.enable",
        Refused("two-phase commits are not supported: remove it"),
    ),
    producer("batch.size", As("batch.size")),
    producer("buffer.memory", Kilobytes("queue.buffering.max.kbytes")),
    producer("compression.type", As("compression.codec")),
    producer(
        "compression.gzip.level",
        NotApplicable("set librdkafka's `compression.level`"),
    ),
    producer(
        "compression.lz4.level",
        NotApplicable("set librdkafka's `compression.level`"),
    ),
    producer(
        "compression.zstd.level",
        NotApplicable("set librdkafka's `compression.level`"),
    ),
    producer("delivery.timeout.ms", As("message.timeout.ms")),
    producer("linger.ms", As("linger.ms")),
    producer("queue.buffering.max.ms", As("linger.ms")),
    producer(
        "max.block.ms",
        NotApplicable("a full queue is waited for between records, within `task.timeout.ms`"),
    ),
    producer(
        "max.in.flight.requests.per.connection",
        As("max.in.flight.requests.per.connection"),
    ),
    producer("max.in.flight", As("max.in.flight.requests.per.connection")),
    producer("max.request.size", As("message.max.bytes")),
    producer("metadata.max.idle.ms", NotApplicable("librdkafka keeps what it needs")),
    producer("retries", As("retries")),
    producer("message.send.max.retries", As("retries")),
    producer("request.required.acks", As("acks")),
    producer("partitioner.class", PARTITIONER),
    producer("partitioner.adaptive.partitioning.enable", PARTITIONER),
    producer("partitioner.availability.timeout.ms", PARTITIONER),
    producer("partitioner.ignore.keys", PARTITIONER),
    producer("key.serializer", TYPES),
    producer("value.serializer", TYPES),
    ClientKey {
        name: "bootstrap.controllers",
        clients: "A",
        rule: Refused("give `bootstrap.servers`"),
    },
];

/// Who has a key, and what becomes of it: a key of Java's clients, or a property of librdkafka itself.
pub(super) fn find(name: &str) -> Option<ClientKey> {
    if let Some(ClientKey { name, clients, rule }) = CLIENT_KEYS.iter().find(|key| key.name == name) {
        return Some(ClientKey {
            name,
            clients,
            rule: *rule,
        });
    }
    let own = |list: &'static [&'static str], clients| {
        let name = list.iter().find(|property| **property == name)?;
        Some(ClientKey {
            name,
            clients,
            rule: As(name),
        })
    };
    own(librdkafka::ALL, "CPA")
        .or_else(|| own(librdkafka::CONSUMER, "C"))
        .or_else(|| own(librdkafka::PRODUCER, "P"))
}

/// Every name that [`find`] knows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let own = [librdkafka::ALL, librdkafka::CONSUMER, librdkafka::PRODUCER]
        .into_iter()
        .flatten()
        .copied();
    CLIENT_KEYS.iter().map(|key| key.name).chain(own)
}
