//! What becomes of settings of clients.

use super::*;

#[test]
fn the_more_special_prefix_wins_over_the_less_special_one_and_that_over_none() {
    let pairs = [
        ("fetch.min.bytes", "1"),
        ("consumer.fetch.min.bytes", "2"),
        ("main.consumer.fetch.min.bytes", "3"),
    ];
    assert_eq!(with(&pairs, Client::Main)["fetch.min.bytes"], "3");
    assert_eq!(with(&pairs, Client::Restore)["fetch.min.bytes"], "2");
    assert_eq!(with(&pairs[..1], Client::Global)["fetch.min.bytes"], "1");
    assert!(!with(&pairs, Client::Producer).contains_key("fetch.min.bytes"));
    assert_eq!(with(&[("linger.ms", "5")], Client::Producer)["linger.ms"], "5");
    assert_eq!(with(&[], Client::Producer)["linger.ms"], "100");
}

#[test]
fn what_the_library_depends_on_wins_with_a_warning() {
    let pairs = [
        ("consumer.enable.auto.commit", "true"),
        ("producer.transactional.id", "mine"),
        ("producer.acks", "1"),
    ];
    assert_eq!(with(&pairs, Client::Main)["enable.auto.commit"], "false");
    assert_eq!(with(&pairs, Client::Producer)["transactional.id"], "app-p-1");
    let told = warnings(&pairs).join("\n");
    for key in ["enable.auto.commit", "transactional.id", "acks"] {
        assert!(told.contains(&format!("{key}: it is always")), "{told}");
    }
    assert_eq!(
        warnings(&[("producer.acks", "-1"), ("consumer.isolation.level", "READ_COMMITTED")]),
        [""; 0]
    );
}

