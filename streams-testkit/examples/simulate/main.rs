//! Simulates topologies under faults: `simulate [--seeds N] [--seed S] [--topology NAME] [--trace]`.
//!
//! `--seeds N` runs the seeds from S (0) on, each with one of the topologies in turn; `--seed S` alone runs one seed.
#![allow(clippy::expect_used, missing_docs)]

mod topologies;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use streams_testkit::Seeded;
use streams_testkit::simulate::SimulationReport;

use topologies::{Entry, all, of_seed};

struct Arguments {
    first: u64,
    seeds: u64,
    topology: Option<String>,
    trace: bool,
}

fn main() -> ExitCode {
    match arguments(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut first, mut seeds, mut topology, mut trace) = (None, None, None, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
        match word.as_str() {
            "--seed" => first = Some(number(value()?)?),
            "--seeds" => seeds = Some(number(value()?)?),
            "--topology" => topology = Some(value()?),
            "--trace" => trace = true,
            other => {
                return Err(format!(
                    "what is {other}? usage: simulate [--seeds N] [--seed S] [--topology NAME] [--trace]"
                ));
            }
        }
    }
    let default = if first.is_some() { 1 } else { 300 };
    Ok(Arguments {
        first: first.unwrap_or(0),
        seeds: seeds.unwrap_or(default),
        topology,
        trace,
    })
}

fn entry(name: Option<&str>, seed: u64) -> Result<&'static Entry, String> {
    let Some(name) = name else { return Ok(of_seed(seed)) };
    let names: Vec<&str> = all().map(|entry| entry.name).collect();
    all()
        .find(|entry| entry.name == name)
        .ok_or_else(|| format!("there is no topology `{name}`; there are {}", names.join(", ")))
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut report = SimulationReport::default();
    let mut parts: BTreeMap<&str, Part> = BTreeMap::new();
    for seed in arguments.first..arguments.first + arguments.seeds {
        let entry = entry(arguments.topology.as_deref(), seed)?;
        let simulation = (entry.make)(&mut Seeded::new(seed));
        if arguments.trace {
            for line in simulation.trace(seed)? {
                println!("{line}");
            }
        }
        let started = now();
        match simulation.run(seed..seed + 1) {
            Ok(one) => {
                parts.entry(entry.name).or_default().add(&one, started.elapsed());
                report.add(&one);
            }
            Err(failure) => {
                return Err(format!(
                    "topology {}: {failure}\nagain: cargo xtask simulate --seed {seed} --topology {}",
                    entry.name, entry.name
                ));
            }
        }
    }
    println!(
        "{} seeds, {} output records compared, {} s of virtual time",
        report.seeds,
        report.records,
        report.virtual_ms / 1_000
    );
    for (name, part) in &parts {
        println!(
            "  {name}: {} seeds, {} records, {} ms a seed",
            part.seeds,
            part.records,
            part.took.as_millis() / u128::from(part.seeds.max(1))
        );
    }
    for (what, count) in &report.faults {
        println!("  {count:>9} {what}");
    }
    Ok(())
}

/// What the seeds of one topology were.
#[derive(Default)]
struct Part {
    seeds: u64,
    records: u64,
    took: Duration,
}

impl Part {
    fn add(&mut self, report: &SimulationReport, took: Duration) {
        self.seeds += report.seeds;
        self.records += report.records;
        self.took += took;
    }
}

#[allow(clippy::disallowed_methods, reason = "how long a seed took is told to people")]
fn now() -> Instant {
    Instant::now()
}
