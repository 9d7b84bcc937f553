//! One table of every key that Kafka Streams (Java) 4.4 knows, and of ours: what becomes of it here.
//!
//! `docs/configuration.md` is rendered from it. The names and Java's defaults are compared with those that Java's
//! `StreamsConfig.configDef()` printed (`tests/golden/golden-formats.json`).

use super::table::Class::{Honoured, Limited, NotApplicable, Translated};
use super::table::Type::{Boolean, Class as Clazz, Int, List, Long, Text};

/// The type of a key's value, as Java names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// Comma-separated text.
    List,
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    Long,
    /// `true` or `false`.
    Boolean,
    /// A Java class.
    Class,
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It means here what it means in Java, unless the note says more.
    Honoured,
    /// It goes to the clients, under librdkafka's name.
    Translated,
    /// It has nothing to act on here: a value other than the default gives a warning with this reason.
    NotApplicable(&'static str),
    /// Only these values are taken; any other is an error that says what to do.
    Limited(&'static [&'static str], &'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub value_type: Type,
    /// Java's default; empty text is Java's empty text, `null` its null. `None` = Java does not know the key.
    pub java_default: Option<&'static str>,
    /// Our default where it is another one.
    pub default: Option<&'static str>,
    /// What becomes of it.
    pub class: Class,
    /// What else there is to say.
    pub note: &'static str,
}

const fn key(name: &'static str, value_type: Type, java_default: &'static str, class: Class) -> Key {
    Key {
        name,
        value_type,
        java_default: Some(java_default),
        default: None,
        class,
        note: "",
    }
}

const fn ours(name: &'static str, value_type: Type, default: &'static str, note: &'static str) -> Key {
    Key {
        name,
        value_type,
        java_default: None,
        default: Some(default),
        class: Honoured,
        note,
    }
}

impl Key {
    const fn default(mut self, default: &'static str) -> Key {
        self.default = Some(default);
        self
    }

    const fn note(mut self, note: &'static str) -> Key {
        self.note = note;
        self
    }
}

const IN_TYPES: Class =
    NotApplicable("the serde follows from the type: `impl DefaultSerde`, or pass one with a `…_with` method");
const BY_BROKER: Class = NotApplicable("under the streams protocol the broker assigns the tasks");
const BY_RECORDER: Class = NotApplicable("metrics go to the recorder that the application installs");
const JAVA_CLASS: &str = "is a Java class and cannot be loaded here";

