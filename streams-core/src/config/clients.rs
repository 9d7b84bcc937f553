//! Which settings each client gets: Java's precedence, our own values on top.

use std::collections::BTreeMap;

use super::translate::{Built, translate};
use super::{ClientIds, OffsetReset, ProcessingGuarantee, Setting, StreamsConfig};

/// For which clients a property was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    All,
    Consumer,
    MainConsumer,
    RestoreConsumer,
    GlobalConsumer,
    Producer,
    Admin,
}

impl Scope {
    /// Longer prefixes first: `main.consumer.` is not `consumer.`.
    pub(super) const PREFIXED: [Scope; 6] = [
        Scope::MainConsumer,
        Scope::RestoreConsumer,
        Scope::GlobalConsumer,
        Scope::Consumer,
        Scope::Producer,
        Scope::Admin,
    ];

    pub(super) fn prefix(self) -> &'static str {
        match self {
            Scope::All => "",
            Scope::Consumer => "consumer.",
            Scope::MainConsumer => "main.consumer.",
            Scope::RestoreConsumer => "restore.consumer.",
            Scope::GlobalConsumer => "global.consumer.",
            Scope::Producer => "producer.",
            Scope::Admin => "admin.",
        }
    }
}

/// A client that is made from the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Main,
    Restore,
    Global,
    Producer,
    Admin,
}

impl Client {
    pub(super) const EVERY: [Client; 5] = [
        Client::Main,
        Client::Restore,
        Client::Global,
        Client::Producer,
        Client::Admin,
    ];

    /// The letter by which [`ClientKey`](super::client_keys::ClientKey) names it.
    pub(super) fn letter(self) -> char {
        match self {
            Client::Main | Client::Restore | Client::Global => 'C',
            Client::Producer => 'P',
            Client::Admin => 'A',
        }
    }

    /// Later ones win.
    pub(super) fn scopes(self) -> &'static [Scope] {
        match self {
            Client::Main => &[Scope::All, Scope::Consumer, Scope::MainConsumer],
            Client::Restore => &[Scope::All, Scope::Consumer, Scope::RestoreConsumer],
            Client::Global => &[Scope::All, Scope::Consumer, Scope::GlobalConsumer],
            Client::Producer => &[Scope::All, Scope::Producer],
            Client::Admin => &[Scope::All, Scope::Admin],
        }
    }

    /// What Kafka Streams sets unless it is given (`StreamsConfig`, client overrides). Java's endless
    /// `delivery.timeout.ms` is missing: librdkafka bounds it by the transaction timeout.
    fn defaults(self, config: &StreamsConfig) -> &'static [(&'static str, &'static str)] {
        match (self, config.processing_guarantee) {
            (Client::Producer, ProcessingGuarantee::ExactlyOnceV2) => {
                &[("linger.ms", "100"), ("transaction.timeout.ms", "10000")]
            }
            (Client::Producer, _) => &[("linger.ms", "100")],
            _ => &[],
        }
    }
}

/// Whether a property's value must not be shown.
pub(super) fn is_secret(key: &str) -> bool {
    [
        "password",
        "passphrase",
        "secret",
        "jaas",
        ".pem",
        "ssl.keystore.key",
        "oauthbearer.config",
    ]
    .iter()
    .any(|part| key.contains(part))
}

impl StreamsConfig {
    /// librdkafka's properties of a stream thread's consumer (threads count from 1).
    ///
    /// It is used with `assign()` and explicit offsets: it commits nothing, never chooses an offset itself, and tells
    /// the ends of partitions. Properties that [`validate`](Self::validate) refuses are left out.
    #[must_use]
    pub fn main_consumer_properties(&self, ids: &ClientIds, thread: usize) -> Vec<(String, String)> {
        self.build(Client::Main, ids, thread).into_properties()
    }

    /// librdkafka's properties of a restoring consumer (threads count from 1). See
    /// [`main_consumer_properties`](Self::main_consumer_properties).
    #[must_use]
    pub fn restore_consumer_properties(&self, ids: &ClientIds, thread: usize) -> Vec<(String, String)> {
        self.build(Client::Restore, ids, thread).into_properties()
    }

    /// librdkafka's properties of the consumer of global stores. See
    /// [`main_consumer_properties`](Self::main_consumer_properties).
    #[must_use]
    pub fn global_consumer_properties(&self, ids: &ClientIds) -> Vec<(String, String)> {
        self.build(Client::Global, ids, 1).into_properties()
    }

    /// librdkafka's properties of a stream thread's producer (threads count from 1), with its transactional id under
    /// exactly-once.
    #[must_use]
    pub fn producer_properties(&self, ids: &ClientIds, thread: usize) -> Vec<(String, String)> {
        self.build(Client::Producer, ids, thread).into_properties()
    }

    /// librdkafka's properties of the admin client.
    #[must_use]
    pub fn admin_properties(&self, ids: &ClientIds) -> Vec<(String, String)> {
        self.build(Client::Admin, ids, 1).into_properties()
    }

