//! Word count, as a topology and on the test driver.

use std::collections::BTreeMap;

use streams_dsl::{
    DefaultSerde, DriverOptions, Error, Headers, Serde as _, StreamsBuilder, Topology, TopologyError,
    TopologyTestDriver,
};

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
    lines: i64,
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
            lines: 0,
        })
    }

    /// Counts the words of a line, and gives the new counts of those words.
    ///
    /// # Errors
    /// When the topology fails.
    pub fn count(&mut self, line: &str) -> Result<BTreeMap<String, i64>, Box<Error>> {
        self.lines += 1;
        self.driver
            .pipe(LINES, None, Some(line.as_bytes()), self.lines, Headers::empty())?;
        let mut counts = BTreeMap::new();
        while let Some(record) = self.driver.read_record(COUNTS) {
            let read = |error: streams_dsl::SerdeError| {
                Box::new(Error::Bug {
                    what: error.to_string(),
                })
            };
            let word = <String as DefaultSerde>::Serde::default()
                .deserialize(COUNTS, record.key.as_deref())
                .map_err(read)?;
            let count = <i64 as DefaultSerde>::Serde::default()
                .deserialize(COUNTS, record.value.as_deref())
                .map_err(read)?;
            counts.insert(word, count);
        }
        Ok(counts)
    }
}
