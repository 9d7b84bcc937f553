//! The same topology on the test driver: no broker, no Java, no threads.

use std::sync::Arc;

use anyhow::Result;
use streams_dsl::{DriverOptions, ErrorHandlers, LogAndContinue, TopologyTestDriver};

use crate::feed::{Feed, FeedRecord};
use crate::report::{KeyValue, Results};
use crate::topics::Names;
use crate::topology::{self, OnDeparture};

/// Feeds everything through the driver and gives what the topics hold then.
///
/// # Errors
/// When the topology fails.
pub fn run(feed: &Feed, names: &Names, on_departure: OnDeparture) -> Result<Results> {
    let topology = topology::build(names, on_departure)?;
    let handlers = ErrorHandlers {
        deserialization: Arc::new(LogAndContinue),
        dead_letter_topic: Some(names.dead_letters().into()),
        ..ErrorHandlers::default()
    };
    let options = DriverOptions {
        application_id: names.application_id(),
        handlers: Arc::new(handlers),
        partitions: names
            .all()
            .into_iter()
            .map(|(topic, _, partitions)| (topic, partitions))
            .collect(),
        commit_each: false,
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&topology, options)?;
    pipe(&mut driver, &names.planes(), &feed.planes)?;
    pipe(&mut driver, &names.airlines(), &feed.airlines)?;
    pipe(&mut driver, &names.raw(), &feed.departures)?;
    Results::from_topics(names, |topic| {
        Ok(driver
            .read_all(topic)
            .into_iter()
            .map(|record| -> KeyValue { (record.key, record.value) })
            .collect())
    })
}

fn pipe(driver: &mut TopologyTestDriver, topic: &str, records: &[FeedRecord]) -> Result<()> {
    let records = records.iter();
    let records = records.map(|record| {
        (
            Some(record.key.as_bytes()),
            record.value.as_deref(),
            record.timestamp_ms,
        )
    });
    Ok(driver.pipe_all(topic, records)?)
}
