#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod client_settings;

use std::collections::BTreeMap;

use super::clients::Client;
use super::parse::RENAMED;
use super::table::{Class, TABLE};
use super::*;

const GOLDEN: &str = include_str!("../../../tests/golden/golden-formats.json");
const PAGE: &str = include_str!("../../../docs/configuration.md");

fn config() -> StreamsConfig {
    StreamsConfig::new("app", "localhost:9092").state_dir("/var/lib/app")
}

fn parsed(pairs: &[(&str, &str)]) -> Result<StreamsConfig, ConfigError> {
    let required = [
        ("application.id", "app"),
        ("bootstrap.servers", "localhost:9092"),
        ("state.dir", "/var/lib/app"),
    ];
    StreamsConfig::from_properties(required.iter().chain(pairs).copied())
}

fn warnings(pairs: &[(&str, &str)]) -> Vec<String> {
    parsed(pairs)
        .unwrap()
        .validate()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn properties(config: &StreamsConfig, client: Client) -> BTreeMap<String, String> {
    config
        .build(client, &ClientIds::new(config, "p"), 1)
        .into_properties()
        .into_iter()
        .collect()
}

fn with(pairs: &[(&str, &str)], client: Client) -> BTreeMap<String, String> {
    properties(&parsed(pairs).unwrap(), client)
}

#[test]
fn every_key_and_default_of_java_is_in_the_table() {
    let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    let configs = golden["configs"].as_array().unwrap();
    assert_eq!(configs.len(), 79);
    for java in configs {
        let name = java["name"].as_str().unwrap();
        let key = table::find(name).unwrap_or_else(|| panic!("{name} is missing"));
        let default = java["default"].as_str().unwrap_or("null");
        let default = match default.strip_prefix("class ") {
            Some(class) => class.rsplit('.').next().unwrap(),
            None => default,
        };
        assert_eq!(key.java_default, Some(default), "default of {name}");
        assert_eq!(
            format!("{:?}", key.value_type).to_uppercase(),
            java["type"].as_str().unwrap().replace("STRING", "TEXT"),
            "{name}"
        );
    }
    let javas = TABLE.iter().filter(|key| key.java_default.is_some()).count();
    assert_eq!(
        javas,
        configs.len(),
        "the table claims a key of Java that Java does not have"
    );
}

#[test]
fn every_honoured_key_has_a_field_and_the_fields_default_is_the_tables() {
    let fresh = StreamsConfig::new("", "");
    for key in TABLE.iter().filter(|key| key.class == Class::Honoured) {
        if RENAMED.iter().any(|(old, _)| *old == key.name) {
            continue;
        }
        let field = FIELDS
            .iter()
            .find(|field| field.key == key.name)
            .unwrap_or_else(|| panic!("{}", key.name));
        let default = key.default.or(key.java_default).unwrap();
        if key.name == "commit.interval.ms" {
            assert_eq!(default, fresh.effective_commit_interval_ms().to_string());
        } else if (field.get)(&fresh) == "null" || default == "<required>" {
            assert!(
                default.is_empty() || default == "<required>" || default.contains(' ') || default == "null",
                "{}",
                key.name
            );
        } else {
            let mut read = StreamsConfig::new("", "");
            (field.set)(&mut read, default).unwrap();
            assert!(
                read == fresh,
                "{}: the table says {default}, the field {}",
                key.name,
                (field.get)(&fresh)
            );
        }
    }
    for field in FIELDS {
        assert_eq!(
            table::find(field.key).map(|key| key.class),
            Some(Class::Honoured),
            "{}",
            field.key
        );
    }
}

#[test]
fn every_key_of_the_table_is_read_with_its_java_default_unless_that_is_not_built() {
    for key in TABLE
        .iter()
        .filter(|key| key.java_default.is_some_and(|default| default != "<required>"))
    {
        let not_built = ["group.protocol", "commit.interval.ms"].contains(&key.name);
        let result = parsed(&[(key.name, key.java_default.unwrap())]);
        assert_eq!(result.is_err(), not_built, "{}: {result:?}", key.name);
    }
}

#[test]
fn each_key_stands_once() {
    let mut names: Vec<_> = TABLE.iter().map(|key| key.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    let mut names: Vec<_> = client_keys::CLIENT_KEYS.iter().map(|key| key.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn the_page_is_up_to_date() {
    let page = render_documentation();
    if std::env::var_os("UPDATE_DOCUMENTATION").is_some() {
        // Of the checkout that runs, which need not be the one that compiled this.
        let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        std::fs::write(format!("{package}/../docs/configuration.md"), &page).unwrap();
    } else {
        assert!(
            page == PAGE,
            "docs/configuration.md is old: run this test with UPDATE_DOCUMENTATION=1"
        );
    }
}

#[test]
fn properties_and_setters_give_the_same() {
    let pairs = [
        ("commit.interval.ms", "50"),
        ("num.stream.threads", "3"),
        ("client.id", "c"),
        ("commit.adaptive", "false"),
    ];
    let set = config()
        .commit_interval_ms(50)
        .num_stream_threads(3)
        .client_id("c")
        .commit_adaptive(false);
    assert!(parsed(&pairs).unwrap() == set);
}

#[test]
fn an_unknown_key_names_the_nearest_one() {
    for (wrong, near) in [
        ("comit.interval.ms", "commit.interval.ms"),
        ("consumer.max.pol.records", "consumer.max.poll.records"),
        ("main.consumer.fetch.min.byte", "main.consumer.fetch.min.bytes"),
        (
            "producer.queue.buffering.max.mesages",
            "producer.queue.buffering.max.messages",
        ),
    ] {
        let error = parsed(&[(wrong, "1")]).unwrap_err();
        assert_eq!(error.0.len(), 1);
        assert!(
            error
                .to_string()
                .contains(&format!("{wrong}: the key is not known; did you mean `{near}`?")),
            "{error}"
        );
    }
}

#[test]
fn all_findings_are_told_together() {
    let error = StreamsConfig::from_properties([
        ("bootstrap.servers", "nowhere"),
        ("num.stream.threads", "0"),
        ("commit.interval.ms", "soon"),
        ("what.is.this.supposed.to.be", "1"),
        ("processing.guarantee", "at_least_twice"),
        ("group.protocol", "classic"),
        ("num.standby.replicas", "1"),
        ("producer.max.in.flight.requests.per.connection", "6"),
        ("consumer.interceptor.classes", "x.Y"),
    ])
    .unwrap_err();
    let mut keys: Vec<_> = error.0.iter().map(|problem| problem.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "application.id",
            "bootstrap.servers",
            "commit.interval.ms",
            "consumer.interceptor.classes",
            "group.protocol",
            "max.in.flight.requests.per.connection",
            "num.standby.replicas",
            "num.stream.threads",
            "processing.guarantee",
            "what.is.this.supposed.to.be",
        ]
    );
}

#[test]
fn a_commit_interval_must_be_below_the_transaction_timeout() {
    assert!(parsed(&[("commit.interval.ms", "10000")]).is_err());
    assert!(parsed(&[("commit.interval.ms", "9999")]).is_ok());
    assert!(
        parsed(&[
            ("commit.interval.ms", "10000"),
            ("producer.transaction.timeout.ms", "10001")
        ])
        .is_ok()
    );
}

#[test]
fn a_segment_must_hold_a_batch() {
    assert!(parsed(&[("topic.segment.bytes", "100"), ("producer.batch.size", "101")]).is_err());
    assert!(parsed(&[("topic.segment.bytes", "101"), ("producer.batch.size", "101")]).is_ok());
}

#[test]
fn the_environment_names_keys_in_capitals() {
    let variables = [
        ("STREAMS_APPLICATION_ID", "app"),
        ("STREAMS_BOOTSTRAP_SERVERS", "localhost:9092"),
        ("STREAMS_MAIN_CONSUMER_FETCH_MIN_BYTES", "7"),
        ("STREAMS_RACK_AWARE_ASSIGNMENT_TRAFFIC_COST", "1"),
        ("PATH", "/bin"),
    ];
    let config = StreamsConfig::from_env(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap();
    assert_eq!(properties(&config, Client::Main)["fetch.min.bytes"], "7");
    assert!(
        config
            .validate()
            .unwrap()
            .iter()
            .any(|warning| warning.key == "rack.aware.assignment.traffic_cost")
    );
}

#[test]
fn keys_without_effect_are_told_with_the_reason() {
    assert_eq!(
        warnings(&[("acceptable.recovery.lag", "10000"), ("default.key.serde", "null")]),
        [""; 0]
    );
    let told = warnings(&[("acceptable.recovery.lag", "5"), ("consumer.session.timeout.ms", "9")]);
    assert!(
        told[0].starts_with("acceptable.recovery.lag: it has no effect here: under the streams protocol"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("consumer.session.timeout.ms: it has no effect here"),
        "{told:?}"
    );
}

#[test]
fn the_new_name_wins_over_the_deprecated_one() {
    let both = parsed(&[("statestore.cache.max.bytes", "1"), ("cache.max.bytes.buffering", "2")]).unwrap();
    assert_eq!(both.statestore_cache_max_bytes, Some(1));
    assert_eq!(
        parsed(&[("cache.max.bytes.buffering", "2")])
            .unwrap()
            .statestore_cache_max_bytes,
        Some(2)
    );
}

#[test]
fn a_temporary_state_directory_is_warned_of() {
    let warnings = StreamsConfig::new("app", "localhost:9092").validate().unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].key, "state.dir");
}

#[test]
fn what_the_library_reads_itself_is_read() {
    let config = parsed(&[
        ("max.poll.records", "7"),
        ("main.consumer.auto.offset.reset", "latest"),
        ("consumer.max.poll.interval.ms", "8"),
        ("errors.dead.letter.queue.topic.name", "dlq"),
        (
            "processing.exception.handler",
            "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler",
        ),
    ])
    .unwrap();
    assert_eq!((config.max_poll_records(), config.max_poll_interval_ms()), (7, 8));
    assert_eq!(config.offset_reset(), OffsetReset::Latest);
    assert_eq!(config.processing_exception_handler, OnError::Continue);
    assert!(parsed(&[("consumer.auto.offset.reset", "by_duration:PT1H")]).is_err());
    assert!(parsed(&[("production.exception.handler", "com.example.Mine")]).is_err());
}

#[test]
fn variables_of_tests_are_no_settings() {
    let names = [
        "STREAMS_TEST_SEED",
        "STREAMS_TESTKIT_CHILD",
        "STREAMS_CRASH_ROUNDS",
        "STREAMS_POLL_MS",
    ];
    let found = super::env_properties(names.map(|name| (name.to_owned(), "7".to_owned())));
    assert_eq!(found, [("poll.ms".to_owned(), "7".to_owned())]);
    let keys = super::table::TABLE.iter().map(|key| key.name);
    assert_eq!(
        keys.filter(|key| key.starts_with("test") || key.starts_with("crash."))
            .count(),
        0
    );
}
