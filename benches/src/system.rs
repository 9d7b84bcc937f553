//! What the clients of Kafka's own system tests share: orders by environment, as `tests/peers/SmokeDriver.java` gives them.

use streams_dsl::{StreamsConfig, Topology};

use crate::application::{env, extra_properties, log_to_stderr, run};

/// Runs a client as the environment orders: `KAFKA_BOOTSTRAP APP_ID GUARANTEE STATE_DIR CLIENT_ID PROTO`, and `EXTRA` for
/// more settings. `SESSION_MS` is the group's, which the driver sets on the broker. `settings` are the test's own.
///
/// # Errors
/// When the application can't start, fails, or does not close in time.
pub(crate) fn client(name: &str, topology: Topology, settings: &[(&'static str, &str)]) -> anyhow::Result<()> {
    log_to_stderr("info");
    let mut properties = vec![
        ("application.id", env("APP_ID", name)),
        ("bootstrap.servers", env("KAFKA_BOOTSTRAP", "127.0.0.1:9092")),
        ("processing.guarantee", env("GUARANTEE", "exactly_once_v2")),
        ("group.protocol", env("PROTO", "streams")),
        ("client.id", env("CLIENT_ID", "client")),
        ("state.dir", env("STATE_DIR", &format!("/tmp/{name}-client-state"))),
        ("auto.offset.reset", "earliest".to_owned()),
    ];
    properties.extend(settings.iter().map(|(key, value)| (*key, (*value).to_owned())));
    let mut config = StreamsConfig::from_properties(properties)?;
    for (key, value) in extra_properties()? {
        config = config.property(&key, &value)?;
    }
    run(topology, config)
}
