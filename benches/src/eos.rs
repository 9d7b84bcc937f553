//! The client of Kafka's own exactly-once system test (`EosTestClient` of its 4.2.0 test jar), driven by
//! `tests/peers/SmokeDriver.java eos`; topology and verification stand in `tests/peers/smoke-topology.md`.

use streams_dsl::{Materialized, StreamsBuilder, Topology, TopologyError};

/// Java's client commits so seldom that a kill hits an open transaction.
const COMMIT_INTERVAL_MS: &str = "5000";

/// The topology: a copy, and four aggregates of which two read a topic that the application itself writes.
///
/// # Errors
/// Never, unless the DSL has a bug.
pub fn topology() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    let data = builder.stream::<String, i32>("data");
    data.to("echo");
    let by_key = data.group_by_key();
    by_key
        .aggregate(
            || i32::MAX,
            |_, value, min: i32| min.min(*value),
            Materialized::unnamed(),
        )
        .to_stream()
        .to("min");
    by_key
        .aggregate(
            || 0,
            |_, value, sum: i64| sum + i64::from(*value),
            Materialized::unnamed(),
        )
        .to_stream()
        .to("sum");
    data.to("repartition");
    let by_key = builder.stream::<String, i32>("repartition").group_by_key();
    by_key
        .aggregate(
            || i32::MIN,
            |_, value, max: i32| max.max(*value),
            Materialized::unnamed(),
        )
        .to_stream()
        .to("max");
    by_key.count(Materialized::unnamed()).to_stream().to("cnt");
    builder.build()
}

/// Runs the client as the environment orders: `KAFKA_BOOTSTRAP APP_ID GUARANTEE STATE_DIR CLIENT_ID PROTO`, and
/// `EXTRA` for more settings. `SESSION_MS` is the group's, which the driver sets on the broker.
///
/// # Errors
/// When the application can't start, fails, or does not close in time.
pub fn client() -> anyhow::Result<()> {
    // Java's client also asks for two standbys. Of a streams group the brokers decide about those, and this library has
    // none yet.
    let settings = [
        // Each input record makes one record in each output: the driver compares them one by one.
        ("statestore.cache.max.bytes", "0"),
        ("commit.interval.ms", COMMIT_INTERVAL_MS),
        ("commit.adaptive", "false"),
    ];
    crate::system::client("EosTest", topology()?, &settings)
}
