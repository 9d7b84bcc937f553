//! Bills what projects use, by the hour.

use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use streams_dsl::prelude::*;

#[derive(Clone, Serialize, Deserialize)]
struct Usage {
    project: String,
    bytes: u64,
}
impl DefaultSerde for Usage {
    type Serde = Json<Self>;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Bill {
    requests: u64,
    bytes: u64,
}
impl DefaultSerde for Bill {
    type Serde = Json<Self>;
}

impl Bill {
    fn add(self, usage: &Usage) -> Self {
        Bill {
            requests: self.requests + 1,
            bytes: self.bytes + usage.bytes,
        }
    }
}

fn topology() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, Usage>("usage")
        .filter(|_tenant, usage| usage.bytes > 0)
        .select_key(|_tenant, usage| usage.project.clone())
        .group_by_key()
        .windowed_by(TimeWindows::of(HOUR).grace(5 * MINUTE))
        .aggregate(Bill::default, |_project, usage, bill| bill.add(usage), "hourly-bill")
        .to_stream()
        .peek(|hour, bill| println!("{hour} {bill:?}"))
        .to("invoices");
    builder.build()
}

fn main() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    eprintln!("{error}"); // what happened, where, and what to do
    ExitCode::FAILURE
}

fn run() -> Result<(), BoxError> {
    tracing_subscriber::fmt().init(); // what the library tells, from INFO on
    let config = StreamsConfig::new("billing", "localhost:9092").state_dir("billing-state");
    let streams = KafkaStreams::new(topology()?, config)?;
    streams.set_state_listener(|new, _old| println!("{new}"));
    streams.start()?;
    streams.wait_for(Duration::MAX, State::is_final);
    match streams.error() {
        Some(error) => Err(error.to_string().into()),
        None => Ok(()),
    }
}

#[test]
fn what_a_project_uses_within_an_hour_is_one_bill() -> Result<(), BoxError> {
    let mut driver = TopologyTestDriver::new(&topology()?, DriverOptions::default())?;
    let usage = TestInput::<String, Usage>::of("usage");
    for (bytes, timestamp_ms) in [(7, 1_000), (0, 2_000), (5, 3_599_999), (9, 3_600_000)] {
        let project = "web".to_owned();
        usage.pipe(&mut driver, "tenant-1", Usage { project, bytes }, timestamp_ms)?;
    }
    let invoices = TestOutput::<Windowed<String>, Option<Bill>>::of("invoices").read_key_values_to_map(&mut driver)?;
    let bills: Vec<_> = invoices
        .into_iter()
        .map(|(hour, bill)| (hour.window.start_ms, bill))
        .collect();
    let bill = |requests, bytes| Some(Bill { requests, bytes });
    assert_eq!(bills, [(0, bill(2, 12)), (3_600_000, bill(1, 9))]);
    Ok(())
}