/// The table, in the order of the documentation.
pub static TABLE: &[Key] = &[
    key("application.id", Text, "<required>", Honoured).note("Also the group id and the prefix of internal topics."),
    key("bootstrap.servers", List, "<required>", Honoured),
    key("num.stream.threads", Int, "1", Honoured),
    key("processing.guarantee", Text, "at_least_once", Honoured)
        .default("exactly_once_v2")
        .note("`exactly_once_v2`, `at_least_once` (Java's default) or `at_most_once` (ours)."),
    key("group.protocol", Text, "classic", Honoured).default("auto").note(
        "`auto` or `streams` (KIP-1071, brokers 4.2 and later); `classic` and `consumer` are not built yet and refused.",
    ),
    key("commit.interval.ms", Long, "30000", Honoured)
        .default("100")
        .note("Java's default under exactly-once too, where it must be below `transaction.timeout.ms` (10000). 30000 without transactions. At most once commits before it processes; this is then the longest time until state is applied."),
    key("state.dir", Text, "${java.io.tmpdir}/kafka-streams", Honoured)
        .default("/tmp/kafka-streams")
        .note("A warning as long as it is a folder for temporary files. Not shared with Java."),
    key("statestore.cache.max.bytes", Long, "10485760", Honoured)
        .default("a part of memory.max.bytes")
        .note("Shared by all threads; 0 emits every update."),
    key("cache.max.bytes.buffering", Long, "10485760", Honoured)
        .default("")
        .note("Deprecated name of `statestore.cache.max.bytes`, which wins."),
    key("max.task.idle.ms", Long, "0", Honoured).note("−1 = never wait; 0 = only for data known to be on the broker."),
    key("buffered.records.per.partition", Int, "1000", Honoured),
    key("task.timeout.ms", Long, "300000", Honoured),
    key("poll.ms", Long, "100", Honoured).note("The longest wait for records when there is nothing to do."),
    key("replication.factor", Int, "-1", Honoured).note("−1 = the broker's default."),
    key("repartition.purge.interval.ms", Long, "30000", Honoured),
    key("state.cleanup.delay.ms", Long, "600000", Honoured),
    key("windowstore.changelog.additional.retention.ms", Long, "86400000", Honoured),
    key("client.id", Text, "", Honoured).note("Empty = `<application.id>-<process id>`."),
    key("errors.dead.letter.queue.topic.name", Text, "null", Honoured),
    key("deserialization.exception.handler", Clazz, "LogAndFailExceptionHandler", Honoured)
        .note("`LogAndFail…` or `LogAndContinue…`; a handler of your own is given in code."),
    key("default.deserialization.exception.handler", Clazz, "LogAndFailExceptionHandler", Honoured)
        .default("")
        .note("Deprecated name of `deserialization.exception.handler`, which wins."),
    key("processing.exception.handler", Clazz, "LogAndFailProcessingExceptionHandler", Honoured)
        .note("`LogAndFail…` or `LogAndContinue…`; a handler of your own is given in code."),
    key("production.exception.handler", Clazz, "DefaultProductionExceptionHandler", Honoured)
        .note("Only the default; a handler of your own is given in code."),
    key("default.production.exception.handler", Clazz, "DefaultProductionExceptionHandler", Honoured)
        .default("")
        .note("Deprecated name of `production.exception.handler`, which wins."),
    ours("commit.adaptive", Boolean, "true", "Commit as soon as all that has arrived is processed, not only at the interval; at most a fifth of the time goes by in commits."),
    ours("commit.pipelined", Boolean, "true", "Process the next records while the last commit is on its way."),
    ours(
        "memory.max.bytes",
        Long,
        "60 % of the cgroup's limit, else 25 % of the machine",
        "One limit for RocksDB, caches, open epochs, outputs and the clients' queues.",
    ),
    ours("process.id", Text, "random, kept in state.dir", "For places without a volume: give the pod's name."),
    ours(
        "streams.heartbeat.max.ms",
        Long,
        "the broker's interval",
        "The longest time between heartbeats: it bounds how late a revocation is heard of.",
    ),
    ours("log.record.content", Boolean, "false", "Keys and values of failing records in logs."),
    key("security.protocol", Text, "PLAINTEXT", Translated),
    key("connections.max.idle.ms", Long, "540000", Translated).default("0").note("0 = never closed by the client."),
    key("enable.metrics.push", Boolean, "true", Translated),
    key("metadata.max.age.ms", Long, "300000", Translated).note("`topic.metadata.refresh.interval.ms`"),
    key("metadata.recovery.strategy", Text, "rebootstrap", Translated),
    key("metadata.recovery.rebootstrap.trigger.ms", Long, "300000", Translated),
    key("receive.buffer.bytes", Int, "32768", Translated)
        .default("0")
        .note("`socket.receive.buffer.bytes`; 0 = the system's default. Java's −1 is that too."),
    key("send.buffer.bytes", Int, "131072", Translated)
        .default("0")
        .note("`socket.send.buffer.bytes`; 0 = the system's default. Java's −1 is that too."),
    key("reconnect.backoff.ms", Long, "50", Translated).default("100"),
    key("reconnect.backoff.max.ms", Long, "1000", Translated).default("10000"),
    key("request.timeout.ms", Int, "40000", Translated).default("60000").note(
        "`socket.timeout.ms`. The producer's is at most `transaction.timeout.ms` + 100, by default 9900: librdkafka asks for it.",
    ),
    key("retry.backoff.ms", Long, "100", Translated),
    key(
        "num.standby.replicas",
        Int,
        "0",
        Limited(&["0"], "standby replicas are not built yet: a crashed task restores from its changelog elsewhere; leave it at 0"),
    ),
    key(
        "topology.optimization",
        Text,
        "none",
        Limited(&["none"], "optimizations change topic names, so they are given where the topology is built: `StreamsBuilder::build_with`; leave it at `none`"),
    ),
    key(
        "ensure.explicit.internal.resource.naming",
        Boolean,
        "false",
        Limited(&["false"], "the check is not built yet: leave it at false, and name your stores"),
    ),
    key(
        "processing.exception.handler.global.enabled",
        Boolean,
        "false",
        Limited(&["false"], "errors of global stores stop the client: leave it at false"),
    ),
    key(
        "upgrade.from",
        Text,
        "null",
        Limited(
            &["null", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3"],
            "from 3.5 on nothing has to be written differently; older members can't be in a streams group: upgrade Java to 3.5 or later first, with its own `upgrade.from`",
        ),
    ),
    key(
        "application.server",
        Text,
        "",
        Limited(&[""], "queries across instances are not built yet: leave it empty"),
    ),
    key(
        "default.timestamp.extractor",
        Clazz,
        "FailOnInvalidTimestamp",
        Limited(&["FailOnInvalidTimestamp"], "give the extractor in code, with `Consumed`"),
    ),
    key(
        "default.dsl.store",
        Text,
        "rocksDB",
        Limited(&["rocksDB"], "choose in-memory stores one by one, with `Materialized`"),
    ),
    key(
        "dsl.store.suppliers.class",
        Clazz,
        "BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers",
        Limited(
            &["BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers", "RocksDBDslStoreSuppliers"],
            "choose in-memory stores one by one, with `Materialized`",
        ),
    ),
    key(
        "dsl.store.format",
        Text,
        "DEFAULT",
        Limited(&["DEFAULT"], "stores with headers are not built yet: leave it at DEFAULT, and keep in values what you need of headers"),
    ),
    key(
        "processor.wrapper.class",
        Clazz,
        "NoOpProcessorWrapper",
        Limited(&["NoOpProcessorWrapper"], JAVA_CLASS),
    ),
    key(
        "default.client.supplier",
        Clazz,
        "DefaultKafkaClientSupplier",
        Limited(&["DefaultKafkaClientSupplier"], JAVA_CLASS),
    ),
    key(
        "config.providers",
        List,
        "[]",
        Limited(&["[]", ""], "resolve secrets before: environment variables `STREAMS_…` are read"),
    ),
    key(
        "state.cleanup.dir.max.age.ms",
        Long,
        "-1",
        Limited(&["-1"], "local state is never deleted by age: leave it at -1"),
    ),
    key("default.key.serde", Clazz, "null", IN_TYPES),
    key("default.value.serde", Clazz, "null", IN_TYPES),
    key("default.list.key.serde.inner", Clazz, "null", IN_TYPES),
    key("default.list.key.serde.type", Clazz, "null", IN_TYPES),
    key("default.list.value.serde.inner", Clazz, "null", IN_TYPES),
    key("default.list.value.serde.type", Clazz, "null", IN_TYPES),
    key("windowed.inner.class.serde", Text, "null", IN_TYPES),
    key("window.size.ms", Long, "null", IN_TYPES),
    key("acceptable.recovery.lag", Long, "10000", BY_BROKER),
    key("max.warmup.replicas", Int, "2", BY_BROKER),
    key("probing.rebalance.interval.ms", Long, "600000", BY_BROKER),
    key("rack.aware.assignment.non_overlap_cost", Int, "null", BY_BROKER),
    key("rack.aware.assignment.strategy", Text, "none", BY_BROKER),
    key("rack.aware.assignment.tags", List, "[]", BY_BROKER),
    key("rack.aware.assignment.traffic_cost", Int, "null", BY_BROKER),
    key("task.assignor.class", Text, "null", BY_BROKER),
    key("built.in.metrics.version", Text, "latest", BY_RECORDER),
    key("metric.reporters", List, "[org.apache.kafka.common.metrics.JmxReporter]", BY_RECORDER),
    key("metrics.num.samples", Int, "2", BY_RECORDER),
    key("metrics.recording.level", Text, "INFO", Honoured)
        .note("`INFO`, `DEBUG` or `TRACE`; what each measures stands in `docs/metrics.md`."),
    key("metrics.sample.window.ms", Long, "30000", BY_RECORDER),
    key("log.summary.interval.ms", Long, "120000", NotApplicable("progress is told by metrics and spans")),
    key("allow.os.group.write.access", Boolean, "false", NotApplicable("the process's umask decides")),
    key(
        "default.interactive.query.isolation.level",
        Text,
        "READ_UNCOMMITTED",
        NotApplicable("a query says in code which level it reads"),
    ),
    key(
        "enable.transactional.statestores",
        Boolean,
        "false",
        NotApplicable("stores are always transactional: they never run ahead of the log"),
    ),
    key("statestore.uncommitted.max.bytes", Long, "67108864", NotApplicable("`memory.max.bytes` bounds it")),
    key("rocksdb.config.setter", Clazz, "null", NotApplicable("`memory.max.bytes` sizes RocksDB")),
    key(
        "metadata.cluster.check.enable",
        Boolean,
        "true",
        NotApplicable("topic ids are kept with the state and compared at each start"),
    ),
    key(
        "topology.description.push.enabled",
        Boolean,
        "true",
        NotApplicable("the topology's description is not pushed to the broker"),
    ),
];

/// Java's private keys, which its users meet now and then: not applicable.
pub(super) static PRIVATE: &[(&str, &str)] = &[
    (
        "internal.task.assignor.class",
        "under the streams protocol the broker assigns the tasks",
    ),
    (
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
        "results are emitted as soon as stream time allows",
    ),
    (
        "__emit.interval.ms.kstreams.windowed.aggregation__",
        "results are emitted as soon as stream time allows",
    ),
    (
        "__iq.consistency.offset.vector.enabled__",
        "positions are not written to changelogs",
    ),
    (
        "__internal.override.topic.prefix__",
        "internal topics begin with the application id",
    ),
    (
        "__processing.threads.enabled__",
        "there are no separate processing threads",
    ),
];

/// The key of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    TABLE.iter().find(|key| key.name == name)
}