#[test]
fn a_main_consumer_is_as_the_shell_needs_it() {
    let expected = [
        ("allow.auto.create.topics", "false"),
        ("auto.offset.reset", "error"),
        ("bootstrap.servers", "localhost:9092"),
        ("client.id", "app-p-StreamThread-1-consumer"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("enable.partition.eof", "true"),
        ("group.id", "app"),
        ("isolation.level", "read_committed"),
    ];
    let ids = ClientIds::new(&config(), "p");
    let ours = config().main_consumer_properties(&ids, 1);
    assert_eq!(ours, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn rule_2_7_without_transactions_the_isolation_is_javas_unless_it_is_given_and_changelogs_are_read_committed() {
    let of = |pairs: &[(&str, &str)], client| with(pairs, client)["isolation.level"].clone();
    let alos = ("processing.guarantee", "at_least_once");
    let given = ("consumer.isolation.level", "read_committed");
    assert_eq!(of(&[alos], Client::Main), "read_uncommitted");
    assert_eq!(of(&[alos], Client::Global), "read_uncommitted");
    assert_eq!(of(&[alos, given], Client::Main), "read_committed");
    assert_eq!(of(&[alos], Client::Restore), "read_committed");
    let amos = ("processing.guarantee", "at_most_once");
    for client in [Client::Main, Client::Restore, Client::Global] {
        assert_eq!(of(&[amos], client), "read_committed");
    }
}

#[test]
fn without_transactions_a_producer_has_no_transactional_id_and_commits_come_every_30_s() {
    for guarantee in ["at_least_once", "at_most_once"] {
        let pairs = [
            ("processing.guarantee", guarantee),
            ("producer.transactional.id", "mine"),
        ];
        let producer = with(&pairs, Client::Producer);
        assert!(!producer.contains_key("transactional.id"), "{producer:?}");
        assert_eq!(
            (producer["enable.idempotence"].as_str(), producer["acks"].as_str()),
            ("true", "all")
        );
        assert!(
            warnings(&pairs)
                .join("\n")
                .contains("transactional.id: it is not taken")
        );
        assert_eq!(parsed(&pairs).unwrap().effective_commit_interval_ms(), 30_000);
    }
}

#[test]
fn a_producers_times_stay_within_its_transactions() {
    let pairs = [
        ("request.timeout.ms", "40000"),
        ("producer.delivery.timeout.ms", "2147483647"),
    ];
    let producer = with(&pairs, Client::Producer);
    assert_eq!(
        (
            producer["message.timeout.ms"].as_str(),
            producer["socket.timeout.ms"].as_str()
        ),
        ("10000", "10100")
    );
    assert_eq!(with(&pairs, Client::Main)["socket.timeout.ms"], "40000");
    assert_eq!(warnings(&pairs).len(), 2);
    assert_eq!(
        with(&[("producer.message.timeout.ms", "0")], Client::Producer)["message.timeout.ms"],
        "10000"
    );
}

#[test]
fn sizes_and_names_are_translated() {
    let pairs = [
        ("producer.buffer.memory", "1025"),
        ("receive.buffer.bytes", "-1"),
        ("metadata.max.age.ms", "5"),
        ("producer.max.request.size", "9"),
        ("consumer.fetch.max.wait.ms", "3"),
    ];
    let producer = with(&pairs, Client::Producer);
    assert_eq!(producer["queue.buffering.max.kbytes"], "2");
    assert_eq!(producer["socket.receive.buffer.bytes"], "0");
    assert_eq!(producer["topic.metadata.refresh.interval.ms"], "5");
    assert_eq!(producer["message.max.bytes"], "9");
    assert_eq!(with(&pairs, Client::Main)["fetch.wait.max.ms"], "3");
}

#[test]
fn every_translated_name_is_a_property_of_librdkafka() {
    let known: Vec<&str> = [librdkafka::ALL, librdkafka::CONSUMER, librdkafka::PRODUCER].concat();
    for key in client_keys::CLIENT_KEYS {
        if let client_keys::Rule::As(name) | client_keys::Rule::Kilobytes(name) | client_keys::Rule::SystemSize(name) =
            key.rule
        {
            assert!(known.contains(&name), "{} → {name}", key.name);
        }
    }
    for client in Client::EVERY {
        for (name, _) in properties(&config(), client) {
            assert!(known.contains(&name.as_str()), "{name}");
        }
    }
}

#[test]
fn jaas_logins_are_translated_and_never_shown() {
    let jaas = r#"org.apache.kafka.common.security.scram.ScramLoginModule required username="a b" password="p\"=;w";"#;
    let pairs = [
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("sasl.jaas.config", jaas),
    ];
    let admin = with(&pairs, Client::Admin);
    assert_eq!(admin["sasl.username"], "a b");
    assert_eq!(admin["sasl.password"], "p\"=;w");
    assert!(!admin.contains_key("sasl.jaas.config"));
    assert!(!format!("{:?}", parsed(&pairs).unwrap()).contains("p\\"));
    for wrong in [
        "com.sun.security.auth.module.Krb5LoginModule required;",
        "x.PlainLoginModule required username=u;",
        "",
    ] {
        let result = parsed(&[("sasl.jaas.config", wrong)]);
        assert_eq!(result.is_err(), !wrong.is_empty(), "{wrong}");
    }
}

#[test]
fn trust_stores_are_pem_and_key_stores_pem_or_pkcs12() {
    assert_eq!(
        with(&[("ssl.truststore.location", "/ca.pem")], Client::Main)["ssl.ca.location"],
        "/ca.pem"
    );
    assert_eq!(
        with(
            &[("ssl.truststore.location", "/ca"), ("ssl.truststore.type", "PEM")],
            Client::Main
        )["ssl.ca.location"],
        "/ca"
    );
    assert!(parsed(&[("ssl.truststore.location", "/trust.jks")]).is_err());
    assert!(parsed(&[("ssl.keystore.location", "/keys")]).is_err());
    let pem = with(
        &[("ssl.keystore.location", "/k.pem"), ("ssl.keystore.type", "PEM")],
        Client::Producer,
    );
    assert_eq!(
        (
            pem["ssl.key.location"].as_str(),
            pem["ssl.certificate.location"].as_str()
        ),
        ("/k.pem", "/k.pem")
    );
    let pkcs = with(
        &[("ssl.keystore.location", "/k.p12"), ("ssl.keystore.password", "s")],
        Client::Producer,
    );
    assert_eq!(
        (
            pkcs["ssl.keystore.location"].as_str(),
            pkcs["ssl.keystore.password"].as_str()
        ),
        ("/k.p12", "s")
    );
}