    /// How many records the main consumer hands over at once (`max.poll.records`). Default 1,000.
    #[must_use]
    pub fn max_poll_records(&self) -> i32 {
        self.own(Client::Main, "max.poll.records").unwrap_or(1000)
    }

    /// How long a stream thread may not ask for records before it counts as lost (`max.poll.interval.ms`), ms.
    /// Default 300,000.
    #[must_use]
    pub fn max_poll_interval_ms(&self) -> i64 {
        self.own(Client::Main, "max.poll.interval.ms").unwrap_or(300_000)
    }

    /// Where to begin without a committed offset (`auto.offset.reset`), unless a source says otherwise. Default
    /// earliest.
    #[must_use]
    pub fn offset_reset(&self) -> OffsetReset {
        self.own(Client::Main, "auto.offset.reset").unwrap_or_default()
    }

    /// How long a transaction may stay open before the broker aborts it (`transaction.timeout.ms`), ms. Default
    /// 10,000.
    #[must_use]
    pub fn transaction_timeout_ms(&self) -> i64 {
        self.own(Client::Producer, "transaction.timeout.ms").unwrap_or(10_000)
    }

    /// The value of a client's property, if it was given and reads.
    pub(super) fn own<T: Setting>(&self, client: Client, key: &str) -> Option<T> {
        self.given(client, key).and_then(|text| T::from_text(text).ok())
    }

    /// The text of a client's property, if it was given.
    pub(super) fn given(&self, client: Client, key: &str) -> Option<&str> {
        let in_scope = |scope: &Scope| self.clients.get(&(*scope, key.to_owned())).map(String::as_str);
        client.scopes().iter().rev().find_map(in_scope)
    }

    /// Java's keys and values of a client, each with the scope that gave it (`None` = Kafka Streams' own default).
    pub(super) fn effective(&self, client: Client) -> BTreeMap<&str, (Option<Scope>, &str)> {
        let mut map = BTreeMap::from([("bootstrap.servers", (None, self.bootstrap_servers.as_str()))]);
        map.extend(client.defaults(self).iter().map(|(key, value)| (*key, (None, *value))));
        for scope in client.scopes() {
            let given = self.clients.iter().filter(|((of, _), _)| of == scope);
            map.extend(given.map(|((_, key), value)| (key.as_str(), (Some(*scope), value.as_str()))));
        }
        map
    }

    pub(super) fn build(&self, client: Client, ids: &ClientIds, thread: usize) -> Built {
        let mut built = translate(client, &self.effective(client));
        if client == Client::Producer && self.processing_guarantee == ProcessingGuarantee::ExactlyOnceV2 {
            built.bound_by_transaction(self.transaction_timeout_ms());
        }
        if client == Client::Producer && self.processing_guarantee != ProcessingGuarantee::ExactlyOnceV2 {
            built.leave_out("transactional.id", "only `exactly_once_v2` has transactions");
        }
        for (name, value) in self.fixed(client, ids, thread) {
            built.fix(name, value);
        }
        built
    }

    /// What the library depends on and nobody may change.
    fn fixed(&self, client: Client, ids: &ClientIds, thread: usize) -> Vec<(&'static str, String)> {
        let exactly_once = self.processing_guarantee == ProcessingGuarantee::ExactlyOnceV2;
        let client_id = match client {
            Client::Main => ids.main_consumer(thread),
            Client::Restore => ids.restore_consumer(thread),
            Client::Global => ids.global_consumer(),
            Client::Producer => ids.producer(thread),
            Client::Admin => ids.admin(),
        };
        let mut fixed = vec![("client.id", client_id)];
        let mut add = |name, value: &str| fixed.push((name, value.to_owned()));
        match client {
            Client::Main | Client::Restore | Client::Global => {
                // librdkafka assigns nothing without a group id, also where none is joined (restore, global). The
                // application's own is the one that its access rules allow.
                add("group.id", &self.application_id);
                add("enable.auto.commit", "false");
                add("enable.auto.offset.store", "false");
                add("enable.partition.eof", "true");
                add("allow.auto.create.topics", "false");
                // A missing offset is decided about here, where it is known what it means.
                add("auto.offset.reset", "error");
                // At least once reads what Java reads there, unless told otherwise: librdkafka's own default is another.
                // Changelogs may hold aborted records of an earlier exactly-once run, and at most once must not read an
                // offset that is still to be settled.
                if self.processing_guarantee != ProcessingGuarantee::AtLeastOnce || client == Client::Restore {
                    add("isolation.level", "read_committed");
                } else if self.given(client, "isolation.level").is_none() {
                    add("isolation.level", "read_uncommitted");
                }
            }
            Client::Producer => {
                add("enable.idempotence", "true");
                add("acks", "all");
                if exactly_once {
                    add("transactional.id", &ids.transactional_id(thread));
                }
            }
            Client::Admin => {}
        }
        fixed
    }
}
