//! Word count, as a topology and on the test driver.

use std::collections::BTreeMap;

use streams_dsl::Error;
use streams_dsl::prelude::*;

/// The input topic: lines of text.
pub const LINES: &str = "lines";
/// The output topic: counts (i64, big-endian as Java's `Long` serde) by word.
pub const COUNTS: &str = "counts-by-word";

/// The topology.
///
/// # Errors
/// None, unless the topology is changed to one that can't be built.
pub fn topology() -> Result<Topology, TopologyError> {
    let builder = StreamsBuilder::new();
    builder
        .stream::<Option<String>, String>(LINES)
        .flat_map_values(|_, line| words(line))
        .group_by(|_, word| word.clone())
        .count("counts")
        .to_stream()
        .to(COUNTS);
    builder.build()
}

fn words(line: &str) -> Vec<String> {
    let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Counts on the test driver: the same topology, without a broker.
pub struct Counter {
    driver: TopologyTestDriver,
    lines: TestInput<Option<String>, String>,
    counts: TestOutput<String, i64>,
    piped: i64,
}

impl Counter {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// When the topology can't be run.
    pub fn new() -> Result<Self, Box<Error>> {
        let topology = topology().map_err(Error::from)?;
        Ok(Counter {
            driver: TopologyTestDriver::new(&topology, DriverOptions::default())?,
            lines: TestInput::of(LINES),
            counts: TestOutput::of(COUNTS),
            piped: 0,
        })
    }

    /// Counts the words of a line, and gives the new counts of those words. The time of a line is its number.
    ///
    /// # Errors
    /// When the topology fails.
    pub fn count(&mut self, line: &str) -> Result<BTreeMap<String, i64>, Box<Error>> {
        self.piped += 1;
        self.lines
            .pipe(&mut self.driver, None::<String>, line.to_owned(), self.piped)?;
        self.counts.read_key_values_to_map(&mut self.driver)
    }
}
