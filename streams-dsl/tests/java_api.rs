//! What `docs/java-operators.md` points to where no other test shows it: each config says what it says, each kind of store
//! works wherever its rows are, processors reach what Java's reach.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[path = "java_api/configs.rs"]
mod configs;
#[path = "java_api/findings.rs"]
mod findings;
#[path = "java_api/processors.rs"]
mod processors;
#[path = "java_api/stores.rs"]
mod stores;

use streams_dsl::prelude::*;

/// A driver of what `build` builds.
fn driver(build: impl FnOnce(&StreamsBuilder)) -> TopologyTestDriver {
    driver_with(build, DriverOptions::default())
}

fn driver_with(build: impl FnOnce(&StreamsBuilder), options: DriverOptions) -> TopologyTestDriver {
    let builder = StreamsBuilder::new();
    build(&builder);
    TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap()
}

/// Pipes a record of a text and a number.
fn pipe(driver: &mut TopologyTestDriver, topic: &str, key: &str, value: i64, time: i64) {
    TestInput::<String, i64>::of(topic)
        .pipe(driver, key, value, time)
        .unwrap();
}

/// The numbers that came out since the last call, with their keys.
fn out(driver: &mut TopologyTestDriver, topic: &str) -> Vec<(String, i64)> {
    let output = TestOutput::<String, i64>::of(topic);
    let records = output.read_records_to_list(driver).unwrap();
    records.into_iter().map(|record| (record.key, record.value)).collect()
}

fn row(key: &str, value: i64) -> (String, i64) {
    (key.to_owned(), value)
}
