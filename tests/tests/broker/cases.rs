//! The given cases (`tests/cases/given.json`) that need a broker and no kill; each test names the case it is.

#[path = "cases/errors.rs"]
mod errors;
#[path = "cases/fencing.rs"]
mod fencing;
#[path = "cases/joins.rs"]
mod joins;
#[path = "cases/offsets.rs"]
mod offsets;
#[path = "cases/restores.rs"]
mod restores;
#[path = "cases/shutdown.rs"]
mod shutdown;
#[path = "cases/topics.rs"]
mod topics;

use rdkafka::admin::AdminClient;
use rdkafka::client::DefaultClientContext;
use streams_dsl::StreamsBuilder;
use streams_tests::broker;
use streams_tests::local::{Local, Names};

/// Most cases' topology: `in` → records per key, store `c` → `out`.
fn count(builder: &StreamsBuilder, names: &Names) {
    let stream = builder.stream::<String, String>(names.of("in"));
    stream.group_by_key().count("c").to_stream().to(names.of("out"));
}

/// An application with that topology.
fn counting(case: &str, partitions: i32) -> Local {
    Local::new(case, &[("in", partitions), ("out", partitions)], count)
}

/// Most cases' input.
const THREE: [(&str, Option<&str>, i64); 3] = [("a", Some("x"), 1), ("a", Some("x"), 2), ("b", Some("x"), 3)];
/// What comes of it.
const THREE_COUNTED: [(&str, &str, i64); 3] = [("a", "1", 1), ("a", "2", 2), ("b", "1", 3)];

pub(crate) fn admin() -> AdminClient<DefaultClientContext> {
    let mut config = rdkafka::ClientConfig::new();
    config.set("bootstrap.servers", broker().bootstrap());
    config.create().unwrap()
}

/// Waits for an answer of an admin client.
pub(crate) fn wait<T>(asked: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(asked)
}
